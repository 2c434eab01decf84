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

    def __call__(self, text: str) -> int:
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

    def page_length(self, ordinal: int) -> int:
        """Sum of the occurrences of the page's terms; 0 for an empty page."""
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
        """The session's inverted index, caught up with every acknowledged append."""
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

    def close(self) -> None:
        """Release files; a second call does nothing."""
        ...
