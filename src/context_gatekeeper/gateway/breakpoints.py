"""Where a request gets cache breakpoints of ours (Anthropic alone).

A provider looks back 20 blocks from each breakpoint for what it has cached. The client's breakpoints stay. Where a
turn adds more blocks than that, or a rewrite changes the conversation far in front of its end, one of ours
stands on the last block that the request before had too, so that what is unchanged is still read from the cache.
Four are allowed in one request.

Source: section 2.1 of the client notes.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple

from context_gatekeeper.types import BlockKind, MessageRole
from context_gatekeeper.wire.records import PartKey, RequestEdits, WireApi, WireRequest

__all__ = ["MOST_MARKS", "Layout", "LayoutBlock", "layout_of", "place_marks"]

MOST_MARKS = 4
_LOOK_BACK = 18
"""Two fewer than the provider's 20: a block more or less is no matter of a whole prompt."""
_DIGEST_BYTES = 8
_UNMARKED = frozenset({BlockKind.THINKING, BlockKind.OTHER})


class LayoutBlock(NamedTuple):
    """One block of a request as it is sent."""

    identity: tuple[int, int, bytes]
    """Message, part (from -1 downwards: what is added), digest of what is changed in it."""
    key: PartKey | None
    """None for a text that is added."""
    can_be_marked: bool


Layout = tuple[LayoutBlock, ...]


def layout_of(request: WireRequest, edits: RequestEdits) -> Layout:
    """The conversation's blocks as they are sent with some edits, in order."""
    blocks: list[LayoutBlock] = []
    for message in request.messages:
        for part in message.parts:
            if part.key in edits.dropped:
                continue
            text = edits.texts.get(part.key)
            is_text = part.block.kind is not BlockKind.TEXT or bool((part.block.text if text is None else text).strip())
            can_be_marked = is_text and part.block.kind not in _UNMARKED and message.role is not MessageRole.SYSTEM
            identity = (*part.key, b"" if text is None else _digest(text))
            blocks.append(LayoutBlock(identity, part.key, can_be_marked))
        added = edits.added.get(message.number, ())
        if added and blocks and message.role is not MessageRole.TOOL and request.api is not WireApi.MESSAGES:
            # Texts become part of the message: it is another one with them.
            (number, place, digest), key, _ = blocks[-1]
            if number == message.number:
                blocks[-1] = LayoutBlock((number, place, digest + _digest("\0".join(added))), key, can_be_marked=False)
                continue
        for number, text in enumerate(added, 1):
            blocks.append(LayoutBlock((message.number, -number, _digest(text)), None, can_be_marked=False))
    return tuple(blocks)


def place_marks(request: WireRequest, edits: RequestEdits, layout: Layout, common: int) -> RequestEdits:
    """The edits with our breakpoints, where the client uses some and leaves room.

    Args:
        request: as the client sent it.
        edits: what changes in it.
        layout: of both.
        common: blocks at its beginning that the request before had too.
    """
    ttl = _time_to_live(request)
    if request.api is not WireApi.MESSAGES or not ttl:
        return edits
    room = MOST_MARKS - len(request.marks)
    marked = [part.key for message in request.messages for part in message.parts if part.is_marked]
    if room > 0 and common < len(layout) - _LOOK_BACK:
        place = next((n for n in range(common - 1, -1, -1) if layout[n].can_be_marked), None)
        key = None if place is None else layout[place].key
        if key is not None and key not in marked:
            edits = replace(edits, marked=frozenset({key}), mark_ttl=ttl)
            room -= 1
    last = request.messages[-1].number if request.messages else -1
    if room > 0 and edits.added.get(last) and any(key.message == last for key in marked):
        edits = replace(edits, marks_added=frozenset({last}), mark_ttl=ttl)
    return edits


def _time_to_live(request: WireRequest) -> str:
    """That of the client's breakpoints in the conversation; "" where it has none, or several kinds.

    One that lives for an hour may not stand behind one of five minutes, so that ours are as the client's are.
    """
    found = {mark.ttl for mark in request.marks if mark.where in ("messages", "request")}
    return found.pop() if len(found) == 1 else ""


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
