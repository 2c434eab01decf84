"""Repeated text: a new tool result whose lines already stand in the window is sent as a reference to them.

Rule 1 of section 5.3 of the paging notes: a run of at least 40 tokens of unchanged lines becomes a reference of a few
tokens; the other lines are sent as they are. The older text is not touched, so the cached prefix is not either.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from context_gatekeeper.core.evidence import plain_lines
from context_gatekeeper.core.tokens import MESSAGE_TOKENS
from context_gatekeeper.engine.digest import slice_text, units_in
from context_gatekeeper.engine.session_log import OUTPUT_KINDS, SessionLog, Slice, SliceKind
from context_gatekeeper.engine.window import Entry, EntryForm, Window
from context_gatekeeper.types import BlockKind

__all__ = ["REPEAT_PARAMS", "Reference", "RepeatParams", "reference_to_window"]


@dataclass(frozen=True, slots=True)
class RepeatParams:
    """Numbers of the references."""

    least_run_tokens: float = 40.0
    """A shorter run of repeated lines is sent as it is."""
    reference_tokens: int = 12
    """About what ``[= p45#L12-60]`` takes."""
    most_share: float = 0.6
    """The entry with references must not be larger than this share of the slice."""
    most_holders: int = 6
    """Older slices that are compared."""


REPEAT_PARAMS = RepeatParams()


_MOST_PLACES = 8
"""Of one line among the older ones: an empty line or a bracket stands everywhere."""
_MOST_KNOWN_CHARS = 8000
"""A longer slice is one line, or nearly so."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A new slice as it is sent, and the older slices that it now rests on."""

    entry: Entry
    rests_on: tuple[int, ...]


def reference_to_window(
    log: SessionLog, window: Window, piece: Slice, params: RepeatParams = REPEAT_PARAMS
) -> Reference | None:
    """The slice with references for what stands in the window; None when it is sent whole.

    Never for what a model or a person wrote, nor for failed results. The window does not hold the slice yet.
    """
    segment = log.segments[piece.segment]
    if segment.kind in OUTPUT_KINDS or segment.kind is SliceKind.USER or segment.block.is_error:
        return None
    if piece.tokens < params.least_run_tokens + params.reference_tokens:
        return None
    holders = _older_holders(log, window, piece, params.most_holders)
    if not holders:
        return None
    older = _OlderLines(log, holders)
    lines = _lines(slice_text(log, piece))
    plain = plain_lines(lines)
    kept: list[str] = []
    shown: list[str] = []
    rests_on: dict[int, None] = {}
    place = 0
    share = piece.tokens / max(1, piece.end - piece.start)
    while place < len(lines):
        run = older.longest_run(plain, place)
        stay = max(1, run.length)
        stretch = lines[place : place + stay]
        place += stay
        if run.length and share * sum(len(line) + 1 for line in stretch) >= params.least_run_tokens:
            kept.append(f"[= {run.handle(log)}]")
            rests_on[run.piece] = None
        else:
            kept += stretch
            shown += stretch
    text = "\n".join(kept)
    tokens = log.count(text) + (0 if piece.start else MESSAGE_TOKENS)
    if tokens > params.most_share * piece.tokens:
        return None
    units = dict.fromkeys(unit for line in shown for unit in units_in(log, line))
    return Reference(window.make(EntryForm.REFERENCE, tokens, [piece.number], units, text=text), tuple(rests_on))


def _lines(text: str) -> list[str]:
    """Lines of a slice; what would begin behind its last line break belongs to the next slice."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


@dataclass(frozen=True, slots=True)
class _Repeat:
    """Consecutive lines of a new slice that stand consecutively in an older one."""

    length: int
    piece: int = -1
    """The older slice."""
    first_line: int = 0
    """From 1, in its block."""

    def handle(self, log: SessionLog) -> str:
        """Where they stand."""
        block = log.handle(log.segments[log.slices[self.piece].segment])
        return f"{block}#L{self.first_line}-{self.first_line + self.length - 1}"


_NO_REPEAT = _Repeat(0)


@dataclass(frozen=True, slots=True)
class _SliceLines:
    """Lines of a slice as they are compared."""

    lines: Sequence[str]
    places: Mapping[str, Sequence[int]]
    """Line -> where it stands, at most `_MOST_PLACES` times."""

    @classmethod
    def of(cls, text: str) -> _SliceLines:
        lines = plain_lines(_lines(text))
        places: dict[str, list[int]] = {}
        for place, line in enumerate(lines):
            found = places.setdefault(line, [])
            if len(found) < _MOST_PLACES:
                found.append(place)
        return cls(lines, places)


_known_slice_lines = lru_cache(maxsize=256)(_SliceLines.of)
"""The same for a usual slice: the next slices of its block, or of its file, are compared with it too."""


class _OlderLines:
    """Lines of older slices, to find repeats in."""

    def __init__(self, log: SessionLog, pieces: list[int]) -> None:
        self._slices: list[tuple[Slice, _SliceLines]] = []
        for number in pieces:
            piece = log.slices[number]
            of = _known_slice_lines if piece.end - piece.start <= _MOST_KNOWN_CHARS else _SliceLines.of
            self._slices.append((piece, of(slice_text(log, piece))))

    def longest_run(self, lines: list[str], start: int) -> _Repeat:
        """The longest run of older lines that ``lines`` repeats from ``start`` on, the first of equals; or length 0."""
        best, room = _NO_REPEAT, _MOST_PLACES
        for piece, older in self._slices:
            for place in older.places.get(lines[start], ())[:room]:
                room -= 1
                length = _run_length(lines, start, older.lines, place)
                if length > best.length:
                    best = _Repeat(length, piece.number, piece.first_line + place)
        return best


def _run_length(lines: Sequence[str], start: int, older: Sequence[str], place: int) -> int:
    """How many lines agree from the two places on."""
    most = min(len(lines) - start, len(older) - place)
    return next((n for n in range(1, most) if lines[start + n] != older[place + n]), most)


def _older_holders(log: SessionLog, window: Window, piece: Slice, most: int) -> list[int]:
    """Whole older slices in the window that hold most of the slice's units; none of a call: its lines are JSON."""
    shared: Counter[int] = Counter()
    for unit in piece.units:
        if not window.whole_holders(unit):
            continue
        holders = log.units[unit].holders
        for place in range(bisect_left(holders, piece.number) - 1, -1, -1):
            holder = holders[place]
            if window.holds_piece(holder) and not _is_call(log, holder):
                shared[holder] += 1
                break
    return [number for number, _ in shared.most_common(most)]


def _is_call(log: SessionLog, piece: int) -> bool:
    return log.segments[log.slices[piece].segment].block.kind is BlockKind.TOOL_CALL
