"""Weights of anchors beside their IDF."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.background import ngram_background
from context_gatekeeper.core.weights import (
    WEIGHT_PARAMS,
    base_weight,
    is_content,
    is_exact,
    query_weights,
    term_background,
)


@pytest.mark.parametrize(
    ("term", "background"),
    [
        ("zzqxv", 1.0),
        ("time", 0.15),
        ("6379", 0.4),
        ("3.11", 0.4),
        ("1.2.3", 1.0),
        ("lock_lease", 1.0),
        ("red fox", 1.0),
        ("кэш", 1.0),
        ("カフ", 0.6),
        ("カフェ", 0.6),
        ("데이", 0.6),
        ("什么", 0.15),
    ],
)
def test_the_background_says_how_telling_a_term_is(term: str, background: float) -> None:
    assert term_background(term) == pytest.approx(background)


@pytest.mark.parametrize(
    ("term", "weight"),
    [("zzqxv", 1.0), ("6379", 0.4), ("カフ", 0.3), ("カフェ", 0.21), ("什么", 0.075), ("분산락", 1.0)],
)
def test_the_base_weight_is_background_times_piece(term: str, weight: float) -> None:
    assert base_weight(term) == pytest.approx(weight)


@pytest.mark.parametrize(("term", "piece"), [("缓存", 0.5), ("分布", 0.5), ("分布式", 0.35)])
def test_a_han_ngram_takes_its_background_from_the_chinese_list(term: str, piece: float) -> None:
    assert term_background(term) == ngram_background(term)
    assert base_weight(term) == pytest.approx(ngram_background(term) * piece)


def test_the_documented_numbers_keep_their_values() -> None:
    assert (WEIGHT_PARAMS.unseen_idf, WEIGHT_PARAMS.known_idf_cap, WEIGHT_PARAMS.content_background) == (1.5, 2.4, 0.2)


@pytest.mark.parametrize(
    ("term", "expected"),
    [("zzqxv", True), ("6379", True), ("lock_lease", True), ("缓存", True), ("time", False), ("什么", False)],
)
def test_everyday_terms_carry_no_content(term: str, expected: bool) -> None:
    assert is_content(term) is expected


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("lock", True),
        ("lock_lease", True),
        ("1.2.3", True),
        ("6379", True),
        ("red fox", True),
        ("кэш", True),
        ("데이터", True),
        ("缓存", False),
        ("分布式", False),
        ("カフェ", False),
        ("데이", False),
    ],
)
def test_everything_but_ngrams_is_exact(term: str, expected: bool) -> None:
    assert is_exact(term) is expected


@pytest.mark.parametrize(
    ("term", "frequency", "blocks", "weight"),
    [
        ("缓存", 9, 9, None),
        ("缓存", 6, 9, None),
        ("缓存", 5, 9, log(10 / 6) + 1.0),
        ("缓存", 0, 9, log(10.0) + 1.0),
        ("缓存", 4, 4, 1.0),
        ("缓存", 5, 5, None),
        ("redi", 9, 9, 1.0),
        ("redi", 0, 0, 1.0),
        ("1.2.3", 4, 9, log(2.0) + 1.0),
    ],
)
def test_a_query_term_weighs_its_idf_unless_it_is_an_ngram_under_the_floor(
    term: str, frequency: int, blocks: int, weight: float | None
) -> None:
    weights = query_weights([term], lambda _: frequency, blocks)
    assert weights == ({} if weight is None else {term: pytest.approx(weight)})


def test_each_query_term_is_asked_for_by_its_own_name() -> None:
    frequencies = {"redi": 9, "lock": 0}
    weights = query_weights(frequencies, frequencies.__getitem__, 9)
    assert weights == {"redi": pytest.approx(1.0), "lock": pytest.approx(log(10.0) + 1.0)}


def test_a_query_without_terms_has_no_weights() -> None:
    assert query_weights([], lambda _: 0, 100) == {}


@given(st.text(st.characters(), max_size=100) | st.text(st.sampled_from("锁的カ한aB1.\ud800\0 "), max_size=100))
def test_the_weights_of_any_term_are_in_range(text: str) -> None:
    for term in scan_anchors(text).counts:
        assert 0.15 <= term_background(term) <= 1.0
        assert 0.0 < base_weight(term) <= term_background(term)
