"""MemoryStore: pages of one process, gone when it ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from context_gatekeeper.core.handles import HANDLE_KEY_BYTES, digest_in_handle, parse_handle
from context_gatekeeper.errors import StoreError
from context_gatekeeper.ports import Postings
from context_gatekeeper.stores.drafts import (
    check_places,
    check_setting,
    checked_drafts,
    deleted_page,
    first_page_id,
    page_of,
)
from context_gatekeeper.stores.handle_index import HandleIndex
from context_gatekeeper.stores.names import check_name, check_place, unknown_page
from context_gatekeeper.stores.postings import PostingIndex
from context_gatekeeper.types import Page, PageDraft, PageId

__all__ = ["MemoryStore"]


@dataclass(slots=True)
class _Session:
    """What is kept of one session; the place in ``pages`` is the page's ordinal."""

    session_id: int
    pages: list[Page] = field(default_factory=list)
    index: PostingIndex = field(default_factory=PostingIndex)
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Pool:
    """What is kept of one pool; sessions in the order of their first page or setting."""

    sessions: dict[str, _Session] = field(default_factory=dict)
    pages: dict[PageId, Page] = field(default_factory=dict)
    appends: dict[str, tuple[PageId, ...]] = field(default_factory=dict)
    handles: HandleIndex = field(default_factory=lambda: HandleIndex(os.urandom(HANDLE_KEY_BYTES)))


class MemoryStore:
    """`PageStore` in memory; one lock makes it safe for several threads.

    An index that `postings` handed out is read without the lock while other threads append;
    it never shrinks, so that a reader sees at worst a page that came in meanwhile.
    """

    def __init__(self) -> None:
        self._pools: dict[str, _Pool] = {}
        self._last_session_id = 0
        self._lock = threading.Lock()
        self._is_closed = False

    def append(
        self, pool: str, session: str, drafts: Sequence[PageDraft], *, idempotency_key: str | None = None
    ) -> tuple[Page, ...]:
        """See `PageStore.append`."""
        check_place(pool, session)
        self._check_open()
        if idempotency_key is not None:
            check_name("idempotency key", idempotency_key)
        checked = checked_drafts(drafts)
        with self._lock:
            owner = self._pools.get(pool, _Pool())
            if idempotency_key is not None and idempotency_key in owner.appends:
                return tuple(owner.pages[page_id] for page_id in owner.appends[idempotency_key])
            check_places(session, checked, len(self._session(pool, session).pages))
            if not checked:
                return ()
            # Nothing fails from here on: all or none.
            owner, here = self._kept(pool, session)
            first_id = first_page_id(here.session_id)
            pages = tuple(page_of(draft, PageId(first_id + draft.ordinal), pool, session) for draft in checked)
            for page in pages:
                owner.pages[page.page_id] = page
                here.index.add_page(page.ordinal, page.terms)
            # Last, so that a reader who counts a page also finds it in the index.
            here.pages.extend(pages)
            if idempotency_key is not None:
                owner.appends[idempotency_key] = tuple(page.page_id for page in pages)
            return pages

    def get(self, pool: str, page_ids: Sequence[PageId]) -> tuple[Page, ...]:
        """See `PageStore.get`."""
        check_name("pool", pool)
        self._check_open()
        known = self._pools.get(pool, _Pool()).pages
        found = []
        for page_id in page_ids:
            page = known.get(page_id)
            if page is None:
                raise unknown_page(pool, page_id)
            found.append(page)
        return tuple(found)

    def scan(self, pool: str, session: str, *, from_ordinal: int = 0) -> Iterator[Page]:
        """See `PageStore.scan`."""
        check_place(pool, session)
        self._check_open()
        pages = self._session(pool, session).pages
        return (pages[ordinal] for ordinal in range(max(0, from_ordinal), len(pages)))

    def page_count(self, pool: str, session: str) -> int:
        """See `PageStore.page_count`."""
        check_place(pool, session)
        self._check_open()
        return len(self._session(pool, session).pages)

    def postings(self, pool: str, session: str) -> Postings:
        """See `PageStore.postings`."""
        check_place(pool, session)
        self._check_open()
        return self._session(pool, session).index

    def sessions(self, pool: str) -> tuple[str, ...]:
        """See `PageStore.sessions`."""
        check_name("pool", pool)
        self._check_open()
        with self._lock:
            return tuple(self._pools.get(pool, _Pool()).sessions)

    def set_setting(self, pool: str, session: str, key: str, value: str | None) -> None:
        """See `PageStore.set_setting`."""
        check_place(pool, session)
        self._check_open()
        check_setting(key, value)
        with self._lock:
            if value is None:
                self._session(pool, session).settings.pop(key, None)
            else:
                self._kept(pool, session)[1].settings[key] = value

    def settings(self, pool: str, session: str) -> Mapping[str, str]:
        """See `PageStore.settings`."""
        check_place(pool, session)
        self._check_open()
        with self._lock:
            return dict(self._session(pool, session).settings)

    def delete_pages(self, pool: str, page_ids: Sequence[PageId]) -> tuple[str, ...]:
        """See `PageStore.delete_pages`. O(pages of the pool)."""
        with self._lock:
            return self._delete(pool, [page.page_id for page in self.get(pool, page_ids)])

    def delete_session(self, pool: str, session: str) -> tuple[str, ...]:
        """See `PageStore.delete_session`. O(pages of the pool)."""
        check_place(pool, session)
        self._check_open()
        with self._lock:
            here = self._session(pool, session)
            here.settings.clear()
            return self._delete(pool, [page.page_id for page in here.pages])

    def handle_key(self, pool: str) -> bytes:
        """See `PageStore.handle_key`."""
        check_name("pool", pool)
        self._check_open()
        with self._lock:
            return self._pools.setdefault(pool, _Pool()).handles.key

    def page_of_handle(self, pool: str, handle: str) -> PageId | None:
        """See `PageStore.page_of_handle`."""
        check_name("pool", pool)
        self._check_open()
        mention = parse_handle(handle)
        with self._lock:
            owner = self._pools.get(pool)
            if owner is None or mention is None:
                return None
            for here in owner.sessions.values():
                owner.handles.take_in(here.session_id, len(here.pages))
            return owner.handles.find(digest_in_handle(mention.handle))

    def close(self) -> None:
        """See `PageStore.close`."""
        self._is_closed = True

    def _delete(self, pool: str, page_ids: Collection[PageId]) -> tuple[str, ...]:
        """Put markers in the place of known pages."""
        owner = self._pools.get(pool, _Pool())
        deleted = [owner.pages[page_id] for page_id in page_ids]
        for page in deleted:
            marker = deleted_page(page.page_id, pool, page.session, page.kind)
            owner.pages[page.page_id] = owner.sessions[page.session].pages[page.ordinal] = marker
        for name in {page.session for page in deleted}:
            here = owner.sessions[name]
            index = PostingIndex()
            for page in here.pages:
                index.add_page(page.ordinal, page.terms)
            here.index = index
        gone = {page.sha256 for page in deleted} - {page.sha256 for page in owner.pages.values()}
        return tuple(sorted(gone))

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError("memory store", "it is closed", "open a new one")

    def _session(self, pool: str, session: str) -> _Session:
        """The session, or an empty one that nothing remembers."""
        return self._pools.get(pool, _Pool()).sessions.get(session) or _Session(0)

    def _kept(self, pool: str, session: str) -> tuple[_Pool, _Session]:
        """The pool and the session, kept from now on."""
        owner = self._pools.setdefault(pool, _Pool())
        here = owner.sessions.get(session)
        if here is None:
            self._last_session_id += 1
            here = owner.sessions[session] = _Session(self._last_session_id)
        return owner, here
