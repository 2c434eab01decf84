"""Which slices of a session hold which anchors: the postings behind page faults.

Words are cut out by one plain pattern and taken apart once for the whole process, so that taking in a slice costs a
tenth of a full scan. Phrases in quotes are no terms here; everything else is what `scan_anchors` finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nlargest

from context_gatekeeper.core.anchor import AnchorKind, anchor_kind, inverse_document_frequency, scan_anchors
from context_gatekeeper.core.weights import WEIGHT_PARAMS, base_weight, is_content
from context_gatekeeper.engine.session_log import SessionLog

__all__ = ["SliceTerms", "TermShare", "text_terms", "word_terms"]

_WORD = re.compile(r"[^\s\"'`“”‘’「-』《》,;()\[\]{}<>=|!?*，。！？；：、（）]{2,200}")
"""What stands between blanks and marks; longer runs are data."""
_PAIR = 2
_CHARS_A_STEP = 2000


@lru_cache(maxsize=1 << 16)
def word_terms(word: str) -> tuple[tuple[str, float], ...]:
    """Anchors of one word with their shares of its weight, the whole of it first."""
    return tuple(scan_anchors(word).shares.items())


def text_terms(text: str) -> dict[str, float]:
    """Anchors of a text with their shares in (0, 1], each once, in reading order. O(length).

    Parts of a compound share one weight; a term that also stands alone has a whole one.
    """
    terms: dict[str, float] = {}
    for word in _words(text):
        for term, share in word_terms(word):
            if share > terms.get(term, 0.0):
                terms[term] = share
    return terms


def _words(text: str) -> Iterable[str]:
    """Each once, in reading order."""
    return dict.fromkeys(_WORD.findall(text))


@dataclass(frozen=True, slots=True)
class TermShare:
    """How much of a text a slice holds."""

    piece: int
    share: float
    """Of the weight of the text's terms, in (0, 1]."""
    weight: float
    """IDF times background of the terms held, > 0."""
    whole_terms: int
    """Of them, those that are no part of another and carry content; a Chinese word of two characters is one."""


class SliceTerms:
    """Postings of one log, term -> slices. Thinking is nobody's statement and is left out."""

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self._holders: dict[str, list[int]] = {}
        self._known = 0

    def follow(self) -> None:
        """Take in the slices that came since. O(their length)."""
        for _ in self.follow_steps():
            pass

    def follow_steps(self) -> Iterator[None]:
        """The same a little at a time, as far as it is gone through."""
        log = self._log
        while (number := self._known) < len(log.slices):
            terms: dict[str, None] = {}
            chars = 0
            for word in _words(log.text_read(log.slices[number])):
                terms.update((term, None) for term, _ in word_terms(word))
                chars += len(word)
                if chars >= _CHARS_A_STEP:
                    chars = 0
                    yield
            if number == self._known:  # nobody else has taken it in between two steps
                for term in terms:
                    self._holders.setdefault(term, []).append(number)
                self._known += 1
            yield

    def holders(self, term: str) -> Sequence[int]:
        """Slices that hold the term, ascending."""
        return self._holders.get(term, ())

    def idf(self, term: str) -> float:
        """Over slices; > 0. A word that stands everywhere in a project counts little."""
        return inverse_document_frequency(len(self._holders.get(term, ())), self._known)

    def shares(self, text: str, most_terms: int) -> list[TermShare]:
        """Slices that hold terms of ``text``, in no order.

        Args:
            text: what is looked for.
            most_terms: its heaviest terms that count; ties go to the earlier.

        A term that no slice holds counts as little as a new word does in the topic gate, so that one of them does
        not outvote a subject's name. O(length + postings of the terms).
        """
        shares = text_terms(text)
        weights = {term: share * self._weight(term) for term, share in shares.items()}
        chosen = nlargest(most_terms, weights, key=weights.__getitem__)
        total = sum(weights[term] for term in chosen)
        held: dict[int, float] = {}
        wholes: dict[int, int] = {}
        for term in chosen:
            weight, counts = weights[term], shares[term] >= 1.0 and _is_whole(term)
            for piece in self._holders.get(term, ()):
                held[piece] = held.get(piece, 0.0) + weight
                wholes[piece] = wholes.get(piece, 0) + counts
        return [TermShare(piece, weight / total, weight, wholes[piece]) for piece, weight in held.items()]

    def _weight(self, term: str) -> float:
        idf = self.idf(term) if term in self._holders else WEIGHT_PARAMS.unseen_idf
        return idf * base_weight(term)


def _is_whole(term: str) -> bool:
    """Whether a term counts as a word of its own; the triples of a Chinese word repeat its pairs."""
    return is_content(term) and (anchor_kind(term) is not AnchorKind.NGRAM or len(term) == _PAIR)
