"""Layout of the SQLite file, as ordered named migrations; each runs in one transaction.

``user_version`` counts the migrations that a file has seen. Never change one that was
released: add another.
"""

from __future__ import annotations

__all__ = ["APPLICATION_ID", "MIGRATIONS"]

APPLICATION_ID = 0x43474B31
"""``CGK1`` in the file's header: tells our files from other SQLite files."""

MIGRATIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "pages and settings",
        (
            """
            CREATE TABLE page (
                page_id   INTEGER PRIMARY KEY AUTOINCREMENT,
                pool      TEXT NOT NULL,
                session   TEXT NOT NULL,
                ordinal   INTEGER NOT NULL,
                kind      TEXT NOT NULL,
                role      TEXT NOT NULL,
                time      REAL,
                speaker   TEXT,
                body      BLOB NOT NULL,
                sha256    BLOB NOT NULL
            )
            """,
            "CREATE UNIQUE INDEX page_place ON page (pool, session, ordinal)",
            """
            CREATE TABLE page_terms (
                page_id   INTEGER PRIMARY KEY REFERENCES page (page_id) ON DELETE CASCADE,
                pool      TEXT NOT NULL,
                terms     BLOB NOT NULL,
                derived   TEXT NOT NULL
            )
            """,
            """
            CREATE TABLE append_key (
                pool      TEXT NOT NULL,
                key       TEXT NOT NULL,
                page_ids  TEXT NOT NULL,
                PRIMARY KEY (pool, key)
            ) WITHOUT ROWID
            """,
            """
            CREATE TABLE setting (
                pool      TEXT NOT NULL,
                session   TEXT NOT NULL,
                place     INTEGER NOT NULL,
                key       TEXT NOT NULL,
                value     TEXT NOT NULL,
                PRIMARY KEY (pool, session, key)
            )
            """,
        ),
    ),
)
