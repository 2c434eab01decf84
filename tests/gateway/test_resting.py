"""When planning costs more than it saves: plans that come too late, and thinking that is bound to what was sent."""

from __future__ import annotations

import json

import pytest

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.gateway.live_session import LiveSession
from context_gatekeeper.gateway.planner_settings import PlannerSettings
from context_gatekeeper.gateway.planning import SessionPlanner
from context_gatekeeper.gateway.port import Answer, GatewayCall, PlanReply, SentAs
from context_gatekeeper.gateway.warm_up import warm_up
from context_gatekeeper.wire import decode_request
from context_gatekeeper.wire.records import WireApi
from tests.gateway.histories import OLDER_MODEL, Growth, Size, grow
from tests.gateway.test_rendering import EAGER

LONG_TALK = Size((40, 42), (2000, 6000))
NEWEST_MODEL = "claude-opus-5-5"


def talk(model: str) -> Growth:
    return grow(WireApi.MESSAGES, 3, LONG_TALK, model=model, is_claude_code=True, ttl="5m")


def walk(growth: Growth, planner: SessionPlanner, late: frozenset[int] = frozenset()) -> list[PlanReply]:
    """All requests, one behind the other; the plans of some come too late."""
    replies = []
    for number in range(len(growth.requests)):
        call = GatewayCall(number, "messages", "u", "anthropic-5m", "c", {}, 20.0 * number, growth.raw(number))
        replies.append(planner.plan(call))
        planner.observe(
            Answer(number, 200, "application/json", b"{}", True, SentAs.OWN if number in late else SentAs.PLANNED)
        )
        while planner.has_idle_work:
            planner.idle()
    return replies


def edited(replies: list[PlanReply]) -> list[int]:
    return [number for number, reply in enumerate(replies) if reply.body is not None]


@pytest.fixture(scope="module")
def in_time() -> list[int]:
    """Requests of the long talk that are edited when every plan is in time."""
    return edited(walk(talk(OLDER_MODEL), SessionPlanner(PlannerSettings())))


def test_one_late_plan_changes_nothing_for_the_next(in_time: list[int]) -> None:
    late = in_time[1]
    again = edited(walk(talk(OLDER_MODEL), SessionPlanner(PlannerSettings()), frozenset({late})))
    assert late + 1 in in_time
    assert late + 1 in again


def test_after_two_late_plans_the_conversation_rests_until_plans_are_in_time_again(in_time: list[int]) -> None:
    late = in_time[1]
    replies = walk(talk(OLDER_MODEL), SessionPlanner(PlannerSettings()), frozenset({late, late + 1}))
    resting = range(late + 2, late + 10)
    assert not set(resting) & set(edited(replies))
    assert {replies[number].note for number in resting} == {"unchanged"}
    assert [number for number in edited(replies) if number > late + 20]


LEFT = PlannerSettings(edits_bound_thinking=False)


def test_a_conversation_whose_thinking_is_bound_is_edited_unless_the_settings_say_no() -> None:
    left = walk(talk(NEWEST_MODEL), SessionPlanner(LEFT))
    assert edited(left) == []
    assert left[-1].figures["prompt_tokens"] > 0  # planned all the same, for the report
    assert edited(walk(talk(NEWEST_MODEL), SessionPlanner(PlannerSettings())))


def test_an_edited_conversation_whose_thinking_is_bound_does_not_rest() -> None:
    """The client's own bytes would be refused each time."""
    in_time = edited(walk(talk(NEWEST_MODEL), SessionPlanner(PlannerSettings())))
    late = in_time[1]
    replies = walk(talk(NEWEST_MODEL), SessionPlanner(PlannerSettings()), frozenset({late, late + 1}))
    assert set(range(late + 2, late + 10)) <= set(edited(replies))


def test_tokens_of_a_conversation_that_is_left_alone_are_counted_as_it_came() -> None:
    planner, growth = SessionPlanner(LEFT), talk(NEWEST_MODEL)
    walk(growth, planner)
    call = GatewayCall(99, "count_tokens", "u", "anthropic-5m", "c", {}, 2000.0, growth.raw(len(growth.requests) - 1))
    assert planner.plan(call).body is None


def test_a_decision_that_nobody_had_time_for_is_made_while_one_waits() -> None:
    """Three requests go out as they are planned before; the fourth is decided in the request."""
    growth = talk(OLDER_MODEL)
    session = LiveSession("s", PRICES["anthropic-5m"], resident_tokens=1000, secret=b"s", params=EAGER)
    for number in range(len(growth.requests)):
        session.plan(decode_request(WireApi.MESSAGES, growth.raw(number)), now=20.0 * number)
    assert session.rewrites > 0


def test_a_conversation_with_a_giant_text_goes_on_as_it_came() -> None:
    planner = SessionPlanner(PlannerSettings(most_block_chars=5000))
    for length, sessions in ((5001, 0), (1000, 1)):
        body = {"model": OLDER_MODEL, "messages": [{"role": "user", "content": "x" * length}]}
        call = GatewayCall(length, "messages", "u", "", "c", {}, 0.0, json.dumps(body).encode())
        assert planner.plan(call).note == "unchanged"
        assert len(planner.status()["sessions"]) == sessions


def test_savings_are_told_once_and_only_of_what_was_sent() -> None:
    planner, left = SessionPlanner(PlannerSettings()), SessionPlanner(LEFT)
    replies = walk(talk(OLDER_MODEL), planner)
    (told,) = planner.status()["sessions"]
    assert told["saved_units"] == told["would_save_units"] != 0
    assert abs(sum(reply.figures["saved_units"] for reply in replies) - told["saved_units"]) <= len(replies)
    assert {reply.figures["saved_units"] for reply in walk(talk(NEWEST_MODEL), left)} == {0.0}
    (kept,) = left.status()["sessions"]
    assert kept["saved_units"] == 0 != kept["would_save_units"]


def test_warming_up_leaves_a_planner_that_plans() -> None:
    planner = SessionPlanner(PlannerSettings())
    warm_up(planner)
    told = json.loads(json.dumps(planner.status()))
    assert [one["calls"] for one in told["sessions"]] == [6]
    assert told["is_idle"]
