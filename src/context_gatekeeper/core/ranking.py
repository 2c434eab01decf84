"""The best blocks and pages for weighted terms, over postings (DESIGN.md 4.4).

Scores are sums over terms, taken in the order of the given mapping, so that every way to
find the best gives the same floats.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from heapq import nlargest

from context_gatekeeper.ports import Postings

__all__ = ["top_blocks", "top_pages_bm25"]


def top_blocks(
    postings: Postings,
    term_weights: Mapping[str, float],
    *,
    user_weight: float,
    assistant_weight: float,
    any_weights: Mapping[str, float] = {},
    recency_weight: float = 0.0,
    limit: int = 20,
    allowed: Collection[int] | None = None,
) -> list[tuple[int, float]]:
    """Blocks with the highest sum of weights, as (turn id, score), best first; ties: the newer block first."""
    found: dict[int, float] = {}
    for term in {**term_weights, **any_weights}:
        weight = term_weights.get(term, 0.0)
        once = any_weights.get(term, 0.0)
        previous = -1
        for ordinal in postings.ordinals(term):
            block = ordinal >> 1
            amount = weight * (assistant_weight if ordinal & 1 else user_weight)
            if block != previous:
                amount += once
                previous = block
            found[block] = found.get(block, 0.0) + amount
    total = postings.block_count
    scored = [
        (block, amount + recency_weight * (block + 1) / total)
        for block, amount in found.items()
        if amount > 0 and (allowed is None or block in allowed)
    ]
    return nlargest(limit, scored, key=lambda entry: (entry[1], entry[0]))


def top_pages_bm25(
    postings: Postings,
    idf_by_term: Mapping[str, float],
    *,
    k1: float = 0.9,
    b: float = 0.4,
    limit: int = 20,
    average_length: float | None = None,
) -> list[tuple[int, float]]:
    """Pages with the highest BM25 as (ordinal, score), best first; ties: the newer page first."""
    if average_length is None:
        lengths = [postings.page_length(ordinal) for ordinal in range(2 * postings.block_count)]
        filled = [length for length in lengths if length]
        average_length = sum(filled) / max(1, len(filled))
    found: dict[int, float] = {}
    for term, idf in idf_by_term.items():
        for ordinal, frequency in zip(postings.ordinals(term), postings.frequencies(term), strict=True):
            norm = k1 * (1 - b + b * postings.page_length(ordinal) / average_length)
            found[ordinal] = found.get(ordinal, 0.0) + idf * frequency * (k1 + 1) / (frequency + norm)
    return nlargest(limit, ((o, s) for o, s in found.items() if s > 0), key=lambda entry: (entry[1], entry[0]))
