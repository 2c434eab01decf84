"""The curve of times cheaper against faulting calls: starts, reading off, rows, sessions that count, the command."""

from __future__ import annotations

import json
import math
import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.engine.pager_params import OURS, OURS_CAREFUL, OURS_FRUGAL, PagerParams
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.evals.cli import evals
from context_gatekeeper.evals.curve import (
    CURVE_PRICES,
    DEFAULT_TARGETS,
    READ_AT,
    CurveSettings,
    half_of,
    measure_curve,
    start_factor,
    times_at,
)
from context_gatekeeper.evals.curve_tables import curve_lines
from context_gatekeeper.replay.report import ReplaySettings, replay_files
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from tests.architecture.tree import ROOT

SAMPLES = ROOT / "tests" / "data" / "agents"
LONG = SAMPLES / "claude_code_session.jsonl.gz"
SHORT = SAMPLES / "agents.jsonl"
TARGETS = (OURS.fault_target or 0.05, 0.1)
ROW = {
    "prices",
    "target",
    "start_factor",
    "times_cheaper",
    "times_cheaper_interval",
    "faulting_call_share",
    "faulting_call_share_words",
    "hard_faulting_call_share",
    "evidence_coverage",
    "evidence_coverage_words",
    "mean_prompt_tokens",
    "worst_session",
    "sessions",
    "calls",
}


@cache
def measured() -> dict[str, Any]:
    return measure_curve([LONG], CurveSettings(targets=TARGETS[::-1] + TARGETS))


def talks(path: Path, *, sessions: int = 4, calls: int = 3) -> Path:
    """Sessions of a few calls, an hour apart, calls a second apart."""
    records = []
    for number in range(sessions):
        messages = [
            {"role": role, "content": f"{role} says {place} of talk {number}.", "time": number * 3600.0 + place}
            for place in range(calls)
            for role in ("user", "assistant")
        ]
        records.append({"id": f"talk {number}", "source": "made for the tests", "messages": messages})
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
    return path


def run(*words: object) -> Result:
    return CliRunner().invoke(evals, ["curve", *map(str, words)], prog_name="evals")


def shipped(params: PagerParams) -> tuple[float, float]:
    assert params.fault_target is not None
    return params.fault_target, params.fault_price_factor


def test_the_steering_starts_where_the_shipped_settings_start() -> None:
    for target, factor in map(shipped, (OURS_CAREFUL, OURS, OURS_FRUGAL)):
        assert start_factor(target) == pytest.approx(factor)
    (careful, high), (usual, low) = shipped(OURS_CAREFUL), shipped(OURS)
    between = start_factor(math.sqrt(careful * usual))
    assert between == pytest.approx(math.sqrt(high * low)), "halfway between two targets, on logarithms"


def test_beyond_the_shipped_settings_their_power_laws_go_on_within_the_bounds() -> None:
    (careful, high), (usual, middle), (frugal, low) = map(shipped, (OURS_CAREFUL, OURS, OURS_FRUGAL))
    assert start_factor(careful / (usual / careful) ** 0.5) == pytest.approx(high * (high / middle) ** 0.5)
    assert start_factor(frugal * (frugal / usual) ** 0.5) == pytest.approx(low * (low / middle) ** 0.5)
    least, most = OURS.factor_bounds
    assert start_factor(1e-9) == most
    assert start_factor(1.0) >= least


@given(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0))
def test_fewer_faults_never_start_from_a_cheaper_fault(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert start_factor(low) >= start_factor(high) - 1e-9


def test_the_curve_is_read_off_between_its_neighbours() -> None:
    points = [(0.04, 2.0), (0.01, 1.4), (0.02, 1.6)]
    assert times_at(points, 0.03) == pytest.approx(1.8)
    assert times_at(points, 0.01) == 1.4
    assert times_at(points, 0.04) == 2.0


def test_outside_what_was_measured_there_is_nothing_to_read() -> None:
    points = [(0.04, 2.0), (0.02, 1.6)]
    assert (times_at(points, 0.01), times_at(points, 0.05), times_at([], 0.05)) == (None, None, None)


def test_of_settings_that_fault_alike_the_cheapest_counts() -> None:
    assert times_at([(0.02, 1.5), (0.02, 1.7), (0.04, 1.9)], 0.02) == 1.7
    assert times_at([(0.02, 1.7), (0.02, 1.5), (0.04, 1.9)], 0.03) == pytest.approx(1.8)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.5, 10)), min_size=1), st.floats(0, 1))
def test_what_is_read_lies_between_the_worst_and_the_best(points: list[tuple[float, float]], faulting: float) -> None:
    times = [one for _, one in points]
    shares = [one for one, _ in points]
    read = times_at(points, faulting)
    assert (read is None) == (not min(shares) <= faulting <= max(shares))
    assert read is None or min(times) - 1e-9 <= read <= max(times) + 1e-9


def test_a_half_is_that_of_the_script_that_fits_the_tables() -> None:
    pytest.importorskip("numpy")
    script = runpy.run_path(str(ROOT / "scripts" / "fit_citation.py"))["half_of"]
    for session in (*read_sessions(LONG), *read_sessions(SHORT)):
        assert half_of(session.session_id) == script(session)


def test_each_profile_has_a_row_for_each_target_and_its_curve(tmp_path: Path) -> None:
    figures = measure_curve([talks(tmp_path / "talks.jsonl")], CurveSettings(prices=("none", "openai")))
    assert list(figures["prices"]) == ["none", "openai"]
    for name, curve in figures["prices"].items():
        assert [(row["prices"], row["target"]) for row in curve["rows"]] == [(name, one) for one in DEFAULT_TARGETS]
        assert all(set(row) == ROW for row in curve["rows"])
        assert list(curve["at_faults"]) == ["strict", "words", "hard"]
        assert all([float(at) for at in read] == list(READ_AT) for read in curve["at_faults"].values())


def test_targets_are_measured_once_in_rising_order() -> None:
    assert [row["target"] for row in measured()["prices"]["anthropic-5m"]["rows"]] == list(TARGETS)
    assert (measured()["sessions"], measured()["calls"]) == (1, 72)


def test_the_target_that_ships_gives_the_figures_of_the_replay() -> None:
    row = measured()["prices"]["anthropic-5m"]["rows"][0]
    ours = replay_files([read_sessions(LONG)], ReplaySettings(policies=("ours",))).figures()["ours"]
    assert row["times_cheaper"] == pytest.approx(ours["billed_vs_append_only"], abs=1e-4)
    for key in ROW & set(ours):
        assert row[key] == ours[key], key


def test_a_real_session_is_cheaper_at_every_target() -> None:
    rows = measured()["prices"]["anthropic-5m"]["rows"]
    assert all(row["times_cheaper"] > 1.1 for row in rows)
    assert all(row["worst_session"]["faulting_call_share"] == row["faulting_call_share"] for row in rows)


def test_an_interval_needs_three_sessions(tmp_path: Path) -> None:
    for sessions, has_interval in ((2, False), (3, True)):
        path = talks(tmp_path / f"{sessions}.jsonl", sessions=sessions)
        figures = measure_curve([path], CurveSettings(targets=(0.05,)))
        (row,) = figures["prices"]["anthropic-5m"]["rows"]
        assert (row["sessions"], row["calls"]) == (sessions, 3 * sessions)
        assert (row["times_cheaper_interval"] is not None) == has_interval


def test_sessions_are_taken_by_half_and_by_length(tmp_path: Path) -> None:
    path = talks(tmp_path / "talks.jsonl", sessions=6)
    first, second = (measure_curve([path], CurveSettings(targets=(0.05,), half=half)) for half in (0, 1))
    assert first["sessions"] == sum(not half_of(f"talk {number}") for number in range(6)) > 0
    assert first["sessions"] + second["sessions"] == 6
    longer = talks(tmp_path / "longer.jsonl", sessions=2, calls=5)
    assert measure_curve([path, longer], CurveSettings(targets=(0.05,), min_calls=4))["calls"] == 10


def test_sessions_of_a_file_are_joined_to_chains(tmp_path: Path) -> None:
    figures = measure_curve([talks(tmp_path / "talks.jsonl")], CurveSettings(targets=(0.05,), chain_calls=6))
    assert (figures["sessions"], figures["calls"], figures["chain"]) == (2, 12, 6)


def test_the_resident_part_and_real_gaps_are_billed() -> None:
    def prompt(**settings: Any) -> float:
        figures = measure_curve([SHORT], CurveSettings(targets=(0.05,), **settings))
        return float(figures["prices"]["anthropic-5m"]["rows"][0]["mean_prompt_tokens"])

    assert prompt(resident_tokens=9000) == pytest.approx(prompt(resident_tokens=8000) + 1000)
    assert prompt(resident_tokens=None) != prompt(resident_tokens=8000)
    figures = measure_curve([SHORT], CurveSettings(targets=(0.05,), uses_gaps=True, resident_tokens=None))
    assert (figures["gaps"], figures["resident_tokens"]) == ("real", "logged")


def test_progress_counts_every_call_of_every_profile(tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    settings = CurveSettings(targets=(0.02, 0.05), prices=("openai", "none", "openai"))
    measure_curve([talks(tmp_path / "talks.jsonl")], settings, on_call=lambda done, total: heard.append((done, total)))
    assert heard == [(done, 24) for done in range(1, 25)]


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        (
            {"prices": ("theirs",)},
            "price profile 'theirs': there is none of this name; use all, or some of anthropic-5m",
        ),
        ({"prices": ()}, "no price profile or no target is named"),
        ({"targets": ()}, "no price profile or no target is named"),
        ({"targets": (0.0,)}, "target 0.0: it is no share of calls"),
        ({"targets": (math.nan,)}, "target nan: it is no share of calls"),
        ({"half": 2}, "half 2: there are two halves; pass 0 or 1"),
        ({"chain_calls": -1}, "chain_calls -1: it is out of range"),
        ({"min_calls": 100}, "sessions to replay: none is of this half and has enough model calls"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_the_cause(settings: dict[str, Any], cause: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(cause)):
        measure_curve([SHORT], CurveSettings(**settings))


def test_all_prices_are_those_that_bill_what_is_read() -> None:
    assert set(PRICES) - set(CURVE_PRICES) == {"local"}
    figures = json.loads(run("--data", SHORT, "--prices", "all", "--targets", ".05", "--json").stdout)
    assert tuple(figures["prices"]) == CURVE_PRICES


def test_the_command_prints_one_object_with_the_default_targets() -> None:
    printed = run("--data", SHORT, "--half", 1, "--resident-tokens", "logged", "--gaps", "real", "--json")
    assert printed.exit_code == 0, printed.output
    assert printed.stdout.count("\n") == 1
    figures = json.loads(printed.stdout)
    assert {"sessions", "calls", "prices"} <= set(figures)
    assert [row["target"] for row in figures["prices"]["anthropic-5m"]["rows"]] == list(DEFAULT_TARGETS)
    assert (figures["half"], figures["gaps"], figures["resident_tokens"]) == (1, "real", "logged")


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("--targets", "few"), "--targets: 'few' is no number"),
        (("--resident-tokens", "many"), "--resident-tokens: 'many' is no number"),
        (("--half", "2"), "Invalid value for '--half'"),
    ],
)
def test_numbers_that_are_none_are_refused_with_the_cause(words: tuple[str, ...], cause: str) -> None:
    refused = run("--data", SHORT, *words)
    assert refused.exit_code == 2
    assert cause in refused.stderr
    assert "name at least one file" in run().stderr


def test_the_tables_have_a_row_for_each_target_in_either_form(tmp_path: Path) -> None:
    path = talks(tmp_path / "talks.jsonl")
    plain = run("--data", path, "--prices", "openai,none", "--targets", ".05").stdout.splitlines()
    assert plain[:3] == ["openai", "", "sessions: 4; calls: 12; resident part: 8,000 tokens; cache: always warm"]
    assert "none" in plain
    marked = run("--data", path, "--prices", "openai,none", "--targets", ".05", "--markdown").stdout.splitlines()
    assert [line for line in marked if line.startswith("#")] == ["### openai", "### none"]
    for lines in (plain, marked):
        (row,) = {line.split("|")[2].strip() for line in lines if line.startswith("| 0.05 ")}
        assert row == "1.00x"
        tables = [line for line in lines if line.startswith("|")]
        assert len({line.count("|") for line in tables}) == 2, "the rows of a table are as long as its head"


def test_the_tables_say_what_the_figures_say() -> None:
    lines = list(curve_lines(measured(), is_markdown=True))
    curve = measured()["prices"]["anthropic-5m"]
    row = curve["rows"][1]
    (line,) = [line for line in lines if line.startswith("| 0.1 |")]
    assert line.startswith(f"| 0.1 | {row['times_cheaper']:.2f}x | - | {row['faulting_call_share']:.1%} | ")
    assert "| times cheaper at | 1% | 2% | 5% | 8% | 10% |" in lines
    cells = ["-" if times is None else f"{times:.2f}x" for times in curve["at_faults"]["strict"].values()]
    assert f"| calls that fault | {' | '.join(cells)} |" in lines
