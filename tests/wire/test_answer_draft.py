"""Counts, errors and values in answers, whatever stands there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_gatekeeper.types import Usage
from context_gatekeeper.wire.answers import read_answer
from context_gatekeeper.wire.records import WireApi
from tests.wire.answer_samples import (
    CHAT,
    JSON,
    MESSAGES,
    STREAM,
    call,
    chat_chunk,
    chat_delta,
    read,
    read_whole,
    text,
)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param(
            {
                "prompt_tokens": 100,
                "completion_tokens": 5,
                "prompt_cache_hit_tokens": 64,
                "prompt_cache_miss_tokens": 36,
            },
            Usage(36, 64, 0, 5),
            id="DeepSeek",
        ),
        pytest.param(
            {"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36}, Usage(36, 64, 0, 0), id="no prompt"
        ),
        pytest.param({"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 34}, Usage(9, 0, 0, 25), id="Gemini"),
        pytest.param({"prompt_tokens": 9, "cached_tokens": 4, "total_tokens": 9}, Usage(5, 4, 0, 0), id="Moonshot"),
        pytest.param(
            {"prompt_tokens": 90, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 30},
            Usage(20, 40, 30, 0),
            id="in front of Anthropic",
        ),
        pytest.param(
            {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9, "cache_write_tokens": 9}},
            Usage(0, 5, 0, 0),
            id="more read than sent",
        ),
        pytest.param({"prompt_tokens": -1, "prompt_cache_hit_tokens": 5}, None, id="no counts"),
        pytest.param({"prompt_tokens": 1e30}, None, id="absurd"),
        pytest.param({"prompt_tokens": True}, None, id="a truth"),
        pytest.param([], None, id="a list"),
    ],
)
def test_counts_of_providers_with_the_same_route_are_read(usage: Any, expected: Usage | None) -> None:
    assert read_whole(CHAT, chat_chunk({"message": {"content": "x"}}, usage=usage)).message.usage == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            {"error": {"message": "Too long", "type": "invalid_request_error", "code": None}},
            "invalid_request_error: Too long",
        ),
        ({"error": {"message": "m", "code": 400}}, "m"),
        ({"error": {"code": "rate_limited"}}, "rate_limited"),
        ({"error": "plain words"}, "plain words"),
        ({"error": ["odd"]}, '["odd"]'),
        ({"error": "x" * 2000}, "x" * 500),
        ({"base_resp": {"status_code": 1004, "status_msg": "login fail"}}, "login fail"),
        ({"base_resp": {"status_code": 1004}}, "code 1004"),
        ({"base_resp": {"status_code": 0, "status_msg": "success"}}, ""),
    ],
)
def test_an_error_is_told_in_words(body: dict[str, Any], expected: str) -> None:
    whole, stream = read_whole(CHAT, body), read(CHAT, body)
    assert (whole.error, whole.is_complete) == (expected, False)
    assert (stream.error, stream.is_complete) == (expected, False)


def test_halves_of_a_character_that_two_events_bring_come_together() -> None:
    halves = [chat_delta(content="a"), chat_delta(content="\ud83d"), chat_delta(content="\udfe2\ud800")]
    stream = "".join(f"data: {json.dumps(half)}\n\n" for half in halves).encode()
    assert read_answer(CHAT, STREAM, stream).message.blocks == (text("a🟢\ud800"),)


def test_what_is_no_number_in_json_becomes_null() -> None:
    body = b'{"stop_reason": "tool_use", "content": [{"type": "tool_use", "input": {"a": NaN, "b": 1e999, "c": 1.5}}]}'
    assert read_answer(MESSAGES, JSON, body).message.blocks == (call("", "", '{"a":null,"b":null,"c":1.5}'),)


@pytest.mark.parametrize("api", WireApi)
def test_no_depth_of_nesting_makes_it_raise(api: WireApi) -> None:
    for depth in range(1, 1100):
        deep = "[" * depth + "]" * depth
        read_answer(api, JSON, f'{{"content": [{{"type": "x", "x": {deep}}}], "error": {deep}}}'.encode())
