"""The bounds: they know what later text will quote, miss nothing, and pay for little else."""

from __future__ import annotations

import pytest

from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.replay.clairvoyant import Clairvoyant, last_uses
from context_gatekeeper.types import AgentSession
from tests.replay.scripted import (
    FRAME,
    PROMPT,
    SECRET_LINE,
    answer,
    character_log,
    filler,
    play,
    reading_session,
    result,
    session_of,
    user,
)

NAMES = ("retry_budget", "compute_backoff")
KEPT = 12 + 5 + 5
"""What the secret line and its names are priced at: 12 tokens a line, 1 and 0.3 a character for a name."""


def test_the_last_use_of_a_unit_is_the_newest_call_that_quotes_it() -> None:
    session = session_of(
        user(f"Look at {NAMES[0]} and {NAMES[1]}."),
        answer(f"{NAMES[0]} and {NAMES[1]} are there."),
        answer(f"Again {NAMES[0]}."),
        answer("No name here."),
    )
    assert last_uses(session) == {NAMES[0]: 1, NAMES[1]: 0}


def test_a_log_that_cuts_its_slices_elsewhere_is_served_as_well() -> None:
    session = reading_session(3, chars=5000)
    uses = last_uses(session)
    for factor in (0.5, 1.0, 3.0):
        log = SessionLog(token_factor=factor)
        requests = play(Clairvoyant(log, uses, seen=False), log, session.messages)
        assert [request.tokens for request in requests] == [0, KEPT, KEPT, KEPT]


def bound(session: AgentSession, *, seen: bool) -> list[int]:
    """Prompt tokens of each call."""
    log = character_log()
    policy = Clairvoyant(log, last_uses(session), seen=seen)
    return [request.tokens for request in play(policy, log, session.messages)]


def test_one_bound_sends_new_text_once_and_then_only_what_will_be_quoted() -> None:
    session = reading_session(3)
    new = len("Reading on.") + FRAME + len('{"file_path": "part 0"}') + 8 + 1000 + FRAME
    tokens = bound(session, seen=True)
    assert tokens == [len(PROMPT) + FRAME, new, new + KEPT, new + KEPT]


def test_the_other_bound_sends_nothing_else_at_all() -> None:
    assert bound(reading_session(3), seen=False) == [0, KEPT, KEPT, KEPT]


def test_what_was_quoted_for_the_last_time_is_sent_no_more() -> None:
    session = session_of(
        user(PROMPT),
        answer("", ("a", "Read", {})),
        result("a", SECRET_LINE),
        answer(SECRET_LINE),
        answer("Nothing."),
    )
    assert [tokens > 0 for tokens in bound(session, seen=False)] == [False, True, False]


def test_what_stays_is_cached_from_call_to_call() -> None:
    session = reading_session(3)
    log = character_log()
    requests = play(Clairvoyant(log, last_uses(session), seen=False), log, session.messages)
    assert [request.common_tokens for request in requests] == [0, 0, *[requests[-1].tokens] * 2]


@pytest.mark.parametrize("seen", [True, False])
def test_nothing_is_ever_missed_or_asked_for(seen: bool) -> None:
    log = character_log()
    policy = Clairvoyant(log, {}, seen=seen)
    play(policy, log, [user(PROMPT), answer(filler(50))])
    policy.billed(1.0, 2.0)
    assert policy.holds(0, by_words=False)
    assert not policy.hints_at(0)
    assert policy.fault([0]) == 0
