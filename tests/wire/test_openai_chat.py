"""Requests of Chat Completions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_gatekeeper.errors import WireFormatError
from context_gatekeeper.types import BlockKind, ContentBlock, MessageRole
from context_gatekeeper.wire import decode_request, encode_request
from context_gatekeeper.wire.records import PartKey, RequestEdits, WireApi, WireRequest

USER, ASSISTANT, TOOL, SYSTEM = MessageRole.USER, MessageRole.ASSISTANT, MessageRole.TOOL, MessageRole.SYSTEM


def decode(*messages: Any, **keys: Any) -> WireRequest:
    return decode_request(WireApi.CHAT, json.dumps({"messages": list(messages), **keys}).encode())


def call(call_id: str, arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "read", "arguments": arguments}}


def assistant(content: Any = None, **keys: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **keys}


def blocks(request: WireRequest, number: int = 0) -> list[ContentBlock]:
    return [part.block for part in request.messages[number].parts]


def test_system_and_developer_messages_in_front_are_the_systems_text_later_ones_are_turns() -> None:
    request = decode(
        {"role": "system", "content": "one"},
        {"role": "developer", "content": [{"type": "text", "text": "two"}]},
        {"role": "user", "content": "hi"},
        {"role": "developer", "content": "three"},
    )
    assert request.system_text == "one\n\ntwo"
    assert [turn.message.role for turn in request.turns] == [USER, SYSTEM]
    assert [message.role for message in request.messages] == [SYSTEM, SYSTEM, USER, SYSTEM]


def test_an_assistants_thinking_text_refusal_and_calls_are_one_call() -> None:
    request = decode(
        assistant(
            [{"type": "text", "text": "so"}, {"type": "refusal", "refusal": "no"}],
            reasoning_content="hm",
            refusal="never",
            function_call={"name": "old", "arguments": "{}"},
            tool_calls=[call("a"), {"id": "b", "custom": {"name": "patch", "input": "***"}}, {"id": "c"}],
        )
    )
    assert blocks(request) == [
        ContentBlock(BlockKind.THINKING, "hm"),
        ContentBlock(BlockKind.TEXT, "so"),
        ContentBlock(BlockKind.TEXT, "no"),
        ContentBlock(BlockKind.TEXT, "never"),
        ContentBlock(BlockKind.TOOL_CALL, "{}", "", "old"),
        ContentBlock(BlockKind.TOOL_CALL, "{}", "a", "read"),
        ContentBlock(BlockKind.TOOL_CALL, "***", "b", "patch"),
        ContentBlock(BlockKind.OTHER, '{"id": "c"}', name="tool_call"),
    ]
    assert len(request.turns) == 1
    assert request.turns[0].message.is_call


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"reasoning": "hm"}, [("hm", "", "")]),
        ({"reasoning_content": "", "reasoning": "hm"}, [("hm", "", "")]),
        (
            {"reasoning": "hm", "reasoning_details": [{"signature": ""}, {"signature": "s"}, {"data": "zz"}, "odd"]},
            [("hm", "s", ""), ("", "", "zz")],
        ),
        ({"reasoning_details": None, "encrypted_content": "zz"}, [("", "", "zz")]),
        ({"encrypted_content": None}, []),
        (
            {"thinking_blocks": [{"type": "thinking", "thinking": "t", "signature": "s"}], "reasoning": "t"},
            [("t", "s", "")],
        ),
        ({"thinking_blocks": []}, []),
    ],
)
def test_thinking_is_read_wherever_providers_put_it(keys: dict[str, Any], expected: list[tuple[str, str, str]]) -> None:
    found = blocks(decode(assistant("so", **keys)))[:-1]
    assert {block.kind for block in found} <= {BlockKind.THINKING}
    assert [(block.text, block.signature, block.data) for block in found] == expected


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ({"name": "read", "arguments": None}, "null"),
        ({"name": "read", "arguments": {"a": 1}}, '{"a": 1}'),
        ({"name": "read"}, ""),
    ],
)
def test_arguments_that_are_no_text_are_kept_counted_and_told(function: dict[str, Any], text: str) -> None:
    """O06: they go on as they came."""
    request = decode(
        assistant(tool_calls=[{"id": "call_1", "type": "function", "function": function}]),
        {"role": "tool", "tool_call_id": "call_1", "content": "x"},
        {"role": "user", "content": "hi"},
    )
    [part] = request.messages[0].parts
    assert part.block == ContentBlock(BlockKind.TOOL_CALL, text, "call_1", "read")
    assert part.text_span is None
    assert request.messages[1].parts[0].block.name == "read"
    assert len(request.warnings) == 1
    slimmed = encode_request(request, RequestEdits(texts={PartKey(1, 0): "stub"}))
    assert json.loads(slimmed)["messages"][0]["tool_calls"][0]["function"] == function
    with pytest.raises(WireFormatError, match="no text that can be replaced"):
        encode_request(request, RequestEdits(texts={PartKey(0, 0): "{}"}))


@pytest.mark.parametrize("calls", [{"a": 1}, "odd"])
def test_calls_that_are_no_list_are_one_block(calls: Any) -> None:
    request = decode(assistant(tool_calls=calls))
    assert blocks(request) == [ContentBlock(BlockKind.OTHER, json.dumps(calls), name="tool_calls")]
    assert len(request.warnings) == 1


def test_a_result_has_the_name_of_its_call_unless_it_says_another() -> None:
    request = decode(
        assistant(tool_calls=[call("a"), call("b")]),
        {"role": "tool", "tool_call_id": "a", "content": "x"},
        {"role": "tool", "tool_call_id": "b", "name": "own", "content": [{"type": "text", "text": "y"}]},
        {"role": "function", "name": "old", "content": None},
        {"role": "tool", "tool_call_id": "none"},
    )
    assert [(block.text, block.call_id, block.name) for number in range(1, 5) for block in blocks(request, number)] == [
        ("x", "a", "read"),
        ("y", "b", "own"),
        ("", "", "old"),
        ("", "none", ""),
    ]
    assert [turn.message.role for turn in request.turns] == [ASSISTANT, TOOL, TOOL, TOOL, TOOL]
    assert decode_request(WireApi.CHAT, request.source.encode(), request) == request


def test_a_message_of_an_unknown_role_is_the_users_and_says_why() -> None:
    request = decode({"role": "critic", "content": "hm"}, {"content": "hm"})
    assert [(turn.message.role, turn.message.origin) for turn in request.turns] == [(USER, "critic"), (USER, "unknown")]


def test_parts_with_breakpoints_are_marked() -> None:
    parts = [
        {"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}},
        {"type": "text", "text": "b"},
    ]
    request = decode({"role": "user", "content": parts})
    assert [part.is_marked for part in request.messages[0].parts] == [True, False]
    assert len(request.marks) == 1


def test_the_cache_key_names_the_session_and_functions_count_as_tools() -> None:
    request = decode(prompt_cache_key="k", functions=[{"name": "read"}], model="gpt-5", stream=True)
    assert (request.session_hint, request.tools_text) == ("k", '[{"name": "read"}]')
    assert (request.model, request.is_stream) == ("gpt-5", True)


@pytest.mark.parametrize("body", [b"{}", b'{"messages":{}}', b'{"messages":[null]}'])
def test_what_holds_no_messages_is_refused(body: bytes) -> None:
    with pytest.raises(WireFormatError):
        decode_request(WireApi.CHAT, body)


@pytest.mark.parametrize(
    "extra", ['"tool_calls":[{"function":{"arguments":"{}","arguments":""}}]', '"content":"","content":null']
)
def test_a_key_that_stands_twice_where_it_matters_is_refused(extra: str) -> None:
    with pytest.raises(WireFormatError, match="stands twice"):
        decode_request(WireApi.CHAT, f'{{"messages":[{{"role":"assistant",{extra}}}]}}'.encode())
