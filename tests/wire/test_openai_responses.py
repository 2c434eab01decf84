"""Requests of the Responses API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_gatekeeper.errors import WireFormatError
from context_gatekeeper.types import BlockKind, ContentBlock, MessageRole
from context_gatekeeper.wire import decode_request
from context_gatekeeper.wire.records import PartKey, WireApi, WireRequest

USER, ASSISTANT, TOOL, SYSTEM = MessageRole.USER, MessageRole.ASSISTANT, MessageRole.TOOL, MessageRole.SYSTEM


def decode(given: Any, **keys: Any) -> WireRequest:
    return decode_request(WireApi.RESPONSES, json.dumps({"input": given, **keys}).encode())


def said(text: str, role: str = "user") -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def blocks(request: WireRequest, number: int = 0) -> list[ContentBlock]:
    return [part.block for part in request.messages[number].parts]


def test_an_input_that_is_a_text_is_one_user_message() -> None:
    request = decode("hi", instructions="Be kind.")
    [part] = request.messages[0].parts
    assert part.span == part.text_span == request.messages[0].span
    assert request.turns[0].message.blocks == (ContentBlock(BlockKind.TEXT, "hi"),)
    assert request.system_text == "Be kind."
    assert decode("").messages[0].parts == ()


def test_what_the_model_puts_out_between_two_inputs_is_one_call() -> None:
    request = decode(
        [
            said("rules", "developer"),
            said("go"),
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "zz"},
            said("so", "assistant"),
            {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "***"},
            {"type": "web_search_call", "id": "ws"},
            {"type": "mcp_list_tools", "id": "m"},
            {"type": "function_call_output", "call_id": "a", "output": "x"},
            {"type": "custom_tool_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "y"}]},
            said("thanks"),
            said("note", "system"),
            said("bye", "assistant"),
        ],
        instructions=None,
    )
    assert [(turn.message.role, len(turn.keys), turn.message.is_call) for turn in request.turns] == [
        (USER, 1, False),
        (ASSISTANT, 7, True),
        (TOOL, 1, False),
        (TOOL, 1, False),
        (USER, 1, False),
        (SYSTEM, 1, False),
        (ASSISTANT, 1, True),
    ]
    assert request.system_text == "rules"
    assert request.turns[1].keys[:2] == (PartKey(2, 0), PartKey(2, 1))
    assert blocks(request, 2)[1] == ContentBlock(BlockKind.THINKING, hidden_chars=2, data="zz")
    assert [block.name for number in (8, 9) for block in blocks(request, number)] == ["read", "patch"]
    assert [message.role for message in request.messages[2:10]] == [ASSISTANT] * 6 + [TOOL] * 2


@pytest.mark.parametrize(
    ("item", "block"),
    [
        (
            {"type": "local_shell_call", "call_id": "a", "action": {"command": ["ls"]}},
            ContentBlock(BlockKind.TOOL_CALL, '{"command": ["ls"]}', "a", "local_shell"),
        ),
        (
            {"type": "tool_search_call", "call_id": "a", "arguments": {"q": 1}},
            ContentBlock(BlockKind.TOOL_CALL, '{"q": 1}', "a", "tool_search"),
        ),
        (
            {"type": "tool_search_call", "call_id": "a", "name": "own", "arguments": "{}"},
            ContentBlock(BlockKind.TOOL_CALL, "{}", "a", "own"),
        ),
        (
            {"type": "function_call", "id": "f", "name": "read", "arguments": None},
            ContentBlock(BlockKind.TOOL_CALL, "null", "f", "read"),
        ),
        (
            {"type": "mcp_call", "id": "m", "arguments": "{}"},
            ContentBlock(BlockKind.OTHER, '{"type": "mcp_call", "id": "m", "arguments": "{}"}', name="mcp_call"),
        ),
    ],
)
def test_calls_of_other_kinds_are_read_by_what_they_hold(item: dict[str, Any], block: ContentBlock) -> None:
    request = decode([item])
    assert blocks(request) == [block]
    assert [turn.message.role for turn in request.turns] == [ASSISTANT]


@pytest.mark.parametrize(
    ("output", "texts", "is_error"),
    [
        ({"output": {"content": "no", "success": False}}, ["no"], True),
        ({"output": {"content": [{"type": "input_text", "text": "yes"}], "success": True}}, ["yes"], False),
        ({"output": {"content": "x"}}, ["x"], False),
        ({"output": {"type": "computer_screenshot"}}, ['{"type": "computer_screenshot"}'], False),
        ({"output": None}, [""], False),
    ],
)
def test_outputs_tell_what_came_of_a_call(output: dict[str, Any], texts: list[str], is_error: bool) -> None:
    request = decode([{"type": "function_call_output", "call_id": "a", "name": "own", **output}])
    assert [(block.text, block.is_error, block.name) for block in blocks(request)] == [
        (text, is_error, "own") for text in texts
    ]


def test_an_output_without_one_is_empty() -> None:
    assert blocks(decode([{"type": "shell_call_output"}])) == [ContentBlock(BlockKind.TOOL_RESULT)]


@pytest.mark.parametrize(
    ("item", "origin"),
    [
        (said("hi"), ""),
        ({"role": "user", "content": "hi"}, ""),
        (said("<environment_context>x</environment_context>"), "client"),
        (said("# AGENTS.md instructions for /x"), "client"),
        (said("<system-reminder>x</system-reminder>"), "client"),
        ({"type": "item_reference", "id": "x"}, "client"),
        ({"id": "x"}, "client"),
        ({"type": "compaction", "encrypted_content": "zz"}, "compact_summary"),
        ({"role": "user", "content": []}, ""),
        ({"role": "user", "content": [{"type": "input_file"}]}, ""),
    ],
)
def test_messages_on_the_users_side_say_why_they_are_there(item: dict[str, Any], origin: str) -> None:
    [turn] = decode([item]).turns
    assert (turn.message.role, turn.message.origin) == (USER, origin)


@pytest.mark.parametrize("key", ["previous_response_id", "conversation"])
def test_a_conversation_that_the_provider_keeps_is_told(key: str) -> None:
    assert decode([], **{key: "x"}).has_server_history
    assert not decode([], **{key: None}).has_server_history


def test_the_cache_key_names_the_session() -> None:
    assert decode([], prompt_cache_key="k").session_hint == "k"
    assert decode([], prompt_cache_key=7).session_hint == ""


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"input":7}',
        b'{"input":["hi"]}',
        b'{"input":[{"role":"critic","content":"x"}]}',
        b'{"input":[{"type":"function_call","arguments":"","arguments":"{}"}]}',
    ],
)
def test_what_holds_no_input_that_we_know_is_refused(body: bytes) -> None:
    with pytest.raises(WireFormatError):
        decode_request(WireApi.RESPONSES, body)
