"""Prices of calls, faults and rewrites, worked out by hand."""

from __future__ import annotations

import pytest

from context_gatekeeper.core.economics import PRICES, call_price, fault_price, rewrite_price

ANTHROPIC = PRICES["anthropic-5m"]


def test_a_call_is_billed_by_what_is_read_written_sent_plain_and_put_out() -> None:
    assert call_price(ANTHROPIC, 10_000, 1000, 200, 300) == pytest.approx(1000 + 1250 + 200 + 1500)


def test_a_fault_costs_the_prompt_again_the_asking_call_and_the_page() -> None:
    assert fault_price(ANTHROPIC, 30_000, 400) == pytest.approx(3000 + 5 * 60 + 1.25 * (75 + 400))


def test_a_rewrite_costs_the_write_price_less_the_read_price_of_what_stays_behind() -> None:
    assert rewrite_price(ANTHROPIC, 10_000) == pytest.approx(11_500)
    assert rewrite_price(PRICES["none"], 10_000) == 0


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("anthropic-5m", (0.1, 1.25, 5, 300)),
        ("anthropic-1h", (0.1, 2, 5, 3600)),
        ("openai", (0.1, 1.25, 8, 600)),
        ("openai-free-write", (0.1, 1, 8, 600)),
        ("cheap-read", (0.025, 1.25, 5, 300)),
        ("none", (1, 1, 5, 0)),
        ("local", (0, 1, 0, float("inf"))),
    ],
)
def test_the_profiles_are_those_of_the_contract(name: str, numbers: tuple[float, ...]) -> None:
    profile = PRICES[name]
    assert (profile.read, profile.write, profile.output, profile.ttl_seconds) == numbers
    assert profile.name == name
    assert profile.source


def test_only_a_profile_with_cheaper_reads_has_a_cache() -> None:
    assert [name for name, profile in PRICES.items() if not profile.has_cache] == ["none"]
