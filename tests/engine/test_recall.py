"""The one ranking: blocks in the strict order, pages with dates and speakers in the recall order."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from context_gatekeeper.core.profiles import profile_named
from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.query import read_query
from context_gatekeeper.engine.recall import rank_blocks, rank_pages, recall
from context_gatekeeper.engine.session import Session
from context_gatekeeper.gatekeeper import ContextGatekeeper
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores import open_store
from context_gatekeeper.types import RecallHit, Role

Speakers = tuple[str | None, str | None]


def at(year: int, month: int, day: int = 10) -> float:
    return datetime(year, month, day, tzinfo=UTC).timestamp()


class Talk:
    """A session that is asked for pages."""

    def __init__(self, store: PageStore) -> None:
        self.pool = PagePool(store, "share", "talk")
        self.session = Session(self.pool)

    def add(self, user: str, assistant: str = "", time: float | None = None, speakers: Speakers = (None, None)) -> None:
        self.session.add_turn(user, assistant, time, speakers)

    def blocks(self, query: str, **limits: object) -> list[tuple[int, float]]:
        reading = read_query(query, self.pool.postings, self.session.tracker)
        return rank_blocks(reading, self.pool.postings, profile_named("strict"), **{"limit": 20, **limits})

    def pages(self, query: str, now: float | None = None) -> list[tuple[int, float]]:
        reading = read_query(query, self.pool.postings, self.session.tracker)
        return rank_pages(reading, self.pool.postings, self.session.tracker, profile_named("recall"), now=now)

    def hits(self, query: str, profile: str, limit: int = 20) -> list[RecallHit]:
        reading = read_query(query, self.pool.postings, self.session.tracker)
        return recall(reading, self.pool, self.session.tracker, profile_named(profile), limit=limit)


@pytest.fixture(params=["memory", "sqlite"])
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    opened = open_store(None if request.param == "memory" else tmp_path / "pool.sqlite")
    yield Talk(opened)
    opened.close()


@pytest.mark.parametrize("query", ["What happened in May?", "in may", "5月发生了什么？", "What happened in 2021?"])
def test_dates_are_found_in_the_recall_order_only(talk: Talk, query: str) -> None:
    talk.add("We bought a canoe", time=at(2022, 3))
    talk.add("The fence was painted", time=at(2021, 5))
    talk.add("Grandmother baked bread", time=at(2022, 8))
    assert talk.pages(query)[0][0] == 2
    assert talk.blocks(query) == []


@pytest.mark.parametrize("abbreviation", ["Sept", "Sep", "September"])
def test_a_month_may_be_abbreviated(talk: Talk, abbreviation: str) -> None:
    talk.add("We bought a canoe", time=at(2022, 3))
    talk.add("The fence was painted", time=at(2022, 9))
    assert talk.pages(f"Anything in {abbreviation}?")[0][0] == 2


def test_a_speaker_named_in_the_query_comes_first_in_the_recall_order_only(talk: Talk) -> None:
    talk.add("I adopted a greyhound", "I adopted a greyhound", speakers=("Ann", "Ben"))
    talk.add("The weather is mild", "Indeed so", speakers=("Ann", "Ben"))
    assert talk.pages("Which greyhound did Ben adopt?")[0][0] == 1
    assert talk.pages("Which greyhound did Ann adopt?")[0][0] == 0
    assert talk.blocks("Ben") == []
    assert talk.blocks("greyhound")


def test_of_blocks_with_the_same_text_the_newer_comes_first(talk: Talk) -> None:
    for _ in range(4):
        talk.add("Tell me about kingfishers", "They dive.")
    talk.add("What is granite?", "A rock.")
    ranked = talk.blocks("kingfishers")
    assert [turn_id for turn_id, _ in ranked] == [3, 2, 1, 0]
    assert talk.blocks("kingfishers") == ranked


def test_pages_with_equal_weight_come_older_first(talk: Talk) -> None:
    for word in ("kingfisher", "granite", "saffron", "kingfisher", "trombone"):
        talk.add(word, "indeed", speakers=("Ann", "Ben"))
    ranked = talk.pages("kingfisher")
    assert ranked == sorted(ranked, key=lambda page: (-page[1], page[0]))
    assert [ordinal for ordinal, _ in ranked[:2]] == [0, 6]
    assert ranked[0][1] == ranked[1][1]


def test_between_persons_a_question_lends_more_to_what_is_said_next(talk: Talk) -> None:
    for first in ("Have you a canoe?", "I have a canoe.", "你有 canoe 吗？"):
        talk.add(first, "Since last June", speakers=("Ann", "Ben"))
        talk.add("Grand weather", "Mild indeed", speakers=("Ann", "Ben"))
    found = dict(talk.pages("canoe"))
    assert found[1] > found[5]
    assert found[9] > found[5]


def test_a_speakers_name_counts_less_as_a_word_than_another_word(talk: Talk) -> None:
    talk.add("Greetings everybody", "Hello", speakers=("Ann", "Ben"))
    for word in ("Ann", "quokka"):
        talk.add(f"Thanks {word}", "Fine", speakers=("Cid", "Ben"))
        talk.add("Grand weather", "Mild indeed", speakers=("Cid", "Ben"))
        talk.add("Grand weather", "Mild indeed", speakers=("Cid", "Ben"))
    found = dict(talk.pages("Ann quokka"))
    assert found[8] > found[2] > 0


def test_pages_around_which_the_query_is_spread_gain_by_it(talk: Talk) -> None:
    for first, second in (("canoe", "harbour"), ("canoe", "granite")):
        talk.add(first, second, speakers=("Ann", "Ben"))
        for _ in range(3):
            talk.add("grand weather", "mild indeed", speakers=("Ann", "Ben"))
    found = dict(talk.pages("canoe harbour"))
    assert found[0] > found[8]


def test_a_word_that_the_query_repeats_counts_more(talk: Talk) -> None:
    talk.add("okapi")
    talk.add("quokka")
    assert [page for page, _ in talk.pages("okapi quokka")] == [0, 2]
    assert [page for page, _ in talk.pages("okapi quokka, quokka, quokka")] == [2, 0]


def test_in_a_query_of_several_speakers_the_askers_words_count_more(talk: Talk) -> None:
    talk.add("okapi")
    talk.add("quokka")
    assert [page for page, _ in talk.pages("Ann: hello\nBen: okapi!\nAnn: quokka?")] == [2, 0]
    assert [page for page, _ in talk.pages("Ben: hello\nAnn: quokka?\nBen: okapi!")] == [0, 2]


def test_of_two_alike_the_newer_page_of_a_talk_comes_first(talk: Talk) -> None:
    for word in ("kingfisher", "granite", "kingfisher"):
        talk.add(word, "I see")
    ranked = talk.pages("kingfisher")
    assert [page for page, _ in ranked if not page & 1][:2] == [4, 0]


@pytest.mark.parametrize(
    ("now", "first"),
    [(at(2023, 5, 12), 0), (at(2023, 5, 12) + 3600, 0), (at(2023, 5, 13), 4), (None, 4)],
)
def test_the_sitting_that_still_runs_gains_nothing_by_being_new(talk: Talk, now: float | None, first: int) -> None:
    for day, word in enumerate(("kingfisher", "granite", "kingfisher")):
        talk.add(word, "I see", time=at(2023, 5, 10 + day))
    assert talk.pages("kingfisher", now)[0][0] == first


def test_the_users_page_that_opens_a_sitting_comes_before_later_ones(talk: Talk) -> None:
    for word in ("kingfisher", "granite", "kingfisher"):
        talk.add(word, "I see", time=at(2023, 5, 10))
    assert talk.pages("kingfisher")[0][0] == 4
    talk.add("saffron", "I see", time=at(2023, 5, 11))
    assert talk.pages("kingfisher")[0][0] == 0


def test_in_a_list_of_notes_neither_age_nor_place_counts(talk: Talk) -> None:
    for day, word in enumerate(("granite", "kingfisher", "kingfisher", "saffron")):
        talk.add(word, time=at(2023, 5, 10 + day // 2 * 2 + day // 3))
    ranked = [(page, score) for page, score in talk.pages("kingfisher") if page in (2, 4)]
    assert [page for page, _ in ranked] == [2, 4]
    assert ranked[0][1] == ranked[1][1]


def test_recall_hands_on_when_it_is_asked() -> None:
    with ContextGatekeeper(profile="recall") as gatekeeper:
        for day, word in enumerate(("kingfisher", "granite", "kingfisher")):
            gatekeeper.add_turn(word, "I see", time=at(2023, 5, 10 + day))
        assert gatekeeper.recall("kingfisher", time=at(2023, 5, 12))[0].turn_id == 0
        assert gatekeeper.recall("kingfisher", time=at(2023, 5, 20))[0].turn_id == 2


def test_blocks_keep_to_the_limit_and_to_the_turns_allowed(talk: Talk) -> None:
    for number in range(5):
        talk.add(f"kingfisher {number}", "")
    assert len(talk.blocks("kingfisher", limit=2)) == 2
    assert {turn_id for turn_id, _ in talk.blocks("kingfisher", allowed={1, 4})} == {1, 4}


def test_a_page_beside_a_found_one_is_found_through_it(talk: Talk) -> None:
    talk.add("Which bird dives?", "The kingfisher does.")
    talk.add("And nests?", "In a burrow.")
    for subject in ("granite", "saffron", "trombone"):
        talk.add(f"What is {subject}?", "It is well known.")
    found = dict(talk.pages("kingfisher"))
    assert found[1] == max(found.values())
    assert 0 < found[0] < found[1]


@pytest.mark.parametrize("profile", ["strict", "recall"])
def test_hits_name_their_page_best_first(talk: Talk, profile: str) -> None:
    talk.add("Which bird dives?", "The kingfisher does.")
    talk.add("Which rock is hard?", "Granite is.")
    talk.add("Is the kingfisher blue?", "Yes, the kingfisher is blue.")
    hits = talk.hits("kingfisher blue", profile)
    assert (hits[0].turn_id, [hit.score for hit in hits]) == (2, sorted((hit.score for hit in hits), reverse=True))
    for hit in hits:
        turn = talk.pool.turn(hit.turn_id)
        page = turn.user if hit.role is Role.USER else turn.assistant
        assert (hit.page_id, hit.score > 0) == (page.page_id, True)
    assert talk.hits("kingfisher blue", profile, limit=1) == hits[:1]
    assert talk.hits("xylophone", profile) == []


def test_the_side_that_holds_more_of_the_query_stands_first(talk: Talk) -> None:
    talk.add("Which bird dives?", "The kingfisher does.")
    talk.add("Is the heron grey?", "Yes.")
    talk.add("What is granite?", "")
    assert [hit.role for hit in talk.hits("kingfisher", "strict")] == [Role.ASSISTANT, Role.USER]
    assert next(hit.role for hit in talk.hits("heron", "strict")) is Role.USER
    assert [hit.role for hit in talk.hits("granite", "strict")] == [Role.USER]


def test_a_date_at_which_nothing_was_said_finds_what_the_words_find() -> None:
    with ContextGatekeeper(profile="recall") as gatekeeper:
        gatekeeper.add_turn("Apple trees grow tall", "They need pruning")
        assert next(iter(gatekeeper.recall("apple trees in May 1999"))).turn_id == 0
