"""Answers of the three APIs that break off, are junk, or hold some."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.types import BlockKind
from context_gatekeeper.wire import decode_request
from context_gatekeeper.wire.answers import WireAnswer, read_answer
from context_gatekeeper.wire.records import WireApi
from tests.wire.answer_samples import (
    BLOCKS,
    CHAT,
    CHAT_BLOCKS,
    CHAT_STREAM,
    JSON,
    RESPONSES,
    RESPONSES_ITEMS,
    SAMPLES,
    STREAM,
    chat_chunk,
    read,
    read_whole,
    streamed,
    text,
)


@pytest.mark.parametrize("api", WireApi)
def test_broken_events_are_passed_over_and_counted(api: WireApi) -> None:
    events = SAMPLES[api]
    answer = read(api, events[0], "{broken", "[1]", *events[1:3], '"text"', '{"a": ' + "[" * 5000, *events[3:])
    assert answer.message.blocks == BLOCKS[api]
    assert (answer.is_complete, answer.broken_events) == (True, 4)


@pytest.mark.parametrize("api", WireApi)
@pytest.mark.parametrize("content", [b"", b"{", b"<html>502</html>", b"\xff\xfe\x00", b"null"])
def test_a_body_that_is_no_answer_is_an_empty_one(api: WireApi, content: bytes) -> None:
    for content_type in (STREAM, JSON, "text/html", ""):
        answer = read_answer(api, content_type, content)
        assert (answer.message.blocks, answer.message.usage, answer.is_complete) == ((), None, False)


def test_a_body_is_told_by_how_it_begins_when_its_type_is_wrong() -> None:
    body = b"\xef\xbb\xbf \n" + json.dumps(chat_chunk({"message": {"content": "x"}})).encode()
    assert read_answer(CHAT, STREAM, body).message.blocks == (text("x"),)
    assert read_answer(CHAT, "", streamed(*CHAT_STREAM)).message.blocks == CHAT_BLOCKS


@pytest.mark.parametrize("api", WireApi)
def test_an_answer_cut_anywhere_is_a_beginning_of_the_whole(api: WireApi) -> None:
    stream = streamed(*SAMPLES[api])
    whole = "".join(block.text for block in BLOCKS[api] if block.kind is BlockKind.TEXT)
    for end in range(len(stream)):
        answer = read_answer(api, STREAM, stream[:end])
        said = "".join(block.text for block in answer.message.blocks if block.kind is BlockKind.TEXT)
        assert whole.startswith(said)
        assert answer.broken_events == 0
        assert "\ufffd" not in said
        if api is not CHAT:
            assert not answer.is_complete


def test_a_giant_event_is_dropped_and_counted() -> None:
    giant = "x" * (33 * 1024 * 1024)
    answer = read(CHAT, CHAT_STREAM[0], f'{{"x": "{giant}"}}', *CHAT_STREAM[1:])
    assert (answer.message.blocks, answer.broken_events) == (CHAT_BLOCKS, 1)


WORDS = [
    *("type", "index", "delta", "message", "content", "text", "thinking", "input", "usage", "choices", "tool_calls"),
    *(
        "function",
        "arguments",
        "response",
        "output",
        "item",
        "error",
        "id",
        "output_index",
        "message_start",
        "tool_use",
    ),
    *("content_block_start", "content_block_delta", "content_block", "partial_json", "prompt_tokens", "reasoning"),
    *("response.output_text.delta", "response.output_item.added", "response.completed", "reasoning_details", "summary"),
    *("response.function_call_arguments.delta", "input_transformations", "context_management", "applied_edits"),
    *("call_id", "function_call", "encrypted_content", "base_resp", "status_code", "incomplete_details", "data"),
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=6),
    max_leaves=12,
)


@given(st.sampled_from(WireApi), st.sampled_from([STREAM, JSON]), st.binary(max_size=200))
def test_no_bytes_make_it_raise(api: WireApi, content_type: str, content: bytes) -> None:
    assert isinstance(read_answer(api, content_type, content), WireAnswer)


@given(st.sampled_from(WireApi), st.lists(st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=6), max_size=4))
def test_no_values_in_known_places_make_it_raise(api: WireApi, events: list[Any]) -> None:
    read_answer(api, STREAM, "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode())
    for event in events:
        hash(read_whole(api, event))


def test_a_message_that_its_client_sends_back_is_the_answer_that_was_read() -> None:
    question = {"role": "user", "content": "Go on."}
    said = {
        "role": "assistant",
        "content": "On it.",
        "reasoning_content": "Think first.",
        "tool_calls": [
            {"id": "call_a", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}},
            {"id": "call_b", "type": "function", "function": {"name": "grep", "arguments": '{"p":1}'}},
        ],
    }
    bodies = {CHAT: {"messages": [question, said]}, RESPONSES: {"input": [question, *RESPONSES_ITEMS]}}
    for api, body in bodies.items():
        sent = json.dumps({"model": "m", **body}, separators=(",", ":")).encode()
        assert decode_request(api, sent).turns[-1].message.blocks == BLOCKS[api]
