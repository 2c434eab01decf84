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
from typing import Any, NamedTuple

from context_gatekeeper.errors import ConfigError, StoreDamagedError, StoreError
from context_gatekeeper.ports import Postings
from context_gatekeeper.stores import rows
from context_gatekeeper.stores.drafts import check_places, check_setting, checked_drafts, page_of, text_bytes
from context_gatekeeper.stores.names import check_name, unknown_page
from context_gatekeeper.stores.postings import PostingIndex
from context_gatekeeper.stores.sqlite_file import connect_reading, connect_writing, prepare_file, store_errors
from context_gatekeeper.types import Page, PageDraft, PageId

__all__ = ["BUSY_TIMEOUT_SECONDS", "SqliteStore"]

BUSY_TIMEOUT_SECONDS = 10.0
"""How long an append waits for another process: longer than any append of ours takes."""
_MAX_BUSY_TIMEOUT_SECONDS = 3600.0
_ROWS_AT_ONCE = 256
"""Pages read in one go: a scan holds the lock briefly and keeps no snapshot open."""
_INDEXES_KEPT = 64
"""Sessions whose index stays in memory (about 0.5 KB a turn); others are loaded again when asked for."""

_FIND_SESSION = """
    SELECT o.pool_id, s.session_id, s.page_count, s.digest
    FROM pools AS o JOIN sessions AS s ON s.pool_id = o.pool_id AND s.name = ?2 WHERE o.name = ?1
"""
_LIST_SESSIONS = """
    SELECT o.name, s.name, s.session_id, s.page_count, s.digest
    FROM sessions AS s LEFT JOIN pools AS o ON o.pool_id = s.pool_id
"""
_FIND_PAGE = f"""
    SELECT s.name, {rows.PAGE_COLUMNS}
    FROM pools AS o JOIN pages AS p ON p.pool_id = o.pool_id
    LEFT JOIN sessions AS s ON s.session_id = p.session_id AND s.pool_id = p.pool_id {rows.PAGE_JOINS}
    WHERE o.name = ? AND p.page_id = ?
"""  # noqa: S608 - constant text
_FIND_APPEND = """
    SELECT k.first_page_id, k.page_total, k.digest
    FROM pools AS o JOIN append_keys AS k ON k.pool_id = o.pool_id WHERE o.name = ? AND k.append_key = ?
"""
_ADD_PAGE = """
    INSERT INTO pages (page_id, pool_id, session_id, ordinal, kind, time, speaker, body, sha256, digest)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_ADD_TERMS = "INSERT INTO page_terms (page_id, pool_id, terms, derived, digest) VALUES (?, ?, ?, ?, ?)"


class _SessionRow(NamedTuple):
    """A session's verified row."""

    pool_id: int
    session_id: int
    page_count: int


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
        if isinstance(busy_timeout_seconds, bool) or not 0 <= busy_timeout_seconds <= _MAX_BUSY_TIMEOUT_SECONDS:
            raise ConfigError(
                f"busy_timeout_seconds {busy_timeout_seconds!a}",
                "it is out of range",
                f"pass 0 to {_MAX_BUSY_TIMEOUT_SECONDS:.0f} seconds",
            )
        self._path = os.fsdecode(path)
        self._owner = os.getpid()
        self._is_closed = False
        self._is_catalogue_checked = False
        self._read_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._index_lock = threading.Lock()
        self._indexes: OrderedDict[tuple[str, str], PostingIndex] = OrderedDict()
        prepare_file(self._path, busy_timeout_seconds)
        with store_errors(self._path, "opened"):
            self._writer = connect_writing(self._path, busy_timeout_seconds)
            self._reader = connect_reading(self._path, busy_timeout_seconds)

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    def append(
        self, pool: str, session: str, drafts: Sequence[PageDraft], *, idempotency_key: str | None = None
    ) -> tuple[Page, ...]:
        """See `PageStore.append`."""
        self._check(pool, session)
        if idempotency_key is not None:
            check_name("idempotency key", idempotency_key)
        checked = checked_drafts(drafts)
        with self._writing() as connection:
            if idempotency_key is not None:
                earlier = self._earlier_append(connection, pool, idempotency_key)
                if earlier is not None:
                    return earlier
            here = self._find_session(connection, pool, session)
            check_places(session, checked, here.page_count if here else 0)
            if not checked:
                return ()
            here = here or _add_session(connection, pool, session)
            pages = _add_pages(connection, here, pool, session, checked)
            if idempotency_key is not None:
                _add_append(connection, here, pool, idempotency_key, pages)
        self._index_appended(pool, session, pages)
        return pages

    def get(self, pool: str, page_ids: Sequence[PageId]) -> tuple[Page, ...]:
        """See `PageStore.get`."""
        self._check(pool)
        with self._reading() as connection:
            return tuple(self._page(connection, pool, page_id) for page_id in page_ids)

    def scan(self, pool: str, session: str, *, from_ordinal: int = 0) -> Iterator[Page]:
        """See `PageStore.scan`. A damaged page raises when its turn comes; scan on from the next ordinal."""
        here = self._session(pool, session)
        return (
            rows.page_from_row(self._path, pool, session, row)
            for row in self._rows(here, session, from_ordinal, rows.PAGE_COLUMNS)
        )

    def page_count(self, pool: str, session: str) -> int:
        """See `PageStore.page_count`."""
        here = self._session(pool, session)
        return here.page_count if here else 0

    def postings(self, pool: str, session: str) -> Postings:
        """See `PageStore.postings`. Read without a lock while other threads append; it never shrinks."""
        with self._index_lock:
            here = self._session(pool, session)
            index = self._indexes.setdefault((pool, session), PostingIndex())
            self._indexes.move_to_end((pool, session))
            if len(self._indexes) > _INDEXES_KEPT:
                self._indexes.popitem(last=False)
            if here and index.page_count < here.page_count:
                for row in self._rows(here, session, index.page_count, rows.TERMS_COLUMNS):
                    terms_row = rows.terms_from_row(self._path, pool, session, row)
                    index.add_page(terms_row.ordinal, terms_row.terms)
            return index

    def sessions(self, pool: str) -> tuple[str, ...]:
        """See `PageStore.sessions`."""
        self._check(pool)
        with self._reading() as connection:
            self._check_catalogue(connection)
            listed = connection.execute(f"{_LIST_SESSIONS} WHERE o.name = ? ORDER BY s.session_id", (text_bytes(pool),))
            return tuple(self._verified_name(row) for row in listed)

    def set_setting(self, pool: str, session: str, key: str, value: str | None) -> None:
        """See `PageStore.set_setting`."""
        self._check(pool, session)
        check_setting(key, value)
        with self._writing() as connection:
            here = self._find_session(connection, pool, session)
            if here is None and value is None:
                return
            here = here or _add_session(connection, pool, session)
            settings = self._read_settings(connection, here, pool, session)
            if value is None:
                settings.pop(key, None)
            else:
                settings[key] = value
            packed = rows.pack_settings(settings)
            connection.execute(
                "INSERT OR REPLACE INTO session_settings (session_id, pool_id, settings, digest) VALUES (?, ?, ?, ?)",
                (here.session_id, here.pool_id, packed, rows.digest_of(pool, session, payload=packed)),
            )

    def settings(self, pool: str, session: str) -> Mapping[str, str]:
        """See `PageStore.settings`."""
        here = self._session(pool, session)
        if here is None:
            return {}
        with self._reading() as connection:
            return self._read_settings(connection, here, pool, session)

    def close(self) -> None:
        """See `PageStore.close`. In a forked child it leaves the parent's connections alone."""
        self._is_closed = True
        if os.getpid() == self._owner:
            with self._read_lock, self._write_lock:
                self._reader.close()
                self._writer.close()

    # -- connections ------------------------------------------------------------------------

    def _check(self, pool: str, session: str | None = None) -> None:
        check_name("pool", pool)
        if session is not None:
            check_name("session", session)
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
        with self._read_lock, store_errors(self._path, "read"):
            yield self._reader

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all or nothing. An error of the commit itself leaves the outcome to the append's key."""
        with self._write_lock, store_errors(self._path, "written"):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            finally:
                self._writer.rollback()  # does nothing after the commit

    # -- rows -------------------------------------------------------------------------------

    def _session(self, pool: str, session: str) -> _SessionRow | None:
        self._check(pool, session)
        with self._reading() as connection:
            return self._find_session(connection, pool, session)

    def _find_session(self, connection: sqlite3.Connection, pool: str, session: str) -> _SessionRow | None:
        row = connection.execute(_FIND_SESSION, (text_bytes(pool), text_bytes(session))).fetchone()
        if row is None:
            self._check_catalogue(connection)
            return None
        pool_id, session_id, page_count, digest = row
        rows.verify(self._place_of(session), digest, pool, session, session_id, page_count)
        return _SessionRow(pool_id, session_id, page_count)

    def _check_catalogue(self, connection: sqlite3.Connection) -> None:
        """Before the first "no such session": make sure that no damage hides one. Once a store, O(sessions)."""
        if self._is_catalogue_checked:
            return
        for table in ("pools", "sessions"):
            for (finding,) in connection.execute(f"PRAGMA integrity_check({table})"):
                if finding != b"ok":
                    raise StoreDamagedError(
                        f"store {self._path}",
                        f"its table of {table} is damaged ({finding!a})",
                        "restore it from a backup",
                    )
        for row in connection.execute(_LIST_SESSIONS):
            self._verified_name(row)
        self._is_catalogue_checked = True

    def _verified_name(self, row: tuple[Any, ...]) -> str:
        """Session name of a row of `_LIST_SESSIONS`."""
        place = self._place_of(row[1])
        pool, session = (rows.stored_text(place, name) for name in row[:2])
        rows.verify(place, row[4], pool, session, *row[2:4])
        return session

    def _place_of(self, session: object) -> str:
        return f"session {session!a} of store {self._path}"

    def _page(self, connection: sqlite3.Connection, pool: str, page_id: PageId) -> Page:
        if not isinstance(page_id, int) or not 0 < page_id < 2**63:
            raise unknown_page(pool, page_id)
        row = connection.execute(_FIND_PAGE, (text_bytes(pool), page_id)).fetchone()
        if row is None:
            raise unknown_page(pool, page_id)
        session = rows.stored_text(f"page {page_id} of store {self._path}", row[0])
        return rows.page_from_row(self._path, pool, session, row[1:])

    def _rows(self, here: _SessionRow | None, session: str, start: int, columns: str) -> Iterator[tuple[Any, ...]]:
        """The session's page rows from ordinal ``start`` on, none missing."""
        stop = here.page_count if here else 0
        for first in range(max(0, start), stop, _ROWS_AT_ONCE):
            expected = range(first, min(first + _ROWS_AT_ONCE, stop))
            with self._reading() as connection:
                found = connection.execute(
                    f"SELECT {columns} FROM pages AS p {rows.PAGE_JOINS}"  # noqa: S608 - constant text
                    " WHERE p.pool_id = ? AND p.session_id = ? AND p.ordinal BETWEEN ? AND ? ORDER BY p.ordinal",
                    (here.pool_id, here.session_id, expected[0], expected[-1]) if here else (),
                ).fetchall()
            by_ordinal = {row[1]: row for row in found}
            for ordinal in expected:
                if ordinal not in by_ordinal:
                    raise rows.damaged(f"page with ordinal {ordinal} of {self._place_of(session)}")
                yield by_ordinal[ordinal]

    def _earlier_append(self, connection: sqlite3.Connection, pool: str, key: str) -> tuple[Page, ...] | None:
        row = connection.execute(_FIND_APPEND, (text_bytes(pool), text_bytes(key))).fetchone()
        if row is None:
            return None
        first_id, total, digest = row
        rows.verify(f"append key {key!a} of store {self._path}", digest, pool, key, first_id, total)
        return tuple(self._page(connection, pool, PageId(page_id)) for page_id in range(first_id, first_id + total))

    def _read_settings(
        self, connection: sqlite3.Connection, here: _SessionRow, pool: str, session: str
    ) -> dict[str, str]:
        row = connection.execute(
            "SELECT settings, digest FROM session_settings WHERE pool_id = ? AND session_id = ?",
            (here.pool_id, here.session_id),
        ).fetchone()
        if row is None:
            return {}
        rows.verify(f"settings of {self._place_of(session)}", row[1], pool, session, payload=row[0])
        return rows.unpack_settings(row[0])

    def _index_appended(self, pool: str, session: str, pages: Sequence[Page]) -> None:
        """Let a loaded index follow an append of this process, when it is at the place for it."""
        with self._index_lock:
            index = self._indexes.get((pool, session))
            if index is not None and index.page_count == pages[0].ordinal:
                for page in pages:
                    index.add_page(page.ordinal, page.terms)


def _add_session(connection: sqlite3.Connection, pool: str, session: str) -> _SessionRow:
    connection.execute("INSERT OR IGNORE INTO pools (name) VALUES (?)", (text_bytes(pool),))
    (pool_id,) = connection.execute("SELECT pool_id FROM pools WHERE name = ?", (text_bytes(pool),)).fetchone()
    (session_id,) = connection.execute("SELECT coalesce(max(session_id), 0) + 1 FROM sessions").fetchone()
    connection.execute(
        "INSERT INTO sessions (session_id, pool_id, name, page_count, digest) VALUES (?, ?, ?, 0, ?)",
        (session_id, pool_id, text_bytes(session), rows.digest_of(pool, session, session_id, 0)),
    )
    return _SessionRow(pool_id, session_id, 0)


def _add_pages(
    connection: sqlite3.Connection, here: _SessionRow, pool: str, session: str, drafts: Sequence[PageDraft]
) -> tuple[Page, ...]:
    last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'pages'").fetchone()
    first_id = 1 + (last[0] if last else 0)
    pages = tuple(page_of(draft, PageId(page_id), pool, session) for page_id, draft in enumerate(drafts, first_id))
    for page in pages:
        sha = bytes.fromhex(page.sha256)
        place = (pool, session, page.page_id, page.ordinal)
        page_digest = rows.digest_of(*place, page.kind, page.time, page.speaker, payload=sha)
        terms, derived = rows.pack_terms(page.terms), text_bytes(page.derived)
        connection.execute(
            _ADD_PAGE,
            (
                page.page_id,
                here.pool_id,
                here.session_id,
                page.ordinal,
                text_bytes(page.kind),
                page.time,
                None if page.speaker is None else text_bytes(page.speaker),
                text_bytes(page.text),
                sha,
                page_digest,
            ),
        )
        terms_digest = rows.digest_of(*place, len(terms), payload=terms + derived)
        connection.execute(_ADD_TERMS, (page.page_id, here.pool_id, terms, derived, terms_digest))
    count = here.page_count + len(pages)
    connection.execute(
        "UPDATE sessions SET page_count = ?, digest = ? WHERE pool_id = ? AND session_id = ?",
        (count, rows.digest_of(pool, session, here.session_id, count), here.pool_id, here.session_id),
    )
    return pages


def _add_append(connection: sqlite3.Connection, here: _SessionRow, pool: str, key: str, pages: Sequence[Page]) -> None:
    first_id = pages[0].page_id
    connection.execute(
        "INSERT INTO append_keys (pool_id, append_key, first_page_id, page_total, digest) VALUES (?, ?, ?, ?, ?)",
        (here.pool_id, text_bytes(key), first_id, len(pages), rows.digest_of(pool, key, first_id, len(pages))),
    )
