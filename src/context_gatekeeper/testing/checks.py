"""What a strict service refuses, route by route; each function gives the fault in words, None when there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from context_gatekeeper.testing.context_editing import context_fault
from context_gatekeeper.testing.faults import decode_body
from context_gatekeeper.testing.records import content_text
from context_gatekeeper.wire.pairing import PairingRules, find_violations
from context_gatekeeper.wire.records import WireApi

__all__ = ["minimax_chat_fault", "minimax_messages_fault", "read_body", "strict_fault"]

_BLOCKS_WITHOUT_TEXT = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
_BINDING_BETA = "thinking-binding-controls-2026-08-01"


def read_body(content: bytes, encoding: str = "") -> tuple[str | None, dict[str, Any]]:
    """The body as an object, and the fault when it is none."""
    try:
        body = json.loads(decode_body(content, encoding))
    except (ValueError, RecursionError):
        return "the body is no JSON", {}
    return (None, body) if isinstance(body, dict) else ("the body is no JSON object", {})


# -- the three APIs ---------------------------------------------------------------------------


def strict_fault(
    api: WireApi,
    body: Mapping[str, Any],
    headers: Mapping[str, str],
    *,
    is_count: bool = False,
    rules: PairingRules | None = None,
) -> str | None:
    """What the API refuses; ``is_count`` for the routes that count tokens only."""
    fault = _frame_fault(body)
    if fault is None and api is WireApi.MESSAGES:
        fault = _messages_frame_fault(body, headers, is_count=is_count)
    fault = fault or context_fault(api, body, headers)
    if fault is None and api is WireApi.RESPONSES and not any(key in body for key in ("input", "prompt")):
        fault = None if "previous_response_id" in body or "conversation" in body else "input is missing"
    if fault is not None:
        return fault
    return next(iter(find_violations(api, body, rules=rules)), None)


def _frame_fault(body: Mapping[str, Any]) -> str | None:
    if not isinstance(body.get("model"), str) or not body["model"]:
        return "model is missing"
    if not isinstance(body.get("stream") or False, bool):
        return "stream is no boolean"
    tools = body.get("tools")
    if tools is not None and not (isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)):
        return "tools is no list of objects"
    names = [tool["name"] for tool in tools or () if isinstance(tool.get("name"), str)]
    return "tools: names must be unique" if len(names) != len(set(names)) else None


def _messages_frame_fault(body: Mapping[str, Any], headers: Mapping[str, str], *, is_count: bool) -> str | None:
    if "anthropic-version" not in headers:
        return "the header anthropic-version is missing"
    limit = body.get("max_tokens")
    if not is_count and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        return "max_tokens is missing or below 1"
    thinking = body.get("thinking")
    if isinstance(thinking, dict) and "block_binding" in thinking:
        betas = headers.get("anthropic-beta", "")
        return None if _BINDING_BETA in betas else "thinking.block_binding: Extra inputs are not permitted"
    return None


# -- MiniMax ----------------------------------------------------------------------------------


def _minimax_fault(body: Mapping[str, Any]) -> str | None:
    fault = _frame_fault(body)
    if fault is not None:
        return fault
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages is empty"
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return "a message has no role"
        if not (content_text(message.get("content")).strip() or _says_more_than_text(message)):
            return f"{message['role']} message has empty content"
    return None


def _says_more_than_text(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    kinds = {block.get("type") for block in blocks if isinstance(block, dict)}
    return bool(message.get("tool_calls")) or bool(kinds & _BLOCKS_WITHOUT_TEXT) or message["role"] == "tool"


def minimax_chat_fault(body: Mapping[str, Any]) -> str | None:
    """What MiniMax's OpenAI route refuses."""
    fault = _minimax_fault(body)
    if fault is not None:
        return fault
    roles = [message["role"] for message in body["messages"]]
    if not set(roles) <= {"system", "user", "assistant", "tool"}:
        return "role is not system, user or assistant"
    if "system" in roles[1:]:
        return "a system message is allowed at the start only"
    if roles[-1] not in ("user", "tool"):
        return "the last message is not the user's"
    return next(iter(find_violations(WireApi.CHAT, body)), None)


def minimax_messages_fault(body: Mapping[str, Any], headers: Mapping[str, str]) -> str | None:
    """What MiniMax's Anthropic route refuses."""
    fault = _minimax_fault(body) or _messages_frame_fault(body, headers, is_count=False)
    if fault is not None:
        return fault
    if "system" in body and not content_text(body["system"]).strip():
        return "system is empty"
    roles = [message["role"] for message in body["messages"]]
    if roles != [("user", "assistant")[place % 2] for place in range(len(roles))]:
        return "roles must alternate between user and assistant, the user first"
    if roles[-1] != "user":
        return "the last message is not the user's"
    return next(iter(find_violations(WireApi.MESSAGES, body)), None)
