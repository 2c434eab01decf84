"""SqliteStore: pages of many sessions and processes in one SQLite file.

Write-ahead log, ``synchronous=FULL``: an append that returned survives a power failure. One
transaction holds an append's pages, terms, counts and key. Two connections, each guarded by
a lock, serve all threads of a process: one appends, one reads and never waits for a writer.
A store belongs to the process that opened it; after a fork the child opens its own.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from context_gatekeeper.core.handles import digest_in_handle, parse_handle
from context_gatekeeper.errors import ConfigError, StoreError
from context_gatekeeper.ports import Postings
from context_gatekeeper.stores import rows
from context_gatekeeper.stores.drafts import check_places, check_setting, checked_drafts
from context_gatekeeper.stores.handle_index import HandleIndex
from context_gatekeeper.stores.names import check_name, check_place
from context_gatekeeper.stores.postings import PostingIndex
from context_gatekeeper.stores.sqlite_deletion import blank_pages, find_places
from context_gatekeeper.stores.sqlite_file import (
    connect_reading,
    connect_writing,
    file_identity,
    prepare_file,
    rewrite_file,
    store_errors,
)
from context_gatekeeper.stores.sqlite_statements import (
    SessionRow,
    add_append,
    add_pages,
    add_pool,
    add_session,
    check_catalogue,
    find_append,
    find_page,
    find_pool,
    find_rows,
    find_session,
    list_session_rows,
    list_sessions,
    read_settings,
    write_settings,
)
from context_gatekeeper.types import Page, PageDraft, PageId

__all__ = ["BUSY_TIMEOUT_SECONDS", "SqliteStore"]

BUSY_TIMEOUT_SECONDS = 10.0
"""How long an append waits for another process: longer than any append of ours takes."""
_MAX_BUSY_TIMEOUT_SECONDS = 3600.0
_ROWS_AT_ONCE = 256
"""Pages read in one go: a scan holds the lock briefly and keeps no snapshot open."""
_INDEXES_KEPT = 64
"""Sessions whose index stays in memory (about 0.5 KB a turn); others are loaded again when asked for."""


class SqliteStore:
    """`PageStore` in one SQLite file.

    Args:
        path: the file; made as 0600, with its missing folders as 0700, when it does not exist.
        busy_timeout_seconds: how long to wait for another process's lock, 0 to 3600.

    Raises:
        ConfigError: path or timeout cannot be used. StoreDamagedError: the file is no page store.
        StoreVersionError: of a newer release. StoreBusyError: locked for too long. StoreError:
        it cannot be made, read or written. The content stays as it was in each case.
    """

    def __init__(self, path: str | os.PathLike[str], *, busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS) -> None:
        is_number = isinstance(busy_timeout_seconds, int | float)
        if not is_number or not 0 <= busy_timeout_seconds <= _MAX_BUSY_TIMEOUT_SECONDS:
            raise ConfigError(
                f"busy_timeout_seconds {busy_timeout_seconds!a}",
                "it is no number of seconds in range",
                f"pass 0 to {_MAX_BUSY_TIMEOUT_SECONDS:.0f}",
            )
        self._path = os.fsdecode(path)
        self._owner = os.getpid()
        self._is_closed = False
        self._is_catalogue_checked = False
        self._read_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._index_lock = threading.Lock()
        self._indexes: OrderedDict[tuple[str, str], tuple[int, PostingIndex]] = OrderedDict()
        """(Pool, session) -> (deletions that it knows of, index); least recently used first."""
        self._handles: dict[str, HandleIndex] = {}
        prepare_file(self._path, busy_timeout_seconds)
        with store_errors(self._path, "opened"):
            self._writer = connect_writing(self._path, busy_timeout_seconds)
            self._reader = connect_reading(self._path, busy_timeout_seconds)
        self._place = Path(self._path).absolute()  # the working folder may change
        self._file = file_identity(self._place)

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    def append(
        self, pool: str, session: str, drafts: Sequence[PageDraft], *, idempotency_key: str | None = None
    ) -> tuple[Page, ...]:
        """See `PageStore.append`."""
        check_place(pool, session)
        if idempotency_key is not None:
            check_name("idempotency key", idempotency_key)
        checked = checked_drafts(drafts)
        with self._writing() as connection:
            if idempotency_key is not None:
                earlier = find_append(connection, self._path, pool, idempotency_key)
                if earlier is not None:
                    return earlier
            here = self._find_session(connection, pool, session)
            check_places(session, checked, here.page_count if here else 0)
            if not checked:
                return ()
            here = here or add_session(connection, self._path, pool, session)
            pages = add_pages(connection, here, pool, session, checked)
            if idempotency_key is not None:
                add_append(connection, here, pool, idempotency_key, pages)
        self._index_appended(pool, session, pages)
        return pages

    def get(self, pool: str, page_ids: Sequence[PageId]) -> tuple[Page, ...]:
        """See `PageStore.get`."""
        check_name("pool", pool)
        with self._reading() as connection:
            return tuple(find_page(connection, self._path, pool, page_id) for page_id in page_ids)

    def scan(self, pool: str, session: str, *, from_ordinal: int = 0) -> Iterator[Page]:
        """See `PageStore.scan`. A damaged page raises when its turn comes; scan on from the next ordinal."""
        here = self._session(pool, session)
        return (
            rows.page_from_row(self._path, pool, session, row)
            for row in self._rows(here, session, from_ordinal, rows.PAGE_ROW)
        )

    def page_count(self, pool: str, session: str) -> int:
        """See `PageStore.page_count`."""
        here = self._session(pool, session)
        return here.page_count if here else 0

    def postings(self, pool: str, session: str) -> Postings:
        """See `PageStore.postings`. Read without a lock while other threads append; it never shrinks."""
        self._check_usable()  # before the lock, which a fork may have copied as taken
        with self._index_lock:
            here = self._session(pool, session)
            deletions = here.deletions if here else 0
            known_deletions, index = self._indexes.get((pool, session), (-1, PostingIndex()))
            if known_deletions != deletions:
                index = PostingIndex()
                self._indexes[pool, session] = (deletions, index)
            self._indexes.move_to_end((pool, session))
            if len(self._indexes) > _INDEXES_KEPT:
                self._indexes.popitem(last=False)
            if here and index.page_count < here.page_count:
                for row in self._rows(here, session, index.page_count, rows.TERMS_ROW):
                    terms_row = rows.terms_from_row(self._path, pool, session, row)
                    index.add_page(terms_row.ordinal, terms_row.terms)
            return index

    def sessions(self, pool: str) -> tuple[str, ...]:
        """See `PageStore.sessions`."""
        check_name("pool", pool)
        with self._reading() as connection:
            self._check_catalogue(connection)
            return list_sessions(connection, self._path, pool)

    def set_setting(self, pool: str, session: str, key: str, value: str | None) -> None:
        """See `PageStore.set_setting`."""
        check_place(pool, session)
        check_setting(key, value)
        with self._writing() as connection:
            here = self._find_session(connection, pool, session)
            if here is None and value is None:
                return
            here = here or add_session(connection, self._path, pool, session)
            settings = read_settings(connection, self._path, here, pool, session)
            if value is None:
                settings.pop(key, None)
            else:
                settings[key] = value
            write_settings(connection, here, pool, session, settings)

    def settings(self, pool: str, session: str) -> Mapping[str, str]:
        """See `PageStore.settings`."""
        here = self._session(pool, session)
        if here is None:
            return {}
        with self._reading() as connection:
            return read_settings(connection, self._path, here, pool, session)

    def delete_pages(self, pool: str, page_ids: Sequence[PageId]) -> tuple[str, ...]:
        """See `PageStore.delete_pages`. Writes the file anew: O(its size), and other writers wait."""
        check_name("pool", pool)
        gone: set[str] = set()
        with self._writing() as connection:
            for (session, here), ordinals in find_places(connection, self._path, pool, page_ids).items():
                gone.update(blank_pages(connection, here, pool, session, sorted(ordinals)))
        if page_ids:
            self._rewrite_file()
        return tuple(sorted(gone))

    def delete_session(self, pool: str, session: str) -> tuple[str, ...]:
        """See `PageStore.delete_session`. Writes the file anew: O(its size), and other writers wait."""
        check_place(pool, session)
        with self._writing() as connection:
            here = self._find_session(connection, pool, session)
            if here is None:
                return ()
            gone = blank_pages(connection, here, pool, session, range(here.page_count))
            write_settings(connection, here, pool, session, {})
        self._rewrite_file()
        return gone

    def handle_key(self, pool: str) -> bytes:
        """See `PageStore.handle_key`."""
        check_name("pool", pool)
        self._check_usable()
        with self._index_lock:
            found = self._handle_index(pool)
            if found is None:
                with self._writing() as connection:
                    row = find_pool(connection, self._path, pool) or add_pool(connection, pool)
                found = self._handles[pool] = HandleIndex(row.handle_key)
            return found.key

    def page_of_handle(self, pool: str, handle: str) -> PageId | None:
        """See `PageStore.page_of_handle`."""
        check_name("pool", pool)
        self._check_usable()
        mention = parse_handle(handle)
        if mention is None:
            return None
        digest = digest_in_handle(mention.handle)
        with self._index_lock:
            index = self._handle_index(pool)
            found = index.find(digest) if index else None
            if index is None or found is not None:
                return found
            with self._reading() as connection:
                for _, here in list_session_rows(connection, self._path, pool):
                    index.take_in(here.session_id, here.page_count)
            return index.find(digest)

    def close(self) -> None:
        """See `PageStore.close`. In a forked child it leaves the parent's connections alone."""
        self._is_closed = True
        if os.getpid() == self._owner:
            with self._read_lock, self._write_lock:
                self._reader.close()
                self._writer.close()

    # -- connections ------------------------------------------------------------------------

    def _check_usable(self) -> None:
        if self._is_closed:
            raise StoreError(f"store {self._path}", "it is closed", "open it again")
        if os.getpid() != self._owner:
            raise StoreError(
                f"store {self._path}",
                "it was opened before this process was forked",
                "open it again in the child process",
            )

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        self._check_usable()
        with self._read_lock, store_errors(self._path, "read"):
            yield self._reader

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all or nothing. An error of the commit itself leaves the outcome to the append's key."""
        self._check_usable()
        if file_identity(self._place) != self._file:
            raise StoreError(
                f"store {self._path}",
                "its file was removed or replaced while it was open",
                "bring the file back, or open the store again; nothing was stored",
            )
        with self._write_lock, store_errors(self._path, "written"):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            finally:
                self._writer.rollback()  # does nothing after the commit

    # -- inside -----------------------------------------------------------------------------

    def _session(self, pool: str, session: str) -> SessionRow | None:
        check_place(pool, session)
        with self._reading() as connection:
            return self._find_session(connection, pool, session)

    def _find_session(self, connection: sqlite3.Connection, pool: str, session: str) -> SessionRow | None:
        here = find_session(connection, self._path, pool, session)
        if here is None:
            self._check_catalogue(connection)
        return here

    def _check_catalogue(self, connection: sqlite3.Connection) -> None:
        """Once, before the first "no such session"."""
        if not self._is_catalogue_checked:
            check_catalogue(connection, self._path)
            self._is_catalogue_checked = True

    def _rows(
        self, here: SessionRow | None, session: str, start: int, shape: rows.RowShape
    ) -> Iterator[tuple[Any, ...]]:
        """The session's page rows from ordinal ``start`` on, none missing."""
        stop = here.page_count if here else 0
        for first in range(max(0, start), stop, _ROWS_AT_ONCE):
            ordinals = range(first, min(first + _ROWS_AT_ONCE, stop))
            with self._reading() as connection:
                found = find_rows(connection, here, ordinals, shape) if here else {}
            for ordinal in ordinals:
                if ordinal not in found:
                    raise rows.damaged(f"page with ordinal {ordinal} of {rows.session_place(self._path, session)}")
                yield found[ordinal]

    def _index_appended(self, pool: str, session: str, pages: Sequence[Page]) -> None:
        """Let a loaded index follow an append of this process, when it is at the place for it."""
        with self._index_lock:
            _, index = self._indexes.get((pool, session), (0, None))
            if index is not None and index.page_count == pages[0].ordinal:
                for page in pages:
                    index.add_page(page.ordinal, page.terms)

    def _handle_index(self, pool: str) -> HandleIndex | None:
        """The pool's handles as far as they were taken in; None when there is no such pool."""
        if pool not in self._handles:
            with self._reading() as connection:
                row = find_pool(connection, self._path, pool)
                if row is None:
                    self._check_catalogue(connection)
                    return None
            self._handles[pool] = HandleIndex(row.handle_key)
        return self._handles[pool]

    def _rewrite_file(self) -> None:
        """Let nothing of deleted pages stay in the file or its log."""
        with self._write_lock, self._read_lock, store_errors(self._path, "cleaned of the deleted pages"):
            rewrite_file(self._writer, self._path)
