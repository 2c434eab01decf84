"""MemoryStore: pages of one process, gone when it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from context_gatekeeper.errors import StoreError
from context_gatekeeper.ports import Postings
from context_gatekeeper.stores.names import check_name, taken_ordinal, text_digest, unknown_page
from context_gatekeeper.stores.postings import PostingIndex
from context_gatekeeper.types import Page, PageDraft, PageId

__all__ = ["MemoryStore"]


@dataclass(slots=True)
class _Session:
    pages: dict[int, Page] = field(default_factory=dict)
    index: PostingIndex = field(default_factory=PostingIndex)
    settings: dict[str, str] = field(default_factory=dict)


class MemoryStore:
    """`PageStore` in memory; safe to use from several threads."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, str], _Session] = {}
        self._by_id: dict[tuple[str, PageId], Page] = {}
        self._by_key: dict[tuple[str, str], tuple[Page, ...]] = {}
        self._next_id = 1
        self._lock = threading.RLock()
        self._closed = False

    def append(
        self, pool: str, session: str, drafts: Sequence[PageDraft], *, idempotency_key: str | None = None
    ) -> tuple[Page, ...]:
        """See `PageStore.append`."""
        with self._lock:
            here = self._session(pool, session)
            if idempotency_key is not None and (pool, idempotency_key) in self._by_key:
                return self._by_key[pool, idempotency_key]
            ordinals = [draft.ordinal for draft in drafts]
            for ordinal in ordinals:
                if ordinal in here.pages or ordinals.count(ordinal) > 1:
                    raise taken_ordinal(session, ordinal)
            pages = []
            for draft in drafts:
                page = Page(
                    PageId(self._next_id),
                    pool,
                    session,
                    draft.turn_id,
                    draft.role,
                    draft.text,
                    dict(draft.terms),
                    draft.derived,
                    draft.time,
                    draft.speaker,
                    draft.kind,
                    text_digest(draft.text),
                )
                self._next_id += 1
                here.pages[draft.ordinal] = page
                self._by_id[pool, page.page_id] = page
                pages.append(page)
            for draft in sorted(drafts, key=lambda one: one.ordinal):
                here.index.add_page(draft.ordinal, draft.terms)
            result = tuple(pages)
            if idempotency_key is not None:
                self._by_key[pool, idempotency_key] = result
            return result

    def get(self, pool: str, page_ids: Sequence[PageId]) -> tuple[Page, ...]:
        """See `PageStore.get`."""
        with self._lock:
            pages = []
            for page_id in page_ids:
                page = self._by_id.get((pool, page_id))
                if page is None:
                    raise unknown_page(pool, page_id)
                pages.append(page)
            return tuple(pages)

    def scan(self, pool: str, session: str, *, from_ordinal: int = 0) -> Iterator[Page]:
        """See `PageStore.scan`."""
        with self._lock:
            pages = self._session(pool, session).pages
            ordinals = sorted(ordinal for ordinal in pages if ordinal >= from_ordinal)
        for ordinal in ordinals:
            yield pages[ordinal]

    def page_count(self, pool: str, session: str) -> int:
        """See `PageStore.page_count`."""
        known = self._sessions.get((pool, session))
        return len(known.pages) if known is not None else 0

    def postings(self, pool: str, session: str) -> Postings:
        """See `PageStore.postings`."""
        with self._lock:
            return self._session(pool, session).index

    def sessions(self, pool: str) -> tuple[str, ...]:
        """See `PageStore.sessions`."""
        return tuple(
            session
            for (owner, session), here in self._sessions.items()
            if owner == pool and (here.pages or here.settings)
        )

    def set_setting(self, pool: str, session: str, key: str, value: str | None) -> None:
        """See `PageStore.set_setting`."""
        with self._lock:
            settings = self._session(pool, session).settings
            if value is None:
                settings.pop(key, None)
            else:
                settings[key] = value

    def settings(self, pool: str, session: str) -> Mapping[str, str]:
        """See `PageStore.settings`."""
        with self._lock:
            return dict(self._session(pool, session).settings)

    def close(self) -> None:
        """See `PageStore.close`."""
        self._closed = True

    def _session(self, pool: str, session: str) -> _Session:
        if self._closed:
            raise StoreError("memory store", "it is closed", "open a new one")
        known = self._sessions.get((pool, session))
        if known is None:
            check_name("pool", pool)
            check_name("session", session)
            known = self._sessions[pool, session] = _Session()
        return known

