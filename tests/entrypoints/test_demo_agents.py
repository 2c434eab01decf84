"""The part of the demo that replays a real agent session."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from context_gatekeeper.entrypoints.cli.demo_agents import demo_lines
from context_gatekeeper.entrypoints.cli.face import Face
from context_gatekeeper.replay.demonstration import Demonstration, LeftOut, MissedNeed, demonstrate
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from tests.entrypoints.running import ROOT, cgk_json, run_cgk

SAMPLE = ROOT / "examples" / "data" / "coding_session.jsonl.gz"


@cache
def sample() -> Demonstration:
    return demonstrate(read_sessions(SAMPLE)[0])


def lines_of(shown: Demonstration) -> str:
    return "\n".join(demo_lines(shown, Face()))


def test_the_demo_shows_a_real_sessions_bill_its_misses_and_a_plan(tmp_path: Path) -> None:
    shown = run_cgk(tmp_path, "demo")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "a recorded session of a coding agent, 72 model calls" in shown.stdout
    for policy in ("append-only", "mask-60k", "ours", "clairvoyant-seen"):
        row = rf"\| {policy} +\| +[\d,]+ \| +\d\.\d\dx \| +[\d,]+ \| +\d+ of 72 \|"
        assert re.search(row, shown.stdout)
    assert re.search(r"^One plan of \d+, after \d+ calls: rewrite the window,$", shown.stdout, re.MULTILINE)
    assert "| what left" in shown.stdout
    assert "| what is sent, and why" in shown.stdout
    assert "a replay cannot tell" in shown.stdout


def test_the_demo_as_json_has_the_session_too(tmp_path: Path) -> None:
    session = cgk_json(tmp_path, "demo")["agent_session"]
    assert set(session) >= {"session_id", "calls", "prices", "policies", "missed", "rewrites", "plan"}
    assert session["policies"]["append-only"]["billed_vs_append_only"] == 1.0
    assert session["policies"]["ours"]["billed_vs_append_only"] > 1.0
    assert {"what", "file", "slices", "tokens"} == set(session["plan"]["left"][0])


def test_more_misses_than_are_shown_are_counted() -> None:
    needs = tuple(
        MissedNeed(call, f"line {call}", "file read", "a.py" if call % 2 else "", was_named=call % 2 == 0)
        for call in range(6)
    )
    told = lines_of(replace(sample(), missed=needs))
    assert "after 1 calls: file read of a.py, not even a handle was there\n    line 1" in told
    assert "after 2 calls: file read, its handle stood there\n    line 2" in told
    assert "line 4" not in told
    assert "  and 2 more" in told


def test_a_session_without_misses_and_plan_says_so_in_a_line() -> None:
    told = lines_of(replace(sample(), missed=(), plan=None))
    assert "Ours missed nothing." in told
    assert "One plan" not in told


@pytest.mark.parametrize(("reason", "words"), [("cold", "cache had run out"), ("rent", "price of the rewrite")])
def test_a_plan_tells_in_words_why_it_was_made(reason: str, words: str) -> None:
    plan = sample().plan
    assert plan is not None
    few = (LeftOut("shell output", "", 3, 1200), LeftOut("file read", "a|b.py", 1, 90))
    told = lines_of(replace(sample(), plan=replace(plan, reason=reason, left=few, price=0.0)))
    assert words in told
    assert "4 slices leave" in told
    assert "others" not in told
    assert "a\\|b.py" in told


def test_a_sample_of_the_package_is_the_one_of_the_examples() -> None:
    assert SAMPLE.resolve() == ROOT / "src/context_gatekeeper/entrypoints/cli/demo_session.jsonl.gz"
