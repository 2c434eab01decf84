"""What the three decoders share."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_gatekeeper.types import BlockKind
from context_gatekeeper.wire import decode_request
from context_gatekeeper.wire.decoding import marks_of
from context_gatekeeper.wire.records import CacheMark, WireApi, WireRequest


def decode(messages: list[Any], known: WireRequest | None = None, **keys: Any) -> WireRequest:
    return decode_request(WireApi.MESSAGES, json.dumps({**keys, "messages": messages}).encode(), known)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_messages_that_are_sent_again_are_not_made_again() -> None:
    first = decode([user("a"), user("b")])
    again = decode([user("a"), user("b"), user("c")], first)
    assert again.messages[:2] == first.messages
    assert all(new is old for new, old in zip(again.messages, first.messages, strict=False))
    assert again.turns[0] is first.turns[0]
    assert again.messages[2].parts[0].block.text == "c"


def test_messages_that_moved_keep_their_blocks_and_get_new_places() -> None:
    answer = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}
    first = decode([user("a"), answer])
    again = decode([user("a"), answer], first, model="claude-opus-4-8")
    assert again == decode([user("a"), answer], model="claude-opus-4-8")
    assert again.messages[0].parts[0].span != first.messages[0].parts[0].span
    assert again.messages[0].parts[0].block is first.messages[0].parts[0].block
    assert again.messages[1].parts[0].block is first.messages[1].parts[0].block


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
        {"role": "user", "content": [7]},
        {"role": "user", "content": []},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "input": "odd"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": 7}]},
        {"role": "system", "content": "in front"},
        {"role": "critic", "content": "hm"},
    ],
)
def test_what_is_told_of_a_message_is_told_again(message: dict[str, Any]) -> None:
    first = decode([message])
    again = decode([message, user("next")], first)
    assert again == decode([message, user("next")])


def test_a_result_whose_call_is_gone_has_no_name_any_more() -> None:
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Read", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}
    first = decode([call, result])
    again = decode([user("a"), result], first)
    assert again.messages[1].parts[0].block.kind is BlockKind.TOOL_RESULT
    assert [message.parts[0].block.name for message in first.messages + again.messages] == ["Read", "Read", "", ""]


def test_results_without_an_id_have_no_name() -> None:
    call = {"role": "assistant", "content": [{"type": "tool_use", "name": "Read", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "content": "x"}]}
    assert decode([call, result]).messages[1].parts[0].block.name == ""


@pytest.mark.parametrize(
    ("blocks", "marks"),
    [
        (None, []),
        ("text", []),
        ([7, {}, {"cache_control": None}], []),
        ([{"cache_control": {"type": "ephemeral", "ttl": "1h"}}], [CacheMark("tools", "1h")]),
        ([{"cache_control": {"ttl": "9d"}}, {"cache_control": "odd"}], [CacheMark("tools", "5m")] * 2),
    ],
)
def test_breakpoints_of_a_list_are_told_with_their_life(blocks: object, marks: list[CacheMark]) -> None:
    assert marks_of("tools", blocks) == marks


def test_numbers_and_repeated_keys_of_arguments_count_in_fingerprints() -> None:
    calls = ['{"a":1}', '{"a":1.0}', '{"a":"1"}', '{"a":true}', '{"a":1e0}', '{"a":1,"a":1}', '{"a":[]}', '{"a":{}}']
    marks = set()
    for call in calls:
        body = f'{{"messages":[{{"role":"assistant","content":[{{"type":"tool_use","input":{call}}}]}}]}}'
        marks.add(decode_request(WireApi.MESSAGES, body.encode()).messages[0].fingerprint)
    assert len(marks) == len(calls)
    assert {len(mark) for mark in marks} == {16}
