"""Requests of Anthropic's Messages API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_gatekeeper.errors import WireFormatError
from context_gatekeeper.types import BlockKind, ContentBlock, MessageRole
from context_gatekeeper.wire import decode_request
from context_gatekeeper.wire.records import CacheMark, WireApi, WireRequest

USER, ASSISTANT, TOOL, SYSTEM = MessageRole.USER, MessageRole.ASSISTANT, MessageRole.TOOL, MessageRole.SYSTEM
MARK = {"type": "ephemeral"}


def decode(*messages: Any, **keys: Any) -> WireRequest:
    return decode_request(WireApi.MESSAGES, json.dumps({"messages": list(messages), **keys}).encode())


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def text(said: str, **keys: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **keys}


def use(call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": arguments}


def result(call_id: str, content: Any = "ok", **keys: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **keys}


def shapes(request: WireRequest) -> list[tuple[MessageRole, list[str]]]:
    return [(turn.message.role, [block.kind.value for block in turn.message.blocks]) for turn in request.turns]


def refusal(body: bytes) -> str:
    with pytest.raises(WireFormatError) as caught:
        decode_request(WireApi.MESSAGES, body)
    return caught.value.cause


def test_each_result_is_a_message_of_its_own_and_what_stands_between_them_is_the_users() -> None:
    request = decode(
        user(text("go")),
        assistant(text("so"), use("a", n=1), use("b")),
        user(result("a"), text("look"), result("b", [text("x"), text("y")], is_error=True), text("and")),
    )
    assert shapes(request) == [
        (USER, ["text"]),
        (ASSISTANT, ["text", "tool_call", "tool_call"]),
        (TOOL, ["tool_result"]),
        (USER, ["text"]),
        (TOOL, ["tool_result", "tool_result"]),
        (USER, ["text"]),
    ]
    failed = request.turns[4].message.blocks
    assert failed[1] == ContentBlock(BlockKind.TOOL_RESULT, "y", "b", "Read", is_error=True)
    assert [message.role for message in request.messages] == [USER, ASSISTANT, USER]


def test_a_call_keeps_the_text_of_its_arguments() -> None:
    body = b'{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","input":{ "n" : 1e999,"n":2 }}]}]}'
    [turn] = decode_request(WireApi.MESSAGES, body).turns
    assert turn.message.blocks == (ContentBlock(BlockKind.TOOL_CALL, '{ "n" : 1e999,"n":2 }', "a"),)


def test_server_tools_stand_in_the_call_as_blocks_that_are_kept_or_left_whole() -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "web_search_result"}]}
    request = decode(user(text("go")), assistant(search, found, text("so")))
    assert shapes(request)[1] == (ASSISTANT, ["other", "other", "text"])
    assert [part.block.name for part in request.messages[1].parts[:2]] == ["server_tool_use", "web_search_tool_result"]
    assert json.loads(request.messages[1].parts[1].block.text) == found


def test_thinking_without_text_is_kept_with_its_signature_and_cannot_be_replaced() -> None:
    empty = {"type": "thinking", "thinking": "", "signature": "sig"}
    [message] = decode(assistant(empty, {"type": "redacted_thinking", "data": "zz"}, text("so"))).messages
    assert [part.block for part in message.parts] == [
        ContentBlock(BlockKind.THINKING, signature="sig"),
        ContentBlock(BlockKind.THINKING, hidden_chars=2, data="zz"),
        ContentBlock(BlockKind.TEXT, "so"),
    ]
    assert [part.text_span is None for part in message.parts] == [True, True, False]


def test_an_image_in_a_result_is_no_text() -> None:
    """O12: the length of its data counts for nothing."""
    data = "QUJD" * 50_000
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    [message] = decode(user(result("u1", [image]))).messages
    assert [part.block for part in message.parts] == [
        ContentBlock(BlockKind.TOOL_RESULT, "", "u1"),
        ContentBlock(BlockKind.IMAGE, hidden_chars=200_000, data=data, media_type="image/png"),
    ]


@pytest.mark.parametrize("content", [{"content": None}, {"content": []}, {}, {"content": ""}])
def test_a_result_without_content_is_an_empty_one(content: dict[str, Any]) -> None:
    [turn] = decode(user({"type": "tool_result", "tool_use_id": "a", **content})).turns
    assert turn.message.blocks == (ContentBlock(BlockKind.TOOL_RESULT, "", "a"),)


def test_a_result_of_another_kind_is_its_json_and_told() -> None:
    request = decode(user(result("a", {"x": 1}), {"type": "tool_result", "content": [{"type": "text"}]}))
    assert [part.block.text for part in request.messages[0].parts] == ['{"x": 1}', "", '{"type": "text"}']
    assert [part.text_span for part in request.messages[0].parts] == [None, None, None]
    assert request.warnings == (
        "message 0: a tool result is neither a text nor a list; it is kept as it is",
        "message 0: a part of type 'text' lacks what belongs to it; it is kept as it is",
    )


@pytest.mark.parametrize("content", ["", None, [], ...])
def test_a_message_without_content_is_a_turn_without_blocks(content: Any) -> None:
    message = {"role": "user"} if content is ... else {"role": "user", "content": content}
    request = decode(message)
    assert request.messages[0].parts == ()
    assert [(turn.message.blocks, turn.keys) for turn in request.turns] == [((), ())]


def test_content_of_another_kind_is_one_block() -> None:
    request = decode({"role": "user", "content": {"x": 1}}, user("plain", 7))
    assert [(part.block.kind, part.block.text, part.block.name) for one in request.messages for part in one.parts] == [
        (BlockKind.OTHER, '{"x": 1}', "content"),
        (BlockKind.TEXT, "plain", ""),
        (BlockKind.OTHER, "7", "part"),
    ]
    assert len(request.warnings) == 2


def test_results_in_an_assistants_message_stand_behind_its_own_blocks() -> None:
    assert shapes(decode(assistant(use("a"), result("a"), text("so")))) == [
        (ASSISTANT, ["tool_call", "text"]),
        (TOOL, ["tool_result"]),
    ]


def test_system_texts_come_without_the_header_that_changes_from_request_to_request() -> None:
    system = [text("x-anthropic-billing-header: v=1;"), text("You help."), text(""), {"type": "image"}]
    request = decode({"role": "system", "content": "At the start."}, user(text("hi")), system=system)
    assert request.system_text == "You help.\n\nAt the start."
    assert shapes(request) == [(USER, ["text"])]
    assert len(request.messages[0].parts) == 1
    assert decode(system="You help.").system_text == "You help."
    assert decode(system=None).system_text == ""
    assert decode().system_text == ""


def test_system_messages_in_between_are_turns() -> None:
    request = decode(user(text("hi")), {"role": "system", "content": "note"}, assistant(text("so")))
    assert shapes(request)[1] == (SYSTEM, ["text"])
    assert request.turns[1].message.origin == ""


def test_a_message_of_an_unknown_role_is_the_users_and_says_why() -> None:
    request = decode({"role": "critic", "content": "hm"}, {"content": "hm"}, {"role": 7, "content": "hm"})
    assert [(turn.message.role, turn.message.origin) for turn in request.turns] == [
        (USER, "critic"),
        (USER, "unknown"),
        (USER, "unknown"),
    ]
    assert len(request.warnings) == 3


@pytest.mark.parametrize(
    ("blocks", "origin"),
    [
        (["<system-reminder>a</system-reminder>"], "client"),
        ([" <system-reminder>a</system-reminder>\n<system-reminder>b</system-reminder>\n"], "client"),
        (["<system-reminder>a</system-reminder>", "<system-reminder>b</system-reminder>"], "client"),
        (["<system-reminder>a</system-reminder> typed <system-reminder>b</system-reminder>"], ""),
        (["<system-reminder>a"], ""),
        (["<system-reminder>a</system-reminder>", "typed"], ""),
        (["typed"], ""),
        ([""], ""),
    ],
)
def test_what_holds_reminders_alone_was_typed_by_nobody(blocks: list[str], origin: str) -> None:
    request = decode(user(*(text(one) for one in blocks)))
    assert [turn.message.origin for turn in request.turns] == [origin]


def test_breakpoints_are_listed_and_parts_that_have_one_are_marked() -> None:
    hour = {"type": "ephemeral", "ttl": "1h"}
    request = decode(
        user(text("a", cache_control=MARK), text("b", cache_control=None)),
        assistant(use("t")),
        user(
            result("t", [text("x", cache_control=hour), text("y")]), result("u", [text("z"), "s"], cache_control=MARK)
        ),
        tools=[{"name": "Read", "cache_control": hour}, "odd"],
        system=[text("s", cache_control=MARK), text("t")],
        cache_control=MARK,
    )
    five, long = "5m", "1h"
    assert request.marks == (
        CacheMark("tools", long),
        CacheMark("system", five),
        CacheMark("messages", five),
        CacheMark("messages", long),
        CacheMark("messages", five),
        CacheMark("request", five),
    )
    marked = [part.is_marked for message in request.messages for part in message.parts]
    assert marked == [True, False, False, True, False, True, True]


def test_a_message_is_the_same_with_breakpoints_and_as_a_text() -> None:
    fingerprints = {
        decode(message).messages[0].fingerprint
        for message in (
            {"role": "user", "content": "hi"},
            user(text("hi")),
            user(text("hi", cache_control=MARK)),
            user(text("hi", cache_control=None)),
        )
    }
    assert len(fingerprints) == 1
    plain, marked = (
        user(result("a", [text("x"), "s"])),
        user(
            result("a", [text("x", cache_control=MARK), "s"]),
        ),
    )
    assert decode(plain).messages[0].fingerprint == decode(marked).messages[0].fingerprint
    assert decode(plain).messages[0].fingerprint != decode(user(result("a", "x"))).messages[0].fingerprint


@pytest.mark.parametrize(
    ("user_id", "hint"),
    [
        ('{"device_id":"d","session_id":"s-1"}', "s-1"),
        ('{"device_id":"d"}', ""),
        ("{broken", ""),
        ("user_0a_account__session_123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
        ("user_0a_session_short", ""),
        (7, ""),
    ],
)
def test_the_session_is_the_one_that_the_user_id_names(user_id: Any, hint: str) -> None:
    assert decode(metadata={"user_id": user_id}).session_hint == hint


def test_requests_without_metadata_name_no_session() -> None:
    assert decode().session_hint == decode(metadata=None).session_hint == decode(metadata={}).session_hint == ""


def test_the_model_streaming_and_the_tools_are_told() -> None:
    body = b'{"model":"claude-opus-4-8","stream":true,"tools":[ {"name":"Read"} ],"messages":[]}'
    request = decode_request(WireApi.MESSAGES, body)
    assert (request.model, request.is_stream, request.tools_text) == ("claude-opus-4-8", True, '[ {"name":"Read"} ]')
    assert (request.api, request.has_server_history) == (WireApi.MESSAGES, False)
    plain = decode(tools=[], stream="yes", model=None)
    assert (plain.model, plain.is_stream, plain.tools_text) == ("", False, "")


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (b"{}", "it has no list of messages"),
        (b'{"messages":"hi"}', "it has no list of messages"),
        (b'{"messages":["hi"]}', "a message is no object"),
        (b'{"messages":[[]]}', "a message is no object"),
    ],
)
def test_what_holds_no_messages_is_refused(body: bytes, cause: str) -> None:
    assert refusal(body) == cause


@pytest.mark.parametrize(
    "message",
    [
        '{"role":"user","content":"a","content":"b"}',
        '{"role":"user","content":[{"type":"text","text":"a","text":"b"}]}',
        '{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"a","text":"b"}]}]}',
        '{"role":"user","content":[{"type":"image","source":{"data":"aa","data":"bb"}}]}',
    ],
)
def test_a_key_that_stands_twice_where_it_matters_is_refused(message: str) -> None:
    assert "stands twice" in refusal(f'{{"messages":[{message}]}}'.encode())


def test_a_changed_name_of_a_tool_reaches_results_that_are_known() -> None:
    first = decode(assistant(use("a")), user(result("a")), user(text("x")))
    other = assistant({**use("a"), "name": "Bash"})
    body = json.dumps({"messages": [other, user(result("a")), user(text("x"))]}).encode()
    again = decode_request(WireApi.MESSAGES, body, first)
    assert again == decode_request(WireApi.MESSAGES, body)
    assert again.messages[1].parts[0].block.name == "Bash"
    assert again.turns[2] is first.turns[2]
