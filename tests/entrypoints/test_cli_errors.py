"""Bad input: one line that names the thing, the cause and the next step, and data left as it was."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest

from tests.entrypoints.running import EXAMPLE_EN, EXAMPLE_ZH, cgk_json, error_line, run_cgk

GOOD_LINE = json.dumps({"turns": [{"user_text": "hi", "assistant_text": "yo"}]})


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--budget", "0"), ("token_budget 0", "pass 1 or more")),
        (("--budget", "-5"), ("token_budget -5", "pass 1 or more")),
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
