"""Scores of blocks and pages for a query (DESIGN.md 4.4, SPEC.md 3.3).

``score(b, q) = 1.5 lex(u_b, q) + 0.7 lex(a_b, q) + 1.0 exact(b, q) + 0.2 recency(b)`` with
``lex`` = share of the query's anchor weight that the text holds, ``exact`` = share of its
exact-tier anchors (terms, identifiers, versions, numbers, phrases) that the block holds, and
``recency = 1 - age / window``. Every part but the last is a sum over anchors, so that the
ranking touches only matching turns. The ``recall`` profile ranks pages by BM25 instead and
lets neighbours, passages and sittings share what they found (`smooth_pages`, `passage_shares`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from context_gatekeeper.core.page_patterns import PROBE_COST
from context_gatekeeper.core.ranking import top_blocks
from context_gatekeeper.ports import Postings

__all__ = [
    "PERSONS_PARAMS",
    "RECALL_PARAMS",
    "SCORE_PARAMS",
    "RecallParams",
    "ScoreParams",
    "lex",
    "passage_shares",
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
    """Numbers of the ``recall`` ranking; the defaults are those of talk between a user and an assistant.

    How they were chosen: docs/decisions/0006-recall-ranking.md.
    """

    saturation_k1: float = 0.9
    length_b: float = 0.4
    next_share: float = 0.2
    """What a page gives to the page after it. An assistant's answer is long and repeats the question's words."""
    next_share_of_question: float = 0.2
    """The same when a question mark stands in the page: what comes next is the answer."""
    second_next_share: float = 0.0
    """What a page gives to the page after the next."""
    previous_share: float = 0.2
    """What a page gives to the page before it."""
    sitting_share: float = 1.0
    """Weight of the share of the query's mass found in the page's sitting, times the best score."""
    passage_share: float = 0.0
    """Weight of the share of the query's mass found in the pages around, times the best score."""
    passage_reach: int = 2
    """Pages before and after that belong to a page's passage."""
    speaker_share: float = 0.0
    """Bonus for the speaker that the query names, times the best score."""
    speaker_word_share: float = 1.0
    """Weight of a speaker's name as a word: where he is called by it, the other one speaks."""
    repeat_share: float = 0.4
    """A term that the query holds n times weighs ``1 + repeat_share * ln(n)``."""
    other_line_share: float = 0.5
    """Weight of what others say in a query that is a piece of talk itself."""
    background_power: float = 0.5
    """A term's background weight counts to this power beside its IDF."""
    assistant_share: float = 0.5
    """Weight of an assistant's page beside a user's."""
    opening_share: float = 1.0
    """Bonus of the user's page that opens a sitting, part of its own score: it says what the sitting is about."""
    opening_fall: float = 0.5
    """Factor of that bonus from one turn of the sitting to the next."""
    recency_share: float = 2.0
    """Bonus of the newest page, part of its own score."""
    recency_pages: float = 120.0
    """Pages after which that bonus has fallen to 1/e."""
    pool_limit: int = 400
    """Pages ranked before smoothing."""


SCORE_PARAMS = ScoreParams()
RECALL_PARAMS = RecallParams()
PERSONS_PARAMS = RecallParams(
    length_b=0.5,
    next_share=0.4,
    next_share_of_question=0.8,
    second_next_share=0.15,
    previous_share=0.15,
    passage_share=0.8,
    speaker_share=0.8,
    speaker_word_share=0.4,
    background_power=0.0,
    assistant_share=1.0,
    opening_share=0.0,
    recency_share=0.0,
)
"""Talk between persons: both sides carry facts and answer each other, told in everyday words, at any place."""


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
    asks: Callable[[int], bool],
    exists: Callable[[int], bool],
    params: RecallParams = RECALL_PARAMS,
) -> dict[int, float]:
    """Let pages share their scores with their neighbours in time.

    Args:
        scores: ordinal -> own score, > 0.
        asks: ordinal -> whether a question stands in the page.
        exists: ordinal -> whether such a page with text exists.
        params: shares.

    The answer to a question often lacks the question's words; the page before it has them.
    """
    smoothed = dict(scores)
    for ordinal, own in scores.items():
        next_share = params.next_share_of_question if asks(ordinal) else params.next_share
        for neighbour, share in (
            (ordinal + 1, next_share),
            (ordinal + 2, params.second_next_share),
            (ordinal - 1, params.previous_share),
        ):
            if share and exists(neighbour):
                smoothed[neighbour] = smoothed.get(neighbour, 0.0) + share * own
    return smoothed


def passage_shares(
    pages: Iterable[int], term_weights: Mapping[str, float], postings: Postings, reach: int
) -> dict[int, float]:
    """Ordinal -> share of the query's weight that stands within ``reach`` pages of it, in [0, 1].

    Args:
        pages: the ordinals that are asked for.
        term_weights: the query's terms with their weights, > 0.
        postings: the session's index.
        reach: pages before and after, >= 0.

    A term costs its postings or, where it has many, one search for each page.
    """
    total = sum(term_weights.values())
    shares = dict.fromkeys(pages, 0.0)
    for term, weight in term_weights.items():
        for page in _pages_near(postings.ordinals(term), shares, reach):
            shares[page] += weight / total
    return shares


def _pages_near(ordinals: Sequence[int], pages: Collection[int], reach: int) -> Iterable[int]:
    """Those of ``pages`` that have one of the ascending ``ordinals`` within ``reach``, each once."""
    if (2 * reach + 1) * len(ordinals) <= PROBE_COST * len(pages):
        around = range(-reach, reach + 1)
        return {ordinal + step for ordinal in ordinals for step in around if ordinal + step in pages}
    places = ((page, bisect_left(ordinals, max(0, page - reach))) for page in pages)
    return (page for page, place in places if place < len(ordinals) and ordinals[place] <= page + reach)
