"""The statements of `SqliteStore`, each with the check of what came back.

Functions take the connection, the file's path for errors, and names of pool and session.
Every row is verified (module ``rows``): damage raises StoreDamagedError and never reads as absence.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from context_gatekeeper.core.handles import HANDLE_KEY_BYTES
from context_gatekeeper.core.page_bytes import bytes_beside
from context_gatekeeper.errors import StoreDamagedError
from context_gatekeeper.stores import rows
from context_gatekeeper.stores.drafts import ORDINAL_BITS, first_page_id, page_of, session_id_of, text_bytes
from context_gatekeeper.stores.labels import pack_labels
from context_gatekeeper.stores.names import unknown_page
from context_gatekeeper.stores.originals import INLINE_BYTES, add_original
from context_gatekeeper.types import Page, PageDraft, PageId

__all__ = [
    "PoolRow",
    "SessionRow",
    "add_append",
    "add_pages",
    "add_pool",
    "add_session",
    "check_catalogue",
    "find_append",
    "find_page",
    "find_pool",
    "find_rows",
    "find_session",
    "find_session_of",
    "list_session_rows",
    "list_sessions",
    "page_values",
    "read_settings",
    "terms_values",
    "write_counts",
    "write_settings",
]

_FIND_POOL = "SELECT pool_id, handle_key, digest FROM pools WHERE name = ?"
_FIND_SESSION = """
    SELECT r.pool_id, s.session_id, s.page_count, s.deletions, s.digest
    FROM pools AS r JOIN sessions AS s ON s.pool_id = r.pool_id AND s.name = ?2 WHERE r.name = ?1
"""
_LIST_SESSIONS = """
    SELECT r.name, s.name, s.pool_id, s.session_id, s.page_count, s.deletions, s.digest
    FROM sessions AS s LEFT JOIN pools AS r ON r.pool_id = s.pool_id
"""
_FIND_PAGE = f"""
    SELECT s.name, {rows.PAGE_ROW.columns}
    FROM pools AS r JOIN pages AS p ON p.pool_id = r.pool_id
    LEFT JOIN sessions AS s ON s.session_id = p.page_id >> {ORDINAL_BITS} AND s.pool_id = p.pool_id
    {rows.PAGE_ROW.joins} WHERE r.name = ? AND p.page_id = ?
"""  # noqa: S608 - constant text
_FIND_APPEND = """
    SELECT k.first_page_id, k.page_total, k.digest
    FROM pools AS r JOIN append_keys AS k ON k.pool_id = r.pool_id WHERE r.name = ? AND k.append_key = ?
"""
_NEXT_POOL_ID = "SELECT coalesce(max(pool_id), 0) + 1 FROM pools"
_NEXT_SESSION_ID = "SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'sessions'"
"""Ids are known before their rows are written, because the rows' digests cover them."""
_ADD_PAGE = """
    INSERT INTO pages (page_id, pool_id, kind, time, speaker, labels, sha256, body, digest)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_ADD_TERMS = "INSERT INTO page_terms (page_id, pool_id, terms, derived, digest) VALUES (?, ?, ?, ?, ?)"


_LAST_PAGE_ID = 2**63 - 1
"""SQLite's integers end there."""


class PoolRow(NamedTuple):
    """A pool's verified row."""

    pool_id: int
    handle_key: bytes


class SessionRow(NamedTuple):
    """A session's verified row."""

    pool_id: int
    session_id: int
    page_count: int
    deletions: int
    """How often pages of it were deleted: an index made before is out of date."""


def find_pool(connection: sqlite3.Connection, path: str, pool: str) -> PoolRow | None:
    """The pool's row; None when there is none."""
    row = connection.execute(_FIND_POOL, (text_bytes(pool),)).fetchone()
    if row is None:
        return None
    pool_id, handle_key, digest = row
    rows.verify(f"pool {pool!a} of store {path}", digest, pool, pool_id, payload=handle_key)
    return PoolRow(pool_id, handle_key)


def find_session(connection: sqlite3.Connection, path: str, pool: str, session: str) -> SessionRow | None:
    """The session's row; None when there is none."""
    row = connection.execute(_FIND_SESSION, (text_bytes(pool), text_bytes(session))).fetchone()
    if row is None:
        return None
    *counts, digest = row
    here = SessionRow(*counts)
    rows.verify(rows.session_place(path, session), digest, pool, session, *here[1:])
    return here


def find_session_of(
    connection: sqlite3.Connection, path: str, pool: str, page_id: PageId
) -> tuple[str, SessionRow] | None:
    """Name and row of the session that holds a page; None when no session of the pool does."""
    if not _is_possible_id(page_id):
        return None
    row = connection.execute(
        f"{_LIST_SESSIONS} WHERE r.name = ? AND s.session_id = ?", (text_bytes(pool), session_id_of(page_id))
    ).fetchone()
    if row is None:
        return None
    name, here = _verified_session(path, row)
    return (name, here) if page_id < first_page_id(here.session_id) + here.page_count else None


def list_sessions(connection: sqlite3.Connection, path: str, pool: str) -> tuple[str, ...]:
    """Names of the pool's sessions by age."""
    return tuple(name for name, _ in list_session_rows(connection, path, pool))


def list_session_rows(connection: sqlite3.Connection, path: str, pool: str) -> Iterator[tuple[str, SessionRow]]:
    """Names and rows of the pool's sessions by age."""
    listed = connection.execute(f"{_LIST_SESSIONS} WHERE r.name = ? ORDER BY s.session_id", (text_bytes(pool),))
    return (_verified_session(path, row) for row in listed)


def check_catalogue(connection: sqlite3.Connection, path: str) -> None:
    """Raise StoreDamagedError when damage hides a session or renamed it. O(sessions)."""
    for table in ("pools", "sessions"):
        for (finding,) in connection.execute(f"PRAGMA integrity_check({table})"):
            if finding != b"ok":
                raise StoreDamagedError(
                    f"store {path}", f"its table of {table} is damaged ({finding!a})", "restore it from a backup"
                )
    for row in connection.execute(_LIST_SESSIONS):
        _verified_session(path, row)


def find_page(connection: sqlite3.Connection, path: str, pool: str, page_id: PageId) -> Page:
    """One page. Raises PageNotFoundError when the pool has none of this id."""
    row = None
    if _is_possible_id(page_id):
        row = connection.execute(_FIND_PAGE, (text_bytes(pool), page_id)).fetchone()
    if row is None:
        raise unknown_page(pool, page_id)
    session = rows.stored_text(f"page {page_id} of store {path}", row[0])
    return rows.page_from_row(path, pool, session, row[1:])


def find_rows(
    connection: sqlite3.Connection, here: SessionRow, ordinals: range, shape: rows.RowShape
) -> dict[int, tuple[Any, ...]]:
    """Ordinal -> row of the session's pages, as far as found."""
    first_id = first_page_id(here.session_id)
    found = connection.execute(
        f"SELECT {shape.columns} FROM pages AS p {shape.joins}"  # noqa: S608 - constant text
        " WHERE p.pool_id = ? AND p.page_id BETWEEN ? AND ?",
        (here.pool_id, first_id + ordinals[0], first_id + ordinals[-1]),
    )
    return {row[0] - first_id: row for row in found}


def find_append(connection: sqlite3.Connection, path: str, pool: str, key: str) -> tuple[Page, ...] | None:
    """Pages of an earlier append with this idempotency key; None when there was none."""
    row = connection.execute(_FIND_APPEND, (text_bytes(pool), text_bytes(key))).fetchone()
    if row is None:
        return None
    first_id, total, digest = row
    rows.verify(f"idempotency key {key!a} of store {path}", digest, pool, key, first_id, total)
    return tuple(find_page(connection, path, pool, PageId(page_id)) for page_id in range(first_id, first_id + total))


def read_settings(
    connection: sqlite3.Connection, path: str, here: SessionRow, pool: str, session: str
) -> dict[str, str]:
    """The session's settings in the order in which their keys were first set."""
    row = connection.execute(
        "SELECT settings, digest FROM session_settings WHERE pool_id = ? AND session_id = ?",
        (here.pool_id, here.session_id),
    ).fetchone()
    settings, digest = row or (b"", None)  # every session has a row: a missing one is damage
    rows.verify(f"settings of {rows.session_place(path, session)}", digest, pool, session, payload=settings)
    return rows.unpack_settings(settings)


def write_settings(
    connection: sqlite3.Connection, here: SessionRow, pool: str, session: str, settings: Mapping[str, str]
) -> None:
    """Replace the session's settings."""
    packed = rows.pack_settings(settings)
    connection.execute(
        "INSERT OR REPLACE INTO session_settings (session_id, pool_id, settings, digest) VALUES (?, ?, ?, ?)",
        (here.session_id, here.pool_id, packed, rows.digest_of(pool, session, payload=packed)),
    )


def add_pool(connection: sqlite3.Connection, pool: str) -> PoolRow:
    """Make a pool without sessions."""
    (pool_id,) = connection.execute(_NEXT_POOL_ID).fetchone()
    handle_key = os.urandom(HANDLE_KEY_BYTES)
    digest = rows.digest_of(pool, pool_id, payload=handle_key)
    connection.execute(
        "INSERT INTO pools (pool_id, name, handle_key, digest) VALUES (?, ?, ?, ?)",
        (pool_id, text_bytes(pool), handle_key, digest),
    )
    return PoolRow(pool_id, handle_key)


def add_session(connection: sqlite3.Connection, path: str, pool: str, session: str) -> SessionRow:
    """Make a session without pages and settings, and its pool when need be."""
    pool_row = find_pool(connection, path, pool) or add_pool(connection, pool)
    (session_id,) = connection.execute(_NEXT_SESSION_ID).fetchone()
    here = SessionRow(pool_row.pool_id, session_id, 0, 0)
    connection.execute(
        "INSERT INTO sessions (session_id, pool_id, name, page_count, deletions, digest) VALUES (?, ?, ?, 0, 0, ?)",
        (session_id, here.pool_id, text_bytes(session), rows.digest_of(pool, session, *here[1:])),
    )
    write_settings(connection, here, pool, session, {})
    return here


def write_counts(connection: sqlite3.Connection, here: SessionRow, pool: str, session: str) -> None:
    """Replace the counts of a session's row."""
    connection.execute(
        "UPDATE sessions SET page_count = ?, deletions = ?, digest = ? WHERE pool_id = ? AND session_id = ?",
        (
            here.page_count,
            here.deletions,
            rows.digest_of(pool, session, *here[1:]),
            here.pool_id,
            here.session_id,
        ),
    )


def add_pages(
    connection: sqlite3.Connection, here: SessionRow, pool: str, session: str, drafts: Sequence[PageDraft]
) -> tuple[Page, ...]:
    """Store checked drafts behind the session's pages."""
    first_id = first_page_id(here.session_id)
    pages = tuple(page_of(draft, PageId(first_id + draft.ordinal), pool, session) for draft in drafts)
    connection.executemany(_ADD_PAGE, [page_values(connection, here, page) for page in pages])
    connection.executemany(_ADD_TERMS, (terms_values(here, page) for page in pages))
    write_counts(connection, here._replace(page_count=here.page_count + len(pages)), pool, session)
    return pages


def add_append(connection: sqlite3.Connection, here: SessionRow, pool: str, key: str, pages: Sequence[Page]) -> None:
    """Remember the pages that an idempotency key stands for."""
    first_id = pages[0].page_id
    connection.execute(
        "INSERT INTO append_keys (pool_id, append_key, first_page_id, page_total, digest) VALUES (?, ?, ?, ?, ?)",
        (here.pool_id, text_bytes(key), first_id, len(pages), rows.digest_of(pool, key, first_id, len(pages))),
    )


def page_values(connection: sqlite3.Connection, here: SessionRow, page: Page) -> tuple[Any, ...]:
    """Values of a page's row; a long body becomes an original first."""
    sha, kind, labels, body = (
        bytes.fromhex(page.sha256),
        str(page.kind),
        pack_labels(page.labels),
        text_bytes(page.text) + bytes_beside(page.labels.parts),
    )
    place = (page.pool, page.session, page.page_id, page.ordinal)
    is_long = len(body) > INLINE_BYTES
    if is_long:
        add_original(connection, here.pool_id, sha, body)
    return (
        page.page_id,
        here.pool_id,
        text_bytes(kind),
        page.time,
        None if page.speaker is None else text_bytes(page.speaker),
        labels,
        sha,
        None if is_long else body,
        rows.digest_of(*place, kind, page.time, page.speaker, payload=sha + labels),
    )


def terms_values(here: SessionRow, page: Page) -> tuple[Any, ...]:
    """Values of a page's derived row."""
    terms, derived = rows.pack_terms(page.terms), text_bytes(page.derived)
    place = (page.pool, page.session, page.page_id, page.ordinal)
    digest = rows.digest_of(*place, len(terms), payload=terms + derived)
    return page.page_id, here.pool_id, terms, derived, digest


def _is_possible_id(page_id: object) -> bool:
    return isinstance(page_id, int) and 0 < page_id <= _LAST_PAGE_ID


def _verified_session(path: str, row: tuple[Any, ...]) -> tuple[str, SessionRow]:
    """Name and counts of a row of `_LIST_SESSIONS`."""
    pool_name, session_name, *counts, digest = row
    place = rows.session_place(path, session_name)
    pool, session = rows.stored_text(place, pool_name), rows.stored_text(place, session_name)
    here = SessionRow(*counts)
    rows.verify(place, digest, pool, session, *here[1:])
    return session, here
