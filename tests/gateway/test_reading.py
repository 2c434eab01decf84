"""Long histories that nobody knows yet: they go on as they came, and are read while nobody waits."""

from __future__ import annotations

import json

import pytest

from context_gatekeeper.gateway.live_session import LiveSession
from context_gatekeeper.gateway.planner_settings import PlannerSettings
from context_gatekeeper.gateway.planning import SessionPlanner
from context_gatekeeper.gateway.port import Answer, GatewayCall, PlanReply
from context_gatekeeper.wire.records import WireApi
from tests.gateway.histories import OLDER_MODEL, Growth, Size, grow
from tests.gateway.request_checks import faults_of

TALK: Growth = grow(WireApi.MESSAGES, 3, Size((40, 42), (2000, 6000)), model=OLDER_MODEL, is_claude_code=True, ttl="5m")
MIDDLE = len(TALK.requests) // 2
BRIEF = 30_000
"""So much of a history is read at once in these tests."""


def ask(planner: SessionPlanner, number: int, **fields: bool) -> PlanReply:
    return planner.plan(
        GatewayCall(number, "messages", "u", "anthropic-5m", "c", {}, 20.0 * number, TALK.raw(number), **fields)
    )


def hear(planner: SessionPlanner, number: int) -> None:
    planner.observe(Answer(number, 200, "application/json", b"{}", True))


def finish(planner: SessionPlanner) -> int:
    """Do all the work that waits; return its pieces."""
    pieces = 0
    while planner.has_idle_work:
        planner.idle()
        pieces += 1
    return pieces


@pytest.fixture
def planner() -> SessionPlanner:
    return SessionPlanner(PlannerSettings(most_unread_chars=BRIEF))


def test_a_long_history_goes_on_as_it_came_and_is_edited_once_it_is_read(planner: SessionPlanner) -> None:
    assert (ask(planner, MIDDLE).body, planner.has_idle_work) == (None, True)
    hear(planner, MIDDLE)
    assert finish(planner) > 2, "it is read piece by piece"
    edited = []
    for number in range(MIDDLE + 1, len(TALK.requests)):
        reply = ask(planner, number)
        if reply.body is not None:
            edited.append(number)
            assert faults_of(WireApi.MESSAGES, TALK.requests[number], json.loads(reply.body)) == []
        hear(planner, number)
        finish(planner)
    assert edited
    [session] = planner.status()["sessions"]
    assert session["calls"] == len(TALK.requests) - MIDDLE


def test_a_retry_of_such_a_request_gives_the_same_bytes(planner: SessionPlanner) -> None:
    """The client's own, whether it was read in between or not."""
    ask(planner, MIDDLE)
    assert ask(planner, MIDDLE).body is None
    finish(planner)
    assert ask(planner, MIDDLE).body is None


def test_a_request_that_comes_while_one_is_read_goes_on_from_there(planner: SessionPlanner) -> None:
    ask(planner, MIDDLE)
    planner.idle()
    for number in range(MIDDLE + 1, MIDDLE + 4):
        ask(planner, number)
        hear(planner, number)
        planner.idle()
    finish(planner)
    [session] = planner.status()["sessions"]
    assert session["append_only_units"] > 0
    assert ask(planner, MIDDLE + 4).note in ("plan", "unchanged")
    assert len(planner.status()["sessions"]) == 1


def test_shadow_says_so(planner: SessionPlanner) -> None:
    assert ask(planner, MIDDLE, shadow=True).note == "shadow"


def test_two_such_histories_under_one_key_stay_apart(planner: SessionPlanner) -> None:
    ask(planner, MIDDLE)
    other = json.loads(TALK.raw(MIDDLE))
    other["messages"] = [*other["messages"][:3], {"role": "user", "content": "Something else. " * 4000}]
    planner.plan(GatewayCall(99, "messages", "u", "anthropic-5m", "c", {}, 0.0, json.dumps(other).encode()))
    finish(planner)
    assert len({session["session"] for session in planner.status()["sessions"]}) == 2


def test_what_an_edited_conversation_brings_is_read_at_once() -> None:
    """Its own bytes would be dearer than a plan that may be late."""
    planner = SessionPlanner(PlannerSettings())
    for number in range(len(TALK.requests) - 1):
        reply = ask(planner, number)
        hear(planner, number)
        finish(planner)
    assert reply.body is not None
    longer = json.loads(TALK.raw(len(TALK.requests) - 2))
    longer["messages"] = [*longer["messages"], {"role": "assistant", "content": "Well."},
                          {"role": "user", "content": "One word after the other. " * 8000}]  # fmt: skip
    call = GatewayCall(99, "messages", "u", "anthropic-5m", "c", {}, 9000.0, json.dumps(longer).encode())
    assert planner.plan(call).body is not None


def test_a_history_that_cannot_be_read_is_forgotten() -> None:
    class BrokenSession(LiveSession):
        def read(self, *_: object) -> bool:
            raise ZeroDivisionError

    planner = SessionPlanner(PlannerSettings(most_unread_chars=BRIEF), BrokenSession)
    ask(planner, MIDDLE)
    with pytest.raises(ZeroDivisionError):
        planner.idle()
    assert not planner.has_idle_work
    assert planner.status()["sessions"] == []
