"""What the rankings promise, by small examples."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from context_gatekeeper.core.ranking import SearchParams, top_blocks, top_pages_bm25
from context_gatekeeper.stores.postings import PostingIndex

ADD_UP_ALL = SearchParams(max_searched_terms=0)
SEARCH_ALL = SearchParams(rare_shift=64)
BOTH_WAYS = pytest.mark.parametrize("search", [ADD_UP_ALL, SEARCH_ALL], ids=["added up", "searched"])


def index_of(*pages: Mapping[str, int]) -> PostingIndex:
    index = PostingIndex()
    for ordinal, terms in enumerate(pages):
        index.add_page(ordinal, terms)
    return index


@BOTH_WAYS
def test_a_block_gains_by_side_and_once_by_holding_the_term_at_all(search: SearchParams) -> None:
    index = index_of({"redis": 1}, {}, {}, {"redis": 1}, {"redis": 1}, {"redis": 1}, {"lock": 1}, {})
    found = top_blocks(
        index, {"redis": 2.0}, user_weight=1.5, assistant_weight=0.7, any_weights={"redis": 10.0}, search=search
    )
    assert [block for block, _ in found] == [2, 0, 1]
    assert [total for _, total in found] == pytest.approx([14.4, 13.0, 11.4])


@BOTH_WAYS
def test_a_term_may_gain_only_by_presence(search: SearchParams) -> None:
    index = index_of({"redis": 1}, {}, {"lock": 1}, {})
    found = top_blocks(
        index, {"redis": 1.0}, user_weight=1.0, assistant_weight=1.0, any_weights={"lock": 3.0}, search=search
    )
    assert found == [(1, 3.0), (0, 1.0)]


@BOTH_WAYS
def test_recency_lifts_newer_blocks_but_makes_no_candidate(search: SearchParams) -> None:
    index = index_of({"redis": 1}, {}, {"redis": 1}, {}, {"lock": 1}, {}, {}, {})
    found = top_blocks(index, {"redis": 1.0}, user_weight=1.0, assistant_weight=1.0, recency_weight=0.2, search=search)
    assert [block for block, _ in found] == [1, 0]
    assert [total for _, total in found] == pytest.approx([1.1, 1.05])


@BOTH_WAYS
def test_equal_scores_put_the_newer_first_and_cut_the_older(search: SearchParams) -> None:
    index = index_of(*[{"redis": 1}, {}] * 30)
    found = top_blocks(index, {"redis": 1.0}, user_weight=1.0, assistant_weight=1.0, limit=4, search=search)
    assert [block for block, _ in found] == [29, 28, 27, 26]
    pages = top_pages_bm25(index, {"redis": 1.0}, limit=3, search=search)
    assert [page for page, _ in pages] == [58, 56, 54]


@BOTH_WAYS
def test_a_weight_of_zero_makes_no_candidate(search: SearchParams) -> None:
    index = index_of({"redis": 1}, {"lock": 1})
    assert top_blocks(index, {"redis": 0.0}, user_weight=1.0, assistant_weight=1.0, search=search) == []
    assert top_blocks(index, {"lock": 1.0}, user_weight=1.0, assistant_weight=0.0, search=search) == []
    assert top_pages_bm25(index, {"redis": 0.0, "lock": -1.0}, search=search) == []


@BOTH_WAYS
def test_only_allowed_blocks_are_returned(search: SearchParams) -> None:
    index = index_of(*[{"redis": 1}, {}] * 6)
    found = top_blocks(
        index, {"redis": 1.0}, user_weight=1.0, assistant_weight=1.0, allowed=[-1, 1, 4, 6, 99], search=search
    )
    assert [block for block, _ in found] == [4, 1]
    assert top_blocks(index, {"redis": 1.0}, user_weight=1.0, assistant_weight=1.0, allowed=(), search=search) == []


def test_a_query_without_known_terms_finds_nothing() -> None:
    empty = PostingIndex()
    assert top_blocks(empty, {"redis": 1.0}, user_weight=1.0, assistant_weight=1.0) == []
    assert top_pages_bm25(empty, {"redis": 1.0}) == []
    index = index_of({"redis": 1})
    assert top_blocks(index, {}, user_weight=1.0, assistant_weight=1.0) == []
    assert top_pages_bm25(index, {"lock": 1.0}) == []


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_finds_nothing(limit: int) -> None:
    index = index_of({"redis": 1})
    assert top_blocks(index, {"redis": 1.0}, user_weight=1.0, assistant_weight=1.0, limit=limit) == []
    assert top_pages_bm25(index, {"redis": 1.0}, limit=limit) == []


@BOTH_WAYS
def test_bm25_is_the_published_formula(search: SearchParams) -> None:
    index = index_of({"redis": 3, "cache": 1}, {"redis": 1, "other": 7})
    found = top_pages_bm25(index, {"redis": 2.0, "cache": 5.0}, k1=1.2, b=0.75, average_length=6.0, search=search)
    first = 2.0 * 3 * 2.2 / (3 + 1.2 * (0.25 + 0.75 * 4 / 6)) + 5.0 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 4 / 6))
    second = 2.0 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 8 / 6))
    assert [page for page, _ in found] == [0, 1]
    assert [total for _, total in found] == pytest.approx([first, second], abs=1e-12)


@BOTH_WAYS
def test_bm25_prefers_short_pages_and_repeated_terms(search: SearchParams) -> None:
    index = index_of({"redis": 1, "long": 20}, {"redis": 1}, {"redis": 4, "long": 17}, {"long": 3})
    assert [page for page, _ in top_pages_bm25(index, {"redis": 1.0}, search=search)] == [2, 1, 0]


@BOTH_WAYS
def test_the_average_length_leaves_empty_pages_out(search: SearchParams) -> None:
    index = index_of({"redis": 1, "lock": 1}, {}, {"redis": 1}, {})
    without_empty = top_pages_bm25(index, {"redis": 1.0}, average_length=1.5, search=search)
    assert top_pages_bm25(index, {"redis": 1.0}, search=search) == without_empty


@pytest.mark.parametrize("limit", [3, 100])
def test_a_turn_with_rare_and_frequent_terms_is_returned_once(limit: int) -> None:
    pages: list[dict[str, int]] = [{"common": 1}, {}] * 40
    pages[20] = {"common": 1, "rare": 1}
    index = index_of(*pages)
    mixed = SearchParams(rare_shift=4)
    weights = {"common": 1.0, "rare": 4.0}
    blocks = top_blocks(index, weights, user_weight=1.0, assistant_weight=1.0, limit=limit, search=mixed)
    assert blocks[:2] == [(10, 5.0), (39, 1.0)]
    assert len({block for block, _ in blocks}) == len(blocks) == min(limit, 40)
    found = top_pages_bm25(index, weights, limit=limit, search=mixed)
    assert [page for page, _ in found[:2]] == [20, 78]
    assert len({page for page, _ in found}) == len(found) == min(limit, 40)
