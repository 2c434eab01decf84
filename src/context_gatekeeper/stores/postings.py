"""PostingIndex: the inverted index of one session, in memory.

One entry a term with two parallel arrays, so that a posting costs five bytes and a new
page costs its own terms, never the history (``array.append`` is amortised O(1)); most terms
stand on one page only, and that posting is one packed number. Sets of
pages as big integers are made when a ranking asks for them, extended by the pages that came
in since, and forgotten when too many pile up.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from context_gatekeeper.core.bitsets import bits_from
from context_gatekeeper.errors import ConfigError

__all__ = ["MAX_FREQUENCY", "SET_BUDGET_BYTES", "PostingIndex"]

MAX_FREQUENCY = 255
"""Occurrences of one term in one page that are told apart: one byte; ranking saturates long before."""

SET_BUDGET_BYTES = 64 * 1024 * 1024
"""Memory for sets of pages; at 100,000 turns the sets of some 1,700 terms fit."""
_EXACT_LENGTH_BITS = 4
"""Lengths below 16 have their own class; above, every power of two is split into 8 classes."""

_NO_ORDINALS = array("I")
_NO_FREQUENCIES = array("B")


_BLOCK_BIT = bytes(1 << (ordinal >> 1 & 7) for ordinal in range(16))
"""Bit of a page's turn inside its octet, by the ordinal's last four bits."""


_FREQUENCY_BITS = 8
"""A posting that is alone is packed as ``ordinal << 8 | frequency``."""


class _TermEntry:
    """Postings of one term, of which the first comes packed."""

    __slots__ = ("block_total", "frequencies", "highest_frequency", "ordinals", "user_total")

    def __init__(self, packed: int) -> None:
        ordinal, frequency = packed >> _FREQUENCY_BITS, packed & MAX_FREQUENCY
        self.ordinals = array("I", (ordinal,))
        self.frequencies = array("B", (frequency,))
        self.block_total = 1
        self.user_total = 1 - (ordinal & 1)
        self.highest_frequency = frequency


class PostingIndex:
    """Implements `ports.Postings`; pages come in by ascending ordinal.

    Args:
        set_budget_bytes: memory for sets of pages beside the postings; the least recently used go first.
    """

    def __init__(self, *, set_budget_bytes: int = SET_BUDGET_BYTES) -> None:
        self._set_budget_bytes = set_budget_bytes
        self._entries: dict[str, _TermEntry | int] = {}
        self._lengths = array("I")
        self._total_length = 0
        self._filled_pages = 0
        # Term -> (postings taken in, sets); least recently used first.
        self._block_sets: dict[str, tuple[int, tuple[int, int, int]]] = {}
        self._page_sets: dict[str, tuple[int, tuple[int, int]]] = {}
        self._length_sets: dict[int, int] = {}
        self._length_classes: list[tuple[int, int]] = []
        self._pages_classed = 0

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
        terms = _capped(terms)
        entries = self._entries
        packed_ordinal = ordinal << _FREQUENCY_BITS
        for term, frequency in terms.items():
            entry = entries.get(term)
            if entry is None:
                entries[term] = packed_ordinal | frequency
                continue
            if isinstance(entry, int):
                entry = entries[term] = _TermEntry(entry)
            ordinals = entry.ordinals
            if is_user_page:
                entry.user_total += 1
                entry.block_total += 1
            elif ordinals[-1] != ordinal - 1:
                entry.block_total += 1
            ordinals.append(ordinal)
            entry.frequencies.append(frequency)
            if frequency > 1 and frequency > entry.highest_frequency:
                entry.highest_frequency = frequency
        page_length = sum(terms.values())
        if ordinal > len(lengths):
            lengths.frombytes(bytes(lengths.itemsize * (ordinal - len(lengths))))
        lengths.append(page_length)
        if page_length:
            self._total_length += page_length
            self._filled_pages += 1

    def _entry(self, term: str) -> _TermEntry | None:
        """Postings of a term; a posting that is alone stays packed in the index."""
        entry = self._entries.get(term)
        return _TermEntry(entry) if isinstance(entry, int) else entry

    def document_frequency(self, term: str) -> int:
        """Turns that hold ``term`` on either side; 0 when never seen. O(1)."""
        entry = self._entries.get(term)
        if entry is None or isinstance(entry, int):
            return 0 if entry is None else 1
        return entry.block_total

    def user_frequency(self, term: str) -> int:
        """Turns whose user text holds ``term``. O(1)."""
        entry = self._entry(term)
        return entry.user_total if entry is not None else 0

    def ordinals(self, term: str) -> array[int]:
        """Ascending ordinals of the pages that hold ``term``; empty when never seen."""
        entry = self._entry(term)
        return entry.ordinals if entry is not None else _NO_ORDINALS

    def frequencies(self, term: str) -> array[int]:
        """Occurrences (1..255) beside each of ``ordinals(term)``."""
        entry = self._entry(term)
        return entry.frequencies if entry is not None else _NO_FREQUENCIES

    def highest_frequency(self, term: str) -> int:
        """Largest of ``frequencies(term)``; 1 when never seen. O(1)."""
        entry = self._entry(term)
        return entry.highest_frequency if entry is not None else 1

    @property
    def page_lengths(self) -> Sequence[int]:
        """Ordinal -> `page_length`; shorter than two a turn while the last turn lacks its answer."""
        return self._lengths

    @property
    def average_length(self) -> float:
        """Mean `page_length` of the pages that hold a term; 1.0 when none does. O(1)."""
        return self._total_length / self._filled_pages if self._filled_pages else 1.0

    def block_sets(self, term: str) -> tuple[int, int, int]:
        """Turns that hold ``term`` on both sides, in the user's text, in the assistant's (see the port)."""
        entry = self._entry(term)
        if entry is None:
            return 0, 0, 0
        ordinals = entry.ordinals
        cached = self._block_sets
        taken, sets = cached.pop(term, (0, (0, 0, 0)))
        if taken < len(ordinals):
            sets = _with_blocks(sets, ordinals[taken:])
            taken = len(ordinals)
        cached[term] = (taken, sets)
        if 3 * len(cached) * (len(self._lengths) >> 4) > self._set_budget_bytes:
            del cached[next(iter(cached))]
        return sets

    def page_sets(self, term: str) -> tuple[int, int]:
        """Pages that hold ``term`` at least twice, and at least once (see the port)."""
        entry = self._entry(term)
        if entry is None:
            return 0, 0
        ordinals = entry.ordinals
        cached = self._page_sets
        taken, sets = cached.pop(term, (0, (0, 0)))
        if taken < len(ordinals):
            sets = _with_pages(sets, ordinals[taken:], entry.frequencies[taken:])
            taken = len(ordinals)
        cached[term] = (taken, sets)
        if 2 * len(cached) * (len(self._lengths) >> 3) > self._set_budget_bytes:
            del cached[next(iter(cached))]
        return sets

    def length_classes(self) -> Sequence[tuple[int, int]]:
        """The pages that hold a term by length: (shortest length, set of ordinals), short ones first."""
        lengths = self._lengths
        if self._pages_classed < len(lengths):
            base = self._pages_classed
            fresh: dict[int, list[int]] = {}
            for place, length in enumerate(lengths[base:]):
                if length:
                    shift = max(0, length.bit_length() - _EXACT_LENGTH_BITS)
                    fresh.setdefault(length >> shift << shift, []).append(place)
            for shortest, places in fresh.items():
                members = bits_from(places, len(lengths) - base) << base
                self._length_sets[shortest] = self._length_sets.get(shortest, 0) | members
            self._pages_classed = len(lengths)
            self._length_classes = sorted(self._length_sets.items())
        return self._length_classes

    def page_length(self, ordinal: int) -> int:
        """Sum of the occurrences of the page's terms; 0 for an empty page and one never added."""
        return self._lengths[ordinal] if 0 <= ordinal < len(self._lengths) else 0


def _capped(terms: Mapping[str, int]) -> Mapping[str, int]:
    """Terms with at most 255 occurrences each."""
    if not terms or max(terms.values()) <= MAX_FREQUENCY:
        return terms
    return {term: min(occurrences, MAX_FREQUENCY) for term, occurrences in terms.items()}


def _with_blocks(sets: tuple[int, int, int], ordinals: Sequence[int]) -> tuple[int, int, int]:
    """Block sets (both sides, user, assistant) with further postings. O(postings + size / 8)."""
    first_octet = ordinals[0] >> 4
    octets = (ordinals[-1] >> 4) - first_octet + 1
    sides = (bytearray(octets), bytearray(octets))
    for ordinal in ordinals:
        sides[ordinal & 1][(ordinal >> 4) - first_octet] |= _BLOCK_BIT[ordinal & 15]
    shift = 8 * first_octet
    users = sets[1] | int.from_bytes(sides[0], "little") << shift
    assistants = sets[2] | int.from_bytes(sides[1], "little") << shift
    return users & assistants, users, assistants


def _with_pages(sets: tuple[int, int], ordinals: Sequence[int], frequencies: Sequence[int]) -> tuple[int, int]:
    """Page sets (repeating, all) with further postings. O(postings + size / 8)."""
    first_octet = ordinals[0] >> 3
    octets = (ordinals[-1] >> 3) - first_octet + 1
    every, repeating = bytearray(octets), bytearray(octets)
    for ordinal, frequency in zip(ordinals, frequencies, strict=True):
        every[(ordinal >> 3) - first_octet] |= 1 << (ordinal & 7)
        if frequency > 1:
            repeating[(ordinal >> 3) - first_octet] |= 1 << (ordinal & 7)
    shift = 8 * first_octet
    return (
        sets[0] | int.from_bytes(repeating, "little") << shift,
        sets[1] | int.from_bytes(every, "little") << shift,
    )
