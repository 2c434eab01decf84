"""The gateway's own tool through a running gateway: the model calls it, and the client sees one answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.config_gateway import GatewayConfig
from context_gatekeeper.testing import FakeCall, FakeProvider, FakeReply, ReceivedRequest
from context_gatekeeper.wire.answers import read_answer
from context_gatekeeper.wire.own_tool import OWN_TOOL
from context_gatekeeper.wire.records import WireApi
from tests.entrypoints.gateway.running import (
    RawAnswer,
    Received,
    RunningGateway,
    UpstreamSide,
    ask,
    plain_answer,
    running_gateway,
    scripted_upstream,
)

PLANNER = "context_gatekeeper.gateway.planning:make_planner"
HEADERS = {"x-api-key": "test-key", "authorization": "Bearer test-key", "anthropic-version": "2023-06-01",
           "content-type": "application/json", "accept-encoding": "gzip"}  # fmt: skip
PATHS = {WireApi.MESSAGES: "/v1/messages", WireApi.CHAT: "/v1/chat/completions", WireApi.RESPONSES: "/v1/responses"}
PAGE = "The winch of pier seven holds 4,711 kilos. " * 40
EACH_API = pytest.mark.parametrize("api", list(WireApi))
EACH_WAY = pytest.mark.parametrize("is_stream", [True, False])
Item = dict[str, Any]


def said(api: WireApi, text: str) -> Item:
    return {"role": "user", "content": text} if api is not WireApi.RESPONSES else {
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}  # fmt: skip


def request_of(api: WireApi, talk: list[Item], *, is_stream: bool, model: str = "", **more: Any) -> bytes:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    body: Item = {"model": model or "gpt-5.6", "stream": is_stream, **more}
    if api is WireApi.MESSAGES:
        body |= {"model": model or "claude-opus-5-5", "max_tokens": 3000, "messages": talk,
                 "thinking": {"type": "enabled", "budget_tokens": 2000},
                 "tools": [{"name": "read", "input_schema": schema}]}  # fmt: skip
    elif api is WireApi.CHAT:
        body |= {"messages": talk, "tools": [{"type": "function", "function": {"name": "read", "parameters": schema}}]}
        body |= {"stream_options": {"include_usage": True}} if is_stream else {}
    else:
        body |= {"input": talk, "store": False, "include": ["reasoning.encrypted_content"],
                 "tools": [{"type": "function", "name": "read", "parameters": schema, "strict": False}]}  # fmt: skip
    return json.dumps(body).encode()


def answered_by(api: WireApi, got: RawAnswer) -> list[Item]:
    """The items that a client sends back for an answer."""
    if not got.header(
        "content-type",
    ).startswith("text/event-stream"):  # type: ignore[union-attr]
        body = json.loads(got.body)
    elif api is WireApi.RESPONSES:
        [body] = [event["response"] for event in events(got) if event.get("type") == "response.completed"]
    else:
        pytest.fail("whole answers are sent back")
    if api is WireApi.MESSAGES:
        return [{"role": "assistant", "content": body["content"]}]
    if api is WireApi.CHAT:
        return [body["choices"][0]["message"]]
    return list(body["output"])


def events(got: RawAnswer) -> list[Item]:
    lines = [line[6:] for line in got.body.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def result_of(api: WireApi, talk: list[Item], text: str) -> Item:
    """The client's result for its own call in the newest answer."""
    if api is WireApi.MESSAGES:
        [use] = [block for block in talk[-1]["content"] if block["type"] == "tool_use"]
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": text}]}
    if api is WireApi.CHAT:
        [call] = talk[-1]["tool_calls"]
        return {"role": "tool", "tool_call_id": call["id"], "content": text}
    [call] = [item for item in talk if item.get("type") == "function_call"][-1:]
    return {"type": "function_call_output", "call_id": call["call_id"], "output": text}


def send(gateway: RunningGateway, api: WireApi, body: bytes, **headers: str) -> RawAnswer:
    return ask(gateway.port, PATHS[api], body, {**HEADERS, **headers})


class Script:
    """Answers one by one; a reply is used up by each request."""

    def __init__(self) -> None:
        self.replies: list[FakeReply] = []

    def __call__(self, _: ReceivedRequest) -> FakeReply:
        return self.replies.pop(0)


@pytest.fixture(scope="module")
def only_script() -> Script:
    return Script()


@pytest.fixture(scope="module")
def only_provider(only_script: Script) -> Iterator[FakeProvider]:
    with FakeProvider(only_script) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(only_provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    with running_gateway(
        only_provider.url,
        folder=tmp_path_factory.mktemp("gateway"),
        planner=PLANNER,
        planner_settings={"own_tool": True},
        own_tool=True,
    ) as running:
        yield running


@pytest.fixture
def script(only_script: Script) -> Script:
    only_script.replies = []
    return only_script


@dataclass(slots=True)
class Seen:
    """What the provider has got since the test began."""

    provider: FakeProvider
    first: int
    refused: int

    @property
    def requests(self) -> list[ReceivedRequest]:
        return list(self.provider.requests[self.first :])

    @property
    def refusals(self) -> list[object]:
        return list(self.provider.refusals[self.refused :])


@pytest.fixture
def provider(only_provider: FakeProvider) -> Seen:
    return Seen(only_provider, len(only_provider.requests), len(only_provider.refusals))


def expand(handle: str) -> FakeCall:
    return FakeCall(OWN_TOOL, {"handle": handle})


@EACH_API
@EACH_WAY
def test_the_model_gets_the_page_and_the_client_one_answer(
    api: WireApi, is_stream: bool, script: Script, provider: Seen, gateway: RunningGateway
) -> None:
    script.replies = [
        FakeReply("I look.", thinking="hm", calls=[expand("p0")]),
        FakeReply("It holds 4,711.", thinking="so", calls=[FakeCall("read", {"path": "a"})]),
    ]
    calls = gateway.count("cgk_own_calls_total")
    got = send(gateway, api, request_of(api, [said(api, PAGE)], is_stream=is_stream))
    assert (got.status, got.is_whole) == (200, True)
    assert OWN_TOOL.encode() not in got.body
    read = read_answer(api, got.header("content-type") or "", got.body)
    assert read.is_complete
    told = [(block.kind.value, block.name or block.text) for block in read.message.blocks]
    assert [text for kind, text in told if kind == "text"] in (
        ["I look.", "It holds 4,711."],
        ["I look.It holds 4,711."],
    )
    assert [text for kind, text in told if kind == "tool_call"] == ["read"]
    first, second = provider.requests
    assert OWN_TOOL in json.dumps(first.body["tools"][-1])
    assert second.body["tools"] == first.body["tools"]
    assert second.raw.count(PAGE.strip().encode()) == 2, "the client's own text, and the tool's result"
    assert provider.refusals == []
    assert gateway.count("cgk_own_calls_total") == calls + 1


@EACH_API
@EACH_WAY
def test_the_client_hears_nothing_of_a_tool_that_is_not_called(
    api: WireApi, is_stream: bool, script: Script, provider: Seen, gateway: RunningGateway
) -> None:
    """The Responses API repeats the tools of the request, ours among them."""
    script.replies = [FakeReply("Done.", calls=(FakeCall("read", {"path": "a"}),))]
    body = request_of(api, [said(api, "Go.")], is_stream=is_stream)
    got = send(gateway, api, body)
    assert (got.status, got.is_whole) == (200, True)
    [request] = provider.requests
    assert OWN_TOOL in json.dumps(request.body["tools"])
    assert OWN_TOOL.encode() not in got.body
    answers = [event.get("response", {}) for event in events(got)] if is_stream else [json.loads(got.body)]
    repeated = [answer["tools"] for answer in answers if "tools" in answer]
    assert repeated == [json.loads(body)["tools"]] * len(repeated)
    assert bool(repeated) is (api is WireApi.RESPONSES)
    assert read_answer(api, got.header("content-type") or "", got.body).is_complete


@EACH_API
@pytest.mark.parametrize("model", ["", "claude-opus-4-8"])
def test_a_conversation_goes_on_behind_such_an_answer(
    api: WireApi, model: str, script: Script, provider: Seen, gateway: RunningGateway
) -> None:
    """The client sends back one answer, without the call that it does not know; nothing is refused."""
    if model and api is not WireApi.MESSAGES:
        model = ""
    talk, calls = [said(api, PAGE)], gateway.count("cgk_own_calls_total")
    for number in range(4):
        script.replies = [
            FakeReply("I look.", thinking="hm", calls=[expand("p0")]),
            FakeReply("", thinking="again", calls=[expand("p999")]),
            FakeReply("Now this.", thinking="so", calls=[FakeCall("read", {"path": f"{number}"})]),
        ]
        got = send(gateway, api, request_of(api, talk, is_stream=False, model=model))
        assert got.status == 200, got.body
        talk += answered_by(api, got)
        talk.append(result_of(api, talk, f"{number} is fine"))
        gateway.run(gateway.gateway.planner.status(30.0))
    assert provider.refusals == []
    assert gateway.count("cgk_second_tries_total", sent="plan") == 0
    assert b"no such page" in provider.requests[2].raw
    assert gateway.count("cgk_own_calls_total") == calls + 8


@EACH_API
@EACH_WAY
def test_beside_calls_of_the_clients_ours_are_left_out_and_the_page_comes_with_the_next_request(
    api: WireApi, is_stream: bool, script: Script, provider: Seen, gateway: RunningGateway
) -> None:
    script.replies = [FakeReply("Both.", calls=[expand("p0"), FakeCall("read", {"path": "a"})]), FakeReply("Done.")]
    got = send(gateway, api, request_of(api, [said(api, PAGE)], is_stream=is_stream))
    read = read_answer(api, got.header("content-type") or "", got.body)
    assert [block.name for block in read.message.blocks if block.kind.value == "tool_call"] == ["read"]
    assert OWN_TOOL.encode() not in got.body
    assert len(provider.requests) == 1
    assert got.is_whole


@EACH_API
def test_a_model_that_calls_nothing_else_for_ever_is_stopped(
    api: WireApi, script: Script, provider: Seen, gateway: RunningGateway
) -> None:
    script.replies = [FakeReply(f"{number}", calls=[expand("p0")]) for number in range(20)]
    got = send(gateway, api, request_of(api, [said(api, PAGE)], is_stream=True))
    read = read_answer(api, got.header("content-type") or "", got.body)
    assert (got.is_whole, read.is_complete) == (True, True)
    assert [block for block in read.message.blocks if block.kind.value == "tool_call"] == []
    assert len(provider.requests) == 9


@EACH_API
def test_without_tools_in_shadow_and_when_off_nothing_is_declared(
    api: WireApi, script: Script, provider: Seen, gateway: RunningGateway
) -> None:
    script.replies = [FakeReply("ok")] * 3
    body = request_of(api, [said(api, "Go.")], is_stream=True)
    plain = json.dumps({key: value for key, value in json.loads(body).items() if key != "tools"}).encode()
    send(gateway, api, plain)
    send(gateway, api, body, **{"x-gatekeeper": "shadow"})
    send(gateway, api, body, **{"x-gatekeeper": "off"})
    assert [request.raw for request in provider.requests] == [plain, body, body]


def test_counted_tokens_are_those_with_the_tool(provider: Seen, gateway: RunningGateway) -> None:
    body = request_of(WireApi.MESSAGES, [said(WireApi.MESSAGES, "Go.")], is_stream=False)
    counted = [json.loads(ask(port, "/v1/messages/count_tokens", body, HEADERS).body)["input_tokens"]
               for port in (gateway.port, int(provider.provider.url.rsplit(":", 1)[1]))]  # fmt: skip
    assert 50 < counted[0] - counted[1] < 150


@pytest.mark.parametrize("ending", ["error", "reset", "gone", "other"])
def test_where_it_cannot_go_on_the_client_gets_the_end_of_what_came(tmp_path: Path, ending: str) -> None:
    call = {"type": "message", "id": "m", "role": "assistant", "model": "c", "stop_reason": "tool_use",
            "content": [{"type": "text", "text": "I look."},
                        {"type": "tool_use", "id": "t", "name": OWN_TOOL, "input": {"handle": "p1"}}],
            "usage": {"input_tokens": 5, "output_tokens": 5}}  # fmt: skip

    async def answer(request: Received, side: UpstreamSide) -> None:
        if b"tool_result" not in request.body:
            await side.send(plain_answer(json.dumps(call).encode()))
        elif ending == "error":
            await side.send(plain_answer(b"{}", "529 Overloaded"))
        elif ending == "other":
            await side.send(plain_answer(b"data: {}\n\n", headers={"content-type": "text/event-stream"}))
        elif ending == "reset":
            side.reset()
        else:
            side.writer.close()

    with (
        scripted_upstream(answer) as upstream,
        running_gateway(
            upstream.url, folder=tmp_path, planner=PLANNER, planner_settings={"own_tool": True}, own_tool=True
        ) as gateway,
    ):
        got = send(gateway, WireApi.MESSAGES, request_of(WireApi.MESSAGES, [said(WireApi.MESSAGES, PAGE)],
                                                         is_stream=False))  # fmt: skip
    told = json.loads(got.body)
    assert (got.status, told["stop_reason"], told["content"]) == (200, "end_turn", call["content"][:1])  # type: ignore[index]


def test_a_planner_that_knows_nothing_gives_a_text_all_the_same(tmp_path: Path, script: Script, provider: Seen) -> None:
    script.replies = [FakeReply("", calls=[expand("p0")]), FakeReply("Well.")]
    with running_gateway(provider.provider.url, folder=tmp_path, planner="no.such:thing", own_tool=True) as gateway:
        got = send(gateway, WireApi.CHAT, request_of(WireApi.CHAT, [said(WireApi.CHAT, PAGE)], is_stream=False))
    assert json.loads(got.body)["choices"][0]["message"]["content"] == "Well."
    assert b"cannot be fetched" in provider.requests[-1].raw


@pytest.mark.parametrize("fault", ["raise", "sleep"])
def test_a_planner_that_fails_then_gives_a_text_all_the_same(
    tmp_path: Path, script: Script, provider: Seen, fault: str
) -> None:
    script.replies = [FakeReply("", calls=[expand("p0")]), FakeReply("Well.")]
    settings = {"fetch_fault": fault}
    with running_gateway(
        provider.provider.url,
        folder=tmp_path,
        planner_settings=settings,
        own_tool=True,
        repair_seconds=0.3,
        answer_seconds=5.0,
    ) as gateway:
        got = send(gateway, WireApi.CHAT, request_of(WireApi.CHAT, [said(WireApi.CHAT, PAGE)], is_stream=False))
    assert json.loads(got.body)["choices"][0]["message"]["content"] == "Well."
    assert b"cannot be fetched" in provider.requests[-1].raw


def test_it_is_off_unless_the_settings_say_so() -> None:
    assert not GatewayConfig().own_tool
