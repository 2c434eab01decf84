"""The planner behind the gateway: which conversation a request goes on, what is sent for it, what is heard of it."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.gateway.live_session import NO_PAGE, LiveSession, PlannedRequest
from context_gatekeeper.gateway.planner_settings import PlannerSettings
from context_gatekeeper.gateway.planning import SessionPlanner, make_planner
from context_gatekeeper.gateway.port import Answer, GatewayCall, PlanReply, SentAs
from context_gatekeeper.wire.records import PartKey, RequestEdits, WireApi, WireRequest
from tests.gateway.histories import OLDER_MODEL, Growth, Size, grow
from tests.gateway.request_checks import faults_of, sent_blocks
from tests.gateway.test_rendering import EAGER

MIDDLE = Size((12, 14), (200, 1500))
ROUTES = {WireApi.MESSAGES: "messages", WireApi.CHAT: "chat", WireApi.RESPONSES: "responses"}
HEADERS = {"session-id": "s-1"}


class Client:
    """Asks one planner, and lets it hear answers."""

    def __init__(self, planner: SessionPlanner | None = None, **settings: Any) -> None:
        self.planner = planner or SessionPlanner(PlannerSettings(params=EAGER, **settings))
        self.calls = 0

    def ask(self, body: bytes, route: str = "messages", **fields: Any) -> PlanReply:
        self.calls += 1
        given: dict[str, Any] = {"upstream": "u", "prices": "anthropic-5m", "credential": "c" * 32, "headers": HEADERS,
                                 "now": float(self.calls), **fields}  # fmt: skip
        return self.planner.plan(GatewayCall(self.calls, route, body=body, **given))

    def hear(
        self, content: bytes = b"{}", *, is_planned: bool = True, status: int = 200, complete: bool = True
    ) -> None:
        sent_as = SentAs.PLANNED if is_planned else SentAs.OWN
        answer = Answer(self.calls, status, "application/json", content, complete, sent_as)
        self.planner.observe(answer)
        while self.planner.has_idle_work:
            self.planner.idle()

    def sessions(self) -> list[dict[str, Any]]:
        return list(self.planner.status()["sessions"])


def talk(*texts: Any, **members: Any) -> bytes:
    told = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    return json.dumps({"model": OLDER_MODEL, "messages": told, **members}).encode()


def a_growth(api: WireApi = WireApi.MESSAGES, seed: int = 1) -> Growth:
    options = {"model": OLDER_MODEL, "is_claude_code": True, "ttl": "5m"} if api is WireApi.MESSAGES else {}
    return grow(api, seed, MIDDLE, **options)


@pytest.mark.parametrize("api", list(WireApi))
def test_a_growing_conversation_is_one_session_and_stays_valid(api: WireApi) -> None:
    growth, client = a_growth(api), Client()
    edited = 0
    for number in range(len(growth.requests)):
        reply = client.ask(growth.raw(number), ROUTES[api])
        assert reply.note in ("plan", "unchanged")
        if reply.body is not None:
            edited += 1
            assert faults_of(api, growth.requests[number], json.loads(reply.body)) == []
        assert client.ask(growth.raw(number), ROUTES[api]).body == reply.body  # a retry
        client.hear()
    assert edited
    [session] = client.sessions()
    assert session["calls"] == len(growth.requests)
    assert client.planner.status()["counts"] == {}


def test_what_cannot_be_read_goes_on_as_it_came() -> None:
    client = Client()
    for body in (b"", b"{", b"[]", b'{"messages": 3}', b"\xff"):
        reply = client.ask(body)
        assert (reply.body, reply.note) == (None, "bypass")
    assert client.planner.status()["counts"] == {"unreadable": 5}


def test_a_conversation_that_the_provider_keeps_goes_on_as_it_came() -> None:
    body = json.dumps({"model": "g", "input": "Go on.", "previous_response_id": "r"}).encode()
    reply = Client().ask(body, "responses")
    assert (reply.body, reply.note) == (None, "unchanged")
    assert Client().ask(b'{"model": "m", "messages": []}').note == "unchanged"


def test_an_unknown_route_is_an_error() -> None:
    with pytest.raises(KeyError):
        Client().ask(talk("Go."), "embeddings")


def test_sub_agents_with_the_same_session_id_stay_apart() -> None:
    client = Client()
    client.ask(talk("Go.", system="main"))
    client.ask(talk("Look it up.", system="sub-agent"))
    client.ask(talk("Go.", "Yes.", "On.", system="main"))
    assert sorted(session["calls"] for session in client.sessions()) == [1, 2]


def test_chats_with_one_system_text_stay_apart_and_a_growing_one_is_one() -> None:
    client, system = Client(), "s" * 4000
    for texts in (("first",), ("second",), ("first", "a", "b"), ("second", "c", "d")):
        client.ask(talk(*texts, system=system), headers={})
    assert [session["calls"] for session in client.sessions()] == [2, 2]


def test_two_credentials_never_meet() -> None:
    client = Client()
    client.ask(talk("Go."), credential="1" * 32)
    client.ask(talk("Go.", "Yes.", "On."), credential="2" * 32)
    assert len({session["session"] for session in client.sessions()}) == 2


def test_a_rewind_is_a_branch_with_a_name_of_its_own() -> None:
    client = Client()
    client.ask(talk("Go.", "Yes.", "On."))
    client.ask(talk("Go.", "Yes.", "No, back."))
    client.ask(talk("Go.", "Yes.", "On.", "Fine.", "Next."))
    assert [session["calls"] for session in client.sessions()] == [1, 2]
    assert len({session["session"] for session in client.sessions()}) == 2


def test_a_compaction_is_a_branch_and_later_the_same_name() -> None:
    names = []
    for _ in range(2):
        client = Client()
        client.ask(talk("Go.", "Yes.", "On."))
        client.ask(talk("Summary of what was."))
        names.append([session["session"] for session in client.sessions()])
    assert names[0] == names[1]
    client = Client()
    client.ask(talk("Summary of what was.", "Yes.", "On."))
    assert [session["session"] for session in client.sessions()] == names[0][1:]


def test_the_oldest_sessions_are_forgotten_by_count_and_by_characters() -> None:
    for client in (Client(most_sessions=2), Client(most_chars=30_000)):
        for number in range(5):
            client.ask(talk("x" * 12_000), headers={"session-id": f"s{number}"})
        assert [session["session"][:2] for session in client.sessions()] == ["s3", "s4"]


def test_of_one_key_so_many_branches_are_kept() -> None:
    client = Client()
    for number in range(12):
        client.ask(talk("Go.", "Yes.", f"Way {number}."))
    assert len(client.sessions()) == 8


def test_shadow_reports_and_changes_nothing() -> None:
    growth, client = a_growth(), Client()
    for number in range(len(growth.requests)):
        reply = client.ask(growth.raw(number), shadow=True)
        assert (reply.body, reply.note) == (None, "shadow")
        client.hear()
    assert client.sessions()[0]["epochs"]
    assert client.ask(growth.raw(number), "count_tokens", shadow=True).note == "shadow"


def test_tokens_are_counted_of_what_would_be_sent() -> None:
    growth, client = a_growth(), Client()
    assert client.ask(growth.raw(0), "count_tokens").note == "unchanged"
    for number in range(len(growth.requests)):
        reply = client.ask(growth.raw(number))
        counted = client.ask(growth.raw(number), "count_tokens")
        told = [json.loads(body or growth.raw(number)) for body in (reply.body, counted.body)]
        assert sent_blocks(WireApi.MESSAGES, told[0]) == sent_blocks(WireApi.MESSAGES, told[1])
        client.hear()
    assert counted.note == "plan"


class OddSession(LiveSession):
    """Answers a second plan with edits that cannot be sent, or not at all."""

    def __init__(self, *args: Any, edits: RequestEdits | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._odd = edits

    def plan(self, request: WireRequest, *, now: float) -> PlannedRequest:
        planned = super().plan(request, now=now)
        if self.calls == 1:
            return planned
        if self._odd is None:
            raise ZeroDivisionError
        return planned._replace(edits=self._odd)


def odd_client(edits: RequestEdits | None) -> Client:
    client = Client(SessionPlanner(PlannerSettings(params=EAGER), partial(OddSession, edits=edits)))
    client.ask(PAIR_BEGIN)
    return client


USE = {"type": "tool_use", "id": "t", "name": "Read", "input": {"path": "/a"}}
GAVE = {"type": "tool_result", "tool_use_id": "t", "content": "text"}
PAIR_BEGIN = talk("Go.")
PAIR = talk("Go.", [USE], [GAVE])


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param(RequestEdits(dropped=frozenset({PartKey(1, 0)})), id="a result without its call"),
        pytest.param(RequestEdits(texts={PartKey(9, 9): "x"}), id="a part that is not there"),
    ],
)
def test_a_plan_that_its_api_would_refuse_or_that_cannot_be_written_is_not_sent(edits: RequestEdits) -> None:
    client = odd_client(edits)
    reply = client.ask(PAIR)
    assert (reply.body, reply.note) == (None, "unchanged")
    assert client.planner.status()["counts"] == {"invalid": 1}


def test_a_session_that_broke_is_begun_anew() -> None:
    client = odd_client(None)
    with pytest.raises(ZeroDivisionError):
        client.ask(PAIR)
    assert client.sessions() == []
    assert client.ask(PAIR).note in ("plan", "unchanged")
    assert client.sessions()[0]["calls"] == 1


def usage(api: WireApi, prompt: int) -> bytes:
    told = {
        WireApi.MESSAGES: {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "ok"}],
                           "stop_reason": "end_turn", "usage": {"input_tokens": prompt, "output_tokens": 5}},
        WireApi.CHAT: {"choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
                       "usage": {"prompt_tokens": prompt, "completion_tokens": 5}},
        WireApi.RESPONSES: {"status": "completed", "output": [], "usage": {"input_tokens": prompt, "output_tokens": 5}},
    }  # fmt: skip
    return json.dumps(told[api]).encode()


@pytest.mark.parametrize("api", list(WireApi))
def test_usage_feeds_the_ledger(api: WireApi) -> None:
    """All billed at the price of a write is dearer than expected; what was not edited would have cost the same."""
    growth, told = a_growth(api), []
    for is_heard in (False, True):
        client = Client(SessionPlanner(PlannerSettings()))
        for number in range(len(growth.requests)):
            reply = client.ask(growth.raw(number), ROUTES[api])
            client.hear(usage(api, reply.figures["prompt_tokens"]) if is_heard else b"{}")
        told.append(client.sessions()[0])
    assert told[1]["append_only_units"] > told[0]["append_only_units"]
    assert told[1]["would_save_units"] == told[0]["would_save_units"]


def test_answers_of_failures_and_of_unknown_calls_are_passed_over() -> None:
    client = Client()
    client.ask(talk("Go."))
    client.hear(usage(WireApi.MESSAGES, 10**6), status=529)
    client.hear(usage(WireApi.MESSAGES, 10**6))  # the call is closed
    assert client.sessions()[0]["saved_units"] == 0


def test_what_was_not_sent_as_planned_is_not_billed() -> None:
    client = Client()
    client.ask(talk("Go."))
    client.hear(usage(WireApi.MESSAGES, 10**6), is_planned=False)
    assert client.sessions()[0]["saved_units"] == 0


def test_a_session_whose_ledger_is_negative_is_append_only_until_it_has_come_in_again() -> None:
    """Bills dearer than planned eat what was saved: nothing is rewritten until it has come in again."""
    strict = SessionPlanner(PlannerSettings(secret=bytes(16), params=replace(EAGER, overdraft=0.0)))
    growth, client = grow(WireApi.MESSAGES, 2, Size((60, 62), (200, 1500)), model=OLDER_MODEL), Client(strict)
    in_debt, epochs_in_debt, saved, epochs = 0, 0, 0, 0
    for number in range(len(growth.requests)):
        is_in_debt = saved < 0
        reply = client.ask(growth.raw(number), now=20.0 * number)
        client.hear(usage(WireApi.MESSAGES, reply.figures["prompt_tokens"]) if 2 <= number < 8 else b"{}")
        [session] = client.sessions()
        if is_in_debt and session["saved_units"] < 0:
            in_debt += 1
            assert session["epochs"] == epochs, number
            epochs_in_debt = session["epochs"]
        saved, epochs = session["saved_units"], session["epochs"]
    assert in_debt
    assert saved > 0
    assert epochs > epochs_in_debt


def test_a_gateway_that_starts_in_the_middle_plans_from_the_request_alone() -> None:
    growth = a_growth()
    last = len(growth.requests) - 1
    reply = Client().ask(growth.raw(last))
    assert reply.body is not None
    assert faults_of(WireApi.MESSAGES, growth.requests[last], json.loads(reply.body)) == []


@pytest.mark.parametrize(
    ("prices", "marks", "api", "expected"),
    [
        ("cheap-read", None, "messages", "cheap-read"),
        ("", None, "messages", "none"),
        ("", {"type": "ephemeral"}, "messages", "anthropic-5m"),
        ("", {"type": "ephemeral", "ttl": "1h"}, "messages", "anthropic-1h"),
        ("", None, "chat", "openai"),
        ("nonsense", None, "chat", "openai"),
    ],
)
def test_prices_are_the_upstreams_else_the_providers(prices: str, marks: Any, api: str, expected: str) -> None:
    client = Client()
    client.ask(talk("Go.", **({"cache_control": marks} if marks else {})), api, prices=prices)
    [conversation] = client.planner._conversations  # noqa: SLF001 - what a session reckons with is told nowhere
    assert conversation.session.prices.name == expected


def test_settings_are_read_and_unknown_ones_left_to_others() -> None:
    settings = PlannerSettings.from_json({"policy": "frugal", "port": 1, "store": None})
    assert settings.policy == "frugal"
    with pytest.raises(ConfigError, match="there is none of that name"):
        PlannerSettings.from_json({"policy": "wild"})
    for odd in ({"edits_bound_thinking": "no"}, {"most_sessions": "many"}, {"store": 3}, {"owner": True}):
        with pytest.raises(ConfigError, match="it is no"):
            PlannerSettings.from_json(odd)
    assert make_planner({"policy": "ours"}).status()["sessions"] == []


def test_names_reach_a_shell_as_one_word() -> None:
    growth, client = a_growth(), Client(expand_command="cgk expand --session")
    body = client.ask(growth.raw(len(growth.requests) - 1), headers={"session-id": "$(rm x)"}).body
    assert body is not None
    assert b"cgk expand --session" in body
    assert b"$(rm" not in body


def test_goals_reach_agents_and_no_side_question(tmp_path: Path) -> None:
    with AgentPool(str(tmp_path / "p.db")) as pool:
        pool.set_goal("ship the export of the bookshop")
    client = Client(store=str(tmp_path / "p.db"))
    assert client.planner._standing is not None  # noqa: SLF001 - read in a thread
    assert client.planner._standing.first_read.wait(20)  # noqa: SLF001
    tools = [{"name": "Read", "input_schema": {"type": "object"}}]
    assert b"ship the export of the bookshop" in (client.ask(talk("Go.", tools=tools)).body or b"")
    assert client.ask(talk("Name it."), headers={}).body is None
    client.hear()
    client.planner.close()


def test_the_planner_logs_nothing(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    growth, client = a_growth(), Client()
    with caplog.at_level(logging.DEBUG):
        client.ask(growth.raw(len(growth.requests) - 1))
        client.ask(b"{sk-canary")
        client.hear(b"sk-canary")
        client.planner.close()
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_calls_that_are_never_answered_are_forgotten() -> None:
    client = Client(most_open_calls=2)
    for number in range(4):
        client.ask(talk(f"Go {number}."), headers={"session-id": f"{number}"})
    assert list(client.planner._open) == [3, 4]  # noqa: SLF001 - a bound of memory


def test_pages_are_fetched_for_open_calls_alone() -> None:
    client = Client()
    client.ask(talk("Go and look."))
    assert client.planner.fetch(client.calls, ["p0", "p9"]) == ["Go and look.", NO_PAGE]
    assert client.planner.fetch(99, ["p0"]) == [NO_PAGE]
    client.hear()
    assert client.planner.fetch(client.calls, ["p0"]) == [NO_PAGE]
