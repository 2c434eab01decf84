"""What callers may pass to the library's object, and what they hear when it is something else."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper import ContextGatekeeper, extract_anchors
from context_gatekeeper.arguments import MOST_BUDGET_TOKENS, seconds_of
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.stores import MemoryStore
from tests.stores.processes import finish, start

NO_TEXTS = (None, 5, b"x", ["x"], math.nan)
HUGE = (10**400, 10**5000, -(10**5000))
EARLY, LATE = timezone(timedelta(hours=14)), timezone(-timedelta(hours=12))


def refused(call: Callable[[], object], *parts: str) -> None:
    """The call must raise a ConfigError, a ValueError too, of three parts, short, that names ``parts``."""
    with pytest.raises(ConfigError) as refusal:
        call()
    error = refusal.value
    assert isinstance(error, ValueError)
    assert error.thing
    assert error.cause
    assert error.next_step
    assert len(str(error)) < 300
    for part in parts:
        assert part in str(error)


@pytest.mark.parametrize(
    "budget", [0, -1, True, False, 1.0, 4000.5, math.nan, "4000", None, [], MOST_BUDGET_TOKENS + 1, *HUGE], ids=type
)
def test_a_budget_that_is_no_number_of_tokens_is_refused(budget: Any) -> None:
    refused(lambda: ContextGatekeeper(budget), "token_budget", "pass")
    gatekeeper = ContextGatekeeper(50)
    refused(lambda: setattr(gatekeeper, "token_budget", budget), "token_budget")
    assert gatekeeper.token_budget == 50


def test_the_largest_budget_can_be_planned_with() -> None:
    gatekeeper = ContextGatekeeper(MOST_BUDGET_TOKENS)
    gatekeeper.add_turn("How long should a Redis lock live?", "Three times the length of the job.")
    assert [block["turn_id"] for block in gatekeeper.select("Redis lock")] == [0]


@pytest.mark.parametrize("profile", ["fuzzy", "", None, 5, [], {}, b"strict"], ids=repr)
def test_an_unknown_profile_is_refused(profile: Any) -> None:
    refused(lambda: ContextGatekeeper(profile=profile), "profile", "strict, recall")


@pytest.mark.parametrize("store", [5, 1.5, True, b"x.db", [], object(), MemoryStore], ids=repr)
def test_a_store_that_is_none_is_refused_at_once(store: Any) -> None:
    refused(lambda: ContextGatekeeper(store=store), "store", "pass a path")


@pytest.mark.parametrize("path", ["", "\0", "a\0b.db", "\ud800.db", "folder\udfff/x.db"], ids=ascii)
def test_a_path_that_no_file_can_have_is_refused(tmp_path: Path, path: str) -> None:
    refused(lambda: ContextGatekeeper(store=f"{tmp_path}/{path}" if path else path), "store", "file")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "  ", "\0", "a\0", "x" * 513, 5, b"x", True, []], ids=repr)
@pytest.mark.parametrize("what", ["session", "pool"])
def test_a_name_that_cannot_be_one_is_refused_before_a_file_is_made(tmp_path: Path, what: str, name: Any) -> None:
    path = tmp_path / "talk.db"
    refused(lambda: ContextGatekeeper(store=path, **{what: name}), f"{what} name")
    assert not path.exists()


@pytest.mark.parametrize(
    "name", ["../../x", "a\nb", "\u202eabc", "\ud800", "'; DROP TABLE pages;--", "x" * 512], ids=ascii
)
def test_odd_names_are_names(tmp_path: Path, name: str) -> None:
    for _ in range(2):
        with ContextGatekeeper(store=tmp_path / "talk.db", session=name) as gatekeeper:
            gatekeeper.add_turn("asked", "answered")
            assert gatekeeper.session == name
    assert gatekeeper.session == name
    with ContextGatekeeper(store=tmp_path / "talk.db", session=name) as gatekeeper:
        assert gatekeeper.turn_count == 2


@pytest.mark.parametrize("text", NO_TEXTS, ids=repr)
def test_what_is_no_text_is_refused_everywhere_and_stores_nothing(text: Any) -> None:
    gatekeeper = ContextGatekeeper()
    for call in (
        lambda: gatekeeper.add_turn(text, "answer"),
        lambda: gatekeeper.add_turn("question", text),
        lambda: gatekeeper.select(text),
        lambda: gatekeeper.explain(text),
        lambda: gatekeeper.recall(text),
        lambda: gatekeeper.build_prompt(text),
        lambda: gatekeeper.build_messages(text),
        lambda: gatekeeper.count_tokens(text),
        lambda: gatekeeper.set_constraint(text, "value"),
        lambda: gatekeeper.set_constraint("key", text),
        lambda: gatekeeper.remove_constraint(text),
        lambda: extract_anchors(text),
    ):
        refused(call, type(text).__name__, "pass a str")
    assert (gatekeeper.turn_count, gatekeeper.get_constraints()) == (0, {})


@pytest.mark.parametrize("limit", [0, -1, 100_001, True, 1.5, math.nan, None, "5", *HUGE], ids=type)
def test_a_limit_that_is_no_number_of_pages_is_refused(limit: Any) -> None:
    refused(lambda: ContextGatekeeper().recall("lock", limit=limit), "limit")


@pytest.mark.parametrize(
    "time",
    [
        *(math.nan, math.inf, -math.inf, 1e11, 1.7e12, -6.3e10, -1e11, True, "2024-01-01", b"x", [], *HUGE),
        *(datetime(1, 1, 1), datetime(9999, 12, 31)),  # noqa: DTZ001 - naive times are allowed
        *(datetime(9999, 12, 31, tzinfo=UTC), datetime(1, 1, 1, tzinfo=EARLY)),
    ],
    ids=lambda time: type(time).__name__,
)
@pytest.mark.parametrize("profile", ["strict", "recall"])
def test_a_time_that_is_none_is_refused_and_stores_nothing(profile: str, time: Any) -> None:
    gatekeeper = ContextGatekeeper(profile=profile)
    for call in (
        lambda: gatekeeper.add_turn("asked", "answered", time=time),
        lambda: gatekeeper.select("asked", time=time),
        lambda: gatekeeper.recall("asked", time=time),
    ):
        refused(call, "time", "years 5 to 5138")
    assert gatekeeper.turn_count == 0


@pytest.mark.parametrize(
    "time", [0, -0.0, -6.2e10, 9.99e10, 1e-300, datetime(5, 6, 1, tzinfo=UTC), datetime(5000, 1, 1, tzinfo=LATE)]
)
@pytest.mark.parametrize("profile", ["strict", "recall"])
def test_every_time_in_range_can_be_stored_and_asked_about(profile: str, time: Any) -> None:
    gatekeeper = ContextGatekeeper(profile=profile)
    gatekeeper.add_turn("What did Ann say about the lock in May?", "That it expires.", time=time)
    assert gatekeeper.select("What did Ann say about the lock in May?", time=time)
    assert gatekeeper.recall("lock in May", time=time)


def test_a_naive_datetime_is_utc() -> None:
    moment = datetime(2024, 5, 6, 7, 8)  # noqa: DTZ001
    assert seconds_of(moment) == seconds_of(moment.replace(tzinfo=UTC)) == 1_714_979_280.0
    assert seconds_of(None) is None


@pytest.mark.parametrize(
    "speakers",
    [None, (), ("Ann",), ("Ann", "Ben", "Cy"), (1, 2), "ab", (b"a", None), 5, {"a": 1, "b": 2}, ("Ann\nBen", None)],
    ids=repr,
)
def test_speakers_that_are_no_two_names_are_refused_and_store_nothing(speakers: Any) -> None:
    gatekeeper = ContextGatekeeper()
    refused(lambda: gatekeeper.add_turn("asked", "answered", speakers=speakers), "speakers")
    assert gatekeeper.turn_count == 0


@pytest.mark.parametrize(
    "speakers", [("Ann", None), ["Ann", "Ben"], ("", ""), ("\ud800", "\0"), ("安" * 9999, None)], ids=type
)
def test_any_two_names_are_speakers(speakers: Any) -> None:
    assert ContextGatekeeper(profile="recall").add_turn("asked", "answered", speakers=speakers) == 0


@pytest.mark.parametrize("turn_id", [-1, True, 0.0, "0", [], *HUGE], ids=type)
def test_a_turn_id_that_is_none_is_refused_and_stores_nothing(turn_id: Any) -> None:
    gatekeeper = ContextGatekeeper()
    refused(lambda: gatekeeper.add_turn("asked", "answered", turn_id=turn_id), "turn_id")
    refused(lambda: gatekeeper.add_turn("asked", "answered", turn_id=1), "turn 1", "the next turn is 0")
    assert gatekeeper.turn_count == 0
    assert gatekeeper.add_turn("asked", "answered", turn_id=0) == 0


@pytest.mark.parametrize("counter", ["fuzzy", "", 5, None, [], b"fitted"], ids=repr)
def test_an_unknown_counter_is_refused(counter: Any) -> None:
    refused(lambda: ContextGatekeeper(token_counter=counter), "token_counter", "'fitted'")


@pytest.mark.parametrize("answer", [-1, None, 1.5, "3", math.nan, *HUGE], ids=type)
def test_a_counter_that_gives_no_number_of_tokens_is_named_and_nothing_is_stored(answer: Any) -> None:
    gatekeeper = ContextGatekeeper(token_counter=lambda _: answer)
    for call in (
        lambda: gatekeeper.add_turn("asked", "answered"),
        lambda: gatekeeper.select("asked"),
        lambda: gatekeeper.count_tokens("asked"),
    ):
        refused(call, "token_counter", "return a whole number")
    assert gatekeeper.turn_count == 0


def test_a_counter_that_raises_is_heard_as_it_is_and_nothing_is_stored() -> None:
    def count(text: str) -> int:
        raise ZeroDivisionError(text)

    gatekeeper = ContextGatekeeper(token_counter=count)
    with pytest.raises(ZeroDivisionError, match="asked"):
        gatekeeper.add_turn("asked", "answered")
    assert gatekeeper.turn_count == 0


# -- who may use one object, one file -----------------------------------------------------------------


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system cannot fork")
def test_a_child_forked_while_a_thread_was_inside_is_not_held_up() -> None:
    assert finish(start("fork_beside_a_thread.py")) == "child added turn 1\nparent added turn 1\n"
