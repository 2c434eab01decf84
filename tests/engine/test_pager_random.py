"""What holds for the window of any session, whatever it reads, quotes and misses."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.engine.pager import Pager
from context_gatekeeper.engine.pager_params import OURS, PagerParams
from context_gatekeeper.engine.session_log import SessionLog, SliceKind
from context_gatekeeper.engine.window import Entry, EntryForm
from context_gatekeeper.replay.policies import Ours
from context_gatekeeper.replay.run import ReplayOptions, ReplaySession, replay_session
from context_gatekeeper.types import AgentMessage
from tests.engine.agents import answered, said, session
from tests.engine.coding import coding_session, module_text, read_module
from tests.engine.random_sessions import STEPS, session_messages

EAGER = PagerParams(overdraft=10.0, fault_price_factor=0.05, patience=0.1, tail_tokens=300, patience_share=100.0)
"""Leaves out what it can as early as it can."""
FACTORS = st.sampled_from([0.02, 0.3, 2.0])


@dataclass
class Course:
    """A session under a pager whose faults are served as they come up."""

    log: SessionLog
    pager: Pager
    sent: list[list[Entry]] = field(default_factory=list)
    """Entries of each call's request."""
    factors: list[tuple[float, bool]] = field(default_factory=list)
    """The price of a fault at each call, and whether the call before it faulted."""


def course(messages: list[AgentMessage], params: PagerParams, prices: str = "anthropic-5m") -> Course:
    log = SessionLog()
    pager = Pager(log, PRICES[prices], resident_tokens=4000, params=params)
    pager.ledger.append_only = 1e7
    told = Course(log, pager)
    faulted = False
    for message in messages:
        if message.is_call:
            pager.prepare(is_cold=False)
            told.sent.append(list(pager.window.entries))
            told.factors.append((pager.fault_price_factor, faulted))
            missing = [unit for unit in log.quoted_units(message) if not pager.window.holds(unit)]
            faulted = bool(missing)
            if missing:
                pager.fault(sorted({log.units[unit].holders[-1] for unit in missing}))
        pager.add(log.add_message(message))
    return told


@settings(max_examples=40, deadline=None)
@given(STEPS, FACTORS)
def test_what_was_sent_is_the_beginning_of_what_is_sent_next_but_for_rewrites(
    steps: list[tuple[str, int, int]], factor: float
) -> None:
    told = course(session_messages(steps), replace(EAGER, fault_price_factor=factor, fault_target=None))
    rewritten = {rewrite.call: rewrite for rewrite in told.pager.rewrites}
    assert len(rewritten) == len(told.pager.rewrites)
    for number, (before, after) in enumerate(itertools.pairwise(told.sent), 1):
        if number in rewritten:
            event("a rewrite")
            assert rewritten[number].swapped_out
            assert rewritten[number].reason == "rent"
        else:
            assert len(after) >= len(before)
            assert all(new is old for old, new in zip(before, after, strict=False))


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_what_left_is_named_in_the_window_and_short_texts_of_a_person_never_leave(
    steps: list[tuple[str, int, int]],
) -> None:
    messages = [*session_messages(steps), said("Finish."), answered("Done."), answered("Done indeed.")]
    told = course(messages, replace(EAGER, fault_target=None))
    log, window = told.log, told.pager.window
    named = {piece for entry in window.entries for piece in entry.pieces}
    for piece in log.slices:
        kind = log.segments[piece.segment].kind
        assert piece.number in named or kind is SliceKind.THINKING
        if kind is SliceKind.USER and piece.tokens <= EAGER.short_user_tokens:
            assert window.holds_piece(piece.number)
            assert piece.number not in told.pager.swapped_out_at
    assert window.tokens == sum(entry.tokens for entry in window.entries)


@settings(max_examples=25, deadline=None)
@given(STEPS, st.integers(1, 3000))
def test_the_newest_part_is_never_touched(steps: list[tuple[str, int, int]], tail_tokens: int) -> None:
    log = SessionLog()
    pager = Pager(log, PRICES["none"], resident_tokens=0, params=replace(EAGER, tail_tokens=tail_tokens))
    pager.ledger.append_only = 1e7
    for message in session_messages(steps):
        if message.is_call:
            tail: list[Entry] = []
            for entry in reversed(pager.window.entries):
                if sum(one.tokens for one in tail) >= tail_tokens:
                    break
                tail.insert(0, entry)
            kept = [entry for entry in tail if entry.form is not EntryForm.DIGEST]
            pager.prepare(is_cold=False)
            assert [entry for entry in pager.window.entries if entry in kept] == kept
        pager.add(log.add_message(message))


@settings(max_examples=30, deadline=None)
@given(STEPS, st.sampled_from([0.02, 0.3]))
def test_the_price_of_a_fault_rises_with_faults_falls_without_and_stays_within_bounds(
    steps: list[tuple[str, int, int]], target: float
) -> None:
    params = replace(EAGER, fault_target=target, steering=0.5, factor_bounds=(0.04, 0.09))
    told = course(session_messages(steps), params)
    low, high = params.factor_bounds
    first = min((rewrite.call for rewrite in told.pager.rewrites), default=len(told.factors))
    for call, ((before, _), (after, faulted)) in enumerate(itertools.pairwise(told.factors), 1):
        assert low <= after <= high or after == before == params.fault_price_factor
        if faulted:
            event("a fault")
            assert after > before or after == high
        elif call > first:
            event("no fault")
            assert after < before or after == low
        else:
            assert after == before


@settings(max_examples=10, deadline=None)
@given(STEPS)
def test_reads_that_cost_nothing_are_never_saved(steps: list[tuple[str, int, int]]) -> None:
    told = course(session_messages(steps), EAGER, "local")
    assert told.pager.rewrites == []
    assert all(entry.form is not EntryForm.DIGEST for entry in told.pager.window.entries)


def ratio(messages: list[AgentMessage], prices: str) -> float:
    """How many times cheaper than sending everything."""
    profile = PRICES[prices]
    figures, _, _ = replay_session(
        ReplaySession(session(*messages)),
        {"ours": lambda log, tokens: Ours(log, profile, tokens, OURS)},
        ReplayOptions(profile, 8000),
    )
    assert figures["ours"].prefix_breaks == 0
    return figures["append-only"].bill.units / figures["ours"].bill.units


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(PRICES)), STEPS)
def test_no_session_ends_dearer_than_sending_everything(prices: str, steps: list[tuple[str, int, int]]) -> None:
    assert ratio([*session_messages(steps), answered("Done.")], prices) >= 0.99


@pytest.mark.parametrize("prices", sorted(PRICES))
@pytest.mark.parametrize("reads", [5, 19, 60])
def test_a_session_that_only_reads_ends_no_dearer_wherever_it_ends(prices: str, reads: int) -> None:
    messages = [said("Go."), *[message for number in range(reads) for message in read_module(number, lines=60)]]
    assert ratio(messages, prices) >= 0.99


@pytest.mark.parametrize("prices", sorted(set(PRICES) - {"local"}))
@pytest.mark.parametrize("calls", [30, 60, 120])
def test_a_burst_of_faults_behind_a_rewrite_costs_a_bounded_part(prices: str, calls: int) -> None:
    """All that left is needed at once: what no ledger can know. It is paid once, and little more leaves meanwhile."""
    messages = list(coding_session(calls).messages)
    messages += [answered("\n".join(module_text(number, 40) for number in range(at, at + 3))) for at in range(0, 24, 3)]
    assert ratio(messages, prices) > 0.8


PLAN = """
from tests.engine.coding import coding_session
from tests.engine.test_pager_random import EAGER, course
told = course(list(coding_session(24).messages), EAGER)
print(told.pager.plan().to_dict())
for entry in told.pager.window.entries:
    print(entry.text)
"""


def test_the_same_session_gives_the_same_plan_in_every_process() -> None:
    """Sets of texts have another order in each process; nothing may rest on it."""
    told = {
        subprocess.run(
            [sys.executable, "-c", PLAN],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    (plan,) = told
    assert "[out: " in plan
