"""Answers of Anthropic Messages."""

from __future__ import annotations

from context_gatekeeper.types import BlockKind, ContentBlock, MessageRole, Usage
from context_gatekeeper.wire.answers import read_answer
from context_gatekeeper.wire.records import WireApi
from tests.wire.answer_samples import (
    ANTHROPIC_BLOCKS,
    ANTHROPIC_STREAM,
    CHAT,
    MESSAGES,
    STREAM,
    call,
    delta,
    read,
    read_whole,
    started,
    text,
    thought,
)


def test_a_stream_of_anthropic_is_assembled() -> None:
    answer = read(MESSAGES, *ANTHROPIC_STREAM)
    assert answer.message.blocks == ANTHROPIC_BLOCKS
    assert (answer.message.role, answer.message.is_call) == (MessageRole.ASSISTANT, True)
    assert answer.message.usage == Usage(7, 4000, 300, 88)
    assert (answer.response_id, answer.model, answer.stop_reason) == ("msg_1", "claude-opus-5", "tool_use")
    assert answer.written_1h_tokens == 200
    assert answer.applied_edits == ("clear_tool_uses_20250919",)
    assert answer.input_transformations == ("thinking_dropped", "thinking_dropped")
    assert (answer.is_complete, answer.error, answer.broken_events) == (True, "", 0)


def test_a_whole_answer_of_anthropic_is_read() -> None:
    body = {
        "type": "message",
        "id": "msg_2",
        "model": "claude-haiku-5-5",
        "stop_reason": "end_turn",
        "content": [
            {"type": "thinking", "thinking": "", "signature": "c2ln"},
            {"type": "text", "text": "Yes."},
            {"type": "tool_use", "id": "toolu_3", "name": "Read", "input": {"path": "a.py", "limit": 10}},
            {"type": "server_tool_use", "id": "s", "input": {"q": 1}},
        ],
        "usage": {"input_tokens": 10, "cache_read_input_tokens": None, "output_tokens": 5.0},
    }
    answer = read_whole(MESSAGES, body)
    assert answer.message.blocks == (
        thought("", "c2ln"),
        text("Yes."),
        call("toolu_3", "Read", '{"path":"a.py","limit":10}'),
        ContentBlock(BlockKind.OTHER, '{"type":"server_tool_use","id":"s","input":{"q":1}}', name="server_tool_use"),
    )
    assert answer.message.usage == Usage(10, 0, 0, 5)
    assert (answer.is_complete, answer.stop_reason) == (True, "end_turn")


def test_counts_at_the_end_of_a_stream_replace_those_at_its_start() -> None:
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 0, "output_tokens": 0}}}
    counted = {"input_tokens": 90, "cache_read_input_tokens": 10, "output_tokens": 4}
    end = {"type": "message_delta", "delta": {}, "usage": counted}
    assert read(MESSAGES, start, end, {"type": "message_stop"}).message.usage == Usage(90, 10, 0, 4)


def test_input_transformations_told_again_replace_the_first() -> None:
    start = {"type": "message_start", "message": {"input_transformations": [{"type": "thinking_dropped"}]}}
    assert read(MESSAGES, start, {"type": "message_delta", "input_transformations": []}).input_transformations == ()


def test_an_error_event_of_anthropic_is_told_and_ends_nothing() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded\nnow"}}
    answer = read(MESSAGES, *ANTHROPIC_STREAM[:9], error)
    assert answer.error == "overloaded_error: Overloaded now"
    assert not answer.is_complete
    assert answer.message.usage == Usage(7, 4000, 300, None)
    assert answer.message.blocks == (ANTHROPIC_BLOCKS[0], text("你好 🟢"))


def test_blocks_whose_start_was_lost_are_told_by_their_deltas() -> None:
    answer = read(
        MESSAGES,
        delta(0, "thinking_delta", thinking="a"),
        delta(1, "text_delta", text="b"),
        delta(2, "input_json_delta", partial_json='{"c":'),
        delta(3, "strange_delta", strange=1),
    )
    assert answer.message.blocks == (
        thought("a"),
        text("b"),
        call("", "", '{"c":'),
        ContentBlock(BlockKind.OTHER, '{"strange":1}', name="block"),
    )


def test_deltas_without_an_index_belong_to_the_last_block() -> None:
    events = [started(0, type="text", text="a"), delta(0, "text_delta", text="b"), started(1, type="text", text="c")]
    without = [{key: value for key, value in event.items() if key != "index"} for event in events]
    assert read(MESSAGES, *without).message.blocks == (text("ab"), text("c"))


def test_a_block_of_an_unknown_type_is_kept_with_what_its_deltas_set() -> None:
    answer = read(
        MESSAGES,
        started(0, type="compaction", content=None),
        delta(0, "compaction_delta", content="Short.", encrypted_content="YQ"),
        started(1, type="mcp_tool_use", input={}),
        delta(1, "input_json_delta", partial_json='{"cut'),
    )
    assert [block.text for block in answer.message.blocks] == [
        '{"type":"compaction","content":"Short.","encrypted_content":"YQ"}',
        '{"type":"mcp_tool_use","input":"{\\"cut"}',
    ]


def test_the_name_of_an_event_counts_where_its_data_have_no_type() -> None:
    stream = b'event: content_block_delta\ndata: {"delta": {"text": "a"}}\n\nevent: message_stop\ndata: {}\n\n'
    answer = read_answer(MESSAGES, STREAM, stream)
    assert (answer.message.blocks, answer.is_complete) == ((text("a"),), True)


def test_an_end_mark_ends_chat_completions_alone() -> None:
    complete = [read(api, "[DONE]").is_complete for api in WireApi]
    assert complete == [api is CHAT for api in WireApi]
