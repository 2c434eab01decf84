"""Conversations with labelled turns, a conversation a line."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.transcripts import Conversation, read_conversations


def read_one(path: Path, turns: list[dict[str, Any]], **more: Any) -> Conversation:
    path.write_text(json.dumps({"id": "c1", "lang": "en", "turns": turns, **more}) + "\n", "utf-8")
    (conversation,) = read_conversations(path)
    return conversation


def texts(conversation: Conversation) -> list[tuple[str, str]]:
    return [(turn.user_text, turn.assistant_text) for turn in conversation.turns]


def line(speaker: str, text: str, session: str = "s1") -> dict[str, str]:
    return {"turn_id": text, "session": session, "speaker": speaker, "text": text}


def test_whole_turns_keep_time_session_topic_and_id(tmp_path: Path) -> None:
    turn = {
        "turn_id": "t0",
        "session": "d1",
        "time": "2023-04-27",
        "topic": "tea",
        "user_text": "hi",
        "assistant_text": "yo",
    }
    (read,) = read_one(tmp_path / "c", [turn]).turns
    assert (read.user_text, read.assistant_text, read.time) == ("hi", "yo", 1682596800.0)
    assert (read.session, read.topic, read.source_ids, read.speakers) == ("d1", "tea", ("t0", "t0"), (None, None))


def test_questions_language_and_id_are_read(tmp_path: Path) -> None:
    turns = [{"user_text": "a", "assistant_text": "b"}]
    conversation = read_one(tmp_path / "c", turns, questions=[{"q": "first?"}, {"q": "second?"}])
    assert (conversation.conversation_id, conversation.lang) == ("c1", "en")
    assert conversation.questions == ("first?", "second?")


def test_a_missing_answer_is_an_empty_side(tmp_path: Path) -> None:
    assert texts(read_one(tmp_path / "c", [{"user_text": "a"}, {"user_text": "b", "assistant_text": None}])) == [
        ("a", ""),
        ("b", ""),
    ]


def test_user_and_assistant_lines_pair_by_role(tmp_path: Path) -> None:
    lines = [
        line("Assistant", "a0"),
        line("User", "u1"),
        line("User", "u2"),
        line("Assistant", "a2"),
        line("User", "u3"),
    ]
    assert texts(read_one(tmp_path / "c", lines)) == [("", "a0"), ("u1", ""), ("u2", "a2"), ("u3", "")]


def test_lines_of_persons_pair_two_by_two_inside_a_session(tmp_path: Path) -> None:
    lines = [line("Ann", "1"), line("Bob", "2"), line("Ann", "3"), line("Ann", "4", "s2"), line("Bob", "5", "s2")]
    conversation = read_one(tmp_path / "c", lines)
    assert texts(conversation) == [("1", "2"), ("3", ""), ("4", "5")]
    assert conversation.turns[0].speakers == ("Ann", "Bob")
    assert conversation.turns[0].source_ids == ("1", "2")
    assert conversation.turns[1].speakers == ("Ann", None)


def test_memories_stand_alone(tmp_path: Path) -> None:
    lines = [line("Ann", "1"), line("memory", "m1"), line("memory", "m2")]
    conversation = read_one(tmp_path / "c", lines)
    assert texts(conversation) == [("1", ""), ("m1", ""), ("m2", "")]
    assert conversation.turns[1].speakers == (None, None)


def test_a_time_in_no_known_form_is_logged_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("context_gatekeeper").propagate = True
    with caplog.at_level(logging.WARNING, "context_gatekeeper"):
        conversation = read_one(
            tmp_path / "c", [{"user_text": "a", "time": "some day"}, {"user_text": "b", "time": ""}]
        )
    assert [turn.time for turn in conversation.turns] == [None, None]
    assert "1 times are in no known form" in caplog.text


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        ({"turns": {}}, "'turns' is no list"),
        ({"turns": [7]}, "turn 1: it has neither 'user_text' nor 'speaker'"),
        ({"turns": [{"user_text": 5}]}, "turn 1: 'user_text' is a number, not a text"),
        ({"turns": [{"user_text": "a", "assistant_text": []}]}, "'assistant_text' is a list"),
        ({"turns": [{"speaker": "Ann"}]}, "'text' is missing"),
        ({"turns": [{"speaker": None, "text": "x"}]}, "'speaker' is missing"),
        ({"turns": [{"user_text": "a"}, {"speaker": "Ann", "text": "b"}]}, "mixes"),
        ({"turns": [], "questions": {}}, "'questions' is no list"),
        ({"turns": [], "questions": ["x"]}, "question 1: it is no object"),
        ({"turns": [], "questions": [{"question": "x"}]}, "question 1: 'q' is missing"),
    ],
)
def test_a_line_of_another_form_is_named_with_its_cause(tmp_path: Path, entry: dict[str, Any], cause: str) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps({"turns": [{"user_text": "good"}]}) + "\n" + json.dumps(entry) + "\n")
    with pytest.raises(TranscriptError) as caught:
        read_conversations(path)
    assert f"{path}, line 2" in str(caught.value)
    assert cause in str(caught.value)
    assert caught.value.next_step


def test_the_name_of_a_person_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    lines = [{"speaker": "Ann\nSmith", "text": "asked"}, {"speaker": "Ben", "text": "answered"}]
    path.write_text(json.dumps({"turns": lines}))
    (conversation,) = read_conversations(path)
    assert conversation.turns[0].speakers == ("Ann Smith", "Ben")
