"""The documented score of a block, and what pages share with their neighbours."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.sparse import (
    PERSONS_PARAMS,
    SCORE_PARAMS,
    RecallParams,
    lex,
    passage_shares,
    score_blocks,
    smooth_pages,
)
from context_gatekeeper.stores.postings import PostingIndex

WEIGHTS = {"redis": 3.0, "lock": 1.0}


def indexed(*turns: tuple[str, str]) -> PostingIndex:
    index = PostingIndex()
    for turn_id, (user, assistant) in enumerate(turns):
        index.add_page(2 * turn_id, dict.fromkeys(user.split(), 1))
        index.add_page(2 * turn_id + 1, dict.fromkeys(assistant.split(), 1))
    return index


SHARING = RecallParams(next_share=0.4, next_share_of_question=0.8, second_next_share=0.1, previous_share=0.15)


def smoothed(
    scores: dict[int, float], *, questions: Collection[int] = (), pages: int = 100, params: RecallParams = SHARING
) -> dict[int, float]:
    return smooth_pages(scores, lambda ordinal: ordinal in questions, lambda ordinal: 0 <= ordinal < pages, params)


def test_the_documented_weights_are_fixed() -> None:
    weights = (
        SCORE_PARAMS.user_weight, SCORE_PARAMS.assistant_weight, SCORE_PARAMS.exact_weight, SCORE_PARAMS.recency_weight
    )  # fmt: skip
    assert weights == (1.5, 0.7, 1.0, 0.2)
    assert SCORE_PARAMS.candidate_limit == 20


@pytest.mark.parametrize(
    ("terms", "share"),
    [((), 0.0), (("redis",), 0.75), (("lock", "other"), 0.25), (("redis", "lock"), 1.0), (("other",), 0.0)],
)
def test_lex_is_the_share_of_the_weight_that_a_text_holds(terms: tuple[str, ...], share: float) -> None:
    assert lex(terms, WEIGHTS) == share


@pytest.mark.parametrize("weights", [{}, {"redis": 0.0}])
def test_lex_of_a_query_without_weight_is_zero(weights: dict[str, float]) -> None:
    assert lex(["redis"], weights) == 0.0


@pytest.mark.parametrize(
    ("user", "assistant", "documented"),
    [
        ("redis", "", 1.5 * 0.75 + 1.0 + 0.2),
        ("", "redis", 0.7 * 0.75 + 1.0 + 0.2),
        ("redis", "redis lock", 1.5 * 0.75 + 0.7 + 1.0 + 0.2),
        ("lock", "", 1.5 * 0.25 + 0.2),
    ],
)
def test_a_blocks_score_is_the_documented_sum(user: str, assistant: str, documented: float) -> None:
    scored = score_blocks(indexed((user, assistant)), WEIGHTS, ["redis"], limit=20)
    assert scored == [(0, pytest.approx(documented))]


def test_exact_is_the_share_of_the_exact_anchors_among_the_querys() -> None:
    # "v2" is no anchor of the query, so that two exact ones remain and the block holds one of them.
    scored = score_blocks(indexed(("lock", "")), WEIGHTS, ["redis", "lock", "v2"], limit=20)
    assert scored == [(0, pytest.approx(1.5 * 0.25 + 0.5 + 0.2))]


def test_recency_falls_with_the_age_of_the_block() -> None:
    index = indexed(("lock", ""), ("other", ""), ("other", ""), ("lock", ""))
    scored = score_blocks(index, WEIGHTS, (), limit=20)
    assert scored == [(3, pytest.approx(0.375 + 0.2)), (0, pytest.approx(0.375 + 0.2 / 4))]


def test_recency_alone_makes_no_candidate() -> None:
    index = indexed(("lock", ""), ("weather", "sunny"))
    assert [turn_id for turn_id, _ in score_blocks(index, WEIGHTS, (), limit=20)] == [0]


def test_the_limit_keeps_the_best_blocks() -> None:
    index = indexed(("redis lock", ""), ("lock", ""), ("redis", ""))
    assert [turn_id for turn_id, _ in score_blocks(index, WEIGHTS, (), limit=2)] == [0, 2]


def test_only_allowed_blocks_are_scored() -> None:
    index = indexed(("redis lock", ""), ("lock", ""), ("redis", ""))
    assert [turn_id for turn_id, _ in score_blocks(index, WEIGHTS, (), limit=9, allowed={1, 2})] == [2, 1]
    assert score_blocks(index, WEIGHTS, (), limit=9, allowed=set()) == []


@pytest.mark.parametrize("weights", [{}, {"redis": 0.0}])
def test_a_query_without_weight_finds_no_block(weights: dict[str, float]) -> None:
    assert score_blocks(indexed(("redis", "")), weights, ["redis"], limit=20) == []


def test_an_empty_history_finds_no_block() -> None:
    assert score_blocks(PostingIndex(), WEIGHTS, ["redis"], limit=20) == []


def test_a_page_gives_to_the_two_after_it_and_to_the_one_before() -> None:
    assert smoothed({4: 2.0}) == pytest.approx({3: 0.3, 4: 2.0, 5: 0.8, 6: 0.2})


def test_a_question_gives_more_to_what_comes_next_and_to_nothing_else() -> None:
    assert smoothed({4: 2.0}, questions={4}) == pytest.approx({3: 0.3, 4: 2.0, 5: 1.6, 6: 0.2})
    assert smoothed({4: 2.0}, questions={3, 5}) == smoothed({4: 2.0})


def test_neighbours_give_to_each_other_their_own_scores_only() -> None:
    # 4 gets 0.15 of 5; 5 gets 0.4 of 4; nothing that was given is given on.
    assert smoothed({4: 1.0, 5: 2.0}) == pytest.approx({3: 0.15, 4: 1.3, 5: 2.4, 6: 0.9, 7: 0.2})


def test_a_page_that_does_not_exist_gets_nothing() -> None:
    assert smoothed({0: 1.0}, pages=1) == {0: 1.0}


def test_a_share_of_nothing_makes_no_page_found() -> None:
    nothing = RecallParams(next_share=0.0, next_share_of_question=0.0, second_next_share=0.0, previous_share=0.0)
    assert smoothed({4: 1.0}, questions={4}, params=nothing) == {4: 1.0}


def test_no_scores_have_nothing_to_share() -> None:
    assert smoothed({}, questions={0}) == {}


def test_the_callers_scores_are_left_as_they_were() -> None:
    scores = {4: 1.0}
    smoothed(scores)
    assert scores == {4: 1.0}


def test_a_passage_holds_what_stands_within_reach_before_and_after() -> None:
    index = indexed(("redis", "other"), ("other", "lock"), ("other", "other"))
    shares = passage_shares(range(6), WEIGHTS, index, 2)
    assert shares == pytest.approx({0: 0.75, 1: 1.0, 2: 1.0, 3: 0.25, 4: 0.25, 5: 0.25})


def test_a_passage_without_reach_is_the_page_itself() -> None:
    index = indexed(("redis lock", "lock"), ("", "redis"))
    assert passage_shares([0, 1, 2, 3], WEIGHTS, index, 0) == {0: 1.0, 1: 0.25, 2: 0.0, 3: 0.75}


def test_a_term_that_stands_often_in_a_passage_counts_once() -> None:
    index = indexed(("lock", "lock"), ("lock", "lock"))
    assert set(passage_shares(range(4), WEIGHTS, index, 3).values()) == {0.25}


@given(
    st.lists(st.sets(st.sampled_from(["redis", "lock", "a", "b"])), min_size=1, max_size=40),
    st.sets(st.integers(0, 39)),
    st.integers(0, 4),
)
def test_passages_of_few_and_of_many_pages_are_what_they_hold(
    texts: list[set[str]], asked: set[int], reach: int
) -> None:
    index = PostingIndex()
    for ordinal, text in enumerate(texts):
        index.add_page(ordinal, dict.fromkeys(text, 1))
    for pages in (asked, range(len(texts))):
        shares = passage_shares(pages, WEIGHTS, index, reach)
        assert set(shares) == set(pages)
        for page, share in shares.items():
            passage = set().union(*texts[max(0, page - reach) : page + reach + 1])
            assert share == pytest.approx(lex(passage, WEIGHTS))


def test_a_query_without_weight_has_no_passages() -> None:
    assert passage_shares([0], {}, indexed(("redis", "")), 2) == {0: 0.0}


def test_between_persons_both_sides_count_alike_and_age_does_not() -> None:
    assert (PERSONS_PARAMS.assistant_share, PERSONS_PARAMS.recency_share, PERSONS_PARAMS.opening_share) == (1, 0, 0)
    assert PERSONS_PARAMS.background_power == 0.0
    assert PERSONS_PARAMS.next_share_of_question > PERSONS_PARAMS.next_share > PERSONS_PARAMS.previous_share
