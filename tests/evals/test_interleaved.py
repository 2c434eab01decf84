from __future__ import annotations

import random
from pathlib import Path

import pytest

from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.evals.datasets import Conversation, Line
from context_gatekeeper.evals.interleaved import chain_dialogues, measure_interleaved
from tests.evals.samples import SAMPLES, write_lines


def dialogue(name: str, exchanges: int) -> Conversation:
    lines = [Line(f"{place}", speaker, f"{name} {place} {speaker}") for place in range(exchanges) for speaker in "AB"]
    return Conversation(name, tuple(lines), ())


def test_dialogues_take_turns_in_chunks_of_two_to_four_exchanges_until_all_are_told() -> None:
    lengths = {"w": 9, "x": 1, "y": 12, "z": 5}
    chain = chain_dialogues([dialogue(name, length) for name, length in lengths.items()], random.Random(3))
    for name, length in lengths.items():
        told = [turn.user_text for turn, topic in chain if topic == name]
        assert told == [f"{name} {place} A" for place in range(length)]
    runs: list[tuple[str, int]] = []
    for _, topic in chain:
        if runs and runs[-1][0] == topic:
            runs[-1] = (topic, runs[-1][1] + 1)
        else:
            runs.append((topic, 1))
    assert [name for name, _ in runs[:4]] == ["w", "x", "y", "z"]
    left = dict(lengths)
    for name, size in runs[:-1]:
        left[name] -= size
        assert 2 <= size <= 4 or left[name] == 0, "only the last chunk of a dialogue is shorter"


def test_dialogues_of_one_id_are_topics_of_their_own() -> None:
    chain = chain_dialogues([dialogue("w", 2), dialogue("w", 3), dialogue("x", 2)], random.Random(3))
    topics = [topic for _, topic in chain]
    assert {topic: topics.count(topic) for topic in topics} == {"w (0)": 2, "w (1)": 3, "x": 2}


def shift_dialogue(name: str, exchanges: int) -> dict[str, object]:
    turns = [
        {"speaker": who, "text": f"{name} number {place}", "shift": 0}
        for place in range(exchanges)
        for who in ("user", "assistant")
    ]
    return {"id": name, "turns": turns}


@pytest.mark.parametrize(("dialogues", "chains"), [(2, 1), (4, 1), (7, 1), (8, 2), (11, 2)])
def test_every_dialogue_is_in_a_chain_and_its_first_question_is_left_out(
    tmp_path: Path, dialogues: int, chains: int
) -> None:
    path = write_lines(tmp_path, *(shift_dialogue(f"subject{number}", 5) for number in range(dialogues)))
    result = measure_interleaved(path)
    assert result["conversations"] == chains
    assert result["orders"]["as_logged"]["queries"] == dialogues * 4


def test_logs_are_taken_as_logged_with_their_topics() -> None:
    figures = measure_interleaved(SAMPLES / "qa_roles.jsonl")["orders"]["as_logged"]
    # Cooking opens, Bike opens, Cooking is resumed, Cooking runs on
    assert figures["queries"] == 2
    assert (figures["by_kind"]["resumed"]["queries"], figures["by_kind"]["running"]["queries"]) == (1, 1)
    assert figures["recap_hit"] is None


def test_each_filler_session_is_its_own_topic(tmp_path: Path) -> None:
    turns = [
        {"turn_id": f"{session}:{place}", "speaker": who, "text": f"{session} {place}", "topic": "Enhanced"}
        for session in ("a", "b")
        for place in range(2)
        for who in ("User", "Assistant")
    ]
    figures = measure_interleaved(write_lines(tmp_path, {"turns": turns}))["orders"]["as_logged"]
    assert figures["queries"] == 2, "one first question is left out of each session"


def test_the_mixture_is_the_same_every_time() -> None:
    path = SAMPLES / "shift_persons.jsonl"
    assert measure_interleaved(path, error_limit=5) == measure_interleaved(path, error_limit=5)


def test_a_file_in_which_no_topic_comes_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="no topic is talked about twice"):
        measure_interleaved(write_lines(tmp_path, shift_dialogue("alone", 1)))
