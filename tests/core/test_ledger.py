"""A prompt cache's bill, and the net ledger."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.economics import PRICES, PriceProfile, fault_price
from context_gatekeeper.core.ledger import NetLedger, PromptCache

ANTHROPIC = PRICES["anthropic-5m"]


def test_the_common_prefix_is_read_and_the_rest_is_written() -> None:
    cache = PromptCache(ANTHROPIC)
    assert cache.call(12_000, 0, is_cold=False) == pytest.approx(15_000)
    assert cache.call(13_000, 12_000, is_cold=False) == pytest.approx(1200 + 1250)
    cache.answer(300)
    bill = cache.bill
    assert bill.units == pytest.approx(15_000 + 2450 + 1500)
    assert (bill.calls, bill.prompt_tokens, bill.read_tokens, bill.output_tokens) == (2, 25_000, 12_000, 300)


def test_a_cold_cache_and_a_prefix_that_is_too_short_are_written_whole() -> None:
    cache = PromptCache(ANTHROPIC)
    assert cache.call(13_000, 12_000, is_cold=True) == pytest.approx(16_250)
    assert cache.call(2000, 1023, is_cold=False) == pytest.approx(2500)
    assert cache.call(2000, 1024, is_cold=False) == pytest.approx(102.4 + 1220)


def test_a_volatile_tail_is_sent_plain() -> None:
    cache = PromptCache(ANTHROPIC)
    assert cache.call(5000, 2000, is_cold=False, volatile_tokens=2500) == pytest.approx(200 + 625 + 2500)
    assert cache.call(5000, 4000, is_cold=False, volatile_tokens=9999) == pytest.approx(400 + 1000)


def test_a_fault_is_an_extra_call_over_the_whole_prompt() -> None:
    cache = PromptCache(ANTHROPIC)
    assert cache.fault(30_000, 400, 1) == pytest.approx(3000 + 300 + 1.25 * 475)
    assert (cache.bill.extra_calls, cache.bill.calls) == (1, 0)
    assert cache.bill.prompt_tokens == 30_475


def test_the_ledger_pays_from_its_savings_and_a_small_overdraft() -> None:
    ledger = NetLedger(spent=900.0, append_only=1000.0)
    assert ledger.saved == 100
    assert ledger.can_afford(110.0, 0.01)
    assert not ledger.can_afford(110.5, 0.01)
    assert not NetLedger().can_afford(1.0, 0.5)


PROFILES = st.sampled_from(sorted(PRICES)).map(PRICES.__getitem__)
TOKENS = st.integers(0, 200_000)


@given(PROFILES, TOKENS, TOKENS)
def test_the_bill_of_one_missing_page_is_the_price_that_the_planner_reckons_with(
    prices: PriceProfile, prompt: int, page: int
) -> None:
    assert PromptCache(prices).fault(prompt, page, 1) == pytest.approx(fault_price(prices, prompt, page))


@given(PROFILES, TOKENS, st.floats(0, 1), st.floats(0, 1))
def test_a_living_cache_never_makes_a_call_dearer_and_nothing_is_billed_twice(
    prices: PriceProfile, prompt: int, known: float, volatile: float
) -> None:
    common, tail = int(prompt * known), int(prompt * volatile)
    alive, cold = PromptCache(prices), PromptCache(prices)
    warm_units = alive.call(prompt, common, is_cold=False)
    assert warm_units <= cold.call(prompt, common, is_cold=True)
    assert alive.bill.prompt_tokens == prompt
    assert alive.bill.read_tokens in (0, common)
    units = PromptCache(prices).call(prompt, common, is_cold=False, volatile_tokens=tail)
    assert units >= prompt * min(prices.read, prices.write, 1.0)


@given(st.lists(st.tuples(TOKENS, st.booleans())))
def test_the_bill_is_the_sum_of_what_each_call_was_told_to_cost(calls: list[tuple[int, bool]]) -> None:
    cache, told = PromptCache(ANTHROPIC), 0.0
    for prompt, faults in calls:
        told += cache.call(prompt, prompt // 2, is_cold=False)
        if faults:
            told += cache.fault(prompt, 400, 2)
    assert cache.bill.units == pytest.approx(told)
    assert (cache.bill.calls, cache.bill.extra_calls) == (len(calls), sum(faults for _, faults in calls))
