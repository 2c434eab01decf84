"""How much an anchor says about the subject, beside its IDF.

``weight(t) = idf(t) * base(t)`` with ``base = background * piece``: everyday words and
characters count less (background lists), and the 2- and 3-grams of one Han word share
what a whole word would count (piece). Source: rule R1 of the selection notes, section 5.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from context_gatekeeper.core.anchor import AnchorKind, anchor_kind, inverse_document_frequency, is_above_floor
from context_gatekeeper.core.background import ngram_background, word_background

__all__ = ["WEIGHT_PARAMS", "WeightParams", "base_weight", "is_content", "is_exact", "query_weights", "term_background"]


@dataclass(frozen=True, slots=True)
class WeightParams:
    """Numbers of rule R1."""

    pair_piece: float = 0.5
    """A 2-gram's part of a whole word."""
    triple_piece: float = 0.35
    """A 3-gram's part: it repeats two 2-grams."""
    unlisted_ngram: float = 0.6
    """Kana and other n-grams, for which there is no background list."""
    content_background: float = 0.2
    """From this background weight on a term carries content."""
    unseen_idf: float = 1.5
    """Unseen anchors in the gate's ratios: the floor, so that one new word does not outvote a topic's name."""
    known_idf_cap: float = 2.4
    """Highest IDF of a known anchor in the gate and in admission."""


WEIGHT_PARAMS = WeightParams()
_EXACT_KINDS = frozenset(
    {
        AnchorKind.IDENTIFIER,
        AnchorKind.VERSION,
        AnchorKind.NUMBER,
        AnchorKind.PHRASE,
        AnchorKind.WORD,
        AnchorKind.LETTERS,
    }
)


@lru_cache(maxsize=1 << 17)
def term_background(term: str) -> float:
    """How telling ``term`` is in everyday language, in [0.15, 1]; 1 = rare."""
    kind = anchor_kind(term)
    if kind is AnchorKind.NGRAM:
        if "\u3400" <= term[0] <= "\u9fff":
            return ngram_background(term)
        return WEIGHT_PARAMS.unlisted_ngram
    if kind in (AnchorKind.WORD, AnchorKind.NUMBER):
        return word_background(term)
    return 1.0


@lru_cache(maxsize=1 << 17)
def base_weight(term: str) -> float:
    """Background times piece, in (0, 1]."""
    background = term_background(term)
    if anchor_kind(term) is not AnchorKind.NGRAM:
        return background
    return background * (WEIGHT_PARAMS.pair_piece if len(term) == 2 else WEIGHT_PARAMS.triple_piece)


def is_content(term: str) -> bool:
    """Whether the term carries content of its own (background >= 0.2)."""
    return term_background(term) >= WEIGHT_PARAMS.content_background


def is_exact(term: str) -> bool:
    """Whether the term belongs to the exact tier: a term, identifier, version, number or phrase (SPEC.md 3.3)."""
    return anchor_kind(term) in _EXACT_KINDS


def query_weights(terms: Iterable[str], document_frequency: Callable[[str], int], block_count: int) -> dict[str, float]:
    """IDF of the query's terms that pass the n-gram floor (DESIGN.md 4.1); unseen terms keep theirs."""
    weights: dict[str, float] = {}
    for term in terms:
        idf = inverse_document_frequency(document_frequency(term), block_count)
        if is_above_floor(anchor_kind(term), idf, block_count):
            weights[term] = idf
    return weights
