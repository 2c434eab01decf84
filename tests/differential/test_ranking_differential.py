"""The rankings return what adding up every posting returns, at every size and in every growth step."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_gatekeeper.core.ranking import SearchParams, top_blocks, top_pages_bm25
from context_gatekeeper.stores.postings import PostingIndex

Turn = tuple[Mapping[str, int], Mapping[str, int]]

_VOCABULARY = "abcdefghijklmnop"
_TERMS = st.sampled_from(_VOCABULARY)
_PAGES = st.dictionaries(_TERMS, st.integers(1, 4), max_size=9)
_TURNS = st.lists(st.tuples(_PAGES, _PAGES), max_size=60)
# Few distinct weights make many ties, 0.0 makes terms that gain nothing, and sums of binary
# fractions are exact in any order, so that ties are ties for everybody.
_WEIGHTS = st.dictionaries(_TERMS, st.sampled_from([0.0, 0.25, 1.0, 1.0, 2.5, 7.0]), max_size=14)
_FACTORS = st.sampled_from([0.0, 0.75, 1.5])


def indexed(turns: list[Turn]) -> PostingIndex:
    index = PostingIndex()
    for turn_id, (user, assistant) in enumerate(turns):
        index.add_page(2 * turn_id, user)
        index.add_page(2 * turn_id + 1, assistant)
    return index


def brute_force_blocks(
    turns: list[Turn],
    weights: Mapping[str, float],
    user_weight: float,
    assistant_weight: float,
    any_weights: Mapping[str, float],
    recency_weight: float,
    allowed: Collection[int] | None,
) -> dict[int, float]:
    scores = {}
    count = len(turns)
    for block, (user, assistant) in enumerate(turns):
        total = 0.0
        for term in {*weights, *any_weights}:
            total += weights.get(term, 0.0) * user_weight * (term in user)
            total += weights.get(term, 0.0) * assistant_weight * (term in assistant)
            total += any_weights.get(term, 0.0) * (term in user or term in assistant)
        if total > 0 and (allowed is None or block in allowed):
            scores[block] = total + recency_weight * min(1.0, max(0.0, 1 - (count - 1 - block) / max(1, count)))
    return scores


def brute_force_bm25(
    turns: list[Turn], idf: Mapping[str, float], k1: float, b: float, average: float | None
) -> dict[int, float]:
    pages = [page for turn in turns for page in turn]
    lengths = [sum(page.values()) for page in pages]
    filled = [length for length in lengths if length]
    average = average if average is not None else sum(filled) / max(1, len(filled))
    scores = {}
    for ordinal, page in enumerate(pages):
        total = sum(
            weight * page[term] * (k1 + 1) / (page[term] + k1 * (1 - b + b * lengths[ordinal] / average))
            for term, weight in idf.items()
            if term in page
        )
        if total > 0:
            scores[ordinal] = total
    return scores


def assert_is_top(found: list[tuple[int, float]], expected: Mapping[int, float], limit: int) -> None:
    """``found`` is the top of ``expected``; scores that differ by rounding only may swap."""
    order = sorted(expected, key=lambda number: (-expected[number], -number))
    assert len(found) == min(limit, len(expected))
    assert len({number for number, _ in found}) == len(found)
    for (number, score), rank in zip(found, order, strict=False):
        assert score == pytest.approx(expected[number], abs=1e-9)
        assert score == pytest.approx(expected[rank], abs=1e-9)
    assert found == sorted(found, key=lambda entry: (-entry[1], -entry[0]))


@settings(max_examples=300, deadline=None)
@given(
    turns=_TURNS,
    weights=_WEIGHTS,
    any_weights=_WEIGHTS,
    user_weight=_FACTORS,
    assistant_weight=_FACTORS,
    recency_weight=st.sampled_from([0.0, 0.2, 3.0]),
    limit=st.integers(0, 25),
    allowed=st.none() | st.sets(st.integers(-2, 70)),
)
def test_blocks_are_those_of_brute_force(
    turns: list[Turn],
    weights: dict[str, float],
    any_weights: dict[str, float],
    user_weight: float,
    assistant_weight: float,
    recency_weight: float,
    limit: int,
    allowed: set[int] | None,
) -> None:
    found = top_blocks(
        indexed(turns),
        weights,
        user_weight=user_weight,
        assistant_weight=assistant_weight,
        any_weights=any_weights,
        recency_weight=recency_weight,
        limit=limit,
        allowed=allowed,
    )
    expected = brute_force_blocks(turns, weights, user_weight, assistant_weight, any_weights, recency_weight, allowed)
    assert_is_top(found, expected, limit)
    if not recency_weight:
        best = sorted(expected.items(), key=lambda entry: (-entry[1], -entry[0]))
        assert found == best[:limit]


@settings(max_examples=300, deadline=None)
@given(
    turns=_TURNS,
    idf=_WEIGHTS,
    k1=st.sampled_from([0.0, 0.9, 2.0]),
    b=st.sampled_from([0.0, 0.4, 1.0]),
    limit=st.integers(0, 25),
    average=st.none() | st.sampled_from([1.0, 40.0]),
)
def test_pages_are_those_of_brute_force(
    turns: list[Turn], idf: dict[str, float], k1: float, b: float, limit: int, average: float | None
) -> None:
    found = top_pages_bm25(indexed(turns), idf, k1=k1, b=b, limit=limit, average_length=average)
    assert_is_top(found, brute_force_bm25(turns, idf, k1, b, average), limit)


def zipf_turns(count: int, seed: int) -> list[Turn]:
    """Turns whose terms fall from every second page to once in all, with long pages among short ones."""
    random = Random(seed)

    def page() -> dict[str, int]:
        terms: dict[str, int] = {}
        for _ in range(random.choice([0, 2, 4, 8, 30])):
            term = f"t{int(random.paretovariate(0.6))}"
            terms[term] = terms.get(term, 0) + 1
        return terms

    return [(page(), page()) for _ in range(count)]


@pytest.mark.parametrize("term_count", [1, 5, 14])
@pytest.mark.parametrize("turn_count", [40, 1_500, 6_000])
def test_rare_and_frequent_terms_meet_at_every_size(turn_count: int, term_count: int) -> None:
    turns = zipf_turns(turn_count, turn_count + term_count)
    index = indexed(turns)
    random = Random(term_count)
    for _ in range(6):
        weights = {f"t{int(random.paretovariate(0.4))}": random.choice([1.0, 3.3, 0.2]) for _ in range(term_count)}
        blocks = top_blocks(
            index, weights, user_weight=1.5, assistant_weight=0.7, any_weights=weights, recency_weight=0.2
        )
        assert_is_top(blocks, brute_force_blocks(turns, weights, 1.5, 0.7, weights, 0.2, None), 20)
        pages = top_pages_bm25(index, weights)
        assert_is_top(pages, brute_force_bm25(turns, weights, 0.9, 0.4, None), 20)


def test_every_split_between_adding_up_and_searching_gives_the_same_floats() -> None:
    index = indexed(zipf_turns(2_000, 5))
    weights = {"t1": 0.4, "t2": 0.7, "t3": 1.1, "t5": 1.3, "t9": 1.9, "t40": 3.1, "t300": 5.5}
    rankings = []
    for searched in range(8):
        search = SearchParams(rare_shift=16, max_searched_terms=searched)
        rankings.append(
            (
                top_blocks(
                    index, weights, user_weight=1.5, assistant_weight=0.7, recency_weight=0.2, limit=50, search=search
                ),
                top_pages_bm25(index, weights, limit=50, search=search),
            )
        )
    assert all(other == rankings[0] for other in rankings)


def test_a_ranking_between_every_two_turns_sees_them_all() -> None:
    turns = zipf_turns(400, 9)
    index = PostingIndex()
    weights = {"t1": 1.0, "t2": 1.0, "t3": 2.0, "t17": 4.0}
    for turn_id, (user, assistant) in enumerate(turns):
        index.add_page(2 * turn_id, user)
        so_far = [*turns[:turn_id], (user, {})]
        found = top_blocks(index, weights, user_weight=1.5, assistant_weight=0.7, recency_weight=0.2)
        assert_is_top(found, brute_force_blocks(so_far, weights, 1.5, 0.7, {}, 0.2, None), 20)
        index.add_page(2 * turn_id + 1, assistant)
        pages = top_pages_bm25(index, weights)
        assert_is_top(pages, brute_force_bm25(turns[: turn_id + 1], weights, 0.9, 0.4, None), 20)
