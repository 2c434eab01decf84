"""Minimum coverage selection under a token budget (DESIGN.md 4.5, SPEC.md 3.4).

Each step takes the block with the largest ``gain = new anchor weight / cost ** alpha``
until 85 % of the query's anchor weight is covered, nothing adds, or the budget is spent.
Costs are those of the pruned blocks and are passed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["ALPHA", "COVERAGE_TARGET", "Candidate", "Chosen", "SelectParams", "Selection", "select_blocks"]

ALPHA = 0.8
"""Exponent of the cost; fixed by DESIGN.md section 6."""
COVERAGE_TARGET = 0.85
"""Share of the query's anchor weight at which selection stops (eta)."""


@dataclass(frozen=True, slots=True)
class SelectParams:
    """Selection numbers of a profile; the defaults are the documented ones."""

    redundancy: int = 1
    """How many blocks may be paid for the same anchor, each time for the full weight."""
    uses_score: bool = False
    """Multiply the gain by the block's score."""
    reachable_only: bool = False
    """Measure coverage over anchors that some candidate holds, not over all of the query's."""
    fill_share: float = 0.0
    """After coverage, fill up to this share of the budget by falling score; 0 = do not."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A block that may be chosen."""

    turn_id: int
    anchors: frozenset[str]
    """Query anchors that the whole block holds."""
    cost_tokens: int
    """Tokens of the pruned block, >= 1."""
    relevance: float
    """Its documented score."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A block that was chosen, and for what."""

    turn_id: int
    new_anchors: tuple[str, ...]
    """Anchors this block covered first, sorted; empty for fill."""
    gain: float


@dataclass(frozen=True, slots=True)
class Selection:
    """Result of `select_blocks`."""

    chosen: tuple[Chosen, ...]
    """In the order of choice."""
    coverage: float
    """Covered share of the query's whole anchor weight, in [0, 1]."""
    spent_tokens: int
    over_budget: tuple[int, ...]
    """Blocks that would have added something but did not fit, ascending."""
    stopped_by: str
    """``coverage``, ``nothing adds`` or ``budget``."""


def select_blocks(
    candidates: Sequence[Candidate],
    anchor_weights: Mapping[str, float],
    budget_tokens: int,
    *,
    covered: Mapping[str, int] | None = None,
    repeats: Mapping[str, int] | None = None,
    params: SelectParams = SelectParams(),
) -> Selection:
    """Choose blocks greedily.

    Args:
        candidates: at most a few dozen, any order.
        anchor_weights: weight of each query anchor, > 0.
        budget_tokens: hard bound on the sum of costs, >= 0.
        covered: times each anchor was already covered by blocks that are in anyway.
        repeats: anchors that may be paid for more often than the profile's redundancy, with how often.
        params: the profile's numbers.

    Ties go to the newer block. O(steps * candidates * anchors).
    """
    times = dict(covered or {})
    most = dict(repeats or {})
    left = {candidate.turn_id: candidate for candidate in candidates}
    spent = 0
    chosen: list[Chosen] = []
    over: set[int] = set()
    reachable = set(times).union(*(candidate.anchors for candidate in candidates))
    relevant = {t: w for t, w in anchor_weights.items() if not params.reachable_only or t in reachable}
    while params.redundancy > 1 or most or _covered_share(relevant, times) < COVERAGE_TARGET:
        best: tuple[float, int] | None = None
        for candidate in left.values():
            wanted = (t for t in candidate.anchors if times.get(t, 0) < most.get(t, params.redundancy))
            new = sum(anchor_weights[term] for term in wanted)
            if new > 0.0 and spent + candidate.cost_tokens > budget_tokens:
                over.add(candidate.turn_id)
            elif new > 0.0:
                gain = new / candidate.cost_tokens**ALPHA * (candidate.relevance if params.uses_score else 1.0)
                best = max(best or (0.0, -1), (gain, candidate.turn_id))
        if best is None:
            break
        taken = left.pop(best[1])
        spent += taken.cost_tokens
        chosen.append(Chosen(taken.turn_id, tuple(sorted(t for t in taken.anchors if not times.get(t))), best[0]))
        for term in taken.anchors:
            times[term] = times.get(term, 0) + 1
    if params.fill_share > 0.0:
        spent = _fill(left, chosen, spent, int(params.fill_share * budget_tokens))
    too_large = tuple(sorted(over - {one.turn_id for one in chosen}))
    is_covered = _covered_share(relevant, times) >= COVERAGE_TARGET
    stopped_by = "coverage" if is_covered else "budget" if too_large else "nothing adds"
    return Selection(tuple(chosen), _covered_share(anchor_weights, times), spent, too_large, stopped_by)


def _covered_share(anchor_weights: Mapping[str, float], times: Mapping[str, int]) -> float:
    """Share of the weight whose anchors are covered at least once; 0 for no weight."""
    total = sum(anchor_weights.values())
    return sum(weight for term, weight in anchor_weights.items() if times.get(term)) / total if total else 0.0


def _fill(left: Mapping[int, Candidate], chosen: list[Chosen], spent: int, limit_tokens: int) -> int:
    """Add further blocks by falling score while they fit into ``limit_tokens``; returns tokens spent."""
    for candidate in sorted(left.values(), key=lambda one: (-one.relevance, -one.turn_id)):
        if spent + candidate.cost_tokens <= limit_tokens:
            spent += candidate.cost_tokens
            chosen.append(Chosen(candidate.turn_id, (), 0.0))
    return spent
