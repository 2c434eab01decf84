"""A conversation goes on wherever, and by whomever, it was begun."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from context_gatekeeper.core.profiles import profile_named
from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.scheduler import ContextScheduler
from context_gatekeeper.engine.session import Session
from context_gatekeeper.errors import ConfigError, StoreBusyError, StoreError
from context_gatekeeper.gatekeeper import ContextGatekeeper
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores import MemoryStore, open_store
from context_gatekeeper.stores.sqlite import SqliteStore
from context_gatekeeper.types import Page, PageDraft, TopicMove
from tests.stores.processes import finish, said, start, tell

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


# -- several writers ----------------------------------------------------------------------------------


class LetOthersIn(MemoryStore):
    """Lets something happen between the judging of a turn and its storing."""

    def __init__(self) -> None:
        super().__init__()
        self.first: Callable[[], object] | None = None

    def append(
        self, pool: str, session: str, drafts: Sequence[PageDraft], *, idempotency_key: str | None = None
    ) -> tuple[Page, ...]:
        first, self.first = self.first, None
        if first is not None:
            first()
        return super().append(pool, session, drafts, idempotency_key=idempotency_key)


def assert_as_if_restarted(session: Session, pool: PagePool) -> None:
    """The topics in memory are those that the stored pages give."""
    session.catch_up()
    restarted = Session(pool)
    restarted.catch_up()
    ours, theirs = session.tracker, restarted.tracker
    assert ours.turn_count == theirs.turn_count == pool.turn_count
    assert (ours.keys, ours.wording, ours.segment_of) == (theirs.keys, theirs.wording, theirs.segment_of)
    assert decisions(session, pool) == decisions(restarted, pool)


def test_a_turn_whose_place_was_taken_goes_behind_it_and_is_judged_anew() -> None:
    store = LetOthersIn()
    pool, others = PagePool(store, "share", "talk"), PagePool(store, "share", "talk")
    session, other = filled(pool), Session(others)
    store.first = lambda: add(other, "How do I bake sourdough bread?", "Feed the starter, then wait.")
    assert add(session, "Does the sourdough starter need rye?", "Rye wakes the starter up.") == len(TURNS) + 1
    assert [turn.user.text[:10] for turn in pool.turns(len(TURNS))] == ["How do I b", "Does the s"]
    assert_as_if_restarted(session, pool)
    assert_as_if_restarted(other, others)


def test_a_turn_gets_the_id_that_it_must_get_or_is_refused(store: PageStore) -> None:
    pool = PagePool(store, "share", "talk")
    session = Session(pool)
    for turn_id in (0, 1):
        assert session.add_turn(*TURNS[turn_id], None, (None, None), turn_id=turn_id) == turn_id
    for turn_id in (0, 1, 3):
        with pytest.raises(ConfigError, match=f"turn {turn_id} of session 'talk': the next turn is 2; compare"):
            session.add_turn("asked", "answered", None, (None, None), turn_id=turn_id)
    assert_as_if_restarted(session, pool)
    assert pool.turn_count == 2


def test_a_turn_that_must_keep_its_id_does_not_go_behind_another() -> None:
    store = LetOthersIn()
    pool, others = PagePool(store, "share", "talk"), PagePool(store, "share", "talk")
    session, other = filled(pool), Session(others)
    store.first = lambda: add(other, "fast", "first")
    with pytest.raises(ConfigError, match="another writer stored it first"):
        session.add_turn("slow", "late", None, (None, None), turn_id=len(TURNS))
    assert [turn.user.text for turn in pool.turns(len(TURNS))] == ["fast"]
    assert_as_if_restarted(session, pool)


def test_a_writer_who_is_never_first_is_told_so_and_stores_nothing() -> None:
    class NeverFirst(LetOthersIn):
        def append(
            self, pool: str, session: str, drafts: Sequence[PageDraft], *, idempotency_key: str | None = None
        ) -> tuple[Page, ...]:
            if "slow" in drafts[0].text:
                add(other, "fast", "first")
            return super().append(pool, session, drafts, idempotency_key=idempotency_key)

    store = NeverFirst()
    pool, other = PagePool(store, "share", "talk"), Session(PagePool(store, "share", "talk"))
    with pytest.raises(StoreBusyError, match=r"session 'talk': other writers .*; try again"):
        add(Session(pool), "slow", "late")
    assert {turn.user.text for turn in pool.turns()} == {"fast"}


@pytest.mark.parametrize("error", [StoreError("disk", "full", "free space"), KeyboardInterrupt(), MemoryError()])
def test_a_turn_that_was_not_stored_leaves_no_trace_in_the_topics(error: BaseException) -> None:
    def fail() -> None:
        raise error

    store = LetOthersIn()
    pool = PagePool(store, "share", "talk")
    session = filled(pool)
    store.first = fail
    with pytest.raises(type(error)):
        add(session, "Which saw suits the apple tree and the nginx header?", "None.")
    assert pool.turn_count == len(TURNS)
    assert_as_if_restarted(session, pool)
    assert add(session, "Which saw suits the apple tree?", "A folding saw.") == len(TURNS)
    assert_as_if_restarted(session, pool)


def test_a_turn_that_the_store_refuses_for_its_own_sake_is_not_tried_again() -> None:
    pool = PagePool(MemoryStore(), "share", "talk")
    with pytest.raises(ConfigError, match="term"):
        Session(pool).add_turn("asked", "answered", 0.0, ("line\nbreak", None))
    assert pool.turn_count == 0


def test_a_locked_file_refuses_a_turn_and_the_session_goes_on_as_if_it_was_never_said(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "pool.sqlite", busy_timeout_seconds=0)
    pool = PagePool(store, "share", "talk")
    session = filled(pool)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError):
            add(session, "Which saw suits the apple tree?", "A folding saw.")
        assert_as_if_restarted(session, pool)
        holder.execute("ROLLBACK")
    assert add(session, "Which saw suits the apple tree?", "A folding saw.") == len(TURNS)
    assert_as_if_restarted(session, pool)
    store.close()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_threads_share_one_object(tmp_path: Path, kind: str) -> None:
    with ContextGatekeeper(store=None if kind == "memory" else tmp_path / "pool.sqlite") as gatekeeper:

        def talk(thread: int) -> list[int]:
            ids = []
            for user, assistant in TURNS:
                ids.append(gatekeeper.add_turn(f"{thread}: {user}", assistant))
                gatekeeper.build_prompt(user)
                gatekeeper.recall(user)
            return ids

        with ThreadPoolExecutor(8) as executor:
            ids = [turn_id for said_ids in executor.map(talk, range(8)) for turn_id in said_ids]
        assert sorted(ids) == list(range(8 * len(TURNS)))
        assert [block.turn_id for block in gatekeeper.blocks()] == sorted(ids)
        assert gatekeeper.select("Which saw suits apple branches?")


def test_processes_add_to_one_session_and_nothing_is_lost(tmp_path: Path) -> None:
    path, turns = tmp_path / "pool.sqlite", 12
    writers = [start("add_turns.py", path, name) for name in ("ann", "ben", "cy")]
    assert {said(writer) for writer in writers} == {"ready"}
    for writer in writers:
        tell(writer, "\n" * (turns - 1))
    ids = [int(line.split()[0]) for writer in writers for line in finish(writer).splitlines()]
    assert sorted(ids) == list(range(len(writers) * turns))
    with ContextGatekeeper(store=path, session="shared") as gatekeeper:
        said_by = [block.user_text.split()[0] for block in gatekeeper.blocks()]
        assert {name: said_by.count(name) for name in ("ann", "ben", "cy")} == {"ann": turns, "ben": turns, "cy": turns}
