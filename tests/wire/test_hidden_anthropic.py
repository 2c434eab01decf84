"""Own calls hidden in answers of Anthropic Messages: what blocks are put together from, numbers, counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_gatekeeper.testing.records import FakeReply
from context_gatekeeper.wire.own_tool import OWN_TOOL
from tests.wire.answer_samples import ANTHROPIC_STREAM, delta, started, streamed
from tests.wire.hidden_exchanges import MESSAGES, event_values, expand, fed, play, read, said, whole_of

OWN = started(1, type="tool_use", id="toolu_9", name=OWN_TOOL, input={})
STARTED = {"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 7, "output_tokens": 1}}}
STOPPED = {"type": "message_stop"}


def ended(reason: str = "tool_use", **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5, **usage}}


def stopped(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def blocks_of(*events: Any) -> list[Any]:
    """The blocks of an answer that calls our tool behind these events."""
    done, _ = fed(MESSAGES, streamed(STARTED, *events, {**OWN, "index": 8}, stopped(8), ended(), STOPPED))
    assert done.finished[0].cause == ""
    *blocks, own = (json.loads(text) for text in done.finished[0].blocks)
    assert own == OWN["content_block"]
    return blocks


def test_blocks_go_back_as_they_came() -> None:
    whole = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"url": "a", "n": 1.50}]}
    events = (
        started(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="Look "),
        json.dumps(delta(0, "thinking_delta", thinking="at \ud83d")),
        json.dumps(delta(0, "thinking_delta", thinking="\ude00")),
        delta(0, "signature_delta", signature="c2ln"),
        started(1, type="text", text="H", citations=[{"a": 1}]),
        delta(1, "text_delta", text="i."),
        delta(1, "citations_delta", citation={"type": "page", "start": 1}),
        started(2, type="server_tool_use", id="srv_1", name="web_search", input={}),
        delta(2, "input_json_delta", partial_json=""),
        delta(2, "input_json_delta", partial_json='{"query": '),
        delta(2, "input_json_delta", partial_json='"q", "n": 1e999}'),
        started(3, **whole),
        started(4, type="redacted_thinking", data="b3Bh"),
        started(5, type="block_of_next_year", n=1),
    )
    assert blocks_of(*events) == [
        {"type": "thinking", "thinking": "Look at 😀", "signature": "c2ln"},
        {"type": "text", "text": "Hi.", "citations": [{"a": 1}, {"type": "page", "start": 1}]},
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q", "n": float("inf")}},
        whole,
        {"type": "redacted_thinking", "data": "b3Bh"},
        {"type": "block_of_next_year", "n": 1},
    ]


def test_citations_may_be_missing_at_first() -> None:
    for held in ({}, {"citations": None}):
        events = (started(0, type="text", text="a", **held), delta(0, "citations_delta", citation={"x": 1}))
        assert blocks_of(*events) == [{"type": "text", "text": "a", "citations": [{"x": 1}]}]


@pytest.mark.parametrize(
    ("events", "cause"),
    [
        ((started(0, type="text", text=""), delta(0, "new_delta", x=1)), "a block grew in a way that is not known"),
        ((delta(4, "text_delta", text="a"),), "a delta belongs to no block"),
        (({"type": "content_block_start", "index": 0},), "a block is no object"),
        (({"type": "content_block_start", "index": 0, "content_block": "x"},), "a block is no object"),
        ((OWN, delta(1, "input_json_delta", partial_json='{"handle')), "the input of a call is no object"),
        ((OWN, delta(1, "input_json_delta", partial_json='"p1"')), "the input of a call is no object"),
        (
            ('{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","text":""}}',),
            "an event cannot be read",
        ),
    ],
)
def test_what_cannot_go_back_is_told(events: tuple[Any, ...], cause: str) -> None:
    done, hidden = fed(MESSAGES, streamed(STARTED, *events, {**OWN, "index": 8}, ended(), STOPPED))
    assert done.finished[0].cause == cause
    assert done.finished[0].blocks == ()
    assert read(MESSAGES, done.given + hidden.released()).stop_reason == "end_turn"


def test_a_signature_that_came_with_its_block_stays() -> None:
    block = {"type": "thinking", "thinking": "T", "signature": "c2ln"}
    assert blocks_of(started(0, **block)) == [block]


def test_events_of_our_call_are_left_out_and_others_renumbered() -> None:
    new = {"type": "an_event_of_next_year", "index": 1}
    behind = (started(2, type="text", text=""), delta(2, "text_delta", text="a"), new, stopped(2))
    done, _ = fed(MESSAGES, streamed(STARTED, started(0, type="text", text="b"), OWN, new, stopped(1), *behind))
    assert [(event["type"], event.get("index")) for event in event_values(done.given)] == [
        ("message_start", None),
        ("content_block_start", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
        ("content_block_stop", 1),
    ]


def test_events_without_an_index_belong_to_the_last_block() -> None:
    def bare(event: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in event.items() if key != "index"}

    events = [started(0, type="text", text=""), delta(0, "text_delta", text="a"), stopped(0), OWN]
    grown = delta(1, "input_json_delta", partial_json='{"handle":"p1"}')
    content = streamed(bare(delta(0, "text_delta", text="?")), *map(bare, events), bare(grown), bare(stopped(1)))
    done, _ = fed(MESSAGES, content)
    assert (
        done.given == content[: content.index(b'data: {"type": "content_block_start", "content_block": {"type": "tool')]
    )
    assert [call.arguments for call in done.finished[0].calls] == ['{"handle":"p1"}']


def test_the_providers_own_numbers_stand_until_something_is_hidden() -> None:
    content = streamed(STARTED, started(3, type="text", text="a"), stopped(3), started(5, type="text", text="b"))
    done, _ = fed(MESSAGES, content + streamed({**OWN, "index": 6}, started(7, type="text", text="c")))
    assert done.given.startswith(content)
    assert event_values(done.given)[-1]["index"] == 6


def test_the_end_tells_what_the_beginning_could_not_know() -> None:
    second = {"type": "message_start", "message": {"usage": {"input_tokens": 90, "cache_read_input_tokens": 30}}}
    details = {"output_tokens_details": {"thinking_tokens": 2}}
    done, _ = fed(
        MESSAGES,
        streamed(STARTED, OWN, ended(**details), STOPPED),
        streamed(second, ended("end_turn", input_tokens=0, output_tokens=7, **details), STOPPED),
    )
    assert event_values(done.given)[-2] == {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {
            "output_tokens": 12,
            "input_tokens": 90,
            "output_tokens_details": {"thinking_tokens": 4},
            "cache_read_input_tokens": 30,
        },
    }


def test_an_end_without_usage_stays_without() -> None:
    bare = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    done, _ = fed(MESSAGES, streamed(STARTED, OWN, ended(), STOPPED), streamed(STARTED, bare, STOPPED))
    assert event_values(done.given)[-2:] == [bare, STOPPED]


def test_a_sample_with_all_kinds_of_blocks_passes_and_stays_readable() -> None:
    first = [*ANTHROPIC_STREAM[:2], OWN, stopped(1), ended(), STOPPED]
    done, _ = fed(MESSAGES, streamed(*first), streamed(*ANTHROPIC_STREAM))
    answer, alone = read(MESSAGES, done.given), read(MESSAGES, streamed(*ANTHROPIC_STREAM))
    assert answer.message.blocks == alone.message.blocks
    assert answer.applied_edits == alone.applied_edits


def test_whole_answers_keep_the_bytes_of_blocks() -> None:
    replies = [FakeReply("A", calls=(expand(),)), FakeReply("B")]
    done = play(MESSAGES, replies, is_stream=False)
    assert read(MESSAGES, done.given).stop_reason == "end_turn"
    for reply in replies:
        assert f'{{"type": "text", "text": "{reply.text}"}}'.encode() in done.given
    assert len(said(replies, MESSAGES)) == len(json.loads(done.given)["content"])


def test_a_whole_answer_that_says_nothing_else_has_no_content() -> None:
    content = whole_of(MESSAGES, FakeReply(thinking="", calls=(expand(), expand())))
    done, hidden = fed(MESSAGES, content, is_stream=False)
    assert len(done.finished[0].calls) == 2
    body = json.loads(hidden.released())
    assert body["content"] == []
    assert body["stop_reason"] == "end_turn"
