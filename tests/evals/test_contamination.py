from __future__ import annotations

import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from context_gatekeeper.errors import ConfigError, TranscriptError
from context_gatekeeper.evals.contamination import (
    EXTRA_ORDERS,
    ORDERS,
    PlannedRound,
    measure_contamination,
    plan_rounds,
)
from context_gatekeeper.evals.fixtures import KINDS, read_frames, read_topics, seed_topics, seed_wordings
from context_gatekeeper.evals.topic_shares import TopicShares, judge_query
from tests.evals.samples import decision

ALL_ORDERS = (*ORDERS, *EXTRA_ORDERS)


def plan(order: str, per_topic: int = 25, seed: int = 1) -> list[PlannedRound]:
    return plan_rounds(order, per_topic, random.Random(seed))


def runs(planned: list[PlannedRound]) -> list[int]:
    lengths: list[int] = []
    for place, one in enumerate(planned):
        if place and planned[place - 1].topic == one.topic:
            lengths[-1] += 1
        else:
            lengths.append(1)
    return lengths


@pytest.mark.parametrize("order", ALL_ORDERS)
@pytest.mark.parametrize("per_topic", [25, 7, 100])
def test_every_topic_gets_its_rounds_opens_explicitly_and_recaps_every_fifth_round(order: str, per_topic: int) -> None:
    planned = plan(order, per_topic)
    assert Counter(one.topic for one in planned) == dict.fromkeys(range(4), per_topic)
    for topic in range(4):
        kinds = [one.kind for one in planned if one.topic == topic]
        assert kinds[0] == "explicit"
        assert [place for place, kind in enumerate(kinds) if kind == "recap"] == list(range(5, per_topic, 5))


def test_the_orders_run_as_their_names_say() -> None:
    assert runs(plan("burst")) == [5] * 20
    assert runs(plan("robin")) == [1] * 100
    assert runs(plan("block")) == [25] * 4
    assert len(set(runs(plan("random")))) > 3


@pytest.mark.parametrize("order", ["robin", "block"])
def test_robin_and_block_ask_explicitly(order: str) -> None:
    assert {one.kind for one in plan(order)} == {"explicit", "recap"}


@pytest.mark.parametrize("order", ["burst", "random"])
def test_burst_and_random_mix_40_40_20(order: str) -> None:
    kinds = Counter(one.kind for seed in range(20) for one in plan(order, 100, seed))
    drawn = sum(kinds.values()) - kinds["recap"]
    assert kinds["elliptic"] / drawn == pytest.approx(0.4, abs=0.03)
    assert kinds["deictic"] / drawn == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("order", ["burst", "random", "random-named"])
def test_a_question_that_does_not_name_its_topic_follows_a_turn_of_that_topic(order: str) -> None:
    for seed in range(10):
        planned = plan(order, seed=seed)
        for before, one in pairwise(planned):
            if one.kind in ("elliptic", "deictic"):
                assert before.topic == one.topic


def test_the_literal_random_order_breaks_that_rule() -> None:
    planned = plan("random-literal")
    assert any(b.topic != one.topic and one.kind == "deictic" for b, one in pairwise(planned))


def test_shares_of_five_judged_queries() -> None:
    topics = ["bread", "sailing", "bread"]
    shares = TopicShares(
        [
            judge_query("explicit", "bread", decision([0, 2]), topics),
            judge_query("recap", "bread", decision([0, 1]), topics, {0}),
            judge_query("recap", "bread", decision([2]), topics, {0, 1}),
            judge_query("explicit", "sailing", decision([0]), topics),
            judge_query("deictic", "bread", decision([]), topics),
        ]
    )
    figures = shares.figures(conversations=1)
    assert (figures["contamination"], figures["same_topic_hit"], figures["empty"]) == (0.4, 0.6, 0.2)
    assert (figures["recap_hit"], figures["recap_queries"], figures["queries"]) == (0.5, 2, 5)
    assert figures["by_kind"]["explicit"]["contamination"] == 0.5
    assert figures["by_kind"]["deictic"]["recap_hit"] is None
    assert set(figures["intervals"]) == {"contamination", "same_topic_hit", "empty", "recap_hit"}
    assert [(one["kind"], one["right_topic"]) for one in shares.examples()] == [
        ("recap", "bread"),
        ("recap", "bread"),
        ("explicit", "sailing"),
        ("deictic", "bread"),
    ]


def test_each_topics_first_question_is_left_out() -> None:
    figures = measure_contamination(["robin", "burst"], rounds=20, seeds=2)
    assert figures["orders"]["robin"]["queries"] == 2 * (20 - 4)
    assert figures["orders"]["burst"]["queries"] == 2 * (20 - 4)


def test_the_same_seeds_give_the_same_figures() -> None:
    assert measure_contamination(rounds=40, seeds=1, error_limit=9) == measure_contamination(
        rounds=40, seeds=1, error_limit=9
    )


def test_subs_repeat_when_all_were_asked(tmp_path: Path) -> None:
    topics = [
        {"name": f"subject{n}", "lang": "en", "subs": [["alpha", "One. Two."], ["beta", "Three."]]} for n in range(4)
    ]
    path = tmp_path / "topics.json"
    path.write_text(json.dumps({"topics": topics}), "utf-8")
    figures = measure_contamination(topics=path, rounds=100, seeds=1)
    assert all(order["queries"] == 96 for order in figures["orders"].values())


def test_a_recap_is_right_with_the_newest_turn_that_asked_it_and_with_any_only_where_that_is_asked_for(
    tmp_path: Path,
) -> None:
    """Every topic has the same sub. Asked without the topic's name it is found less than where the name stood by."""
    topics = [
        {"name": name, "lang": "en", "subs": [["knots and ropes", "One. Two."]]}
        for name in ("sailing", "pottery", "beekeeping", "astronomy")
    ]
    path = tmp_path / "topics.json"
    path.write_text(json.dumps({"topics": topics}), "utf-8")
    newest, any_turn = (
        measure_contamination(["burst"], topics=path, seeds=2, recap_once=once)["orders"]["burst"]["recap_hit"]
        for once in (False, True)
    )
    assert any_turn > 0.9
    assert newest < any_turn - 0.2, "each sub is asked a dozen times, and the blocks of one will do for another"


def test_unknown_orders_and_uneven_rounds_are_refused() -> None:
    with pytest.raises(ConfigError, match="no such order"):
        measure_contamination(["burst", "sideways"])
    with pytest.raises(ConfigError, match="none is named"):
        measure_contamination([])
    for rounds in (0, 4, 30):
        with pytest.raises(ConfigError, match="multiple of 4, 8 or more"):
            measure_contamination(rounds=rounds)


def test_the_seed_fixture_has_four_topics_of_25_subs_in_two_languages() -> None:
    topics = seed_topics()
    assert Counter(topic.lang for topic in topics) == {"zh": 2, "en": 2}
    for topic in topics:
        assert len(dict(topic.subs)) == 25
        assert len({answer for _, answer in topic.subs}) == 25
    wordings = seed_wordings()
    assert set(wordings) == set(KINDS)
    assert all(len(set(frames)) == len(frames) for by_lang in wordings.values() for frames in by_lang.values())


@pytest.mark.parametrize(
    ("content", "kind", "cause"),
    [
        ({"en": ["what about it"]}, "elliptic", "no {s}"),
        ({"en": ["tell me of {s}"]}, "explicit", "no {n}"),
        ({"en": []}, "deictic", "no frames by language"),
        ({"en": "what about {s}"}, "elliptic", "no frames by language"),
        ({"en": ["go on"]}, "recap", "no {s}"),
        (["{s}"], "elliptic", "no frames by language"),
    ],
)
def test_frames_of_another_form_are_refused(tmp_path: Path, content: object, kind: str, cause: str) -> None:
    path = tmp_path / "frames.json"
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(TranscriptError) as refusal:
        read_frames(path, kind)
    assert cause in refusal.value.cause


def test_a_language_without_frames_is_left_out_and_a_recap_need_not_name_the_topic(tmp_path: Path) -> None:
    path = tmp_path / "frames.json"
    path.write_text(json.dumps({"zh": [], "en": ["what did you say of {s}"]}), "utf-8")
    assert read_frames(path, "recap") == {"en": ("what did you say of {s}",)}


def test_topics_of_another_form_too_few_or_of_an_unknown_language_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    path.write_text('{"topics": [{"name": "x"}]}', "utf-8")
    with pytest.raises(TranscriptError, match="holds no topics"):
        read_topics(path)
    topic = {"name": "x", "lang": "fr", "subs": [["a", "b"]]}
    path.write_text(json.dumps({"topics": [topic] * 3}), "utf-8")
    with pytest.raises(TranscriptError, match="it holds 3 topics"):
        measure_contamination(topics=path)
    path.write_text(json.dumps({"topics": [topic] * 4}), "utf-8")
    with pytest.raises(TranscriptError, match="none for the language 'fr'"):
        measure_contamination(topics=path)
    path.write_text(json.dumps({"topics": [{**topic, "subs": []}]}), "utf-8")
    with pytest.raises(TranscriptError, match="has no subs"):
        read_topics(path)
    path.write_text("{", "utf-8")
    with pytest.raises(TranscriptError, match="cannot be read as JSON"):
        read_topics(path)
