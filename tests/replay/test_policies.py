"""What each baseline sends, what can be read there, and what a fault brings back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.engine.pager_params import OURS
from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.engine.window import EntryForm
from context_gatekeeper.replay.policies import (
    AppendOnly,
    AutoCompact,
    MaskResults,
    Ours,
    Policy,
    Request,
    SlidingWindow,
    SlimAtBirth,
    WindowPolicy,
)
from context_gatekeeper.types import AgentMessage
from tests.replay.scripted import (
    CALL_FRAME,
    FRAME,
    PROMPT,
    SECRET_LINE,
    answer,
    character_log,
    filler,
    play,
    reading_session,
    result,
    unit_of,
    user,
)

LINE = SECRET_LINE.strip()
READING = len("Reading on.") + FRAME + len('{"file_path": "part 0"}') + CALL_FRAME
"""Tokens of what a call of `reading_session` puts out."""
STEP = READING + 1000 + FRAME
"""With its result."""
FIRST = len(PROMPT) + FRAME


def asked(policy: Policy, log: SessionLog, messages: Sequence[AgentMessage]) -> list[Request]:
    """Every request, the newest one not answered yet."""
    return [*play(policy, log, messages[:-1]), policy.request(is_cold=False)]


def sizes(requests: list[Request]) -> list[int]:
    return [request.tokens for request in requests]


def test_append_only_sends_everything_behind_what_it_sent_before() -> None:
    log = character_log()
    requests = play(AppendOnly(log), log, reading_session(3).messages)
    assert sizes(requests) == [FIRST, FIRST + STEP, FIRST + 2 * STEP, FIRST + 3 * STEP]
    assert [request.common_tokens for request in requests] == [0, FIRST, FIRST + STEP, FIRST + 2 * STEP]
    assert not any(request.breaks_prefix or request.is_epoch or request.volatile_tokens for request in requests)


def test_append_only_holds_all_that_was_said() -> None:
    log = character_log()
    policy = AppendOnly(log)
    play(policy, log, reading_session(3).messages)
    assert policy.holds(unit_of(log, LINE), by_words=False)
    assert policy.hints_at(0)


def test_a_sliding_window_drops_whole_exchanges_from_the_front() -> None:
    log = character_log()
    policy = SlidingWindow(log, 2 * STEP + 10)
    requests = asked(policy, log, reading_session(4).messages)
    assert sizes(requests) == [FIRST, FIRST + STEP, 2 * STEP, 2 * STEP, 2 * STEP]
    assert [request.is_epoch for request in requests] == [False, False, True, True, True]
    assert requests[2].common_tokens == 0
    assert requests[2].breaks_prefix
    assert not policy.holds(unit_of(log, LINE), by_words=True)
    assert not policy.hints_at(log.units[unit_of(log, LINE)].holders[0])


def test_a_sliding_window_keeps_the_newest_exchange_however_long_it_is() -> None:
    log = character_log()
    policy = SlidingWindow(log, 50)
    requests = play(policy, log, reading_session(2).messages)
    assert sizes(requests) == [FIRST, STEP, STEP]


def test_a_fault_brings_a_page_back_at_the_tail_and_it_is_cached_from_then_on() -> None:
    log = character_log()
    policy = MaskResults(log, 0, FIRST + 2 * STEP, keep=1)
    asked(policy, log, reading_session(3).messages)
    (page,) = log.units[unit_of(log, LINE)].holders
    added = policy.fault([page])
    assert added == log.slices[page].tokens
    assert policy.holds(unit_of(log, LINE), by_words=False)
    assert policy.window.entries[-1].form is EntryForm.RECALLED
    sent = policy.window.tokens
    policy.add(log.add_message(answer("So it is.")))
    again = policy.request(is_cold=False)
    assert (again.common_tokens, again.breaks_prefix) == (sent, False)


def test_a_page_that_came_back_makes_room_in_a_sliding_window_like_any_other_text() -> None:
    log = character_log()
    policy = SlidingWindow(log, 2 * STEP + 10)
    asked(policy, log, reading_session(4).messages)
    policy.fault(log.units[unit_of(log, LINE)].holders)
    assert policy.window.tokens > 2 * STEP + 10
    assert policy.request(is_cold=False).is_epoch
    assert policy.window.tokens <= 2 * STEP + 10


def test_masking_clears_all_but_the_newest_results_once_over_its_trigger() -> None:
    log = character_log()
    policy = MaskResults(log, 100, 100 + FIRST + 4 * STEP, keep=2)
    requests = asked(policy, log, reading_session(6).messages)
    cleared = 1000 + FRAME - len("[cleared]") - FRAME
    assert sizes(requests)[4:] == [FIRST + 4 * STEP, FIRST + 5 * STEP - 3 * cleared, FIRST + 6 * STEP - 3 * cleared]
    assert [request.is_epoch for request in requests] == [False] * 5 + [True, False]
    assert not policy.holds(unit_of(log, LINE), by_words=True)
    assert not policy.hints_at(log.units[unit_of(log, LINE)].holders[0])


def test_masking_can_stop_as_soon_as_enough_is_gone() -> None:
    log = character_log()
    policy = MaskResults(log, 0, FIRST + 4 * STEP, keep=1, clear_at_least=1500)
    requests = play(policy, log, reading_session(5).messages)
    assert sizes(requests)[-1] == FIRST + 5 * STEP - 2 * (1000 - len("[cleared]"))


@pytest.mark.parametrize(("needs_all", "is_cleared"), [(False, True), (True, False)])
def test_masking_clears_little_only_where_that_is_allowed(needs_all: bool, is_cleared: bool) -> None:
    log = character_log()
    policy = MaskResults(log, 0, FIRST + STEP, keep=1, clear_at_least=5000, needs_all=needs_all)
    requests = play(policy, log, reading_session(2).messages)
    assert requests[-1].is_epoch is is_cleared


def test_masking_keeps_a_result_whose_call_is_not_right_before_it() -> None:
    log = character_log()
    messages = [
        user(PROMPT),
        answer("", ("a", "Read", {})),
        answer("Something else in between."),
        result("a", filler(500)),
        result("nobody", filler(500)),
        answer("On."),
    ]
    requests = play(MaskResults(log, 0, 10, keep=0), log, messages)
    assert not any(request.is_epoch for request in requests)


def test_masking_counts_a_page_that_was_asked_for_as_a_result_of_its_own() -> None:
    log = character_log()
    policy = MaskResults(log, 0, FIRST + 2 * STEP, keep=1)
    asked(policy, log, reading_session(3).messages)
    (page,) = log.units[unit_of(log, LINE)].holders
    policy.fault([page])
    assert policy.holds(unit_of(log, LINE), by_words=False)
    policy.add(log.add_message(answer("", ("r9", "Read", {}))))
    policy.add(log.add_message(result("r9", filler(3000))))
    assert policy.request(is_cold=False).is_epoch
    assert [entry.form for entry in policy.window.entries if entry.form is EntryForm.RECALLED] == []


def test_compaction_puts_a_billed_summary_in_place_of_all_but_the_newest_exchange() -> None:
    log = character_log()
    policy = AutoCompact(log, 100, 100 + FIRST + 2 * STEP)
    requests = asked(policy, log, reading_session(3).messages)
    summary = AutoCompact.SUMMARY_TOKENS
    assert sizes(requests)[2:] == [FIRST + 2 * STEP, summary + STEP]
    assert [request.summary_tokens for request in requests][2:] == [0, summary]
    assert not policy.holds(unit_of(log, LINE), by_words=True)


def test_compaction_that_would_leave_nothing_out_is_not_made() -> None:
    for messages in ([answer("First of all.")], [user(PROMPT), answer("On.")]):
        log = character_log()
        (request,) = play(AutoCompact(log, 200_000, 160_000), log, messages)
        assert (request.is_epoch, request.summary_tokens) == (False, 0)


def test_a_summary_is_not_made_again_while_only_it_would_leave() -> None:
    log = character_log()
    policy = AutoCompact(log, 0, FIRST + STEP)
    requests = asked(policy, log, reading_session(3).messages)
    assert [request.is_epoch for request in requests] == [False, False, True, True]
    assert not policy.request(is_cold=False).is_epoch


def test_slimming_sends_heads_of_long_results_from_the_start() -> None:
    log = SessionLog()
    policy = SlimAtBirth(log)
    lines = [f"value_{number} = load_setting('{number}', fallback={number})" for number in range(200)]
    messages = [
        user(PROMPT),
        answer("", ("a", "Read", {"file_path": "settings.py"})),
        result("a", "\n".join(lines)),
        answer("", ("b", "Read", {"file_path": "short.py"})),
        result("b", lines[150] + " # short"),
        answer("On."),
    ]
    requests = play(policy, log, messages)
    whole = sum(log.slices[number].tokens for number in log.segments[2].slices)
    assert requests[1].tokens < requests[0].tokens + whole / 2
    head = next(entry for entry in policy.window.entries if entry.form is EntryForm.HEAD)
    assert head.pieces == tuple(log.segments[2].slices)
    assert policy.holds(unit_of(log, lines[0]), by_words=False)
    assert not policy.holds(unit_of(log, lines[100]), by_words=True)
    assert policy.hints_at(log.units[unit_of(log, lines[100])].holders[0])
    assert policy.holds(unit_of(log, lines[150] + " # short"), by_words=False)


def test_slimming_leaves_a_result_alone_that_a_head_would_not_shorten() -> None:
    log = SessionLog()
    policy = SlimAtBirth(log)
    messages = [user(PROMPT), answer("", ("a", "Bash", {})), result("a", "x" * 2001, name="Bash"), answer("On.")]
    play(policy, log, messages)
    forms = {entry.form for entry in policy.window.entries}
    assert forms <= {EntryForm.RAW, EntryForm.HEAD}


def test_ours_is_the_planner_of_the_engine_and_hears_what_calls_cost() -> None:
    log = character_log()
    policy = Ours(log, PRICES["anthropic-5m"], 0, OURS)
    requests = play(policy, log, reading_session(3).messages)
    policy.billed(70.0, 100.0)
    assert sizes(requests)[0] == FIRST
    assert policy.window is policy.pager.window
    assert policy.pager.ledger.saved == 30.0
    page = log.units[unit_of(log, LINE)].holders[0]
    assert policy.fault([page]) == log.slices[page].tokens
    assert policy.window.entries[-1].form is EntryForm.RECALLED


def test_a_policy_that_only_listens_has_nothing_to_say_about_the_bill() -> None:
    policy = WindowPolicy(character_log())
    policy.billed(1.0, 2.0)
    assert policy.request(is_cold=True) == Request(0, 0)
