"""Requests of OpenAI's Responses API: a text, or items of which one is a message, a call, an output or thinking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from context_gatekeeper.types import AgentMessage, BlockKind, MessageRole
from context_gatekeeper.wire.blocks import (
    ReadBlock,
    as_name,
    other_block,
    read_call,
    sealed_thinking,
    text_of,
)
from context_gatekeeper.wire.decoding import (
    CLIENT_ORIGIN,
    PartCollector,
    known_texts,
    origin_of_typed,
    read_again,
    read_envelope,
    reuse_message,
)
from context_gatekeeper.wire.editing import ApiForm
from context_gatekeeper.wire.json_source import Node, Shape, read_document, refuse
from context_gatekeeper.wire.records import WireApi, WireMessage, WirePart, WireRequest, WireTurn

__all__ = ["RESPONSES_FORM", "decode_responses"]

_ITEM_SHAPE: Shape = {"content": {}, "output": {"content": {}}, "summary": {}}
_SHAPE: Shape = {"input": _ITEM_SHAPE}
RESPONSES_FORM = ApiForm(
    shape=_ITEM_SHAPE,
    text_type="input_text",
    new_message='{"type":"message","role":"user","content":',
    joins_texts=True,
    emptied={"output": '""'},
    binds_thinking=True,
)
_ROLES: Mapping[str, MessageRole] = {
    "system": MessageRole.SYSTEM,
    "developer": MessageRole.SYSTEM,
    "user": MessageRole.USER,
    "assistant": MessageRole.ASSISTANT,
}
_CALL, _OUTPUT, _COMPACTION = "_call", "_output", "compaction"
_MODEL_TYPES = frozenset({"mcp_approval_request", "mcp_list_tools", "reasoning"})
"""Types of items that a model puts out, beside those that end in ``_call``."""
_WRITTEN_BY_PROGRAM = (
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<user_shell_command>",
    "# AGENTS.md instructions",
)
"""How user messages of Codex begin that nobody typed."""
_SUMMARY_ORIGIN = "compact_summary"


def decode_responses(body: bytes, known: WireRequest | None) -> WireRequest:
    """A request of ``/v1/responses``.

    Args:
        body: as received, not compressed.
        known: an earlier request of the same conversation.

    Raises:
        WireFormatError: it cannot be understood.
    """
    source, members = read_document(body, _SHAPE, "input", known_texts(known, WireApi.RESPONSES))
    given = members.get("input")
    if given is None or not (given.items is not None or isinstance(given.value, str)):
        raise refuse("its input is neither a text nor a list")
    known = known if known is not None and known.api is WireApi.RESPONSES else None
    collector = PartCollector(source)
    messages = _read_items(collector, given.items, known) if given.items is not None else [_read_text(collector, given)]
    envelope = read_envelope(members, source)
    leading, turns = _turns(messages)
    instructions = text_of(members.get("instructions"))
    return WireRequest(
        api=WireApi.RESPONSES,
        source=source,
        model=envelope.model,
        is_stream=envelope.is_stream,
        messages=tuple(messages),
        turns=tuple(turns),
        system_text="\n\n".join(([instructions] if instructions else []) + leading),
        tools_text=envelope.tools_text,
        session_hint=envelope.prompt_cache_key,
        marks=tuple(collector.marks),
        has_server_history=any(
            key in members and members[key].value is not None for key in ("previous_response_id", "conversation")
        ),
        warnings=tuple(collector.warnings),
    )


def _read_text(collector: PartCollector, node: Node) -> WireMessage:
    collector.begin(0)
    collector.add_content(node)
    return collector.finish(MessageRole.USER, node, is_text_list=False)


def _read_items(collector: PartCollector, items: Sequence[Node], known: WireRequest | None) -> list[WireMessage]:
    messages = []
    for number, item in enumerate(items):
        collector.begin(number)
        message = reuse_message(collector, item, known.messages[number]) if known and item.is_known else None
        if message is None:
            node = read_again(collector.source, item, _ITEM_SHAPE)
            role = _read_item(collector, node, node.members or {})
            message = collector.finish(role, node, is_text_list=False)
        messages.append(message)
    return messages


def _read_item(collector: PartCollector, node: Node, members: Mapping[str, Node]) -> MessageRole:
    """Add an item's parts; whose it is."""
    kind = text_of(members.get("type"))
    if kind == "message" or (not kind and "role" in members):
        collector.add_content(members.get("content"))
        role = _ROLES.get(text_of(members.get("role")))
        if role is None:
            raise refuse("the role of a message is not known")
        return role
    if kind.endswith(_OUTPUT):
        _add_output(collector, node, members)
        return MessageRole.TOOL
    if kind == "reasoning":
        _add_reasoning(collector, members)
        return MessageRole.ASSISTANT
    call = _read_call(kind, members, collector.source)
    if call is not None:
        collector.add_read(call, node)
        return MessageRole.ASSISTANT
    collector.add(other_block(node, collector.source, kind or "item"), node, None)
    return MessageRole.ASSISTANT if kind.endswith(_CALL) or kind in _MODEL_TYPES else MessageRole.USER


def _add_reasoning(collector: PartCollector, members: Mapping[str, Node]) -> None:
    for key in ("summary", "content"):
        collector.add_content(members.get(key))
    sealed = members.get("encrypted_content")
    if sealed is not None and isinstance(sealed.value, str):
        collector.add(sealed_thinking(sealed.value), sealed, None)


def _read_call(kind: str, members: Mapping[str, Node], source: str) -> ReadBlock | None:
    """A call that has arguments; None for other items, and for calls that hold what came of them, too."""
    call_id = members.get("call_id") or members.get("id")
    if kind == "function_call":
        return read_call(members, "arguments", call_id, source, is_text=True)
    if kind == "custom_tool_call":
        return read_call(members, "input", call_id, source, is_text=True)
    name = kind.removesuffix(_CALL)
    if kind == "local_shell_call":
        read = read_call(members, "action", call_id, source, name=name)
        return ReadBlock(read.block, None, read.oddity)
    if kind.endswith(_CALL) and "arguments" in members and text_of(members.get("call_id")):
        is_text = isinstance(members["arguments"].value, str)
        return read_call(members, "arguments", call_id, source, is_text=is_text, name=name)
    return None


def _add_output(collector: PartCollector, node: Node, members: Mapping[str, Node]) -> None:
    """A tool's output: a text, parts, or an object that says whether it went well."""
    call_id = as_name(members["call_id"].value) if "call_id" in members else ""
    name = as_name(members["name"].value) if "name" in members else ""
    output, is_error = members.get("output"), False
    if output is not None and output.members is not None and "content" in output.members:
        success = output.members.get("success")
        is_error = success is not None and success.value is False
        output = output.members["content"]
    collector.add_result(node, output, call_id, is_error=is_error, name=name)


# -- turns -------------------------------------------------------------------------------------------


def _turns(messages: Sequence[WireMessage]) -> tuple[list[str], list[WireTurn]]:
    """Texts of the system messages in front, and the turns: what the model put out between two inputs is one call."""
    leading: list[str] = []
    turns: list[WireTurn] = []
    is_leading = True
    run: list[WirePart] | None = None
    for message in messages:
        is_leading = is_leading and message.role is MessageRole.SYSTEM
        if message.role is MessageRole.ASSISTANT:
            run = [*(run or ()), *message.parts]
            continue
        if run is not None:
            turns.append(_turn(MessageRole.ASSISTANT, run))
            run = None
        if is_leading:
            leading += [part.block.text for part in message.parts if part.block.kind is BlockKind.TEXT]
        else:
            turns.append(_turn(message.role, message.parts, _origin(message)))
    if run is not None:
        turns.append(_turn(MessageRole.ASSISTANT, run))
    return leading, turns


def _turn(role: MessageRole, parts: Sequence[WirePart], origin: str = "") -> WireTurn:
    blocks = tuple([part.block for part in parts])
    message = AgentMessage(role, blocks, is_call=role is MessageRole.ASSISTANT, origin=origin)
    return WireTurn(message, tuple([part.key for part in parts]))


def _origin(message: WireMessage) -> str:
    """Why a message on the user's side is there; "" where a person typed it."""
    if message.role is not MessageRole.USER:
        return ""
    blocks = [part.block for part in message.parts]
    if _is_whole_item(message):
        return _SUMMARY_ORIGIN if _COMPACTION in blocks[0].name else CLIENT_ORIGIN
    if blocks and blocks[0].text.startswith(_WRITTEN_BY_PROGRAM):
        return CLIENT_ORIGIN
    return origin_of_typed(blocks)


def _is_whole_item(message: WireMessage) -> bool:
    """Whether it is an item that we do not know."""
    parts = message.parts
    return len(parts) == 1 and parts[0].block.kind is BlockKind.OTHER and parts[0].span == message.span
