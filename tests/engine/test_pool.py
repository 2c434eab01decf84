"""The pool: one way in and out of a session's pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from context_gatekeeper.engine.pool import PagePool, TurnDraft
from context_gatekeeper.errors import ConfigError, StoreError
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores import open_store
from context_gatekeeper.types import PageDraft, Role


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PageStore]:
    opened = open_store(None if request.param == "memory" else tmp_path / "pool.sqlite")
    yield opened
    opened.close()


def draft(user: str, assistant: str = "", **notes: object) -> TurnDraft:
    return TurnDraft(user, assistant, {"asked": 2}, {"answered": 1} if assistant else {}, notes, 60.0, ("Ann", None))


def test_an_appended_turn_comes_back_as_it_was_given(store: PageStore) -> None:
    pool = PagePool(store, "share", "talk")
    pool.append_turn(0, draft("苹果 \ud800\x00", "An answer.", switch=True, keys=["苹果"]))
    turn = PagePool(store, "share", "talk").turn(0)
    assert (turn.turn_id, turn.user.text, turn.assistant.text) == (0, "苹果 \ud800\x00", "An answer.")
    assert (turn.user.role, turn.assistant.role) == (Role.USER, Role.ASSISTANT)
    assert (dict(turn.user.terms), dict(turn.assistant.terms)) == ({"asked": 2}, {"answered": 1})
    assert (turn.user.time, turn.user.speaker, turn.assistant.speaker) == (60.0, "Ann", None)
    assert turn.derived == {"switch": True, "keys": ["苹果"]}
    assert turn.assistant.derived == ""


def test_turns_come_in_order_from_the_one_asked_for(store: PageStore) -> None:
    pool = PagePool(store, "share", "talk")
    for turn_id in range(5):
        pool.append_turn(turn_id, draft(f"question {turn_id}"))
    assert [turn.turn_id for turn in pool.turns()] == [0, 1, 2, 3, 4]
    assert [turn.user.text for turn in pool.turns(3)] == ["question 3", "question 4"]
    assert list(pool.turns(5)) == []


def test_a_read_turn_is_kept_in_memory(store: PageStore) -> None:
    pool = PagePool(store, "share", "talk")
    appended = pool.append_turn(0, draft("first"))
    assert pool.turn(0) is appended
    later = PagePool(store, "share", "talk")
    assert later.turn(0) is later.turn(0)


def test_the_cache_forgets_the_oldest_turn_but_the_store_does_not(store: PageStore) -> None:
    pool = PagePool(store, "share", "talk")
    oldest = pool.append_turn(0, draft("the very first", "kept"))
    for turn_id in range(1, 4097):
        pool.append_turn(turn_id, draft("more"))
    read_again = pool.turn(0)
    assert read_again is not oldest
    assert read_again == oldest


@pytest.mark.parametrize("turn_id", [1, 7])
def test_an_unknown_turn_is_an_error_that_names_turn_and_session(store: PageStore, turn_id: int) -> None:
    pool = PagePool(store, "share", "talk")
    pool.append_turn(0, draft("only one"))
    with pytest.raises(ConfigError, match=f"turn {turn_id}: session 'talk' has no such turn"):
        pool.turn(turn_id)


def test_a_taken_turn_id_is_refused_and_nothing_changes(store: PageStore) -> None:
    pool = PagePool(store, "share", "talk")
    pool.append_turn(0, draft("mine"))
    other = PagePool(store, "share", "talk")
    with pytest.raises(ConfigError):
        other.append_turn(0, draft("theirs"))
    assert pool.turn_count == other.turn_count == 1
    assert other.turn(0).user.text == "mine"


def test_sessions_and_pools_do_not_see_each_other(store: PageStore) -> None:
    PagePool(store, "share", "talk").append_turn(0, draft("here"))
    for pool in (PagePool(store, "share", "other"), PagePool(store, "else", "talk")):
        assert pool.turn_count == 0
        assert list(pool.turns()) == []
        assert pool.postings.document_frequency("asked") == 0


def test_the_index_grows_with_every_turn_of_any_writer(store: PageStore) -> None:
    pool, other = PagePool(store, "share", "talk"), PagePool(store, "share", "talk")
    pool.append_turn(0, draft("one", "answer"))
    other.append_turn(1, draft("two"))
    assert pool.turn_count == 2
    assert pool.postings.block_count == 2
    assert list(pool.postings.ordinals("asked")) == [0, 2]
    assert list(pool.postings.ordinals("answered")) == [1]


def test_settings_keep_their_first_order_and_none_removes_one(store: PageStore) -> None:
    pool = PagePool(store, "share", "talk")
    for key, value in (("language", "English"), ("style", "short"), ("language", "German")):
        pool.set_setting(key, value)
    assert list(pool.settings().items()) == [("language", "German"), ("style", "short")]
    pool.set_setting("language", None)
    assert dict(pool.settings()) == {"style": "short"}
    assert pool.session == "talk"


def test_half_a_turn_put_there_by_hand_is_named(store: PageStore) -> None:
    pool = PagePool(store, "share", "talk")
    pool.append_turn(0, draft("whole"))
    store.append("share", "talk", [PageDraft(1, Role.USER, "half")])
    with pytest.raises(StoreError, match=r"turn 1 of session 'talk': it has no assistant page; append that page"):
        list(pool.turns())
    store.append("share", "talk", [PageDraft(1, Role.ASSISTANT, "")])
    assert [turn.user.text for turn in pool.turns()] == ["whole", "half"]
