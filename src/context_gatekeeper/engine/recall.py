"""recall(): the one ranking of what is outside the window, for every carrier.

Two orders over the same postings: blocks by the documented formula (profile ``strict``)
and pages by BM25 with neighbours, sittings, dates and speakers (profile ``recall``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from math import exp

from context_gatekeeper.core.anchor import inverse_document_frequency
from context_gatekeeper.core.profiles import SelectionProfile
from context_gatekeeper.core.ranking import top_pages_bm25
from context_gatekeeper.core.sparse import score_blocks, smooth_pages
from context_gatekeeper.core.weights import base_weight, is_exact
from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.query import QueryReading
from context_gatekeeper.engine.topic_tracker import TopicTracker
from context_gatekeeper.ports import Postings
from context_gatekeeper.types import RecallHit, Role

__all__ = ["context_terms", "rank_blocks", "rank_pages", "recall"]

_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_MONTH = re.compile(
    r"\b(" + "|".join(_MONTHS) + r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b|(?<!\d)(1[0-2]|0?[1-9])月"
)
_YEAR = re.compile(r"(?<!\d)((?:19|20)\d\d)(?!\d)")
_MARK = "\u001f"
"""Starts terms that no text can hold: dates and speakers, used by the ``recall`` profile only."""


def context_terms(time: float | None, speaker: str | None) -> dict[str, int]:
    """Index terms for when a page was said and by whom."""
    terms: dict[str, int] = {}
    if time is not None:
        moment = datetime.fromtimestamp(time, UTC)
        terms[f"{_MARK}month {moment.month}"] = 1
        terms[f"{_MARK}year {moment.year}"] = 1
    if speaker:
        terms[_speaker_term(speaker)] = 1
    return terms


def _speaker_term(speaker: str) -> str:
    return f"{_MARK}speaker {speaker.strip().casefold()}"


def _date_terms(text: str) -> list[str]:
    lowered = text.lower()
    terms = []
    for match in _MONTH.finditer(lowered):
        number = (
            int(match.group(2))
            if match.group(2)
            else 1 + next(i for i, name in enumerate(_MONTHS) if name.startswith(match.group(1)[:3]))
        )
        terms.append(f"{_MARK}month {number}")
    terms.extend(f"{_MARK}year {match.group(1)}" for match in _YEAR.finditer(text))
    return terms


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
    reading: QueryReading, postings: Postings, tracker: TopicTracker, profile: SelectionProfile
) -> list[tuple[int, float]]:
    """Pages by BM25 and what their neighbours found: (ordinal, score), best first, ties to the older."""
    params = profile.recall
    power = 0.0 if tracker.names_speakers else params.background_power
    idf = {
        term: inverse_document_frequency(postings.document_frequency(term), postings.block_count)
        * share
        * base_weight(term) ** power
        for term, share in reading.scan.shares.items()
        if postings.document_frequency(term)
    }
    for term in _date_terms(reading.scan.text):
        if postings.document_frequency(term):
            idf[term] = inverse_document_frequency(postings.document_frequency(term), postings.block_count)
    ranked = top_pages_bm25(postings, idf, k1=params.saturation_k1, b=params.length_b, limit=params.pool_limit)
    sittings = _sitting_shares(idf, postings, tracker)
    speakers = _named_speakers(reading, postings)
    count = 2 * tracker.turn_count

    def exists(ordinal: int) -> bool:
        return 0 <= ordinal < count and postings.page_length(ordinal) > 0

    own = dict(ranked)
    if not tracker.names_speakers:
        own = {page: weight * (params.assistant_share if page & 1 else 1.0) for page, weight in own.items()}
    smoothed = smooth_pages(
        own, lambda ordinal: sittings.get(tracker.sitting_of[ordinal >> 1], 0.0), speakers.__contains__, exists, params
    )
    if not tracker.names_speakers:
        for page in smoothed:
            smoothed[page] *= 1.0 + params.recency_share * exp(-(count - 1 - page) / params.recency_pages)
    return sorted(smoothed.items(), key=lambda item: (-item[1], item[0]))


def _sitting_shares(idf: Mapping[str, float], postings: Postings, tracker: TopicTracker) -> dict[int, float]:
    """Sitting -> share of the query's weight that occurs in it."""
    total = sum(idf.values())
    shares: dict[int, float] = {}
    if not tracker.sitting_of or tracker.sitting_of[-1] == 0:
        return shares
    for term, weight in idf.items():
        for sitting in {tracker.sitting_of[ordinal >> 1] for ordinal in postings.ordinals(term)}:
            shares[sitting] = shares.get(sitting, 0.0) + weight / total
    return shares


def _named_speakers(reading: QueryReading, postings: Postings) -> frozenset[int]:
    """Ordinals of the pages whose speaker the query names by a word of his name."""
    found: set[int] = set()
    for surface in set(reading.scan.surfaces.values()):
        found.update(postings.ordinals(_speaker_term(surface)))
    return frozenset(found)


def recall(
    reading: QueryReading, pool: PagePool, tracker: TopicTracker, profile: SelectionProfile, *, limit: int
) -> list[RecallHit]:
    """The best ``limit`` pages for a query, best first, before gate and coverage.

    In the ``strict`` order a block's score goes to each of its pages that has text, the page
    that holds more of the query first.
    """
    postings = pool.postings
    if profile.ranks_pages:
        ranked = rank_pages(reading, postings, tracker, profile)[:limit]
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
