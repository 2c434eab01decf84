"""An agent session of its messages: calls and results paired, and what does not fit told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from context_gatekeeper.transcripts.session_records import clip
from context_gatekeeper.types import AgentMessage, AgentSession, BlockKind, ContentBlock, SessionEvent

__all__ = ["ATTACHMENT", "assemble_session"]

ATTACHMENT = "attachment"
"""Origin of messages that hold what the agent's program put beside the talk, which is always kept as JSON."""


def assemble_session(
    session_id: str,
    source: str,
    messages: Sequence[AgentMessage],
    warnings: Sequence[str],
    *,
    events: Sequence[SessionEvent] = (),
    working_folder: str = "",
) -> AgentSession:
    """The session, each result with the name of the tool that it came from.

    A result belongs to the newest call before it with its id. Warned of, and kept: results whose
    call is not there or stands behind them, second results, ids that several calls share, calls
    without a result or an id, messages without content and blocks of unknown types.

    Args:
        session_id: the log's name of it.
        source: the format's name (`AgentSession.source`).
        messages: in the order of the conversation.
        warnings: what the reader met, in its order; more are added.
        events: where the context was cut.
        working_folder: where the agent worked; "" where the log does not say.
    """
    found = list(warnings)
    named = _pair(messages, found)
    found += _unknown_blocks(named)
    return AgentSession(session_id, source, tuple(named), tuple(events), working_folder, tuple(found))


def _place(message: AgentMessage, number: int) -> str:
    return f"line {message.source_line}, message {number}" if message.source_line else f"message {number}"


def _pair(messages: Sequence[AgentMessage], warnings: list[str]) -> list[AgentMessage]:
    names: dict[str, str] = {}
    for call in _calls(messages):
        names.setdefault(call.call_id, call.name)
    unanswered: Counter[str] = Counter()
    places: dict[str, str] = {}
    named = []
    for number, message in enumerate(messages, 1):
        place = _place(message, number)
        if not message.blocks:
            warnings.append(f"{place}: it holds nothing")
        for call in _calls([message]):
            if call.call_id in places:
                warnings.append(f"{place}: the call id {clip(call.call_id)} is used again; both calls are kept")
            elif not call.call_id:
                warnings.append(f"{place}: the call of {clip(call.name)} has no id")
            else:
                places[call.call_id] = place
            names[call.call_id] = call.name
            unanswered[call.call_id] += 1
        for call_id in dict.fromkeys(block.call_id for block in message.blocks if block.kind is BlockKind.TOOL_RESULT):
            _answer(call_id, place, names, unanswered, warnings)
        named.append(_with_names(message, names))
    for call_id, place in places.items():
        if unanswered[call_id] > 0:
            warnings.append(f"{place}: the call {clip(call_id)} of {clip(names[call_id])} has no result")
    return named


def _answer(call_id: str, place: str, names: dict[str, str], unanswered: Counter[str], warnings: list[str]) -> None:
    """Take note of a result."""
    if not call_id:
        warnings.append(f"{place}: a result has no call id")
    elif call_id not in names:
        warnings.append(f"{place}: the result of {clip(call_id)} has no call; it is kept")
    elif call_id not in unanswered:
        warnings.append(f"{place}: the result of {clip(call_id)} stands before its call")
    elif unanswered[call_id] <= 0:
        warnings.append(f"{place}: the call {clip(call_id)} has one more result; all are kept")
    else:
        unanswered[call_id] -= 1


def _calls(messages: Sequence[AgentMessage]) -> Iterator[ContentBlock]:
    return (block for message in messages for block in message.blocks if block.kind is BlockKind.TOOL_CALL)


def _with_names(message: AgentMessage, names: dict[str, str]) -> AgentMessage:
    """The message with the tools' names on its results; those that have one, or no known call, stay."""
    if not any(_lacks_name(block, names) for block in message.blocks):
        return message
    blocks = (replace(one, name=names[one.call_id]) if _lacks_name(one, names) else one for one in message.blocks)
    return replace(message, blocks=tuple(blocks))


def _lacks_name(block: ContentBlock, names: dict[str, str]) -> bool:
    return block.kind is BlockKind.TOOL_RESULT and not block.name and block.call_id != "" and block.call_id in names


def _unknown_blocks(messages: Sequence[AgentMessage]) -> list[str]:
    counts = Counter(
        block.name
        for message in messages
        if message.origin != ATTACHMENT
        for block in message.blocks
        if block.kind is BlockKind.OTHER
    )
    if not counts:
        return []
    return [f"content of unknown types is kept as JSON: {', '.join(f'{clip(name)} {counts[name]}' for name in counts)}"]
