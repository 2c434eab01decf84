"""The topic that a query names, the turns that stand under it, and words that name several."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from context_gatekeeper.core.topic_keys import TOPIC_KEY_PARAMS
from context_gatekeeper.engine import named_topic
from context_gatekeeper.engine.named_topic import LabelledTurns, NamedTopic, OwnTurns, find_named_topic, is_minor
from context_gatekeeper.engine.query import read_query
from context_gatekeeper.stores import open_store
from context_gatekeeper.types import TopicMove
from tests.engine.talks import APPLES, NGINX, Talk, crossed_talk, rides, sights


@pytest.fixture(params=["memory", "sqlite"])
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    opened = open_store(None if request.param == "memory" else tmp_path / "pool.sqlite")
    yield Talk(opened)
    opened.close()


def name_in(talk: Talk, query: str) -> NamedTopic | None:
    return find_named_topic(read_query(query, talk.pool.postings, talk.session.tracker), talk.session.tracker)


def is_crossed(talk: Talk, query: str = "Which rickshaw is for six?") -> bool:
    named = name_in(talk, query)
    assert named is not None
    assert named.root == "rickshaw"
    return named.is_crossed


def test_without_history_no_topic_is_named(talk: Talk) -> None:
    assert name_in(talk, "How do I prune an apple tree?") is None


def test_a_word_that_was_talked_about_names_its_turns(talk: Talk) -> None:
    named = name_in(talk.fill(), "How tall is an apple tree?")
    assert named is not None
    assert (named.root, named.turns, named.is_running) == ("appl", {0, 1, 2}, False)
    assert "appl" in named.terms


def test_a_query_of_other_words_names_nothing(talk: Talk) -> None:
    assert name_in(talk.fill(), "How long does sourdough ferment?") is None


def test_the_running_topics_name_is_told_from_an_older_one(talk: Talk) -> None:
    named = name_in(talk.fill(), "What is nginx?")
    assert named is not None
    assert (named.root, named.is_running) == ("nginx", True)


def test_a_name_that_is_heard_in_passing_of_a_long_message_names_nothing(talk: Talk) -> None:
    talk.fill()
    asides = "kingfisher obsidian trombone lighthouse saffron walrus tamarind bobsled quartz".split()
    short = f"apple {' '.join(asides[:4])}"
    assert name_in(talk, short) is not None
    filler = " ".join(f"{word} {number}" for number, word in enumerate(asides * 12))
    assert name_in(talk, f"{short} {filler}") is None


def test_of_two_names_the_one_of_most_messages_counts(talk: Talk) -> None:
    named = name_in(talk.fill(), "Does nginx serve apple pictures?")
    assert named is not None
    assert named.root == "appl"


def test_a_word_of_a_third_of_the_messages_is_minor(talk: Talk) -> None:
    tracker = talk.session.tracker
    for user in ("kingfisher", "kingfisher heron"):
        talk.session.add_turn(user, user, None, (None, None), known_move=TopicMove.CONTINUE)
    assert not is_minor("heron", "kingfish", tracker)
    talk.session.add_turn("kingfisher", "kingfisher", None, (None, None), known_move=TopicMove.CONTINUE)
    assert is_minor("heron", "kingfish", tracker)
    assert not is_minor("kingfish", "heron", tracker)


# -- turns under a name ------------------------------------------------------------------------


def test_turns_stand_under_the_name_that_was_spoken_before_them_in_their_run(talk: Talk) -> None:
    talk.hear(APPLES, (("And then?", "Wait."), ("Why?", "Frost.")), (*NGINX, ("And then?", "Reload.")))
    tracker = talk.session.tracker
    for query, turns in (("What is an apple?", [0, 1, 2]), ("What is nginx?", [5, 6, 7])):
        named = name_in(talk, query)
        assert named is not None
        labelled = LabelledTurns(tracker, named)
        assert (list(labelled), len(labelled)) == (turns, len(turns))
        assert [turn_id for turn_id in range(8) if turn_id in labelled] == turns
        for no_turn in (-1, 8, "5", None, 5.5):
            assert no_turn not in labelled


def test_own_turns_of_a_run_are_those_that_name_no_other_topic(talk: Talk) -> None:
    talk.hear(APPLES, NGINX)
    talk.hear((*NGINX, ("And then?", "Reload."), APPLES[0]))
    run = range(talk.session.tracker.run_start, talk.session.tracker.turn_count)
    assert list(run) == [5, 6, 7, 8]
    for root, turns in (("nginx", [5, 6, 7]), ("appl", [7, 8]), ("heron", [7])):
        own = OwnTurns(talk.session.tracker, run, root)
        assert (list(own), len(own)) == (turns, len(turns))
        for no_turn in (0, 3, 9, "7", None):
            assert no_turn not in own


# -- names that cross topics -------------------------------------------------------------------


def test_a_word_of_several_towns_that_are_talked_about_elsewhere_is_crossed(talk: Talk) -> None:
    talk.hear(APPLES, *crossed_talk(), NGINX)
    assert is_crossed(talk)
    for query in ("How tall is an apple tree?", "What is nginx?"):
        named = name_in(talk, query)
        assert named is not None
        assert not named.is_crossed


def test_two_words_that_cross_keep_their_names(talk: Talk) -> None:
    """One of them is the topic, and nothing tells which."""
    talk.hear(sights("Granada"), rides("Granada", "Granada", "Granada"), rides("", "", "", ""), NGINX)
    assert not is_crossed(talk)
    town = name_in(talk, "Granada, by the sea?")
    assert town is not None
    assert (town.root, town.is_crossed) == ("granada", False)


def test_a_word_that_stands_wherever_its_topic_does_is_not_crossed(talk: Talk) -> None:
    towns = ("Granada", "Lisbon", "Utrecht")
    talk.hear(*(sights(town) + rides(town, town) for town in towns), NGINX)
    assert not is_crossed(talk)


def test_a_word_of_nothing_else_is_not_crossed(talk: Talk) -> None:
    assert not is_crossed(talk.hear(rides("", "", ""), sights("Granada"), NGINX))


@pytest.mark.parametrize(("elsewhere", "crossed"), [(1, False), (2, True)])
def test_a_topic_is_talked_about_elsewhere_in_two_messages_at_least(talk: Talk, elsewhere: int, crossed: bool) -> None:
    towns = "Granada", "Lisbon", "Utrecht"
    talk.hear(*(sights(town, elsewhere) for town in towns), rides(*towns * 2), NGINX)
    assert elsewhere / (2 + elsewhere) > named_topic.ELSEWHERE_SHARE
    assert is_crossed(talk) is crossed


@pytest.mark.parametrize(("beside", "crossed"), [(4, True), (5, False)])
def test_a_topic_is_talked_about_elsewhere_in_three_tenths_of_its_messages(
    talk: Talk, beside: int, crossed: bool
) -> None:
    towns = "Granada", "Lisbon"
    talk.hear(*(sights(town, 2) for town in towns), rides(*towns * beside), NGINX)
    assert is_crossed(talk) is crossed


@pytest.mark.parametrize(("bare", "crossed"), [(7, True), (8, False)])
def test_a_name_is_crossed_in_three_tenths_of_its_messages(talk: Talk, bare: int, crossed: bool) -> None:
    talk.hear(sights("Granada"), sights("Lisbon"), rides("Granada", "Lisbon", "Granada"), rides(*[""] * bare), NGINX)
    assert is_crossed(talk) is crossed


@pytest.mark.parametrize(("more", "crossed"), [(0, True), (22, True), (23, False)])
def test_only_the_newest_messages_of_a_name_tell_whether_it_is_crossed(talk: Talk, more: int, crossed: bool) -> None:
    towns = "Granada", "Lisbon"
    crossing = rides(*[""] * 25), rides(*towns * 5), rides(*[""] * more)
    talk.hear(*(sights(town, 5) for town in towns), *crossing, NGINX)
    newest = TOPIC_KEY_PARAMS.max_holders - more
    assert (min(10, newest) >= named_topic.CROSSED_SHARE * TOPIC_KEY_PARAMS.max_holders) is crossed
    assert is_crossed(talk) is crossed


@pytest.mark.parametrize(("later", "crossed"), [(22, True), (23, False)])
def test_only_the_newest_messages_of_the_other_topic_tell_whether_it_is_talked_about_elsewhere(
    talk: Talk, later: int, crossed: bool
) -> None:
    """Of the newest 32 messages about Granada ten are no rides, or nine; of all messages more than a third."""
    years = tuple((f"Granada in the year {1500 + 7 * number}?", "As any town.") for number in range(20))
    talk.hear(years, sights("Lisbon"), rides("Lisbon", *["Granada"] * later), NGINX)
    assert is_crossed(talk) is crossed
