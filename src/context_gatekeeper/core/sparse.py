"""Scores of blocks and pages for a query (DESIGN.md 4.4, SPEC.md 3.3).

``score(b, q) = 1.5 lex(u_b, q) + 0.7 lex(a_b, q) + 1.0 exact(b, q) + 0.2 recency(b)`` with
``lex`` = share of the query's anchor weight that the text holds, ``exact`` = share of its
exact-tier anchors (terms, identifiers, versions, numbers, phrases) that the block holds, and
``recency = 1 - age / window``. Every part but the last is a sum over anchors, so that the
ranking touches only matching turns. The ``recall`` profile ranks pages by BM25 instead and
lets neighbours and sittings share what they found (`smooth_pages`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from context_gatekeeper.core.ranking import top_blocks
from context_gatekeeper.ports import Postings

__all__ = [
    "RECALL_PARAMS",
    "SCORE_PARAMS",
    "RecallParams",
    "ScoreParams",
    "lex",
    "score_blocks",
    "smooth_pages",
]


@dataclass(frozen=True, slots=True)
class ScoreParams:
    """Weights of the documented formula; they never change."""

    user_weight: float = 1.5
    assistant_weight: float = 0.7
    exact_weight: float = 1.0
    recency_weight: float = 0.2
    candidate_limit: int = 20
    """Blocks that go on to selection."""


@dataclass(frozen=True, slots=True)
class RecallParams:
    """Numbers of the ``recall`` ranking (section 4b of the selection notes)."""

    saturation_k1: float = 0.9
    length_b: float = 0.4
    next_share: float = 0.4
    """What a page gives to the page after it."""
    previous_share: float = 0.15
    """What a page gives to the page before it."""
    sitting_share: float = 0.6
    """Weight of the share of the query's mass found in the page's sitting, times the best score."""
    speaker_share: float = 0.25
    """Bonus for the speaker that the query names, times the best score."""
    background_power: float = 0.5
    """A term's background weight counts to this power beside its IDF; in talk between persons, whose facts are
    told in everyday words, it does not count."""
    assistant_share: float = 0.5
    """Weight of an assistant's page beside a user's; 1 in talk between persons."""
    recency_share: float = 0.5
    """Bonus of the newest page, part of its own score; none in talk between persons."""
    recency_pages: float = 200.0
    """Pages after which that bonus has fallen to 1/e."""
    pool_limit: int = 400
    """Pages ranked before smoothing."""


SCORE_PARAMS = ScoreParams()
RECALL_PARAMS = RecallParams()


def lex(terms: Collection[str], query_weights: Mapping[str, float]) -> float:
    """Share of the query's anchor weight that ``terms`` holds, in [0, 1]; 0 for an empty query."""
    total = sum(query_weights.values())
    if not total:
        return 0.0
    return sum(weight for term, weight in query_weights.items() if term in terms) / total


def score_blocks(
    postings: Postings,
    query_weights: Mapping[str, float],
    exact_terms: Collection[str],
    *,
    limit: int,
    allowed: Collection[int] | None = None,
    params: ScoreParams = SCORE_PARAMS,
) -> list[tuple[int, float]]:
    """The best ``limit`` blocks by the documented formula as (turn id, score), best first.

    Only blocks that share an anchor count (reading 26); ties go to the newer block.
    """
    total = sum(query_weights.values())
    if not total:
        return []
    shares = {term: weight / total for term, weight in query_weights.items()}
    exact = [term for term in exact_terms if term in shares]
    return top_blocks(
        postings,
        shares,
        user_weight=params.user_weight,
        assistant_weight=params.assistant_weight,
        any_weights={term: params.exact_weight / len(exact) for term in exact},
        recency_weight=params.recency_weight,
        limit=limit,
        allowed=allowed,
    )


def smooth_pages(
    scores: Mapping[int, float],
    sitting_shares: Callable[[int], float],
    named_speaker: Callable[[int], bool],
    exists: Callable[[int], bool],
    params: RecallParams = RECALL_PARAMS,
) -> dict[int, float]:
    """Let pages share their scores with their neighbours in time.

    Args:
        scores: ordinal -> own score, > 0.
        sitting_shares: ordinal -> share of the query's weight found in its sitting, in [0, 1].
        named_speaker: ordinal -> whether the query names who speaks there.
        params: shares and bonuses.
        exists: ordinal -> whether such a page with text exists, in the same sitting's order.

    The answer to a question often lacks the question's words; the page before it has them.
    """
    best = max(scores.values(), default=0.0)
    smoothed = dict(scores)
    for ordinal, own in scores.items():
        for neighbour, share in ((ordinal + 1, params.next_share), (ordinal - 1, params.previous_share)):
            if exists(neighbour):
                smoothed[neighbour] = smoothed.get(neighbour, 0.0) + share * own
    for ordinal in smoothed:
        bonus = params.sitting_share * sitting_shares(ordinal)
        if named_speaker(ordinal):
            bonus += params.speaker_share
        smoothed[ordinal] += bonus * best
    return smoothed
