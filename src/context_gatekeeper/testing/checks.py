"""What a strict service refuses, route by route; each function gives the fault in words, None when there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from context_gatekeeper.testing.records import content_text

__all__ = ["chat_fault", "messages_fault", "read_body"]


def read_body(content: bytes) -> tuple[str | None, dict[str, Any]]:
    """The body as an object, and the fault when it is none."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return "the body is no JSON", {}
    return (None, body) if isinstance(body, dict) else ("the body is no JSON object", {})


def _shared_fault(body: Mapping[str, Any]) -> str | None:
    if not isinstance(body.get("model"), str) or not body["model"]:
        return "model is missing"
    if not isinstance(body.get("stream", False), bool):
        return "stream is no boolean"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages is empty"
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return "a message has no role"
        if not content_text(message.get("content")).strip():
            return f"{message['role']} message has empty content"
    return None


def chat_fault(body: Mapping[str, Any]) -> str | None:
    """What the OpenAI route refuses."""
    fault = _shared_fault(body)
    if fault is not None:
        return fault
    roles = [message["role"] for message in body["messages"]]
    if not set(roles) <= {"system", "user", "assistant"}:
        return "role is not system, user or assistant"
    if "system" in roles[1:]:
        return "a system message is allowed at the start only"
    if roles[-1] != "user":
        return "the last message is not the user's"
    return None


def messages_fault(body: Mapping[str, Any], headers: Mapping[str, str]) -> str | None:
    """What the Anthropic route refuses."""
    fault = _shared_fault(body)
    if fault is not None:
        return fault
    if "anthropic-version" not in headers:
        return "the header anthropic-version is missing"
    limit = body.get("max_tokens")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        return "max_tokens is missing or below 1"
    if "system" in body and not content_text(body["system"]).strip():
        return "system is empty"
    roles = [message["role"] for message in body["messages"]]
    if roles != [("user", "assistant")[place % 2] for place in range(len(roles))]:
        return "roles must alternate between user and assistant, the user first"
    if roles[-1] != "user":
        return "the last message is not the user's"
    return None
