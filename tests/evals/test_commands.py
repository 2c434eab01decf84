"""Every measuring command as a process of its own: contract keys, one JSON object, errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.evals.fixtures import DEFAULT_FOLLOWUPS
from tests.evals.samples import SAMPLES

RANKING = {"recall@1", "recall@5", "recall@10", "recall@20", "hit@10", "ndcg@10", "recall_in_tokens"}
ORDER = {"contamination", "same_topic_hit", "empty", "recap_hit", "queries"}
QA = {"questions", *RANKING, "kept_at_budget", "kept_whole_at_budget", "lost_by_stage", "by_category", "peers"}
GATE = {
    "turns",
    "precision",
    "recall",
    "f1",
    "switch_rate",
    "true_switch_rate",
    "false_switch_rate",
    "always_switch_f1",
}
FOLLOWUPS = {"followup_continues", "true_switch_seen", "gate_accuracy", "gold_returned", "cases"}
TOKENS = {"single_p50", "single_p95", "context40_p95", "han_worst_under", "texts"}


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "context_gatekeeper.evals", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)


def run_json(*arguments: object) -> dict[str, Any]:
    finished = run(*arguments, "--json")
    assert finished.returncode == 0, finished.stderr
    figures = json.loads(finished.stdout)
    assert isinstance(figures, dict)
    assert finished.stdout.count("\n") == 1, "one object and nothing else"
    return figures


def shares_in(value: object, name: str = "") -> list[tuple[str, float]]:
    if isinstance(value, dict):
        return [
            pair
            for key, one in value.items()
            if key not in ("errors", "by_topic_errors")
            for pair in shares_in(one, key)
        ]
    return [(name, value)] if isinstance(value, float) else []


@pytest.mark.parametrize("unit", ["turn", "block"])
def test_qa_prints_the_keys_of_the_contract(unit: str) -> None:
    path = SAMPLES / "qa_persons.jsonl"
    figures = run_json(
        "qa", "--data", path, "--profile", "recall", "--unit", unit, "--peers", "bm25,recency", "--show-errors"
    )
    assert set(figures) >= QA | {"errors"}
    assert set(figures["recall_in_tokens"]) == {"250", "500", "1000", "2000"}
    assert set(figures["kept_at_budget"]) == set(figures["kept_whole_at_budget"]) == {"1000", "4000"}
    assert all(set(peer) == RANKING for peer in figures["peers"].values())
    assert all(0.0 <= share <= 1.0 for _, share in shares_in(figures))
    assert len(figures["intervals"]["hit@10"]) == 2


def test_qa_without_peers_has_an_empty_group_for_them() -> None:
    assert run_json("qa", "--data", SAMPLES / "qa_pairs.jsonl")["peers"] == {}


def test_gate_prints_the_keys_of_the_contract() -> None:
    figures = run_json("gate", "--data", SAMPLES / "shift_roles.jsonl", "--profile", "strict", "--show-errors")
    assert set(figures) >= GATE | {"errors"}
    timed = run_json("gate", "--data", SAMPLES / "qa_roles.jsonl", "--times", SAMPLES / "qa_roles.jsonl")
    assert timed["turns"] == 3


def test_contamination_prints_the_keys_of_the_contract_for_each_order() -> None:
    figures = run_json(
        "contamination", "--orders", "burst,random", "--rounds", 40, "--seeds", 2, "--show-errors", "--error-limit", 3
    )
    assert list(figures["orders"]) == ["burst", "random"]
    assert all(set(order) >= ORDER for order in figures["orders"].values())
    assert all(0.0 <= share <= 1.0 for _, share in shares_in(figures))
    for order in figures["orders"]:
        assert len([one for one in figures["by_topic_errors"] if one["order"] == order]) <= 3


def test_contamination_takes_topics_and_wordings_from_files(tmp_path: Path) -> None:
    topics = [
        {
            "name": name,
            "lang": "en",
            "subs": [[f"{name} part {n}", f"Answer {n} of {name}. More of it."] for n in range(6)],
        }
        for name in "pqrs"
    ]
    contents = {
        "topics": {"topics": topics},
        "frames": {"en": ["about {n}: {s}"]},
        "elliptic": {"en": ["then {s}"]},
        "recap": {"en": ["again {s} of {n}"]},
        "deictic": {"en": ["go on"]},
    }
    flags: list[object] = []
    for name, content in contents.items():
        (tmp_path / name).write_text(json.dumps(content), "utf-8")
        flags += [f"--{name}", tmp_path / name]
    figures = run_json("contamination", *flags, "--rounds", 32, "--seeds", 1, "--show-errors", "--error-limit", 100)
    assert set(figures["orders"]) == {"burst", "robin", "block", "random"}
    assert {one["right_topic"] for one in figures["by_topic_errors"]} <= set("pqrs")


@pytest.mark.parametrize(
    ("name", "orders"), [("qa_roles.jsonl", ["as_logged"]), ("shift_persons.jsonl", ["as_logged", "in_turn"])]
)
def test_interleaved_prints_the_keys_of_the_contract_under_each_order(name: str, orders: list[str]) -> None:
    figures = run_json("interleaved", "--data", SAMPLES / name, "--show-errors")
    assert list(figures["orders"]) == orders
    for order in figures["orders"].values():
        assert set(order) >= ORDER
        assert order["recap_hit"] is None


def test_interleaved_takes_several_files_after_one_flag_or_several_flags() -> None:
    first, second = SAMPLES / "qa_roles.jsonl", SAMPLES / "shift_persons.jsonl"
    together = run_json("interleaved", "--data", first, second)
    assert together["conversations"] == 2
    assert run_json("interleaved", "--data", first, "--data", second) == together


def test_followups_print_the_keys_of_the_contract_with_and_without_a_file() -> None:
    figures = run_json("followups")
    assert set(figures) >= FOLLOWUPS
    assert run_json("followups", "--data", DEFAULT_FOLLOWUPS) == figures


def test_tokens_take_several_files_after_one_flag_or_several_flags() -> None:
    first, second = SAMPLES / "qa_roles.jsonl", DEFAULT_FOLLOWUPS
    together = run_json("tokens", "--data", first, second)
    assert set(together) >= TOKENS
    assert run_json("tokens", "--data", first, "--data", second) == together


def test_the_same_command_prints_the_same_figures_twice() -> None:
    arguments = ("contamination", "--rounds", 40, "--seeds", 1, "--show-errors")
    assert run(*arguments, "--json").stdout == run(*arguments, "--json").stdout


def test_without_json_the_figures_are_pipe_tables() -> None:
    finished = run("followups", "--show-errors")
    assert finished.returncode == 0
    lines = finished.stdout.splitlines()
    assert lines[0].startswith("| figure ")
    assert set(lines[1]) <= set("|-")
    assert any(line.startswith("| followup_continues | ") for line in lines)


def test_a_broken_file_is_one_line_on_standard_error_and_exit_code_2() -> None:
    finished = run("gate", "--data", SAMPLES / "broken.jsonl", "--json")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr.startswith("error: ")
    assert "broken.jsonl, line 2: it is no JSON" in finished.stderr
    assert finished.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (("contamination", "--orders", "sideways"), "there is no such order"),
        (("contamination", "--rounds", "30"), "pass a multiple of 4"),
        (("qa", "--data", SAMPLES / "qa_pairs.jsonl", "--peers", "oracle"), "there is no such peer"),
        (("qa", "--data", SAMPLES / "none.jsonl"), "does not exist"),
        (("gate",), "Missing option '--data'"),
        (("tokens",), "name at least one file"),
        (("interleaved",), "name at least one file"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused_with_the_cause(arguments: tuple[object, ...], cause: str) -> None:
    finished = run(*arguments)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert cause in finished.stderr
