"""``evals followups``: short queries that lean on what was just said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from context_gatekeeper.evals.datasets import read_followups
from context_gatekeeper.evals.metrics import bootstrap_interval, mean
from context_gatekeeper.gatekeeper import ContextGatekeeper

__all__ = ["DEFAULT_CASES", "measure_followups"]

DEFAULT_CASES = Path(__file__).parent / "data" / "followups.jsonl"


def measure_followups(path: Path = DEFAULT_CASES, profile: str = "strict", *, show_errors: bool = False) -> dict[str, Any]:
    """Shares over the cases that must continue, must switch, and name the turn they lean on."""
    continued: list[float] = []
    switched: list[float] = []
    returned: list[float] = []
    errors: list[dict[str, Any]] = []
    for case in read_followups(path):
        with ContextGatekeeper(profile=profile) as gatekeeper:
            for user, assistant in case.history:
                gatekeeper.add_turn(user, assistant)
            decision = gatekeeper.explain(case.query)
        is_right = float(decision.verdict.move.value == case.expect)
        (switched if case.expect == "switch" else continued).append(is_right)
        got = [block["turn_id"] for block in decision.blocks]
        if case.gold_turn is not None:
            returned.append(float(case.gold_turn in got))
        if show_errors and (not is_right or (case.gold_turn is not None and not returned[-1])):
            errors.append({"query": case.query, "expect": case.expect, "gold": case.gold_turn, "got": got, "points": decision.verdict.points})
    figures: dict[str, Any] = {
        "followup_continues": mean(continued),
        "true_switch_seen": mean(switched),
        "gate_accuracy": mean([*continued, *switched]),
        "gold_returned": mean(returned),
        "cases": len(continued) + len(switched),
        "gate_accuracy_interval": bootstrap_interval([*continued, *switched]),
        "gold_returned_interval": bootstrap_interval(returned),
    }
    if show_errors:
        figures["errors"] = errors
    return figures
