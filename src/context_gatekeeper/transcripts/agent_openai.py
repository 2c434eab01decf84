"""Agent sessions as lists of messages: OpenAI's chat messages and Anthropic's, told apart message by message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from context_gatekeeper.transcripts.exact_json import json_text
from context_gatekeeper.transcripts.session_assembly import assemble_session
from context_gatekeeper.transcripts.session_blocks import Piece, read_call, read_pieces, read_result, sealed_thinking
from context_gatekeeper.transcripts.session_fields import as_count, as_name, read_time, read_usage
from context_gatekeeper.transcripts.session_records import LogRecord, clip
from context_gatekeeper.types import AgentMessage, AgentSession, BlockKind, ContentBlock, MessageRole

__all__ = ["OPENAI_SOURCE", "is_message_list", "read_message", "read_openai"]

OPENAI_SOURCE = "openai-messages"
_ROLES: Mapping[str, MessageRole] = {
    "system": MessageRole.SYSTEM,
    "developer": MessageRole.SYSTEM,
    "user": MessageRole.USER,
    "assistant": MessageRole.ASSISTANT,
    "tool": MessageRole.TOOL,
    "function": MessageRole.TOOL,
}
_TIMES = ("time", "created_at", "timestamp")
_REASONING = ("reasoning_content", "reasoning")
_UNKNOWN = "unknown"
"""Origin of messages that are none by their form."""


def is_message_list(value: object) -> bool:
    """Whether a record is a list that holds a message."""
    return isinstance(value, list) and any(isinstance(item, dict) and "role" in item for item in value)


def read_openai(records: Sequence[LogRecord], warnings: list[str]) -> list[AgentSession]:
    """Sessions of ``{"messages": [...]}`` objects and lists, one each; messages that stand alone are one together.

    Every assistant message is a model call. A ``system`` text beside the messages (Anthropic's
    requests) becomes a system message in front.

    Args:
        records: of the file.
        warnings: gets a line for each record that is none of these.
    """
    listed: list[tuple[str, list[_Item], _Item | None]] = []
    loose: list[_Item] | None = None
    is_list = is_message_list([record.value for record in records if record.is_item])
    for record in records:
        value = record.value
        if is_message_list(value):
            listed.append((str(len(listed) + 1), _items(record, value), None))
        elif isinstance(value, dict) and isinstance(value.get("messages"), list):
            name = as_name(value.get("id")) or as_name(value.get("conversation_id")) or str(len(listed) + 1)
            system = _Item(value["system"], record.line, f"{record.place}, system") if "system" in value else None
            listed.append((name, _items(record, value["messages"]), system))
        elif (isinstance(value, dict) and "role" in value) or (record.is_item and is_list):
            if loose is None:
                loose = []
                listed.append((str(len(listed) + 1), loose, None))
            loose.append(_Item(value, record.line, record.place))
        else:
            warnings.append(f"{record.place}: it is neither messages nor a message; it is skipped")
    return [_session(name, messages, system) for name, messages, system in listed]


class _Item(NamedTuple):
    """A message with its place."""

    value: object
    line: int
    place: str


def _items(record: LogRecord, values: list[Any]) -> list[_Item]:
    return [_Item(value, record.line, f"{record.place}, message {number}") for number, value in enumerate(values, 1)]


def _session(name: str, items: Sequence[_Item], system: _Item | None) -> AgentSession:
    warnings: list[str] = []
    messages: list[AgentMessage] = []
    if system is not None:
        blocks = (one for piece in read_pieces(system.value, system.place, warnings) for one in piece.blocks)
        messages.append(AgentMessage(MessageRole.SYSTEM, tuple(blocks), source_line=system.line))
    for item in items:
        messages += read_message(item.value, item.line, item.place, warnings, is_call=lambda _: True)
    return assemble_session(name, OPENAI_SOURCE, messages, warnings)


def read_message(
    message: object, line: int, place: str, warnings: list[str], *, is_call: Callable[[Mapping[str, Any]], bool]
) -> list[AgentMessage]:
    """The messages that one object of a list is: several where it holds tool results beside other content.

    Beside both providers' own keys it reads ``time``, ``time_end``, ``thinking_chars``,
    ``is_error``, ``meta`` and ``synthetic``.

    Args:
        message: the object. What is none becomes a user message of origin "unknown" that holds it as JSON, and so
            does a message of an unknown role, with its role as the origin.
        line: of the file; 0 where it has none.
        place: for warnings.
        warnings: gets a line for each oddity.
        is_call: whether an assistant message is a model's.
    """
    if not isinstance(message, dict):
        warnings.append(f"{place}: it is no message; it is kept as JSON")
        block = ContentBlock(BlockKind.OTHER, json_text(message), name="message")
        return [AgentMessage(MessageRole.USER, (block,), origin=_UNKNOWN, source_line=line)]
    role, origin = _role(message, place, warnings)
    pieces = _pieces(message, role, place, warnings)
    time = next((read_time(message[key], place, warnings) for key in _TIMES if key in message), None)
    called = role is MessageRole.ASSISTANT and is_call(message)
    end_time = read_time(message.get("time_end"), place, warnings)
    usage = read_usage(message.get("usage"), True, place, warnings)
    messages = []
    for piece in pieces:
        is_main = role is MessageRole.TOOL or not piece.is_result
        is_answer = is_main and role is MessageRole.ASSISTANT
        messages.append(
            AgentMessage(
                role if is_main else MessageRole.TOOL,
                piece.blocks,
                time=time,
                end_time=end_time if is_answer else None,
                usage=usage if is_answer else None,
                is_call=called and is_answer,
                origin=origin if is_main else "",
                source_line=line,
            )
        )
    return messages


def _role(message: Mapping[str, Any], place: str, warnings: list[str]) -> tuple[MessageRole, str]:
    """The role, and why the message is there where nobody typed it."""
    name = message.get("role")
    origin = as_name(message.get("meta")) or ("synthetic" if message.get("synthetic") is True else "")
    if isinstance(name, str) and name in _ROLES:
        return _ROLES[name], origin
    warnings.append(f"{place}: its role is {clip(name)}, which is not known; it is kept as a user message")
    return MessageRole.USER, origin or as_name(name) or _UNKNOWN


def _pieces(message: Mapping[str, Any], role: MessageRole, place: str, warnings: list[str]) -> list[Piece]:
    """A message's own blocks as one piece, in the place of the first, and its results; at least one piece.

    A user's text keeps its place among results; an assistant's blocks are one call, in front of all.
    """
    content = message.get("content")
    pieces = [] if role is MessageRole.TOOL else read_pieces(content, place, warnings)
    if role is MessageRole.TOOL:
        if isinstance(content, list) and any(_is_result(part) for part in content):
            return read_pieces(content, place, warnings)
        name = as_name(message.get("name"))
        call_id, is_error = message.get("tool_call_id"), message.get("is_error")
        return [read_result(content, call_id, is_error, place, warnings, name=name)]
    if role is not MessageRole.ASSISTANT:
        return pieces or [Piece(())]
    blocks = [
        *_thinking(message, place, warnings),
        *(block for piece in pieces if not piece.is_result for block in piece.blocks),
        *_calls(message, place, warnings),
    ]
    return [Piece(tuple(blocks)), *(piece for piece in pieces if piece.is_result)]


def _is_result(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "tool_result"


def _thinking(message: Mapping[str, Any], place: str, warnings: list[str]) -> Iterator[ContentBlock]:
    """Thinking beside the content, as OpenAI's API and programs in front of others' write it, with what seals it."""
    hidden_chars = as_count(message.get("thinking_chars")) or 0
    if hidden_chars:
        yield ContentBlock(BlockKind.THINKING, hidden_chars=hidden_chars)
    listed = message.get("thinking_blocks")
    if isinstance(listed, list) and listed:
        yield from (block for piece in read_pieces(listed, place, warnings) for block in piece.blocks)
        return
    details = message.get("reasoning_details")
    told = [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []
    text = next((message[key] for key in _REASONING if isinstance(message.get(key), str) and message[key]), "")
    if text:
        signature = next(filter(None, (as_name(one.get("signature")) for one in told)), "")
        yield ContentBlock(BlockKind.THINKING, text, signature=signature)
    sealed = [message.get("encrypted_content"), *(one.get("data") for one in told)]
    yield from (sealed_thinking(one) for one in sealed if isinstance(one, str) and one)


def _calls(message: Mapping[str, Any], place: str, warnings: list[str]) -> Iterator[ContentBlock]:
    calls = message.get("tool_calls")
    if isinstance(message.get("function_call"), dict):
        yield read_call(message["function_call"], "arguments", "", place, warnings, is_text=True)
    if calls is None:
        return
    if not isinstance(calls, list):
        warnings.append(f"{place}: its tool calls are no list; they are kept as JSON")
        yield ContentBlock(BlockKind.OTHER, json_text(calls), name="tool_calls")
        return
    for call in calls:
        call_id = call.get("id") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(call.get("function"), dict):
            yield read_call(call["function"], "arguments", call_id, place, warnings, is_text=True)
        elif isinstance(call, dict) and isinstance(call.get("custom"), dict):
            yield read_call(call["custom"], "input", call_id, place, warnings, is_text=True)
        else:
            warnings.append(f"{place}: a tool call names no function; it is kept as JSON")
            yield ContentBlock(BlockKind.OTHER, json_text(call), name="tool_call")
