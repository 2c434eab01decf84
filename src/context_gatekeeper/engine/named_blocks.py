"""From the handles and call ids in a text to the slices of a session that they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from context_gatekeeper.core.block_handles import BlockMention
from context_gatekeeper.core.handles import HandleMention, RangeUnit
from context_gatekeeper.engine.back_references import NamedPages, named_pages
from context_gatekeeper.engine.session_log import Segment, SessionLog

__all__ = ["BlockResolver", "NamedBlock", "NamedBlocks"]

BlockResolver = Callable[[str], Sequence[int]]
"""``page:...`` -> numbers of this session's blocks on that page, in order; empty when it has none."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{4,98}[A-Za-z0-9]")
_LOOKS_LIKE_AN_ID = re.compile(r"(?:toolu|call|fc|chatcmpl-tool)[_-](?=[A-Za-z_]{0,60}[0-9])[A-Za-z0-9_-]{24,}\Z")
"""What providers call a tool call; another word of a text is no id unless the session knows it."""


@dataclass(frozen=True, slots=True)
class NamedBlock:
    """One page as a text names it."""

    written: str
    pieces: tuple[int, ...] = ()
    """Its slices that hold text, ascending; none when there is no such page."""
    problem: str = ""
    """Why there are none."""


class NamedBlocks:
    """Finds the named blocks of one log.

    Args:
        log: the session.
        resolve: leads from a page's own handle to blocks; without one such a handle names nothing here.
    """

    def __init__(self, log: SessionLog, resolve: BlockResolver | None = None) -> None:
        self._log = log
        self._resolve = resolve
        self._by_call: dict[str, list[int]] = {}
        self._known = 0

    def follow(self) -> None:
        """Take in the blocks that came since. O(their number)."""
        for segment in self._log.segments[self._known :]:
            if segment.block.call_id:
                self._by_call.setdefault(segment.block.call_id, []).append(segment.number)
        self._known = len(self._log.segments)

    def find(self, text: str) -> Iterator[NamedBlock]:
        """What the text names, in order, handles before call ids; of a range each block that there is."""
        for named in named_pages(text):
            yield from self._of_handle(named)
        for word in dict.fromkeys(_ID.findall(text)):
            blocks = self._by_call.get(word)
            if blocks is not None:
                yield self._whole(word, blocks)
            elif _LOOKS_LIKE_AN_ID.match(word):
                yield NamedBlock(word, problem="no tool call of this session has this id")

    # -- inside -----------------------------------------------------------------------------

    def _of_handle(self, named: NamedPages) -> Iterator[NamedBlock]:
        mention = named.mention
        if isinstance(mention, HandleMention):
            blocks = list(self._resolve(mention.handle)) if self._resolve is not None else []
            if len(blocks) != 1:
                yield self._whole(named.written, blocks)
                return
            number, range_of = blocks[0], mention
            yield self._part(named.written, number, range_of)
        elif mention.first_block >= self._known:
            yield NamedBlock(named.written, problem=f"the session has {self._known} blocks")
        elif mention.unit is not None:
            yield self._part(named.written, mention.first_block, mention)
        else:
            for number in range(mention.first_block, min(mention.last_block + 1, self._known)):
                written = named.written if mention.last_block == mention.first_block else f"p{number}"
                yield self._whole(written, [number])

    def _whole(self, written: str, blocks: Sequence[int]) -> NamedBlock:
        if not blocks:
            return NamedBlock(written, problem="no page of this session has this handle")
        slices = self._log.slices
        pieces = [
            piece
            for number in blocks
            for piece in self._log.segments[number].slices
            if slices[piece].end > slices[piece].start
        ]
        return NamedBlock(written, tuple(pieces), "" if pieces else "it holds no text")

    def _part(self, written: str, number: int, mention: BlockMention | HandleMention) -> NamedBlock:
        if mention.unit is None:
            return self._whole(written, [number])
        segment = self._log.segments[number]
        if mention.unit is RangeUnit.LINES:
            start, end = _line_span(segment, mention.first, mention.last)
        else:
            start, end = mention.first, mention.last
        slices = self._log.slices
        pieces = tuple(n for n in segment.slices if slices[n].start < end and slices[n].end > start)
        return NamedBlock(written, pieces, "" if pieces else "the page does not reach so far")


def _line_span(segment: Segment, first: int, last: int) -> tuple[int, int]:
    """Characters of the lines ``first`` to ``last`` of a block, from 1; empty beyond its end. O(its length)."""
    at = 0
    start = -1
    for number, line in enumerate(segment.text.split("\n"), 1):
        if number == first:
            start = at
        at += len(line) + 1
        if number == last:
            break
    return (start, at) if start >= 0 else (0, 0)
