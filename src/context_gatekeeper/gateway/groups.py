"""Calls and what answers them: they stay or leave together.

A client may use one id for several calls, one after the other: a result answers the newest before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from context_gatekeeper.engine.session_log import Segment
from context_gatekeeper.types import BlockKind, MessageRole

__all__ = ["Group", "find_groups"]

_ID_KEYS = ("call_id", "approval_request_id", "id")
"""Keys by which items that we do not know name each other."""


@dataclass(slots=True)
class Group:
    """A call and its results, as numbers of blocks."""

    calls: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    """In order; a result of several texts has several."""


def find_groups(segments: Sequence[Segment]) -> list[Group]:
    """The groups of a session, in the order of their calls. O(blocks)."""
    groups: list[Group] = []
    open_groups: dict[str, Group] = {}
    for segment in segments:
        kind = segment.block.kind
        if kind is BlockKind.TOOL_CALL:
            group = open_groups[segment.block.call_id] = Group([segment.number])
            groups.append(group)
        elif kind is BlockKind.TOOL_RESULT:
            if (found := open_groups.get(segment.block.call_id)) is not None:
                found.results.append(segment.number)
        elif kind is BlockKind.OTHER:
            _add_unknown(segment, groups, open_groups)
    return groups


def _add_unknown(segment: Segment, groups: list[Group], open_groups: dict[str, Group]) -> None:
    """An item of the model's that we do not know may be a call; one of the user's side may answer it."""
    names = list(_names(segment.block.text))
    if segment.role is MessageRole.ASSISTANT:
        group = Group([segment.number])
        groups.append(group)
        open_groups |= dict.fromkeys(names, group)
        return
    found = next((open_groups[name] for name in names if name in open_groups), None)
    if found is not None:
        found.results.append(segment.number)


def _names(text: str) -> Iterator[str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    for key in _ID_KEYS if isinstance(value, dict) else ():
        if isinstance(value.get(key), str) and value[key]:
            yield value[key]
