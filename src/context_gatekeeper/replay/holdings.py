"""Holdings: which slices a policy's window has whole from request to request, of which task, and when each left."""

from __future__ import annotations

from collections.abc import Iterable

from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.engine.window import Entry, Window

__all__ = ["Holdings"]


class Holdings:
    """Follows a window by looking at it: O(what was appended since the last look), O(window) when it was laid anew.

    Args:
        log: the session.
        window: what is looked at. It only grows at its tail, or gets a new list of entries (`Window.replace_all`).
    """

    def __init__(self, log: SessionLog, window: Window) -> None:
        self._log = log
        self._window = window
        self._seen: list[Entry] = []
        self._count = 0
        """Of the entries of the list that was seen last, those taken in."""
        self._whole: set[int] = set()
        self._tokens: dict[int, int] = {}
        """Turn -> tokens of its whole entries."""
        self._piece_of: dict[int, int] = {}
        """Turn -> a slice of it."""
        self._left_at: dict[int, int] = {}

    def look(self) -> None:
        """Take in what is sent with the next request, or with the extra call that a fault makes."""
        entries = self._window.entries
        if entries is self._seen:
            self._take(entries[self._count :])
        else:
            before, self._whole, self._tokens = self._whole, set(), {}
            self._take(entries)
            self._left_at.update(dict.fromkeys(before - self._whole, self._log.calls))
        self._seen, self._count = entries, len(entries)

    def left_at(self, piece: int) -> int | None:
        """Call before which the slice, sent whole until then, was left out, the last time; None for never."""
        return self._left_at.get(piece)

    def other_task_tokens(self) -> int:
        """Tokens of whole entries that belong to other tasks than the running one. O(turns)."""
        log = self._log
        return sum(
            tokens for turn, tokens in self._tokens.items() if log.is_of_other_task(log.slices[self._piece_of[turn]])
        )

    def _take(self, entries: Iterable[Entry]) -> None:
        log, tokens = self._log, self._tokens
        for entry in entries:
            if entry.is_whole:
                piece = entry.pieces[0]
                turn = log.segments[log.slices[piece].segment].turn
                self._whole.add(piece)
                self._piece_of[turn] = piece
                tokens[turn] = tokens.get(turn, 0) + entry.tokens
