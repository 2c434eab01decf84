"""Answers in the form of each route, whole and as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.testing.records import FakeReply, ReceivedRequest

__all__ = ["chat_body", "chat_events", "messages_body", "messages_events"]

_PIECE_CHARS = 7
"""Streamed texts are cut after so many characters, in the middle of marks and words."""


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE_CHARS):
        yield text[start : start + _PIECE_CHARS]


def _chat_content(reply: FakeReply) -> str:
    return f"<think>\n{reply.thinking}\n</think>\n\n{reply.text}" if reply.thinking else reply.text


def _chat_frame(request: ReceivedRequest, kind: str) -> dict[str, Any]:
    return {"id": "0fake", "object": kind, "created": 1_764_000_000, "model": request.body["model"]}


def _chat_usage(request: ReceivedRequest, reply: FakeReply) -> dict[str, Any]:
    completion = estimate_tokens(_chat_content(reply))
    return {
        "total_tokens": request.prompt_tokens + completion,
        "total_characters": 0,
        "prompt_tokens": request.prompt_tokens,
        "completion_tokens": completion,
        "completion_tokens_details": {"reasoning_tokens": estimate_tokens(reply.thinking)},
    }


def chat_body(request: ReceivedRequest, reply: FakeReply) -> dict[str, Any]:
    """The whole answer of the OpenAI route."""
    message = {"role": "assistant", "content": _chat_content(reply), "name": "MiniMax AI", "audio_content": ""}
    return {
        **_chat_frame(request, "chat.completion"),
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": _chat_usage(request, reply),
        "input_sensitive": False,
        "output_sensitive": False,
        "base_resp": {"status_code": 0, "status_msg": ""},
    }


def chat_events(request: ReceivedRequest, reply: FakeReply) -> Iterator[str]:
    """The same, streamed."""
    frame = _chat_frame(request, "chat.completion.chunk")
    for piece in _pieces(_chat_content(reply)):
        yield _event({**frame, "choices": [{"index": 0, "delta": {"role": "assistant", "content": piece}}]})
    yield _event({**frame, "choices": [{"index": 0, "finish_reason": "stop", "delta": {"content": ""}}]})
    # The service closes with the whole message once more; a client that adds it up says everything twice.
    whole = chat_body(request, reply)
    if not (request.body.get("stream_options") or {}).get("include_usage"):
        del whole["usage"]
    yield _event(whole)
    yield "data: [DONE]\n\n"


def _messages_blocks(reply: FakeReply) -> list[dict[str, str]]:
    thinking = {"type": "thinking", "thinking": reply.thinking, "signature": "c2ln"}
    return [*([thinking] if reply.thinking else []), {"type": "text", "text": reply.text}]


def messages_body(request: ReceivedRequest, reply: FakeReply) -> dict[str, Any]:
    """The whole answer of the Anthropic route."""
    output_tokens = estimate_tokens(reply.thinking) + estimate_tokens(reply.text)
    return {
        "id": "msg_fake",
        "type": "message",
        "role": "assistant",
        "model": request.body["model"],
        "content": _messages_blocks(reply),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": request.prompt_tokens, "output_tokens": output_tokens},
        "base_resp": {"status_code": 0, "status_msg": ""},
    }


def messages_events(request: ReceivedRequest, reply: FakeReply) -> Iterator[str]:
    """The same, streamed."""
    whole = messages_body(request, reply)
    usage = whole["usage"]
    start = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield _named_event({"type": "message_start", "message": start})
    yield _named_event({"type": "ping"})
    for index, block in enumerate(_messages_blocks(reply)):
        kind = block["type"]
        empty = {"type": kind, kind: ""}
        yield _named_event({"type": "content_block_start", "index": index, "content_block": empty})
        for piece in _pieces(block[kind]):
            delta = {"type": f"{kind}_delta", kind: piece}
            yield _named_event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _named_event({"type": "content_block_stop", "index": index})
    yield _named_event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})
    yield _named_event({"type": "message_stop"})


def _event(body: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"


def _named_event(body: Mapping[str, Any]) -> str:
    return f"event: {body['type']}\n{_event(body)}"
