"""Goals, pins, knowledge and the running task's card in the requests of one session."""

from __future__ import annotations

from itertools import pairwise

import pytest

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.engine.agent_schedule import AgentSchedule
from context_gatekeeper.engine.events import EventKind, PageEvent
from context_gatekeeper.engine.goals import Goal, Pin
from context_gatekeeper.engine.pager_params import PagerParams
from context_gatekeeper.engine.plan import ContextPlan, PlannedEntry
from context_gatekeeper.engine.resident import KnowledgeEntry, ResidentParams
from context_gatekeeper.engine.window import EntryForm
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.types import AgentMessage, PageKind, Provenance
from tests.engine.agents import answered, call, gave, returned, said

FENCE = "0123456789abcdef"
EAGER = PagerParams(overdraft=10.0, fault_target=None, fault_price_factor=0.01, patience=0.1, tail_tokens=10)
"""Leaves out what it can as early as it can."""
GOAL = Goal("g1", "Every module of the warehouse computes its values.", "page:aaaaaaaaaaaaaaaa", 12)
PIN = Pin("s p0", "keep me in sight", 4, "s", PageKind.TURN, Provenance.USER)


def exchange(number: int, folder: str = "warehouse") -> list[AgentMessage]:
    lines = "\n".join(f"value_{number}_{line} = compute_the_value_of({number}, {line})" for line in range(60))
    path = f"{folder}/module_{number}.py"
    return [
        answered(f"Reading file {number}.", call(f"c{number}", "Read", file_path=path)),
        returned(gave(f"c{number}", lines, "Read")),
    ]


def new_schedule(params: PagerParams = EAGER) -> tuple[AgentSchedule, list[PageEvent]]:
    schedule = AgentSchedule(PRICES["anthropic-5m"], resident_tokens=2000, params=params, session="s")
    events: list[PageEvent] = []
    schedule.feed.subscribe(events.append)
    return schedule, events


def run(schedule: AgentSchedule, messages: list[AgentMessage]) -> list[ContextPlan]:
    plans = []
    for message in messages:
        if message.is_call:
            plans.append(schedule.plan())
        schedule.add(message)
    return [*plans, schedule.plan()]


def long_talk(calls: int = 30) -> list[AgentMessage]:
    opening = said("Look at every module of the warehouse. You must never delete a module.")
    return [opening, *(message for number in range(calls) for message in exchange(number))]


def residents(schedule: AgentSchedule) -> list[str]:
    return [entry.text for entry in schedule.pager.window.entries if entry.form is EntryForm.RESIDENT]


def shown(plan: ContextPlan) -> list[PlannedEntry]:
    return [entry for entry in plan.entries if entry.form == "resident"]


# -- goals, pins, knowledge ---------------------------------------------------------------------


def test_without_goals_pins_and_cards_nothing_changes() -> None:
    plain, _ = new_schedule()
    told, _ = new_schedule()
    told.set_resident(fence=FENCE, cards=False)
    assert run(plain, long_talk()) == run(told, long_talk())


def test_goals_and_pins_stand_in_front_of_every_request_however_long_the_session() -> None:
    schedule, _ = new_schedule()
    schedule.set_resident(fence=FENCE, goals=[GOAL], pins=[PIN], cards=False)
    plans = run(schedule, long_talk())
    assert plans[-1].epoch > 0
    first = schedule.pager.window.entries[0]
    assert first.form is EntryForm.RESIDENT
    assert GOAL.text in first.text
    assert PIN.text in first.text
    assert GOAL.handle in first.text
    assert all(plan.entries[0].form == "resident" for plan in plans)
    assert {tuple(entry.tokens for entry in shown(plan)) for plan in plans} == {(first.tokens,)}


def test_a_goal_that_is_done_is_not_sent() -> None:
    schedule, _ = new_schedule()
    schedule.set_resident(fence=FENCE, goals=[Goal("g1", "Done already.", "page:a", 3, is_done=True)], cards=False)
    run(schedule, long_talk(2))
    assert residents(schedule) == []


def test_a_goal_that_is_set_later_goes_to_the_tail_and_what_was_sent_stays_as_it_is() -> None:
    schedule, _ = new_schedule(PagerParams())
    run(schedule, long_talk(2))
    before = [entry.number for entry in schedule.pager.window.entries]
    schedule.set_resident(fence=FENCE, goals=[GOAL])
    after = [entry.number for entry in schedule.pager.window.entries]
    assert after[: len(before)] == before
    assert GOAL.text in schedule.pager.window.entries[-1].text


def test_what_is_pinned_is_no_loss_against_sending_everything() -> None:
    plain, _ = new_schedule(PagerParams())
    pinned, _ = new_schedule(PagerParams())
    pinned.set_resident(fence=FENCE, goals=[GOAL], pins=[PIN], cards=False)
    pinned.set_resident(fence=FENCE, goals=[GOAL], pins=[PIN], cards=False)
    run(plain, long_talk(3))
    run(pinned, long_talk(3))
    assert pinned.pager.ledger.append_only > plain.pager.ledger.append_only
    assert pinned.pager.ledger.saved == pytest.approx(plain.pager.ledger.saved)


def test_the_best_knowledge_stands_in_the_request_within_its_quota() -> None:
    schedule, _ = new_schedule()
    entries = [KnowledgeEntry(f"rule {number} of the house", f"page:{number}", float(number)) for number in range(40)]
    schedule.set_resident(fence=FENCE, knowledge=entries)
    (text,) = residents(schedule)
    assert sum(entry.text in text.split("\n") for entry in entries) == 20
    assert "rule 39 of the house" in text
    assert "rule 19 of the house" not in text


def test_a_fence_that_is_none_is_refused() -> None:
    schedule, _ = new_schedule()
    with pytest.raises(ConfigError, match="draw a new one"):
        schedule.set_resident(fence="x", goals=[GOAL])


# -- goals that are taken up again --------------------------------------------------------------


def test_a_goal_that_is_taken_up_again_brings_its_pages_back() -> None:
    schedule, events = new_schedule()
    goal = Goal("g1", "The warehouse computes pallet_weight_limits for trucks.", "page:a", 9)
    schedule.set_resident(fence=FENCE, goals=[goal], cards=False)
    run(schedule, [said("Please begin with goal g1."), *exchange(1)])
    told = "pallet_weight_limits of the warehouse: trucks carry twelve tons, and 40 pallets fill one of them whole."
    lines = "\n".join(f"{told} Row {number} of the table." for number in range(40))
    run(schedule, [answered(call("w", "Read", file_path="warehouse/limits.txt")), returned(gave("w", lines, "Read"))])
    other = said("换个任务：给猫咪诊所写一份疫苗提醒邮件的模板。")
    run(schedule, [other, *(message for number in range(40, 70) for message in exchange(number, "clinic"))])
    assert not any("twelve tons" in entry.text for entry in schedule.pager.window.entries)
    events.clear()
    found = schedule.add(said("Now goal g1 again."))
    assert {fault.trigger.value for fault in found} == {"goal"}
    assert {event.kind for event in events} >= {EventKind.FAULT, EventKind.SWAPPED_IN}
    assert schedule.log.tasks.running_task == schedule.log.tasks.task_of(0)


# -- constraints and card -----------------------------------------------------------------------


def test_nothing_is_added_before_something_left() -> None:
    schedule, _ = new_schedule(PagerParams())
    schedule.set_resident(fence=FENCE)
    plans = run(schedule, long_talk(4))
    assert plans[-1].epoch == 0
    assert residents(schedule) == []


def test_after_a_rewrite_the_request_holds_constraints_and_card_of_the_running_task() -> None:
    schedule, _ = new_schedule()
    schedule.set_resident(fence=FENCE, goals=[GOAL])
    plans = run(schedule, long_talk())
    newest = residents(schedule)[-1]
    assert "constraints:\n- You must never delete a module. [p0]" in newest
    assert f"- {GOAL.text} [g1]" in newest
    assert "memory card of" in newest
    told = shown(plans[-1])
    assert told[-1].reason == "the running task's constraints and card"
    assert told[-1].handle.startswith("p0-p")


def test_a_card_is_read_anew_at_a_rewrite_only_and_never_in_front_of_what_was_sent() -> None:
    schedule, _ = new_schedule()
    schedule.set_resident(fence=FENCE)
    seen: list[tuple[int, list[int]]] = []
    for message in long_talk():
        if message.is_call:
            before = [entry.number for entry in schedule.pager.window.entries]
            plan = schedule.plan()
            numbers = [entry.number for entry in schedule.pager.window.entries]
            if not plan.rewrite:
                assert numbers[: len(before)] == before
            cards = [entry.number for entry in schedule.pager.window.entries if entry.form is EntryForm.RESIDENT]
            seen.append((plan.epoch, cards))
        schedule.add(message)
    laid = {number for _, cards in seen for number in cards}
    assert 0 < len(laid) <= seen[-1][0]
    for (epoch, cards), (next_epoch, next_cards) in pairwise(seen):
        assert next_epoch > epoch or next_cards == cards


def test_everything_that_we_add_stays_within_the_bound_whatever_changes_and_however_long() -> None:
    schedule, _ = new_schedule()
    params = ResidentParams(most_tokens=1500)
    schedule.set_resident(fence=FENCE, goals=[GOAL], params=params)
    for number in range(60):
        folder = ("warehouse", "clinic")[number // 3 % 2]
        words = ("Back to the warehouse modules", "换个任务：猫咪诊所的模块 clinic")[number // 3 % 2]
        if number % 3 == 0:
            schedule.add(said(f"{words}: see module_{number}.py. You must never rename column {number}."))
        run(schedule, exchange(number, folder))
        assert sum(estimate_tokens(text) for text in residents(schedule)) <= params.most_tokens
    assert len(residents(schedule)) > 1


def test_where_there_is_no_room_for_a_card_none_is_laid() -> None:
    schedule, _ = new_schedule()
    schedule.set_resident(fence=FENCE, goals=[GOAL], params=ResidentParams(most_tokens=200))
    run(schedule, long_talk())
    (text,) = residents(schedule)
    assert GOAL.text in text


@pytest.mark.parametrize("room", range(6000, 9000, 200))
def test_a_card_makes_no_request_too_large_for_the_model(room: int) -> None:
    prices = PRICES["anthropic-5m"]
    schedule = AgentSchedule(prices, resident_tokens=2000, params=EAGER, session="s", window_tokens=room)
    schedule.set_resident(fence=FENCE)
    talk = [*long_talk(9), said("Switch to another task: write the bakery report."), *exchange(40, "bakery")]
    assert all(plan.prompt_tokens <= room for plan in run(schedule, talk * 2))


def test_when_the_task_changes_the_card_of_the_other_one_comes_behind_it() -> None:
    schedule, _ = new_schedule()
    schedule.set_resident(fence=FENCE)
    run(schedule, long_talk(29))
    (first,) = residents(schedule)
    (plan,) = run(schedule, [said("换个任务：给猫咪诊所写一份疫苗提醒邮件的模板。")])
    assert plan.rewrite == ""
    older, newest = residents(schedule)
    assert older == first
    assert [entry.reason for entry in shown(plan)] == [
        "an older card: leaves with the next rewrite from here on",
        "the running task's constraints and card",
    ]
    assert "疫苗提醒邮件" in newest
    assert "You must never delete a module." in newest, "a constraint holds in every task"


def test_a_card_is_written_to_the_cache_once_and_read_from_it_until_it_leaves() -> None:
    schedule, _ = new_schedule()
    schedule.set_resident(fence=FENCE)
    before: list[int] = []
    shared = 0
    for message in long_talk():
        if message.is_call:
            plan = schedule.plan()
            entries = schedule.pager.window.entries
            same = [entry for entry, number in zip(entries, before, strict=False) if entry.number == number]
            kept = sum(entry.tokens for entry in entries[: len(same)])
            assert plan.written_tokens == plan.window_tokens - kept
            shared += any(entry.form is EntryForm.RESIDENT for entry in entries[: len(same)])
            before = [entry.number for entry in entries]
        schedule.add(message)
    assert shared > 5


def test_what_stands_in_a_card_can_be_read_in_the_window() -> None:
    schedule, _ = new_schedule()
    schedule.set_resident(fence=FENCE)
    run(schedule, long_talk())
    entry = [one for one in schedule.pager.window.entries if one.form is EntryForm.RESIDENT][-1]
    assert entry.units
    assert all(schedule.pager.window.holds(unit) for unit in entry.units)


def test_a_session_that_says_nothing_has_no_card() -> None:
    schedule, _ = new_schedule()
    schedule.set_resident(fence=FENCE)
    lines = "\n".join(f"value {line} of a table that nobody needs again" for line in range(90))
    for number in range(30):
        call_id = f"c{number}"
        run(
            schedule,
            [answered(call(call_id, "Look", what="it")), returned(gave(call_id, f"{number}\n{lines}", "Look"))],
        )
    assert schedule.plan().epoch > 0
    assert residents(schedule) == []
