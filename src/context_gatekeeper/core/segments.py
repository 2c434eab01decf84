"""Which older stretch of talk a query returns to: BM25 over segments (section 6.5 of the selection notes)."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

__all__ = ["SEGMENT_PARAMS", "SegmentMatch", "SegmentParams", "match_segments"]


@dataclass(frozen=True, slots=True)
class SegmentParams:
    """Numbers of the segment ranking."""

    saturation_k1: float = 1.2
    length_b: float = 0.75
    recency_segments: float = 30.0
    """Segments after which the recency bonus has fallen to 1/e."""
    most_matches: int = 32
    """Segments that are told of, the strongest first."""
    resume_share: float = 0.5
    """Least share of the query's base weight that a segment must hold to be resumed."""


SEGMENT_PARAMS = SegmentParams()


@dataclass(frozen=True, slots=True)
class SegmentMatch:
    """One segment that holds some of the query."""

    segment: int
    strength: float
    """BM25 times the recency bonus, > 0."""
    share: float
    """Share of the query's base weight that it holds, in (0, 1]."""


def match_segments(
    base: Mapping[str, float],
    places: Mapping[str, Sequence[int]],
    segment_of: array[int],
    segment_starts: Sequence[int],
    params: SegmentParams = SEGMENT_PARAMS,
) -> list[SegmentMatch]:
    """Segments that hold a query term, strongest first; ties go to the newer one.

    Args:
        base: term -> weight without IDF; terms that should not count are left out.
        places: term -> ascending page ordinals that hold it (two pages a turn).
        segment_of: turn id -> segment number.
        segment_starts: first turn of each segment, ascending.
        params: the numbers.

    Term frequency = blocks plus user messages of the segment that hold the term.
    O(postings of the query's terms).
    """
    total = sum(base.values())
    count = len(segment_starts)
    if not total or not count:
        return []
    bounds = array("I", segment_starts)
    bounds.append(len(segment_of))
    fixed_norm = params.saturation_k1 * (1 - params.length_b)
    norm_a_turn = params.saturation_k1 * params.length_b * count / len(segment_of)
    strengths: defaultdict[int, float] = defaultdict(float)
    shares: defaultdict[int, float] = defaultdict(float)
    for term, weight in base.items():
        held = places.get(term)
        if not held:
            continue
        frequencies = Counter([segment_of[ordinal >> 1] for ordinal in held if not ordinal & 1])
        frequencies.update([segment_of[turn] for turn in dict.fromkeys([ordinal >> 1 for ordinal in held])])
        gain = weight * (log((count + 1) / (len(frequencies) + 1)) + 1.0)
        for segment, frequency in frequencies.items():
            norm = fixed_norm + norm_a_turn * (bounds[segment + 1] - bounds[segment])
            strengths[segment] += gain * frequency / (frequency + norm)
            shares[segment] += weight
    bonus = params.recency_segments
    strongest = sorted(
        ((-strength * (1 + exp((segment + 1 - count) / bonus)), -segment) for segment, strength in strengths.items()),
    )[: params.most_matches]
    return [SegmentMatch(-segment, -strength, shares[-segment] / total) for strength, segment in strongest]
