"""What a new user meets with many files and sessions: files without a session, short handles, narrow terminals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.engine.agents import SAMPLES
from tests.entrypoints.running import OnTerminal, Result, cgk_json, error_line, run_cgk

LOG = SAMPLES / "agents.jsonl"
EMPTY_FILES = {
    "summary.jsonl": '{"type":"summary","summary":"All is done","leafUuid":"u1"}\n',
    "empty.jsonl": "",
    "copies.jsonl": '{"type":"file-history-snapshot"}\n',
}
REPLAY = ("--policy", "mask-60k", "--plot", "none")


def places(folder: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(folder / "data"), "XDG_CONFIG_HOME": str(folder / "config")}


def cgk(folder: Path, *arguments: object) -> Result:
    return run_cgk(folder, *arguments, env=places(folder))


def told(folder: Path, *arguments: object) -> dict[str, Any]:
    return cgk_json(folder, *arguments, env=places(folder))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files that hold no session."""
    for name, text in EMPTY_FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("command", [("replay", *REPLAY), ("import",)], ids=["replay", "import"])
def test_of_several_files_those_without_a_session_are_named_and_passed_over(
    folder: Path, command: tuple[str, ...]
) -> None:
    shown = cgk(folder, *command, "summary.jsonl", LOG, "empty.jsonl", "copies.jsonl")
    assert shown.returncode == 0
    assert shown.stderr.splitlines() == [
        f"{name}: skipped: it holds no session" for name in ("summary.jsonl", "empty.jsonl", "copies.jsonl")
    ]
    assert "2 sessions" in shown.stdout
    printed = told(folder, *command, "summary.jsonl", LOG)
    assert printed["skipped"] == ["summary.jsonl"]
    assert told(folder, *command, LOG)["skipped"] == []


@pytest.mark.parametrize("command", [("replay", *REPLAY), ("import",)], ids=["replay", "import"])
def test_where_no_file_holds_a_session_it_is_an_error(folder: Path, command: tuple[str, ...]) -> None:
    shown = cgk(folder, *command, *EMPTY_FILES)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.splitlines()[-1] == "error: 3 files: none of them holds a session; pass other files"
    for name, part in zip(EMPTY_FILES, ("it holds no session", "it is empty", "no record of it"), strict=True):
        assert f"{name}: {part}" in error_line(cgk(folder, *command, name))
    assert not list(folder.rglob("*.db"))


@pytest.mark.parametrize("command", [("replay", *REPLAY), ("import",)], ids=["replay", "import"])
def test_a_file_that_is_not_there_or_no_log_ends_it_as_before(folder: Path, command: tuple[str, ...]) -> None:
    (folder / "notes.txt").write_text("just notes\n")
    for name, part in (("absent.jsonl", "there is no such file"), ("notes.txt", "it holds no JSON")):
        shown = cgk(folder, *command, name, LOG, "empty.jsonl")
        assert (shown.returncode, shown.stdout) == (2, "")
        assert part in shown.stderr


def test_a_short_handle_says_how_to_name_its_session(tmp_path: Path) -> None:
    cgk(tmp_path, "import", LOG)
    names = [one["name"] for one in told(tmp_path, "inspect")["sessions"]]
    for command in ("expand", "pin"):
        line = error_line(cgk(tmp_path, command, "p1"))
        assert line.endswith(
            "handle 'p1': it names a block of a session, and the pool has 2 sessions; "
            f"add --session NAME with one of {', '.join(names)}"
        )
        assert cgk(tmp_path, command, "p1", "--session", names[0]).returncode == 0


def test_what_was_forgotten_is_counted_though_its_session_is_gone(tmp_path: Path) -> None:
    cgk(tmp_path, "import", LOG)
    one, two = (info["name"] for info in told(tmp_path, "inspect")["sessions"])
    handle = told(tmp_path, "pages", two)["pages"][0]["handle"]
    deleted = told(tmp_path, "forget", one, "--yes")["deleted_pages"]
    deleted += told(tmp_path, "forget", handle, "--yes")["deleted_pages"]
    assert f"deleted        {deleted}" in cgk(tmp_path, "stats").stdout
    stats = told(tmp_path, "stats")
    assert (stats["sessions"], stats["totals"]["deleted"]) == (1, deleted)


@pytest.mark.parametrize("columns", [80, 100])
def test_no_table_is_wider_than_the_terminal(tmp_path: Path, columns: int) -> None:
    path = f"/srv/{'deep/' * 30}export.py"
    call = {"id": "c", "type": "function", "function": {"name": "Read", "arguments": json.dumps({"file_path": path})}}
    log = {
        "id": "long-name-" * 9,
        "source": "made",
        "messages": [
            {"role": "user", "content": "Please mend the export, 它太慢了. " * 9},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "a | b | c\n" * 9},
        ],
    }
    (tmp_path / "log.jsonl").write_text(json.dumps(log) + "\n")
    cgk(tmp_path, "import", "log.jsonl")
    cgk(tmp_path, "pin", "p0")
    for command in (("inspect",), ("inspect", "long"), ("pages", "long"), ("pin",), ("stats",)):
        with OnTerminal(tmp_path, *command, env={**places(tmp_path), "COLUMNS": str(columns)}) as terminal:
            assert terminal.end() == 0
        rows = [line for line in terminal.shown.splitlines() if line.startswith("|")]
        wide = sum(char in "它太慢了" for char in max(rows, key=len))
        assert max(map(len, rows)) + wide <= columns, (command, rows)
        assert command != ("inspect", "long") or any("deep/export.py |" in row for row in rows)
    assert path in cgk(tmp_path, "inspect", "long").stdout, "in a pipe nothing is cut"
