from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pytest

from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.evals.datasets import Conversation, EvalTurn, Line
from context_gatekeeper.evals.interleaved import ChainOrder, chain_dialogues, measure_interleaved
from tests.evals.samples import SAMPLES, write_lines

Chain = Sequence[tuple[EvalTurn, str]]
LENGTHS = {"w": 9, "x": 1, "y": 12, "z": 5}
EACH_ORDER = pytest.mark.parametrize("order", ChainOrder, ids=lambda order: order.value)


def dialogue(name: str, exchanges: int) -> Conversation:
    lines = [Line(f"{place}", speaker, f"{name} {place} {speaker}") for place in range(exchanges) for speaker in "AB"]
    return Conversation(name, tuple(lines), ())


def dialogues(count: int, exchanges: int = 5) -> list[Conversation]:
    return [dialogue(f"subject{number}", exchanges) for number in range(count)]


def runs(chain: Chain) -> list[tuple[str, int]]:
    """Topics with the number of exchanges told at a stretch."""
    return [(topic, len(list(turns))) for topic, turns in groupby(chain, key=lambda one: one[1])]


def members(chains: Sequence[Chain]) -> list[list[str]]:
    """Topics of each chain, in the order of the file."""
    return [sorted({topic for _, topic in chain}, key=lambda name: int(name[7:])) for chain in chains]


@EACH_ORDER
def test_each_dialogue_is_told_whole_and_in_its_own_order(order: ChainOrder) -> None:
    (chain,) = chain_dialogues([dialogue(name, length) for name, length in LENGTHS.items()], order)
    for name, length in LENGTHS.items():
        assert [turn.user_text for turn, topic in chain if topic == name] == [
            f"{name} {place} A" for place in range(length)
        ]


def test_in_turn_dialogues_take_turns_in_chunks_of_two_to_four_exchanges_until_all_are_told() -> None:
    (chain,) = chain_dialogues([dialogue(name, length) for name, length in LENGTHS.items()], ChainOrder.IN_TURN)
    left = dict(LENGTHS)
    waiting = list(LENGTHS)
    for name, size in runs(chain):
        if len(waiting) > 1:
            assert name == waiting.pop(0), "whose turn it is"
            assert 2 <= size <= 4 or size == left[name], "only the last chunk of a dialogue is shorter"
            left[name] -= size
            waiting += [name] * bool(left[name])
        else:
            assert (name, size) == (waiting[0], left[name]), "the last dialogue goes on alone"
    assert len(runs(chain)) > 6


def test_drawn_a_dialogue_may_go_on_and_come_in_any_order() -> None:
    chains = chain_dialogues(dialogues(40, exchanges=12), ChainOrder.DRAWN)
    sizes = [size for chain in chains for _, size in runs(chain)]
    assert max(sizes) > 4, "one chunk may follow another of the same dialogue"
    for chain in chains:
        left = dict.fromkeys((topic for _, topic in chain), 12)
        for topic, size in runs(chain):
            left[topic] -= size
            assert size >= 2 or not left[topic], "only the last chunk of a dialogue is shorter"
    firsts = {names.index(runs(chain)[0][0]) for names, chain in zip(members(chains), chains, strict=True)}
    assert len(firsts) > 1, "not always the first dialogue begins"


def test_in_turn_chains_are_made_of_neighbours_and_drawn_ones_of_dialogues_from_all_over_the_files() -> None:
    told = dialogues(10, exchanges=2)
    names = [one.conversation_id for one in told]
    assert members(chain_dialogues(told, ChainOrder.IN_TURN)) == [names[:4], names[4:]]
    assert members(chain_dialogues(told, ChainOrder.DRAWN)) == [names[::2], names[1::2]]


@EACH_ORDER
@pytest.mark.parametrize(("count", "chains"), [(0, 0), (1, 1), (3, 1), (4, 1), (7, 1), (8, 2), (11, 2), (12, 3)])
def test_chains_have_four_dialogues_or_more_and_each_dialogue_is_in_one(
    order: ChainOrder, count: int, chains: int
) -> None:
    told = chain_dialogues(dialogues(count, exchanges=2), order)
    assert len(told) == chains
    sizes = [len(names) for names in members(told)]
    assert sum(sizes) == count
    assert all(size >= min(4, count) for size in sizes)
    assert len({name for names in members(told) for name in names}) == count


@EACH_ORDER
def test_dialogues_of_one_id_are_topics_of_their_own(order: ChainOrder) -> None:
    (chain,) = chain_dialogues([dialogue("w", 2), dialogue("w", 3), dialogue("x", 2)], order)
    topics = [topic for _, topic in chain]
    assert {topic: topics.count(topic) for topic in topics} == {"w (0)": 2, "w (1)": 3, "x": 2}


@EACH_ORDER
def test_a_dialogue_without_lines_is_told_by_nobody(order: ChainOrder) -> None:
    (chain,) = chain_dialogues([dialogue("w", 3), dialogue("none", 0), dialogue("x", 3)], order)
    assert {topic for _, topic in chain} == {"w", "x"}


def shift_dialogue(name: str, exchanges: int) -> dict[str, object]:
    turns = [
        {"speaker": who, "text": f"{name} number {place}", "shift": 0}
        for place in range(exchanges)
        for who in ("user", "assistant")
    ]
    return {"id": name, "turns": turns}


@pytest.mark.parametrize(("count", "chains"), [(2, 1), (4, 1), (7, 1), (8, 2), (11, 2)])
def test_every_dialogue_is_in_a_chain_and_its_first_question_is_left_out(
    tmp_path: Path, count: int, chains: int
) -> None:
    path = write_lines(tmp_path, *(shift_dialogue(f"subject{number}", 5) for number in range(count)))
    result = measure_interleaved([path])
    assert result["conversations"] == chains
    assert list(result["orders"]) == ["as_logged", "in_turn"]
    assert [order["queries"] for order in result["orders"].values()] == [count * 4, count * 4]


def test_in_turn_more_queries_come_back_to_an_older_topic(tmp_path: Path) -> None:
    path = write_lines(tmp_path, *(shift_dialogue(f"subject{number}", 12) for number in range(8)))
    kinds = {name: order["by_kind"] for name, order in measure_interleaved([path])["orders"].items()}
    assert kinds["in_turn"]["resumed"]["queries"] > kinds["as_logged"]["resumed"]["queries"] > 0


def test_dialogues_of_several_files_are_chained_together(tmp_path: Path) -> None:
    paths = []
    for number in range(4):
        (tmp_path / str(number)).mkdir()
        paths.append(write_lines(tmp_path / str(number), shift_dialogue(f"subject{number}", 4)))
    result = measure_interleaved(paths)
    assert result["conversations"] == 1
    for order in result["orders"].values():
        assert order["queries"] == 4 * 3
        assert order["by_kind"]["resumed"]["queries"], "other files' dialogues come between"
    alone = measure_interleaved(paths[:1])["orders"]["in_turn"]
    assert (alone["queries"], "resumed" in alone["by_kind"]) == (3, False)


def test_logs_stand_beside_chains_in_both_orders() -> None:
    logs, shifts = SAMPLES / "qa_roles.jsonl", SAMPLES / "shift_persons.jsonl"
    together, alone = measure_interleaved([logs, shifts]), measure_interleaved([shifts])
    assert together["conversations"] == alone["conversations"] + 1
    for name in ("as_logged", "in_turn"):
        assert together["orders"][name]["queries"] == alone["orders"][name]["queries"] + 2


def test_logs_are_taken_as_logged_with_their_topics_and_in_no_other_order() -> None:
    orders = measure_interleaved([SAMPLES / "qa_roles.jsonl"])["orders"]
    assert list(orders) == ["as_logged"]
    figures = orders["as_logged"]
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
    figures = measure_interleaved([write_lines(tmp_path, {"turns": turns})])["orders"]["as_logged"]
    assert figures["queries"] == 2, "one first question is left out of each session"


def test_examples_name_their_order_and_keep_to_the_limit_in_each(tmp_path: Path) -> None:
    path = write_lines(tmp_path, *(shift_dialogue(f"subject{number}", 8) for number in range(4)))
    errors = measure_interleaved([path], error_limit=2)["by_topic_errors"]
    # Texts that share most words are mixed up again and again.
    assert [one["order"] for one in errors] == ["as_logged", "as_logged", "in_turn", "in_turn"]
    assert "by_topic_errors" not in measure_interleaved([path])


def test_the_mixture_is_the_same_every_time() -> None:
    paths = [SAMPLES / "shift_persons.jsonl"]
    assert measure_interleaved(paths, error_limit=5) == measure_interleaved(paths, error_limit=5)


def test_files_in_which_no_topic_comes_twice_are_refused_by_their_names(tmp_path: Path) -> None:
    path = write_lines(tmp_path, shift_dialogue("alone", 1))
    log = tmp_path / "log.jsonl"
    turns = [{"turn_id": "1:0", "speaker": "User", "text": "kingfisher", "topic": "Birds"}]
    log.write_text(json.dumps({"turns": turns}), "utf-8")
    with pytest.raises(TranscriptError, match="no topic is talked about twice") as refusal:
        measure_interleaved([path, log])
    assert f"{path}, {log}" in str(refusal.value)
