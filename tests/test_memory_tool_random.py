"""Any commands of the memory tool against a plain dict, and many writers at once."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.engine.owner_view import OwnerView
from context_gatekeeper.errors import MemoryCommandError
from context_gatekeeper.memory_tool import PoolMemory
from context_gatekeeper.stores import open_store
from context_gatekeeper.types import PageKind
from tests.core.secret_samples import secret_samples
from tests.engine.agents import POOL

SECRET = next(sample.secret for sample in secret_samples() if sample.name == "github ghp")
NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(lambda parts: "/memories/" + "/".join(parts))
LINES = st.sampled_from(
    ["one", "two", "", "一二", "x\r", SECRET, f"token {SECRET}", "<redacted:github-token:00000000>"]
)
TEXTS = st.lists(LINES, max_size=4).map("\n".join)
WRITERS, LINES_EACH = 4, 10


class Commands(RuleBasedStateMachine):
    """Two pools over one store take turns; their files are compared with those of a dict."""

    @initialize()
    def start(self) -> None:
        self.folder = TemporaryDirectory()
        self.store = open_store()
        self.pools = [AgentPool(self.store, owner="ann", sealed_folder=self.folder.name) for _ in range(2)]
        self.files: dict[str, str] = {}
        self.versions: list[str] = []
        """Every text that was ever stored, and not deleted for good."""

    def teardown(self) -> None:
        self.folder.cleanup()

    def run(self, command: str, **fields: Any) -> bool:
        """Whether a command was carried out; what is refused changes nothing."""
        self.pools.reverse()
        try:
            PoolMemory(self.pools[0]).run({"command": command, **fields})
        except MemoryCommandError:
            return False
        return True

    def is_free(self, path: str) -> bool:
        """Whether a file may come to be at the path."""
        parts = path.split("/")
        above = {"/".join(parts[:end]) for end in range(3, len(parts) + 1)}
        return not above & self.files.keys() and not self.below(path)

    def below(self, path: str) -> dict[str, str]:
        return {name: text for name, text in self.files.items() if name == path or name.startswith(f"{path}/")}

    def keep(self, path: str, text: str) -> None:
        self.files[path] = text
        self.versions.append(text)

    @rule(path=NAMES, text=TEXTS)
    def create(self, path: str, text: str) -> None:
        assert self.run("create", path=path, file_text=text) == self.is_free(path)
        if self.is_free(path):
            self.keep(path, text)

    @rule(path=NAMES, old=st.sampled_from(["one", SECRET, "token", "\n", "x", "ne\nt"]), new=TEXTS)
    def str_replace(self, path: str, old: str, new: str) -> None:
        fits = self.files.get(path, "").count(old) == 1
        assert self.run("str_replace", path=path, old_str=old, new_str=new) == fits
        if fits:
            self.keep(path, self.files[path].replace(old, new))

    @rule(path=NAMES, line=st.integers(0, 4), text=TEXTS)
    def insert(self, path: str, line: int, text: str) -> None:
        lines = self.files.get(path, "").removesuffix("\n").split("\n") if self.files.get(path) else []
        fits = path in self.files and line <= len(lines)
        assert self.run("insert", path=path, insert_line=line, insert_text=text) == fits
        if fits:
            after = "\n".join([*lines[:line], text.rstrip("\n"), *lines[line:]])
            self.keep(path, after if after.endswith("\n") else f"{after}\n")

    @rule(path=NAMES)
    def delete(self, path: str) -> None:
        assert self.run("delete", path=path) == bool(self.below(path))
        for name in self.below(path):
            del self.files[name]

    @rule(old=NAMES, new=NAMES)
    def rename(self, old: str, new: str) -> None:
        moved = self.below(old)
        fits = bool(moved) and self.is_free(new) and not f"{new}/".startswith(f"{old}/")
        assert self.run("rename", old_path=old, new_path=new) == fits
        if fits:
            for name in moved:
                self.keep(new + name.removeprefix(old), self.files.pop(name))

    @rule(path=NAMES)
    def forget(self, path: str) -> None:
        self.pools.reverse()
        count = PoolMemory(self.pools[0]).forget(path)
        assert count >= len(self.below(path))
        for name in self.below(path):
            del self.files[name]
        assert PoolMemory(self.pools[0]).forget(path) == 0
        self.versions = [text for text in self.versions if text in self.stored_texts()]

    def stored_texts(self) -> set[str]:
        """Texts of all versions that are there, by their handles."""
        pool = self.pools[0]
        pages = [page for page in self.store.scan(POOL, "cgk:memory@ann") if page.kind is PageKind.FILE]
        view = OwnerView(self.store, POOL, "ann")
        handles = [view.handle_of(page) for page in pages if page.labels.origin == "memory-file"]
        return {pool.expand(handle).text for handle in handles}

    @invariant()
    def both_pools_hold_the_files_of_the_dict(self) -> None:
        for pool in self.pools:
            assert pool.memory_files() == self.files
            assert list(pool.memory_files()) == sorted(self.files)

    @invariant()
    def older_versions_stay(self) -> None:
        assert set(self.versions) == self.stored_texts()

    @invariant()
    def no_secret_is_in_the_store(self) -> None:
        assert all(SECRET not in repr(page) for page in self.store.scan(POOL, "cgk:memory@ann"))


TestCommands = Commands.TestCase
TestCommands.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)


# -- many writers -------------------------------------------------------------------------------


def inserted(memory: PoolMemory, writer: int) -> None:
    """Each line goes in front of all others; now and then a word of the writer's own is replaced."""
    for number in range(LINES_EACH):
        line = f"writer {writer} line {number}."
        memory.run({"command": "insert", "path": "/memories/log.md", "insert_line": 0, "insert_text": line})
        word = {"old_str": line, "new_str": f"{line} done"}
        memory.run({"command": "str_replace", "path": "/memories/log.md", **word})


def lines_of(pool: AgentPool) -> list[str]:
    return pool.memory_files()["/memories/log.md"].splitlines()


EXPECTED = sorted(f"writer {writer} line {number}. done" for writer in range(WRITERS) for number in range(LINES_EACH))


@pytest.mark.parametrize("is_shared", [True, False])
def test_threads_lose_nothing_of_each_other(tmp_path: Path, is_shared: bool) -> None:
    def pool_of() -> AgentPool:
        return AgentPool(tmp_path / "pages.db", sealed_folder=tmp_path / "sealed")

    pools = [pool_of()] * WRITERS if is_shared else [pool_of() for _ in range(WRITERS)]
    PoolMemory(pools[0]).run({"command": "create", "path": "/memories/log.md", "file_text": ""})
    with ThreadPoolExecutor(WRITERS) as threads:
        for done in [threads.submit(inserted, PoolMemory(pool), n) for n, pool in enumerate(pools)]:
            done.result()
    assert sorted(lines_of(pools[0])) == EXPECTED
    for pool in pools:
        pool.close()


def test_of_writers_who_create_or_replace_the_same_thing_one_alone_succeeds(tmp_path: Path) -> None:
    pools = [AgentPool(tmp_path / "pages.db", sealed_folder=tmp_path / "sealed") for _ in range(WRITERS)]

    def succeeds(pool: AgentPool, command: dict[str, Any]) -> bool:
        try:
            PoolMemory(pool).run(command)
        except MemoryCommandError:
            return False
        return True

    commands: list[dict[str, Any]] = [
        {"command": "create", "path": "/memories/a", "file_text": "key"},
        {"command": "str_replace", "path": "/memories/a", "old_str": "key", "new_str": "lock"},
        {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"},
        {"command": "delete", "path": "/memories/b"},
    ]
    with ThreadPoolExecutor(WRITERS) as threads:
        for command in commands:
            assert sum(threads.map(lambda pool, told=command: succeeds(pool, told), pools)) == 1
    for pool in pools:
        pool.close()


WRITER = """
import sys
from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.memory_tool import PoolMemory
from tests.test_memory_tool_random import inserted
with AgentPool(sys.argv[1], sealed_folder=sys.argv[2]) as pool:
    inserted(PoolMemory(pool), int(sys.argv[3]))
"""


def test_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    path, sealed = tmp_path / "pages.db", tmp_path / "sealed"
    with AgentPool(path, sealed_folder=sealed) as pool:
        PoolMemory(pool).run({"command": "create", "path": "/memories/log.md", "file_text": ""})
    root = Path(__file__).parents[1]
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path, sealed, str(n)], cwd=root) for n in range(WRITERS)]
    assert [writer.wait() for writer in writers] == [0] * WRITERS
    with AgentPool(path, sealed_folder=sealed) as pool:
        assert sorted(lines_of(pool)) == EXPECTED
