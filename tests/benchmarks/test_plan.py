"""The measurement of one scheduling decision: its keys, its samples, its made sessions."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from click.testing import CliRunner, Result

from benchmarks.__main__ import main
from benchmarks.agent_corpus import made_session
from benchmarks.plan import PlanSettings, measure_plan
from context_gatekeeper.engine.session_log import SessionLog, SliceKind
from context_gatekeeper.errors import ConfigError
from tests.architecture.tree import ROOT

SAMPLE = ROOT / "tests" / "data" / "agents" / "claude_code_session.jsonl.gz"


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["plan", *map(str, words)], prog_name="python -m benchmarks")


@pytest.fixture(scope="module")
def printed() -> Result:
    return run("--tokens", 6000, "--sessions", 1, "--data", SAMPLE, "--json")


def test_the_command_prints_the_keys_of_the_contract_as_one_object(printed: Result) -> None:
    assert printed.exit_code == 0, printed.output
    figures = json.loads(printed.stdout)
    assert printed.stdout.count("\n") == 1
    assert 0 < figures["plan_p50_ms"] <= figures["plan_p99_ms"]
    assert 0 < figures["data"]["plan_p50_ms"] <= figures["data"]["plan_p99_ms"]


def test_only_decisions_behind_the_mark_count(printed: Result) -> None:
    recorded = json.loads(printed.stdout)["data"]
    assert 0 < recorded["decisions"] < 72
    assert 0 < recorded["rewrites"] < recorded["decisions"]
    later = measure_plan(PlanSettings(tokens=80_000, data=SAMPLE, sessions=0))["data"]
    assert later["decisions"] < recorded["decisions"]


def test_a_window_that_is_never_rewritten_holds_the_whole_session(printed: Result) -> None:
    recorded = json.loads(printed.stdout)["data"]
    assert recorded["whole_window_tokens_p50"] > recorded["window_tokens_p50"]
    assert recorded["whole_window_p50_ms"] > 0


def test_without_json_the_figures_stand_in_a_table() -> None:
    table = run("--tokens", 3000, "--sessions", 1)
    assert table.exit_code == 0
    lines = table.stdout.splitlines()
    assert lines[0] == "| figure | made |"
    assert lines[2].startswith("| plan_p50_ms | ")


def test_sessions_that_are_too_short_are_refused_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"no session of it has 900000 tokens; pass fewer --tokens"):
        measure_plan(PlanSettings(tokens=900_000, data=SAMPLE, sessions=0))
    refused = run("--tokens", 900_000, "--data", SAMPLE)
    assert refused.exit_code == 2
    assert "pass fewer --tokens" in refused.stderr


def test_a_made_session_is_the_same_for_the_same_seed_and_begins_alike_when_longer() -> None:
    short, again, long = (made_session(3, tokens) for tokens in (5_000, 5_000, 9_000))
    assert short == again
    assert long.messages[: len(short.messages)] == short.messages
    assert made_session(4, 5_000) != short


def test_a_made_session_has_the_shape_of_a_recorded_one() -> None:
    log = SessionLog()
    for message in made_session(7, 60_000).messages:
        log.add_message(message)
    shares: Counter[SliceKind] = Counter()
    for piece in log.slices:
        shares[log.segments[piece.segment].kind] += piece.tokens
    total = sum(shares.values())
    assert 60_000 <= total < 75_000
    assert 0.4 < shares[SliceKind.READ] / total < 0.65
    assert 0.04 < shares[SliceKind.EDIT_CALL] / total < 0.2
    assert 0.04 < shares[SliceKind.SHELL] / total < 0.25
    assert sum(piece.citations > 0 for piece in log.slices) > 10, "edits quote what was read"
