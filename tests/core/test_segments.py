"""Which stretch of talk a query returns to."""

from __future__ import annotations

from array import array
from itertools import accumulate
from math import exp, inf, log

import pytest

from context_gatekeeper.core.segments import SegmentMatch, SegmentParams, match_segments

# Two segments of two turns each; ordinals 0-3 are the first one's pages, 4-7 the second one's.
SEGMENT_OF = array("I", [0, 0, 1, 1])
SIZES = [2, 2]


def starts(sizes: list[int]) -> list[int]:
    return [0, *accumulate(sizes[:-1])]


STARTS = starts(SIZES)
NO_RECENCY = SegmentParams(recency_segments=inf)
"""Every segment gets the same bonus, a factor of 2."""


def test_strength_is_bm25_over_segments_times_the_recency_bonus() -> None:
    # Both hold it on two sides' worth: one block and one user message, so 2 / (2 + 1.2), weight 2, IDF 1.
    found = match_segments({"redis": 2.0}, {"redis": [0, 1, 6]}, SEGMENT_OF, STARTS)
    assert [match.segment for match in found] == [1, 0]
    assert [match.strength for match in found] == pytest.approx([1.25 * 2, 1.25 * (1 + exp(-1 / 30))])
    assert [match.share for match in found] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("ordinals", "frequency"),
    [([4], 2), ([5], 1), ([4, 5], 2), ([5, 7], 2), ([4, 6], 4), ([4, 5, 6, 7], 4)],
)
def test_a_users_message_counts_beside_its_block(ordinals: list[int], frequency: int) -> None:
    (found,) = match_segments({"redis": 1.0}, {"redis": ordinals}, SEGMENT_OF, STARTS)
    idf = log(3 / 2) + 1
    assert found == SegmentMatch(1, pytest.approx(2 * idf * frequency / (frequency + 1.2)), 1.0)


def test_a_term_in_fewer_segments_weighs_more() -> None:
    places = {"rare": [0], "common": [1, 5]}
    (rare,) = match_segments({"rare": 1.0}, places, SEGMENT_OF, STARTS, NO_RECENCY)
    assert rare.strength == pytest.approx(2 * (log(3 / 2) + 1) * 2 / 3.2)
    common = match_segments({"common": 1.0}, places, SEGMENT_OF, STARTS, NO_RECENCY)
    assert [match.strength for match in common] == pytest.approx([2 / 2.2] * 2), "IDF 1 when all segments hold it"


def test_a_long_segment_needs_more_mentions() -> None:
    # Sizes 1 and 3 about a mean of 2: norms 1.2 * (0.25 + 0.75 / 2) = 0.75 and 1.2 * (0.25 + 0.75 * 1.5) = 1.65.
    segment_of = array("I", [0, 1, 1, 1])
    found = match_segments({"redis": 1.0}, {"redis": [1, 3]}, segment_of, starts([1, 3]), NO_RECENCY)
    assert [match.segment for match in found] == [0, 1]
    assert [match.strength for match in found] == pytest.approx([2 / 1.75, 2 / 2.65])


def test_ties_go_to_the_newer_segment() -> None:
    found = match_segments({"redis": 1.0}, {"redis": [0, 4]}, SEGMENT_OF, STARTS, NO_RECENCY)
    assert found[0].strength == found[1].strength
    assert [match.segment for match in found] == [1, 0]


def test_the_recency_bonus_falls_to_one_e_th_after_its_number_of_segments() -> None:
    segments = 4
    params = SegmentParams(recency_segments=3.0)
    found = match_segments({"redis": 1.0}, {"redis": [0, 6]}, array("I", range(segments)), range(segments), params)
    newest, oldest = found
    assert oldest.strength / newest.strength == pytest.approx((1 + exp(-1)) / 2)


def test_the_share_is_the_weight_held_of_the_whole_query() -> None:
    base = {"redis": 3.0, "lock": 1.0, "never said": 4.0}
    found = match_segments(base, {"redis": [0], "lock": [1, 4]}, SEGMENT_OF, STARTS)
    assert {match.segment: match.share for match in found} == {0: 0.5, 1: 0.125}


def test_no_more_than_the_strongest_are_told_of() -> None:
    places = {"redis": [0, 2, 4, 6]}
    found = match_segments({"redis": 1.0}, places, array("I", range(4)), range(4), SegmentParams(most_matches=2))
    assert [match.segment for match in found] == [3, 2]


@pytest.mark.parametrize(
    ("base", "places", "segment_starts"),
    [
        ({}, {"redis": [0]}, STARTS),
        ({"redis": 0.0}, {"redis": [0]}, STARTS),
        ({"redis": 1.0}, {}, STARTS),
        ({"redis": 1.0}, {"redis": []}, STARTS),
        ({"redis": 1.0}, {}, []),
    ],
    ids=["no query", "no weight", "never said", "no place", "no history"],
)
def test_nothing_to_look_for_or_in_finds_nothing(
    base: dict[str, float], places: dict[str, list[int]], segment_starts: list[int]
) -> None:
    assert match_segments(base, places, SEGMENT_OF, segment_starts) == []
