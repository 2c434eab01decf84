"""The figures of the contract, worked out by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest

from context_gatekeeper.core.economics import FAULT_CALL_TOKENS, FAULT_FRAME_TOKENS, PRICES
from context_gatekeeper.core.ledger import Bill
from context_gatekeeper.engine.session_log import SessionLog, Slice
from context_gatekeeper.replay.catalogue import policy_makers
from context_gatekeeper.replay.figures import SessionFigures, first_token_seconds, policy_figures
from context_gatekeeper.replay.policies import SlidingWindow
from context_gatekeeper.replay.run import APPEND_ONLY, ReplayOptions, ReplaySession, replay_session
from context_gatekeeper.types import Usage
from tests.replay.scripted import SECRET_LINE, answer, filler, result, session_of, user

ANTHROPIC = PRICES["anthropic-5m"]
RESIDENT = 8000


def figures(name: str = "one", *, units: list[float], **values: int | None) -> SessionFigures:
    """One session's figures; its bill is the sum of the calls."""
    bill = Bill(units=sum(units), calls=len(units))
    listed = SessionFigures(name, bill, list(units), [1000] * len(units), call_uncached=[100] * len(units))
    for key, value in values.items():
        setattr(bill if hasattr(bill, key) else listed, key, value)
    return listed


def test_the_bill_of_five_calls_is_what_a_person_works_out() -> None:
    outputs = (10, 20, 30, 40, 50)
    messages = [user("Read the parts one by one, please.")]
    for number, output in enumerate(outputs):
        usage = Usage(plain_tokens=1, output_tokens=output)
        messages.append(answer(f"Part {number}.", (f"r{number}", "Read", {"part": number}), usage=usage))
        messages.append(result(f"r{number}", filler(400 * (number + 1))))
    session = session_of(*messages)
    log = SessionLog()
    pieces = [log.add_message(message) for message in messages]
    prompts, tokens = [], 0
    for message, added in zip(messages, pieces, strict=True):
        if message.is_call:
            prompts.append(RESIDENT + tokens)
        tokens += sum(piece.tokens for piece in added)

    found, _, _ = replay_session(ReplaySession(session), {}, ReplayOptions(ANTHROPIC, RESIDENT))
    bill = found[APPEND_ONLY].bill
    grown = [later - earlier for earlier, later in pairwise(prompts)]
    expected = [1.25 * prompts[0] + 5 * 10]
    expected += [
        0.1 * before + 1.25 * new + 5 * output for before, new, output in zip(prompts, grown, outputs[1:], strict=False)
    ]
    assert found[APPEND_ONLY].call_units == pytest.approx(expected)
    assert bill.units == pytest.approx(sum(expected))
    assert (bill.calls, bill.extra_calls) == (5, 0)
    assert bill.prompt_tokens == sum(prompts)
    assert bill.read_tokens == sum(prompts[:-1])
    assert bill.output_tokens == sum(outputs)
    assert found[APPEND_ONLY].call_uncached == [prompts[0], *grown]


def test_a_fault_is_charged_as_one_more_call_and_the_page_at_the_tail() -> None:
    usage = Usage(plain_tokens=1, output_tokens=10)
    messages = [
        user("Which budget do we use?"),
        answer("I look.", ("a", "Read", {"part": 1}), usage=usage),
        result("a", SECRET_LINE),
        answer("Next.", ("b", "Read", {"part": 2}), usage=usage),
        result("b", filler(200)),
        answer(SECRET_LINE, usage=usage),
    ]
    makers = {"window": lambda log, _resident: SlidingWindow(log, 1)}
    found, _, log = replay_session(ReplaySession(session_of(*messages)), makers, ReplayOptions(ANTHROPIC, RESIDENT))
    window = found["window"]
    page = page_of(log, SECRET_LINE.strip())
    last_prompt = window.call_prompts[-1]
    fault = 0.1 * last_prompt + 5 * FAULT_CALL_TOKENS + 1.25 * (FAULT_FRAME_TOKENS + page.tokens)
    plain = 0.1 * RESIDENT + 1.25 * (last_prompt - RESIDENT) + 5 * 10
    assert window.call_units[-1] == pytest.approx(plain + fault)
    assert (window.faults, window.word_faults, window.hard_faults, window.major_faults) == (1, 1, 1, 1)
    assert (window.needs, window.missing, window.missing_words) == (3, 3, 3)
    assert (window.bill.calls, window.bill.extra_calls) == (3, 1)
    assert window.call_uncached[-1] == last_prompt - RESIDENT + FAULT_FRAME_TOKENS + page.tokens
    assert found[APPEND_ONLY].faults == 0


def page_of(log: SessionLog, unit: str) -> Slice:
    number = log.unit_id(unit)
    assert number is not None
    return log.slices[log.units[number].holders[0]]


def test_ratios_are_ratios_of_sums_and_shares_are_over_all_calls() -> None:
    reference = [figures("long", units=[100.0] * 9), figures("short", units=[50.0])]
    policy = [
        figures("long", units=[40.0] * 9, faults=2, word_faults=1, hard_faults=1, major_faults=2, needs=20, missing=4,
                missing_words=1, extra_calls=2, prompt_tokens=7000, output_tokens=70, read_tokens=3500,
                other_task_tokens=70, epochs=3, refetched_hot_pages=1),
        figures("short", units=[60.0], needs=5, prompt_tokens=1000, output_tokens=10),
    ]  # fmt: skip
    told = policy_figures(policy, reference)
    assert told["billed_vs_append_only"] == pytest.approx(950 / 420, abs=1e-4)
    assert told["mean_prompt_tokens"] == pytest.approx(8000 / 12, abs=1e-4), "fault calls count too"
    assert told["prompt_completion_ratio"] == 100.0
    assert told["faulting_call_share"] == 0.2
    assert told["faulting_call_share_words"] == told["hard_faulting_call_share"] == 0.1
    assert told["major_fault_share"] == 0.2
    assert told["evidence_coverage"] == pytest.approx(21 / 25)
    assert told["evidence_coverage_words"] == pytest.approx(24 / 25)
    assert (told["extra_calls"], told["refetched_hot_pages"], told["epochs"]) == (2, 1, 3)
    assert told["other_task_share"] == pytest.approx(70 / 8000, abs=1e-6)
    assert told["cache_read_share"] == pytest.approx(3500 / 8000)
    assert told["billed_units"] == 420
    assert told["uncached_tokens_a_call"] == 100.0


def test_a_share_of_other_tasks_is_null_where_nothing_is_sent_whole() -> None:
    listed = [figures("a", units=[1.0], prompt_tokens=100, other_task_tokens=None) for _ in range(2)]
    assert policy_figures(listed, listed)["other_task_share"] is None
    session = session_of(user("Go on."), answer("Yes."), user("And on."), answer("Yes again."))
    makers = policy_makers(["clairvoyant-seen", "mask-60k"], session, ANTHROPIC)
    found, _, _ = replay_session(ReplaySession(session), makers, ReplayOptions(ANTHROPIC, RESIDENT))
    told = {name: policy_figures([one], [found[APPEND_ONLY]]) for name, one in found.items()}
    assert {name: one["other_task_share"] for name, one in told.items()} == {
        APPEND_ONLY: 0.0,
        "clairvoyant-seen": None,
        "mask-60k": 0.0,
    }
    assert [one["refetched_hot_pages"] for one in told.values()] == [0, 0, 0]


def test_the_worst_session_is_the_lowest_ratio_and_the_highest_share() -> None:
    reference = [figures("a", units=[100.0] * 4), figures("b", units=[100.0] * 4)]
    policy = [figures("a", units=[50.0] * 4, faults=3), figures("b", units=[110.0] * 4, faults=1)]
    worst = policy_figures(policy, reference)["worst_session"]
    assert worst == {"billed_vs_append_only": pytest.approx(400 / 440, abs=1e-4), "faulting_call_share": 0.75}


def test_late_calls_are_compared_with_early_ones_in_sessions_that_are_long_enough() -> None:
    long = [10.0] * 4 + [20.0] * 3 + [1.0] * 188 + [40.0] * 10
    assert len(long) == 205
    listed = [figures("long", units=long), figures("short", units=[9999.0] * 204)]
    assert policy_figures(listed, listed)["call200_vs_call6"] == 2.0


def test_late_calls_are_null_without_a_long_session() -> None:
    listed = [figures("short", units=[1.0] * 204)]
    assert policy_figures(listed, listed)["call200_vs_call6"] is None


def test_nothing_replayed_gives_nulls_and_full_coverage() -> None:
    told = policy_figures([], [])
    assert told["billed_vs_append_only"] is told["mean_prompt_tokens"] is told["faulting_call_share"] is None
    assert told["worst_session"] == {"billed_vs_append_only": None, "faulting_call_share": None}
    assert told["evidence_coverage"] == told["evidence_coverage_words"] == 1.0
    assert SessionFigures("empty").faulting_call_share is None


def test_a_session_that_costs_nothing_has_no_ratio() -> None:
    free = [figures("free", units=[0.0, 0.0])]
    told = policy_figures(free, free)
    assert told["billed_vs_append_only"] is None
    assert told["worst_session"]["billed_vs_append_only"] is None


def test_the_first_token_is_estimated_from_uncached_tokens() -> None:
    listed = [SessionFigures("a", call_uncached=[5000] * 19), SessionFigures("b", call_uncached=[105_000])]
    assert first_token_seconds(listed, 5000) == {"mean": 2.0, "p95": 21.0}
    assert first_token_seconds(listed, 50_000) == {"mean": 0.2, "p95": 2.1}
    assert first_token_seconds([], 5000) == {"mean": None, "p95": None}
    assert listed[0].uncached_tokens == 95_000
