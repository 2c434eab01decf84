"""Window: what is in the next request, entry by entry, and which evidence units can be read there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from context_gatekeeper.core.evidence import token_halves
from context_gatekeeper.engine.session_log import SessionLog, UnitKind

__all__ = ["Entry", "EntryForm", "Window"]


class EntryForm(StrEnum):
    """How a slice, or what is left of it, stands in the window."""

    RAW = "raw"
    RECALLED = "recalled"
    """Whole again, at the tail, after a fault."""
    REFERENCE = "reference"
    """New lines, and references to those that stand in the window already."""
    DIGEST = "digest"
    """A handle and some of its lines, verbatim."""
    RESIDENT = "resident"
    """Goals, pins and constraints: always there."""
    HEAD = "head"
    NOTE = "note"
    """Text of ours: a summary, a placeholder."""


@dataclass(slots=True)
class Entry:
    """One stretch of the request. Never changed: another text is another entry."""

    number: int
    """Identity: equal numbers mean equal bytes."""
    form: EntryForm
    tokens: int
    pieces: tuple[int, ...] = ()
    """Numbers of the slices it stands for: one when it is whole, a run of neighbours in a digest, none in a note."""
    units: tuple[int, ...] = ()
    """Units that can be read in it, for a form that is not whole."""
    words: tuple[int, ...] = ()
    """Units that stand in it as bare words, without their line."""
    text: str = ""
    """What stands there, where that is not the slice's own text."""

    @property
    def is_whole(self) -> bool:
        """Whether the slice's own text stands there."""
        return self.form in (EntryForm.RAW, EntryForm.RECALLED)


class Window:
    """Entries in the order in which they are sent, behind the resident part."""

    def __init__(self, log: SessionLog) -> None:
        self.entries: list[Entry] = []
        self.tokens = 0
        """Of the entries; the resident part is not counted."""
        self._log = log
        self._whole: set[int] = set()
        self._holders: Counter[int] = Counter()
        """Unit -> slices of ``_whole`` that hold it."""
        self._shown: set[int] = set()
        self._words: set[int] = set()
        self._last = 0

    def make(
        self,
        form: EntryForm,
        tokens: int,
        pieces: Iterable[int] = (),
        units: Iterable[int] = (),
        words: Iterable[int] = (),
        text: str = "",
    ) -> Entry:
        """A new entry, not in the window yet."""
        self._last += 1
        return Entry(self._last, form, tokens, tuple(pieces), tuple(units), tuple(words), text)

    def draft(self, entries: Iterable[Entry]) -> Window:
        """Another window with some of the entries: what becomes of it changes nothing here until it is taken over."""
        draft = Window(self._log)
        draft._whole, draft._holders, draft._last = self._whole.copy(), self._holders.copy(), self._last
        draft.replace_all(entries)
        return draft

    def take_over(self, draft: Window) -> None:
        """Become what was made of a draft. Nothing may have come in meanwhile."""
        self.entries, self.tokens, self._last = draft.entries, draft.tokens, draft._last
        self._whole, self._holders = draft._whole, draft._holders
        self._shown, self._words = draft._shown, draft._words

    def append(self, entry: Entry) -> None:
        """Put an entry at the tail."""
        self.entries.append(entry)
        if entry.is_whole:
            for piece in entry.pieces:
                if piece not in self._whole:
                    self._holders.update(self._log.slices[piece].units)
        self._count(entry)

    def replace_all(self, entries: Iterable[Entry]) -> None:
        """Lay the window anew. O(entries + units of what comes or goes)."""
        self.entries = list(entries)
        self.tokens = 0
        before, self._whole = self._whole, set()
        self._shown.clear()
        self._words.clear()
        for entry in self.entries:
            self._count(entry)
        slices, holders = self._log.slices, self._holders
        for piece in before - self._whole:
            for unit in slices[piece].units:
                if holders[unit] > 1:
                    holders[unit] -= 1
                else:
                    del holders[unit]
        for piece in self._whole - before:
            holders.update(slices[piece].units)

    def holds_piece(self, piece: int) -> bool:
        """Whether the slice is there whole."""
        return piece in self._whole

    def holds(self, unit: int, *, by_words: bool = False) -> bool:
        """Whether the unit can be read in the window.

        In a whole slice, in a line or path of a digest or head, or composed of two tokens that can.
        ``by_words``: bare words of a digest count too.
        """
        if self._stands(unit, by_words):
            return True
        log = self._log
        if log.units[unit].kind is UnitKind.LINE:
            return False
        for left, right in token_halves(log.name_of(unit)):
            halves = (log.unit_id(left), log.unit_id(right))
            if all(half is not None and self._stands(half, by_words) for half in halves):
                return True
        return False

    def whole_holders(self, unit: int) -> int:
        """How many whole slices hold the unit. O(1)."""
        return self._holders[unit]

    def _stands(self, unit: int, by_words: bool = False) -> bool:
        return self._holders[unit] > 0 or unit in self._shown or (by_words and unit in self._words)

    def _count(self, entry: Entry) -> None:
        self.tokens += entry.tokens
        if entry.is_whole:
            self._whole.update(entry.pieces)
        self._shown.update(entry.units)
        self._words.update(entry.words)
