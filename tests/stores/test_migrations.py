"""Migrations run in order, each whole, and go on where they stopped."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from context_gatekeeper.errors import StoreVersionError
from context_gatekeeper.stores.migrations import APPLICATION_ID, MIGRATIONS, Migration, check_version, migrate

FIRST = Migration("first", ("CREATE TABLE one (x)", "INSERT INTO one VALUES (1)"))
SECOND = Migration("second", ("CREATE TABLE two (x)", "INSERT INTO two SELECT x + 1 FROM one"))
BROKEN = Migration("broken", ("CREATE TABLE two (x)", "INSERT INTO nowhere VALUES (1)"))


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "pages.db", isolation_level=None)) as opened:
        yield opened


def tables(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]


def version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_migrations_run_in_order_and_once(connection: sqlite3.Connection) -> None:
    for _ in range(2):
        migrate(connection, "pages.db", (FIRST, SECOND))
    assert (tables(connection), version(connection)) == (["one", "two"], 2)
    assert connection.execute("SELECT x FROM two").fetchall() == [(2,)]


def test_an_older_file_gets_what_it_lacks(connection: sqlite3.Connection) -> None:
    migrate(connection, "pages.db", (FIRST,))
    connection.execute("INSERT INTO one VALUES (41)")
    migrate(connection, "pages.db", (FIRST, SECOND))
    assert connection.execute("SELECT x FROM two").fetchall() == [(2,), (42,)]


def test_a_failed_migration_leaves_nothing_and_those_before_it_stand(connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(connection, "pages.db", (FIRST, BROKEN))
    assert (tables(connection), version(connection)) == (["one"], 1)
    migrate(connection, "pages.db", (FIRST, SECOND))
    assert (tables(connection), version(connection)) == (["one", "two"], 2)


def test_a_migration_that_another_process_ran_meanwhile_is_not_run_again(tmp_path: Path) -> None:
    """The other one migrates between our look at the version and our lock."""
    path = tmp_path / "pages.db"

    class LateConnection(sqlite3.Connection):
        def execute(self, sql: str, *arguments: object) -> sqlite3.Cursor:
            if sql == "BEGIN IMMEDIATE":
                with closing(sqlite3.connect(path, isolation_level=None)) as other:
                    migrate(other, "pages.db", (FIRST, SECOND))
            return super().execute(sql, *arguments)

    with closing(sqlite3.connect(path, isolation_level=None, factory=LateConnection)) as connection:
        migrate(connection, "pages.db", (FIRST, SECOND))
        assert connection.execute("SELECT x FROM one").fetchall() == [(1,)]
        assert version(connection) == 2


@pytest.mark.parametrize("seen", [-1, len(MIGRATIONS) + 1, 2**31 - 1])
def test_a_version_that_no_release_of_ours_wrote_is_refused(seen: int) -> None:
    with pytest.raises(StoreVersionError, match="nothing was changed"):
        check_version("pages.db", seen)


def test_the_first_migration_marks_the_file_as_ours(connection: sqlite3.Connection) -> None:
    migrate(connection, "pages.db")
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)


def test_every_table_names_the_pool_and_every_key_begins_with_it(connection: sqlite3.Connection) -> None:
    migrate(connection, "pages.db")
    for table in tables(connection):
        if table.startswith("sqlite_"):
            continue
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        assert "pool_id" in columns
        for index in connection.execute(f"PRAGMA index_list({table})").fetchall():
            first_column = connection.execute(f"PRAGMA index_info({index[1]})").fetchone()[2]
            assert first_column == ("name" if table == "pools" else "pool_id")
