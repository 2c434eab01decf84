"""Recall over several sessions: scores compare, and only what the index tells is read."""

from __future__ import annotations

import pytest

from context_gatekeeper.engine.session_recall import SessionRecall
from context_gatekeeper.stores import MemoryStore
from tests.engine.agents import FIXING, POOL, answered, call, gave, grown, returned, said, session, stored, take_in

TALK = session(
    said("Which port does the redis cache use?"),
    answered("The cache listens on 6380, not on the default port."),
    said("谢谢，部署方案里的静默升级怎么做？"),
    answered("先停写入，再做静默升级。"),
    name="talk",
)
NOISE = session(*(said(f"cache line {number} of the port list") for number in range(30)), name="noise")


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    for one in (FIXING, TALK, NOISE):
        take_in(store, one)
    return store


def found(recall: SessionRecall, query: str, *names: str, limit: int = 5) -> list[tuple[str, int]]:
    """(session, ordinal) of the pages found, best first."""
    hits = recall.find(query, names, limit=limit)
    return [(one.session, 2 * one.hit.turn_id + (one.hit.role == "assistant")) for one in hits]


def test_the_page_that_tells_it_comes_first_whatever_session_it_is_in(store: MemoryStore) -> None:
    recall = SessionRecall(store, POOL)
    every = ("shop/fixing", "talk", "noise")
    assert found(recall, "redis cache port", *every)[0][0] == "talk"
    assert found(recall, "静默升级", *every)[0] in (("talk", 2), ("talk", 3))
    assert found(recall, "TypeError generator subscriptable", *every)[0] == ("shop/fixing", 10)
    assert found(recall, "export.py rows", *every)[0][0] == "shop/fixing"


def test_one_session_alone_may_be_asked(store: MemoryStore) -> None:
    recall = SessionRecall(store, POOL)
    assert {name for name, _ in found(recall, "cache port", "noise")} == {"noise"}
    assert found(recall, "静默升级", "noise") == []


def test_a_word_weighs_by_how_rare_it_is_in_all_sessions_asked(store: MemoryStore) -> None:
    recall = SessionRecall(store, POOL)
    alone, together = (recall.find("cache", names, limit=1)[0].hit for names in (("noise",), ("noise", "shop/fixing")))
    assert together.score > alone.score
    every = recall.find("cache port", ("talk", "noise"), limit=50)
    assert [one.hit.score for one in every] == sorted((one.hit.score for one in every), reverse=True)


def test_ties_go_to_the_later_session() -> None:
    store = MemoryStore()
    for name in ("one", "two"):
        take_in(store, session(said("the very same words"), name=name))
    assert found(SessionRecall(store, POOL), "very same words", "one", "two") == [("two", 0), ("one", 0)]


def test_pages_that_came_in_meanwhile_are_found(store: MemoryStore) -> None:
    recall = SessionRecall(store, POOL)
    assert found(recall, "zeppelin", "talk", "noise") == []
    take_in(store, grown(TALK, said("And the zeppelin?"), answered("It landed.")))
    assert found(recall, "zeppelin", "talk", "noise")[0] == ("talk", 4)
    assert found(recall, "redis", "talk")[0][0] == "talk"


def test_deleted_pages_are_not_found_after_forgetting(store: MemoryStore) -> None:
    recall = SessionRecall(store, POOL)
    assert found(recall, "静默升级", "talk")
    store.delete_session(POOL, "talk")
    recall.forget()
    assert found(recall, "静默升级", "talk", "noise") == []


@pytest.mark.parametrize("query", ["", " ", "?!", "zzzunknown", "col:*", "¿", "%_\\"])
def test_a_query_that_names_nothing_finds_nothing_and_raises_nothing(store: MemoryStore, query: str) -> None:
    assert found(SessionRecall(store, POOL), query, "shop/fixing", "talk") == []


def test_a_query_without_words_is_looked_for_as_it_stands() -> None:
    store = MemoryStore()
    take_in(store, session(said("what is => ?"), answered(call("c", "Bash", command="x"))))
    assert found(SessionRecall(store, POOL), "=>", "s") == [("s", 0)]


def test_no_sessions_and_empty_ones_hold_nothing(store: MemoryStore) -> None:
    store.set_setting(POOL, "empty", "k", "v")
    recall = SessionRecall(store, POOL)
    assert found(recall, "cache", "empty") == found(recall, "cache") == found(recall, "cache", "nobody") == []


def test_thinking_is_not_found_and_results_are(store: MemoryStore) -> None:
    assert "first" not in stored(store, "shop/fixing")[3].terms
    take_in(store, session(answered(call("c", "Bash", command="ls")), returned(gave("c", "zebra.txt")), name="ls"))
    assert found(SessionRecall(store, POOL), "zebra.txt", "ls")[0] == ("ls", 2)
