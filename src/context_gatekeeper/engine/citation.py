"""How likely a slice or a unit is quoted again: log-linear tables over what the session showed so far.

A row of features is a tuple of indices into one flat table; the probability is the logistic function
of the sum of their weights (section 5.3 of the paging notes; the tables are fitted by
``scripts/fit_citation.py``). Only the past is looked at.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from math import exp

from context_gatekeeper.core.tables import citation_rows
from context_gatekeeper.engine.session_log import Segment, SessionLog, Slice, SliceKind, Unit

__all__ = [
    "LINE_HORIZON_CALLS",
    "SLICE_TABLE_SIZE",
    "UNIT_HORIZON_CALLS",
    "UNIT_TABLE_SIZE",
    "CitationModel",
    "slice_features",
    "unit_features",
]

LINE_HORIZON_CALLS = 20
"""A slice's probability: quoted within so many calls."""
UNIT_HORIZON_CALLS = 60
"""A unit's probability: used within so many calls."""

_AGE_CUTS = (2, 5, 10, 20, 40, 80, 160)
_FILE_CUTS = (4, 12, 40, 100)
_EDIT_CUTS = (10, 40, 100)
_SIZE_CUTS = (40, 100, 200, 330)
_SHARE_CUTS = (0.4, 0.85)
_NEWEST_CUTS = (0.2, 0.5, 0.8)
_HOLDER_CUTS = (2, 3, 5, 9, 17)
_USE_CUTS = (1, 2, 4, 8)
_NAME_CUTS = (12, 20, 40)
_CITED_CUTS = (5, 20, 60)
_NEIGHBOUR_CALLS = 20
_KINDS = len(SliceKind)
_READ_SEARCH_OTHER = {SliceKind.READ: 0, SliceKind.SEARCH: 1, SliceKind.SHELL: 1, SliceKind.OTHER_RESULT: 1}
_READ_EDIT_OTHER = {SliceKind.READ: 0, SliceKind.EDIT_CALL: 1, SliceKind.WRITE_CALL: 1}

# Sizes of the slice table's parts, in the order of `slice_features`.
_SLICE_PARTS = (8 * _KINDS, 4 * _KINDS, 8 * _KINDS, 12, 15, 12, 5, 24, 3, 4, 4, 4, 2, 3 * _KINDS, 40, _KINDS * _KINDS)
_SLICE_AT = (0, *accumulate(_SLICE_PARTS))
SLICE_TABLE_SIZE = _SLICE_AT[-1]
"""Weights of each slice table."""
# Of the unit table's parts, in the order of `unit_features`.
_UNIT_PARTS = (24, 18, 15, 9, 2, 3 * _KINDS, 24, 12, 15)
_UNIT_AT = (0, *accumulate(_UNIT_PARTS))
UNIT_TABLE_SIZE = _UNIT_AT[-1]
"""Weights of the unit table."""


@dataclass(frozen=True, slots=True)
class _FileState:
    """What happened to a slice's file."""

    touch_class: int
    edit_class: int


def slice_features(log: SessionLog, piece: Slice) -> tuple[int, ...]:
    """Rows of the slice tables that ``piece`` stands on now, one of each part. O(log(edits of its file))."""
    segment = log.segments[piece.segment]
    kind, now = segment.kind, log.calls
    touched = max(piece.born, piece.last_cited)
    age = bisect_right(_AGE_CUTS, now - touched)
    segment_touched = max(segment.born, segment.last_cited)
    file_state = _file_state(log, segment, piece)
    at = _SLICE_AT
    return (
        kind * 8 + age,
        at[1] + kind * 4 + _citation_class(piece.citations),
        at[2] + kind * 8 + bisect_right(_AGE_CUTS, now - piece.born),
        at[3] + _READ_SEARCH_OTHER.get(kind, 2) * 4 + _repeat_class(piece),
        at[4] + file_state.touch_class,
        at[5] + file_state.edit_class,
        at[6] + bisect_right(_SIZE_CUTS, piece.tokens),
        at[7] + _READ_EDIT_OTHER.get(kind, 2) * 8 + bisect_right(_AGE_CUTS, now - segment_touched),
        at[8] + _cited_neighbours(log, segment, piece),
        at[9] + _place_class(segment, piece),
        at[10] + _length_class(len(segment.slices)),
        at[11] + min(len(log.user_turns) - bisect_right(log.user_turns, touched), 3),
        at[12] + segment.block.is_error,
        at[13] + kind * 3 + min(piece.line_citations, 2),
        at[14] + age * 5 + _newest_class(piece),
        at[15] + kind * _KINDS + log.last_action,
    )


def unit_features(log: SessionLog, unit: Unit, name: str) -> tuple[int, ...]:
    """Rows of the unit table that ``unit`` stands on now, one of each part."""
    now, kind = log.calls, unit.kind
    holder = log.slices[unit.holders[-1]]
    used = 0 if unit.last_used < 0 else 1 + bisect_right(_AGE_CUTS, now - unit.last_used)
    cited = 0 if holder.last_cited < 0 else 1 + bisect_right(_CITED_CUTS, now - holder.last_cited)
    at = _UNIT_AT
    return (
        kind * 8 + bisect_right(_AGE_CUTS, now - holder.born),
        at[1] + kind * 6 + bisect_right(_HOLDER_CUTS, len(unit.holders)),
        at[2] + kind * 5 + bisect_right(_USE_CUTS, unit.used),
        at[3] + used,
        at[4] + unit.is_users,
        at[5] + kind * _KINDS + log.segments[holder.segment].kind,
        at[6] + kind * 8 + bisect_right(_AGE_CUTS, now - unit.first_call),
        at[7] + kind * 4 + bisect_right(_NAME_CUTS, len(name)),
        at[8] + kind * 5 + cited,
    )


class CitationModel:
    """Probabilities for one log, each worked out at most once a call."""

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self._call = -1
        self._slices: dict[int, tuple[float, float]] = {}
        self._units: dict[int, float] = {}

    def slice_probabilities(self, piece: Slice) -> tuple[float, float]:
        """(an exact line of it is quoted, only an identifier or path of it is) within `LINE_HORIZON_CALLS`."""
        self._follow()
        known = self._slices.get(piece.number)
        if known is None:
            rows = slice_features(self._log, piece)
            known = self._slices[piece.number] = (
                _probability(citation_rows.LINE_WEIGHTS, citation_rows.LINE_BASE, rows),
                _probability(citation_rows.NAME_WEIGHTS, citation_rows.NAME_BASE, rows),
            )
        return known

    def unit_probability(self, unit: int) -> float:
        """That the unit is used within `UNIT_HORIZON_CALLS`."""
        self._follow()
        known = self._units.get(unit)
        if known is None:
            rows = unit_features(self._log, self._log.units[unit], self._log.name_of(unit))
            known = self._units[unit] = _probability(citation_rows.UNIT_WEIGHTS, citation_rows.UNIT_BASE, rows)
        return known

    def _follow(self) -> None:
        if self._call != self._log.calls:
            self._call = self._log.calls
            self._slices.clear()
            self._units.clear()


def _probability(weights: tuple[float, ...], base: float, rows: tuple[int, ...]) -> float:
    total = base
    for row in rows:
        total += weights[row]
    return 1.0 / (1.0 + exp(-total))


def _citation_class(citations: int) -> int:
    return citations if citations < 2 else 2 + (citations >= 5)


def _repeat_class(piece: Slice) -> int:
    """How much of it came again later: nothing, less than .4, less than .85, more."""
    return 1 + bisect_right(_SHARE_CUTS, piece.repeated / piece.lines) if piece.repeated else 0


def _newest_class(piece: Slice) -> int:
    """Share of its units that no later slice holds."""
    return 1 + bisect_right(_NEWEST_CUTS, piece.newest / len(piece.units)) if piece.newest else 0


def _file_state(log: SessionLog, segment: Segment, piece: Slice) -> _FileState:
    path = segment.path
    if not path:
        return _FileState(0, 0)
    touch = bisect_right(_FILE_CUTS, log.calls - log.touches.get(path, segment.born))
    edits = log.edits.get(path, [])
    since = len(edits) - bisect_right(edits, piece.born)
    recency = bisect_right(_EDIT_CUTS, log.calls - edits[len(edits) - 1]) if since else 0
    return _FileState(touch * 3 + (2 if since else 1), min(since, 2) * 4 + recency)


def _cited_neighbours(log: SessionLog, segment: Segment, piece: Slice) -> int:
    """Neighbours in the block that were quoted lately, 0 to 2."""
    first, last = segment.slices[0], segment.slices[-1]
    cited = 0
    for number in (piece.number - 1, piece.number + 1):
        if first <= number <= last:
            newest = log.slices[number].last_cited
            cited += newest >= 0 and log.calls - newest < _NEIGHBOUR_CALLS
    return cited


def _place_class(segment: Segment, piece: Slice) -> int:
    """Only slice, first, between, last."""
    if len(segment.slices) == 1:
        return 0
    if piece.number == segment.slices[0]:
        return 1
    return 3 if piece.number == segment.slices[-1] else 2


def _length_class(slices: int) -> int:
    if slices == 1:
        return 0
    return 1 if slices < 4 else 2 if slices < 9 else 3
