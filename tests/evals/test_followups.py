from __future__ import annotations

from pathlib import Path

import pytest

from context_gatekeeper import ContextGatekeeper
from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.evals.datasets import read_followups
from context_gatekeeper.evals.fixtures import DEFAULT_FOLLOWUPS
from context_gatekeeper.evals.followups import measure_followups
from tests.evals.samples import write_lines

HISTORY = [
    ["How do I prune roses?", "Cut to an outward bud in late winter."],
    ["When do I feed roses?", "Once at leaf-out."],
]


def case(query: str, expect: str, gold_turn: int | None) -> dict[str, object]:
    return {"lang": "en", "history": HISTORY, "query": query, "expect": expect, "gold_turn": gold_turn}


def test_shares_are_those_of_asking_the_facade() -> None:
    right, returned = [], []
    cases = list(read_followups(DEFAULT_FOLLOWUPS))
    for one in cases:
        gatekeeper = ContextGatekeeper()
        for user_text, assistant_text in one.history:
            gatekeeper.add_turn(user_text, assistant_text)
        right.append(gatekeeper.explain(one.query).verdict.move == one.expect)
        if one.gold_turn is not None:
            returned.append(one.gold_turn in [block["turn_id"] for block in gatekeeper.select(one.query)])
    figures = measure_followups()
    assert figures["cases"] == len(cases)
    assert figures["gate_accuracy"] == pytest.approx(sum(right) / len(right))
    assert figures["gold_returned"] == pytest.approx(sum(returned) / len(returned))
    by_kind = [good for good, one in zip(right, cases, strict=True) if one.expect == "continue"]
    assert figures["followup_continues"] == pytest.approx(sum(by_kind) / len(by_kind))


def test_a_share_over_no_case_is_null(tmp_path: Path) -> None:
    figures = measure_followups(write_lines(tmp_path, case("why at leaf-out?", "continue", None)))
    assert figures["true_switch_seen"] is None
    assert figures["gold_returned"] is None
    assert figures["cases"] == 1


def test_a_wrong_case_is_shown_with_what_was_expected(tmp_path: Path) -> None:
    path = write_lines(tmp_path, case("go on", "switch", 0), case("go on", "continue", 1))
    figures = measure_followups(path, error_limit=5)
    assert figures["true_switch_seen"] == 0.0
    assert (figures["errors"][0]["expect"], figures["errors"][0]["move"]) == ("switch", "continue")


def test_a_file_without_cases_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="holds no case"):
        measure_followups(write_lines(tmp_path))
