"""ChatGPT data export: conversations as trees of messages, one branch of which is the current one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from context_gatekeeper.transcripts.conversation import Conversation, Place, Utterance, exchange_turns, optional_text
from context_gatekeeper.transcripts.times import parse_time

__all__ = ["read_export"]

_MEND = "export the data again, or remove the conversation; nothing of the file was taken"
_THINKING_TYPES = frozenset({"thoughts", "reasoning_recap"})
_CONTEXT_TYPES = frozenset({"user_editable_context", "model_editable_context"})


def read_export(entry: Mapping[str, Any], name: str, place: Place) -> Conversation:
    """A conversation of an export, along the branch that was current.

    From ``current_node`` (or, where it is not there, the newest leaf) up the parents. Hidden
    messages (weight 0 or marked as hidden) and the model's thinking are left out, tool results
    belong to the assistant's side, system messages are counted.

    Args:
        entry: the conversation's object; ``mapping`` is there.
        name: the conversation's id where it has none of its own.
        place: for errors.

    Raises:
        TranscriptError: the tree is broken.
    """
    mapping = entry["mapping"]
    if not isinstance(mapping, dict) or not all(isinstance(node, dict) for node in mapping.values()):
        raise place.error("'mapping' is no tree of messages", _MEND)
    messages = [node["message"] for node in _branch(entry, mapping, place) if node.get("message") is not None]
    if not all(isinstance(message, dict) for message in messages):
        raise place.error("a message of 'mapping' is no object", _MEND)
    visible = [message for message in messages if not _is_hidden(message)]
    return Conversation(
        optional_text(entry, "conversation_id", "id") or name,
        None,
        tuple(exchange_turns(_utterances(visible, place))),
        system_messages=sum(_role(message) == "system" for message in messages),
    )


def _branch(entry: Mapping[str, Any], mapping: Mapping[str, Any], place: Place) -> list[Mapping[str, Any]]:
    """Nodes from the root to the current one."""
    node_id = entry.get("current_node")
    if node_id is None:
        node_id = _newest_leaf(mapping)
    nodes: list[Mapping[str, Any]] = []
    seen: set[object] = set()
    while node_id is not None:
        if not isinstance(node_id, str) or node_id not in mapping:
            raise place.error(f"node {str(node_id)[:60]!r} is named and not there", _MEND)
        if node_id in seen:
            raise place.error(f"node {node_id[:60]!r} is its own ancestor", _MEND)
        seen.add(node_id)
        nodes.append(mapping[node_id])
        node_id = mapping[node_id].get("parent")
    return nodes[::-1]


def _newest_leaf(mapping: Mapping[str, Any]) -> str | None:
    parents = {str(node.get("parent")) for node in mapping.values()}  # what is no text is refused on the way up
    leaves = [node_id for node_id in mapping if node_id not in parents]
    return max(leaves, key=lambda node_id: _time(mapping[node_id].get("message")) or 0.0, default=None)


def _time(message: object) -> float | None:
    return parse_time(message.get("create_time")) if isinstance(message, dict) else None


def _is_hidden(message: Mapping[str, Any]) -> bool:
    metadata = message.get("metadata")
    return message.get("weight") == 0 or (
        isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True
    )


def _role(message: Mapping[str, Any]) -> str:
    author = message.get("author")
    return str(author.get("role")) if isinstance(author, dict) else ""


def _utterances(messages: list[Mapping[str, Any]], place: Place) -> Iterator[Utterance]:
    for message in messages:
        role = _role(message)
        if role == "system":
            continue
        where = place.inside(f"message {optional_text(message, 'id') or 'without id'}")
        if role not in {"user", "assistant", "tool"}:
            raise where.error(f"its author is {role[:40]!r}, not user, assistant, system or tool", _MEND)
        yield Utterance(
            role == "user", _text(message.get("content"), where), _time(message), optional_text(message, "id")
        )


def _text(content: object, place: Place) -> str:
    if content is None:
        return ""
    if not isinstance(content, dict):
        raise place.error("'content' is no object", _MEND)
    if content.get("content_type") in _THINKING_TYPES | _CONTEXT_TYPES:
        return ""
    parts = content.get("parts")
    if parts is None:
        return optional_text(content, "text", "result") or ""
    if not isinstance(parts, list):
        raise place.error("'parts' is no list", _MEND)
    return "\n".join(text for text in map(_part, parts) if text)


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        return optional_text(part, "text") or f"[{optional_text(part, 'content_type') or 'part'}]"
    return ""
