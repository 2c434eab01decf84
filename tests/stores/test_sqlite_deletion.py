"""Deleting: nothing of the content stays in the file or its log."""

from __future__ import annotations

import random
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from context_gatekeeper.errors import StoreBusyError, StoreDamagedError, StoreError
from context_gatekeeper.stores.sqlite import SqliteStore
from context_gatekeeper.stores.sqlite_file import connect_writing, rewrite_file
from context_gatekeeper.types import PageDraft, PageId, PageKind, PageLabels, Role
from tests.conformance.samples import turn


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pages.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(path, busy_timeout_seconds=0.05)
    yield opened
    opened.close()


def files_of(path: Path) -> bytes:
    """Everything on the disk: file, log and shared memory."""
    return b"".join(found.read_bytes() for found in sorted(path.parent.iterdir()))


def wordy(chance: random.Random, name: str, words: int) -> str:
    return f"{name} " + " ".join(f"{name}w{chance.randrange(10**9)}" for _ in range(words))


def test_no_byte_of_deleted_pages_is_left(store: SqliteStore, path: Path) -> None:
    """Sessions grow in turns, so that SQLite moves their rows about and leaves copies behind."""
    chance = random.Random(5)
    pages = []
    for number in range(60):
        for session in ("s", "t", "u"):
            name = f"canary{session}{number}x"
            draft = PageDraft(
                number,
                Role.USER,
                wordy(chance, name, chance.choice([1, 8, 30])),
                {f"{name}term": 1},
                f"{name}note",
                None,
                f"{name}speaker",
                PageKind.FILE,
                PageLabels(path=f"{name}path"),
            )
            pages += store.append("p", session, [draft, PageDraft(number, Role.ASSISTANT, wordy(chance, name, 90))])
    originals = {page.text: zlib.compress(page.text.encode(), 3) for page in pages if len(page.text) > 1000}
    assert len(originals) >= 180
    assert all(body in files_of(path) for body in list(originals.values())[-20:])
    deleted = [page for page in pages if page.session == "s" or page.ordinal % 4 < 2]
    store.delete_pages("p", [page.page_id for page in deleted if page.session != "s"])
    store.delete_session("p", "s")
    left = files_of(path)
    for page in deleted:
        name = page.text.split()[0].encode()
        if page.role is Role.USER:
            assert name + b"term" not in left
            assert name + b"note" not in left
            assert name + b"speaker" not in left
            assert name + b"path" not in left
        assert page.text.encode()[:60] not in left
        if page.text in originals:
            assert originals[page.text][10:60] not in left
    kept = [page for page in pages if page not in deleted]
    assert [page for page in store.scan("p", "t") if page.text] == [page for page in kept if page.session == "t"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM originals").fetchone() == (
            sum(len(page.text) > 1000 for page in kept),
        )
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_reopened_store_has_the_markers(store: SqliteStore, path: Path) -> None:
    user, assistant = store.append("p", "s", turn(0, "ask", "tell", derived="notes"))
    store.delete_pages("p", [user.page_id])
    again = SqliteStore(path)
    assert list(again.scan("p", "s")) == list(store.scan("p", "s"))
    assert [page.labels.deleted for page in again.scan("p", "s")] == [True, False]
    assert again.get("p", [assistant.page_id]) == (assistant,)
    again.close()


def test_an_index_that_another_store_holds_follows(store: SqliteStore, path: Path) -> None:
    other = SqliteStore(path)
    pages = [page for number in range(3) for page in store.append("p", "s", turn(number, f"ask {number}", ""))]
    assert list(other.postings("p", "s").ordinals("ask")) == [0, 2, 4]
    store.delete_pages("p", [pages[2].page_id])
    assert list(other.postings("p", "s").ordinals("ask")) == [0, 4]
    other.append("p", "s", turn(3, "ask 3", ""))
    assert list(other.postings("p", "s").ordinals("ask")) == [0, 4, 6]
    assert list(store.postings("p", "s").ordinals("ask")) == [0, 4, 6]
    other.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE pages SET body = zeroblob(9) WHERE page_id = {page}",
        "UPDATE pages SET sha256 = 7 WHERE page_id = {page}",
        "UPDATE pages SET kind = x'ff' WHERE page_id = {page}",
        "UPDATE pages SET pool_id = 33 WHERE page_id = {page}",
        "DELETE FROM pages WHERE page_id = {page}",
        "DELETE FROM page_terms WHERE page_id = {page}",
        "DELETE FROM originals",
    ],
)
def test_a_damaged_page_can_be_deleted(store: SqliteStore, path: Path, statement: str) -> None:
    pages = store.append("p", "s", turn(0, "ask " * 400, "tell"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement.format(page=pages[0].page_id))
    with pytest.raises(StoreDamagedError):
        list(store.scan("p", "s"))
    store.delete_pages("p", [pages[0].page_id])
    marker, kept = store.scan("p", "s")
    assert (marker.text, marker.labels.deleted, marker.kind) == ("", True, PageKind.TURN)
    assert kept == pages[1]


# -- other processes ------------------------------------------------------------------------------------


def test_a_reader_that_holds_the_log_is_named_and_deleting_again_empties_it(store: SqliteStore, path: Path) -> None:
    page, _ = store.append("p", "s", turn(0, "a canary sings"))
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM pages").fetchone()
        with pytest.raises(StoreBusyError, match=r"can no longer be read.*delete it again"):
            store.delete_pages("p", [page.page_id])
        assert next(store.scan("p", "s")).labels.deleted
        assert b"canary" in files_of(path)
        reader.execute("COMMIT")
    assert store.delete_pages("p", [page.page_id]) == ()
    assert b"canary" not in files_of(path)


def test_a_writer_that_is_in_the_way_is_named(store: SqliteStore, path: Path) -> None:
    page, _ = store.append("p", "s", turn(0))
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError, match="another process held it"):
            store.delete_pages("p", [page.page_id])
        with closing(connect_writing(str(path), 0)) as ours, pytest.raises(StoreBusyError, match="delete it again"):
            rewrite_file(ours, str(path))
        writer.execute("COMMIT")
    assert next(store.scan("p", "s")) == page


def test_a_file_that_cannot_be_written_anew_says_so(path: Path) -> None:
    SqliteStore(path).close()
    with closing(connect_writing(str(path), 0)) as connection:
        connection.execute("BEGIN")
        with pytest.raises(sqlite3.OperationalError, match="VACUUM"):
            rewrite_file(connection, str(path))


def test_a_deletion_whose_file_went_away_deletes_nothing(store: SqliteStore, path: Path) -> None:
    page, _ = store.append("p", "s", turn(0))
    path.rename(path.with_name("away.db"))
    with pytest.raises(StoreError, match="removed or replaced"):
        store.delete_pages("p", [page.page_id])
    path.with_name("away.db").rename(path)
    assert next(store.scan("p", "s")) == page


def test_an_id_beyond_its_session_is_unknown(store: SqliteStore) -> None:
    page, _ = store.append("p", "s", turn(0))
    with pytest.raises(LookupError):
        store.delete_pages("p", [PageId(page.page_id + 2)])
