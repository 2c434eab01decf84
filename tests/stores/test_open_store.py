"""open_store finds the store that a target names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.errors import ConfigError, StoreError
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores import MemoryStore, open_store
from context_gatekeeper.stores.sqlite import SqliteStore
from tests.conformance.samples import turn


@pytest.mark.parametrize("target", [None, "memory:", ":memory:"])
def test_nothing_or_memory_names_a_store_in_memory(target: str | None) -> None:
    assert isinstance(open_store(target), MemoryStore)


def test_every_store_is_a_page_store(tmp_path: Path) -> None:
    for target in (None, tmp_path / "pages.db"):
        store = open_store(target)
        assert isinstance(store, PageStore)
        store.close()


@pytest.mark.parametrize("spelling", ["{}", "sqlite:{}", "SQLite:{}", "sqlite://{}"])
def test_a_path_names_a_sqlite_file(tmp_path: Path, spelling: str) -> None:
    path = tmp_path / "pages.db"
    store = open_store(spelling.format(path))
    assert isinstance(store, SqliteStore)
    assert Path(store.path) == path or store.path == f"//{path}"
    store.close()
    assert path.is_file()


def test_a_path_object_is_never_read_as_a_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_store(Path("postgresql:pages")).close()
    open_store("./memory:").close()
    open_store("c:pages").close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c:pages", "memory:", "postgresql:pages"]


def test_bytes_of_a_path_like_object_are_taken(tmp_path: Path) -> None:
    class BytesPath:
        def __fspath__(self) -> bytes:
            return os.fsencode(tmp_path / "p\u00e4ges.db")

    target: Any = BytesPath()
    open_store(target).close()
    assert (tmp_path / "p\u00e4ges.db").is_file()


@pytest.mark.parametrize("target", ["postgresql://host/db", "redis:6379", "http://localhost/", "memory:x", "file:x"])
def test_an_unknown_kind_is_refused_with_the_next_step(target: str) -> None:
    with pytest.raises(ConfigError, match="no such kind of store") as refusal:
        open_store(target)
    assert "SQLite file" in refusal.value.next_step
    assert "host" not in str(refusal.value)  # an address may hold a password


@pytest.mark.parametrize("target", [7, b"bytes", object(), ["pages.db"], True], ids=repr)
def test_what_is_no_target_is_refused(target: Any) -> None:
    with pytest.raises(ConfigError, match="pass a path"):
        open_store(target)


@pytest.mark.parametrize("target", ["", "sqlite:", "a\0b"])
def test_what_is_no_file_name_is_refused(target: str) -> None:
    with pytest.raises(ConfigError, match="no file name"):
        open_store(target)


@pytest.mark.parametrize("timeout", [-1, 3601, float("nan"), "10", None])
def test_a_busy_timeout_out_of_range_is_refused(tmp_path: Path, timeout: Any) -> None:
    with pytest.raises(ConfigError, match="busy_timeout_seconds"):
        SqliteStore(tmp_path / "pages.db", busy_timeout_seconds=timeout)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["what?.db", "50%25.db", "a#b&mode=memory.db", "two words.db", "设置.db", "'\"; --"])
def test_odd_file_names_are_just_names(tmp_path: Path, name: str) -> None:
    store = open_store(tmp_path / name)
    store.append("p", "s", turn(0))
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    "path",
    [
        "{}",
        "{}/file/below.db",
        "{}/dangling",
        "/proc/no-such/pages.db",
        "/dev/null",
        "{}/" + "x" * 300,
    ],
)
def test_a_place_that_cannot_hold_a_file_is_named(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "dangling").symlink_to(tmp_path / "missing" / "target")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(StoreError, match="store /") as refusal:
        open_store(path.format(tmp_path))
    assert refusal.value.next_step
    assert sorted(tmp_path.iterdir()) == before


def test_names_of_sessions_never_become_paths(tmp_path: Path) -> None:
    folder = tmp_path / "pool"
    store = open_store(folder / "pages.db")
    for name in ("../../escaped", "/escaped", "..\\escaped", "C:\\escaped", "~/escaped"):
        store.append(name, name, turn(0), idempotency_key=name)
        store.set_setting(name, name, name, name)
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["pool"]
    assert [path.name for path in folder.iterdir()] == ["pages.db"]


def test_a_store_in_memory_does_not_load_the_one_in_a_file() -> None:
    code = "import sys\nfrom context_gatekeeper import stores\nstores.open_store()\n"
    code += "print('context_gatekeeper.stores.sqlite' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
