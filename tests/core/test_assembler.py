"""The prompt as one text and as chat messages."""

from __future__ import annotations

from typing import Any

import pytest

from context_gatekeeper.core.assembler import lay_out_block, lay_out_messages, lay_out_prompt

CONSTRAINTS = {"language": "English", "style": "brief"}
BLOCKS: list[dict[str, Any]] = [
    {"turn_id": 2, "user": "How long does the lock last?", "assistant": "Thirty seconds."},
    {"turn_id": 11, "user": "And then?", "assistant": "It expires.\nThe next worker takes it."},
]


def block(turn_id: int, user: str, assistant: str) -> dict[str, Any]:
    return {"turn_id": turn_id, "user": user, "assistant": assistant}


def test_a_block_names_its_turn_and_its_sides() -> None:
    assert lay_out_block(7, "Why?", "Because.") == "[turn 7]\nuser: Why?\nassistant: Because.\n\n"


@pytest.mark.parametrize(
    ("user", "assistant", "text"),
    [
        ("Why?", "", "[turn 0]\nuser: Why?\n\n"),
        ("", "Because.", "[turn 0]\nassistant: Because.\n\n"),
        (" \n\t", "Because.", "[turn 0]\nassistant: Because.\n\n"),
        ("\u3000", " ", "[turn 0]\n\n"),
    ],
    ids=["no assistant", "no user", "blank user", "both blank"],
)
def test_a_side_without_text_is_left_out_of_its_block(user: str, assistant: str, text: str) -> None:
    assert lay_out_block(0, user, assistant) == text


def test_the_prompt_is_constraints_then_blocks_then_query() -> None:
    assert lay_out_prompt(CONSTRAINTS, BLOCKS, "Who takes it?") == (
        "[constraints]\nlanguage: English\nstyle: brief\n\n"
        "[turn 2]\nuser: How long does the lock last?\nassistant: Thirty seconds.\n\n"
        "[turn 11]\nuser: And then?\nassistant: It expires.\nThe next worker takes it.\n\n"
        "user: Who takes it?"
    )


def test_without_constraints_and_blocks_the_prompt_is_the_query() -> None:
    assert lay_out_prompt({}, [], "Hello") == "user: Hello"


def test_an_empty_query_keeps_its_place() -> None:
    assert lay_out_prompt({"style": "brief"}, [], "") == "[constraints]\nstyle: brief\n\nuser: "


def test_the_prompts_blocks_are_laid_out_as_single_ones_are() -> None:
    # Costs are counted block by block, so that the whole must be the sum of its parts.
    parts = "".join(lay_out_block(one["turn_id"], one["user"], one["assistant"]) for one in BLOCKS)
    assert lay_out_prompt({}, BLOCKS, "q") == parts + "user: q"


def test_messages_are_one_system_message_then_the_turns_then_the_query() -> None:
    assert lay_out_messages(CONSTRAINTS, BLOCKS, "Who takes it?") == [
        {"role": "system", "content": "language: English\nstyle: brief"},
        {"role": "user", "content": "How long does the lock last?"},
        {"role": "assistant", "content": "Thirty seconds."},
        {"role": "user", "content": "And then?"},
        {"role": "assistant", "content": "It expires.\nThe next worker takes it."},
        {"role": "user", "content": "Who takes it?"},
    ]


def test_without_constraints_there_is_no_system_message() -> None:
    assert lay_out_messages({}, [], "Hello") == [{"role": "user", "content": "Hello"}]


def test_a_turn_without_a_side_gets_no_message_for_it() -> None:
    blocks = [block(0, "", "Welcome."), block(1, "Thanks", " \n"), block(2, " ", "")]
    assert lay_out_messages({}, blocks, "Next?") == [
        {"role": "assistant", "content": "Welcome."},
        {"role": "user", "content": "Thanks"},
        {"role": "user", "content": "Next?"},
    ]


@pytest.mark.parametrize(
    "text", ["🇩🇪👨\u200d👩\u200d👧", "\ud83d half", "a\x00b", "锁的过期时间", "{curly} %s"], ids=ascii
)
def test_texts_stand_in_both_forms_as_they_were_said(text: str) -> None:
    blocks = [block(0, text, text)]
    assert lay_out_prompt({}, blocks, text) == f"[turn 0]\nuser: {text}\nassistant: {text}\n\nuser: {text}"
    assert [message["content"] for message in lay_out_messages({}, blocks, text)] == [text] * 3
