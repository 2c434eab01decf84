"""A conversation goes on wherever, and by whomever, it was begun."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from context_gatekeeper.core.profiles import profile_named
from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.scheduler import ContextScheduler
from context_gatekeeper.engine.session import Session
from context_gatekeeper.gatekeeper import ContextGatekeeper
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores import open_store
from context_gatekeeper.types import TopicMove

TURNS = (
    ("How do I prune an apple tree?", "Prune an apple tree in late winter. Remove dead branches first."),
    ("Which saw suits thick apple branches?", "A folding pruning saw suits branches above three centimetres."),
    ("How do I configure nginx as a reverse proxy?", "Use proxy_pass inside a location block of nginx."),
    ("Which nginx header forwards the client address?", "Set X-Forwarded-For in nginx with proxy_set_header."),
    ("苹果树什么时候开花？", "苹果树在四月下旬开花，霜冻会伤花。"),
    ("Back to the apple tree: when does it flower?", "Apple trees flower in late April."),
)
QUERIES = (
    "Which saw suits apple branches?",
    "What did you say about the nginx header?",
    "Why?",
    "苹果树的花怕霜冻吗？",
    "How do I bake sourdough bread?",
    "",
)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PageStore]:
    opened = open_store(None if request.param == "memory" else tmp_path / "pool.sqlite")
    yield opened
    opened.close()


def add(session: Session, user: str, assistant: str, time: float | None = None) -> int:
    return session.add_turn(user, assistant, time, (None, None))


def filled(pool: PagePool) -> Session:
    session = Session(pool)
    for user, assistant in TURNS:
        add(session, user, assistant)
    return session


def decisions(session: Session, pool: PagePool) -> list[dict[str, object]]:
    session.catch_up()
    scheduler = ContextScheduler(pool, session.tracker, profile_named("strict"), estimate_tokens)
    return [scheduler.plan(query, 300).to_dict() for query in QUERIES]


def test_turn_ids_count_from_zero(store: PageStore) -> None:
    session = Session(PagePool(store, "share", "talk"))
    assert [add(session, *turn) for turn in TURNS] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("profile", ["strict", "recall"])
def test_a_reopened_file_decides_as_the_live_session(tmp_path: Path, profile: str) -> None:
    path = tmp_path / "pool.sqlite"
    with ContextGatekeeper(store=path, profile=profile) as live:
        for user, assistant in TURNS:
            live.add_turn(user, assistant)
        expected = [live.explain(query).to_dict() for query in QUERIES]
    with ContextGatekeeper(store=path, profile=profile) as reopened:
        assert reopened.turn_count == len(TURNS)
        assert [reopened.explain(query).to_dict() for query in QUERIES] == expected
    assert any(decision["blocks"] for decision in expected)


def test_a_reopened_session_goes_on_as_the_live_one(store: PageStore) -> None:
    live, broken = PagePool(store, "share", "live"), PagePool(store, "share", "broken")
    session = filled(live)
    for user, assistant in TURNS:
        add(Session(broken), user, assistant)
    restarted = Session(broken)
    assert decisions(restarted, broken) == decisions(session, live)
    assert list(restarted.tracker.segment_of) == list(session.tracker.segment_of)
    assert len(session.tracker.segment_starts) > 1


def test_turns_of_a_second_object_of_the_same_file_are_caught_up(tmp_path: Path) -> None:
    path = tmp_path / "pool.sqlite"
    with ContextGatekeeper(store=path) as first, ContextGatekeeper(store=path) as second:
        first.add_turn(*TURNS[0])
        assert second.add_turn(*TURNS[1]) == 1
        assert first.add_turn(*TURNS[2]) == 2
        assert second.add_turn(*TURNS[3]) == 3
        assert [block.user_text for block in first.blocks()] == [user for user, _ in TURNS[:4]]
        for query in QUERIES:
            assert first.explain(query).to_dict() == second.explain(query).to_dict()
        assert [block["turn_id"] for block in first.select("Which saw suits apple branches?")] == [1]


def test_catching_up_twice_takes_a_turn_in_once(store: PageStore) -> None:
    pool = PagePool(store, "share", "talk")
    filled(pool)
    session = Session(pool)
    session.catch_up()
    session.catch_up()
    assert session.tracker.turn_count == len(TURNS)


def test_a_known_move_overrules_the_gate(store: PageStore) -> None:
    pool = PagePool(store, "share", "talk")
    session = Session(pool)
    add(session, *TURNS[0])
    session.add_turn("And then?", "Then rest.", None, (None, None), known_move=TopicMove.SWITCH)
    session.add_turn(*TURNS[2], None, (None, None), known_move=TopicMove.CONTINUE)
    assert list(session.tracker.segment_starts) == [0, 1]
    reopened = Session(pool)
    reopened.catch_up()
    assert list(reopened.tracker.segment_starts) == [0, 1]


def test_a_turn_without_an_answer_indexes_the_question_alone(store: PageStore) -> None:
    pool = PagePool(store, "share", "talk")
    session = Session(pool)
    session.add_turn("Tell me about kingfishers", "", 1_700_000_000.0, ("Ann", "Ben"))
    turn = pool.turn(0)
    assert turn.user.terms
    assert not turn.assistant.terms
    assert (turn.user.speaker, turn.assistant.speaker, turn.user.time) == ("Ann", "Ben", 1_700_000_000.0)
