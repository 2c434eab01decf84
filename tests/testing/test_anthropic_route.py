"""The provider speaks Anthropic Messages."""

from __future__ import annotations

from typing import Any

import pytest

from context_gatekeeper.testing import FakeCall, FakeProvider, FakeReply
from tests.testing.asking import BOUND, KEYS, MESSAGES, OPUS, Received, ask, said, send

ADAPTIVE = {"type": "adaptive"}
LIST = FakeCall("ls", {"path": "/tmp", "名": "é"})
TWO_CALLS = FakeReply("I look.", thinking="First a list.", calls=(LIST, FakeCall("pwd", id="toolu_mine")))
BINDING_BETA = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}


def reassembled(answer: Received) -> list[dict[str, Any]]:
    """Content blocks of a streamed answer, put together as clients do."""
    import json

    blocks: list[dict[str, Any]] = []
    texts: list[str] = []
    for event in answer.events:
        if event["type"] == "content_block_start":
            blocks.append(event["content_block"])
            texts.append("")
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            if delta["type"] == "input_json_delta":
                texts[-1] += delta["partial_json"]
            else:
                key = delta["type"].removesuffix("_delta")
                blocks[-1][key] += delta[key]
        elif event["type"] == "content_block_stop" and texts[-1]:
            blocks[-1]["input"] = json.loads(texts[-1])
    return blocks


def test_the_whole_answer_has_thinking_text_and_calls() -> None:
    with FakeProvider([TWO_CALLS]) as provider:
        answer = send(provider, MESSAGES, ask(thinking=ADAPTIVE))
    body = answer.json
    assert answer.status == 200
    assert [block["type"] for block in body["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert body["content"][2]["input"] == LIST.arguments
    assert body["content"][3] == {"type": "tool_use", "id": "toolu_mine", "name": "pwd", "input": {}}
    assert (body["stop_reason"], body["role"], body["model"]) == ("tool_use", "assistant", OPUS)
    assert body["usage"]["input_tokens"] == provider.requests[0].usage.plain > 0
    assert body["usage"]["output_tokens"] == provider.requests[0].usage.output > 0
    assert answer.headers["request-id"] == "req_000001"


def test_the_streamed_answer_is_the_same_in_pieces() -> None:
    with FakeProvider([TWO_CALLS, TWO_CALLS]) as provider:
        whole = send(provider, MESSAGES, ask(thinking=ADAPTIVE)).json
        stream = send(provider, MESSAGES, ask(thinking=ADAPTIVE, stream=True))
    blocks = reassembled(stream)
    assert [{**block, "id": ""} for block in blocks] == [{**block, "id": ""} for block in whole["content"]]
    assert stream.kinds[:3] == ["message_start", "ping", "content_block_start"]
    assert stream.kinds[-2:] == ["message_delta", "message_stop"]
    closing = stream.events[-2]
    assert closing["delta"]["stop_reason"] == "tool_use"
    assert closing["usage"]["output_tokens"] == whole["usage"]["output_tokens"]
    assert stream.headers["content-type"].startswith("text/event-stream")
    names = [line for line in stream.content.decode().splitlines() if line.startswith("event: ")]
    assert names[0] == "event: message_start"


def test_thinking_comes_only_where_it_is_asked_for_and_its_text_may_be_left_out() -> None:
    with FakeProvider() as provider:
        plain, omitted = (
            send(provider, MESSAGES, ask(**more)).json["content"]
            for more in ({}, {"thinking": {**ADAPTIVE, "display": "omitted"}})
        )
    assert [block["type"] for block in plain] == ["text"]
    assert omitted[0]["thinking"] == ""
    assert omitted[0]["signature"]


def test_arguments_may_be_broken_off_and_the_reason_to_stop_given() -> None:
    half = FakeReply("I", calls=(FakeCall("ls", '{"path": "/t'),), stop_reason="max_tokens")
    with FakeProvider([half, half, FakeReply(calls=(FakeCall("ls", "[1]"),))]) as provider:
        whole = send(provider, MESSAGES, ask()).json
        stream = send(provider, MESSAGES, ask(stream=True))
        assert send(provider, MESSAGES, ask()).json["content"][0]["input"] == {}
    assert (whole["stop_reason"], whole["content"][1]["input"]) == ("max_tokens", {})
    deltas = [event["delta"] for event in stream.events if event["type"] == "content_block_delta"]
    assert "".join(delta.get("partial_json", "") for delta in deltas) == '{"path": "/t'


def test_ids_are_unique_and_the_same_in_every_run() -> None:
    def ids() -> list[str]:
        with FakeProvider([TWO_CALLS, TWO_CALLS]) as provider:
            answers = [send(provider, MESSAGES, ask()).json for _ in range(2)]
        return [answer["id"] for answer in answers] + [answer["content"][1]["id"] for answer in answers]

    first = ids()
    assert len(set(first)) == 4
    assert ids() == first


def test_blocks_of_a_server_tool_stand_as_they_are() -> None:
    call = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
    with FakeProvider([FakeReply("found", blocks=(call, found))] * 2) as provider:
        whole = send(provider, MESSAGES, ask()).json
        stream = send(provider, MESSAGES, ask(stream=True))
        again = [said("hi"), {"role": "assistant", "content": whole["content"]}, said("go")]
        assert send(provider, MESSAGES, ask(messages=again)).status == 200
    assert whole["content"][:2] == [call, found]
    assert reassembled(stream) == whole["content"]


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "headers", "status", "kind", "part"),
    [
        (ask(), {}, 401, "authentication_error", "invalid x-api-key"),
        (ask(), {"x-api-key": "wrong", "anthropic-version": "1"}, 401, "authentication_error", "x-api-key"),
        (ask(model="other"), KEYS, 404, "not_found_error", "model: other"),
        (b"{", KEYS, 400, "invalid_request_error", "no JSON"),
        (ask(max_tokens=0), KEYS, 400, "invalid_request_error", "max_tokens"),
        (ask(tools=[{"name": "a"}, {"name": "a"}]), KEYS, 400, "invalid_request_error", "unique"),
        (ask(tools="a"), KEYS, 400, "invalid_request_error", "tools is no list"),
        (ask(messages=[]), KEYS, 400, "invalid_request_error", "at least one message"),
        (ask(), {"x-api-key": "test-key"}, 400, "invalid_request_error", "anthropic-version"),
        (ask(thinking={**ADAPTIVE, "block_binding": {}}), KEYS, 400, "invalid_request_error", "Extra inputs"),
    ],
)
def test_refusals_have_the_apis_own_error_body(body: Any, headers: Any, status: int, kind: str, part: str) -> None:
    with FakeProvider(models=[OPUS]) as provider:
        answer = send(provider, MESSAGES, body, headers=headers)
    assert answer.status == status == provider.log[0].status
    assert answer.json["error"]["type"] == kind
    assert part in answer.json["error"]["message"]
    assert answer.json["request_id"] == answer.headers["request-id"]
    assert (provider.requests, len(provider.refusals)) == ([], 1)


def test_a_conversation_that_the_strict_checker_refuses_is_a_400() -> None:
    call = {"type": "tool_use", "id": "a", "name": "ls", "input": {}}
    with FakeProvider() as provider:
        answer = send(provider, MESSAGES, ask(messages=[said("q"), {"role": "assistant", "content": [call]}]))
        joined = [said("a"), said("b")]
        assert send(provider, MESSAGES, ask(messages=joined)).status == 200
    assert (answer.status, answer.json["error"]["message"]) == (
        400,
        "messages.1: the call a has no result in the next message",
    )
    with FakeProvider(strict_roles=True) as provider:
        assert send(provider, MESSAGES, ask(messages=joined)).status == 400


def test_the_key_may_come_as_bearer_and_the_route_may_lie_below_anthropic() -> None:
    bearer = {"authorization": "Bearer test-key", "anthropic-version": "2023-06-01"}
    with FakeProvider() as provider:
        assert send(provider, "/anthropic/v1/messages?beta=true", ask(), headers=bearer).status == 200
        assert provider.requests[0].path == "/anthropic/v1/messages"
        assert provider.requests[0].target == "/anthropic/v1/messages?beta=true"


# -- thinking that is sent back -------------------------------------------------------------------


def loop_body(provider: FakeProvider, model: str = BOUND, first: str = "list it") -> dict[str, Any]:
    """The second request of a tool loop with thinking."""
    body = ask(first, model=model, thinking=ADAPTIVE, system="be brief")
    content = send(provider, MESSAGES, body).json["content"]
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "ok"}
        for block in content
        if block["type"] == "tool_use"
    ]
    body["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": results}]
    return body


def changed_prefix(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "messages": [said("list that"), *body["messages"][1:]]}


def test_a_loop_goes_on_with_the_thinking_it_was_given_whatever_the_cache_marks() -> None:
    with FakeProvider([TWO_CALLS] * 4) as provider:
        body = loop_body(provider)
        body["system"] = [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}]
        assert send(provider, MESSAGES, body).status == 200


def test_models_that_bind_the_prefix_refuse_thinking_behind_a_changed_message_when_counting_too() -> None:
    with FakeProvider([TWO_CALLS] * 4) as provider:
        body = changed_prefix(loop_body(provider))
        for path in (MESSAGES, f"{MESSAGES}/count_tokens"):
            answer = send(provider, path, body)
            assert answer.status == 400
            assert (
                "Invalid `signature` in `thinking` block. The block is bound to a different conversation"
                in answer.json["error"]["message"]
            )
        other = changed_prefix(loop_body(provider, model=OPUS))
        assert send(provider, MESSAGES, other).status == 200


def test_thinking_that_is_left_out_breaks_the_binding_of_what_follows() -> None:
    with FakeProvider([TWO_CALLS, FakeReply("done", thinking="So."), "ok", "ok"]) as provider:
        body = loop_body(provider)
        content = send(provider, MESSAGES, body).json["content"]
        body["messages"] += [{"role": "assistant", "content": content}, said("more")]
        body["messages"][1] = {"role": "assistant", "content": body["messages"][1]["content"][1:]}
        assert send(provider, MESSAGES, body).status == 400
        body["messages"][3] = {"role": "assistant", "content": content[1:]}
        assert send(provider, MESSAGES, body).status == 200


def test_blocks_that_do_not_match_may_be_dropped_and_are_reported() -> None:
    with FakeProvider([TWO_CALLS] * 5) as provider:
        body = changed_prefix(loop_body(provider))
        body["thinking"] = {**ADAPTIVE, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
        answer = send(provider, MESSAGES, body, **BINDING_BETA)
        rows = [{"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}]
        assert answer.json["input_transformations"] == rows
        streamed = send(provider, MESSAGES, {**body, "stream": True}, **BINDING_BETA)
        assert streamed.events[-2]["input_transformations"] == rows
        kept = [block for block in body["messages"][1]["content"] if block["type"] != "thinking"]
        without = {**body, "messages": [body["messages"][0], {"role": "assistant", "content": kept}, said("x")]}
        without["messages"][2] = body["messages"][2]
        assert (
            send(provider, f"{MESSAGES}/count_tokens", without, **BINDING_BETA).json
            == send(provider, f"{MESSAGES}/count_tokens", body, **BINDING_BETA).json
        )


def test_other_models_refuse_changed_thinking_in_the_latest_turn_only() -> None:
    with FakeProvider([TWO_CALLS] * 9) as provider:
        body = loop_body(provider, model=OPUS)
        body["messages"][1]["content"][0]["thinking"] = "Another thought."
        answer = send(provider, MESSAGES, body)
        assert (answer.status, "cannot be modified" in answer.json["error"]["message"]) == (400, True)
        body["messages"] += [{"role": "assistant", "content": "done"}, said("next")]
        assert send(provider, MESSAGES, body).status == 200
    with FakeProvider(checks_thinking=False) as provider:
        assert send(provider, MESSAGES, {**body, "messages": body["messages"][:3]}).status == 200


def test_redacted_thinking_is_bound_as_well() -> None:
    with FakeProvider([FakeReply("t", thinking="secret", is_redacted=True, calls=(LIST,))] * 3) as provider:
        body = loop_body(provider)
        block = body["messages"][1]["content"][0]
        assert block["type"] == "redacted_thinking"
        assert "secret" not in block["data"]
        assert send(provider, MESSAGES, body).status == 200
        assert send(provider, MESSAGES, changed_prefix(body)).status == 400
        block["data"] = "other"
        assert send(provider, MESSAGES, body).status == 400


# -- counting, models, probes ---------------------------------------------------------------------


def test_counted_tokens_are_those_of_the_answers_usage() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 200_000}}
    body = ask(messages=[{"role": "user", "content": [image, {"type": "text", "text": "see"}]}])
    with FakeProvider() as provider:
        counted = send(provider, f"{MESSAGES}/count_tokens", {**body, "max_tokens": None}).json["input_tokens"]
        assert send(provider, MESSAGES, body).json["usage"]["input_tokens"] == counted
    assert 1_600 < counted < 1_700
    assert (len(provider.counted), len(provider.requests)) == (1, 1)


def test_models_are_listed_and_probes_answered() -> None:
    with FakeProvider(models=["claude-a", "claude-b"]) as provider:
        listed = send(provider, "/v1/models", method="GET").json
        one = send(provider, "/v1/models/claude-b", method="GET").json
        openai = send(provider, "/v1/models", method="GET", headers={"authorization": "Bearer test-key"}).json
        assert send(provider, "/v1/models/other", method="GET").status == 404
        assert send(provider, "/v1/models", method="GET", headers={}).status == 401
        assert send(provider, "/", method="HEAD", headers={}).status == 200
        assert send(provider, "/v1/nowhere", {}).status == 404
        assert send(provider, MESSAGES, method="GET").status == 405
    assert [row["id"] for row in listed["data"]] == ["claude-a", "claude-b"]
    assert (listed["first_id"], listed["last_id"], one["type"]) == ("claude-a", "claude-b", "model")
    assert openai["object"] == "list"
    assert [request.status for request in provider.log] == [200, 200, 200, 404, 401, 200, 404, 405]
