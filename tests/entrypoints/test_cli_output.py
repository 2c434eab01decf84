"""Colours only on a terminal, help, version, demo, config, eval."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path
from unicodedata import east_asian_width

import pytest

from tests.entrypoints.running import EXAMPLE_EN, OnTerminal, cgk_json, environment, run_cgk

HIGHLIGHT = "\x1b[38;2;94;234;212m"
ERROR = "\x1b[38;2;248;113;113m"
ESCAPE = "\x1b"
LEAST_COLUMNS = 59
"""Of the table of blocks: numbers and reasons are never cut."""
SELECT = ("select", EXAMPLE_EN, "--query", "What lock_timeout did we set for the orders migration in Postgres?")


def test_no_colour_goes_into_a_pipe_even_when_asked_for(tmp_path: Path) -> None:
    for arguments in (SELECT, ("explain", *SELECT[1:]), ("demo",), ("select", "gone", "--query", "x")):
        result = run_cgk(tmp_path, "--color", *arguments)
        assert ESCAPE not in result.stdout + result.stderr


@pytest.mark.parametrize("columns", [50, 60, 80, 120])
def test_tables_fit_the_terminal(tmp_path: Path, columns: int) -> None:
    shown = {}
    for name, arguments in (("demo", ("demo",)), ("select", SELECT)):
        with OnTerminal(tmp_path, *arguments, env={"COLUMNS": str(columns)}) as terminal:
            assert terminal.end() == 0
        rows = [line for line in terminal.shown.splitlines() if line.startswith("|")]
        shown[name] = max(terminal_columns(row) for row in rows)
    assert min(columns, 80) - 2 <= shown["demo"] <= max(columns, LEAST_COLUMNS)
    assert shown["select"] <= max(columns, LEAST_COLUMNS)


def terminal_columns(text: str) -> int:
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def test_tables_in_a_pipe_are_as_wide_as_ever(tmp_path: Path) -> None:
    narrow, wide = (run_cgk(tmp_path, "demo", env={"COLUMNS": columns}).stdout for columns in ("40", "200"))
    assert narrow == wide


def test_the_palette_colours_a_terminal_when_asked_for(tmp_path: Path) -> None:
    with OnTerminal(tmp_path, *SELECT, "--color") as terminal:
        assert terminal.end() == 0
    assert f"{HIGHLIGHT}[turn 2]" in terminal.shown


def test_a_terminal_gets_no_colour_unasked(tmp_path: Path) -> None:
    with OnTerminal(tmp_path, *SELECT) as terminal:
        assert terminal.end() == 0
    assert "[turn 2]" in terminal.shown
    assert ESCAPE not in terminal.shown


@pytest.mark.parametrize("arguments", [("--json", "--color"), ("--color",)])
def test_neither_json_nor_a_dumb_terminal_is_coloured(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    env = {} if "--json" in arguments else {"TERM": "dumb"}
    with OnTerminal(tmp_path, *SELECT, *arguments, env=env) as terminal:
        assert terminal.end() == 0
    assert ESCAPE not in terminal.shown


def test_an_error_is_coloured_on_a_terminal_when_asked_for(tmp_path: Path) -> None:
    with OnTerminal(tmp_path, "--color", "select", "gone.jsonl", "--query", "x") as terminal:
        assert terminal.end() == 2
    assert f"{ERROR}error: gone.jsonl" in terminal.shown


def test_the_version_is_that_of_the_distribution(tmp_path: Path) -> None:
    assert run_cgk(tmp_path, "--version").stdout.split()[-1] == importlib.metadata.version("context-gatekeeper")


@pytest.mark.parametrize("command", [(), ("select",), ("explain",), ("chat",), ("demo",), ("config",), ("eval",)])
def test_every_command_has_help(tmp_path: Path, command: tuple[str, ...]) -> None:
    result = run_cgk(tmp_path, *command, "--help")
    assert result.returncode == 0
    assert "Usage: cgk" in result.stdout


def test_cgk_alone_prints_its_help(tmp_path: Path) -> None:
    result = run_cgk(tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert "Commands:" in result.stdout


def test_the_console_script_is_the_same_command(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("cgk")
    shown = subprocess.run(
        [script, "--help"], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    assert shown.stdout == run_cgk(tmp_path, "--help").stdout


def test_importing_the_package_and_the_entry_point_loads_no_terminal_package(tmp_path: Path) -> None:
    code = (
        "import sys, context_gatekeeper, context_gatekeeper.entrypoints.cli;"
        "print({'click', 'rich', 'httpx'} & set(sys.modules))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "set()"


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_what_needs_no_command_loads_neither_engine_nor_stores(tmp_path: Path, option: str) -> None:
    code = (
        "import sys; from context_gatekeeper.entrypoints.cli.app import run; run([sys.argv[1]]);"
        "rooms = {name.split('.')[1] for name in sys.modules if name.startswith('context_gatekeeper.')};"
        "print(sorted(rooms & {'agent_pool', 'engine', 'evals', 'gatekeeper', 'replay', 'stores', 'transcripts'}))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, option], env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    assert shown.stdout.splitlines()[-1] == "[]"


def test_the_demo_shows_a_chinese_and_an_english_conversation_with_reasons_and_savings(tmp_path: Path) -> None:
    shown = run_cgk(tmp_path, "demo")
    assert (shown.returncode, shown.stderr) == (0, "")
    titles = re.findall(r"=== (.+): (\d+) turns, (\d+) tokens go in ===", shown.stdout)
    assert len(titles) == 2
    assert re.search("[\u4e00-\u9fff]", shown.stdout)
    assert shown.stdout.count("tokens of context instead of") == 2
    assert "| reason" in shown.stdout
    assert "no block: topic new" in shown.stdout


def test_the_demo_as_json_gives_every_decision(tmp_path: Path) -> None:
    printed = cgk_json(tmp_path, "demo")
    assert len(printed["conversations"]) == 2
    for conversation in printed["conversations"]:
        assert len(conversation["queries"]) >= 4
        for query in conversation["queries"]:
            assert query["tokens_fitted"] < conversation["history_tokens"]
            assert all(block["reason"] for block in query["blocks"])


def test_a_pausing_demo_waits_for_enter(tmp_path: Path) -> None:
    queries = sum(len(one["queries"]) for one in cgk_json(tmp_path, "demo")["conversations"])
    with OnTerminal(tmp_path, "demo", "--pause") as terminal:
        for _ in range(queries):
            terminal.read_until("Enter goes on ")
            terminal.write("\n")
        assert terminal.end() == 0
    assert run_cgk(tmp_path, "demo", "--pause").stdout == run_cgk(tmp_path, "demo").stdout


def test_config_tells_where_each_value_comes_from(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("CGK_SESSION=mine\nCGK_API_KEY=sk-secret\n")
    (tmp_path / "context-gatekeeper.toml").write_text('budget = 900\nsession = "toml"\n')
    env = {"CGK_PROFILE": "recall"}
    printed = cgk_json(tmp_path, "config", env=env)
    assert printed["budget"] == {"value": 900, "origin": "file", "source": "context-gatekeeper.toml"}
    assert printed["session"] == {"value": "mine", "origin": "file", "source": ".env"}
    assert printed["profile"] == {"value": "recall", "origin": "env", "source": "CGK_PROFILE"}
    assert printed["provider"] == {"value": "minimax", "origin": "default", "source": ""}
    table = run_cgk(tmp_path, "config", env=env).stdout
    assert "| budget " in table
    assert "sk-secret" not in table + json.dumps(printed)


def test_eval_passes_its_arguments_on(tmp_path: Path) -> None:
    case = {
        "lang": "en",
        "history": [["What is a mutex?", "A lock."]],
        "query": "Why?",
        "expect": "continue",
        "gold_turn": 0,
    }
    (tmp_path / "cases.jsonl").write_text(json.dumps(case) + "\n")
    result = run_cgk(tmp_path, "eval", "followups", "--data", "cases.jsonl", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["cases"] == 1
    assert run_cgk(tmp_path, "--json", "eval", "followups", "--data", "cases.jsonl").stdout == result.stdout
