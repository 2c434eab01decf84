"""The statements of `SqliteStore`, each with the check of what came back.

Functions take the connection, the file's path for errors, and names of pool and session.
Every row is verified (module ``rows``): damage raises StoreDamagedError and never reads as absence.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from context_gatekeeper.errors import StoreDamagedError
from context_gatekeeper.stores import rows
from context_gatekeeper.stores.drafts import ORDINAL_BITS, first_page_id, page_of, text_bytes
from context_gatekeeper.stores.names import unknown_page
from context_gatekeeper.types import Page, PageDraft, PageId

__all__ = [
    "SessionRow",
    "add_append",
    "add_pages",
    "add_session",
    "check_catalogue",
    "find_append",
    "find_page",
    "find_rows",
    "find_session",
    "list_sessions",
    "read_settings",
    "write_settings",
]

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
    LEFT JOIN sessions AS s ON s.session_id = p.page_id >> {ORDINAL_BITS} AND s.pool_id = p.pool_id {rows.PAGE_JOINS}
    WHERE o.name = ? AND p.page_id = ?
"""  # noqa: S608 - constant text
_FIND_APPEND = """
    SELECT k.first_page_id, k.page_total, k.digest
    FROM pools AS o JOIN append_keys AS k ON k.pool_id = o.pool_id WHERE o.name = ? AND k.append_key = ?
"""
_NEXT_SESSION_ID = "SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'sessions'"
"""Known before the row is written, because the row's digest covers it."""
_ADD_PAGE = """
    INSERT INTO pages (page_id, pool_id, kind, time, speaker, body, sha256, digest)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_ADD_TERMS = "INSERT INTO page_terms (page_id, pool_id, terms, derived, digest) VALUES (?, ?, ?, ?, ?)"


_LAST_PAGE_ID = 2**63 - 1
"""SQLite's integers end there."""


class SessionRow(NamedTuple):
    """A session's verified row."""

    pool_id: int
    session_id: int
    page_count: int


def find_session(connection: sqlite3.Connection, path: str, pool: str, session: str) -> SessionRow | None:
    """The session's row; None when there is none."""
    row = connection.execute(_FIND_SESSION, (text_bytes(pool), text_bytes(session))).fetchone()
    if row is None:
        return None
    pool_id, session_id, page_count, digest = row
    rows.verify(rows.session_place(path, session), digest, pool, session, session_id, page_count)
    return SessionRow(pool_id, session_id, page_count)


def list_sessions(connection: sqlite3.Connection, path: str, pool: str) -> tuple[str, ...]:
    """Names of the pool's sessions by age."""
    listed = connection.execute(f"{_LIST_SESSIONS} WHERE o.name = ? ORDER BY s.session_id", (text_bytes(pool),))
    return tuple(_verified_name(path, row) for row in listed)


def check_catalogue(connection: sqlite3.Connection, path: str) -> None:
    """Raise StoreDamagedError when damage hides a session or renamed it. O(sessions)."""
    for table in ("pools", "sessions"):
        for (finding,) in connection.execute(f"PRAGMA integrity_check({table})"):
            if finding != b"ok":
                raise StoreDamagedError(
                    f"store {path}", f"its table of {table} is damaged ({finding!a})", "restore it from a backup"
                )
    for row in connection.execute(_LIST_SESSIONS):
        _verified_name(path, row)


def find_page(connection: sqlite3.Connection, path: str, pool: str, page_id: PageId) -> Page:
    """One page. Raises PageNotFoundError when the pool has none of this id."""
    is_possible = isinstance(page_id, int) and 0 < page_id <= _LAST_PAGE_ID
    row = connection.execute(_FIND_PAGE, (text_bytes(pool), page_id)).fetchone() if is_possible else None
    if row is None:
        raise unknown_page(pool, page_id)
    session = rows.stored_text(f"page {page_id} of store {path}", row[0])
    return rows.page_from_row(path, pool, session, row[1:])


def find_rows(
    connection: sqlite3.Connection, here: SessionRow, ordinals: range, columns: str
) -> dict[int, tuple[Any, ...]]:
    """Ordinal -> row of the session's pages, as far as found; ``columns`` is one of the lists of ``rows``."""
    first_id = first_page_id(here.session_id)
    found = connection.execute(
        f"SELECT {columns} FROM pages AS p {rows.PAGE_JOINS}"  # noqa: S608 - constant text
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


def add_session(connection: sqlite3.Connection, pool: str, session: str) -> SessionRow:
    """Make a session without pages and settings, and its pool when need be."""
    connection.execute("INSERT OR IGNORE INTO pools (name) VALUES (?)", (text_bytes(pool),))
    (pool_id,) = connection.execute("SELECT pool_id FROM pools WHERE name = ?", (text_bytes(pool),)).fetchone()
    (session_id,) = connection.execute(_NEXT_SESSION_ID).fetchone()
    connection.execute(
        "INSERT INTO sessions (session_id, pool_id, name, page_count, digest) VALUES (?, ?, ?, 0, ?)",
        (session_id, pool_id, text_bytes(session), rows.digest_of(pool, session, session_id, 0)),
    )
    here = SessionRow(pool_id, session_id, 0)
    write_settings(connection, here, pool, session, {})
    return here


def add_pages(
    connection: sqlite3.Connection, here: SessionRow, pool: str, session: str, drafts: Sequence[PageDraft]
) -> tuple[Page, ...]:
    """Store checked drafts behind the session's pages."""
    first_id = first_page_id(here.session_id)
    pages = tuple(page_of(draft, PageId(first_id + draft.ordinal), pool, session) for draft in drafts)
    connection.executemany(_ADD_PAGE, (_page_row(here, page) for page in pages))
    connection.executemany(_ADD_TERMS, (_terms_row(here, page) for page in pages))
    count = here.page_count + len(pages)
    connection.execute(
        "UPDATE sessions SET page_count = ?, digest = ? WHERE pool_id = ? AND session_id = ?",
        (count, rows.digest_of(pool, session, here.session_id, count), here.pool_id, here.session_id),
    )
    return pages


def add_append(connection: sqlite3.Connection, here: SessionRow, pool: str, key: str, pages: Sequence[Page]) -> None:
    """Remember the pages that an idempotency key stands for."""
    first_id = pages[0].page_id
    connection.execute(
        "INSERT INTO append_keys (pool_id, append_key, first_page_id, page_total, digest) VALUES (?, ?, ?, ?, ?)",
        (here.pool_id, text_bytes(key), first_id, len(pages), rows.digest_of(pool, key, first_id, len(pages))),
    )


def _verified_name(path: str, row: tuple[Any, ...]) -> str:
    """Session name of a row of `_LIST_SESSIONS`."""
    pool_name, session_name, session_id, page_count, digest = row
    place = rows.session_place(path, session_name)
    pool, session = rows.stored_text(place, pool_name), rows.stored_text(place, session_name)
    rows.verify(place, digest, pool, session, session_id, page_count)
    return session


def _page_row(here: SessionRow, page: Page) -> tuple[Any, ...]:
    """Values of `_ADD_PAGE`."""
    sha, kind = bytes.fromhex(page.sha256), str(page.kind)
    place = (page.pool, page.session, page.page_id, page.ordinal)
    return (
        page.page_id,
        here.pool_id,
        text_bytes(kind),
        page.time,
        None if page.speaker is None else text_bytes(page.speaker),
        text_bytes(page.text),
        sha,
        rows.digest_of(*place, kind, page.time, page.speaker, payload=sha),
    )


def _terms_row(here: SessionRow, page: Page) -> tuple[Any, ...]:
    """Values of `_ADD_TERMS`."""
    terms, derived = rows.pack_terms(page.terms), text_bytes(page.derived)
    place = (page.pool, page.session, page.page_id, page.ordinal)
    digest = rows.digest_of(*place, len(terms), payload=terms + derived)
    return page.page_id, here.pool_id, terms, derived, digest
