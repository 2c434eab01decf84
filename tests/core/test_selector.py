"""Choosing blocks: gain by weight and cost, where it stops, what a budget leaves out."""

from __future__ import annotations

import pytest

from context_gatekeeper.core.selector import ALPHA, COVERAGE_TARGET, Candidate, Selection, SelectParams, select_blocks


def block(turn_id: int, anchors: str, cost: int = 10, relevance: float = 1.0) -> Candidate:
    return Candidate(turn_id, frozenset(anchors.split()), cost, relevance)


def chosen_turns(selection: Selection) -> list[int]:
    return [one.turn_id for one in selection.chosen]


def test_the_documented_exponent_and_target_are_fixed() -> None:
    assert (ALPHA, COVERAGE_TARGET) == (0.8, 0.85)


def test_no_candidates_choose_nothing() -> None:
    assert select_blocks([], {"redis": 1.0}, 100) == Selection((), 0.0, 0, (), "nothing adds")


def test_a_query_without_anchors_chooses_nothing() -> None:
    assert select_blocks([block(0, "")], {}, 100) == Selection((), 0.0, 0, (), "nothing adds")


def test_a_block_without_query_anchors_is_not_chosen() -> None:
    selection = select_blocks([block(0, ""), block(1, "redis")], {"redis": 1.0}, 100)
    assert chosen_turns(selection) == [1]


def test_a_zero_budget_leaves_every_block_out_and_says_so() -> None:
    candidates = [block(4, "redis"), block(2, "lock")]
    assert select_blocks(candidates, {"redis": 1.0, "lock": 1.0}, 0) == Selection((), 0.0, 0, (2, 4), "budget")


@pytest.mark.parametrize(("budget", "turns"), [(10, [0]), (9, [])])
def test_a_block_fits_a_budget_of_just_its_cost(budget: int, turns: list[int]) -> None:
    assert chosen_turns(select_blocks([block(0, "redis")], {"redis": 1.0}, budget)) == turns


def test_a_block_too_large_gives_way_to_a_smaller_one() -> None:
    candidates = [block(0, "redis lock", cost=50), block(1, "redis", cost=10)]
    selection = select_blocks(candidates, {"redis": 1.0, "lock": 1.0}, 20)
    assert chosen_turns(selection) == [1]
    assert (selection.coverage, selection.spent_tokens) == (0.5, 10)
    assert (selection.over_budget, selection.stopped_by) == ((0,), "budget")


@pytest.mark.parametrize("order", [1, -1])
def test_ties_go_to_the_newer_block_whatever_the_order(order: int) -> None:
    candidates = [block(3, "redis"), block(7, "redis"), block(5, "redis")][::order]
    assert chosen_turns(select_blocks(candidates, {"redis": 1.0}, 100)) == [7]


def test_gain_is_new_weight_over_cost_to_the_power_of_four_fifths() -> None:
    selection = select_blocks([block(0, "redis", cost=32)], {"redis": 8.0}, 100)
    assert selection.chosen[0].gain == pytest.approx(8.0 / 16.0), "32 ** 0.8 = 2 ** 4"


@pytest.mark.parametrize(("weight_of_the_long", "first"), [(17.0, 0), (15.0, 1)])
def test_a_long_block_must_earn_its_cost(weight_of_the_long: float, first: int) -> None:
    # The long one gains 17 / 16 or 15 / 16, the short one 1 / 1.
    candidates = [block(0, "long", cost=32), block(1, "short", cost=1)]
    weights = {"long": weight_of_the_long, "short": 1.0, "elsewhere": 100.0}
    assert chosen_turns(select_blocks(candidates, weights, 100)) == [first, 1 - first]


@pytest.mark.parametrize(
    ("main", "rest", "turns", "stopped_by"),
    [(85.0, 15.0, [1], "coverage"), (84.0, 16.0, [1, 0], "coverage"), (86.0, 14.0, [1], "coverage")],
)
def test_selection_stops_at_just_85_percent(main: float, rest: float, turns: list[int], stopped_by: str) -> None:
    selection = select_blocks([block(0, "rest"), block(1, "main")], {"main": main, "rest": rest}, 100)
    assert chosen_turns(selection) == turns
    assert selection.stopped_by == stopped_by


def test_it_stops_when_nothing_adds_below_the_target() -> None:
    candidates = [block(0, "redis"), block(1, "redis")]
    selection = select_blocks(candidates, {"redis": 1.0, "never said": 3.0}, 100)
    assert chosen_turns(selection) == [1]
    assert (selection.coverage, selection.stopped_by) == (0.25, "nothing adds")


def test_only_anchors_that_are_still_open_count() -> None:
    # 2 covers a and b (gain 2 / c); of the others only c is new: 0 and 1 tie, the newer one wins.
    candidates = [block(0, "a c"), block(1, "b c"), block(2, "a b")]
    selection = select_blocks(candidates, {"a": 1.0, "b": 1.0, "c": 1.0}, 100)
    assert [(one.turn_id, one.new_anchors) for one in selection.chosen] == [(2, ("a", "b")), (1, ("c",))]
    assert (selection.coverage, selection.spent_tokens) == (1.0, 20)


def test_what_other_blocks_cover_is_not_paid_again() -> None:
    candidates = [block(0, "redis lock", cost=1), block(1, "redis", cost=1)]
    selection = select_blocks(candidates, {"redis": 5.0, "lock": 1.0}, 100, covered={"redis": 1})
    assert [(one.turn_id, one.new_anchors, one.gain) for one in selection.chosen] == [(0, ("lock",), 1.0)]
    assert selection.coverage == 1.0


def test_a_query_that_is_covered_already_needs_no_block() -> None:
    selection = select_blocks([block(0, "redis")], {"redis": 1.0}, 100, covered={"redis": 2})
    assert (selection.chosen, selection.coverage, selection.stopped_by) == ((), 1.0, "coverage")


def test_the_callers_counts_are_left_as_they_were() -> None:
    covered: dict[str, int] = {}
    select_blocks([block(0, "redis")], {"redis": 1.0}, 100, covered=covered)
    assert covered == {}


@pytest.mark.parametrize(("redundancy", "turns"), [(1, [2]), (2, [2, 1]), (3, [2, 1, 0]), (4, [2, 1, 0])])
def test_redundancy_pays_an_anchor_so_often(redundancy: int, turns: list[int]) -> None:
    candidates = [block(turn_id, "redis", cost=1) for turn_id in range(3)]
    selection = select_blocks(candidates, {"redis": 2.0}, 100, params=SelectParams(redundancy=redundancy))
    assert chosen_turns(selection) == turns
    assert {one.gain for one in selection.chosen} == {2.0}, "each time for the full weight"
    assert [one.new_anchors for one in selection.chosen] == [("redis",), (), (), ()][: len(turns)]


def test_repeats_let_a_single_anchor_be_paid_more_often() -> None:
    candidates = [block(turn_id, text) for turn_id, text in enumerate(["redis", "redis", "lock", "lock"])]
    selection = select_blocks(candidates, {"redis": 1.0, "lock": 1.0}, 100, repeats={"redis": 2})
    assert chosen_turns(selection) == [3, 1, 0]


def test_with_repeats_the_budget_still_binds() -> None:
    candidates = [block(turn_id, "redis", cost=40) for turn_id in range(4)]
    selection = select_blocks(candidates, {"redis": 1.0}, 100, repeats={"redis": 4})
    assert chosen_turns(selection) == [3, 2]
    assert (selection.spent_tokens, selection.over_budget) == (80, (0, 1))


@pytest.mark.parametrize(("uses_score", "turn", "gain"), [(False, 1, 2.0), (True, 0, 6.0)])
def test_relevance_counts_only_in_profiles_that_use_it(uses_score: bool, turn: int, gain: float) -> None:
    candidates = [block(0, "redis", cost=1, relevance=3.0), block(1, "redis", cost=1, relevance=0.5)]
    selection = select_blocks(candidates, {"redis": 2.0}, 100, params=SelectParams(uses_score=uses_score))
    assert [(one.turn_id, one.gain) for one in selection.chosen] == [(turn, gain)]


@pytest.mark.parametrize(
    ("reachable_only", "turns", "coverage", "stopped_by"),
    [(False, [1, 0], 0.5, "nothing adds"), (True, [1], 0.45, "coverage")],
)
def test_anchors_that_nobody_holds_count_unless_the_profile_leaves_them_out(
    reachable_only: bool, turns: list[int], coverage: float, stopped_by: str
) -> None:
    weights = {"redis": 90.0, "lock": 10.0, "never said": 100.0}
    params = SelectParams(reachable_only=reachable_only)
    selection = select_blocks([block(0, "lock"), block(1, "redis")], weights, 100, params=params)
    assert chosen_turns(selection) == turns
    assert (selection.coverage, selection.stopped_by) == (coverage, stopped_by)


def test_fill_adds_by_falling_relevance_up_to_its_share_of_the_budget() -> None:
    candidates = [
        block(1, "", cost=25, relevance=0.9),
        block(2, "", cost=10, relevance=0.9),
        block(3, "", cost=20, relevance=0.5),
        block(4, "", cost=1, relevance=0.1),
        block(5, "redis", cost=20, relevance=0.2),
    ]
    selection = select_blocks(candidates, {"redis": 1.0}, 100, params=SelectParams(fill_share=0.5))
    # Limit 50: 20 for the cover, 10 for the newer of two equals, no room for 25, then 20; full.
    assert chosen_turns(selection) == [5, 2, 3]
    assert [(one.new_anchors, one.gain) for one in selection.chosen[1:]] == [((), 0.0), ((), 0.0)]
    assert selection.spent_tokens == 50


def test_without_fill_a_block_that_covers_nothing_stays_out() -> None:
    selection = select_blocks([block(0, "", relevance=9.0), block(1, "redis")], {"redis": 1.0}, 100)
    assert chosen_turns(selection) == [1]


def test_fill_never_takes_back_what_coverage_spent_beyond_its_share() -> None:
    candidates = [block(0, "redis", cost=80), block(1, "", cost=1)]
    selection = select_blocks(candidates, {"redis": 1.0}, 100, params=SelectParams(fill_share=0.5))
    assert chosen_turns(selection) == [0]
