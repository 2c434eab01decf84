"""The setting ``native``: what is asked of the provider in a conversation, and what rests then."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.gateway.planner_settings import PlannerSettings
from context_gatekeeper.gateway.planning import SessionPlanner
from context_gatekeeper.gateway.port import Answer, GatewayCall, PlanReply, SentAs
from context_gatekeeper.types import NativeMode
from context_gatekeeper.wire.native import CONTEXT_BETA
from context_gatekeeper.wire.records import WireApi
from tests.gateway.histories import OLDER_MODEL, Growth, Size, grow
from tests.gateway.test_rendering import EAGER

BOUND = "claude-opus-5-5"
TOOLS = [{"name": "Read", "input_schema": {"type": "object"}}]
CLEARED = {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 3, "cleared_input_tokens": 9}]}


def talk(model: str) -> Growth:
    return grow(WireApi.MESSAGES, 3, Size((12, 14), (200, 1500)), model=model, is_claude_code=False)


def body_of(growth: Growth, number: int, **members: Any) -> bytes:
    return json.dumps({**growth.requests[number], "tools": TOOLS, **members}).encode()


class Client:
    def __init__(self, native: str, **settings: Any) -> None:
        self.planner = SessionPlanner(PlannerSettings(native=NativeMode(native), params=EAGER, **settings))
        self.calls = 0

    def ask(self, body: bytes, route: str = "messages", *, is_own_api: bool = True, shadow: bool = False) -> PlanReply:
        self.calls += 1
        call = GatewayCall(self.calls, route, "u", "anthropic-5m", "c", {"session-id": "s"}, 20.0 * self.calls, body,
                           shadow, is_own_api)  # fmt: skip
        return self.planner.plan(call)

    def hear(self, told: dict[str, Any] | None = None, *, is_refused: bool = False) -> None:
        usage = {"input_tokens": 900_000, "output_tokens": 5}
        content = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "ok"}],
                   "stop_reason": "end_turn", "usage": usage, **(told or {})}  # fmt: skip
        sent_as = SentAs.REFUSED if is_refused else SentAs.PLANNED
        answer = Answer(self.calls, 200, "application/json", json.dumps(content).encode(), True, sent_as)
        self.planner.observe(answer)
        while self.planner.has_idle_work:
            self.planner.idle()


def asked(reply: PlanReply) -> Any:
    return json.loads(reply.body or b"{}").get("context_management")


def test_where_ours_cannot_act_the_provider_clears_and_ours_rests() -> None:
    growth, client = talk(BOUND), Client("auto")
    told = set()
    for number in range(len(growth.requests)):
        body = body_of(growth, number)
        reply = client.ask(body)
        assert reply.body is not None
        assert json.loads(reply.body) == {**json.loads(body), "context_management": asked(reply)}
        assert reply.betas == (CONTEXT_BETA,)
        assert "clear_tools" in reply.figures["native"]
        assert client.ask(body, "count_tokens").body == reply.body
        told.add(json.dumps(asked(reply)))
        client.hear()
    assert len(told) == 1, "what is asked must stay, or the provider's cache breaks"
    assert client.planner.status()["sessions"][0]["saved_units"] == 0


def test_elsewhere_ours_goes_on() -> None:
    growth, edited = talk(OLDER_MODEL), 0
    client = Client("auto")
    for number in range(len(growth.requests)):
        reply = client.ask(body_of(growth, number))
        assert reply.body is not None
        edited += json.loads(reply.body)["messages"] != growth.requests[number]["messages"]
        assert reply.figures["native"] == ["keep_thinking"], "thinking that the provider keeps breaks no cache"
        client.hear()
    assert edited


def test_where_native_is_preferred_ours_rests_whatever_the_model() -> None:
    reply = Client("prefer").ask(body_of(talk(OLDER_MODEL), 5))
    assert "clear_tools" in reply.figures["native"]


@pytest.mark.parametrize(("native", "is_own_api"), [("off", True), ("auto", False)])
def test_nothing_is_asked_when_it_is_off_and_of_other_services(native: str, is_own_api: bool) -> None:
    reply = Client(native).ask(body_of(talk(BOUND), 2), is_own_api=is_own_api)
    assert (asked(reply), reply.betas) == (None, ())
    assert "native" not in reply.figures


def test_shadow_reports_what_would_be_asked() -> None:
    reply = Client("auto").ask(body_of(talk(BOUND), 2), shadow=True)
    assert (reply.body, reply.note) == (None, "shadow")
    assert "clear_tools" in reply.figures["native"]


def test_a_long_history_that_is_read_later_is_asked_for_at_once() -> None:
    reply = Client("auto", most_unread_chars=100).ask(body_of(talk(BOUND), 5))
    assert asked(reply) is not None


def test_a_provider_that_refuses_is_asked_no_more_and_ours_goes_on() -> None:
    growth, client = talk(BOUND), Client("auto")
    assert asked(client.ask(body_of(growth, 0)))
    client.hear(is_refused=True)
    replies = []
    for number in range(1, len(growth.requests)):
        replies.append(client.ask(body_of(growth, number)))
        client.hear()
    assert {json.dumps(asked(reply)) for reply in replies} == {"null"}
    assert any(reply.body for reply in replies), "ours goes on"


def test_a_repair_has_nothing_for_what_the_provider_clears() -> None:
    client, body = Client("auto"), body_of(talk(BOUND), 5)
    client.ask(body)
    call = GatewayCall(1, "messages", "u", "", "c", {"session-id": "s"}, 20.0, body, is_own_api=True)
    assert client.planner.repair(call, was_edited=True).body is None


def test_usage_of_a_call_that_the_provider_cleared_is_not_taken_for_ours() -> None:
    growth, spent = talk(OLDER_MODEL), []
    for told in ({}, {"context_management": CLEARED}):
        client = Client("off")
        for number in range(4):
            client.ask(body_of(growth, number))
            client.hear(told)
        spent.append(client.planner.status()["sessions"][0]["would_save_units"])
    assert spent[0] != spent[1]


def test_an_unknown_mode_is_an_error() -> None:
    with pytest.raises(ConfigError, match="there is no such mode"):
        PlannerSettings.from_json({"native": "always"})
    assert PlannerSettings.from_json({"native": "prefer"}).native is NativeMode.PREFER
