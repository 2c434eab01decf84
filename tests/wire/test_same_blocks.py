"""A session read from its log and from the wire is the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings

from context_gatekeeper.transcripts.agent_openai import read_message
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.transcripts.session_assembly import assemble_session
from context_gatekeeper.types import AgentMessage, BlockKind, ContentBlock, MessageRole
from context_gatekeeper.wire import decode_request
from tests.wire.requests import UNHURRIED, SampleRequest, anthropic_requests, chat_requests, responses_requests

JSON_KINDS = (BlockKind.TOOL_CALL, BlockKind.OTHER)


def neutral(messages: Sequence[AgentMessage]) -> list[tuple[MessageRole, bool, list[Any]]]:
    """Messages behind the system's, arguments and unknown blocks as what they say."""
    listed = list(messages)
    while listed and listed[0].role is MessageRole.SYSTEM:
        del listed[0]
    return [(one.role, one.is_call, [plain(block) for block in one.blocks]) for one in listed]


def plain(block: ContentBlock) -> Any:
    try:
        return replace(block, text=""), json.loads(block.text) if block.kind in JSON_KINDS else block.text
    except json.JSONDecodeError:
        return block


def on_wire(sample: SampleRequest) -> list[tuple[MessageRole, bool, list[Any]]]:
    return neutral([turn.message for turn in decode_request(sample.api, sample.raw).turns])


def logged(messages: list[dict[str, Any]]) -> list[tuple[MessageRole, bool, list[Any]]]:
    read = [one for message in messages for one in read_message(message, 0, "", [], is_call=lambda _: True)]
    return neutral(assemble_session("1", "test", read, []).messages)


@UNHURRIED
@given(anthropic_requests())
def test_anthropic_messages_are_the_same_as_in_a_list_of_messages(sample: SampleRequest) -> None:
    assert on_wire(sample) == logged(sample.body["messages"])


@UNHURRIED
@given(chat_requests())
def test_chat_messages_are_the_same_as_in_a_list_of_messages_but_for_refusals(sample: SampleRequest) -> None:
    for message in sample.body["messages"]:
        message.pop("refusal", None)
    raw = json.dumps(sample.body).encode()
    assert on_wire(sample._replace(raw=raw)) == logged(sample.body["messages"])


@settings(UNHURRIED, suppress_health_check=list(HealthCheck))
@given(responses_requests())
def test_items_are_the_same_as_in_a_rollout(tmp_path: Path, sample: SampleRequest) -> None:
    given_input = sample.body["input"]
    if isinstance(given_input, str):
        given_input = [{"role": "user", "content": given_input}]
    # A rollout holds no items that its program does not know, which are the model's there.
    items = [{"type": "message", **item} for item in given_input if item.get("type") != "newest_invention"]
    raw = json.dumps({"input": items}).encode()
    head = {"type": "session_meta", "timestamp": "2026-01-01T00:00:00Z", "payload": {"id": "1"}}
    lines = [head, *({"type": "response_item", "timestamp": head["timestamp"], "payload": item} for item in items)]
    rollout = tmp_path / "rollout.jsonl"
    rollout.write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
    [session] = read_sessions(rollout)
    assert on_wire(sample._replace(raw=raw)) == neutral(session.messages)
