"""Calls and what answers them."""

from __future__ import annotations

import json

from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.gateway.groups import find_groups
from context_gatekeeper.types import AgentMessage, BlockKind, ContentBlock, MessageRole
from tests.engine.agents import answered, call, gave, returned, said


def groups(*messages: AgentMessage) -> list[tuple[list[int], list[int]]]:
    log = SessionLog()
    for message in messages:
        log.add_message(message)
    return [(group.calls, group.results) for group in find_groups(log.segments)]


def unknown(**members: object) -> ContentBlock:
    return ContentBlock(BlockKind.OTHER, json.dumps(members), name=str(members.get("type")))


def test_a_result_answers_the_newest_call_with_its_id() -> None:
    told = groups(
        said("Go."), answered(call("a", "Read")), returned(gave("a", "x")),
        answered(call("a", "Read"), call("b", "Read")), returned(gave("b", "y")),
        returned(gave("a", "z"), gave("a", "w")),
    )  # fmt: skip
    assert told == [([1], [2]), ([3], [6, 7]), ([4], [5])]


def test_a_result_of_no_call_is_in_no_group() -> None:
    assert groups(said("Go."), returned(gave("a", "x"))) == []


def test_an_item_that_we_do_not_know_may_be_a_call() -> None:
    told = groups(
        answered(unknown(type="computer_call", call_id="c", id="i")),
        returned(gave("c", "seen")),
        answered(unknown(type="mcp_approval_request", id="m")),
        AgentMessage(
            MessageRole.USER, (unknown(type="mcp_approval_response", approval_request_id="m"),), origin="client"
        ),
        AgentMessage(MessageRole.USER, (unknown(type="document"),), origin="client"),
    )
    assert told == [([0], [1]), ([2], [3])]


def test_what_is_no_object_names_nothing() -> None:
    odd = [ContentBlock(BlockKind.OTHER, text, name="x") for text in ("[1]", "{", '{"id": 3}', "[" * 100_000)]
    assert groups(answered(*odd)) == [([number], []) for number in range(4)]
