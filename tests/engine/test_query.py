"""A query read against a session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.query import QueryReading, read_query, turns_with_all
from context_gatekeeper.engine.session import Session
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores import open_store


class Talk:
    """A session that queries are read against."""

    def __init__(self, store: PageStore) -> None:
        self.pool = PagePool(store, "share", "talk")
        self.session = Session(self.pool)

    def add(self, user: str, assistant: str = "") -> None:
        self.session.add_turn(user, assistant, None, (None, None))

    def read(self, query: str) -> QueryReading:
        return read_query(query, self.pool.postings, self.session.tracker)


@pytest.fixture(params=["memory", "sqlite"])
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    opened = open_store(None if request.param == "memory" else tmp_path / "pool.sqlite")
    yield Talk(opened)
    opened.close()


@pytest.mark.parametrize("query", ["", "   ", "\n"], ids=ascii)
def test_a_blank_query_has_neither_anchors_nor_fallback(talk: Talk, query: str) -> None:
    reading = talk.read(query)
    assert not reading.scan.counts
    assert reading.fallback == ""


def test_the_fallback_is_the_first_twenty_characters_of_a_query_without_anchors(talk: Talk) -> None:
    reading = talk.read("  " + "=>" * 15)
    assert not reading.scan.counts
    assert reading.fallback == "=>" * 10


def test_a_query_with_an_anchor_needs_no_fallback(talk: Talk) -> None:
    reading = talk.read("kingfisher " + "=>" * 15)
    assert reading.scan.counts
    assert reading.fallback == ""


def test_every_weight_is_idf_times_base(talk: Talk) -> None:
    for subject in ("kingfisher", "nginx", "sourdough", "apple"):
        talk.add(f"Tell me about the {subject}", f"The {subject} is well known.")
    reading = talk.read("Does the kingfisher dive near proxy_pass?")
    assert reading.weights
    assert dict(reading.weights) == {term: idf * reading.base[term] for term, idf in reading.idf.items()}
    assert all(0.0 < own <= 1.0 for own in reading.base.values())
    assert set(reading.topic_weights) == set(reading.scan.counts)


def test_an_anchor_in_many_turns_weighs_less_than_one_in_few(talk: Talk) -> None:
    for number in range(20):
        talk.add(f"kingfisher question {number}", "heron" if number == 3 else "")
    reading = talk.read("kingfisher heron")
    assert reading.idf["heron"] > reading.idf["kingfish"] > 0.0


def test_a_sentence_pattern_said_again_and_again_is_wording(talk: Talk) -> None:
    for subject in ("kingfisher", "walnut", "granite", "trombone", "compost", "lighthouse"):
        talk.add(f"Please outline the essential characteristics regarding {subject}", "")
    reading = talk.read("Please outline the essential characteristics regarding saffron")
    assert reading.wording
    assert "saffron" in reading.scan.counts
    assert "saffron" not in reading.wording
    fresh = Talk(open_store()).read("Please outline the essential characteristics regarding saffron")
    assert not fresh.wording
    assert all(reading.base[term] < fresh.base[term] for term in reading.wording)


def test_a_whole_question_asked_again_is_no_wording(talk: Talk) -> None:
    for _ in range(6):
        talk.add("Please outline the essential characteristics regarding saffron", "")
    assert not talk.read("Please outline the essential characteristics regarding saffron").wording


def test_a_huge_query_is_weighed_by_its_first_terms_but_indexed_whole(talk: Talk) -> None:
    reading = talk.read(" ".join(f"subject{number}x" for number in range(3000)))
    assert len(reading.scan.counts) <= 2000 < len(reading.whole.counts)
    assert set(reading.scan.counts) < set(reading.whole.counts)
    assert set(reading.base) == set(reading.scan.counts)


@pytest.mark.parametrize(
    ("query", "turns"),
    [
        ("kingfisher river", {0, 2}),
        ("kingfisher", {0, 1, 2}),
        ("the kingfisher of the river", {0, 2}),
        ("kingfisher zebra", set()),
        ("nginx 1.2.3", {1}),
        ("nginx v1.2.3", {1}),
        ("getUserName", set()),
        ("翠鸟在哪里", {3}),
        ("翠鸟 河流", set()),
        ("", set()),
        ("?!", set()),
    ],
)
def test_turns_with_all_anchors_hold_each_on_either_side(talk: Talk, query: str, turns: set[int]) -> None:
    talk.add("Where is the kingfisher?", "At the river.")
    talk.add("A kingfisher on nginx 1.2.3", "user name, get it")
    talk.add("river kingfisher")
    talk.add("翠鸟住在湖边")
    reading = talk.read(query)
    assert turns_with_all(reading, talk.pool.postings) == turns


def test_of_a_huge_query_only_what_is_weighed_is_asked_for(talk: Talk) -> None:
    text = " ".join(f"subject{number}x" for number in range(3000))
    talk.add(text)
    assert turns_with_all(talk.read(text), talk.pool.postings) == {0}


def test_reading_changes_nothing(talk: Talk) -> None:
    talk.add("Tell me about the kingfisher", "It dives.")
    assert talk.read("Does it dive?") == talk.read("Does it dive?")
    assert talk.pool.turn_count == talk.session.tracker.turn_count == 1
