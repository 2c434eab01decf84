"""Bounds and exact BM25 scores of pages that hold the same terms.

The pages of one pattern (who holds which of the frequent terms, and which of them more than
once) differ in their score by their length and by how often they repeat a term. So a pattern
is bounded by its shortest pages, split by length while its bound can still reach the top, and
only what is left is scored.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heappush, heapreplace, nlargest
from typing import NamedTuple

from context_gatekeeper.core.bitsets import ROUNDING, Slot, newest_first
from context_gatekeeper.ports import Postings

__all__ = ["PROBE_COST", "LengthScale", "PagePatterns", "PageTerm", "within_reach"]

PageTerm = tuple[int, str, float]
"""(pages that hold it, term, idf)."""
_HeldTerm = tuple[Sequence[int], Sequence[int], float, int]
"""(ordinals, frequencies, weight, most occurrences in a page of the pattern)."""
PROBE_COST = 3
"""Finding one page in a list by bisection costs as much as reading this many postings."""
_SCORED_AT_ONCE = 4
"""Pages of a pattern that are scored before the pattern is split by length: most patterns have no more."""


def within_reach(gained: Mapping[int, float], most: float, limit: int) -> Iterable[tuple[int, float]]:
    """The entries of ``gained`` that may be among the best ``limit`` after gaining up to ``most``."""
    if len(gained) <= limit:
        return gained.items()
    least = nlargest(limit, gained.values())[-1] - ROUNDING * most
    return gained.items() if least <= 0.0 else [entry for entry in gained.items() if entry[1] >= least]


class LengthScale(NamedTuple):
    """BM25's norm as a function of a page's length; a term gains ``weight * tf / (tf + norm)``."""

    flat: float
    slope: float
    saturated: float
    """``k1 + 1``: weight of a term per unit of IDF."""

    @classmethod
    def of(cls, k1: float, b: float, average_length: float) -> LengthScale:
        """From BM25's parameters."""
        return cls(k1 * (1.0 - b), k1 * b / average_length, k1 + 1.0)

    def norm(self, length: int) -> float:
        """Grows with the length; > 0 unless k1 is 0."""
        return self.flat + self.slope * length


class PagePatterns:
    """The best pages so far, and what can be said of pages that hold the same frequent terms."""

    def __init__(self, postings: Postings, terms: Sequence[PageTerm], scale: LengthScale, limit: int) -> None:
        self.best: list[tuple[float, int]] = []
        """(score, ordinal), at most ``limit`` long; a heap as soon as it is full."""
        self._limit = limit
        self._floor = 0.0
        self._known: Collection[int] = ()
        self._scale = scale
        self._lengths = postings.page_lengths
        self._classes = postings.length_classes()
        self._sets = [postings.page_sets(term) for _, term, _ in terms]
        self._terms = [
            (
                postings.ordinals(term),
                postings.frequencies(term),
                idf * scale.saturated,
                postings.highest_frequency(term),
            )
            for _, term, idf in terms
        ]

    def slots(self) -> list[Slot]:
        """For `best_patterns`: for each term what a page gains at most by repeating it, then by holding it once."""
        norm = self._scale.norm(self._classes[0][0])
        slots: list[Slot] = []
        for (repeating, pages), (_, _, weight, highest) in zip(self._sets, self._terms, strict=True):
            once = (pages, weight / (1 + norm))
            if repeating:
                repeated = ROUNDING * weight * highest / (highest + norm)
                slots.append((repeated, ((repeating, repeated), once)))
            else:
                slots.append((once[1], (once,)))
        return slots

    def can_reach(self, bound: float) -> bool:
        """Whether a page with a score of at most ``bound`` may be among the best."""
        return bound >= self._floor

    def take_known(self, known: Mapping[int, float]) -> None:
        """Take pages that hold rare terms.

        Args:
            known: ordinal -> gain by the rare terms, of all such pages; they are not taken
                again with their pattern.
        """
        self._known = known
        if not known:
            return
        mosts = [largest_gain for largest_gain, _ in self.slots()]
        gained = known
        for place, (ordinals, frequencies, weight, _) in enumerate(self._terms):
            totals = dict(within_reach(gained, sum(mosts[place:]), self._limit))
            gained = totals
            if len(ordinals) > PROBE_COST * len(totals):
                held = [(page, bisect_left(ordinals, page)) for page in totals]
                pairs = [(page, frequencies[at]) for page, at in held if at < len(ordinals) and ordinals[at] == page]
            else:
                pairs = [pair for pair in zip(ordinals, frequencies, strict=True) if pair[0] in totals]
            for page, occurrences in pairs:
                totals[page] += weight * occurrences / (occurrences + self._scale.norm(self._lengths[page]))
        for page, total in gained.items():
            self._offer(total, page)

    def take_pattern(self, members: int) -> None:
        """Take pages that hold the same terms, and the same ones of them repeatedly, short ones first."""
        held = self._held(members.bit_length() - 1)
        for _ in range(_SCORED_AT_ONCE):
            page = members.bit_length() - 1
            members ^= 1 << page
            self._offer_held(page, held)
            if not members:
                return
        for shortest, of_length in self._classes:
            if not members:
                return
            taken = members & of_length
            if not taken:
                continue
            norm = self._scale.norm(shortest)
            bound = 0.0
            for _, _, weight, highest in held:
                bound += weight / (1 + norm) if highest == 1 else ROUNDING * weight * highest / (highest + norm)
            if not self.can_reach(bound):
                return
            for page in newest_first(taken):
                if len(self.best) == self._limit and (bound, page) < self.best[0]:
                    break
                self._offer_held(page, held)
            members ^= taken

    def _held(self, page: int) -> list[_HeldTerm]:
        """The terms of ``page`` with the most that a page of the same pattern holds of them."""
        held: list[tuple[Sequence[int], Sequence[int], float, int]] = []
        for ordinals, frequencies, weight, highest in self._terms:
            place = bisect_left(ordinals, page)
            if place < len(ordinals) and ordinals[place] == page:
                held.append((ordinals, frequencies, weight, 1 if frequencies[place] == 1 else highest))
        return held

    def _offer_held(self, page: int, held: Sequence[_HeldTerm]) -> None:
        if page in self._known:
            return
        norm = self._scale.norm(self._lengths[page])
        total = 0.0
        for ordinals, frequencies, weight, highest in held:
            if highest == 1:
                total += weight / (1 + norm)
            else:
                occurrences = frequencies[bisect_left(ordinals, page)]
                total += weight * occurrences / (occurrences + norm)
        self._offer(total, page)

    def _offer(self, total: float, page: int) -> None:
        best = self.best
        if len(best) < self._limit:
            heappush(best, (total, page))
        elif (total, page) > best[0]:
            heapreplace(best, (total, page))
        else:
            return
        if len(best) == self._limit:
            self._floor = best[0][0]
