"""``cgk select`` and ``cgk explain`` as processes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from context_gatekeeper.core.topic_gate import OVERLAP_CONTINUE_THRESHOLD
from context_gatekeeper.entrypoints.cli.decisions import verdict_line
from context_gatekeeper.entrypoints.cli.terminal import Painter
from context_gatekeeper.gatekeeper import ContextGatekeeper
from context_gatekeeper.transcripts import read_conversations
from context_gatekeeper.types import Decision, GateVerdict, TopicMove
from tests.entrypoints.running import COMMAND, EXAMPLE_EN, EXAMPLE_ZH, cgk_json, environment, error_line, run_cgk

QUERY_EN = "What lock_timeout did we set for the orders migration in Postgres?"
QUERY_ZH = "小猫第二针疫苗什么时候打？"


def as_the_library_says(path: Path, query: str, budget: int = 4000) -> list[dict[str, object]]:
    (conversation,) = read_conversations(path)
    with ContextGatekeeper(budget) as gatekeeper:
        for turn in conversation.turns:
            gatekeeper.add_turn(turn.user_text, turn.assistant_text, time=turn.time, speakers=turn.speakers)
        return gatekeeper.select(query)


@pytest.mark.parametrize(("path", "query", "needed"), [(EXAMPLE_EN, QUERY_EN, 2), (EXAMPLE_ZH, QUERY_ZH, 14)])
def test_select_returns_what_the_library_selects(tmp_path: Path, path: Path, query: str, needed: int) -> None:
    printed = cgk_json(tmp_path, "select", path, "--query", query)
    assert printed["blocks"] == as_the_library_says(path, query)
    assert needed in [block["turn_id"] for block in printed["blocks"]]
    assert (printed["turns"], printed["query"], printed["profile"]) == (24, query, "strict")
    assert 0 < printed["tokens"] < printed["history_tokens"]


def test_select_shows_a_pipe_table_with_reasons_then_the_texts(tmp_path: Path) -> None:
    shown = run_cgk(tmp_path, "select", EXAMPLE_EN, "--query", QUERY_EN).stdout
    header = next(line for line in shown.splitlines() if line.startswith("|"))
    assert [cell.strip() for cell in header.strip("|").split("|")] == ["turn", "tokens", "score", "reason", "covers"]
    assert "covers anchors" in shown
    assert "lock_timeout" in shown
    assert "[turn 2]\nuser: " in shown
    assert "of 24 turns" in shown.splitlines()[-1]


def test_a_new_topic_gets_no_block_and_says_why(tmp_path: Path) -> None:
    query = "Can you suggest a name for a robot vacuum cleaner?"
    assert cgk_json(tmp_path, "select", EXAMPLE_EN, "--query", query)["blocks"] == []
    assert "no block: topic new" in run_cgk(tmp_path, "select", EXAMPLE_EN, "--query", query).stdout


def test_the_prompt_is_the_librarys_and_ends_in_the_query(tmp_path: Path) -> None:
    printed = cgk_json(tmp_path, "select", EXAMPLE_EN, "--query", QUERY_EN, "--prompt")
    assert printed["prompt"].endswith(f"user: {QUERY_EN}")
    assert "lock_timeout to 2 seconds" in printed["prompt"]
    assert run_cgk(tmp_path, "select", EXAMPLE_EN, "--query", QUERY_EN, "--prompt").stdout == printed["prompt"] + "\n"


def test_budget_and_profile_reach_the_selection(tmp_path: Path) -> None:
    small = cgk_json(tmp_path, "select", EXAMPLE_EN, "--query", QUERY_EN, "--budget", 60)
    assert small["tokens"] <= 60
    assert small["blocks"] == as_the_library_says(EXAMPLE_EN, QUERY_EN, 60)
    assert cgk_json(tmp_path, "select", EXAMPLE_EN, "--query", QUERY_EN, "--profile", "recall")["profile"] == "recall"


def test_settings_come_from_the_environment_and_flags_beat_them(tmp_path: Path) -> None:
    env = {"CGK_PROFILE": "recall"}
    assert cgk_json(tmp_path, "select", EXAMPLE_EN, "--query", "x", env=env)["profile"] == "recall"
    assert (
        cgk_json(tmp_path, "select", EXAMPLE_EN, "--query", "x", "--profile", "strict", env=env)["profile"] == "strict"
    )


def test_explain_shows_gate_thresholds_stages_coverage_and_both_token_counts(tmp_path: Path) -> None:
    printed = cgk_json(tmp_path, "explain", EXAMPLE_EN, "--query", QUERY_EN)
    verdict = printed["verdict"]
    assert verdict["move"] == "switch"
    assert {"anchor_overlap_ratio", "new_token_ratio", "reason", "points", "is_deictic", "is_soft"} <= verdict.keys()
    assert printed["thresholds"]["overlap_continue"] == OVERLAP_CONTINUE_THRESHOLD
    assert printed["stages"][0]["stage"] == "recall"
    assert printed["tokens_documented"] > printed["tokens_fitted"] > 0
    shown = run_cgk(tmp_path, "explain", EXAMPLE_EN, "--query", QUERY_EN).stdout
    for fact in (f"{verdict['anchor_overlap_ratio']:.3f}", "0.45", "0.20", "0.70", "| stage", "coverage", "documented"):
        assert fact in shown


@pytest.mark.parametrize(
    ("marks", "notes"),
    [
        ({}, ""),
        ({"is_soft": True}, ", soft"),
        ({"is_deictic": True}, ", points back"),
        ({"is_deictic": True, "is_soft": True}, ", points back, soft"),
    ],
    ids=["plain", "soft", "deictic", "both"],
)
def test_the_gates_line_notes_behind_the_reason_what_points_back_and_what_is_soft(
    marks: dict[str, bool], notes: str
) -> None:
    verdict = GateVerdict(TopicMove.SWITCH, "new anchors", 0.0, 1.0, 2.5, **marks)
    decision = Decision("q", "strict", verdict, "running", "made", (), (), 1.0, {}, 0, 0, 4000)
    assert verdict_line(decision, Painter()) == f"switch (new anchors{notes}), topic running (made)"
    assert decision.to_dict()["verdict"]["is_soft"] is marks.get("is_soft", False)


def test_the_first_conversation_is_taken_with_a_note_unless_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    path.write_text(
        "".join(
            json.dumps({"id": name, "turns": [{"user_text": f"{name}?", "assistant_text": "yes"}]}) + "\n"
            for name in "ab"
        )
    )
    first = run_cgk(tmp_path, "select", path, "--query", "x", "--json")
    assert json.loads(first.stdout)["conversation"] == "a"
    assert "holds 2 conversations; this is a" in first.stderr
    second = run_cgk(tmp_path, "select", path, "--query", "x", "--conversation", "b", "--json")
    assert (json.loads(second.stdout)["conversation"], second.stderr) == ("b", "")


def test_a_store_keeps_the_conversation_and_a_second_run_adds_nothing(tmp_path: Path) -> None:
    arguments = ("select", EXAMPLE_EN, "--query", QUERY_EN, "--store", "pool.db", "--session", "work")
    first = cgk_json(tmp_path, *arguments)
    assert cgk_json(tmp_path, *arguments) == first
    from_store = cgk_json(tmp_path, "select", "--query", QUERY_EN, "--store", "pool.db", "--session", "work")
    assert from_store["blocks"] == first["blocks"]
    assert (from_store["turns"], from_store["conversation"]) == (24, "work")


def test_a_session_name_with_odd_characters_names_a_session_of_its_own(tmp_path: Path) -> None:
    name = "../..//my chat: 猫 'x'; %s"
    kept = cgk_json(tmp_path, "select", EXAMPLE_EN, "--query", "x", "--store", "pool.db", "--session", name)
    assert kept["turns"] == 24
    assert cgk_json(tmp_path, "select", "--query", "x", "--store", "pool.db", "--session", name)["conversation"] == name
    other = run_cgk(tmp_path, "select", "--query", "x", "--store", "pool.db", "--session", "other")
    assert f"add --session with one of {name}" in error_line(other)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("pool.db")] == []


def test_texts_of_a_conversation_cannot_steer_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "hostile.jsonl"
    hostile = "red \x1b[31mlock\x1b]0;owned\x07 \x9b31m \u202eesrever \ud800 end"
    path.write_text(json.dumps({"id": "h\x1b[2J", "turns": [{"user_text": hostile, "assistant_text": "lock"}]}) + "\n")
    for command in ("select", "explain"):
        result = run_cgk(tmp_path, command, path, "--query", "lock")
        assert result.returncode == 0, result.stderr
        assert not set("\x1b\x07\x9b\u202e") & set(result.stdout)
        assert "red \\x1b[31mlock" in result.stdout
    assert cgk_json(tmp_path, "select", path, "--query", "lock")["blocks"][0]["user"] == hostile


def test_a_reader_that_stops_early_is_no_error(tmp_path: Path) -> None:
    command = f"'{COMMAND[0]}' -m {COMMAND[2]} demo | head -n 1"
    result = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_long_turns_warn_with_turn_number_three_times_and_then_count(tmp_path: Path) -> None:
    result = run_cgk(tmp_path, "select", EXAMPLE_EN, "--query", "x", "--budget", 5)
    lines = result.stderr.splitlines()
    assert len([line for line in lines if " turn 0 warning: " in line]) == 1
    assert "more warnings" in lines[-1]
    every = run_cgk(tmp_path, "--verbose", "select", EXAMPLE_EN, "--query", "x", "--budget", 5).stderr.splitlines()
    assert len([line for line in every if "warning: " in line]) > len(lines)
