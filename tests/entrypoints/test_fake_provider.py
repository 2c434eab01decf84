"""The strict provider refuses what a strict service refuses."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from context_gatekeeper.testing import FakeProvider, FakeReply

CHAT = "/v1/chat/completions"
MESSAGES = "/anthropic/v1/messages"
USER = {"role": "user", "content": "hi"}
ASSISTANT = {"role": "assistant", "content": "yo"}
SYSTEM = {"role": "system", "content": "be brief"}
BEARER = {"authorization": "Bearer test-key"}
ANTHROPIC = {"x-api-key": "test-key", "anthropic-version": "2023-06-01"}


def post(
    provider: FakeProvider, path: str, body: Any, headers: dict[str, str], method: str = "POST"
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(provider.url).netloc)
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, content, headers)
    response = connection.getresponse()
    answer = response.read()
    connection.close()
    is_json = response.headers["content-type"] == "application/json"
    return response.status, json.loads(answer) if is_json else answer.decode()


def chat(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), **more}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "the body is no JSON"),
        (b"[]", "the body is no JSON object"),
        ({"messages": [USER]}, "model is missing"),
        (chat(), "messages is empty"),
        (chat({"content": "x"}), "no role"),
        (chat({"role": "user", "content": " "}), "user message has empty content"),
        (chat({"role": "user", "content": None}), "empty content"),
        (chat({"role": "user", "content": [{"type": "image"}]}), "empty content"),
        (chat(USER, SYSTEM, USER), "at the start only"),
        (chat(USER, ASSISTANT), "not the user's"),
        (chat({"role": "poet", "content": "x"}, USER), "role is not"),
        (chat(USER, stream="yes"), "stream is no boolean"),
    ],
)
def test_the_openai_route_refuses_bad_requests(body: Any, reason: str) -> None:
    with FakeProvider() as provider:
        status, answer = post(provider, CHAT, body, BEARER)
    assert (status, provider.requests) == (400, [])
    assert reason in answer["error"]["message"]
    assert reason in provider.refusals[0]


@pytest.mark.parametrize(
    ("body", "headers", "reason"),
    [
        (chat(USER, max_tokens=9), {"x-api-key": "test-key"}, "anthropic-version"),
        (chat(USER), ANTHROPIC, "max_tokens"),
        (chat(USER, max_tokens=0), ANTHROPIC, "max_tokens"),
        (chat(SYSTEM, USER, max_tokens=9), ANTHROPIC, "roles must alternate"),
        (chat(USER, USER, max_tokens=9), ANTHROPIC, "roles must alternate"),
        (chat(ASSISTANT, USER, max_tokens=9), ANTHROPIC, "roles must alternate"),
        (chat(USER, ASSISTANT, max_tokens=9), ANTHROPIC, "not the user's"),
        (chat(USER, max_tokens=9, system=""), ANTHROPIC, "system is empty"),
    ],
)
def test_the_anthropic_route_refuses_bad_requests(body: Any, headers: dict[str, str], reason: str) -> None:
    with FakeProvider() as provider:
        status, answer = post(provider, MESSAGES, body, headers)
    assert status == 400
    assert reason in answer["error"]["message"]


@pytest.mark.parametrize(("path", "body"), [(CHAT, chat(USER)), (MESSAGES, chat(USER, max_tokens=9))])
def test_a_request_without_the_key_is_refused(path: str, body: Any) -> None:
    with FakeProvider() as provider:
        for headers in ({}, {"authorization": "Bearer wrong", "anthropic-version": "1"}):
            assert post(provider, path, body, headers)[0] == 401
    assert provider.requests == []


def test_other_routes_methods_and_models_are_refused() -> None:
    with FakeProvider(models=["known"]) as provider:
        assert post(provider, "/v1/other", {}, BEARER)[0] == 404
        assert post(provider, CHAT, {}, BEARER, "GET")[0] == 405
        assert "unknown model" in post(provider, CHAT, chat(USER), BEARER)[1]["error"]["message"]


def test_the_openai_answer_has_think_text_usage_and_base_resp() -> None:
    with FakeProvider(["done"]) as provider:
        status, answer = post(provider, CHAT, chat(SYSTEM, USER), BEARER)
    assert status == 200
    assert answer["choices"][0]["message"]["content"].startswith("<think>\n")
    assert answer["choices"][0]["message"]["content"].endswith("</think>\n\ndone")
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0
    assert answer["base_resp"] == {"status_code": 0, "status_msg": ""}
    assert (provider.requests[0].system, provider.requests[0].query) == ("be brief", "hi")


def test_the_anthropic_answer_has_a_thinking_block_and_usage() -> None:
    with FakeProvider(["done"]) as provider:
        _, answer = post(provider, MESSAGES, chat(USER, max_tokens=9, system="be brief"), ANTHROPIC)
    assert [block["type"] for block in answer["content"]] == ["thinking", "text"]
    assert answer["usage"]["input_tokens"] == provider.requests[0].prompt_tokens > 0
    assert provider.requests[0].system == "be brief"


def test_the_streamed_openai_answer_ends_with_usage_only_when_asked_for() -> None:
    with FakeProvider(["a", "a"]) as provider:
        plain = post(provider, CHAT, chat(USER, stream=True), BEARER)[1]
        full = post(provider, CHAT, chat(USER, stream=True, stream_options={"include_usage": True}), BEARER)[1]
    assert plain.rstrip().endswith("data: [DONE]")
    assert "usage" not in plain
    assert '"prompt_tokens"' in full


def test_replies_are_used_in_order_then_the_echo_quotes_what_was_seen() -> None:
    with FakeProvider([FakeReply("first", thinking="")]) as provider:
        texts = [
            post(provider, CHAT, chat(USER, ASSISTANT, {"role": "user", "content": "more?"}), BEARER)[1]["choices"][0][
                "message"
            ]["content"]
            for _ in range(2)
        ]
    assert texts[0] == "first"
    assert "You asked: more?" in texts[1]
    assert "Context lines seen: 2\n> hi\n> yo" in texts[1]


def test_replies_may_be_a_function_of_the_request() -> None:
    with FakeProvider(lambda request: FakeReply(request.query.upper(), thinking="")) as provider:
        assert post(provider, CHAT, chat(USER), BEARER)[1]["choices"][0]["message"]["content"] == "HI"


def test_outside_of_its_block_the_provider_has_no_address() -> None:
    with pytest.raises(RuntimeError, match="with statement"):
        FakeProvider().url  # noqa: B018
