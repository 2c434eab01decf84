"""Several processes and one file: locks, races, forks, rights, full disks."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from context_gatekeeper.errors import StoreBusyError
from context_gatekeeper.stores.sqlite import SqliteStore
from tests.conformance.samples import turn
from tests.stores.processes import finish, said, start, tell

OPENERS = 8
FRESH_FILES = 6


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pages.db"


# -- locked by another process ----------------------------------------------------------------------


def test_an_append_that_waits_too_long_says_busy_and_stores_nothing(path: Path) -> None:
    store = SqliteStore(path, busy_timeout_seconds=0.02)
    store.append("p", "s", turn(0))
    holder = start("hold_write_lock.py", path)
    assert said(holder) == "held"
    with pytest.raises(StoreBusyError, match=r"another process held it.*try again"):
        store.append("p", "s", turn(1), idempotency_key="k")
    with pytest.raises(StoreBusyError):
        store.set_setting("p", "s", "language", "en")
    assert (store.page_count("p", "s"), store.settings("p", "s")) == (2, {})
    tell(holder, "let go")
    finish(holder)
    store.append("p", "s", turn(1), idempotency_key="k")
    assert store.page_count("p", "s") == 4
    store.close()


def test_appends_wait_for_another_process_and_reads_go_on(path: Path) -> None:
    store = SqliteStore(path)
    store.append("p", "s", turn(0))
    holder = start("hold_write_lock.py", path)
    assert said(holder) == "held"
    with ThreadPoolExecutor(1) as executor:
        appends = executor.submit(lambda: [store.append("p", "s", turn(number)) for number in range(1, 26)])
        for _ in range(50):
            assert [page.ordinal for page in store.scan("p", "s")] == [0, 1]
            assert store.postings("p", "s").block_count == 1
        assert not appends.done()
        tell(holder, "let go")
        assert len(appends.result(timeout=60)) == 25
    finish(holder)
    assert store.page_count("p", "s") == 52
    store.close()


def test_a_store_opens_while_another_process_writes(path: Path) -> None:
    SqliteStore(path).close()
    holder = start("hold_write_lock.py", path)
    assert said(holder) == "held"
    store = SqliteStore(path, busy_timeout_seconds=0)
    assert store.page_count("p", "s") == 0
    tell(holder, "let go")
    finish(holder)
    store.close()


# -- racing for a new file ----------------------------------------------------------------------------


def test_eight_processes_open_each_of_several_new_files_together(tmp_path: Path) -> None:
    workers = [start("open_and_append.py", f"session {number}") for number in range(OPENERS)]
    assert [said(worker) for worker in workers] == ["ready"] * OPENERS
    for number in range(FRESH_FILES):
        path = tmp_path / f"new{number}" / "pages.db"
        for worker in workers:
            tell(worker, str(path))
        assert [said(worker) for worker in workers] == ["ok"] * OPENERS
        store = SqliteStore(path)
        assert sorted(store.sessions("pool")) == [f"session {number}" for number in range(OPENERS)]
        assert all(store.page_count("pool", session) == 2 for session in store.sessions("pool"))
        store.close()
    for worker in workers:
        finish(worker)


def test_eight_threads_open_a_new_file_together(tmp_path: Path) -> None:
    for number in range(FRESH_FILES):
        path = tmp_path / f"new{number}" / "pages.db"
        barrier = Barrier(OPENERS)

        def open_and_append(thread: int, path: Path = path, barrier: Barrier = barrier) -> None:
            barrier.wait()
            store = SqliteStore(path)
            store.append("p", f"session {thread}", turn(0))
            store.close()

        with ThreadPoolExecutor(OPENERS) as executor:
            list(executor.map(open_and_append, range(OPENERS)))
        store = SqliteStore(path)
        assert len(store.sessions("p")) == OPENERS
        store.close()


def test_what_another_process_appends_is_seen_at_once(path: Path) -> None:
    store = SqliteStore(path)
    assert store.postings("pool", "theirs").block_count == 0
    worker = start("open_and_append.py", "theirs")
    assert said(worker) == "ready"
    tell(worker, str(path))
    assert said(worker) == "ok"
    assert store.page_count("pool", "theirs") == 2
    assert store.postings("pool", "theirs").block_count == 1
    assert [page.text for page in store.scan("pool", "theirs")] == ["theirs", ""]
    finish(worker)
    store.close()


# -- forks, rights, full disks --------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_is_refused_and_its_parent_goes_on(path: Path) -> None:
    output = finish(start("fork_with_a_store.py", path))
    assert output == "3 ['before the fork', \"from the child's own store\", 'after the fork']\n"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_place_without_rights_is_named_and_stays_as_it_was(open_folder: Path) -> None:
    file_only, folder_only, hidden = open_folder / "file", open_folder / "folder", open_folder / "hidden"
    for folder in (file_only, folder_only, hidden):
        store = SqliteStore(folder / "pages.db")
        store.append("p", "s", turn(0))
        store.close()
    (file_only / "pages.db").chmod(0o444)
    file_only.chmod(0o777)
    (folder_only / "pages.db").chmod(0o666)
    folder_only.chmod(0o555)
    hidden.chmod(0)
    paths = [file_only / "pages.db", folder_only / "pages.db", folder_only / "new.db", hidden / "pages.db"]
    outcomes = finish(start("open_without_rights.py", *paths)).splitlines()
    hidden.chmod(0o700)
    folder_only.chmod(0o700)
    assert [outcome.split(" ", 1)[0] for outcome in outcomes] == ["StoreError"] * 4
    assert f"{paths[0]} is read-only" in outcomes[0]
    assert f"{folder_only} is read-only" in outcomes[1]
    assert "Permission denied" in outcomes[2]
    assert "Permission denied" in outcomes[3]
    assert sorted(path.name for path in open_folder.rglob("*.db*")) == ["pages.db"] * 3


def test_a_full_disk_is_said_and_appends_go_on_when_there_is_room(path: Path) -> None:
    *refusals, stored = finish(start("fill_the_disk.py", path)).splitlines()
    assert [refusal.split(" ", 1)[0] for refusal in refusals] == ["StoreError"] * 3
    assert all(f"store {path}" in refusal for refusal in refusals)
    turns = int(stored.removeprefix("stored "))
    assert turns >= 3
    store = SqliteStore(path)
    texts = [page.text for page in store.scan("pool", "s") if page.text]
    assert texts == [*(f"turn {number} " * 900 for number in range(turns)), "after"]
    assert list(store.postings("pool", "s").ordinals("turn")) == [2 * number for number in range(turns)]
    store.close()
