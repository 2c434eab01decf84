"""The chat gatekeeper at each call: the newest exchange whole, the selected sentences of older ones, nothing cached."""

from __future__ import annotations

import logging

import pytest

from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.engine.window import EntryForm
from context_gatekeeper.replay.reselect import QUERY_CHARS, SIDE_CHARS, Reselect
from context_gatekeeper.types import AgentMessage
from tests.replay.scripted import answer, filler, play, result, unit_of, user

LOCK = "The Redis lock of the payments worker expires after lock_ttl_seconds = 45 in settings/locks.toml."
QUESTION = "How long does the Redis lock of the payments worker live?"


def talk() -> list[AgentMessage]:
    """Two subjects; the third question goes back to the first."""
    return [
        user(QUESTION),
        answer("I look it up.", ("a", "Read", {"file_path": "settings/locks.toml"})),
        result("a", LOCK),
        answer("45 seconds."),
        user("Another thing: how do I cook a carrot soup?"),
        answer("Fry onions in butter_or_oil, add carrots and ginger, then stock; blend it after 20 minutes."),
        user("Back to the Redis lock of the payments worker: which file holds its expiry?"),
        answer("settings/locks.toml."),
    ]


def test_the_newest_exchange_is_sent_whole() -> None:
    log = SessionLog()
    policy = Reselect(log)
    messages = talk()
    play(policy, log, messages[:3])
    request = policy.request(is_cold=False)
    whole = [entry for entry in policy.window.entries if entry.form is EntryForm.RAW]
    assert [entry.pieces[0] for entry in whole] == [1, 2, 3], "the call, and its result"
    assert policy.holds(unit_of(log, LOCK), by_words=False)
    assert request.tokens == policy.window.tokens


def test_an_older_exchange_comes_back_when_it_is_asked_about() -> None:
    log = SessionLog()
    policy = Reselect(log)
    messages = talk()
    play(policy, log, messages[:-1])
    policy.request(is_cold=False)
    heads = [entry for entry in policy.window.entries if entry.form is EntryForm.HEAD]
    assert len(heads) == 1
    assert policy.holds(unit_of(log, "settings/locks.toml"), by_words=False)
    assert not policy.holds(unit_of(log, "lock_ttl_seconds"), by_words=False), "one turn covers the question"


def test_what_is_not_selected_cannot_be_read_until_a_fault_brings_it_for_one_call() -> None:
    log = SessionLog()
    policy = Reselect(log)
    messages = talk()
    play(policy, log, messages[:5])
    policy.request(is_cold=False)
    unit = unit_of(log, "lock_ttl_seconds")
    assert not policy.holds(unit, by_words=True)
    page = log.units[unit].holders[0]
    assert not policy.hints_at(page)
    assert policy.fault([page]) == log.slices[page].tokens
    assert policy.holds(unit, by_words=False)
    policy.add(log.add_message(messages[5]))
    policy.add(log.add_message(user("And for how many people is that soup?")))
    policy.request(is_cold=False)
    assert not policy.holds(unit, by_words=False)


def test_all_that_it_sends_is_volatile_and_no_prefix_breaks() -> None:
    log = SessionLog()
    requests = play(Reselect(log), log, talk())
    assert all(request.volatile_tokens == request.tokens > 0 for request in requests)
    assert all(request.common_tokens == 0 for request in requests)
    assert not any(request.breaks_prefix or request.is_epoch for request in requests)


def test_the_blocks_keep_to_the_gatekeepers_own_budget() -> None:
    log = SessionLog()
    policy = Reselect(log)
    for number in range(30):
        text = f"{LOCK} Attempt {number}. " + filler(3000)
        policy.add(log.add_message(user(f"{QUESTION} Case {number}.")))
        policy.request(is_cold=False)
        policy.add(log.add_message(answer(text)))
        blocks = [entry for entry in policy.window.entries if entry.form is EntryForm.HEAD]
        assert sum(entry.tokens for entry in blocks) <= 4000


def test_very_long_texts_are_bounded_and_nothing_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    log = SessionLog()
    policy = Reselect(log)
    late = "final_marker_value"
    messages = [
        user(filler(5 * QUERY_CHARS)),
        answer("", ("a", "Bash", {"command": "cat everything"})),
        result("a", f"{filler(SIDE_CHARS)}\n{late} = 17"),
        answer(filler(10 * SIDE_CHARS)),
        user("What stood at the end of everything that the command printed?"),
    ]
    with caplog.at_level(logging.WARNING, logger="context_gatekeeper"):
        play(policy, log, messages)
        policy.request(is_cold=False)
    assert caplog.records == []
    assert not policy.holds(unit_of(log, late), by_words=False)


def test_a_session_may_begin_with_a_call_and_hold_thinking_and_messages_without_text() -> None:
    log = SessionLog()
    policy = Reselect(log)
    messages = [
        answer("", thinking_chars=400),
        AgentMessage(user("x").role, ()),
        user("A note of the program, which nobody typed.", origin="meta"),
        answer("On we go.", is_call=False),
        answer("Done."),
    ]
    requests = play(policy, log, messages)
    assert len(requests) == 2
    assert requests[0].tokens == 0
    assert requests[1].tokens > round(400 * 0.275)
