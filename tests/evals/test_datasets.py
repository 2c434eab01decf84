from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.evals.datasets import (
    EvalTurn,
    Line,
    pair_lines,
    read_conversations,
    read_followups,
    read_times,
    with_times,
)
from tests.evals.samples import SAMPLES, one_conversation, write_lines


def texts(turns: list[EvalTurn]) -> list[tuple[str, str]]:
    return [(turn.user_text, turn.assistant_text) for turn in turns]


def lines(*spoken: tuple[str, str], session: str = "s") -> list[Line]:
    return [Line(str(place), speaker, text, session) for place, (speaker, text) in enumerate(spoken)]


def test_a_user_line_takes_the_answer_behind_it() -> None:
    talk = lines(("User", "q1"), ("Assistant", "a1"), ("User", "q2"), ("Assistant", "a2"))
    assert texts(pair_lines(talk)) == [("q1", "a1"), ("q2", "a2")]


def test_lines_without_a_counterpart_stand_alone_and_none_is_lost() -> None:
    talk = lines(("assistant", "hello"), ("user", "q1"), ("user", "q2"), ("assistant", "a2"), ("assistant", "more"))
    assert texts(pair_lines(talk)) == [("", "hello"), ("q1", ""), ("q2", "a2"), ("", "more")]


def test_persons_pair_two_by_two_inside_a_session() -> None:
    first = lines(("Nora", "1"), ("Ivan", "2"), ("Nora", "3"), session="s1")
    second = lines(("Ivan", "4"), ("Nora", "5"), session="s2")
    turns = pair_lines([*first, *second])
    assert texts(turns) == [("1", "2"), ("3", ""), ("4", "5")]
    assert [turn.speakers for turn in turns] == [("Nora", "Ivan"), ("Nora", None), ("Ivan", "Nora")]


def test_memories_are_added_one_by_one() -> None:
    turns = pair_lines(lines(("memory", "m1"), ("memory", "m2")))
    assert texts(turns) == [("m1", ""), ("m2", "")]
    assert turns[0].speakers == (None, None)


def test_letters_and_roles_are_no_names() -> None:
    assert pair_lines(lines(("A", "x"), ("B", "y")))[0].speakers == (None, None)
    assert pair_lines(lines(("User", "x"), ("Assistant", "y")))[0].speakers == (None, None)


def test_no_turn_reaches_across_a_line_at_which_a_question_is_asked() -> None:
    talk = lines(("user", "q"), ("assistant", "a"))
    assert texts(pair_lines(talk, {"1"})) == [("q", ""), ("", "a")]
    assert texts(pair_lines(talk, {"0"})) == [("q", "a")]


def test_a_line_with_both_texts_becomes_two_lines_of_one_id() -> None:
    conversation = one_conversation("qa_pairs.jsonl")
    assert [line.line_id for line in conversation.lines] == ["t0", "t0", "t1", "t1", "t2", "t2"]
    assert texts(pair_lines(conversation.lines, {"t1"}))[1] == (
        "女儿开始学击剑了，教练姓欧阳。",
        "击剑能练反应，记得买合身的护面。",
    )


def test_times_are_seconds_since_the_epoch() -> None:
    line = one_conversation("qa_persons.jsonl").lines[0]
    assert line.time == datetime(2023, 5, 8, 13, 56, tzinfo=UTC).timestamp()
    day = datetime.fromtimestamp(one_conversation("qa_roles.jsonl").lines[0].time or 0.0, UTC)
    assert (day.year, day.month, day.day) == (2025, 12, 19)


def test_adversarial_questions_and_those_without_evidence_are_left_out() -> None:
    questions = one_conversation("qa_persons.jsonl").questions
    assert [question.category for question in questions] == ["single-hop", "multi-hop", "single-hop"]


def test_the_session_is_read_off_the_turn_id_where_there_is_no_other(tmp_path: Path) -> None:
    turn = {"turn_id": "d846:1", "speaker": "User", "text": "x", "topic": "Enhanced"}
    conversation = next(read_conversations(write_lines(tmp_path, {"turns": [turn]})))
    assert conversation.lines[0].topic_key == "Enhanced/d846"


def test_a_gzipped_file_reads_like_a_plain_one(tmp_path: Path) -> None:
    packed = tmp_path / "qa.jsonl.gz"
    packed.write_bytes(gzip.compress((SAMPLES / "qa_roles.jsonl").read_bytes()))
    assert list(read_conversations(packed)) == list(read_conversations(SAMPLES / "qa_roles.jsonl"))


def test_a_broken_line_is_named_with_file_number_and_cause() -> None:
    with pytest.raises(TranscriptError, match=r"broken\.jsonl, line 2: it is no JSON .*column"):
        list(read_conversations(SAMPLES / "broken.jsonl"))


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        ({"turns": [{"speaker": "user"}]}, "'text' is missing"),
        ({"turns": [{"speaker": "user", "text": 3}]}, "a text is a int"),
        ({"lines": []}, "'turns' is missing"),
        (
            {"turns": [], "questions": [{"q": "x", "evidence_turn_ids": ["a"], "asked_at_turn_id": "z"}]},
            "asked at turn 'z'",
        ),
    ],
)
def test_a_conversation_of_another_form_is_refused(tmp_path: Path, entry: dict[str, object], cause: str) -> None:
    with pytest.raises(TranscriptError, match="line 1") as refusal:
        list(read_conversations(write_lines(tmp_path, entry)))
    assert cause in refusal.value.cause


def test_a_line_that_is_not_utf8_or_no_object_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"turns": []}\n\xff\xfe\n')
    with pytest.raises(TranscriptError, match="line 2: it is not UTF-8"):
        list(read_conversations(path))
    with pytest.raises(TranscriptError, match="no JSON object"):
        list(read_conversations(write_lines(tmp_path, [1, 2])))
    with pytest.raises(TranscriptError, match="cannot be read"):
        list(read_conversations(tmp_path / "none.jsonl"))


def test_times_join_by_turn_id_and_contradictions_are_refused(tmp_path: Path) -> None:
    times = read_times(SAMPLES / "qa_roles.jsonl")
    joined = with_times([Line("b:1", "User", "x"), Line("zz", "User", "y", time=5.0)], times)
    assert [line.time for line in joined] == [times["b:1"], 5.0]
    turn = {"turn_id": "a", "speaker": "User", "text": "x"}
    path = write_lines(tmp_path, {"turns": [{**turn, "time": 1}]}, {"turns": [{**turn, "time": 2}]})
    with pytest.raises(TranscriptError, match="two times"):
        read_times(path)


def test_times_that_cannot_be_read_are_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    turn = {"speaker": "user", "text": "x", "time": "some day"}
    conversation = next(iter(list(read_conversations(write_lines(tmp_path, {"turns": [turn, turn]})))))
    assert conversation.lines[0].time is None
    assert "2 times could not be read" in caplog.text


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"expect": "maybe"}, "expect is 'maybe'"),
        ({"gold_turn": 4}, "gold_turn is 4"),
        ({"query": None}, "a text is a NoneType"),
    ],
)
def test_a_followup_case_of_another_form_is_refused(tmp_path: Path, change: dict[str, object], cause: str) -> None:
    case = {"lang": "en", "history": [["q", "a"]], "query": "why?", "expect": "continue", "gold_turn": 0}
    assert next(read_followups(write_lines(tmp_path, case))).gold_turn == 0
    with pytest.raises(TranscriptError) as refusal:
        list(read_followups(write_lines(tmp_path, case | change)))
    assert cause in refusal.value.cause


def test_every_default_followup_case_is_read_once() -> None:
    path = SAMPLES.parent / "followups.jsonl"
    cases = list(read_followups(path))
    assert len(cases) >= 40
    assert len({(case.history, case.query) for case in cases}) == len(cases)
    langs = {json.loads(line)["lang"] for line in path.read_text("utf-8").splitlines()}
    assert langs == {"zh", "en"}
