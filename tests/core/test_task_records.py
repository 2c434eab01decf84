"""Records of task clustering are JSON-ready and come back as they were."""

from __future__ import annotations

import json

from context_gatekeeper.core.task_links import TaskEvidence
from context_gatekeeper.core.task_records import OpenTask, RunningTurn, TaskDecision, TaskMove


def some_evidence() -> TaskEvidence:
    known = TaskEvidence()
    known.add_file("src/login.py")
    known.add_words({"password": 2.0, "form": 1.0, "login": 3.0, "umlaut": 0.5})
    return known


def test_a_decision_is_told_in_json() -> None:
    decision = TaskDecision(3, "t2", TaskMove.RESUME, "says so", {"t2": 0.5}, folded=(("t3", "t1"),))
    assert json.loads(json.dumps(decision.to_dict())) == {
        "turn": 3,
        "task_id": "t2",
        "move": "resume",
        "reason": "says so",
        "scores": {"t2": 0.5},
        "is_provisional": False,
        "folded": [["t3", "t1"]],
    }


def test_a_task_is_labelled_by_its_goal_else_by_its_heaviest_anchors() -> None:
    task = OpenTask(some_evidence(), 1, 4, origin="t0")
    summary = task.summary("t1")
    assert (summary.label, summary.file_count, summary.is_provisional) == ("login password form", 1, True)
    task.evidence.goals.update({"umlauts", "fix login"})
    assert task.summary("t1").label == "fix login"
    assert task.summary("t1").goal_ids == ("fix login", "umlauts")


def test_an_open_task_survives_json() -> None:
    task = OpenTask(some_evidence(), 1, 4, origin="t0")
    assert OpenTask.from_dict(json.loads(json.dumps(task.to_dict()))) == task


def test_a_running_turn_survives_json() -> None:
    turn = RunningTurn(5, "t1", True, True, "t0", some_evidence(), 3)
    assert RunningTurn.from_dict(json.loads(json.dumps(turn.to_dict()))) == turn
