"""Requests of Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from context_gatekeeper.types import MessageRole
from context_gatekeeper.wire.blocks import as_name, text_of
from context_gatekeeper.wire.decoding import (
    PartCollector,
    known_texts,
    marks_of,
    read_conversation,
    read_envelope,
)
from context_gatekeeper.wire.editing import ApiForm
from context_gatekeeper.wire.json_source import Node, Shape, read_document, read_json, refuse
from context_gatekeeper.wire.records import WireApi, WireMessage, WireRequest

__all__ = ["MESSAGES_FORM", "decode_messages"]

_MESSAGE_SHAPE: Shape = {"content": {"content": {}}}
"""A message, its blocks, and the pieces of a block that holds several."""
_SHAPE: Shape = {"messages": _MESSAGE_SHAPE, "system": {}, "metadata": {}}
MESSAGES_FORM = ApiForm(
    shape=_MESSAGE_SHAPE,
    text_type="text",
    new_message='{"role":"user","content":',
    joins_texts=False,
    takes_marks=True,
    markable_types=frozenset({"document", "search_result", "server_tool_use", "web_search_tool_result"}),
    leaves_out_empty_texts=True,
)
_ROLES: Mapping[str, MessageRole] = {
    "user": MessageRole.USER,
    "assistant": MessageRole.ASSISTANT,
    "system": MessageRole.SYSTEM,
}
_BILLING = "x-anthropic-billing-header"
"""How a system block of Claude Code begins that differs from request to request."""
_OLDER_SESSION = re.compile(r"_session_([0-9a-fA-F-]{36})\Z")
_UNKNOWN = "unknown"


def decode_messages(body: bytes, known: WireRequest | None) -> WireRequest:
    """A request of ``/v1/messages`` or its token count.

    Args:
        body: as received, not compressed.
        known: an earlier request of the same conversation.

    Raises:
        WireFormatError: it cannot be understood.
    """
    source, members = read_document(body, _SHAPE, "messages", known_texts(known, WireApi.MESSAGES))
    listed = members.get("messages")
    if listed is None or listed.items is None:
        raise refuse("it has no list of messages")
    known = known if known is not None and known.api is WireApi.MESSAGES else None
    collector = PartCollector(source)
    talk = read_conversation(collector, listed.items, _MESSAGE_SHAPE, _read_message, known)
    envelope = read_envelope(members, source)
    at_top = members.get("cache_control")
    marks = [
        *marks_of("tools", envelope.tools),
        *marks_of("system", members["system"].value if "system" in members else None),
        *collector.marks,
        *marks_of("request", [{"cache_control": at_top.value}] if at_top is not None else None),
    ]
    return WireRequest(
        api=WireApi.MESSAGES,
        source=source,
        model=envelope.model,
        is_stream=envelope.is_stream,
        messages=talk.messages,
        turns=talk.turns,
        system_text="\n\n".join((*_system_texts(members.get("system")), *talk.leading_texts)),
        tools_text=envelope.tools_text,
        session_hint=_session_hint(members.get("metadata")),
        marks=tuple(marks),
        warnings=tuple(collector.warnings),
    )


def _read_message(collector: PartCollector, node: Node) -> tuple[WireMessage, str | None]:
    members = node.members or {}
    name = text_of(members.get("role"))
    role = _ROLES.get(name)
    if role is None:
        collector.warn("its role is not known")
    collector.add_content(members.get("content"))
    message = collector.finish(role or MessageRole.USER, node, is_text_list=True)
    return message, None if role is not None else name or _UNKNOWN


def _system_texts(system: Node | None) -> list[str]:
    """Texts of ``system``, without the block that changes from request to request."""
    if system is None:
        return []
    if system.items is None:
        texts = [text_of(system)]
    else:
        texts = [text_of((item.members or {}).get("text")) for item in system.items]
    return [text for text in texts if text and not text.startswith(_BILLING)]


def _session_hint(metadata: Node | None) -> str:
    """The session that ``metadata.user_id`` names: in JSON, or at its end."""
    members = metadata.members if metadata is not None else None
    user = text_of(members.get("user_id")) if members else ""
    if user.lstrip().startswith("{"):
        told: Any = read_json(user)
        return as_name(told.get("session_id")) if isinstance(told, dict) else ""
    found = _OLDER_SESSION.search(user)
    return found[1] if found else ""
