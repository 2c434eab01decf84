"""Requests of OpenAI's Chat Completions API and of the many that speak it."""

from __future__ import annotations

from collections.abc import Mapping

from context_gatekeeper.types import BlockKind, ContentBlock, MessageRole
from context_gatekeeper.wire.blocks import as_name, other_block, read_block, read_call, sealed_thinking, text_of
from context_gatekeeper.wire.decoding import PartCollector, known_texts, marks_of, read_conversation, read_envelope
from context_gatekeeper.wire.editing import ApiForm
from context_gatekeeper.wire.json_source import Node, Shape, read_document, refuse
from context_gatekeeper.wire.records import WireApi, WireMessage, WireRequest

__all__ = ["CHAT_FORM", "decode_chat"]

_MESSAGE_SHAPE: Shape = {
    "content": {},
    "function_call": {},
    "reasoning_details": {},
    "thinking_blocks": {},
    "tool_calls": {"custom": {}, "function": {}},
}
_SHAPE: Shape = {"messages": _MESSAGE_SHAPE}
_REASONING_KEYS = ("reasoning_content", "reasoning")
"""Where providers put readable thinking beside the content; the first that holds a text counts."""
CHAT_FORM = ApiForm(
    shape=_MESSAGE_SHAPE,
    text_type="text",
    new_message='{"role":"user","content":',
    joins_texts=True,
    new_is_text=True,
    emptied={"content": "null", "refusal": "null"},
    twins=frozenset((*_REASONING_KEYS, "reasoning_details", "thinking_blocks")),
)
_ROLES: Mapping[str, MessageRole] = {
    "system": MessageRole.SYSTEM,
    "developer": MessageRole.SYSTEM,
    "user": MessageRole.USER,
    "assistant": MessageRole.ASSISTANT,
    "tool": MessageRole.TOOL,
    "function": MessageRole.TOOL,
}
_UNKNOWN = "unknown"


def decode_chat(body: bytes, known: WireRequest | None) -> WireRequest:
    """A request of ``/v1/chat/completions``.

    Args:
        body: as received, not compressed.
        known: an earlier request of the same conversation.

    Raises:
        WireFormatError: it cannot be understood.
    """
    source, members = read_document(body, _SHAPE, "messages", known_texts(known, WireApi.CHAT))
    listed = members.get("messages")
    if listed is None or listed.items is None:
        raise refuse("it has no list of messages")
    known = known if known is not None and known.api is WireApi.CHAT else None
    collector = PartCollector(source)
    talk = read_conversation(collector, listed.items, _MESSAGE_SHAPE, _read_message, known)
    envelope = read_envelope(members, source)
    return WireRequest(
        api=WireApi.CHAT,
        source=source,
        model=envelope.model,
        is_stream=envelope.is_stream,
        messages=talk.messages,
        turns=talk.turns,
        system_text="\n\n".join(talk.leading_texts),
        tools_text=envelope.tools_text,
        session_hint=envelope.prompt_cache_key,
        marks=(*marks_of("tools", envelope.tools), *collector.marks),
        warnings=tuple(collector.warnings),
    )


def _read_message(collector: PartCollector, node: Node) -> tuple[WireMessage, str | None]:
    members = node.members or {}
    name = text_of(members.get("role"))
    role = _ROLES.get(name)
    if role is MessageRole.TOOL:
        call_id = members.get("tool_call_id")
        collector.add_result(
            node,
            members.get("content"),
            as_name(call_id.value) if call_id is not None else "",
            name=as_name(members["name"].value) if "name" in members else "",
            is_message=True,
        )
    elif role is MessageRole.ASSISTANT:
        _add_thinking(collector, members)
        collector.add_content(members.get("content"))
        refusal = members.get("refusal")
        if text_of(refusal):
            collector.add_content(refusal)
        _add_calls(collector, members)
    else:
        if role is None:
            collector.warn("its role is not known")
        collector.add_content(members.get("content"))
    message = collector.finish(role or MessageRole.USER, node, is_text_list=role is not MessageRole.TOOL)
    return message, None if role is not None else name or _UNKNOWN


def _add_thinking(collector: PartCollector, members: Mapping[str, Node]) -> None:
    """Thinking beside the content, as providers and programs in front of them write it, with what seals it."""
    listed = members.get("thinking_blocks")
    if listed is not None and listed.items:
        for item in listed.items:
            collector.add_read(read_block(item, collector.source), item)
        return
    details = members.get("reasoning_details")
    told = [item for item in details.items or () if item.members] if details is not None else []
    text = next((members[key] for key in _REASONING_KEYS if text_of(members.get(key))), None)
    if text is not None:
        signatures = (text_of((item.members or {}).get("signature")) for item in told)
        signature = next(filter(None, signatures), "")
        collector.add(ContentBlock(BlockKind.THINKING, text.value, signature=signature), text, None)
    sealed = members.get("encrypted_content")
    if sealed is not None and text_of(sealed):
        collector.add(sealed_thinking(sealed.value), sealed, None)
    for item in told:
        if sealed_text := text_of((item.members or {}).get("data")):
            collector.add(sealed_thinking(sealed_text), item, None)


def _add_calls(collector: PartCollector, members: Mapping[str, Node]) -> None:
    source = collector.source
    single = members.get("function_call")
    if single is not None and single.members is not None:
        collector.add_read(read_call(single.members, "arguments", None, source, is_text=True), single)
    calls = members.get("tool_calls")
    if calls is None or calls.value is None:
        return
    if calls.items is None:
        collector.warn("its tool calls are no list")
        collector.add(other_block(calls, source, "tool_calls"), calls, None)
        return
    for item in calls.items:
        own = item.members or {}
        function, custom = own.get("function"), own.get("custom")
        if function is not None and function.members is not None:
            collector.add_read(read_call(function.members, "arguments", own.get("id"), source, is_text=True), item)
        elif custom is not None and custom.members is not None:
            collector.add_read(read_call(custom.members, "input", own.get("id"), source, is_text=True), item)
        else:
            collector.warn("a tool call names no function")
            collector.add(other_block(item, source, "tool_call"), item, None)
