from __future__ import annotations

from math import log2

import pytest

from context_gatekeeper.evals.metrics import (
    bootstrap_interval,
    f1_figures,
    hit_at,
    mean,
    mean_or_none,
    ndcg_at,
    recall_at,
    recall_in_tokens,
    rests_on_few,
    share,
)

RANKED = ["a", "b", "c", "d", "e"]


def test_recall_is_the_share_of_gold_in_the_first_places() -> None:
    assert recall_at(RANKED, {"b", "e"}, 1) == 0.0
    assert recall_at(RANKED, {"b", "e"}, 2) == 0.5
    assert recall_at(RANKED, {"b", "e"}, 5) == 1.0


def test_gold_that_is_not_ranked_stays_in_the_denominator() -> None:
    assert recall_at(RANKED, {"a", "nowhere"}, 5) == 0.5


def test_a_hit_needs_one_gold_item_only() -> None:
    assert hit_at(RANKED, {"c", "nowhere"}, 3) == 1.0
    assert hit_at(RANKED, {"c", "nowhere"}, 2) == 0.0


def test_ndcg_of_gold_at_places_two_and_three() -> None:
    found = 1 / log2(3) + 1 / log2(4)
    ideal = 1 / log2(2) + 1 / log2(3)
    assert ndcg_at(RANKED, {"b", "c"}, 10) == pytest.approx(found / ideal)


def test_ndcg_does_not_ask_for_more_gold_than_there_are_places() -> None:
    assert ndcg_at(["a", "b"], {"a", "b", "c"}, 2) == pytest.approx(1.0)


def test_the_ranked_list_is_cut_before_the_item_that_crosses_the_token_limit() -> None:
    tokens = {"a": 100, "b": 150, "c": 1, "d": 300, "e": 10}
    found = recall_in_tokens(RANKED, {"b", "c", "e"}, (100, 250, 500, 2000), tokens.__getitem__)
    # 100 holds a; 250 holds a and b exactly; 500 stops before d (551), so c counts; 2000 holds all
    assert found == {100: 0.0, 250: pytest.approx(1 / 3), 500: pytest.approx(2 / 3), 2000: 1.0}


def test_no_item_behind_the_last_limit_is_counted() -> None:
    counted = []

    def count(item: str) -> int:
        counted.append(item)
        return 60

    assert recall_in_tokens(RANKED, {"b"}, (50, 100), count) == {50: 0.0, 100: 0.0}
    assert counted == ["a", "b"]


def test_f1_of_three_hits_one_false_and_two_missed() -> None:
    precision, recall, f1 = f1_figures(3, 1, 2)
    assert (precision, recall, f1) == (0.75, 0.6, pytest.approx(2 * 0.75 * 0.6 / 1.35))


def test_figures_that_rest_on_nothing_are_zero_or_none() -> None:
    assert f1_figures(0, 0, 0) == (0.0, 0.0, 0.0)
    assert (share(0, 0), mean([]), mean_or_none([])) == (0.0, 0.0, None)


def test_the_interval_holds_the_mean_and_is_the_same_every_time() -> None:
    figures = [1.0] * 70 + [0.0] * 30
    low, high = bootstrap_interval(figures, mean) or (0.0, 0.0)
    assert low < 0.7 < high
    # the binomial half-width is 1.96 * sqrt(.7 * .3 / 100) = .09
    assert 0.05 < 0.7 - low < 0.13
    assert 0.05 < high - 0.7 < 0.13
    assert bootstrap_interval(figures, mean) == [low, high]
    assert bootstrap_interval([], mean) is None


def test_a_narrower_interval_lies_inside_a_wider_one() -> None:
    figures = [1.0] * 70 + [0.0] * 30
    low, high = bootstrap_interval(figures, mean) or (0.0, 0.0)
    inner_low, inner_high = bootstrap_interval(figures, mean, percent=90) or (0.0, 0.0)
    assert low < inner_low < 0.7 < inner_high < high


def test_a_figure_needs_an_interval_below_200_questions_or_30_conversations() -> None:
    assert rests_on_few(199)
    assert not rests_on_few(200)
    assert rests_on_few(5000, 29)
    assert not rests_on_few(5000, 30)
