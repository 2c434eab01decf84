"""Which entries are worth their rent, which may not leave, and which leave first when more must go."""

from __future__ import annotations

from dataclasses import replace

from context_gatekeeper.core.economics import PRICES, fault_price
from context_gatekeeper.core.heat import FaultHistory
from context_gatekeeper.engine.citation import CitationModel
from context_gatekeeper.engine.keep_rule import KeepRule
from context_gatekeeper.engine.pager_params import OURS, PagerParams
from context_gatekeeper.engine.session_log import SessionLog, SliceKind
from context_gatekeeper.engine.window import Entry, EntryForm, Window
from context_gatekeeper.types import AgentMessage, MessageRole
from tests.engine.agents import answered, call, gave, returned, said, system, thinking
from tests.engine.coding import edit_module, module_text, read_module

PRICE = PRICES["anthropic-5m"]
TIGHT = replace(OURS, tail_tokens=1, kept_exchanges=1)


class Desk:
    """A session of which everything is in the window, and its rule."""

    def __init__(self, messages: list[AgentMessage], params: PagerParams = TIGHT) -> None:
        self.log = SessionLog()
        self.window = Window(self.log)
        self.faults: FaultHistory[int] = FaultHistory()
        self.rule = KeepRule(self.log, self.window, CitationModel(self.log), PRICE, params, self.faults)
        for message in messages:
            for piece in self.log.add_message(message):
                self.window.append(self.window.make(EntryForm.RAW, piece.tokens, [piece.number]))

    def idle(self, factor: float = 0.0) -> set[int]:
        """Slices that may leave; with a factor of 0 no page fault is worth anything."""
        return self.slices(self.numbers(factor))

    def numbers(self, factor: float) -> set[int]:
        """Entries that may leave; it is noted."""
        found = self.rule.look(self.window.tokens, factor)
        self.rule.note(found)
        return found.entries

    def forced(self, tokens: int) -> set[int]:
        return self.slices(self.rule.forced(set(), tokens))

    def slices(self, numbers: set[int]) -> set[int]:
        return {entry.pieces[0] for entry in self.window.entries if entry.number in numbers}

    def blocks(self, pieces: set[int]) -> set[int]:
        return {self.log.slices[piece].segment for piece in pieces}

    def entry(self, piece: int) -> Entry:
        return next(entry for entry in self.window.entries if piece in entry.pieces)


def modules(*numbers: int, lines: int = 10) -> list[AgentMessage]:
    return [message for number in numbers for message in read_module(number, lines=lines)]


def test_system_texts_and_short_texts_of_a_person_are_fixed_and_long_ones_are_not() -> None:
    desk = Desk([system("Rules. " * 300), said("Go."), said("Long. " * 300), *modules(1, 2), answered("Done.")])
    idle = desk.blocks(desk.idle())
    assert {0, 1}.isdisjoint(idle)
    assert 2 in idle
    verdict = desk.rule.judge(desk.entry(0), 1.0, 0.0)
    assert (verdict.stays, verdict.is_fixed, verdict.reason) == (True, True, "the client's system text")


def test_the_last_calls_stay_whole_however_large() -> None:
    desk = Desk([said("Go."), *modules(1, 2, 3, 4, lines=200)], replace(TIGHT, kept_exchanges=2))
    newest = {segment.number for segment in desk.log.segments if segment.block.call_id in ("r3.0", "r4.0")}
    assert newest.isdisjoint(desk.blocks(desk.idle()))
    assert desk.window.entries[desk.rule.tail_start()].pieces[0] == desk.log.segments[min(newest) - 1].slices[0]


def test_what_the_newest_part_may_hold_is_counted_in_tokens_too() -> None:
    desk = Desk([said("Go."), *modules(1, 2, 3)], replace(TIGHT, kept_exchanges=0, tail_tokens=10**6))
    assert desk.rule.tail_start() == 0


def test_a_page_that_came_back_behind_the_newest_text_does_not_take_its_place() -> None:
    desk = Desk([said("Go."), *modules(1, 2, 3), said("Long. " * 300)], replace(TIGHT, tail_tokens=0))
    newest = len(desk.log.slices) - 1
    for form in (EntryForm.RECALLED, EntryForm.RESIDENT):
        desk.window.append(desk.window.make(form, 500, [1] if form is EntryForm.RECALLED else []))
    assert newest not in {desk.window.entries[place].pieces[0] for place in range(desk.rule.tail_start())}
    assert newest not in desk.idle()


def test_what_is_fixed_does_not_leave_for_the_sake_of_another_task() -> None:
    talk = [
        said("Fix the order export of the bookshop in export.py please, it drops the last invoice row."),
        *modules(1, 2),
        answered("The loop stops one row early."),
        system("A notice of the client's. " * 40),
        said("换个任务：给猫咪诊所写一份疫苗提醒邮件的模板。"),
        *modules(3, 4),
        answered("写好了。"),
    ]
    desk = Desk(talk, replace(TIGHT, other_task_share=0.0))
    fixed = {segment.number for segment in desk.log.segments if segment.role is MessageRole.SYSTEM}
    assert fixed
    assert (fixed | {0}).isdisjoint(desk.blocks(desk.idle(factor=8.0)))


def test_thinking_leaves_with_its_message_and_never_alone() -> None:
    messages = [said("Go.")]
    for number in range(4):
        messages += [
            answered(
                thinking(hidden_chars=900), f"Step {number}.", call(f"c{number}", "Read", file_path=f"m{number}.py")
            ),
            returned(gave(f"c{number}", module_text(number, 8), "Read")),
        ]
    desk = Desk(messages)
    for factor in (0.0, 0.5, 2.0, 100.0):
        idle = desk.idle(factor)
        left = desk.blocks(idle)
        for segment in desk.log.segments:
            if segment.kind is SliceKind.THINKING and segment.number in left:
                mates = {one.number for one in desk.log.segments if one.message == segment.message}
                assert mates <= left
    assert any(desk.log.segments[number].kind is SliceKind.THINKING for number in desk.blocks(desk.idle(0.0)))


def test_a_short_call_stays_with_its_result_and_its_thinking_with_both() -> None:
    messages = [said("Go."), answered(thinking(hidden_chars=900), call("c", "Read", file_path="m.py"))]
    messages += [returned(gave("c", module_text(1, 8), "Read")), *modules(7, 8)]
    desk = Desk(messages)
    result = desk.log.segments[3]
    for turn in range(3):
        desk.faults.faulted(result.slices[0], desk.log.calls - 2 + turn)
    left = desk.blocks(desk.idle())
    assert {1, 2, 3}.isdisjoint(left)


def test_what_was_quoted_lately_is_more_likely_to_stay_than_what_never_was() -> None:
    work = [*modules(1, 2), *edit_module(1, 3), *[answered("Hm.")] * 12, *edit_module(1, 5), *modules(3)]
    desk = Desk([said("Go."), *work, answered("Done.")])
    price = fault_price(PRICE, 20_000, 0)
    used, unused = (desk.rule.judge(desk.entry(desk.log.segments[n].slices[0]), price, 1.0) for n in (3, 6))
    assert used.risk > unused.risk


def test_what_came_back_unused_may_leave_and_what_came_back_again_and_again_may_not() -> None:
    desk = Desk([said("Go."), *modules(1, 2, 3)])
    unused, thrashing = desk.log.segments[3].slices[0], desk.log.segments[6].slices[0]
    desk.rule.unused = frozenset([unused])
    for turn in range(3):
        desk.faults.faulted(thrashing, turn)
    idle = desk.idle(100.0)
    assert unused in idle
    assert thrashing not in idle
    assert desk.rule.judge(desk.entry(unused), 1.0, 100.0).reason == "came back and was not used"
    assert thrashing not in desk.forced(10**6)


def test_when_more_must_go_the_least_relevant_goes_first_and_of_equals_the_older() -> None:
    desk = Desk([said("Go."), *modules(1, 2), *[answered("Hm.")] * 9, *modules(3, 4), answered("Done.")])
    results = [desk.log.segments[number].slices[0] for number in (3, 6)]
    assert desk.forced(1) <= set(range(results[0] + 1))
    assert set(results) <= desk.forced(sum(desk.log.slices[piece].tokens for piece in range(results[1] + 1)))


def test_when_more_must_go_idle_entries_go_before_all_others() -> None:
    desk = Desk([said("Go."), *modules(1, 2, 3), answered("Done.")])
    newest = desk.entry(desk.log.segments[9].slices[0]).number
    assert desk.slices(desk.rule.forced({newest}, 1)) == desk.slices({newest})


def test_when_more_must_go_what_stands_elsewhere_goes_before_what_does_not() -> None:
    desk = Desk([said("Go."), *modules(1, 2, 1), answered("Done.")])
    first, other = (desk.log.segments[number].slices[0] for number in (3, 6))
    again = desk.log.segments[9].slices[0]
    order = sorted((first, other, again), key=lambda piece: (desk.rule.worth_keeping(desk.entry(piece)), piece))
    assert order == [first, again, other]


def test_a_head_may_be_forced_out_and_notes_and_digests_may_not() -> None:
    desk = Desk([said("Go."), *modules(1, 2, 3), answered("Done.")])
    entries = desk.window.entries
    head = desk.window.make(EntryForm.HEAD, 50, entries[2].pieces, text="head")
    digest = desk.window.make(EntryForm.DIGEST, 50, entries[4].pieces, text="[out: p4]")
    note = desk.window.make(EntryForm.NOTE, 50)
    desk.window.replace_all([entries[0], note, head, digest, *entries[5:]])
    forced = desk.rule.forced(set(), 10**6)
    assert head.number in forced
    assert {digest.number, note.number, entries[0].number}.isdisjoint(forced)


def test_what_was_pinned_before_is_idle_and_goes_first_and_what_is_pinned_stays() -> None:
    desk = Desk([said("Go."), *modules(1, 2, 3), answered("Done.")])
    older, pinned = (desk.window.make(EntryForm.RESIDENT, 50, text=text) for text in ("goal: old", "goal: new"))
    desk.window.replace_all([older, pinned, *desk.window.entries])
    desk.rule.resident_text = "goal: new"
    idle = desk.numbers(100.0)
    assert older.number in idle
    assert pinned.number not in idle
    assert desk.rule.forced(set(), 1) == {older.number}
    assert pinned.number not in desk.rule.forced(idle, 10**6)


def test_other_tasks_beyond_their_share_are_named() -> None:
    messages = [said("Fix the login form: the password field of auth/login.py rejects umlauts"), *modules(1, 2, 3)]
    messages.append(said("Switch to another task: write the sales report generator in reports/sales.py"))
    messages += [answered(call("s", "Write", file_path="reports/sales.py", content=module_text(99, 9)))]
    messages += [returned(gave("s", "written", "Write")), answered("Written.")]
    desk = Desk(messages, replace(TIGHT, other_task_share=0.0))
    over_quota = desk.rule.look(desk.window.tokens, 100.0).over_quota
    others = {
        entry.number for entry in desk.window.entries if desk.log.is_of_other_task(desk.log.slices[entry.pieces[0]])
    }
    assert over_quota
    assert over_quota <= others


def test_a_look_notes_nothing() -> None:
    desk = Desk([said("Go."), *modules(1, 2), answered("Done.")])
    found = desk.rule.look(desk.window.tokens, 0.0)
    assert desk.rule.idle_since == {}
    desk.rule.note(found)
    assert desk.rule.idle_since == found.since == dict.fromkeys(found.entries, desk.log.calls)
