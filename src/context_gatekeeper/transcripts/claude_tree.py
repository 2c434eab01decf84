"""The tree of a Claude Code log, and the branch of it that is the conversation.

Every record names the one before it (``parentUuid``). Where the person rewound, a record has
two children, and the older one was given up. Where the context was compacted, the chain is cut
(``parentUuid`` is null) and ``logicalParentUuid`` says what came before. Parallel tool calls are
logged one block a record; each result hangs on its own call, so that the chain of parents passes
by all but one of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from context_gatekeeper.transcripts.session_fields import as_name
from context_gatekeeper.transcripts.session_records import LogRecord, clip

__all__ = ["Branch", "answered_calls", "asked_calls", "call_key", "is_side", "link_records", "newest_branch"]

_TALK_TYPES = frozenset({"user", "assistant"})
_BESIDE_TYPES = frozenset({"attachment", "system"})


@dataclass(frozen=True, slots=True)
class Branch:
    """One conversation of a log."""

    records: tuple[LogRecord, ...]
    """In the order of the conversation: parents first, tool results behind their calls."""
    left_out: int = 0
    """Messages of the same records that belong to branches given up."""


def is_side(record: LogRecord) -> bool:
    """Whether a record belongs to a sub-agent."""
    return record.value.get("isSidechain") is True


def call_key(record: LogRecord) -> tuple[str, str] | None:
    """What the fragments of one model call share: the message's id and the request's; None where it has no id."""
    message = record.value.get("message")
    message_id = as_name(message.get("id")) if isinstance(message, dict) else ""
    if record.value.get("type") != "assistant" or not message_id:
        return None
    return message_id, as_name(record.value.get("requestId"))


def asked_calls(record: LogRecord) -> list[str]:
    """Ids of the tool calls in a record."""
    return [as_name(part.get("id")) for part in _parts(record, "tool_use")]


def answered_calls(record: LogRecord) -> list[str]:
    """Ids of the calls whose results a record holds."""
    return [as_name(part.get("tool_use_id")) for part in _parts(record, "tool_result")]


def _parts(record: LogRecord, kind: str) -> Iterator[Mapping[str, Any]]:
    message = record.value.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") == kind:
            yield part


def link_records(records: Sequence[LogRecord], warnings: list[str]) -> list[int | None]:
    """Position of each record's parent; None for the first of a conversation.

    Mended, with a warning: a parent that the file does not hold is the record before it of the
    same session (a broken line would cost all before it), and of branches that name the same one the
    record before the first: they stay branches. So is, without a warning, the parent of a
    compaction that names none, or one that was written later (messages that it kept). A record
    without the key at all follows the one before it. Of records with the same uuid a child's
    parent is the nearest above it; where two also name the same parent, the second follows the first.

    Args:
        records: objects with a ``type``, in the order of the file.
        warnings: gets a line for each thing mended.
    """
    by_uuid: dict[str, list[int]] = {}
    for position, record in enumerate(records):
        uuid = as_name(record.value.get("uuid"))
        if uuid:
            by_uuid.setdefault(uuid, []).append(position)
    parents: list[int | None] = []
    newest: dict[tuple[bool, str, str], int] = {}
    stand_ins: dict[tuple[tuple[bool, str, str], str], int | None] = {}
    for position, record in enumerate(records):
        twin = _nearest_above(by_uuid.get(as_name(record.value.get("uuid")), ()), position)
        if twin is not None:
            uuid = clip(record.value["uuid"])
            warnings.append(f"{record.place}: the uuid {uuid} is used again; both records are kept")
        key = (is_side(record), as_name(record.value.get("sessionId")), as_name(record.value.get("agentId")))
        if twin is not None and records[twin].value.get("parentUuid") == record.value.get("parentUuid"):
            parents.append(twin)
        else:
            before = newest.get(key)
            lost = _lost_parent(record, by_uuid)
            stand_in = "the record before it"
            if lost and _is_branch(record):
                first = stand_ins.setdefault((key, lost), before)
                stand_in = stand_in if first == before else "the record before the first that names it"
                before = first
            parents.append(_parent(record, position, by_uuid, before, warnings, stand_in))
        newest[key] = position
    return parents


def _lost_parent(record: LogRecord, by_uuid: Mapping[str, Sequence[int]]) -> str:
    """Name of a record's parent that the file does not hold; "" where it holds it."""
    named = as_name(record.value.get("parentUuid"))
    return "" if named in by_uuid else named


def _is_branch(record: LogRecord) -> bool:
    """Whether a record may begin a branch of its own: neither a tool's result nor what the program put beside it."""
    return not (answered_calls(record) or _is_beside(record))


def _parent(
    record: LogRecord,
    position: int,
    by_uuid: Mapping[str, Sequence[int]],
    before: int | None,
    warnings: list[str],
    stand_in: str,
) -> int | None:
    """The parent of a record, ``before`` where it names none that is there; ``stand_in`` says what that one is."""
    value = record.value
    named = value.get("parentUuid")
    is_logical = named is None
    if is_logical:
        named = value.get("logicalParentUuid")
    if named is None:
        return before if "parentUuid" not in value or _is_compaction(value) else None
    known = by_uuid.get(named, ()) if isinstance(named, str) else ()
    above = _nearest_above(known, position)
    if above is not None:
        return above
    if known and known[0] > position:
        return before if is_logical else known[0]  # hooks may write before the record that they hang on
    mended = f"it is put behind {stand_in}" if before is not None else "the talk begins here"
    warnings.append(f"{record.place}: its parent {clip(named)} is no other record of the file; {mended}")
    return before


def _nearest_above(positions: Sequence[int], position: int) -> int | None:
    """The last of ascending ``positions`` that is smaller than ``position``."""
    index = bisect_left(positions, position)
    return positions[index - 1] if index else None


def _is_compaction(value: Mapping[str, Any]) -> bool:
    return value.get("subtype") == "compact_boundary" or value.get("isCompactSummary") is True


def newest_branch(
    records: Sequence[LogRecord], parents: Sequence[int | None], members: Collection[int], warnings: list[str]
) -> Branch:
    """The conversation that the newest message of ``members`` belongs to.

    From it up the parents, with what the program logged behind it, the other fragments of its
    model calls, and results of its calls that hang beside the chain.

    Args:
        records: of the file.
        parents: positions, of `link_records`.
        members: positions that belong together: the main chain, or one sub-agent's; at least one.
        warnings: gets a line where records are their own ancestors.
    """
    ordered = sorted(members)
    talk = [position for position in ordered if records[position].value.get("type") in _TALK_TYPES]
    newest = talk[-1] if talk else ordered[-1]
    chain = _chain(newest, parents, set(members), records, warnings)
    for position in ordered:
        if position > chain[-1] and parents[position] == chain[-1]:
            chain.append(position)
    beside = _beside(records, parents, ordered, chain)
    kept = set(chain).union(*beside.values())
    left_out = sum(position not in kept for position in talk)
    return Branch(tuple(records[position] for position in _in_order(chain, beside)), left_out)


def _chain(
    newest: int, parents: Sequence[int | None], members: set[int], records: Sequence[LogRecord], warnings: list[str]
) -> list[int]:
    chain: list[int] = []
    seen: set[int] = set()
    position: int | None = newest
    while position is not None and position in members:
        if position in seen:
            warnings.append(f"{records[position].place}: the record is its own ancestor; the talk begins behind it")
            break
        seen.add(position)
        chain.append(position)
        position = parents[position]
    return chain[::-1]


def _beside(
    records: Sequence[LogRecord], parents: Sequence[int | None], ordered: Sequence[int], chain: Sequence[int]
) -> dict[int, list[int]]:
    """Position -> records beside the chain that hang on it and are part of the conversation.

    The program logs parents before children, so that one pass is enough.
    """
    kept = set(chain)
    recovered: set[int] = set()
    keys = {key for position in chain if (key := call_key(records[position])) is not None}
    asked = {call_id for position in chain for call_id in asked_calls(records[position])}
    answered = {call_id for position in chain for call_id in answered_calls(records[position])}
    beside: dict[int, list[int]] = {}
    for position in ordered:
        parent, record = parents[position], records[position]
        if position in kept or parent not in kept or parent is None:
            continue
        results = set(answered_calls(record)) & asked
        is_beside = parent in recovered and _is_beside(record)
        if call_key(record) in keys or (results and not results & answered) or is_beside:
            kept.add(position)
            recovered.add(position)
            beside.setdefault(parent, []).append(position)
            asked.update(asked_calls(record))
            answered |= results
    return beside


def _is_beside(record: LogRecord) -> bool:
    """Whether the program put a record there: behind a result it belongs to that, and to no branch of its own."""
    return record.value.get("type") in _BESIDE_TYPES or record.value.get("isMeta") is True


def _in_order(chain: Sequence[int], beside: Mapping[int, Sequence[int]]) -> Iterator[int]:
    """Each record of the chain with what hangs on it behind it."""
    for start in chain:
        waiting = [start]
        while waiting:
            position = waiting.pop()
            yield position
            waiting.extend(reversed(beside.get(position, ())))
