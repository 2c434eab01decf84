"""The SQLite file: how it is made and opened, and what is left alone."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from context_gatekeeper.errors import StoreBusyError, StoreDamagedError, StoreError, StoreVersionError
from context_gatekeeper.stores.migrations import APPLICATION_ID, MIGRATIONS
from context_gatekeeper.stores.sqlite import SqliteStore
from context_gatekeeper.stores.sqlite_file import (
    SYNCHRONOUS,
    connect_reading,
    connect_writing,
    store_errors,
    switch_to_log,
)
from tests.conformance.samples import turn


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pages.db"


def made(path: Path, turns: int = 3) -> None:
    """A closed store with a few turns."""
    store = SqliteStore(path)
    for number in range(turns):
        store.append("p", "s", turn(number))
    store.close()


def answers(path: Path, *pragmas: str) -> list[object]:
    with closing(sqlite3.connect(path)) as connection:
        return [connection.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in pragmas]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """Another application's connection to the file of a made store."""
    made(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


# -- made and opened ----------------------------------------------------------------------------


def test_a_new_file_says_whose_it_is_and_has_a_write_ahead_log(path: Path) -> None:
    made(path)
    assert answers(path, "application_id", "user_version", "journal_mode", "integrity_check") == [
        APPLICATION_ID,
        len(MIGRATIONS),
        "wal",
        "ok",
    ]


def test_appends_wait_for_the_disk_and_reads_cannot_write(path: Path) -> None:
    made(path)
    with closing(connect_writing(str(path), 1.5)) as writing, closing(connect_reading(str(path), 1.5)) as reading:
        assert SYNCHRONOUS == "FULL"
        assert writing.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert writing.execute("PRAGMA foreign_keys").fetchone() == (1,)
        assert writing.execute("PRAGMA busy_timeout").fetchone() == (1500,)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reading.execute("DELETE FROM pages")


def test_file_and_new_folders_are_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "one" / "two" / "pages.db"
    store = SqliteStore(path)
    store.append("p", "s", turn(0))
    modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()}
    assert modes == {"pages.db": 0o600, "pages.db-wal": 0o600, "pages.db-shm": 0o600}
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("one", "one/two")] == [0o700, 0o700]
    store.close()


def test_an_existing_folder_keeps_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o755)
    made(folder / "pages.db")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_a_closed_store_leaves_one_file(path: Path) -> None:
    made(path)
    assert [entry.name for entry in path.parent.iterdir()] == ["pages.db"]


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    made(path)
    assert answers(path, "application_id") == [APPLICATION_ID]


def test_a_relative_path_is_bound_when_the_store_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("pages.db")
    monkeypatch.chdir("/")
    store.append("p", "s", turn(0))
    store.close()
    assert answers(tmp_path / "pages.db", "application_id") == [APPLICATION_ID]


def test_a_session_goes_on_where_it_ended(path: Path) -> None:
    appended = []
    for number in range(6):
        store = SqliteStore(path)
        appended += store.append("p", "s", turn(number, f"ask {number}", time=99.0), idempotency_key=f"k{number}")
        store.set_setting("p", "s", f"key {number}", "value")
        store.close()
    store = SqliteStore(path)
    assert list(store.scan("p", "s")) == appended
    assert list(store.settings("p", "s")) == [f"key {number}" for number in range(6)]
    assert list(store.append("p", "s", turn(6), idempotency_key="k0")) == appended[:2]
    assert list(store.postings("p", "s").ordinals("ask")) == [0, 2, 4, 6, 8, 10]
    store.close()


def test_two_stores_of_one_process_follow_each_other(path: Path) -> None:
    one, two = SqliteStore(path), SqliteStore(path)
    for number in range(8):
        writer, reader = (one, two) if number % 2 else (two, one)
        writer.append("p", "s", turn(number, f"n{number} shared", ""))
        assert reader.page_count("p", "s") == 2 * number + 2
        assert reader.postings("p", "s").document_frequency("shared") == number + 1
        assert writer.postings("p", "s").document_frequency("shared") == number + 1
    one.close()
    two.append("p", "s", turn(8, "shared", ""))
    assert two.postings("p", "s").document_frequency("shared") == 9
    two.close()


def test_an_index_that_others_overtook_catches_up(path: Path) -> None:
    one, two = SqliteStore(path), SqliteStore(path)
    assert one.postings("p", "s").block_count == 0
    two.append("p", "s", turn(0, "shared", ""))
    one.append("p", "s", turn(1, "shared", ""))
    assert list(one.postings("p", "s").ordinals("shared")) == [0, 2]
    one.close()
    two.close()


# -- left alone -----------------------------------------------------------------------------------


def foreign_files() -> dict[str, bytes]:
    return {
        "text": b"dear diary\n" * 40,
        "one byte": b"x",
        "fifty bytes": b"SQLite format 3\0" + b"\0" * 34,
        "zeros": b"\0" * 8192,
        "picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9,
    }


@pytest.mark.parametrize("kind", foreign_files())
def test_a_file_that_is_no_database_stays_as_it_was(path: Path, kind: str) -> None:
    path.write_bytes(foreign_files()[kind])
    with pytest.raises(StoreDamagedError, match=r"no page store.*not touched"):
        SqliteStore(path)
    assert contents(path.parent) == {"pages.db": foreign_files()[kind]}


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("application_id", [0, 7])
def test_another_applications_database_stays_as_it_was(path: Path, mode: str, application_id: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute(f"PRAGMA application_id = {application_id}")
        connection.execute("CREATE TABLE pages (page_id INTEGER PRIMARY KEY, body)")
        connection.execute("INSERT INTO pages VALUES (1, 'theirs')")
    before = contents(path.parent)
    with pytest.raises(StoreDamagedError, match="another application"):
        SqliteStore(path)
    assert contents(path.parent) == before


def test_another_applications_unfinished_write_is_not_finished_by_us(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    Path(f"{path}-journal").write_bytes(b"their journal")
    before = contents(path.parent)
    with pytest.raises(StoreDamagedError, match="another application"):
        SqliteStore(path, busy_timeout_seconds=0.02)
    assert contents(path.parent) == before


def test_a_newer_releases_file_stays_as_it_was(path: Path) -> None:
    made(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = contents(path.parent)
    with pytest.raises(StoreVersionError, match="newer") as refusal:
        SqliteStore(path)
    assert str(path) in refusal.value.thing
    assert contents(path.parent) == before


def test_a_newer_version_that_is_only_in_the_log_is_seen(path: Path, raw: sqlite3.Connection) -> None:
    raw.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    assert int.from_bytes(path.read_bytes()[60:64], "big") == len(MIGRATIONS)
    with pytest.raises(StoreVersionError):
        SqliteStore(path)
    raw.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    store = SqliteStore(path)
    assert store.page_count("p", "s") == 6
    store.close()


# -- locked, full, unusable -------------------------------------------------------------------------


def test_a_file_that_another_reader_keeps_from_its_log_is_waited_for(path: Path, raw: sqlite3.Connection) -> None:
    raw.execute("PRAGMA journal_mode = DELETE")
    raw.execute("BEGIN")
    raw.execute("SELECT count(*) FROM pages").fetchone()
    with pytest.raises(StoreBusyError, match="too long"):
        SqliteStore(path, busy_timeout_seconds=0.03)
    raw.execute("COMMIT")
    store = SqliteStore(path)
    assert store.page_count("p", "s") == 6
    store.close()
    assert answers(path, "journal_mode") == ["wal"]


def test_a_place_without_write_ahead_logs_is_refused() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.text_factory = bytes
        with pytest.raises(StoreError, match=r"journal mode memory.*local disk"):
            switch_to_log(connection, "pages.db")


def test_a_file_without_room_says_so(path: Path, raw: sqlite3.Connection) -> None:
    raw.execute(f"PRAGMA max_page_count = {path.stat().st_size // 4096}")
    with pytest.raises(StoreError, match=r"no room.*free space"), store_errors(str(path), "written"):
        raw.execute("CREATE TABLE more (x)")


def test_any_other_failure_names_file_and_cause(path: Path) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA query_only = ON")
        with (
            pytest.raises(StoreError, match=rf"{path}: it cannot be written .attempt to write"),
            store_errors(str(path), "written"),
        ):
            connection.execute("CREATE TABLE more (x)")


def test_a_file_that_lost_its_tables_is_damaged_not_empty(path: Path, raw: sqlite3.Connection) -> None:
    raw.execute("PRAGMA foreign_keys = OFF")
    raw.execute("DROP TABLE sessions")
    store = SqliteStore(path)
    with pytest.raises(StoreDamagedError, match="no such table"):
        store.page_count("p", "s")
    with pytest.raises(StoreDamagedError, match="no such table"):
        store.append("p", "s", turn(3))
    store.close()


@pytest.mark.parametrize("what", ["removed", "replaced", "folder removed"])
def test_a_file_that_went_away_while_open_takes_no_more_appends(tmp_path: Path, what: str) -> None:
    path = tmp_path / "folder" / "pages.db"
    store, other = SqliteStore(path), SqliteStore(tmp_path / "other.db")
    store.append("p", "s", turn(0))
    if what == "removed":
        path.unlink()
    elif what == "replaced":
        (tmp_path / "other.db").rename(path)
    else:
        shutil.rmtree(path.parent)
    calls = (lambda: store.append("p", "s", turn(1)), lambda: store.set_setting("p", "s", "language", "en"))
    for call in calls:
        with pytest.raises(StoreError, match=r"pages\.db: its file was removed or replaced .*nothing was stored"):
            call()
    store.close()
    other.close()


def test_a_file_that_came_back_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "pages.db"
    store = SqliteStore(path)
    store.append("p", "s", turn(0))
    path.rename(tmp_path / "away.db")
    with pytest.raises(StoreError, match="removed or replaced"):
        store.append("p", "s", turn(1))
    (tmp_path / "away.db").rename(path)
    store.append("p", "s", turn(1))
    store.close()
    again = SqliteStore(path)
    assert again.page_count("p", "s") == 4
    again.close()


def test_a_change_of_the_working_folder_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("pages.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.append("p", "s", turn(0))
    assert store.page_count("p", "s") == 2
    store.close()
