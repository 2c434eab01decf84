"""OpenAI chat messages: ``{"role", "content", ...}``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from context_gatekeeper.transcripts.conversation import (
    Conversation,
    Place,
    Utterance,
    as_text,
    exchange_turns,
    optional_text,
)
from context_gatekeeper.transcripts.times import parse_time

__all__ = ["read_messages"]

_SYSTEM_ROLES = frozenset({"system", "developer"})
_ANSWER_ROLES = frozenset({"assistant", "tool", "function"})
_TEXT_KEYS = ("text", "refusal")
_MEND = "mend or remove the message; nothing of the file was taken"


def read_messages(entry: Mapping[str, Any], name: str, place: Place) -> Conversation:
    """A conversation from ``{"messages": [...]}``.

    Content is a text, a list of parts (what is no text stands as ``[image_url]`` or the like) or
    null. Tool calls and results belong to the assistant's side of their turn; system and developer
    messages become no turn and are counted.

    Args:
        entry: the object; ``messages`` is there.
        name: the conversation's id where it has none of its own.
        place: for errors.

    Raises:
        TranscriptError: a message is not of this form.
    """
    messages = entry["messages"]
    if not isinstance(messages, list):
        raise place.error("'messages' is no list", _MEND)
    checked = [
        (_role(message, place.inside(f"message {number}")), message) for number, message in enumerate(messages, 1)
    ]
    system_messages = sum(role in _SYSTEM_ROLES for role, _ in checked)
    return Conversation(
        optional_text(entry, "id", "conversation_id") or name,
        optional_text(entry, "lang"),
        tuple(exchange_turns(_utterances(checked, place))),
        system_messages=system_messages,
    )


def _role(message: object, place: Place) -> str:
    if not isinstance(message, dict):
        raise place.error("it is no object", _MEND)
    role = as_text(message.get("role"), "'role'", place)
    if role not in _SYSTEM_ROLES | _ANSWER_ROLES | {"user"}:
        raise place.error(f"role {role[:40]!r} is not one of user, assistant, system, developer, tool, function", _MEND)
    return role


def _utterances(checked: list[tuple[str, Mapping[str, Any]]], place: Place) -> Iterator[Utterance]:
    for number, (role, message) in enumerate(checked, 1):
        if role in _SYSTEM_ROLES:
            continue
        where = place.inside(f"message {number}")
        pieces = [_content(message.get("content"), where), *_calls(message.get("tool_calls"), where)]
        yield Utterance(
            role == "user",
            "\n".join(piece for piece in pieces if piece),
            parse_time(next((message[key] for key in ("time", "created_at", "timestamp") if key in message), None)),
            optional_text(message, "id") or str(number),
        )


def _content(content: object, place: Place) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise place.error("'content' is neither a text nor a list of parts", _MEND)
    return "\n".join(text for text in (_part(part, place) for part in content) if text)


def _part(part: object, place: Place) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise place.error("a part of 'content' is neither a text nor an object", _MEND)
    for key in _TEXT_KEYS:
        if isinstance(part.get(key), str):
            return str(part[key])
    return f"[{optional_text(part, 'type') or 'part'}]"


def _calls(calls: object, place: Place) -> Iterator[str]:
    """Tool calls as lines ``name arguments``."""
    if calls is None:
        return
    if not isinstance(calls, list):
        raise place.error("'tool_calls' is no list", _MEND)
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise place.error("a tool call has no 'function'", _MEND)
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
        yield f"[{optional_text(function, 'name') or 'tool'}] {arguments}".rstrip()
