"""Answers of OpenAI Responses."""

from __future__ import annotations

from typing import Any

import pytest

from context_gatekeeper.types import BlockKind, Usage
from tests.wire.answer_samples import (
    RESPONSES,
    RESPONSES_BLOCKS,
    RESPONSES_ITEMS,
    RESPONSES_START,
    RESPONSES_STREAM,
    RESPONSES_USAGE,
    call,
    item_delta,
    read,
    read_whole,
    response,
    text,
    thought,
)


def test_a_stream_of_responses_is_assembled() -> None:
    answer = read(RESPONSES, *RESPONSES_STREAM)
    assert answer.message.blocks == RESPONSES_BLOCKS
    assert answer.message.usage == Usage(260, 512, 128, 30)
    assert (answer.response_id, answer.model, answer.stop_reason) == ("resp_1", "gpt-5.6-codex", "completed")
    assert answer.is_complete


def test_a_response_that_breaks_off_holds_what_its_deltas_brought() -> None:
    answer = read(RESPONSES, *RESPONSES_START)
    assert answer.message.blocks == (*RESPONSES_BLOCKS[:2], *RESPONSES_BLOCKS[3:7])
    assert (answer.is_complete, answer.stop_reason, answer.message.usage) == (False, "", None)


def test_a_whole_response_is_read() -> None:
    answer = read_whole(RESPONSES, response("completed", output=list(RESPONSES_ITEMS), usage=RESPONSES_USAGE))
    assert answer.message.blocks == RESPONSES_BLOCKS
    assert (answer.is_complete, answer.message.usage) == (True, Usage(260, 512, 128, 30))


def test_the_output_at_the_end_counts_before_its_pieces() -> None:
    end = {"type": "response.completed", "response": response("completed", output=list(RESPONSES_ITEMS))}
    assert read(RESPONSES, *RESPONSES_START, end).message.blocks == RESPONSES_BLOCKS


@pytest.mark.parametrize(
    ("status", "fields", "reason", "error"),
    [
        ("incomplete", {"incomplete_details": {"reason": "max_output_tokens"}}, "max_output_tokens", ""),
        ("failed", {"error": {"code": "server_error", "message": "Sorry"}}, "failed", "server_error: Sorry"),
        ("cancelled", {}, "cancelled", ""),
    ],
)
def test_a_response_may_end_in_other_ways(status: str, fields: dict[str, Any], reason: str, error: str) -> None:
    end = response(status, **fields)
    for answer in (read(RESPONSES, {"type": f"response.{status}", "response": end}), read_whole(RESPONSES, end)):
        assert (answer.is_complete, answer.stop_reason, answer.error) == (True, reason, error)


@pytest.mark.parametrize("status", ["in_progress", "queued"])
def test_a_response_that_runs_in_the_background_is_not_complete(status: str) -> None:
    assert not read_whole(RESPONSES, response(status)).is_complete
    assert not read(RESPONSES, {"type": f"response.{status}", "response": response(status)}).is_complete


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "server_error", "message": "Gone"},
        {"type": "error", "error": {"type": "server_error", "message": "Gone"}},
    ],
)
def test_an_error_event_of_responses_is_told(event: dict[str, Any]) -> None:
    answer = read(RESPONSES, *RESPONSES_START, event)
    assert (answer.error, answer.is_complete) == ("server_error: Gone", False)


def test_items_whose_start_was_lost_are_told_by_their_deltas() -> None:
    answer = read(
        RESPONSES,
        item_delta("reasoning_text", 0, "a"),
        item_delta("output_text", 1, "b"),
        {"type": "response.output_text.delta", "delta": "c"},
        item_delta("function_call_arguments", 2, "{"),
        {"type": "response.output_text.annotation.added", "output_index": 1},
    )
    assert answer.message.blocks == (thought("a"), text("bc"), call("", "function", "{"))


def test_odd_items_are_kept_whole() -> None:
    output = [{"type": "message", "content": [{"type": "output_audio", "x": 1}, {}]}, {"a": 1}, {"type": "x_call"}]
    blocks = read_whole(RESPONSES, response("completed", output=output)).message.blocks
    assert [(block.kind, block.name) for block in blocks] == [
        (BlockKind.OTHER, "output_audio"),
        (BlockKind.OTHER, "part"),
        (BlockKind.OTHER, "item"),
        (BlockKind.OTHER, "x_call"),
    ]
