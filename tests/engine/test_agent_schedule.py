"""One session's requests, planned message by message."""

from __future__ import annotations

from collections import Counter

import pytest

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.engine.agent_schedule import AgentSchedule
from context_gatekeeper.engine.events import EventKind, PageEvent
from context_gatekeeper.engine.pager_params import PagerParams
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentMessage
from tests.engine.agents import SAMPLES, answered, call, gave, returned, said

EAGER = PagerParams(overdraft=10.0, fault_target=None, fault_price_factor=0.01, patience=0.1, tail_tokens=10)
"""Leaves out what it can as early as it can."""


def exchange(number: int) -> list[AgentMessage]:
    """The agent reads a file of its own that nothing refers to again."""
    lines = "\n".join(f"value_{number}_{line} = compute_the_value_of({number}, {line})" for line in range(60))
    return [
        answered(f"Reading file {number}.", call(f"c{number}", "Bash", command=f"cat module_{number}.py")),
        returned(gave(f"c{number}", lines, "Bash")),
    ]


def run(schedule: AgentSchedule, messages: list[AgentMessage], *, seconds: float | None = None) -> None:
    for place, message in enumerate(messages):
        if message.is_call:
            schedule.plan(now=None if seconds is None else place * seconds)
        schedule.add(message)


def schedule_of(calls: int, params: PagerParams = EAGER, **options: object) -> tuple[AgentSchedule, list[PageEvent]]:
    schedule = AgentSchedule(PRICES["anthropic-5m"], resident_tokens=2000, params=params, session="s")
    events: list[PageEvent] = []
    schedule.feed.subscribe(events.append)
    messages = [said("Look at every module."), *(message for number in range(calls) for message in exchange(number))]
    run(schedule, messages, **options)  # type: ignore[arg-type]
    return schedule, events


def oldest_slice(schedule: AgentSchedule) -> str:
    """Handle of the first slice of a block that left."""
    return next(left.handle for left in reversed(schedule.plan().departures) if "#L1-" in left.handle)


def test_a_short_session_is_left_alone() -> None:
    schedule, events = schedule_of(4, PagerParams())
    plan = schedule.plan()
    assert (plan.epoch, plan.departures, events) == (0, (), [])
    assert plan.window_tokens == sum(piece.tokens for piece in schedule.log.slices)


def test_old_output_leaves_the_window_and_the_feed_tells_it() -> None:
    schedule, events = schedule_of(30)
    plan = schedule.plan()
    assert plan.epoch >= 1
    assert plan.departures
    assert plan.window_tokens < sum(piece.tokens for piece in schedule.log.slices) / 2
    kinds = Counter(event.kind for event in events)
    assert kinds[EventKind.EPOCH] == kinds[EventKind.SWAPPED_OUT] == plan.epoch > 0
    assert all(event.session == "s" for event in events)
    assert 0 < plan.saved_units < schedule.pager.ledger.append_only


def test_a_handle_in_the_users_text_brings_its_page_back() -> None:
    schedule, events = schedule_of(30)
    left = oldest_slice(schedule)
    (fault,) = schedule.add(said(f"What stood in {left}?"))
    assert fault.handle == left
    assert [event.kind for event in events[-2:]] == [EventKind.FAULT, EventKind.SWAPPED_IN]
    assert left in {entry.handle for entry in schedule.plan().entries if entry.form == "recalled"}


def test_a_handle_that_there_is_not_is_told_and_changes_nothing() -> None:
    schedule, events = schedule_of(3)
    schedule.add(answered("I need page:aaaaaaaaaaaaaaaa for that."))
    (fault,) = [event for event in events if event.kind is EventKind.FAULT]
    assert "unresolved" in fault.reason
    plan = schedule.plan()
    assert not any(entry.form == "recalled" for entry in plan.entries)


def test_the_agents_own_words_bring_nothing_back_by_themselves() -> None:
    schedule, _ = schedule_of(30)
    assert schedule.add(answered("So value_0_3 = compute_the_value_of(0, 3) it is.")) == ()


def test_a_page_that_keeps_coming_back_is_pinned() -> None:
    schedule, events = schedule_of(30)
    left = oldest_slice(schedule)
    for number in range(30, 60):
        if number % 3 == 0:
            schedule.add(said(f"Show {left} again."))
        run(schedule, exchange(number))
    assert {event.kind for event in events} >= {EventKind.REFETCHED, EventKind.PINNED}


def test_a_long_pause_makes_the_cache_cold_and_the_rewrite_free() -> None:
    schedule, events = schedule_of(12, seconds=400.0)
    reasons = {event.reason for event in events if event.kind is EventKind.EPOCH}
    assert reasons == {"cold"}
    assert schedule.pager.ledger.append_only > 0


def test_references_to_what_stands_in_the_window_are_hits() -> None:
    schedule, events = schedule_of(3)
    schedule.plan()
    schedule.add(said("What does module_2.py compute?"))
    schedule.plan()
    assert EventKind.HIT in {event.kind for event in events}


def test_the_same_messages_give_the_same_plans() -> None:
    first, second = schedule_of(20)[0].plan().to_dict(), schedule_of(20)[0].plan().to_dict()
    assert first == second


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.jsonl")), ids=lambda path: path.name)
def test_every_format_can_be_scheduled(path: object) -> None:
    for session in read_sessions(path):  # type: ignore[arg-type]
        schedule = AgentSchedule(PRICES["openai"], params=EAGER)
        run(schedule, list(session.messages))
        plan = schedule.plan()
        assert plan.prompt_tokens == sum(entry.tokens for entry in plan.entries)


def test_a_page_that_is_fetched_gives_its_text_and_stands_at_the_tail() -> None:
    schedule, events = schedule_of(12)
    piece = oldest_slice(schedule)
    handle = piece.split("#")[0]
    text = schedule.fetch(handle)
    assert text
    assert [event.pages for event in events if event.kind is EventKind.SWAPPED_IN]
    assert schedule.fetch(handle) == text, "where it stands already it only gives its text"
    assert schedule.fetch("p9999") is None
