"""recall(): the one ranking of what is outside the window, for every carrier.

Two orders over the same postings: blocks by the documented formula (profile ``strict``)
and pages by BM25 with neighbours, passages, sittings, dates and speakers (profile ``recall``).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from math import exp, log

from context_gatekeeper.core.anchor import inverse_document_frequency
from context_gatekeeper.core.background import simplify_han
from context_gatekeeper.core.profiles import SelectionProfile
from context_gatekeeper.core.query_lines import asked_shares
from context_gatekeeper.core.ranking import top_pages_bm25
from context_gatekeeper.core.sparse import RecallParams, passage_shares, score_blocks, smooth_pages
from context_gatekeeper.core.text import normalise_text
from context_gatekeeper.core.weights import base_weight, is_exact
from context_gatekeeper.engine.context_terms import QUESTION_TERM, date_terms, speaker_term
from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.query import QueryReading
from context_gatekeeper.engine.topic_tracker import TopicTracker
from context_gatekeeper.ports import Postings
from context_gatekeeper.types import RecallHit, Role

__all__ = ["folded_text", "rank_blocks", "rank_fallback", "rank_pages", "recall"]

FALLBACK_TURNS = 2000
"""A query without anchors is looked for in this many newest turns."""


def rank_blocks(
    reading: QueryReading,
    postings: Postings,
    profile: SelectionProfile,
    *,
    limit: int,
    allowed: Collection[int] | None = None,
) -> list[tuple[int, float]]:
    """Blocks by the documented formula: (turn id, score), best first."""
    weights = {term: weight for term, weight in reading.weights.items() if weight > 0.0}
    exact = [term for term in weights if is_exact(term) and term not in reading.wording]
    return score_blocks(postings, weights, exact, limit=limit, allowed=allowed, params=profile.scoring)


def rank_pages(
    reading: QueryReading,
    postings: Postings,
    tracker: TopicTracker,
    profile: SelectionProfile,
    *,
    now: float | None = None,
) -> list[tuple[int, float]]:
    """Pages by BM25 and what their neighbours found: (ordinal, score), best first, ties to the older.

    Args:
        reading: the query.
        postings: the session's index.
        tracker: its sittings and whether it names its speakers.
        profile: the numbers.
        now: when the query is asked; pages of a sitting that still runs then get no bonus for being
            new, because whoever asks has them before him.
    """
    params = profile.recall_persons if tracker.names_speakers else profile.recall
    weights = _term_weights(reading, postings, params)
    own = dict(top_pages_bm25(postings, weights, k1=params.saturation_k1, b=params.length_b, limit=params.pool_limit))
    if params.assistant_share != 1.0:
        own = {page: gained * (params.assistant_share if page & 1 else 1.0) for page, gained in own.items()}
    count = 2 * tracker.turn_count
    questions = postings.ordinals(QUESTION_TERM)

    def exists(ordinal: int) -> bool:
        return 0 <= ordinal < count and postings.page_length(ordinal) > 0

    scores = smooth_pages(own, lambda ordinal: _holds(questions, ordinal), exists, params)
    best = max(own.values(), default=0.0)
    for page, bonus in _bonuses(scores, weights, reading, postings, tracker, params).items():
        scores[page] += bonus * best
    counts_place = params.recency_share or params.opening_share
    if counts_place and any(postings.page_length(ordinal) for ordinal in range(1, count, 2)):
        for page, factor in _talk_factors(scores, tracker, params, now).items():
            scores[page] *= factor
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def _term_weights(reading: QueryReading, postings: Postings, params: RecallParams) -> dict[str, float]:
    """Term -> weight > 0 of what the index knows of the query: its words, and the dates it names."""
    weights: dict[str, float] = {}
    for term, share in asked_shares(reading.scan, params.other_line_share).items():
        frequency = postings.document_frequency(term)
        if frequency:
            own = base_weight(term) ** params.background_power * (
                1.0 + params.repeat_share * log(reading.scan.counts[term])
            )
            if postings.document_frequency(speaker_term(reading.scan.surfaces[term])):
                own *= params.speaker_word_share
            weights[term] = inverse_document_frequency(frequency, postings.block_count) * share * own
    for term in date_terms(reading.scan.text):
        frequency = postings.document_frequency(term)
        if frequency:
            weights[term] = inverse_document_frequency(frequency, postings.block_count)
    return weights


def _bonuses(
    pages: Collection[int],
    weights: Mapping[str, float],
    reading: QueryReading,
    postings: Postings,
    tracker: TopicTracker,
    params: RecallParams,
) -> dict[int, float]:
    """Ordinal -> bonus, as part of the best score, for its sitting, its passage and its speaker."""
    sittings = _sitting_shares(weights, postings, tracker)
    bonuses = {page: params.sitting_share * sittings.get(tracker.sitting_of[page >> 1], 0.0) for page in pages}
    if params.passage_share:
        for page, share in passage_shares(pages, weights, postings, params.passage_reach).items():
            bonuses[page] += params.passage_share * share
    if params.speaker_share:
        for page in _named_speakers(reading, postings).intersection(pages):
            bonuses[page] += params.speaker_share
    return bonuses


def _talk_factors(
    pages: Iterable[int], tracker: TopicTracker, params: RecallParams, now: float | None
) -> dict[int, float]:
    """Ordinal -> factor >= 1 for its place in a talk: how new it is, how near to the opening of its sitting.

    A list of notes, where nobody answers, has neither a running talk nor openings.
    """
    sitting_of = tracker.sitting_of
    count = 2 * len(sitting_of)
    has_sittings = sitting_of[-1] > 0
    running = bisect_left(sitting_of, sitting_of[-1]) if tracker.is_new_day(now) is False else len(sitting_of)
    factors: dict[int, float] = {}
    for page in pages:
        turn = page >> 1
        factor = 1.0
        if turn < running:
            factor += params.recency_share * exp(-(count - 1 - page) / params.recency_pages)
        if has_sittings and not page & 1:
            place = turn - bisect_left(sitting_of, sitting_of[turn])
            factor *= 1.0 + params.opening_share * params.opening_fall**place
        factors[page] = factor
    return factors


def _holds(ordinals: array[int], ordinal: int) -> bool:
    place = bisect_left(ordinals, ordinal)
    return place < len(ordinals) and ordinals[place] == ordinal


def _sitting_shares(weights: Mapping[str, float], postings: Postings, tracker: TopicTracker) -> dict[int, float]:
    """Sitting -> share of the query's weight that occurs in it."""
    total = sum(weights.values())
    shares: dict[int, float] = {}
    if not tracker.sitting_of or tracker.sitting_of[-1] == 0:
        return shares
    for term, weight in weights.items():
        for sitting in {tracker.sitting_of[ordinal >> 1] for ordinal in postings.ordinals(term)}:
            shares[sitting] = shares.get(sitting, 0.0) + weight / total
    return shares


def _named_speakers(reading: QueryReading, postings: Postings) -> frozenset[int]:
    """Ordinals of the pages whose speaker the query names by a word of his name."""
    found: set[int] = set()
    for surface in set(reading.scan.surfaces.values()):
        found.update(postings.ordinals(speaker_term(surface)))
    return frozenset(found)


def folded_text(text: str) -> str:
    """``text`` as the fallback of `fallback_anchor` is looked for in it."""
    return simplify_han(normalise_text(text)).casefold()


def rank_fallback(fallback: str, pool: PagePool) -> list[tuple[int, float]]:
    """Turns that hold the first characters of a query without anchors, newest first (DESIGN.md section 7).

    The fallback is one anchor, so each scores its IDF over the turns looked at (reading 13).
    """
    newest = pool.turn_count - 1
    looked_at = range(newest, max(-1, newest - FALLBACK_TURNS), -1)
    holders = [turn_id for turn_id in looked_at if fallback in folded_text(_block_text(turn_id, pool))]
    strength = inverse_document_frequency(len(holders), len(looked_at))
    return [(turn_id, strength) for turn_id in holders]


def _block_text(turn_id: int, pool: PagePool) -> str:
    turn = pool.turn(turn_id)
    return f"{turn.user.text}\n{turn.assistant.text}"


def _text_of(ordinal: int, pool: PagePool) -> str:
    turn = pool.turn(ordinal >> 1)
    return turn.assistant.text if ordinal & 1 else turn.user.text


def recall(
    reading: QueryReading,
    pool: PagePool,
    tracker: TopicTracker,
    profile: SelectionProfile,
    *,
    limit: int,
    now: float | None = None,
    postings: Postings | None = None,
) -> list[RecallHit]:
    """The best ``limit`` pages for a query asked at ``now``, best first, before gate and coverage.

    In the ``strict`` order a block's score goes to each of its pages that has text, the page
    that holds more of the query first. ``postings`` stand in the place of the pool's own, for statistics
    over several sessions.
    """
    postings = pool.postings if postings is None else postings
    if reading.fallback:
        turns = rank_fallback(reading.fallback, pool)
        pages = [(2 * turn_id + side, strength) for turn_id, strength in turns for side in (0, 1)]
        ranked = [one for one in pages if reading.fallback in folded_text(_text_of(one[0], pool))][:limit]
    elif profile.ranks_pages:
        ranked = rank_pages(reading, postings, tracker, profile, now=now)[:limit]
    else:
        ranked = []
        for turn_id, strength in rank_blocks(reading, postings, profile, limit=limit):
            sides = [2 * turn_id, 2 * turn_id + 1]
            terms = [set(pool.turn(turn_id).user.terms), set(pool.turn(turn_id).assistant.terms)]
            own = [sum(w for t, w in reading.weights.items() if t in side) for side in terms]
            if own[1] > own[0]:
                sides.reverse()
            ranked.extend((side, strength) for side in sides if postings.page_length(side))
        ranked = ranked[:limit]
    hits = []
    for ordinal, strength in ranked:
        turn = pool.turn(ordinal >> 1)
        page = turn.assistant if ordinal & 1 else turn.user
        hits.append(RecallHit(page.page_id, page.turn_id, Role.ASSISTANT if ordinal & 1 else Role.USER, strength))
    return hits
