"""What callers may pass to AgentPool, and what they hear when it is something else."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.errors import BudgetError, ConfigError, StoreError
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.types import AgentSession, Page
from tests.engine.agents import FIXING, blocks_of, said, session
from tests.test_arguments import refused

NO_TEXTS = (None, 5, b"x", ["x"], math.nan)
NAME = "shop/fixing"


@pytest.fixture
def pool() -> AgentPool:
    opened = AgentPool()
    opened.import_session(FIXING)
    return opened


CALLS: dict[str, tuple[Callable[[AgentPool, Any], object], tuple[object, ...]]] = {
    "session": (lambda pool, value: pool.pages(value), NO_TEXTS),
    "session_id": (lambda pool, value: pool.import_session(AgentSession(value, "x", ())), NO_TEXTS),
    "call_id": (lambda pool, value: pool.swap_group(NAME, value), NO_TEXTS),
    "goal_id": (lambda pool, value: pool.finish_goal(value), NO_TEXTS),
    "goal": (lambda pool, value: pool.set_goal(value), NO_TEXTS),
    "handle": (lambda pool, value: pool.expand(value), NO_TEXTS),
    "pattern": (lambda pool, value: pool.expand("p0", pattern=value), (5, b"x", ["x"])),
    "lines": (
        lambda pool, value: pool.expand("p0", lines=value),
        ((1,), (1, 2, 3), ("a", "b"), (1.5, 2), (None, 2), (True, 2), "12", 5),
    ),
    "characters": (lambda pool, value: pool.expand("p0", characters=value), ((0, "5"), ("0", None), 7)),
    "query": (lambda pool, value: pool.recall(value), NO_TEXTS),
    "fence": (lambda pool, value: pool.recall("x", fence=value), (5, b"x", ["x"])),
    "time": (lambda pool, value: pool.recall("x", now=value), ("y", math.nan, 1e12, [])),
    "handles": (lambda pool, value: pool.forget_pages(value), ("page:aaaaaaaaaaaaaaaa", [5], None, {"a"})),
    "price profile": (lambda pool, value: pool.plan(NAME, prices=value), ("x", None, 5, [], {})),
    "resident_tokens": (
        lambda pool, value: pool.plan(NAME, resident_tokens=value),
        (-5, "x", 1.5, True, None, math.nan, 10**13),
    ),
}


@pytest.mark.parametrize(
    ("argument", "value"), [(name, value) for name, (_, values) in CALLS.items() for value in values], ids=repr
)
def test_what_is_no_such_argument_is_told_with_its_name(pool: AgentPool, argument: str, value: object) -> None:
    refused(lambda: CALLS[argument][0](pool, value), argument)


@pytest.mark.parametrize("value", [None, 5, {}, "s"])
def test_what_is_no_session_is_not_taken_in(pool: AgentPool, value: Any) -> None:
    refused(lambda: pool.import_session(value), "session", "pass what read_sessions gives")
    refused(lambda: pool.import_session(AgentSession("s", "x", [value])), "no tuple of AgentMessage")  # type: ignore[arg-type]


def test_pieces_may_be_lists_and_go_on_to_the_end(pool: AgentPool) -> None:
    whole = pool.expand("p1").text
    assert pool.expand("p1", lines=[1, None]).text == whole  # type: ignore[arg-type]
    assert pool.expand("p1", characters=(0, None)).text == whole


# -- names that are the pool's own --------------------------------------------------------------


@pytest.mark.parametrize("name", ["cgk:goals", "cgk:forgotten", "cgk:cards x", "cgk:"])
def test_a_log_that_is_called_like_the_pools_own_sessions_has_one_of_its_own(pool: AgentPool, name: str) -> None:
    goal = pool.set_goal("reach the moon")
    taken = pool.import_session(session(said("my talk"), name=name))
    assert not taken.session.startswith("cgk:")
    assert [block.text for block in blocks_of(pool.session(taken.session))] == ["my talk"]
    assert pool.import_session(session(said("my talk"), said("more"), name=name)).session == taken.session
    pool.forget_session(taken.session)
    assert pool.goals() == (goal,)


# -- a store that fails -------------------------------------------------------------------------


class Full(MemoryStore):
    """A store whose disk is full."""

    def append(self, *_: object, **__: object) -> tuple[Page, ...]:
        raise StoreError("store", "the disk is full", "free space; nothing was stored")


def test_of_a_session_of_which_nothing_was_stored_nothing_is_there() -> None:
    pool = AgentPool(Full())
    with pytest.raises(StoreError, match="nothing was stored"):
        pool.import_session(FIXING)
    assert pool.sessions() == ()
    assert pool.stats().sessions == 0


def test_the_advice_for_a_goal_is_one_for_goals(pool: AgentPool) -> None:
    with pytest.raises(BudgetError, match="say it in fewer words"):
        pool.set_goal("word " * 9000)
    pool.import_session(session(said("line\n" * 30_000), name="long"))
    with pytest.raises(BudgetError, match="pin some lines of it"):
        pool.pin("p0", session="long")
    with pytest.raises(ConfigError, match="there is no such goal"):
        pool.finish_goal("g9")
