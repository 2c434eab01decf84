"""Greedy coverage beside the exhaustive optimum on small cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import e
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.selector import COVERAGE_TARGET, Candidate, SelectParams, select_blocks

ANCHORS = "abcdefg"
# Whole numbers, so that shares are compared without rounding of sums.
WEIGHTS = st.fixed_dictionaries({anchor: st.integers(1, 20) for anchor in ANCHORS})
HELD = st.frozensets(st.sampled_from(ANCHORS), max_size=4)
CANDIDATES = st.lists(st.tuples(HELD, st.integers(1, 40), st.integers(0, 8)), max_size=7).map(
    lambda rows: [Candidate(turn_id, held, cost, relevance / 4) for turn_id, (held, cost, relevance) in enumerate(rows)]
)
PARAMS = st.builds(
    SelectParams,
    redundancy=st.integers(1, 3),
    uses_score=st.booleans(),
    reachable_only=st.booleans(),
    fill_share=st.sampled_from([0.0, 0.5, 1.0]),
)


def best_coverage(candidates: Sequence[Candidate], weights: Mapping[str, int], budget: int) -> float:
    """The largest share of the weight that any set of blocks within the budget covers."""
    best = 0
    for size in range(len(candidates) + 1):
        for group in combinations(candidates, size):
            if sum(one.cost_tokens for one in group) <= budget:
                held = frozenset[str]().union(*(one.anchors for one in group))
                best = max(best, sum(weights[anchor] for anchor in held))
    return best / sum(weights.values())


@given(CANDIDATES, WEIGHTS, st.integers(0, 150), PARAMS)
def test_greedy_coverage_never_beats_the_optimum(
    candidates: list[Candidate], weights: dict[str, int], budget: int, params: SelectParams
) -> None:
    selection = select_blocks(candidates, weights, budget, params=params)
    assert selection.coverage <= best_coverage(candidates, weights, budget)


@given(CANDIDATES, WEIGHTS, st.integers(1, 40), st.integers(0, 7))
def test_with_equal_costs_greedy_reaches_the_known_share_of_the_optimum(
    candidates: list[Candidate], weights: dict[str, int], cost: int, most_blocks: int
) -> None:
    # Nemhauser, Wolsey and Fisher (1978); stopping at 85 % of everything is above that share of any optimum.
    equal = [Candidate(one.turn_id, one.anchors, cost, 1.0) for one in candidates]
    budget = cost * most_blocks
    selection = select_blocks(equal, weights, budget)
    assert selection.coverage >= (1 - 1 / e) * best_coverage(equal, weights, budget) - 1e-12


@given(CANDIDATES, WEIGHTS)
def test_a_budget_for_everything_reaches_the_target_or_all_that_is_held(
    candidates: list[Candidate], weights: dict[str, int]
) -> None:
    budget = sum(one.cost_tokens for one in candidates)
    selection = select_blocks(candidates, weights, budget)
    assert selection.coverage >= min(COVERAGE_TARGET, best_coverage(candidates, weights, budget))


@given(
    CANDIDATES,
    WEIGHTS,
    st.integers(0, 150),
    PARAMS,
    st.dictionaries(st.sampled_from(ANCHORS), st.integers(1, 5)),
    st.dictionaries(st.sampled_from(ANCHORS), st.integers(0, 3)),
)
def test_what_is_chosen_never_costs_more_than_the_budget(
    candidates: list[Candidate],
    weights: dict[str, int],
    budget: int,
    params: SelectParams,
    repeats: dict[str, int],
    covered: dict[str, int],
) -> None:
    selection = select_blocks(candidates, weights, budget, covered=covered, repeats=repeats, params=params)
    turns = [one.turn_id for one in selection.chosen]
    costs = {one.turn_id: one.cost_tokens for one in candidates}
    assert sum(costs[turn] for turn in turns) == selection.spent_tokens <= budget
    assert len(set(turns)) == len(turns), "no block twice"
    assert not set(turns) & set(selection.over_budget)


@given(CANDIDATES, WEIGHTS, st.integers(0, 150), PARAMS, st.randoms(use_true_random=False))
def test_the_order_of_candidates_makes_no_difference(
    candidates: list[Candidate], weights: dict[str, int], budget: int, params: SelectParams, random: Random
) -> None:
    shuffled = list(candidates)
    random.shuffle(shuffled)
    assert select_blocks(shuffled, weights, budget, params=params) == select_blocks(
        candidates, weights, budget, params=params
    )
