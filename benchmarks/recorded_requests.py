"""Recorded sessions as the requests that a client of Anthropic's API would have sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from context_gatekeeper.types import AgentMessage, AgentSession, BlockKind, ContentBlock, MessageRole

__all__ = ["plain_session", "request_bodies", "wire_messages"]

_MARK = {"type": "ephemeral"}
_SENT = frozenset({BlockKind.TEXT, BlockKind.TOOL_CALL, BlockKind.TOOL_RESULT})


def plain_session(session: AgentSession) -> AgentSession:
    """The session as an API would take it: every call answered once, right behind it, no empty text.

    Thinking, of which logs hold sizes alone, images and what is in no API are left out, so that both sides of a
    comparison see the same texts.
    """
    messages: list[AgentMessage] = []
    open_calls: dict[str, ContentBlock] = {}
    seen: set[str] = set()

    def answer_rest() -> None:
        for call_id, call in open_calls.items():
            block = ContentBlock(BlockKind.TOOL_RESULT, "(no output)", call_id, call.name)
            messages.append(AgentMessage(MessageRole.TOOL, (block,)))
        open_calls.clear()

    for message in session.messages:
        blocks = tuple(block for block in message.blocks if block.kind in _SENT and _is_sendable(block))
        if message.role is MessageRole.TOOL:
            blocks = tuple(
                b for b in blocks if b.kind is BlockKind.TOOL_RESULT and open_calls.pop(b.call_id, None) is not None
            )
        elif message.role is MessageRole.ASSISTANT:
            blocks = tuple(b for b in blocks if b.kind is not BlockKind.TOOL_CALL or b.call_id not in seen)
        if not blocks:
            continue
        if message.role is not MessageRole.TOOL:
            answer_rest()
        calls = {block.call_id: block for block in blocks if block.kind is BlockKind.TOOL_CALL}
        open_calls |= calls
        seen |= set(calls)
        messages.append(replace(message, blocks=blocks))
    answer_rest()
    while messages and messages[0].role is not MessageRole.USER:
        messages.pop(0)
    return replace(session, messages=tuple(messages))


def _is_sendable(block: ContentBlock) -> bool:
    return bool(block.text.strip()) or block.kind is not BlockKind.TEXT


def wire_messages(messages: Sequence[AgentMessage]) -> list[dict[str, Any]]:
    """Anthropic's messages of neutral ones: results and texts of the user's side in one message each."""
    sent: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role is MessageRole.ASSISTANT else "user"
        content = [_wire_block(block) for block in message.blocks]
        if sent and sent[-1]["role"] == role:
            sent[-1]["content"] += content
        else:
            sent.append({"role": role, "content": content})
    return sent


def _wire_block(block: ContentBlock) -> dict[str, Any]:
    if block.kind is BlockKind.TEXT:
        return {"type": "text", "text": block.text}
    if block.kind is BlockKind.TOOL_CALL:
        return {"type": "tool_use", "id": block.call_id, "name": block.name or "tool", "input": _arguments(block.text)}
    result = {"type": "tool_result", "tool_use_id": block.call_id, "content": block.text}
    return result | ({"is_error": True} if block.is_error else {})


def _arguments(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    return value if isinstance(value, dict) else {"arguments": value}


def request_bodies(
    session: AgentSession, *, model: str, system: str, tools: Sequence[Mapping[str, Any]]
) -> Iterator[bytes]:
    """The body of each model call's request, with breakpoints behind the system text and at the end."""
    for place, message in enumerate(session.messages):
        if not message.is_call or not place:
            continue
        messages = wire_messages(session.messages[:place])
        if messages[-1]["role"] != "user":
            continue
        messages[-1]["content"][-1]["cache_control"] = _MARK
        body = {
            "model": model,
            "max_tokens": 32_000,
            "system": [{"type": "text", "text": system, "cache_control": _MARK}],
            "tools": list(tools),
            "messages": messages,
        }
        yield json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
