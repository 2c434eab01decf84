"""Layout of the SQLite file, as ordered named migrations; each runs in one transaction.

``user_version`` counts the migrations that a file has seen, so that an interrupted upgrade
goes on where it stopped. Never change a migration that was released: add another.

Every statement and every key that is not a row's own address names the pool. All texts are
BLOBs (UTF-8, surrogates passed through): NUL and lone surrogates survive. Each row carries a
16-byte BLAKE2b ``digest`` of its meaning (module ``rows``), so that damage is found at reading.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from context_gatekeeper.errors import StoreVersionError

__all__ = ["APPLICATION_ID", "MIGRATIONS", "Migration", "check_version", "migrate"]

APPLICATION_ID = 0x43474B31
"""``CGK1`` in the file's header: tells our files from other SQLite files."""


class Migration(NamedTuple):
    """One step of the layout."""

    name: str
    """Shown in errors."""
    statements: tuple[str, ...]
    """Run in this order in one transaction."""


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        "pages, originals, sessions, settings and append keys",
        (
            # With the first tables, while the file has no log yet: the main file always shows whose it is.
            f"PRAGMA application_id = {APPLICATION_ID}",
            """
            CREATE TABLE pools (
                pool_id INTEGER PRIMARY KEY,
                name BLOB NOT NULL UNIQUE,
                handle_key BLOB NOT NULL,
                digest BLOB NOT NULL
            )
            """,
            # AUTOINCREMENT: the id of a deleted session, and with it of its pages, is never given to another.
            """
            CREATE TABLE sessions (
                session_id INTEGER PRIMARY KEY AUTOINCREMENT,
                pool_id INTEGER NOT NULL REFERENCES pools,
                name BLOB NOT NULL,
                page_count INTEGER NOT NULL,
                deletions INTEGER NOT NULL,
                digest BLOB NOT NULL,
                UNIQUE (pool_id, name)
            )
            """,
            # A row for every session from its beginning, so that a lost one is noticed.
            """
            CREATE TABLE session_settings (
                session_id INTEGER PRIMARY KEY REFERENCES sessions,
                pool_id INTEGER NOT NULL REFERENCES pools,
                settings BLOB NOT NULL,
                digest BLOB NOT NULL
            )
            """,
            # An id is session and ordinal (``drafts.first_page_id``): a session's pages lie side by side.
            # A body of NULL is the original with this sha256.
            """
            CREATE TABLE pages (
                page_id INTEGER PRIMARY KEY,
                pool_id INTEGER NOT NULL REFERENCES pools,
                kind BLOB NOT NULL,
                time REAL,
                speaker BLOB,
                labels BLOB NOT NULL,
                sha256 BLOB NOT NULL,
                body BLOB,
                digest BLOB NOT NULL
            )
            """,
            # Bodies too long for a page's row (module ``originals``), each once in its pool. Their sha256 is
            # their digest: no page shows one that does not match.
            """
            CREATE TABLE originals (
                original_id INTEGER PRIMARY KEY,
                pool_id INTEGER NOT NULL REFERENCES pools,
                sha256 BLOB NOT NULL,
                size INTEGER NOT NULL,
                body BLOB NOT NULL,
                UNIQUE (pool_id, sha256)
            )
            """,
            # Derived from the texts: may be dropped and worked out again.
            """
            CREATE TABLE page_terms (
                page_id INTEGER PRIMARY KEY REFERENCES pages,
                pool_id INTEGER NOT NULL REFERENCES pools,
                terms BLOB NOT NULL,
                derived BLOB NOT NULL,
                digest BLOB NOT NULL
            )
            """,
            """
            CREATE TABLE append_keys (
                pool_id INTEGER NOT NULL REFERENCES pools,
                append_key BLOB NOT NULL,
                first_page_id INTEGER NOT NULL,
                page_total INTEGER NOT NULL,
                digest BLOB NOT NULL,
                PRIMARY KEY (pool_id, append_key)
            ) WITHOUT ROWID
            """,
        ),
    ),
)


def check_version(path: str, version: int, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Raise StoreVersionError when the file has seen more migrations than we know."""
    if not 0 <= version <= len(migrations):
        raise StoreVersionError(
            f"store {path}",
            f"its layout is number {version}; this release knows layouts up to {len(migrations)}",
            "open it with the release that wrote it, or with a newer one; nothing was changed",
        )


def migrate(connection: sqlite3.Connection, path: str, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring the file to the newest layout, one transaction a migration.

    Several processes may do it at once: each migration is decided under the write lock.

    Raises:
        StoreVersionError: the file is newer than this release.
        sqlite3.Error: a statement failed; the migrations before it stand.
    """
    while (version := _user_version(connection)) != len(migrations):
        check_version(path, version, migrations)
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _user_version(connection) == version:
                for statement in migrations[version].statements:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        finally:
            connection.rollback()  # does nothing after the commit


def _user_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
