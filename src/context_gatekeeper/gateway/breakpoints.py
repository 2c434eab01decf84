"""Where a request gets cache breakpoints of ours (Anthropic alone).

A provider looks back 20 blocks from each breakpoint for what it has cached. The client's breakpoints stay. Where a
turn adds more blocks than that, or a rewrite changes the conversation far in front of its end, one of ours
stands on the last block that the request before had too, so that what is unchanged is still read from the cache.
What is free besides marks places where the next rewrite may begin, other ones with each request: without an entry near
there what stands in front would be in the cache, and not be found. Four are allowed in one request.

Source: section 2.1 of the client notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple

from context_gatekeeper.types import BlockKind, MessageRole
from context_gatekeeper.wire.records import PartKey, RequestEdits, WireApi, WireRequest

__all__ = ["MOST_MARKS", "Layout", "LayoutBlock", "layout_of", "next_changes", "place_marks", "tail_start"]

MOST_MARKS = 4
_LOOK_BACK = 18
"""Two fewer than the provider's 20: a block more or less is no matter of a whole prompt."""
_SPACING = 5
"""Blocks between the places that are marked one after the other."""
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
            is_last = number == len(added)
            blocks.append(LayoutBlock((message.number, -number, _digest(text)), None, can_be_marked=is_last))
    return tuple(blocks)


def tail_start(layout: Layout) -> int:
    """Number of the block with which the untouched end of a conversation begins, its newest message left aside."""
    newest = layout[-1].identity[0] if layout else 0
    place = len(layout)
    while place and (layout[place - 1].identity[0] == newest or _is_untouched(layout[place - 1])):
        place -= 1
    return place


def _is_untouched(block: LayoutBlock) -> bool:
    return block.key is not None and not block.identity[2]


def next_changes(tail: int, requests: int) -> tuple[int, ...]:
    """Blocks in front of which a request marks where a rewrite may begin.

    That is near the beginning of the untouched tail, where the newest digests join others, and seldom far before it.

    Args:
        tail: `tail_start` at the newest rewrite; 0 before the first one.
        requests: made since that rewrite.
    """
    if not tail:
        return ()
    steps = (1,) if not requests else (2 * requests - 2 + (requests > 1), 2 * requests)
    return tuple(place for step in steps if (place := tail - _SPACING * step) > 0)


def place_marks(
    request: WireRequest, edits: RequestEdits, layout: Layout, common: int, changes: Sequence[int] = ()
) -> RequestEdits:
    """The edits with our breakpoints, where the client uses some and leaves room.

    Args:
        request: as the client sent it.
        edits: what changes in it.
        layout: of both.
        common: blocks at its beginning that the request before had too.
        changes: blocks at which rewrites may begin, the likeliest first (`next_changes`).
    """
    ttl = _time_to_live(request)
    if request.api is not WireApi.MESSAGES or not ttl:
        return edits
    room = MOST_MARKS - len(request.marks)
    marked = [part.key for message in request.messages for part in message.parts if part.is_marked]
    is_far = common < len(layout) - _LOOK_BACK
    for end in (common if is_far else 0, *changes):
        block = next((block for block in reversed(layout[: max(end, 0)]) if block.can_be_marked), None)
        if room > 0 and block is not None and not _is_marked(block, edits, marked):
            edits = _with_mark(edits, block, ttl)
            room -= 1
    last = request.messages[-1].number if request.messages else -1
    if room > 0 and edits.added.get(last) and any(key.message == last for key in marked):
        edits = replace(edits, marks_added=edits.marks_added | {last}, mark_ttl=ttl)
    return edits


def _is_marked(block: LayoutBlock, edits: RequestEdits, marked: Sequence[PartKey]) -> bool:
    if block.key is None:
        return block.identity[0] in edits.marks_added
    return block.key in marked or block.key in edits.marked


def _with_mark(edits: RequestEdits, block: LayoutBlock, ttl: str) -> RequestEdits:
    if block.key is None:
        return replace(edits, marks_added=edits.marks_added | {block.identity[0]}, mark_ttl=ttl)
    return replace(edits, marked=edits.marked | {block.key}, mark_ttl=ttl)


def _time_to_live(request: WireRequest) -> str:
    """That of the client's breakpoints in the conversation; "" where it has none, or several kinds.

    One that lives for an hour may not stand behind one of five minutes, so that ours are as the client's are.
    """
    found = {mark.ttl for mark in request.marks if mark.where in ("messages", "request")}
    return found.pop() if len(found) == 1 else ""


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
