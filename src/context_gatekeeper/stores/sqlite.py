"""SqliteStore: pages of many sessions and processes in one file.

Write-ahead log, ``synchronous=FULL``: an append that returned survives a power failure. One
connection guarded by a lock serves all threads of a process; do not carry a store over a fork.
The in-memory index of a session is loaded from the stored terms at first use and follows
what other processes append. Terms are derived data: they can be worked out from the texts again.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import threading
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from context_gatekeeper.errors import StoreBusyError, StoreDamagedError, StoreError, StoreVersionError
from context_gatekeeper.ports import Postings
from context_gatekeeper.stores.migrations import APPLICATION_ID, MIGRATIONS
from context_gatekeeper.stores.names import check_name, taken_ordinal, text_bytes, text_digest, unknown_page
from context_gatekeeper.stores.postings import PostingIndex
from context_gatekeeper.types import Page, PageDraft, PageId, PageKind, Role

__all__ = ["BUSY_TIMEOUT_SECONDS", "SYNCHRONOUS", "SqliteStore"]

BUSY_TIMEOUT_SECONDS = 10.0
"""How long a write waits for another process before it gives up."""
SYNCHRONOUS = "FULL"
"""Level of every connection: a commit waits until the log is on the disk."""
_COLUMNS = "p.page_id, p.pool, p.session, p.ordinal, p.role, p.body, t.terms, t.derived, p.time, p.speaker, p.kind, p.sha256"
_SELECT = f"SELECT {_COLUMNS} FROM page p LEFT JOIN page_terms t ON t.page_id = p.page_id"  # noqa: S608 - constant text
_SCAN_ROWS = 512
"""Pages read in one go, so that a scan holds the lock for a short time."""


class SqliteStore:
    """`PageStore` in one SQLite file.

    Args:
        path: the file; made with its folders (0700) as 0600 when it does not exist.
        busy_timeout_seconds: wait for a lock of another process, > 0.

    Raises:
        StoreDamagedError: the file is no page store. StoreVersionError: of a newer release.
        StoreBusyError: locked for too long. StoreError: cannot be opened or written.
    """

    def __init__(self, path: str | os.PathLike[str], *, busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS) -> None:
        self._path = os.fspath(path)
        self._timeout = busy_timeout_seconds
        self._lock = threading.RLock()
        self._indexes: dict[tuple[str, str], PostingIndex] = {}
        self._indexed: dict[tuple[str, str], int] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._data_version = -1
        self._db: sqlite3.Connection | None = None
        if "\0" in self._path or not self._path:
            raise StoreError(f"store {self._path!r}", "it is no file name", "pass the path of a file")
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    # -- opening ------------------------------------------------------------------------

    def _open(self) -> None:
        self._make_file()
        with self._errors():
            self._db = sqlite3.connect(
                self._path, timeout=self._timeout, isolation_level=None, check_same_thread=False, cached_statements=64
            )
            self._check_identity()
            self._retried(lambda: self._run("PRAGMA journal_mode=WAL").fetchone())
            self._run(f"PRAGMA synchronous={SYNCHRONOUS}")
            self._run("PRAGMA foreign_keys=ON")
            self._migrate()

    def _make_file(self) -> None:
        try:
            parent = Path(self._path).parent
            parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise StoreError(
                f"store {self._path}", f"it cannot be opened for writing ({error.strerror})", "choose a file that you may write"
            ) from error

    def _check_identity(self) -> None:
        """Refuse a file that is not ours before anything is written to it."""
        try:
            application_id = self._retried(lambda: self._run("PRAGMA application_id").fetchone())[0]
            tables = self._retried(lambda: self._run("SELECT count(*) FROM sqlite_master").fetchone())[0]
            version = self._run("PRAGMA user_version").fetchone()[0]
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                raise
            raise self._not_ours("it is no SQLite file") from error
        if application_id != APPLICATION_ID and (tables or application_id):
            raise self._not_ours("it belongs to another program")
        if version > len(MIGRATIONS):
            raise StoreVersionError(
                f"store {self._path}",
                f"it was written by a newer release (layout {version}, this release knows {len(MIGRATIONS)})",
                "upgrade context-gatekeeper, or open another file",
            )

    def _not_ours(self, cause: str) -> StoreDamagedError:
        return StoreDamagedError(f"store {self._path}", cause, "choose another file; this one was left as it was")

    def _migrate(self) -> None:
        if self._run("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS):
            return
        self._run(f"PRAGMA application_id={APPLICATION_ID}")
        for number, (_, statements) in enumerate(MIGRATIONS, 1):
            with self._write():
                if self._run("PRAGMA user_version").fetchone()[0] >= number:
                    continue
                for statement in statements:
                    self._run(statement)
                self._run(f"PRAGMA user_version={number}")

    # -- plumbing -----------------------------------------------------------------------

    def _run(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        if self._db is None:
            raise StoreError(f"store {self._path}", "it is closed", "open it again")
        return self._db.execute(statement, values)

    def _retried(self, step):  # type: ignore[no-untyped-def]
        """Run a step that SQLite refuses at once while another process switches the file to WAL."""
        deadline = clock.monotonic() + self._timeout
        pause = 0.001
        while True:
            try:
                return step()
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) and "busy" not in str(error) or clock.monotonic() > deadline:
                    raise
            clock.sleep(pause * (0.5 + random.random()))  # noqa: S311 - spreads waiting processes
            pause = min(0.05, pause * 2)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn SQLite's errors into ours."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise StoreBusyError(
                    f"store {self._path}",
                    f"another process held it for more than {self._timeout:g} s",
                    "try again; nothing was stored",
                ) from error
            raise StoreError(f"store {self._path}", str(error), "free the disk or the file, then try again") from error
        except sqlite3.DatabaseError as error:
            raise StoreDamagedError(
                f"store {self._path}", f"its content is damaged ({error})", "restore a backup; other files are not touched"
            ) from error
        except (OverflowError, MemoryError) as error:
            raise StoreError(f"store {self._path}", "a page is too large", "store less at once") from error

    @contextmanager
    def _write(self) -> Iterator[None]:
        """One write transaction: all or nothing."""
        with self._lock, self._errors():
            self._retried(lambda: self._run("BEGIN IMMEDIATE"))
            try:
                yield
                self._run("COMMIT")
            except BaseException:
                if self._db is not None and self._db.in_transaction:
                    self._run("ROLLBACK")
                raise

    def _read(self, statement: str, values: Sequence[object]) -> list[tuple[object, ...]]:
        with self._lock, self._errors():
            return self._run(statement, values).fetchall()

    # -- pages --------------------------------------------------------------------------

    def append(
        self, pool: str, session: str, drafts: Sequence[PageDraft], *, idempotency_key: str | None = None
    ) -> tuple[Page, ...]:
        """See `PageStore.append`; one transaction, on the disk when it returns."""
        check_name("pool", pool)
        check_name("session", session)
        with self._lock:
            index = self._caught_up(pool, session)
            with self._write():
                if idempotency_key is not None:
                    row = self._run(
                        "SELECT page_ids FROM append_key WHERE pool = ? AND key = ?", (pool, idempotency_key)
                    ).fetchone()
                    if row is not None:
                        return self.get(pool, json.loads(row[0]))
                pages = tuple(self._insert(pool, session, draft) for draft in drafts)
                if idempotency_key is not None:
                    ids = json.dumps([page.page_id for page in pages])
                    self._run("INSERT INTO append_key VALUES (?, ?, ?)", (pool, idempotency_key, ids))
            self._index_own(index, pool, session, drafts)
            return pages

    def _insert(self, pool: str, session: str, draft: PageDraft) -> Page:
        body = text_bytes(draft.text)
        digest = text_digest(draft.text)
        try:
            page_id = self._run(
                "INSERT INTO page (pool, session, ordinal, kind, role, time, speaker, body, sha256)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    pool, session, draft.ordinal, draft.kind.value, draft.role.value,
                    draft.time, draft.speaker, body, bytes.fromhex(digest),
                ),
            ).lastrowid  # fmt: skip
        except sqlite3.IntegrityError:
            raise taken_ordinal(session, draft.ordinal) from None
        self._run(
            "INSERT INTO page_terms (page_id, pool, terms, derived) VALUES (?, ?, ?, ?)",
            (page_id, pool, pack_terms(draft.terms), draft.derived),
        )
        return Page(
            PageId(page_id or 0), pool, session, draft.turn_id, draft.role, draft.text, dict(draft.terms),
            draft.derived, draft.time, draft.speaker, draft.kind, digest,
        )  # fmt: skip

    def get(self, pool: str, page_ids: Sequence[PageId]) -> tuple[Page, ...]:
        """See `PageStore.get`. Raises StoreDamagedError for a page whose digest is wrong."""
        pages = []
        for page_id in page_ids:
            rows = self._read(f"{_SELECT} WHERE p.pool = ? AND p.page_id = ?", (pool, page_id))
            if not rows:
                raise unknown_page(pool, page_id)
            pages.append(self._page(rows[0]))
        return tuple(pages)

    def scan(self, pool: str, session: str, *, from_ordinal: int = 0) -> Iterator[Page]:
        """See `PageStore.scan`. Raises StoreDamagedError at a damaged page."""
        check_name("pool", pool)
        check_name("session", session)
        while True:
            rows = self._read(
                f"{_SELECT} WHERE p.pool = ? AND p.session = ? AND p.ordinal >= ? ORDER BY p.ordinal LIMIT {_SCAN_ROWS}",
                (pool, session, from_ordinal),
            )
            for row in rows:
                page = self._page(row)
                yield page
                from_ordinal = page.ordinal + 1
            if len(rows) < _SCAN_ROWS:
                return

    def _page(self, row: Sequence[object]) -> Page:
        page_id, pool, session, ordinal, role, body, terms, derived, time, speaker, kind, digest = row
        try:
            if not isinstance(body, bytes) or not isinstance(digest, bytes) or not isinstance(ordinal, int):
                raise ValueError("a column has the wrong type")
            text = body.decode("utf-8", "surrogatepass")
            if text_digest(text) != digest.hex():
                raise ValueError("its text does not match its digest")
            return Page(
                PageId(int(str(page_id))), str(pool), str(session), ordinal >> 1, Role(role), text,
                unpack_terms(terms if isinstance(terms, bytes) else b""), str(derived or ""),
                float(str(time)) if time is not None else None, str(speaker) if speaker is not None else None,
                PageKind(kind), digest.hex(),
            )  # fmt: skip
        except (ValueError, UnicodeDecodeError) as error:
            raise StoreDamagedError(
                f"page {page_id} of store {self._path}", f"it is damaged ({error})", "restore a backup; other pages can be read"
            ) from error

    def page_count(self, pool: str, session: str) -> int:
        """See `PageStore.page_count`."""
        with self._lock:
            self._note_other_writers()
            known = self._counts.get((pool, session))
            if known is None:
                rows = self._read("SELECT count(*) FROM page WHERE pool = ? AND session = ?", (pool, session))
                known = self._counts[pool, session] = int(str(rows[0][0]))
            return known

    def _note_other_writers(self) -> None:
        """Forget counts when another connection has committed since; costs one pragma."""
        with self._errors():
            version = self._run("PRAGMA data_version").fetchone()[0]
        if version != self._data_version:
            self._data_version = version
            self._counts.clear()

    # -- index --------------------------------------------------------------------------

    def postings(self, pool: str, session: str) -> Postings:
        """See `PageStore.postings`."""
        with self._lock:
            return self._caught_up(pool, session)

    def _caught_up(self, pool: str, session: str) -> PostingIndex:
        key = (pool, session)
        index = self._indexes.setdefault(key, PostingIndex())
        if self._indexed.get(key, 0) < self.page_count(pool, session):
            rows = self._read(
                "SELECT p.ordinal, t.terms FROM page p JOIN page_terms t ON t.page_id = p.page_id"
                " WHERE p.pool = ? AND p.session = ? AND p.ordinal >= ? ORDER BY p.ordinal",
                (pool, session, self._indexed.get(key, 0)),
            )
            for ordinal, terms in rows:
                index.add_page(int(str(ordinal)), unpack_terms(terms if isinstance(terms, bytes) else b""))
            self._indexed[key] = self._indexed.get(key, 0) + len(rows)
        return index

    def _index_own(self, index: PostingIndex, pool: str, session: str, drafts: Sequence[PageDraft]) -> None:
        key = (pool, session)
        for draft in sorted(drafts, key=lambda one: one.ordinal):
            if draft.ordinal != self._indexed.get(key, 0):
                self._counts.pop(key, None)
                return
            index.add_page(draft.ordinal, draft.terms)
            self._indexed[key] = draft.ordinal + 1
        if key in self._counts:
            self._counts[key] += len(drafts)

    # -- sessions and settings ------------------------------------------------------------

    def sessions(self, pool: str) -> tuple[str, ...]:
        """See `PageStore.sessions`."""
        rows = self._read("SELECT session FROM page WHERE pool = ? GROUP BY session ORDER BY min(page_id)", (pool,))
        rows += self._read("SELECT session FROM setting WHERE pool = ? ORDER BY rowid", (pool,))
        return tuple(dict.fromkeys(str(row[0]) for row in rows))

    def set_setting(self, pool: str, session: str, key: str, value: str | None) -> None:
        """See `PageStore.set_setting`."""
        check_name("pool", pool)
        check_name("session", session)
        with self._write():
            if value is None:
                self._run("DELETE FROM setting WHERE pool = ? AND session = ? AND key = ?", (pool, session, key))
                return
            self._run(
                "INSERT INTO setting (pool, session, place, key, value)"
                " VALUES (?, ?, (SELECT coalesce(max(place), 0) + 1 FROM setting), ?, ?)"
                " ON CONFLICT (pool, session, key) DO UPDATE SET value = excluded.value",
                (pool, session, key, value),
            )

    def settings(self, pool: str, session: str) -> Mapping[str, str]:
        """See `PageStore.settings`."""
        rows = self._read(
            "SELECT key, value FROM setting WHERE pool = ? AND session = ? ORDER BY place", (pool, session)
        )
        return {str(key): str(value) for key, value in rows}

    def close(self) -> None:
        """See `PageStore.close`."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None


def pack_terms(terms: Mapping[str, int]) -> bytes:
    """Terms as UTF-8 lines, each ``term TAB occurrences``; an occurrence of one is left out.

    No term holds a line break or a tab: they are cut out of phrases before.
    """
    return "\n".join(term if count == 1 else f"{term}\t{count}" for term, count in terms.items()).encode(
        "utf-8", "surrogatepass"
    )


def unpack_terms(packed: bytes) -> dict[str, int]:
    """Inverse of `pack_terms`."""
    if not packed:
        return {}
    terms: dict[str, int] = {}
    for line in packed.decode("utf-8", "surrogatepass").split("\n"):
        term, _, count = line.partition("\t")
        terms[term] = int(count) if count else 1
    return terms
