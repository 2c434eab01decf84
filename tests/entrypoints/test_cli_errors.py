"""Bad input: one line that names the thing, the cause and the next step, and data left as it was."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from context_gatekeeper import ContextGatekeeper
from tests.entrypoints.running import (
    COMMAND,
    EXAMPLE_EN,
    EXAMPLE_ZH,
    cgk_json,
    environment,
    error_line,
    run_cgk,
)

GOOD_LINE = json.dumps({"turns": [{"user_text": "hi", "assistant_text": "yo"}]})


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--budget", "0"), ("token_budget 0", "pass 1 or more")),
        (("--budget", "-5"), ("token_budget -5", "pass 1 or more")),
        (("--budget", "1" + "0" * 400), ("token_budget 1000", "no prompt has so many tokens")),
        (("--budget", "many"), ("--budget", "not a valid integer")),
        (("--profile", "fuzzy"), ("profile 'fuzzy'", "strict, recall")),
        (("--conversation", "nobody"), ("conversation 'nobody'", "take one of assistant-en")),
        (("--session", ""), ("session name ''", "choose another name")),
        (("--session", "a" * 600), ("session name", "choose another name")),
        (("--nonsense",), ("--nonsense", "--help")),
    ],
)
def test_a_bad_argument_is_one_line(tmp_path: Path, arguments: tuple[str, ...], parts: tuple[str, ...]) -> None:
    line = error_line(run_cgk(tmp_path, "select", EXAMPLE_EN, "--query", "x", *arguments))
    for part in parts:
        assert part in line
    assert digests(tmp_path) == {}


def test_bad_use_of_the_command_is_one_line(tmp_path: Path) -> None:
    assert "token_budget 0" in error_line(run_cgk(tmp_path, "explain", EXAMPLE_EN, "--query", "x", "--budget", "0"))
    assert "Missing option '--query'" in error_line(run_cgk(tmp_path, "select", EXAMPLE_EN))
    assert "No such command 'sing'" in error_line(run_cgk(tmp_path, "sing"))
    assert "neither a file nor --store is given" in error_line(run_cgk(tmp_path, "select", "--query", "x"))


def test_errors_leave_standard_output_empty_with_json_too(tmp_path: Path) -> None:
    error_line(run_cgk(tmp_path, "select", EXAMPLE_EN, "--query", "x", "--budget", "0", "--json"))


@pytest.mark.parametrize(
    "content", [b"just a text file, not a database\n" * 50, b"", b"SQLite format 3\x00" + b"\xff" * 4096]
)
def test_a_store_file_that_is_not_ours_stays_as_it_was(tmp_path: Path, content: bytes) -> None:
    store = tmp_path / "notes.db"
    store.write_bytes(content)
    if not content:
        with sqlite3.connect(store) as foreign:
            foreign.execute("CREATE TABLE recipes (name TEXT)")
        foreign.close()
    before = digests(tmp_path)
    line = error_line(run_cgk(tmp_path, "select", EXAMPLE_EN, "--query", "x", "--store", store))
    assert str(store) in line
    assert digests(tmp_path) == before


def test_a_broken_line_is_named_and_nothing_of_the_file_is_stored(tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text(f"{GOOD_LINE}\n{GOOD_LINE[:-7]}\n{GOOD_LINE}\n")
    line = error_line(run_cgk(tmp_path, "select", broken, "--query", "x", "--store", "pool.db"))
    assert f"{broken}, line 2" in line
    assert "mend or remove the line" in line
    assert list(digests(tmp_path)) == ["broken.jsonl"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "gone.jsonl: there is no such file" in error_line(run_cgk(tmp_path, "select", "gone.jsonl", "--query", "x"))


def test_a_file_name_with_newlines_still_gives_one_line(tmp_path: Path) -> None:
    assert "a b.jsonl" in error_line(run_cgk(tmp_path, "select", "a\nb.jsonl", "--query", "x"))


def test_a_session_that_holds_another_conversation_is_not_mixed(tmp_path: Path) -> None:
    store = ("--store", "pool.db", "--session", "one")
    kept = cgk_json(tmp_path, "select", EXAMPLE_EN, "--query", "x", *store)
    line = error_line(run_cgk(tmp_path, "select", EXAMPLE_ZH, "--query", "x", *store))
    assert "session 'one'" in line
    assert "its turn 0 is not that of conversation 'assistant-zh'" in line
    after = cgk_json(tmp_path, "select", "--query", "x", *store)
    assert (after["turns"], after["blocks"]) == (24, kept["blocks"])


@pytest.mark.parametrize(
    ("env", "parts"),
    [
        ({"CGK_BUGDET": "5"}, ("CGK_BUGDET", "did you mean CGK_BUDGET?")),
        ({"CGK_BUDGET": "much"}, ("CGK_BUDGET", "whole number")),
        ({"CGK_TIMEOUT": "-1"}, ("CGK_TIMEOUT", "above 0")),
        ({"CGK_CONFIG": "gone.toml"}, ("CGK_CONFIG=gone.toml", "no such file")),
    ],
)
def test_a_bad_setting_in_the_environment_is_named(tmp_path: Path, env: dict[str, str], parts: tuple[str, ...]) -> None:
    line = error_line(run_cgk(tmp_path, "select", EXAMPLE_EN, "--query", "x", env=env))
    for part in parts:
        assert part in line


def test_evaluations_refuse_in_the_same_way(tmp_path: Path) -> None:
    line = error_line(run_cgk(tmp_path, "eval", "followups", "--data", "gone.jsonl"))
    assert "cgk eval followups" in line


# -- stores that are asked without a file ---------------------------------------------------------------


@pytest.mark.parametrize("command", ["select", "explain"])
def test_asking_a_store_that_is_not_there_makes_none(tmp_path: Path, command: str) -> None:
    for store in ("gone.db", "sqlite:gone.db", "folder/gone.db"):
        line = error_line(run_cgk(tmp_path, command, "--query", "x", "--store", store))
        assert f"store {store}: there is no such file" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["select", "explain"])
def test_a_session_that_the_store_does_not_hold_is_named_with_those_it_holds(tmp_path: Path, command: str) -> None:
    cgk_json(tmp_path, "select", EXAMPLE_EN, "--query", "x", "--store", "pool.db")
    before = digests(tmp_path)
    for session in ((), ("--session", "other")):
        line = error_line(run_cgk(tmp_path, command, "--query", "x", "--store", "pool.db", *session))
        assert f"session '{session[1] if session else 'default'}': pool.db does not hold it" in line
        assert "--session with one of assistant-en" in line
    assert digests(tmp_path) == before
    assert cgk_json(tmp_path, command, "--query", "x", "--store", "pool.db", "--session", "assistant-en")["turns"] == 24


def test_a_store_without_conversations_says_so(tmp_path: Path) -> None:
    ContextGatekeeper(store=tmp_path / "pool.db").close()
    line = error_line(run_cgk(tmp_path, "select", "--query", "x", "--store", "pool.db"))
    assert "pool.db holds no conversation; name a FILE" in line


def test_one_conversation_brought_in_by_several_processes_is_stored_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as executor:
        calls = [
            executor.submit(cgk_json, tmp_path, "select", EXAMPLE_EN, "--query", "x", "--store", "pool.db")
            for _ in range(4)
        ]
        assert [call.result()["turns"] for call in calls] == [24] * 4


# -- output that cannot be written -----------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("arguments", ["demo", "demo --json", "config", "--help", "select --help", "eval --help"])
def test_output_that_cannot_be_written_is_one_line(tmp_path: Path, arguments: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *arguments.split()],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert line.startswith("error: standard output: it cannot be written to")
    assert "; free space" in line


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_an_error_that_cannot_be_said_still_has_its_exit_code(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "sing"], cwd=tmp_path, env=environment(tmp_path), stderr=full)
    assert done.returncode == 2
