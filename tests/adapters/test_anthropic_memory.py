"""The memory tool of the SDK with a pool behind it, beside the SDK's own with a folder behind it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    BetaLocalFilesystemMemoryTool,
    ToolError,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from context_gatekeeper.adapters.anthropic_memory import sdk_async_memory_tool, sdk_memory_tool
from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.errors import ConfigError, StoreError
from context_gatekeeper.memory_tool import PoolMemory

COMMANDS: list[dict[str, Any]] = [
    {"command": "create", "path": "/memories/a.md", "file_text": "one\ntwo\ntwo\n"},
    {"command": "view", "path": "/memories/a.md", "view_range": [2, -1]},
    {"command": "str_replace", "path": "/memories/a.md", "old_str": "one", "new_str": "1"},
    {"command": "insert", "path": "/memories/a.md", "insert_line": 1, "insert_text": "between"},
    {"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b/c.md"},
    {"command": "view", "path": "/memories/b/c.md"},
    {"command": "delete", "path": "/memories/b"},
]


@pytest.fixture
def pool() -> Iterator[AgentPool]:
    with AgentPool() as opened:
        yield opened


def told(tool: BetaAbstractMemoryTool, command: dict[str, Any]) -> tuple[bool, str]:
    """Whether a call is an error, and its text."""
    try:
        text, is_error = tool.call(command), False
    except ToolError as error:
        text, is_error = error.content, True
    assert isinstance(text, str)
    return is_error, text


def test_it_is_the_tool_that_the_sdk_declares(pool: AgentPool) -> None:
    tool = sdk_memory_tool(PoolMemory(pool))
    assert isinstance(tool, BetaAbstractMemoryTool)
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
    assert tool.name == "memory"


def test_it_says_what_the_tool_of_the_sdk_says(pool: AgentPool, tmp_path: Path) -> None:
    ours, theirs = sdk_memory_tool(PoolMemory(pool)), BetaLocalFilesystemMemoryTool(str(tmp_path))
    for command in COMMANDS:
        assert told(ours, command) == told(theirs, command)
        assert told(ours, command)[0] == told(theirs, command)[0]


def test_the_asynchronous_tool_says_the_same(pool: AgentPool) -> None:
    tool = sdk_async_memory_tool(PoolMemory(pool))
    assert isinstance(tool, BetaAsyncAbstractMemoryTool)
    with AgentPool() as other:
        expected = [told(sdk_memory_tool(PoolMemory(other)), command)[1] for command in COMMANDS]

    async def run() -> list[Any]:
        return [await tool.call(command) for command in COMMANDS]

    assert asyncio.run(run()) == expected
    with pytest.raises(ToolError, match="does not exist"):
        asyncio.run(tool.call(COMMANDS[-1]))  # type: ignore[arg-type]
    assert asyncio.run(tool.clear_all_memory()) == "All memory cleared"  # type: ignore[arg-type]


def test_commands_may_come_as_the_records_of_the_sdk(pool: AgentPool) -> None:
    from anthropic.types.beta import BetaMemoryTool20250818CreateCommand, BetaMemoryTool20250818ViewCommand

    tool = sdk_memory_tool(PoolMemory(pool))
    path = "/memories/a.md"
    tool.create(BetaMemoryTool20250818CreateCommand(command="create", path=path, file_text="it"))
    view = BetaMemoryTool20250818ViewCommand(command="view", path=path)
    assert tool.view(view) == tool.execute(view) == f"Here's the content of {path} with line numbers:\n     1\tit"


@pytest.mark.parametrize(
    "command", [{}, {"command": "exec"}, {"command": "view"}, {"command": "create", "path": 3}, {"command": None}]
)
def test_junk_is_an_error_of_the_call(pool: AgentPool, command: dict[str, Any]) -> None:
    is_error, text = told(sdk_memory_tool(PoolMemory(pool)), command)
    assert is_error
    assert text


def test_an_error_of_the_pool_tells_the_model_nothing_of_its_files(tmp_path: Path) -> None:
    pool = AgentPool(tmp_path / "pages.db", sealed_folder=tmp_path / "sealed")
    tool = sdk_memory_tool(PoolMemory(pool))
    tool.call(COMMANDS[0])
    pool.close()
    with pytest.raises(StoreError):
        pool.memory_files()
    assert told(tool, COMMANDS[1]) == (True, "The memory cannot be reached at the moment.")


def test_clearing_deletes_every_version_for_good(pool: AgentPool) -> None:
    memory = PoolMemory(pool)
    tool = sdk_memory_tool(memory)
    for command in COMMANDS[:4]:
        tool.call(command)
    assert tool.clear_all_memory() == "All memory cleared"
    assert (pool.memory_files(), memory.forget()) == ({}, 0)


def test_without_the_sdk_the_error_says_what_to_install(pool: AgentPool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "anthropic"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "anthropic", None)
    for make in (sdk_memory_tool, sdk_async_memory_tool):
        with pytest.raises(ConfigError, match=r"context-gatekeeper\[anthropic\]"):
            make(PoolMemory(pool))


def test_another_missing_module_is_not_called_the_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "anthropic.py").write_text("import a_module_that_is_missing\n", encoding="utf-8")
    for name in [name for name in sys.modules if name.partition(".")[0] == "anthropic"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    with AgentPool() as pool, pytest.raises(ModuleNotFoundError, match="a_module_that_is_missing"):
        sdk_memory_tool(PoolMemory(pool))


def test_importing_the_adapter_does_not_import_the_sdk() -> None:
    code = "import sys, context_gatekeeper.adapters.anthropic_memory; sys.exit('anthropic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- any commands, beside the SDK's own tool ----------------------------------------------------

PATHS = st.lists(st.sampled_from(["a", "b", "c.md"]), min_size=1, max_size=3).map("/".join)
NAMES = PATHS.map(lambda path: f"/memories/{path}")
TEXTS = st.lists(st.sampled_from(["one", "two", "", "一", "x\r"]), max_size=4).map("\n".join)
RANGES = st.one_of(st.none(), st.tuples(st.integers(0, 5), st.integers(-1, 5)).map(list))
ANY_COMMAND = st.one_of(
    st.fixed_dictionaries({"command": st.just("view"), "path": NAMES, "view_range": RANGES}),
    st.fixed_dictionaries({"command": st.just("create"), "path": NAMES, "file_text": TEXTS}),
    st.fixed_dictionaries(
        {"command": st.just("str_replace"), "path": NAMES, "old_str": TEXTS.filter(bool), "new_str": TEXTS}
    ),
    st.fixed_dictionaries(
        {"command": st.just("insert"), "path": NAMES, "insert_line": st.integers(-1, 5), "insert_text": TEXTS}
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": NAMES}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": NAMES, "new_path": NAMES}),
)


def prune(folder: Path) -> None:
    """Take away folders without files, which a pool does not have."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def is_listing(text: str) -> bool:
    return text.startswith("Here're ")


@settings(max_examples=150, deadline=None)
@given(commands=st.lists(ANY_COMMAND, max_size=12))
def test_any_commands_give_what_the_tool_of_the_sdk_gives(
    tmp_path_factory: pytest.TempPathFactory, commands: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("memory")
    theirs = BetaLocalFilesystemMemoryTool(str(folder))
    with AgentPool() as pool:
        ours = sdk_memory_tool(PoolMemory(pool))
        for command in [*commands, {"command": "view", "path": "/memories"}]:
            try:
                expected = told(theirs, command)
            except OSError:  # theirs leaks what the disk says of a file in the place of a folder
                expected = (True, "")
            is_error, text = told(ours, command)
            prune(folder / "memories")
            assert is_error == expected[0], (command, text, expected[1])
            if is_listing(text):  # sizes of folders are the disk's there
                shown = [line.split("\t")[-1] for line in text.splitlines()]
                assert shown == [line.split("\t")[-1] for line in expected[1].splitlines()]
            elif expected[1]:
                assert text == expected[1]
