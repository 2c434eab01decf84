"""PostingIndex: the inverted index of one session, in memory.

One entry a term with two parallel arrays, so that a posting costs five bytes and a new
page costs its own terms, never the history (``array.append`` is amortised O(1)).
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from context_gatekeeper.errors import ConfigError

__all__ = ["MAX_FREQUENCY", "PostingIndex"]

MAX_FREQUENCY = 255
"""Occurrences of one term in one page that are told apart: one byte; ranking saturates long before."""

_NO_ORDINALS = array("I")
_NO_FREQUENCIES = array("B")


class _TermEntry:
    """Postings of one term."""

    __slots__ = ("block_total", "frequencies", "ordinals", "user_total")

    def __init__(self) -> None:
        self.ordinals = array("I")
        self.frequencies = array("B")
        self.block_total = 0
        self.user_total = 0


class PostingIndex:
    """Implements `ports.Postings`; pages come in by ascending ordinal."""

    def __init__(self) -> None:
        self._entries: dict[str, _TermEntry] = {}
        self._lengths = array("I")

    @property
    def block_count(self) -> int:
        """Turns indexed so far: the highest turn's number + 1."""
        return (len(self._lengths) + 1) >> 1

    @property
    def page_count(self) -> int:
        """Highest ordinal + 1; the ordinal that `add_page` expects at least."""
        return len(self._lengths)

    def add_page(self, ordinal: int, terms: Mapping[str, int]) -> None:
        """Make one page searchable. O(terms of the page), whatever is indexed already.

        Args:
            ordinal: place of the page in its session, above every ordinal added before; gaps are empty pages.
            terms: term -> occurrences (>= 1; more than 255 count as 255).

        Raises:
            ConfigError: the ordinal is not above the last one; nothing was added.
        """
        lengths = self._lengths
        if ordinal < len(lengths):
            raise ConfigError(
                f"page ordinal {ordinal}",
                f"pages up to ordinal {len(lengths) - 1} are indexed already",
                "add pages in ascending order, each once",
            )
        is_user_page = not ordinal & 1
        entries = self._entries
        page_length = 0
        for term, occurrences in terms.items():
            entry = entries.get(term)
            if entry is None:
                entry = entries[term] = _TermEntry()
            ordinals = entry.ordinals
            if is_user_page:
                entry.user_total += 1
                entry.block_total += 1
            elif not ordinals or ordinals[-1] != ordinal - 1:
                entry.block_total += 1
            frequency = min(occurrences, MAX_FREQUENCY)
            ordinals.append(ordinal)
            entry.frequencies.append(frequency)
            page_length += frequency
        if ordinal > len(lengths):
            lengths.frombytes(bytes(lengths.itemsize * (ordinal - len(lengths))))
        lengths.append(page_length)

    def document_frequency(self, term: str) -> int:
        """Turns that hold ``term`` on either side; 0 when never seen. O(1)."""
        entry = self._entries.get(term)
        return entry.block_total if entry is not None else 0

    def user_frequency(self, term: str) -> int:
        """Turns whose user text holds ``term``. O(1)."""
        entry = self._entries.get(term)
        return entry.user_total if entry is not None else 0

    def ordinals(self, term: str) -> array[int]:
        """Ascending ordinals of the pages that hold ``term``; empty when never seen."""
        entry = self._entries.get(term)
        return entry.ordinals if entry is not None else _NO_ORDINALS

    def frequencies(self, term: str) -> array[int]:
        """Occurrences (1..255) beside each of ``ordinals(term)``."""
        entry = self._entries.get(term)
        return entry.frequencies if entry is not None else _NO_FREQUENCIES

    def page_length(self, ordinal: int) -> int:
        """Sum of the occurrences of the page's terms; 0 for an empty page and one never added."""
        return self._lengths[ordinal] if 0 <= ordinal < len(self._lengths) else 0
