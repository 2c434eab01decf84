"""One answer of each API, in our own words, and what it says."""

from __future__ import annotations

import json
from typing import Any

from context_gatekeeper.types import BlockKind, ContentBlock
from context_gatekeeper.wire.answers import WireAnswer, read_answer
from context_gatekeeper.wire.records import WireApi

STREAM, JSON = "text/event-stream; charset=utf-8", "application/json"
MESSAGES, CHAT, RESPONSES = WireApi


def streamed(*events: Any) -> bytes:
    """A stream of events; a text stands as it is."""
    told = [event if isinstance(event, str) else json.dumps(event, ensure_ascii=False) for event in events]
    return "".join(f"data: {data}\n\n" for data in told).encode("utf-8", "surrogatepass")


def read(api: WireApi, *events: Any) -> WireAnswer:
    return read_answer(api, STREAM, streamed(*events))


def read_whole(api: WireApi, body: Any) -> WireAnswer:
    return read_answer(api, JSON, json.dumps(body).encode())


def text(words: str) -> ContentBlock:
    return ContentBlock(BlockKind.TEXT, words)


def call(call_id: str, name: str, arguments: str) -> ContentBlock:
    return ContentBlock(BlockKind.TOOL_CALL, arguments, call_id, name)


def thought(words: str, signature: str = "") -> ContentBlock:
    return ContentBlock(BlockKind.THINKING, words, signature=signature)


def sealed(data: str) -> ContentBlock:
    return ContentBlock(BlockKind.THINKING, hidden_chars=len(data), data=data)


def started(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **told: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **told}}


ANTHROPIC_STREAM = (
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "model": "claude-opus-5",
            "usage": {
                "input_tokens": 7,
                "cache_read_input_tokens": 4000,
                "cache_creation_input_tokens": 300,
                "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
                "output_tokens": 1,
            },
            "input_transformations": [{"type": "thinking_dropped", "block": 2}, {"type": "thinking_dropped"}],
        },
    },
    {"type": "ping"},
    started(0, type="thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="Look at "),
    delta(0, "thinking_delta", thinking="the tests."),
    delta(0, "signature_delta", signature="c2ln"),
    {"type": "content_block_stop", "index": 0},
    started(1, type="text", text=""),
    delta(1, "text_delta", text="你好 🟢"),
    delta(1, "citations_delta", citation={"type": "page", "start": 1}),
    delta(1, "text_delta", text=", both."),
    started(2, type="tool_use", id="toolu_1", name="Bash", input={}),
    delta(2, "input_json_delta", partial_json=""),
    delta(2, "input_json_delta", partial_json='{"command": "make '),
    delta(2, "input_json_delta", partial_json='test",  "n": 1e999}'),
    started(3, type="tool_use", id="toolu_2", name="Status", input={}),
    started(4, type="server_tool_use", id="srv_1", name="web_search", input={}),
    delta(4, "input_json_delta", partial_json='{"query": "q"}'),
    started(5, type="redacted_thinking", data="b3BhcXVl"),
    {"type": "an_event_of_next_year", "index": 5},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"input_tokens": 0, "output_tokens": 88},
        "context_management": {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 3}]},
    },
    {"type": "message_stop"},
)
ANTHROPIC_BLOCKS = (
    thought("Look at the tests.", "c2ln"),
    text("你好 🟢, both."),
    call("toolu_1", "Bash", '{"command": "make test",  "n": 1e999}'),
    call("toolu_2", "Status", "{}"),
    ContentBlock(
        BlockKind.OTHER,
        '{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"q"}}',
        name="server_tool_use",
    ),
    sealed("b3BhcXVl"),
)


def chat_chunk(choice: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "model": "gpt-5.6", "choices": [] if choice is None else [choice], **fields}


def chat_delta(**told: Any) -> dict[str, Any]:
    return chat_chunk({"index": 0, "delta": told, "finish_reason": None})


def chat_call(index: int, arguments: str, **beside: Any) -> dict[str, Any]:
    name = beside.pop("name", None)
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"index": index, "function": function, **beside}


CHAT_STREAM = (
    chat_delta(role="assistant", content="", refusal=None),
    chat_delta(reasoning_content="Think "),
    chat_delta(reasoning_content="first."),
    chat_delta(content="On "),
    chat_delta(content="it."),
    chat_delta(tool_calls=[chat_call(0, "", id="call_a", name="read", type="function")]),
    chat_delta(tool_calls=[chat_call(1, '{"p":', id="call_b", name="grep"), chat_call(0, '{"path": "a')]),
    chat_delta(tool_calls=[chat_call(0, '.py"}'), chat_call(1, "1}")]),
    chat_chunk({"index": 0, "delta": {}, "finish_reason": "tool_calls"}),
    chat_chunk(
        usage={
            "prompt_tokens": 1000,
            "completion_tokens": 50,
            "total_tokens": 1050,
            "prompt_tokens_details": {"cached_tokens": 640, "cache_write_tokens": 256},
        }
    ),
    "[DONE]",
)
CHAT_BLOCKS = (
    thought("Think first."),
    text("On it."),
    call("call_a", "read", '{"path": "a.py"}'),
    call("call_b", "grep", '{"p":1}'),
)

RESPONSES_ITEMS = (
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Plan."}, {"type": "summary_text", "text": "Go."}],
        "encrypted_content": "Z0FB",
    },
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Done.", "annotations": []}, {"type": "refusal", "refusal": "No."}],
    },
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "shell", "arguments": '{"cmd":["ls"]}'},
    {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_2", "name": "apply_patch", "input": "*** Begin"},
    {"type": "local_shell_call", "call_id": "call_3", "action": {"command": ["ls"]}, "status": "completed"},
    {"type": "tool_search_call", "call_id": "call_4", "arguments": {"q": "mail"}},
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
)
RESPONSES_BLOCKS = (
    thought("Plan."),
    thought("Go."),
    sealed("Z0FB"),
    text("Done."),
    text("No."),
    call("call_1", "shell", '{"cmd":["ls"]}'),
    call("call_2", "apply_patch", "*** Begin"),
    call("call_3", "local_shell", '{"command":["ls"]}'),
    call("call_4", "tool_search", '{"q":"mail"}'),
    ContentBlock(
        BlockKind.OTHER, '{"type":"web_search_call","id":"ws_1","status":"completed"}', name="web_search_call"
    ),
)
RESPONSES_USAGE = {
    "input_tokens": 900,
    "input_tokens_details": {"cached_tokens": 512, "cache_write_tokens": 128},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 20},
    "total_tokens": 930,
}


def response(status: str, **fields: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "model": "gpt-5.6-codex", "status": status, **fields}


def item_event(kind: str, place: int, item: Any) -> dict[str, Any]:
    return {"type": f"response.output_item.{kind}", "output_index": place, "item": item}


def item_delta(kind: str, place: int, words: str, **beside: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": place, "delta": words, **beside}


RESPONSES_START = (
    {"type": "response.created", "response": response("in_progress", output=[])},
    item_event("added", 0, {"type": "reasoning", "id": "rs_1", "summary": []}),
    item_delta("reasoning_summary_text", 0, "Pl", summary_index=0),
    item_delta("reasoning_summary_text", 0, "an.", summary_index=0),
    item_delta("reasoning_summary_text", 0, "Go.", summary_index=1),
    item_event("added", 1, {"type": "message", "role": "assistant", "content": []}),
    item_delta("output_text", 1, "Do", content_index=0),
    item_delta("output_text", 1, "ne.", content_index=0),
    item_delta("refusal", 1, "No.", content_index=1),
    item_event("added", 2, {"type": "function_call", "call_id": "call_1", "name": "shell", "arguments": ""}),
    item_delta("function_call_arguments", 2, '{"cmd":'),
    item_delta("function_call_arguments", 2, '["ls"]}'),
    item_event("added", 3, {"type": "custom_tool_call", "call_id": "call_2", "name": "apply_patch", "input": ""}),
    item_delta("custom_tool_call_input", 3, "*** Begin"),
)
RESPONSES_STREAM = (
    *RESPONSES_START,
    *(item_event("done", place, item) for place, item in enumerate(RESPONSES_ITEMS)),
    {"type": "response.completed", "response": response("completed", output=[], usage=RESPONSES_USAGE)},
)
SAMPLES = {MESSAGES: ANTHROPIC_STREAM, CHAT: CHAT_STREAM, RESPONSES: RESPONSES_STREAM}
BLOCKS = {MESSAGES: ANTHROPIC_BLOCKS, CHAT: CHAT_BLOCKS, RESPONSES: RESPONSES_BLOCKS}
