"""AgentPool: goals and pins in plans, goal labels, cards as pages, explanations and the event feed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from context_gatekeeper.agent_pool import AgentPool, EventFeed
from context_gatekeeper.core.tokens import MESSAGE_TOKENS, estimate_tokens
from context_gatekeeper.engine.events import EventKind, PageEvent
from context_gatekeeper.errors import BudgetError, ConfigError, PageNotFoundError
from context_gatekeeper.stores import open_store
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentSession, PageKind
from tests.engine.agents import FIXING, SAMPLES, answered, grown, said, session, stored, two_tasks

LONG = read_sessions(SAMPLES / "claude_code_session.jsonl.gz")[0]
GOAL = "The order export of the bookshop loses no invoice row."
TWO_TASKS = two_tasks(" We decided to keep the csv module.", "必须写上电话。", name="two")


@pytest.fixture(params=["memory", "sqlite"])
def pool(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentPool]:
    place = None if request.param == "memory" else tmp_path / "pages.db"
    with AgentPool(place, sealed_folder=tmp_path / "sealed") as opened:
        yield opened


# -- plans --------------------------------------------------------------------------------------


def test_active_goals_and_pins_stand_in_every_plan_in_front_and_done_ones_do_not(pool: AgentPool) -> None:
    pool.import_session(FIXING)
    bare = pool.plan("shop/fixing")
    pool.set_goal(GOAL)
    pool.finish_goal(pool.set_goal("Done already.").goal_id)
    pool.pin("p4#L1", session="shop/fixing")
    plan = pool.plan("shop/fixing")
    assert [entry.form for entry in plan.entries if entry.form == "resident"] == ["resident"]
    assert plan.entries[0].reason == "pinned: always sent"
    added = plan.window_tokens - bare.window_tokens
    texts = sum(estimate_tokens(text) for text in (GOAL, pool.pins()[0].text))
    assert texts < added < texts + 200
    assert plan == pool.plan("shop/fixing")


def test_the_most_that_can_be_pinned_stays_within_the_bound_as_it_is_sent() -> None:
    with AgentPool() as pool:
        pool.import_session(FIXING)
        while len(pool.goals()) < 40:
            try:
                pool.set_goal(f"Goal {len(pool.goals())}. " + "words <system> " * 200)
            except BudgetError:
                break
        assert 3 < len(pool.goals()) < 40
        resident = [entry.tokens for entry in pool.plan("shop/fixing").entries if entry.form == "resident"]
        assert 7000 < sum(resident) <= 8000 + MESSAGE_TOKENS


def test_a_long_sessions_plan_holds_the_running_tasks_card_and_says_so() -> None:
    with AgentPool() as pool:
        name = pool.import_session(LONG).session
        plan = pool.plan(name)
        (card,) = [entry for entry in plan.entries if entry.form == "resident"]
        assert plan.epoch > 0
        assert card.reason == "the running task's constraints and card"
        assert card.tokens <= 604
        assert not [entry for entry in pool.plan(name, cards=False).entries if entry.form == "resident"]


def test_a_plan_explains_itself_line_by_line(pool: AgentPool) -> None:
    pool.import_session(FIXING)
    lines = pool.explain("shop/fixing", prices="openai", resident_tokens=123)
    assert lines == pool.plan("shop/fixing", prices="openai", resident_tokens=123).lines()
    assert "(123 resident)" in lines[0]
    assert any(line.startswith("in   p") for line in lines)


def test_whoever_subscribes_is_told_what_happened_to_the_pages_of_a_session() -> None:
    events: list[PageEvent] = []
    feed = EventFeed()
    feed.subscribe(events.append)
    with AgentPool() as pool:
        name = pool.import_session(LONG).session
        plan = pool.plan(name, feed=feed)
        kinds = Counter(event.kind for event in events)
        assert kinds[EventKind.EPOCH] == kinds[EventKind.SWAPPED_OUT] == plan.epoch > 0
        assert {event.session for event in events} == {name}
        told = len(events)
        pool.explain(name, feed=feed)
        assert len(events) == 2 * told


@pytest.mark.parametrize(
    ("options", "part"), [({"prices": "gold"}, "none of this name"), ({"resident_tokens": -1}, "resident_tokens")]
)
def test_bad_arguments_of_a_plan_are_refused(pool: AgentPool, options: dict[str, object], part: str) -> None:
    pool.import_session(FIXING)
    with pytest.raises(ConfigError, match=part):
        pool.explain("shop/fixing", **options)  # type: ignore[arg-type]


# -- goal labels --------------------------------------------------------------------------------


def test_pages_of_turns_that_serve_an_active_goal_are_labelled_with_it() -> None:
    store = open_store()
    with AgentPool(store) as pool:
        pool.finish_goal(pool.set_goal(GOAL).goal_id)
        pool.set_goal(GOAL)
        pool.import_session(TWO_TASKS)
        pages = [page for page in stored(store, "two") if page.labels.provenance is not None]
        assert [page.labels.goal_ids for page in pages] == [("g2",)] * 4 + [()] * 4
        assert [page.labels.task_id for page in pages] == ["t1"] * 4 + ["t2"] * 4
        first, second = pool.cards("two")
        assert (first.goal_ids, first.label) == (("g2",), GOAL)
        assert second.goal_ids == ()


def test_without_goals_no_page_is_labelled_with_one() -> None:
    store = open_store()
    with AgentPool(store) as pool:
        pool.import_session(TWO_TASKS)
        assert {page.labels.goal_ids for page in stored(store, "two")} == {()}


# -- cards as pages -----------------------------------------------------------------------------


def test_an_import_leaves_a_card_page_for_each_task_and_a_second_one_none(pool: AgentPool) -> None:
    pool.import_session(TWO_TASKS, dry_run=True)
    pool.import_session(TWO_TASKS)
    views = pool.card_pages("two")
    assert [(view.kind, view.provenance, view.blocks) for view in views] == [("card", "derived", "")] * 2
    assert [card.handle for card in pool.cards("two")] == [view.handle for view in views]
    assert pool.expand(views[0].handle).text == pool.cards("two")[0].render(1000)
    pool.import_session(TWO_TASKS)
    assert pool.card_pages("two") == views
    assert {info.name for info in pool.sessions()} == {"two"}
    whole = pool.session_card("two")
    assert whole is not None
    assert {"/srv/shop/export.py", "/srv/clinic/mail.txt"} <= {entry.text for entry in whole.card.entries}


def test_a_session_that_went_on_has_a_newer_card_and_the_older_one_is_found_by_its_handle_alone(
    pool: AgentPool,
) -> None:
    pool.import_session(TWO_TASKS)
    older = pool.card_pages("two")[1]
    pool.import_session(grown(TWO_TASKS, said("模板里必须写上急诊号码。"), answered("加上了。")))
    newer = pool.card_pages("two")[1]
    assert newer.handle != older.handle
    assert pool.expand(older.handle).kind is PageKind.CARD
    found = [page.item.handle for page in pool.recall("疫苗 提醒 邮件 模板 电话 急诊", limit=20).pages]
    assert older.handle not in found


def spread(words: int = 6) -> AgentSession:
    """What is asked for stands in many pages, a word in each."""
    rules = [
        f"You must never rename the {name} column." for name in "zebra okapi tapir quokka dingo wombat".split()[:words]
    ]
    return session(
        said("Fix the report, but rename no column: you must never rename a column."),
        *(said(rule) for rule in rules),
        answered("Understood."),
        name="spread",
    )


def test_recall_gives_a_card_in_the_place_of_the_pages_that_it_quotes(pool: AgentPool) -> None:
    pool.import_session(spread())
    query = "zebra okapi tapir quokka dingo wombat"
    found = pool.recall(query).pages
    cards = [page for page in found if page.item.kind is PageKind.CARD]
    assert [page.item.handle for page in cards] == [pool.card_pages("spread")[0].handle]
    assert cards[0].item.session == "spread"
    quoted = [page.item.text for page in found if page.item.kind is not PageKind.CARD]
    assert not any("must never rename" in text for text in quoted)


def test_recall_gives_the_page_where_it_tells_more_of_the_query_than_the_card(pool: AgentPool) -> None:
    pool.import_session(FIXING)
    found = pool.recall("def export orders rows", limit=20).pages
    assert found
    assert not any(page.item.kind is PageKind.CARD for page in found)


def test_cards_go_with_their_session(tmp_path: Path) -> None:
    with AgentPool(tmp_path / "pages.db", sealed_folder=tmp_path / "sealed") as pool:
        pool.import_session(spread())
        handle = pool.card_pages("spread")[0].handle
        pool.forget_session("spread")
        with pytest.raises(PageNotFoundError):
            pool.expand(handle)
        assert pool.recall("zebra okapi").pages == ()
        pool.import_session(spread())
        with pytest.raises(PageNotFoundError):
            pool.card_pages("spread")
    assert b"okapi" not in (tmp_path / "pages.db").read_bytes()


def test_a_card_that_quotes_a_deleted_page_is_made_again_without_it(tmp_path: Path) -> None:
    with AgentPool(tmp_path / "pages.db", sealed_folder=tmp_path / "sealed") as pool:
        pool.import_session(spread())
        older = pool.card_pages("spread")[0].handle
        page = next(view for view in pool.pages("spread") if "okapi" in view.head)
        pool.forget_pages([page.handle])
        with pytest.raises(PageNotFoundError):
            pool.expand(older)
        (view,) = pool.card_pages("spread")
        text = pool.expand(view.handle).text
        assert "okapi" not in text
        assert "zebra" in text
    assert b"okapi" not in (tmp_path / "pages.db").read_bytes()


def test_a_card_may_be_deleted_alone(pool: AgentPool) -> None:
    pool.import_session(spread())
    assert pool.forget_pages([pool.card_pages("spread")[0].handle]) == 1
    assert pool.card_pages("spread") == ()
    assert [card.handle for card in pool.cards("spread")] == [""]
    assert pool.recall("zebra okapi").pages


def test_cards_of_another_owner_are_as_if_they_were_not_there() -> None:
    store = open_store()
    with AgentPool(store, owner="ann") as ann, AgentPool(store, owner="bob") as bob:
        name = ann.import_session(spread()).session
        (view,) = ann.card_pages(name)
        with pytest.raises(PageNotFoundError):
            bob.expand(view.handle)
        with pytest.raises(PageNotFoundError):
            bob.card_pages(name)
        assert bob.recall("zebra okapi").pages == ()


# -- pins ---------------------------------------------------------------------------------------


def test_a_pin_is_taken_away_as_it_is_listed(pool: AgentPool) -> None:
    pool.import_session(FIXING)
    pool.import_session(TWO_TASKS)
    pool.pin("p0", session="shop/fixing")
    pool.pin("p1#L1", session="two")
    for pin in pool.pins():
        pool.unpin(pin.handle)
    assert pool.pins() == ()
    with pytest.raises(ConfigError, match="nothing is pinned"):
        pool.unpin("shop/fixing p0")
