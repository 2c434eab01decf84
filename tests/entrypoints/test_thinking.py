"""Telling thinking from the answer."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.entrypoints.thinking import ThinkSplitter


def split(pieces: list[str]) -> tuple[str, str]:
    """(thinking, answer)."""
    splitter = ThinkSplitter()
    parts = [part for piece in pieces for part in splitter.feed(piece)]
    parts += splitter.close()
    thinking = "".join(part.text for part in parts if part.is_thinking)
    return thinking, "".join(part.text for part in parts if not part.is_thinking)


CASES = [
    ("<think>\nfirst\n</think>\n\nThe answer.", ("\nfirst\n", "The answer.")),
    ("  \n<think>a</think>\n<think>b</think> answer", ("ab", "answer")),
    ("No thinking here.", ("", "No thinking here.")),
    ("The mark <think>x</think> in a text stays.", ("", "The mark <think>x</think> in a text stays.")),
    ("<think>a < b </th ink></think>done</think>", ("a < b </th ink>", "done</think>")),
    ("<think>never closed", ("never closed", "")),
    ("<think>cut in the mark</t", ("cut in the mark</t", "")),
    ("<thinking is hard", ("", "<thinking is hard")),
    ("<th", ("", "<th")),
    ("<think></think>", ("", "")),
    ("", ("", "")),
    (" \n ", ("", "")),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_leading_marks_are_thinking_and_everything_else_is_answer(text: str, expected: tuple[str, str]) -> None:
    assert split([text]) == expected
    assert split(list(text)) == expected


@given(st.sampled_from(CASES), st.lists(st.integers(0, 60), max_size=12))
def test_any_cut_gives_the_same_parts(case: tuple[str, tuple[str, str]], cuts: list[int]) -> None:
    text, expected = case
    borders = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    assert split([text[start:end] for start, end in itertools.pairwise(borders)]) == expected


def test_an_answer_is_given_out_as_soon_as_it_is_certain() -> None:
    splitter = ThinkSplitter()
    assert [part.text for part in splitter.feed("Hello")] == ["Hello"]
    assert [part.text for part in splitter.feed(" <think")] == [" <think"]
