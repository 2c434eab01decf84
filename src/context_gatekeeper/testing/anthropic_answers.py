"""Answers of the Messages API, whole and as server-sent events."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any

from context_gatekeeper.testing.answers import Answer, arguments_text, cut_pieces, named_event
from context_gatekeeper.testing.context_editing import asks_for_edits
from context_gatekeeper.testing.records import FakeCall
from context_gatekeeper.testing.signatures import sign_thinking

__all__ = ["has_thinking", "messages_body", "messages_events"]


def has_thinking(answer: Answer) -> bool:
    """Whether the answer shows its thinking: MiniMax's models always, the others where the request asks for it."""
    asked = answer.request.body.get("thinking")
    is_on = isinstance(asked, dict) and asked.get("type") in ("enabled", "adaptive")
    return bool(answer.reply.thinking) and (answer.is_minimax or is_on)


def _thinking_block(answer: Answer) -> dict[str, Any]:
    thinking = answer.reply.thinking
    if answer.reply.is_redacted:
        sealed = b64encode(thinking.encode()).decode()
        return {"type": "redacted_thinking", "data": f"{sign_thinking(answer.request.sent_blocks, thinking)}.{sealed}"}
    asked = answer.request.body.get("thinking")
    if isinstance(asked, dict) and asked.get("display") == "omitted":
        thinking = ""
    signature = sign_thinking(answer.request.sent_blocks, thinking)
    return {"type": "thinking", "thinking": thinking, "signature": signature}


def _content(answer: Answer) -> list[dict[str, Any]]:
    blocks = [_thinking_block(answer)] if has_thinking(answer) else []
    blocks += [dict(block) for block in answer.reply.blocks]
    if answer.reply.text or not (answer.reply.calls or answer.reply.blocks):
        blocks.append({"type": "text", "text": answer.reply.text})
    for place, call in enumerate(answer.reply.calls):
        name = answer.call_id("toolu", place)
        blocks.append({"type": "tool_use", "id": name, "name": call.name, "input": _read_arguments(call)})
    return blocks


def _read_arguments(call: FakeCall) -> dict[str, Any]:
    """The arguments as an object; empty for a text that is none, which only a stream can show."""
    try:
        given = json.loads(arguments_text(call))
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}


def _usage(answer: Answer) -> dict[str, Any]:
    usage = answer.usage
    output_tokens = answer.output_tokens(has_thinking=has_thinking(answer))
    if answer.is_minimax:
        return {"input_tokens": usage.prompt, "output_tokens": output_tokens}
    return {
        "input_tokens": usage.plain,
        "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.written - usage.written_1h,
            "ephemeral_1h_input_tokens": usage.written_1h,
        },
        "output_tokens": output_tokens,
        "service_tier": "standard",
    }


def messages_body(answer: Answer) -> dict[str, Any]:
    """The whole answer."""
    body = {
        "id": answer.name("msg"),
        "type": "message",
        "role": "assistant",
        "model": answer.request.model,
        "content": _content(answer),
        "stop_reason": answer.reply.stop_reason or ("tool_use" if answer.reply.calls else "end_turn"),
        "stop_sequence": None,
        "usage": _usage(answer),
    }
    if answer.is_minimax:
        body["base_resp"] = {"status_code": 0, "status_msg": ""}
    return {**body, **_transformations(answer), **_managed(answer)}


def _transformations(answer: Answer) -> dict[str, Any]:
    rows = [{"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"} for path in answer.dropped]
    return {"input_transformations": rows} if rows else {}


def _managed(answer: Answer) -> dict[str, Any]:
    """What was cleared, where the request asks for something of the kind."""
    if answer.is_minimax or not asks_for_edits(answer.request.body):
        return {}
    return {"context_management": {"applied_edits": list(answer.request.applied_edits)}}


def messages_events(answer: Answer) -> Iterator[str]:
    """The same, streamed."""
    whole = messages_body(answer)
    usage = whole["usage"]
    start = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    managed = _managed(answer)
    for key in managed:  # told at the end
        start[key] = None
    yield named_event({"type": "message_start", "message": start})
    yield named_event({"type": "ping"})
    for index, block in enumerate(whole["content"]):
        empty, deltas = _block_stream(block, answer)
        yield named_event({"type": "content_block_start", "index": index, "content_block": empty})
        for delta in deltas:
            yield named_event({"type": "content_block_delta", "index": index, "delta": delta})
        yield named_event({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    known = {key: value for key, value in usage.items() if key not in ("cache_creation", "service_tier")}
    yield named_event({"type": "message_delta", "delta": delta, "usage": known, **_transformations(answer), **managed})
    yield named_event({"type": "message_stop"})


def _block_stream(block: Mapping[str, Any], answer: Answer) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(the block as it starts, its deltas)."""
    kind = block["type"]
    chars = answer.piece_chars
    if kind in ("text", "thinking"):
        deltas = [{"type": f"{kind}_delta", kind: piece} for piece in cut_pieces(block[kind], chars)]
        if kind == "text":
            return {"type": "text", "text": ""}, deltas
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if kind in ("tool_use", "server_tool_use"):
        sent = next((text for text in _sent_arguments(answer, block)), json.dumps(block["input"], ensure_ascii=False))
        pieces = ["", *cut_pieces(sent, chars)]
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return dict(block), []


def _sent_arguments(answer: Answer, block: Mapping[str, Any]) -> list[str]:
    """The call's JSON text as the reply gives it."""
    calls = enumerate(answer.reply.calls)
    return [arguments_text(call) for place, call in calls if answer.call_id("toolu", place) == block["id"]]
