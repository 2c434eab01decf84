"""Seams of the system: what the engine needs from the outside, as Protocols.

Every implementation of a port passes the same conformance suite (``tests/conformance``).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from context_gatekeeper.types import Page, PageDraft, PageId

__all__ = ["PageStore", "Postings", "TokenCounter"]


class TokenCounter(Protocol):
    """Counts tokens of a text."""

    def __call__(self, text: str, /) -> int:
        """Tokens of ``text``, >= 0; 0 for the empty text. Never raises for a ``str``."""
        ...


class Postings(Protocol):
    """Which pages of one session hold an anchor. Ordinals are those of ``types``.

    Read-only for callers; it grows when pages are appended.
    """

    @property
    def block_count(self) -> int:
        """Turns indexed so far."""
        ...

    def document_frequency(self, term: str) -> int:
        """Turns that hold ``term`` on either side; 0 when never seen. O(1)."""
        ...

    def user_frequency(self, term: str) -> int:
        """Turns whose user text holds ``term``. O(1)."""
        ...

    def ordinals(self, term: str) -> array[int]:
        """Ascending ordinals (``array('I')``) of the pages that hold ``term``; empty when never seen."""
        ...

    def frequencies(self, term: str) -> array[int]:
        """Occurrences (``array('B')``, 1..255) beside each of ``ordinals(term)``."""
        ...

    def highest_frequency(self, term: str) -> int:
        """Largest of ``frequencies(term)``; 1 when never seen. O(1)."""
        ...

    def page_length(self, ordinal: int) -> int:
        """Sum of the occurrences of the page's terms; 0 for an empty page."""
        ...

    @property
    def page_lengths(self) -> Sequence[int]:
        """Ordinal -> ``page_length``, for every ordinal that is in ``ordinals`` of any term."""
        ...

    @property
    def average_length(self) -> float:
        """Mean length of the pages that hold a term; 1.0 when none does. O(1)."""
        ...

    def block_sets(self, term: str) -> tuple[int, int, int]:
        """Turns that hold ``term`` on both sides, in the user's text, in the assistant's text.

        Sets are big integers: bit n is set when turn n is a member; 0 when there is none.
        Costs the postings added since it was last asked for.
        """
        ...

    def page_sets(self, term: str) -> tuple[int, int]:
        """Pages that hold ``term`` at least twice, and at least once: sets of ordinals as in ``block_sets``."""
        ...

    def length_classes(self) -> Sequence[tuple[int, int]]:
        """The pages that hold a term, split by length into disjoint classes.

        (shortest length that belongs to the class, set of ordinals as in ``block_sets``), short
        classes first.
        """
        ...


@runtime_checkable
class PageStore(Protocol):
    """Keeps pages. One store holds many pools, one pool many sessions.

    Appends are atomic: all drafts or none, and durable once the call returns.
    A turn's two drafts are appended together. Reads see every acknowledged append,
    of this process or of another.
    """

    def append(
        self, pool: str, session: str, drafts: Sequence[PageDraft], *, idempotency_key: str | None = None
    ) -> tuple[Page, ...]:
        """Store ``drafts`` in this order and return them as pages.

        Texts are kept as they are: whoever appends redacts them before.
        Ordinals are consecutive: the first page of a session has ordinal 0, every draft the next one
        behind the session's last page; a turn without an answer still has its assistant page, with "".
        A repeated ``idempotency_key`` (unique in the pool) stores nothing and returns the
        pages of the first call. Raises StoreError; ConfigError when the session already
        holds a page with the same ordinal (another writer was first).
        """
        ...

    def get(self, pool: str, page_ids: Sequence[PageId]) -> tuple[Page, ...]:
        """The pages in the order asked for. Raises PageNotFoundError for the first unknown id."""
        ...

    def scan(self, pool: str, session: str, *, from_ordinal: int = 0) -> Iterator[Page]:
        """The session's pages with ``ordinal >= from_ordinal`` in ascending ordinal order."""
        ...

    def page_count(self, pool: str, session: str) -> int:
        """Pages of the session, 0 for one never written."""
        ...

    def postings(self, pool: str, session: str) -> Postings:
        """The session's inverted index, caught up with every acknowledged append and deletion.

        An index that was handed out before a deletion still tells of the deleted pages: ask again.
        """
        ...

    def sessions(self, pool: str) -> tuple[str, ...]:
        """Names of the pool's sessions in the order of their first page or setting."""
        ...

    def set_setting(self, pool: str, session: str, key: str, value: str | None) -> None:
        """Keep one small named text of a session (a constraint); ``None`` removes it."""
        ...

    def settings(self, pool: str, session: str) -> Mapping[str, str]:
        """The session's settings in the order in which their keys were first set."""
        ...

    def delete_pages(self, pool: str, page_ids: Sequence[PageId]) -> tuple[str, ...]:
        """Delete pages for good: with `delete_session` the only way in which anything is ever lost.

        A marker stays in the place of each, with its ordinal, id and kind, the text ``""``, no terms and
        ``labels.deleted``: `scan`, `get` and idempotency keys answer with it, and the id is not given again.
        Text, terms, labels, speaker, time and, where no other page has the same text, its original are
        gone from the store's files when the call returns; a call that was interrupted is made again.
        Names of sessions and idempotency keys stay.

        Returns the ``Page.sha256`` that no page of the pool has any more, ascending, so that
        whatever is kept of them elsewhere can go too. Raises PageNotFoundError for the first unknown
        id, StoreError; nothing was deleted then, unless the error says so.
        """
        ...

    def delete_session(self, pool: str, session: str) -> tuple[str, ...]:
        """Delete all pages and settings of a session, as `delete_pages` does; a session never written is no error.

        Its name and its markers stay, so that reading it in again does not bring it back.
        """
        ...

    def handle_key(self, pool: str) -> bytes:
        """The 32 random bytes that make the pool's handles; made once, the same for ever (``core.handles``)."""
        ...

    def page_of_handle(self, pool: str, handle: str) -> PageId | None:
        """The page of a handle, whose range, if any, does not count; None for any text that is no page's handle.

        A caller who checks access answers for a forbidden page as for this None.
        """
        ...

    def close(self) -> None:
        """Release files; a second call does nothing."""
        ...
