"""``evals followups``: short queries that lean on what was just said, and others that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.evals.datasets import read_followups
from context_gatekeeper.evals.fixtures import DEFAULT_FOLLOWUPS
from context_gatekeeper.evals.metrics import mean_intervals, mean_or_none, rests_on_few
from context_gatekeeper.gatekeeper import ContextGatekeeper

__all__ = ["measure_followups"]


def measure_followups(
    path: Path = DEFAULT_FOLLOWUPS, profile: str = "strict", *, error_limit: int = 0
) -> dict[str, Any]:
    """Shares over the cases that must continue, must switch, and name the turn they lean on.

    A share over no case is null. Raises TranscriptError: a file that cannot be read or holds no case.
    """
    shares: dict[str, list[float]] = {
        "followup_continues": [],
        "true_switch_seen": [],
        "gate_accuracy": [],
        "gold_returned": [],
    }
    errors: list[dict[str, Any]] = []
    for case in read_followups(path):
        with ContextGatekeeper(profile=profile) as gatekeeper:
            for user_text, assistant_text in case.history:
                gatekeeper.add_turn(user_text, assistant_text)
            decision = gatekeeper.explain(case.query)
        is_right = decision.verdict.move.value == case.expect
        got = [block["turn_id"] for block in decision.blocks]
        shares["followup_continues" if case.expect == "continue" else "true_switch_seen"].append(float(is_right))
        shares["gate_accuracy"].append(float(is_right))
        is_lost = case.gold_turn is not None and case.gold_turn not in got
        if case.gold_turn is not None:
            shares["gold_returned"].append(float(not is_lost))
        if not is_right or is_lost:
            verdict = decision.verdict
            example = {
                "query": case.query,
                "expect": case.expect,
                "move": verdict.move.value,
                "gold_turn": case.gold_turn,
                "got": got,
            }
            errors.append({**example, "gate": verdict.reason, "points": verdict.points})
    cases = len(shares["gate_accuracy"])
    if not cases:
        raise TranscriptError(
            str(path), "it holds no case", 'write lines {"lang", "history", "query", "expect", "gold_turn"}'
        )
    result: dict[str, Any] = {name: mean_or_none(values) for name, values in shares.items()}
    result.update(cases=cases, profile=profile)
    if rests_on_few(cases):
        result["intervals"] = mean_intervals(shares)
    return {**result, "errors": errors[:error_limit]} if error_limit else result
