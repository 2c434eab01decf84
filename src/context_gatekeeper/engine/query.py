"""A query read against the session: its anchors, their weights, its form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from context_gatekeeper.core.anchor import (
    AnchorScan,
    fallback_anchor,
    inverse_document_frequency,
    scan_anchors,
    shortened,
)
from context_gatekeeper.core.query_form import QueryForm, read_form
from context_gatekeeper.core.weights import WEIGHT_PARAMS, base_weight, is_content, query_weights
from context_gatekeeper.core.wording import WORDING_PARAMS
from context_gatekeeper.engine.topic_tracker import TopicTracker
from context_gatekeeper.ports import Postings

__all__ = ["QueryReading", "read_query", "turns_with_all"]


@dataclass(frozen=True, slots=True)
class QueryReading:
    """What the engine knows of a query before it ranks anything."""

    scan: AnchorScan
    """The first 2,000 terms of the query: no subject needs more."""
    whole: AnchorScan
    """All of it, as the index wants it."""
    form: QueryForm
    idf: Mapping[str, float]
    """Documented IDF of the terms above the floor (n-grams under it are left out)."""
    base: Mapping[str, float]
    """Term -> background x piece x share x wording factor, in (0, 1]; all terms of the query."""
    weights: Mapping[str, float]
    """Term -> ``idf x base``: what coverage and ranking pay for it."""
    topic_weights: Mapping[str, float]
    """Term -> weight in the gate and in admission: unseen terms count the floor, known ones at most 2.4."""
    wording: frozenset[str]
    """Terms that are repeated wording."""
    fallback: str
    """The query's first 20 characters when it has no anchors, else empty."""


MOST_QUERY_TERMS = 2000
ASKED_AGAIN_SHARE = 0.9
"""A query whose content is wording to this share repeats a whole question, not a sentence pattern."""


def _is_asked_again(scan: AnchorScan, wording: frozenset[str]) -> bool:
    content = [term for term in scan.counts if is_content(term)]
    return bool(content) and sum(term in wording for term in content) >= ASKED_AGAIN_SHARE * len(content)


def read_query(query: str, postings: Postings, tracker: TopicTracker) -> QueryReading:
    """Read ``query`` against a session. O(length of the query)."""
    whole = scan_anchors(query)
    scan = shortened(whole, MOST_QUERY_TERMS, WORDING_PARAMS.max_chars)
    wording = tracker.wording.wording_terms(scan.text, scan.spans, postings.user_frequency)
    if _is_asked_again(scan, wording):
        wording = frozenset()
    idf = query_weights(scan.counts, postings.document_frequency, postings.block_count)
    base = {
        term: base_weight(term) * share * (WORDING_PARAMS.factor if term in wording else 1.0)
        for term, share in scan.shares.items()
    }
    topic_weights = {}
    for term, own in base.items():
        frequency = postings.document_frequency(term)
        known_idf = min(WEIGHT_PARAMS.known_idf_cap, inverse_document_frequency(frequency, postings.block_count))
        topic_weights[term] = (known_idf if frequency else WEIGHT_PARAMS.unseen_idf) * own
    return QueryReading(
        scan,
        whole,
        read_form(scan.text),
        idf,
        base,
        {term: value * base[term] for term, value in idf.items()},
        topic_weights,
        wording,
        "" if scan.counts else fallback_anchor(query),
    )


def turns_with_all(reading: QueryReading, postings: Postings) -> frozenset[int]:
    """Turns that hold, on either side, every anchor of the query; none without anchors.

    Parts of what is an anchor whole and n-grams that reach into a function word are not asked for.
    O(postings of the anchors).
    """
    scan = reading.scan
    first_at = {(start, end): term for term, start, end in reversed(scan.spans)}
    turns: set[int] | None = None
    for term in dict.fromkeys(first_at.values()):
        if scan.shares.get(term, 0.0) < 1.0:
            continue
        holders = {ordinal >> 1 for ordinal in postings.ordinals(term)}
        turns = holders if turns is None else turns & holders
        if not turns:
            break
    return frozenset(turns or ())
