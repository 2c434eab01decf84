"""Answers of OpenAI Chat Completions."""

from __future__ import annotations

import pytest

from context_gatekeeper.types import Usage
from context_gatekeeper.wire.answers import read_answer
from tests.wire.answer_samples import (
    CHAT,
    CHAT_BLOCKS,
    CHAT_STREAM,
    STREAM,
    call,
    chat_call,
    chat_chunk,
    chat_delta,
    read,
    read_whole,
    sealed,
    text,
    thought,
)


def test_a_stream_of_chat_completions_is_assembled() -> None:
    answer = read(CHAT, *CHAT_STREAM)
    assert answer.message.blocks == CHAT_BLOCKS
    assert answer.message.usage == Usage(104, 640, 256, 50)
    assert (answer.response_id, answer.model, answer.stop_reason) == ("chatcmpl-1", "gpt-5.6", "tool_calls")
    assert answer.is_complete


def test_a_whole_chat_completion_is_read() -> None:
    message = {
        "role": "assistant",
        "content": "Hm.",
        "refusal": "No.",
        "reasoning": "Why.",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "ZGF0YQ", "signature": "s"}],
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
            {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "raw"}},
            {"id": "c3", "type": "function", "function": {"name": "h", "arguments": {"b": 2}}},
            {"id": "c4", "type": "function", "function": {"name": "i"}},
        ],
    }
    answer = read_whole(CHAT, chat_chunk({"index": 0, "message": message}))
    assert answer.message.blocks == (
        thought("Why.", "s"),
        sealed("ZGF0YQ"),
        text("Hm."),
        text("No."),
        call("c1", "f", '{"a": 1}'),
        call("c2", "g", "raw"),
        call("c3", "h", '{"b":2}'),
        call("c4", "i", ""),
    )
    assert (answer.is_complete, answer.message.usage) == (True, None)


def test_content_in_parts_is_their_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    assert read(CHAT, chat_delta(content=parts)).message.blocks == (text("ab"),)


def test_whole_calls_that_share_an_index_or_have_none_stay_apart() -> None:
    first, second = chat_call(0, "{}", id="a", name="f"), chat_call(0, "[]", id="b", name="g")
    loose = {"id": "c", "function": {"name": "h", "arguments": '{"x":'}}
    rest = {"function": {"arguments": "1}"}}
    answer = read(CHAT, chat_delta(tool_calls=[first, second]), chat_delta(tool_calls=[loose, rest]))
    assert answer.message.blocks == (call("a", "f", "{}"), call("b", "g", "[]"), call("c", "h", '{"x":1}'))


def test_a_call_of_the_older_form_is_read() -> None:
    pieces = [
        chat_delta(function_call={"name": "f", "arguments": '{"a"'}),
        chat_delta(function_call={"arguments": ":1}"}),
    ]
    assert read(CHAT, *pieces).message.blocks == (call("", "f", '{"a":1}'),)


def test_of_several_choices_the_first_counts() -> None:
    second = chat_chunk({"index": 1, "delta": {"content": "second"}, "finish_reason": "stop"})
    answer = read(CHAT, second, chat_delta(content="first"))
    assert (answer.message.blocks, answer.is_complete) == ((text("first"),), False)


def test_the_whole_message_at_the_end_of_a_stream_is_not_taken_twice() -> None:
    last = chat_chunk({"index": 0, "message": {"content": "Once."}, "finish_reason": "stop"})
    assert read(CHAT, chat_delta(content="Once."), last).message.blocks == (text("Once."),)
    assert read(CHAT, last).message.blocks == (text("Once."),)


@pytest.mark.parametrize("told", [("a", "ab", "abc"), ("a", "b", "c")])
def test_thinking_in_details_grows_or_goes_on(told: tuple[str, ...]) -> None:
    chunks = [chat_delta(content="", reasoning_details=[{"text": words}]) for words in told]
    assert read(CHAT, *chunks).message.blocks == (thought("abc"),)


def test_counts_inside_a_choice_are_read() -> None:
    choice = {"index": 0, "delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    assert read(CHAT, chat_chunk(choice), chat_chunk(usage=None)).message.usage == Usage(3, 0, 0, 1)


def test_an_event_named_error_is_one() -> None:
    assert read_answer(CHAT, STREAM, b'event: error\ndata: {"message": "gone"}\n\n').error == "gone"
    assert read_answer(CHAT, STREAM, b'event: error\ndata: {"error": "gone"}\n\n').error == "gone"
