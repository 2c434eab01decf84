"""Pruning inside a block, and cutting a block to a number of tokens."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_gatekeeper.core.cuts import CUT_MARK
from context_gatekeeper.core.pruner import PrunedBlock, PruneParams, prune_block, shrink_to_tokens
from context_gatekeeper.core.text import split_sentences
from context_gatekeeper.core.tokens import documented_tokens, estimate_tokens

ANY_TEXT = st.text(st.characters(), max_size=80)
TALK = st.lists(
    st.sampled_from(
        (
            "Redis holds it. ",
            "Nothing here. ",
            "Run this:\n",
            "```sh\nredis-cli\n```\n",
            "为什么？",
            "锁过期了。",
            "Why? ",
            "\n",
        )
    ),
    max_size=12,
).map("".join)
WEIGHTS = {"redis": 3.0, "lock": 2.0, "锁": 2.0, "expiry": 1.0}


def find(sentence: str) -> Collection[str]:
    return [anchor for anchor in WEIGHTS if anchor in sentence.casefold()]


def prune(user: str, assistant: str, weights: Mapping[str, float] = WEIGHTS) -> PrunedBlock:
    pruned = prune_block(user, assistant, weights, find)
    assert pruned is not None
    return pruned


def test_three_units_or_fewer_stay_byte_identical() -> None:
    user, assistant = "  One.  Two?\r\n", "First!\n\n```\na. b\n```\n\n  last \n"
    assert prune(user, assistant) == PrunedBlock(user, assistant, (0, 1), (0, 1, 2))


def test_the_three_best_sentences_stay_in_their_order() -> None:
    answer = "Start. A lock. Nothing. The redis lock. An expiry. Redis here. More. Lock expiry."
    pruned = prune("Why?", answer)
    assert pruned.assistant_kept == (0, 3, 5, 7)
    assert pruned.assistant == "Start.\nThe redis lock.\nRedis here.\nLock expiry."


def test_equal_weights_go_to_the_earlier_sentence() -> None:
    answer = "Start. Lock one. Lock two. Lock three. Lock four. Lock five."
    assert prune("Why?", answer).assistant == "Start. Lock one. Lock two. Lock three."


def test_an_anchor_counts_once_and_an_unknown_one_not_at_all() -> None:
    weights = {"x": 1.0, "y": 1.5}
    pruned = prune_block("", "Start. x x. y. z z z.", weights, list, PruneParams(max_sentences=1))
    assert pruned is not None
    assert pruned.assistant_kept == (0, 2)


def test_neighbours_keep_what_stands_between_them() -> None:
    answer = "Start. Filler. Filler. Redis one.  \nLock two. Filler. Filler."
    assert prune("Why?", answer).assistant == "Start.\nRedis one.  \nLock two."


@pytest.mark.parametrize(
    ("user", "kept"),
    [
        ("Hello there. I use it daily. It breaks. Why does it break? Thanks a lot. Bye.", "Why does it break?"),
        ("你好。我每天都用。它坏了。为什么会坏？谢谢。再见。", "为什么会坏？"),
        ("你好。我每天都用。它会坏吗。谢谢。再见。", "它会坏吗。"),
        ("One. Two. Three. Tell me why.", "Tell me why."),
        ("Hm? One. Is the lock gone? Two. Really? Three.", "Is the lock gone?"),
        ('One. Two. He asked "why?" Three. Four.', 'He asked "why?"'),
    ],
)
def test_the_users_question_stays(user: str, kept: str) -> None:
    assert prune(user, "Because.").user == kept
    assert prune(user, "").user == kept


def test_the_assistants_first_sentence_stays_without_an_anchor() -> None:
    assert prune("Why?", "First. Second. Third. Fourth.").assistant == "First."


CODE = "```sh\nredis-cli get lock\necho. done\n```"


@pytest.mark.parametrize("colon", [":", "："])
def test_code_and_the_line_that_announces_it_stay_together(colon: str) -> None:
    answer = f"Start. Filler.\nRun this{colon}\n{CODE}\nFiller. Filler."
    assert prune("Why?", answer).assistant == f"Start.\nRun this{colon}\n{CODE}"


def test_code_behind_a_chosen_sentence_stays_with_it() -> None:
    answer = "Start. Filler.\nThe lock looks so.\n```\nx = 1\n```\nFiller. Filler."
    assert prune("Why?", answer).assistant == "Start.\nThe lock looks so.\n```\nx = 1\n```"


def test_code_behind_a_sentence_without_anchors_does_not() -> None:
    answer = "Sure.\n```\nx = 1\n```\nFiller. A lock. Filler."
    assert prune("Why?", answer).assistant == "Sure.\nA lock."


def test_code_that_the_first_sentence_announces_stays() -> None:
    answer = "Do:\n```\nx = 1\n```\nFiller. Filler. Filler."
    assert prune("Why?", answer).assistant == "Do:\n```\nx = 1\n```"


def test_a_unit_of_excessive_length_is_cut_to_head_and_tail() -> None:
    code = "```py\n" + "\n".join(f"redis_step_{number}()" for number in range(400)) + "\n```"
    pruned = prune("Why?", f"See:\n{code}")
    assert len(pruned.assistant) < 2100
    assert CUT_MARK in pruned.assistant
    assert pruned.assistant.startswith("See:\n```py\nredis_step_0()")
    assert pruned.assistant.endswith("redis_step_399()\n```")


@pytest.mark.parametrize("blank", ["", "   ", "\n\u3000\n"])
def test_two_blank_sides_leave_nothing(blank: str) -> None:
    assert prune_block(blank, "  ", WEIGHTS, find) is None
    assert prune_block("Why?", blank, WEIGHTS, find) == PrunedBlock("Why?", blank, (0,), ())
    assert prune_block(blank, "So.", WEIGHTS, find) == PrunedBlock(blank, "So.", (), (0,))


@given(st.one_of(ANY_TEXT, TALK), st.one_of(ANY_TEXT, TALK))
def test_what_stays_are_the_units_that_are_named(user: str, assistant: str) -> None:
    pruned = prune_block(user, assistant, WEIGHTS, find)
    if pruned is None:
        assert not user.strip()
        assert not assistant.strip()
        return
    for text, left, kept in (
        (user, pruned.user, pruned.user_kept),
        (assistant, pruned.assistant, pruned.assistant_kept),
    ):
        units = split_sentences(text)
        assert "".join(left.split()) == "".join("".join(units[place] for place in kept).split())
        assert list(kept) == sorted(set(kept))
        assert bool(units) is bool(kept)
        if len(units) <= 3:
            assert left == text
    assert prune_block(user, assistant, WEIGHTS, find) == pruned


def letters(text: str) -> int:
    """A counter that is not monotone: spaces are free."""
    return sum(not char.isspace() for char in text)


@given(st.one_of(ANY_TEXT, TALK), st.one_of(ANY_TEXT, TALK), st.integers(-1, 120))
@example("x" * 80, "```\n" + "y" * 60 + "\n```", 40)
def test_a_shrunk_block_is_within_its_tokens(user: str, assistant: str, limit: int) -> None:
    for count in (estimate_tokens, documented_tokens, len, letters):
        shrunk = shrink_to_tokens(user, assistant, limit, count)
        whole = count(user) + count(assistant)
        if shrunk is None:
            assert whole > limit or not (user.strip() or assistant.strip())
            continue
        assert sum(map(count, shrunk)) <= limit
        if whole <= limit:
            assert shrunk == (user, assistant)


def test_a_block_over_its_budget_keeps_head_and_tail_of_both_sides() -> None:
    user = "Please look at this. " + "word " * 3000 + "Why is it slow?"
    assistant = "It is slow because. " + "锁" * 5000 + " That is all."
    shrunk = shrink_to_tokens(user, assistant, 200, estimate_tokens)
    assert shrunk is not None
    for side, head, tail in ((shrunk[0], "Please look", "Why is it slow?"), (shrunk[1], "It is slow", "That is all.")):
        assert side.startswith(head)
        assert side.endswith(tail)
        assert CUT_MARK in side
    assert 160 <= sum(map(estimate_tokens, shrunk)) <= 200


def test_a_short_side_leaves_its_share_to_the_other() -> None:
    shrunk = shrink_to_tokens("Why?", "word " * 1000, 100, len)
    assert shrunk is not None
    assert shrunk[0] == "Why?"
    assert 90 < len(shrunk[1]) <= 96
