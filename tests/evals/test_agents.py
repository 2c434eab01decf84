"""The regression set of agent sessions: rules by name, shares over sessions, rows of the kept table."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.evals.agents import RULES, listed_sessions, measure_agents, regression_rows
from context_gatekeeper.evals.cli import evals
from tests.architecture.tree import ROOT

SAMPLE = ROOT / "tests" / "data" / "agents" / "claude_code_session.jsonl.gz"
SAMPLE_ID = "entire/43c87127-491b-488e-a553-95aa3f0414ac"
TABLE = ROOT / "docs" / "agent-regression.md"
FIGURES = {
    "billed_vs_append_only",
    "faulting_call_share",
    "evidence_coverage",
    "extra_calls",
    "refetched_hot_pages",
    "worst_billed_vs_append_only",
    "worst_faulting_call_share",
    "intervals",
}


@cache
def measured() -> dict[str, Any]:
    return measure_agents([SAMPLE], RULES)


def short_sessions(path: Path) -> Path:
    """Two sessions of two calls, of which the second one's last call quotes a line."""
    line = "the lock_timeout of the orders table is 4500 milliseconds"

    def talk(name: str, answer: str) -> dict[str, Any]:
        texts = [("user", line), ("assistant", "Noted."), ("user", "Say it again."), ("assistant", answer)]
        return {
            "id": name,
            "source": "test",
            "messages": [{"role": role, "content": text} for role, text in texts],
        }

    records = [talk("first", "I will not."), talk("second", line)]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
    return path


def run(*words: object) -> Result:
    return CliRunner().invoke(evals, ["agents", *map(str, words)], prog_name="evals")


def test_every_rule_has_the_figures_of_the_regression_set() -> None:
    assert list(measured()["rules"]) == list(RULES)
    for one in measured()["rules"].values():
        assert set(one) == FIGURES
        assert set(one["intervals"]) == {"billed_vs_append_only", "faulting_call_share", "evidence_coverage"}
    assert (measured()["sessions"], measured()["calls"]) == (1, 72)


def test_append_only_misses_nothing_and_costs_what_it_costs() -> None:
    reference = measured()["rules"]["append-only"]
    assert reference["billed_vs_append_only"] == reference["evidence_coverage"] == 1.0
    assert reference["extra_calls"] == reference["refetched_hot_pages"] == 0


def test_ours_is_cheaper_than_append_only_and_misses_less_than_slimming_at_birth() -> None:
    rules = measured()["rules"]
    assert rules["ours"]["billed_vs_append_only"] > 1.1
    assert rules["ours"]["evidence_coverage"] > rules["slim-2k"]["evidence_coverage"]
    assert rules["ours"]["faulting_call_share"] < rules["slim-2k"]["faulting_call_share"]


def test_a_rule_that_is_left_out_changes_the_figures() -> None:
    bills = {name: one["billed_vs_append_only"] for name, one in measured()["rules"].items()}
    assert bills["ours-no-digests"] != bills["ours"] != bills["ours-no-references"]


def test_figures_over_several_sessions_are_ratios_of_sums(tmp_path: Path) -> None:
    path = short_sessions(tmp_path / "short.jsonl")
    figures = measure_agents([path, SAMPLE], ("ours",))
    assert (figures["sessions"], figures["calls"]) == (3, 76)
    assert list(figures["by_session"]) == ["first", "second", SAMPLE_ID]
    low, high = figures["rules"]["ours"]["intervals"]["billed_vs_append_only"]
    assert low <= figures["rules"]["ours"]["billed_vs_append_only"] <= high
    assert low < high
    alone = figures["by_session"][SAMPLE_ID]["ours"]
    assert 1.0 < figures["rules"]["ours"]["billed_vs_append_only"] < alone["billed_vs_append_only"] + 1e-9


def test_sessions_are_taken_by_id_and_by_length(tmp_path: Path) -> None:
    path = short_sessions(tmp_path / "short.jsonl")
    assert list(measure_agents([path], session_ids=("second",))["by_session"]) == ["second"]
    assert list(measure_agents([path, SAMPLE], min_calls=10)["by_session"]) == [SAMPLE_ID]


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ({"rules": ("theirs",)}, "rule 'theirs': there is none of this name; use some of append-only"),
        ({"session_ids": ("third",)}, "session 'third': no file holds it"),
        ({"min_calls": 3}, "none has enough model calls; lower --min-calls"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_the_cause(
    tmp_path: Path, arguments: dict[str, Any], cause: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(cause)):
        measure_agents([short_sessions(tmp_path / "short.jsonl")], **arguments)


def test_the_command_prints_one_object_or_tables_or_rows(tmp_path: Path) -> None:
    path = short_sessions(tmp_path / "short.jsonl")
    printed = run("--data", path, "--rules", "append-only,ours", "--json")
    assert printed.exit_code == 0, printed.output
    assert set(json.loads(printed.stdout)["rules"]["ours"]) == FIGURES
    assert printed.stdout.count("\n") == 1
    table = run("--data", path).stdout
    assert "| evidence_coverage" in table
    assert "first" not in table
    rows = run("--data", path, "--rules", "all", "--rows").stdout.splitlines()
    assert [row.split(" | ")[0] for row in rows] == [f"| {rule}" for rule in RULES]


def test_the_kept_list_must_be_there_whole() -> None:
    refused = run("--data", SAMPLE, "--listed")
    assert isinstance(refused.exception, ConfigError)
    assert "no file holds it" in str(refused.exception)


def test_the_kept_list_names_each_session_once() -> None:
    assert len(listed_sessions()) == len(set(listed_sessions())) == 13
    assert SAMPLE_ID not in listed_sessions(), "the sample comes from the half that tables are learned on"


def test_the_kept_table_has_a_row_for_every_rule_in_the_form_that_is_printed() -> None:
    kept = [line for line in TABLE.read_text("utf-8").splitlines() if line.startswith("| ")]
    for row in regression_rows(measured()):
        rule = row.split(" | ")[0]
        assert [line for line in kept if line.startswith(f"{rule} | ") and line.count("|") == row.count("|")], rule
