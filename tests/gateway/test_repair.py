"""What is sent in place of a request whose thinking belongs to another prefix, and after a plan that was refused."""

from __future__ import annotations

import json

from context_gatekeeper.gateway.planner_settings import PlannerSettings
from context_gatekeeper.gateway.planning import SessionPlanner
from context_gatekeeper.gateway.port import Answer, GatewayCall, SentAs
from context_gatekeeper.wire.records import WireApi
from tests.gateway.histories import Growth, Size, grow
from tests.gateway.request_checks import faults_of

BINDING_MODEL = "claude-opus-5-5"
OTHER_MODEL = "claude-sonnet-5-5"
LONG_TALK = Size((40, 42), (2000, 6000))
THINKING = frozenset({"thinking", "redacted_thinking"})


def growth() -> Growth:
    return grow(WireApi.MESSAGES, 3, LONG_TALK, model=BINDING_MODEL, is_claude_code=True, ttl="5m")


def call_of(talk: Growth, number: int, route: str = "messages", model: str = "") -> GatewayCall:
    body = talk.raw(number)
    if model:
        body = json.dumps({**json.loads(body), "model": model}).encode()
    return GatewayCall(number, route, "u", "anthropic-5m", "c", {}, 20.0 * number, body)


def heard(planner: SessionPlanner, number: int, sent_as: SentAs = SentAs.PLANNED) -> None:
    planner.observe(Answer(number, 200, "application/json", b"{}", True, sent_as))
    while planner.has_idle_work:
        planner.idle()


def walked(talk: Growth, end: int, **settings: bool) -> SessionPlanner:
    """A planner after so many calls."""
    planner = SessionPlanner(PlannerSettings(**settings))  # type: ignore[arg-type]
    for number in range(end):
        planner.plan(call_of(talk, number))
        heard(planner, number)
    return planner


def first_edited(talk: Growth) -> int:
    planner = SessionPlanner(PlannerSettings())
    for number in range(len(talk.requests)):
        if planner.plan(call_of(talk, number)).body is not None:
            return number
        heard(planner, number)
    raise AssertionError("nothing was edited")


def thinking(body: bytes) -> list[object]:
    parts = [
        part for told in json.loads(body)["messages"] if isinstance(told["content"], list) for part in told["content"]
    ]
    return [part for part in parts if part["type"] in THINKING]


TALK = growth()
EDITED = first_edited(TALK)


def test_the_plan_that_came_too_late_is_what_fits() -> None:
    planner, call = walked(TALK, EDITED + 2), call_of(TALK, EDITED + 2)
    planned = planner.plan(call)
    assert planned.body is not None
    assert planner.repair(call, was_edited=False).body == planned.body
    other = walked(TALK, EDITED + 2)  # and the same where the planner never saw the request
    assert other.repair(call, was_edited=False).note == "plan"


def test_a_planner_that_knows_nothing_sends_the_request_without_thinking_and_keeps_it_out() -> None:
    last = len(TALK.requests) - 2
    planner, call = SessionPlanner(PlannerSettings(most_unread_chars=10**9)), call_of(TALK, EDITED - 1)
    assert planner.plan(call).body is None, "nothing is due in so short a conversation"
    assert thinking(call.body)
    repaired = planner.repair(call, was_edited=False)
    assert repaired.body is not None
    assert thinking(repaired.body) == []
    assert faults_of(WireApi.MESSAGES, TALK.requests[EDITED - 1], json.loads(repaired.body)) == []
    assert planner.plan(call).body == repaired.body, "a retry gives the same bytes"
    heard(planner, call.call_id)
    gone = len(thinking(call.body))
    for number in range(EDITED, last):
        later = planner.plan(call_of(TALK, number)).body
        assert later is not None
        assert len(thinking(later)) <= len(thinking(TALK.raw(number))) - gone
        heard(planner, number)


def test_a_switch_to_a_model_that_binds_thinking_sends_it_without() -> None:
    planner = walked(TALK, EDITED + 2)
    call = call_of(TALK, EDITED + 2, model=OTHER_MODEL)
    repaired = planner.repair(call, was_edited=False)
    assert repaired.body is not None
    assert json.loads(repaired.body)["model"] == OTHER_MODEL
    assert thinking(planner.repair(call, was_edited=True).body or b"") == []


def test_of_a_plan_that_was_refused_the_thinking_leaves() -> None:
    planner, call = walked(TALK, EDITED + 2), call_of(TALK, EDITED + 2)
    planned = planner.plan(call).body
    assert planned is not None
    assert thinking(planned)
    repaired = planner.repair(call, was_edited=True).body
    assert repaired is not None
    assert thinking(repaired) == []
    assert len(repaired) < len(planned)


def test_a_conversation_whose_plan_was_refused_goes_on_as_it_came() -> None:
    planner = walked(TALK, EDITED + 2)
    planner.plan(call_of(TALK, EDITED + 2))
    heard(planner, EDITED + 2, SentAs.REFUSED)
    call = call_of(TALK, EDITED + 3)
    assert planner.plan(call).body is None
    assert planner.repair(call, was_edited=False).body is None


def test_counted_tokens_are_those_of_what_fits() -> None:
    planner = walked(TALK, EDITED + 2)
    call = call_of(TALK, EDITED + 1, "count_tokens")
    assert planner.repair(call, was_edited=False).body == planner.plan(call).body is not None
    assert planner.repair(call, was_edited=True).body is None


def test_of_what_cannot_be_read_nothing_is_known() -> None:
    planner = SessionPlanner(PlannerSettings())
    for body in (b"{", b'{"model": "m", "messages": []}'):
        call = GatewayCall(1, "messages", "u", "", "c", {}, 0.0, body)
        assert planner.repair(call, was_edited=False).body is None
