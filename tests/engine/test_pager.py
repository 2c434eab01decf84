"""Which slices stay in the window, call by call."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from context_gatekeeper.core.economics import PRICES, PriceStep
from context_gatekeeper.engine.pager import Pager, RewriteReason
from context_gatekeeper.engine.pager_params import OURS, PagerParams
from context_gatekeeper.engine.session_log import SessionLog, SliceKind
from context_gatekeeper.engine.window import EntryForm
from context_gatekeeper.types import AgentMessage
from tests.engine.agents import answered, call, gave, returned, said, thinking
from tests.engine.coding import coding_session, edit_module, module_text, read_module

EAGER = PagerParams(overdraft=10.0, fault_target=None, fault_price_factor=0.01, patience=0.1, tail_tokens=10)
"""Leaves out what it can as early as it can."""


def paged(
    messages: list[AgentMessage], params: PagerParams = EAGER, prices: str = "anthropic-5m", *, is_cold: bool = False
) -> tuple[SessionLog, Pager, list[list[int]]]:
    """The session under a pager with savings in its ledger, and the numbers of the entries that each call sent."""
    log = SessionLog()
    pager = Pager(log, PRICES[prices], resident_tokens=4000, params=params)
    pager.ledger.append_only = 1e7
    sent = []
    for message in messages:
        if message.is_call:
            pager.prepare(is_cold=is_cold)
            sent.append([entry.number for entry in pager.window.entries])
        pager.add(log.add_message(message))
    return log, pager, sent


def forms(pager: Pager) -> set[EntryForm]:
    return {entry.form for entry in pager.window.entries}


def test_between_rewrites_the_window_only_grows_at_its_tail() -> None:
    _, pager, sent = paged(list(coding_session(40).messages))
    rewritten = {rewrite.call for rewrite in pager.rewrites}
    assert len(rewritten) > 2
    for number, (before, after) in enumerate(itertools.pairwise(sent), 1):
        assert after[: len(before)] == before or number in rewritten


def test_a_rewrite_is_recorded_with_what_left_and_why() -> None:
    log, pager, _ = paged(list(coding_session(30).messages))
    first = pager.rewrites[0]
    assert first.reason == "rent"
    assert first.swapped_out
    assert first.tokens_after < first.tokens_before
    assert first.price >= 0
    assert all(not pager.window.holds_piece(number) for number in first.swapped_out)
    assert all(log.slices[number].born <= first.call for number in first.swapped_out)


def test_a_cold_cache_makes_the_rewrite_free() -> None:
    _, pager, _ = paged(list(coding_session(30).messages), is_cold=True)
    assert {(rewrite.reason, rewrite.price) for rewrite in pager.rewrites} == {("cold", 0.0)}


def test_without_a_cache_every_call_may_be_laid_anew_and_with_free_reads_none() -> None:
    messages = list(coding_session(20).messages)
    assert len(paged(messages, prices="none")[1].rewrites) > 5
    assert paged(messages, prices="local")[1].rewrites == []


def test_a_ledger_that_cannot_pay_leaves_the_session_alone() -> None:
    log = SessionLog()
    pager = Pager(log, PRICES["anthropic-5m"], resident_tokens=4000, params=replace(EAGER, overdraft=0.0))
    for message in coding_session(30).messages:
        if message.is_call:
            assert pager.prepare(is_cold=False) is None
        pager.add(log.add_message(message))


def test_a_rewrite_waits_until_the_ledger_can_pay_for_all_that_it_writes() -> None:
    params = replace(EAGER, overdraft=1.0, reserve_faults=0.0, digest=True, fault_price_factor=0.3)
    prices = []
    for means in range(0, 6001, 250):
        log = SessionLog()
        pager = Pager(log, PRICES["anthropic-5m"], resident_tokens=4000, params=params)
        pager.ledger.append_only = means / 2  # saved as much, and as much again may be overdrawn
        for message in coding_session(16).messages:
            if message.is_call:
                made = pager.prepare(is_cold=False)
                assert made is None or made.price <= means
                prices += [made.price] if made else []
            pager.add(log.add_message(message))
    assert max(prices) > 0


def test_short_texts_of_a_person_and_the_newest_part_stay() -> None:
    log, pager, _ = paged(list(coding_session(40).messages))
    plan = pager.plan()
    assert plan.entries[0].reason == "a short text of the user"
    assert plan.entries[-1].reason == "the newest part"
    assert log.segments[0].kind is SliceKind.USER


def test_a_fault_brings_a_slice_back_whole_at_the_tail() -> None:
    _log, pager, _ = paged(list(coding_session(30).messages))
    number = pager.rewrites[0].swapped_out[0]
    pager.fault([number])
    assert pager.window.entries[-1].form is EntryForm.RECALLED
    assert pager.window.holds_piece(number)
    assert pager.plan().faults_since_rewrite == 1
    assert number not in {left.call for left in pager.plan().departures}


def test_a_slice_that_keeps_coming_back_stays_for_a_while() -> None:
    _log, pager, _ = paged(list(coding_session(30).messages))
    number = pager.rewrites[-1].swapped_out[0]
    for _ in range(3):
        pager.fault([number])
    pager.prepare(is_cold=True)
    assert pager.window.holds_piece(number)
    assert pager.refetched_hot_slices == 1
    reasons = {entry.reason for entry in pager.plan().entries if entry.form == "recalled"}
    assert any("again and again" in reason or reason == "the newest part" for reason in reasons)


def test_the_price_of_a_fault_is_steered_to_the_target() -> None:
    params = replace(EAGER, fault_target=0.1, steering=0.5, factor_bounds=(0.001, 8.0))
    _log, pager, _ = paged(list(coding_session(30).messages), params)
    assert pager.rewrites
    start = pager.fault_price_factor
    for _ in range(5):
        pager.prepare(is_cold=False)
    calm = pager.fault_price_factor
    assert calm < start
    for _ in range(50):
        pager.fault([0])
        pager.prepare(is_cold=False)
    assert pager.fault_price_factor == params.factor_bounds[1]
    assert paged([said("Go."), answered("Done.")], EAGER)[1].fault_price_factor == EAGER.fault_price_factor


def test_while_nothing_has_left_no_page_can_fault_and_nothing_is_learned() -> None:
    params = replace(OURS, fault_target=0.1, steering=0.5)
    _log, pager, _ = paged([said("Go."), answered("Done.")], params)
    start = pager.fault_price_factor
    for _ in range(5):
        pager.prepare(is_cold=False)
    assert pager.fault_price_factor == start


def test_while_faults_are_far_above_the_target_nothing_more_is_left_out() -> None:
    params = replace(EAGER, fault_target=0.01, steering=1e-9)
    log, pager, _ = paged([said("Go."), *read_module(1)], params)
    pager.fault([0])
    for number in range(2, 9):
        for message in read_module(number):
            if message.is_call:
                assert pager.prepare(is_cold=False) is None
            pager.add(log.add_message(message))


def test_a_dearer_read_price_and_a_larger_prompt_move_where_the_steering_starts() -> None:
    def start(prices: str, resident: int) -> float:
        return Pager(SessionLog(), PRICES[prices], resident_tokens=resident).fault_price_factor

    assert start("anthropic-5m", 8000) == pytest.approx(OURS.fault_price_factor)
    assert start("none", 8000) > start("anthropic-5m", 8000) > start("cheap-read", 8000)
    assert start("anthropic-5m", 40_000) < start("anthropic-5m", 8000)


def test_a_file_read_again_is_sent_as_references_unless_that_is_switched_off() -> None:
    messages = [said("Go."), *read_module(1), *read_module(1), answered("Done.")]
    assert EntryForm.REFERENCE in forms(paged(messages, OURS)[1])
    assert EntryForm.REFERENCE not in forms(paged(messages, replace(OURS, refers=False))[1])


def test_a_slice_that_others_refer_to_is_worth_what_they_are_worth() -> None:
    messages = [said("Go."), *read_module(1), *[answered("Hm.")] * 8, *read_module(1), *edit_module(1, 3)]
    log, pager, _ = paged(messages, replace(OURS, overdraft=10.0))
    older = log.segments[3].slices[0]
    assert pager.window.holds_piece(older)


def test_huge_machine_output_is_a_head_with_a_handle_and_file_reads_are_not() -> None:
    output = "\n".join(f"step {number}: compiled the object number {number} of the build" for number in range(600))
    shell = [answered(call("b", "Bash", command="make")), returned(gave("b", output, "Bash"))]
    log, pager, _ = paged([said("Build it."), *shell])
    (head,) = [entry for entry in pager.window.entries if entry.form is EntryForm.HEAD]
    assert head.tokens < 1000
    assert "p2" in head.text
    assert head.pieces == tuple(log.segments[2].slices)
    assert pager.plan().entries[-1].reason == "too long to be sent whole"
    read = [answered(call("r", "Read", file_path="a.py")), returned(gave("r", module_text(1, 400), "Read"))]
    assert EntryForm.HEAD not in forms(paged([said("Read it."), *read])[1])


def test_a_huge_failure_of_which_a_head_would_show_nothing_is_sent_whole() -> None:
    failed = [answered(call("b", "Bash", command="make")), returned(gave("b", "\0" * 20_000, "Bash", is_error=True))]
    log, pager, _ = paged([said("Build it."), *failed])
    assert EntryForm.HEAD not in forms(pager)
    assert pager.window.holds_piece(log.segments[2].slices[0])


def test_a_digest_with_lines_says_so_in_the_plan() -> None:
    _, pager, _ = paged(list(coding_session(40).messages), replace(EAGER, fault_price_factor=0.3))
    told = {entry.reason for entry in pager.plan().entries if entry.form == "digest"}
    assert "left, but for lines likely to be needed" in told


def test_thinking_leaves_first_and_without_a_trace() -> None:
    messages = [said("Go.")]
    for number in range(12):
        messages += [answered(thinking(hidden_chars=4000), f"Step {number}."), returned(gave(f"x{number}", "ok"))]
    log, pager, _ = paged(messages)
    left = {log.segments[log.slices[number].segment].kind for number in pager.swapped_out_at}
    assert SliceKind.THINKING in left


def test_a_short_call_stays_as_long_as_its_result() -> None:
    log, pager, _ = paged(list(coding_session(40).messages))
    whole = {log.slices[entry.pieces[0]].segment for entry in pager.window.entries if entry.is_whole}
    for number in whole:
        call_segment = log.call_of(log.segments[number])
        if call_segment is not None and sum(log.slices[n].tokens for n in call_segment.slices) <= 100:
            assert call_segment.number in whole


def test_other_tasks_keep_to_their_share() -> None:
    messages = [said("Fix the login form: the password field of auth/login.py rejects umlauts")]
    for number in range(6):
        messages += read_module(number)
    messages.append(said("Switch to another task: write the sales report generator in reports/sales.py"))
    messages += [answered(call("s", "Write", file_path="reports/sales.py", content=module_text(99, 30)))]
    messages += [returned(gave("s", "written", "Write")), answered("Written."), answered("Tested.")]
    params = replace(EAGER, fault_price_factor=8.0)
    log, pager, _ = paged(messages, replace(params, other_task_share=0.0))
    assert log.tasks.task_of(0) != log.tasks.running_task
    free = paged(messages, replace(params, other_task_share=1.0))[1]
    assert pager.other_task_tokens() < free.other_task_tokens()


def test_what_came_back_and_was_not_used_leaves_with_the_next_rewrite() -> None:
    log, pager, _ = paged(list(coding_session(30).messages), replace(EAGER, fault_price_factor=0.3))
    number = pager.rewrites[0].swapped_out[0]
    pager.bring_back([number])
    pager.release([number])
    for message in coding_session(30, "more").messages[1:]:
        if message.is_call:
            pager.prepare(is_cold=True)
        pager.add(log.add_message(message))
    assert not pager.window.holds_piece(number)


def test_what_is_pinned_stands_in_front_and_a_later_change_at_the_tail_until_the_next_rewrite() -> None:
    log = SessionLog()
    pager = Pager(log, PRICES["anthropic-5m"], resident_tokens=4000, params=EAGER)
    pager.ledger.append_only = 1e7
    pager.add(log.add_message(said("Go.")))
    pager.lay_resident("goal: ship the shop")
    pager.lay_resident("goal: ship the shop today")
    pager.lay_resident("goal: ship the shop today")
    assert [entry.text for entry in pager.window.entries if entry.form is EntryForm.RESIDENT] == [
        "goal: ship the shop today"
    ]
    assert pager.window.entries[0].form is EntryForm.RESIDENT
    messages = list(coding_session(30).messages)
    for place, message in enumerate(messages):
        if message.is_call:
            pager.prepare(is_cold=False)
        if place == len(messages) - 8:
            pager.lay_resident("goal: another")
            assert pager.window.entries[-1].text == "goal: another"
            reasons = {entry.reason for entry in pager.plan().entries if entry.form == "resident"}
            assert "what is pinned has changed since" in reasons
        pager.add(log.add_message(message))
    pager.prepare(is_cold=True)
    texts = [entry.text for entry in pager.window.entries if entry.form is EntryForm.RESIDENT]
    assert texts[-1] == "goal: another"
    pager.lay_resident("")
    for message in coding_session(10, "more").messages:
        if message.is_call:
            pager.prepare(is_cold=True)
        pager.add(log.add_message(message))
    assert "goal: another" not in {entry.text for entry in pager.window.entries}


@pytest.mark.parametrize("prices", ["local", "anthropic-5m"])
def test_a_request_that_would_not_fit_is_made_to_fit_whatever_the_ledger_says(prices: str) -> None:
    log = SessionLog()
    pager = Pager(log, PRICES[prices], resident_tokens=4000, params=OURS, window_tokens=12_000)
    pager.ledger.spent = 1e9
    for message in coding_session(80).messages:
        if message.is_call:
            pager.prepare(is_cold=False)
            assert pager.prompt_tokens <= 12_000
        pager.add(log.add_message(message))
    assert {rewrite.reason for rewrite in pager.rewrites} == {RewriteReason.WINDOW}
    assert all(any(number in entry.pieces for entry in pager.window.entries) for number in pager.swapped_out_at)


def test_a_step_of_the_price_forces_a_rewrite_below_it() -> None:
    prices = replace(PRICES["anthropic-5m"], steps=(PriceStep(14_000, 2.0), PriceStep(40_000, 3.0)))
    log = SessionLog()
    pager = Pager(log, prices, resident_tokens=4000, params=OURS, window_tokens=90_000)
    pager.ledger.spent = 1e9
    for message in coding_session(80).messages:
        if message.is_call:
            pager.prepare(is_cold=False)
            assert pager.prompt_tokens <= 14_000
        pager.add(log.add_message(message))
    assert {rewrite.reason for rewrite in pager.rewrites} == {RewriteReason.STEP}


def test_a_limit_that_the_newest_calls_alone_pass_is_come_as_near_to_as_can_be() -> None:
    log = SessionLog()
    pager = Pager(log, PRICES["anthropic-5m"], resident_tokens=4000, window_tokens=5000)
    for message in [said("Go."), *[message for number in range(6) for message in read_module(number)]]:
        pager.add(log.add_message(message))
    before = pager.prompt_tokens
    rewrite = pager.prepare(is_cold=False)
    assert rewrite is not None
    assert rewrite.reason is RewriteReason.WINDOW
    assert 5000 < pager.prompt_tokens < before
    assert all("\n" not in entry.text for entry in pager.window.entries if entry.form is EntryForm.DIGEST)


def test_a_limit_below_what_is_fixed_changes_nothing() -> None:
    log = SessionLog()
    pager = Pager(log, PRICES["anthropic-5m"], resident_tokens=4000, window_tokens=4010)
    for message in [said("Go."), *read_module(1), *read_module(2)]:
        pager.add(log.add_message(message))
    assert pager.prepare(is_cold=False) is None
    assert all(entry.is_whole for entry in pager.window.entries)


def test_a_rewrite_that_writes_more_than_it_leaves_out_is_not_made() -> None:
    messages = [said("Go."), *[message for n in range(12) for message in edit_module(n, 3)]]
    _, pager, _ = paged(messages, replace(EAGER, patience=0.0), "none")
    assert all(rewrite.tokens_after < rewrite.tokens_before for rewrite in pager.rewrites)


def test_the_plan_says_what_a_rewrite_waits_for() -> None:
    _, pager, _ = paged(list(coding_session(30).messages), replace(EAGER, patience=1e9))
    assert pager.rewrites == []
    assert any("a rewrite does not pay yet" in entry.reason for entry in pager.plan().entries)


def test_the_plan_adds_up() -> None:
    _, pager, _ = paged(list(coding_session(30).messages))
    pager.prepare(is_cold=False)
    plan = pager.plan()
    assert plan.window_tokens == sum(entry.tokens for entry in plan.entries) == pager.window.tokens
    assert 0 <= plan.written_tokens <= plan.window_tokens
    assert {"left; the handle gives it back"} <= {entry.reason for entry in plan.entries}
    calls = [left.call for left in plan.departures]
    assert calls == sorted(calls, reverse=True)


def test_the_same_session_gives_the_same_plan() -> None:
    plans = [paged(list(coding_session(30).messages))[1].plan() for _ in range(2)]
    assert plans[0] == plans[1]
