from __future__ import annotations

from pathlib import Path

import pytest

from context_gatekeeper import ContextGatekeeper
from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.evals.datasets import Line
from context_gatekeeper.evals.gate import gate_figures, measure_gate, true_switches
from tests.evals.samples import SAMPLES, one_conversation, write_lines


def test_figures_of_ten_judged_turns() -> None:
    # 2 hits, 1 false, 2 missed, 5 right continuations
    outcomes = [(True, True)] * 2 + [(True, False)] + [(False, True)] * 2 + [(False, False)] * 5
    figures = gate_figures(outcomes)
    assert figures["turns"] == 10
    assert figures["precision"] == pytest.approx(2 / 3)
    assert figures["recall"] == 0.5
    assert figures["f1"] == pytest.approx(4 / 7)
    assert figures["switch_rate"] == 0.3
    assert figures["true_switch_rate"] == 0.4
    assert figures["false_switch_rate"] == pytest.approx(1 / 6)
    # always calling a switch has precision .4 and recall 1
    assert figures["always_switch_f1"] == pytest.approx(2 * 0.4 / 1.4)


def topic_lines(*topics: tuple[str, str]) -> list[Line]:
    return [Line(f"{place}", "User", "x", session, topic=topic) for place, (topic, session) in enumerate(topics)]


def test_each_filler_session_begins_with_a_switch() -> None:
    lines = topic_lines(("Enhanced", "a"), ("Enhanced", "a"), ("Enhanced", "b"), ("Trip_1", "c"), ("Trip_1", "d"))
    assert true_switches(lines) == [False, False, True, True, False]


def test_a_filler_session_switches_even_where_the_shift_label_says_no() -> None:
    lines = [
        Line("a:1", "User", "x", "a", topic="Enhanced", shift=False),
        Line("b:1", "User", "x", "b", topic="Enhanced", shift=False),
        Line("c:1", "User", "x", "c", topic="Trip", shift=False),
    ]
    assert true_switches(lines) == [False, True, False]


def test_lines_without_labels_are_refused(tmp_path: Path) -> None:
    turns = [{"speaker": "user", "text": "x"}, {"speaker": "user", "text": "y"}]
    with pytest.raises(TranscriptError, match="neither shift nor topic"):
        measure_gate(write_lines(tmp_path, {"id": "made/1", "turns": turns}))


def test_a_file_with_single_queries_only_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="second query"):
        measure_gate(write_lines(tmp_path, {"turns": [{"speaker": "user", "text": "x", "shift": 0}]}))


def test_user_lines_are_queries_and_the_first_of_each_conversation_is_left_out() -> None:
    figures = measure_gate(SAMPLES / "shift_roles.jsonl")
    assert (figures["turns"], figures["conversations"]) == (3 + 2, 2)
    assert figures["true_switch_rate"] == pytest.approx(2 / 5)


def test_every_line_between_persons_is_a_query() -> None:
    figures = measure_gate(SAMPLES / "shift_persons.jsonl")
    assert figures["turns"] == 4 + 2
    assert figures["true_switch_rate"] == pytest.approx(1 / 6)


def test_the_figures_are_those_of_asking_the_facade_before_each_turn() -> None:
    lines = one_conversation("shift_roles.jsonl").lines
    called = []
    with ContextGatekeeper() as gatekeeper:
        for user, assistant in zip(lines[::2], lines[1::2], strict=True):
            called.append(gatekeeper.explain(user.text).verdict.move.value == "switch")
            gatekeeper.add_turn(user.text, assistant.text)
    figures = measure_gate(SAMPLES / "shift_roles.jsonl", error_limit=99)
    wrong = [one["turn"] for one in figures["errors"] if one["conversation"] == "made/roles/1"]
    truth = [bool(line.shift) for line in lines[::2]]
    assert wrong == [str(2 * place) for place in range(1, 4) if called[place] != truth[place]]


def test_topics_label_a_log_without_shifts_and_times_can_come_from_another_file(tmp_path: Path) -> None:
    log = one_conversation("qa_roles.jsonl")
    turns = [
        {"turn_id": line.line_id, "speaker": line.speaker, "text": line.text, "topic": line.topic} for line in log.lines
    ]
    bare = write_lines(tmp_path, {"id": "made", "turns": turns})
    with_own = measure_gate(SAMPLES / "qa_roles.jsonl", error_limit=9)
    joined = measure_gate(bare, times=SAMPLES / "qa_roles.jsonl", error_limit=9)
    assert with_own["true_switch_rate"] == pytest.approx(2 / 3)
    assert {**joined, "errors": [{**one, "conversation": "made/roles"} for one in joined["errors"]]} == with_own


def test_few_turns_bring_intervals_along() -> None:
    figures = measure_gate(SAMPLES / "shift_roles.jsonl")
    low, high = figures["intervals"]["f1"]
    assert 0.0 <= low <= figures["f1"] <= high <= 1.0
