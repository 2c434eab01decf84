"""The schedule of a session that is under way: the provider's bill is heard, and rewrites are decided between calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.engine.agent_schedule import AgentSchedule
from context_gatekeeper.engine.pager_params import OURS
from context_gatekeeper.engine.window import EntryForm
from context_gatekeeper.types import AgentMessage, BlockKind, ContentBlock, MessageRole, Usage

EAGER = replace(OURS, overdraft=1.0, patience=0.0, fault_price_factor=0.01, fault_target=None, reserve_faults=0.0)


def call(number: int, *, name: str = "Read", arguments: str = "") -> AgentMessage:
    block = ContentBlock(BlockKind.TOOL_CALL, arguments or f'{{"path": "src/file_{number}.py"}}', f"c{number}", name)
    return AgentMessage(MessageRole.ASSISTANT, (block,), is_call=True)


def result(number: int, *, name: str = "Read") -> AgentMessage:
    lines = [f"line_{number}_{line} = compute_value({number * 1000 + line})" for line in range(80)]
    return AgentMessage(MessageRole.TOOL, (ContentBlock(BlockKind.TOOL_RESULT, "\n".join(lines), f"c{number}", name),))


def session(calls: int, **options: object) -> AgentSchedule:
    schedule = AgentSchedule(PRICES["anthropic-5m"], resident_tokens=2000, params=replace(EAGER, **options))  # type: ignore[arg-type]
    schedule.add(AgentMessage(MessageRole.USER, (ContentBlock(BlockKind.TEXT, "Mend the files."),)))
    for number in range(calls):
        schedule.plan(postpones=True, explains=False)
        schedule.add(call(number))
        schedule.add(result(number))
    return schedule


def test_a_bill_without_a_request_and_one_of_nothing_are_passed_over() -> None:
    schedule = AgentSchedule(PRICES["anthropic-5m"])
    schedule.heard(Usage(plain_tokens=1000))
    assert schedule.pager.ledger.saved == 0
    schedule.add(AgentMessage(MessageRole.USER, (ContentBlock(BlockKind.TEXT, "Go."),)))
    schedule.plan()
    schedule.heard(Usage())
    assert schedule.pager.ledger.saved == 0


def test_a_bill_dearer_than_expected_is_a_loss_and_counts_once() -> None:
    schedule = session(9)
    schedule.plan(is_cold=True)
    assert schedule.pager.rewrites
    schedule.add(call(9))
    schedule.add(result(9))
    plan = schedule.plan()
    before = schedule.pager.ledger.saved
    for _ in range(2):
        schedule.heard(Usage(plain_tokens=0, written_tokens=plan.prompt_tokens))
    assert schedule.pager.ledger.saved < before
    assert schedule.pager.ledger.saved > before - 2 * plan.prompt_tokens


def test_while_nothing_is_rewritten_a_bill_is_what_it_would_have_been_without_us() -> None:
    schedule = session(3)
    plan = schedule.plan()
    before = schedule.pager.ledger.saved
    schedule.heard(Usage(plain_tokens=0, written_tokens=2 * plan.prompt_tokens))
    assert not schedule.pager.rewrites
    assert schedule.pager.ledger.saved == before


def test_a_provider_that_names_no_writes_bills_them_as_plain_tokens() -> None:
    with_writes, without = session(3), session(3)
    for schedule, usage in (
        (with_writes, Usage(read_tokens=100, written_tokens=500)),
        (without, Usage(read_tokens=100, plain_tokens=500)),
    ):
        schedule.plan()
        schedule.heard(usage)
    assert with_writes.pager.ledger.saved == without.pager.ledger.saved


def test_what_can_wait_is_decided_between_two_calls() -> None:
    schedule = session(12)
    assert schedule.pager.rewrites == []
    for _ in range(2):
        schedule.look_ahead()
        schedule.plan(explains=False)
        schedule.add(call(90 + schedule.log.calls))
    assert len(schedule.pager.rewrites) == 1
    assert schedule.pager.rewrites[0].call in (13, 14)


def test_a_change_inside_a_block_costs_the_block_where_the_cache_holds_whole_ones() -> None:
    fine, whole = session(12), session(12, whole_blocks=True)
    for schedule in (fine, whole):
        for _ in range(4):
            schedule.look_ahead()
            schedule.plan()
            schedule.add(call(90 + schedule.log.calls))
    assert fine.pager.rewrites
    assert whole.pager.rewrites


def test_pages_that_a_tool_gives_are_counted_and_not_brought_again() -> None:
    schedule = session(12)
    for _ in range(2):
        schedule.look_ahead()
        schedule.plan()
        schedule.add(call(90 + schedule.log.calls))
    assert schedule.pager.rewrites
    faults = schedule.add(call(200, name="cgk_expand", arguments='{"handle": "p2"}'), is_served=True)
    before = schedule.pager.window.tokens
    assert [fault.handle for fault in faults] == ["p2"]
    plan = schedule.plan()
    assert plan.faults_since_rewrite == len(faults[0].pieces) > 0
    assert schedule.pager.window.tokens <= before
    assert not any(entry.form == "recalled" for entry in plan.entries)


def test_a_cache_that_is_known_to_be_cold_is_no_matter_of_time() -> None:
    schedule = session(12)
    plan = schedule.plan(is_cold=True, explains=False)
    assert plan.rewrite == "cold"
    assert plan.entries == ()


def test_a_look_ahead_in_steps_decides_as_one_at_once_and_nothing_before_its_last() -> None:
    stepped, at_once = session(12), session(12)
    for schedule in (stepped, at_once):
        schedule.set_resident(fence="a1b2c3d4")
        schedule.plan(postpones=True)
        schedule.add(call(12))
    before = window(stepped)
    steps = 0
    for _ in stepped.look_ahead_steps():
        steps += 1
        assert window(stepped) == before
    at_once.look_ahead()
    assert steps > 12
    assert window(stepped) == window(at_once) != before
    assert stepped.pager.rewrites == at_once.pager.rewrites != []
    plan = stepped.plan(explains=False)
    assert (plan.entries, stepped.pager.window.entries[-1].form) == ((), EntryForm.RESIDENT)


Act = Callable[[AgentSchedule], object]


@pytest.mark.parametrize(
    "overtake",
    [
        lambda schedule: schedule.plan(postpones=True),
        lambda schedule: schedule.add(result(12)),
        lambda schedule: schedule.set_resident(fence="a1b2c3d4"),
    ],
    ids=["plan", "message", "resident"],
)
def test_a_look_ahead_that_something_overtakes_is_given_up_and_costs_nothing(overtake: Act) -> None:
    overtaken, undisturbed = session(12), session(12)
    for schedule in (overtaken, undisturbed):
        schedule.add(call(12))
    steps = overtaken.look_ahead_steps()
    for _ in range(30):
        next(steps)
    for schedule in (overtaken, undisturbed):
        overtake(schedule)
    assert list(steps) == []
    for schedule in (overtaken, undisturbed):
        schedule.plan()
    assert window(overtaken) == window(undisturbed)
    assert overtaken.pager.rewrites == undisturbed.pager.rewrites


def test_a_change_inside_the_first_block_of_all_counts_the_block_from_its_beginning() -> None:
    schedule = AgentSchedule(PRICES["anthropic-5m"], resident_tokens=2000, params=replace(EAGER, whole_blocks=True))
    schedule.add(result(0))
    for number in range(1, 8):
        schedule.plan()
        schedule.add(call(number))
        schedule.add(result(number))
    schedule.plan()
    assert len(schedule.log.segments[0].slices) > 1
    assert schedule.pager.rewrites[0].swapped_out[0] == 0


def window(schedule: AgentSchedule) -> list[tuple[str, int, tuple[int, ...], str]]:
    return [(entry.form.value, entry.tokens, entry.pieces, entry.text) for entry in schedule.pager.window.entries]


def test_a_page_that_is_named_while_it_stands_here_does_not_leave_with_that_very_request() -> None:
    """A rewrite that is due then leaves it, so that the agent sees what it asked for."""
    for is_named in (False, True):
        schedule = session(6)
        log, held = schedule.log, schedule.pager.window.holds_piece
        result_of = next(one for one in log.segments[10:] if one.block.kind is BlockKind.TOOL_RESULT)
        assert all(held(piece) for piece in result_of.slices)
        words = f"I look at p{result_of.number} again." if is_named else "I look again."
        schedule.add(AgentMessage(MessageRole.ASSISTANT, (ContentBlock(BlockKind.TEXT, words),), is_call=True))
        for number in range(6, 12):
            schedule.add(call(number))
            schedule.add(result(number))
        schedule.plan(is_cold=True)
        assert all(held(piece) for piece in result_of.slices) == is_named
        assert schedule.pager.rewrites
