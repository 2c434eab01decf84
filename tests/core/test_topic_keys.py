"""Self-found topic names: roots, heads, crossings, inheritance, restoring."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.topic_keys import TopicKeyParams, TopicKeys

MESSAGES = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["redis", "lock", "锁", "缓存", "\ud800"]), max_size=4, unique=True),
        st.sets(st.sampled_from(["redis", "lock", "锁"])),
        st.booleans(),
        st.booleans(),
    ),
    max_size=25,
)


def add(
    keys: TopicKeys,
    turn_id: int,
    text: str,
    *,
    wording: Sequence[str] = (),
    answered: bool = True,
    continues: bool = False,
) -> dict[str, str | None]:
    return keys.add_message(turn_id, text.split(), frozenset(wording), lambda _: answered, continues=continues)


def talk(*texts: str) -> TopicKeys:
    keys = TopicKeys()
    for turn_id, text in enumerate(texts):
        add(keys, turn_id, text)
    return keys


@pytest.mark.parametrize("name", ["redis", "缓存"])
def test_a_term_is_a_root_from_its_second_message_on(name: str) -> None:
    keys = TopicKeys()
    assert add(keys, 0, name) == {}
    assert keys.root(name) is None
    assert add(keys, 1, name) == {name: name}
    assert keys.root(name) == name


def test_nothing_is_known_of_an_unseen_term_or_turn() -> None:
    keys = TopicKeys()
    assert (keys.root("redis"), keys.message_count("redis"), tuple(keys.holders("redis"))) == (None, 0, ())
    assert (keys.head(7), keys.own_roots(7)) == (None, frozenset())


def test_an_empty_message_changes_nothing() -> None:
    keys = talk("redis", "redis")
    assert add(keys, 2, "") == {}
    assert keys.head(2) is None


def test_the_holders_are_the_messages_with_the_term_in_order() -> None:
    keys = talk("redis", "kafka", "redis")
    assert tuple(keys.holders("redis")) == (0, 2)
    assert keys.message_count("redis") == 2


def test_an_unanswered_term_waits_for_its_own_number_of_messages() -> None:
    keys = TopicKeys(TopicKeyParams(min_messages_unanswered=3))
    assert [add(keys, turn_id, "redis", answered=False) for turn_id in range(3)] == [{}, {}, {"redis": "redis"}]


def test_a_term_under_one_stronger_head_belongs_to_its_root() -> None:
    keys = talk("redis", "redis", "redis lock", "redis lock")
    assert keys.root("lock") == "redis"
    assert keys.own_roots(3) == {"redis"}
    assert keys.head(3) == "redis"


def test_a_term_that_no_answer_holds_is_its_own_root_even_under_a_head() -> None:
    keys = TopicKeys()
    for turn_id, text in enumerate(["redis", "redis", "redis lock", "redis lock"]):
        add(keys, turn_id, text, answered=False)
    assert keys.root("lock") == "lock"
    assert keys.own_roots(3) == {"redis", "lock"}
    assert keys.head(3) == "redis"


def test_a_term_that_crosses_two_topics_is_no_key() -> None:
    keys = talk("redis", "redis", "kafka", "kafka", "redis question", "kafka question")
    assert keys.root("question") is None


def test_a_key_loses_its_root_when_it_begins_to_cross_topics() -> None:
    keys = talk("redis", "redis", "kafka", "kafka", "redis lock", "redis lock")
    assert keys.root("lock") == "redis"
    assert add(keys, 6, "kafka lock") == {"lock": None}
    assert keys.root("lock") is None


def test_a_term_outgrows_a_root_that_heads_less_than_half_of_its_messages() -> None:
    keys = talk("redis", "redis", "redis", "redis", "redis lock", "redis lock", "lock", "lock")
    assert keys.root("lock") == "redis"
    assert add(keys, 8, "lock") == {"lock": "lock"}


@pytest.mark.parametrize(("wording_messages", "root"), [(1, None), (0, "redis")])
def test_a_term_that_is_wording_in_half_of_its_messages_is_no_key(wording_messages: int, root: str | None) -> None:
    keys = TopicKeys()
    add(keys, 0, "redis", wording=["redis"][:wording_messages])
    add(keys, 1, "redis")
    assert keys.root("redis") == root


def test_a_term_recovers_when_wording_is_less_than_half() -> None:
    keys = TopicKeys()
    add(keys, 0, "redis", wording=["redis"])
    add(keys, 1, "redis")
    assert add(keys, 2, "redis") == {"redis": "redis"}


def test_a_head_is_inherited_along_continued_turns_and_stops_at_a_switch() -> None:
    keys = talk("redis", "redis")
    add(keys, 2, "other", continues=True)
    add(keys, 3, "thing", continues=False)
    assert (keys.head(2), keys.head(3)) == ("redis", None)
    assert keys.own_roots(2) == frozenset()


def test_a_head_is_inherited_over_eight_turns_at_most() -> None:
    keys = talk("redis", "redis")
    for turn_id in range(2, 10):
        add(keys, turn_id, "", continues=True)
    assert (keys.head(8), keys.head(9)) == ("redis", None)


def test_an_inherited_head_holds_a_young_term_only() -> None:
    keys = talk("redis", "redis", "redis", "redis")
    add(keys, 4, "lock", continues=True)
    add(keys, 5, "redis")
    assert add(keys, 6, "lock", continues=True) == {"lock": "redis"}
    add(keys, 7, "redis")
    assert add(keys, 8, "lock", continues=True) == {"lock": "lock"}


def test_terms_of_a_message_beyond_the_limit_are_not_looked_at() -> None:
    keys = TopicKeys(TopicKeyParams(max_terms=2))
    add(keys, 0, "one two three")
    assert set(add(keys, 1, "one two three")) == {"one", "two"}
    assert keys.message_count("three") == 0


def test_only_the_newest_messages_of_a_term_are_looked_at() -> None:
    keys = TopicKeys(TopicKeyParams(max_holders=2))
    for turn_id, text in enumerate(["redis"] * 4 + ["redis lock"] * 2 + ["lock"] * 2):
        add(keys, turn_id, text)
    assert keys.root("lock") == "lock"


def test_restoring_a_message_takes_over_and_takes_back_its_roots() -> None:
    keys = TopicKeys()
    keys.restore_message(0, ["redis"], frozenset(), {"redis": "redis"}, continues=False)
    assert (keys.root("redis"), keys.head(0), keys.message_count("redis")) == ("redis", "redis", 1)
    keys.restore_message(1, ["redis"], frozenset(), {"redis": None, "unseen": None}, continues=True)
    assert (keys.root("redis"), keys.head(1)) == (None, None)


@given(MESSAGES)
def test_restored_keys_are_those_that_were_added(messages: list[tuple[list[str], set[str], bool, bool]]) -> None:
    added, restored = TopicKeys(), TopicKeys()
    for turn_id, (terms, wording, answered, continues) in enumerate(messages):
        changed = added.add_message(
            turn_id, terms, frozenset(wording), lambda _, is_answered=answered: is_answered, continues=continues
        )
        restored.restore_message(turn_id, terms, frozenset(wording), changed, continues=continues)
    assert restored == added
    for turn_id in range(len(messages)):
        assert added.own_roots(turn_id) <= {"redis", "lock", "锁", "缓存", "\ud800"}
        assert restored.head(turn_id) == added.head(turn_id)
