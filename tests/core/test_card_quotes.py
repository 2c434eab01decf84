"""Slices that may stand on a card."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.card_quotes import quote_span
from tests.core.texts import ANY_TEXT

KEY = "sk-" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z"


def quoted(text: str, limit: int = 40, mark: int | None = None, *, is_escaped: bool = False) -> str | None:
    span = quote_span(text, 0, len(text), limit, mark, is_escaped=is_escaped)
    return None if span is None else text[span[0] : span[1]]


def test_a_short_slice_is_quoted_without_the_white_space_around_it() -> None:
    assert quote_span("  use SQLite \n", 0, 14, 40) == (2, 12, False)


@pytest.mark.parametrize("text", ["", "   ", "x"])
def test_nothing_worth_quoting_is_not_quoted(text: str) -> None:
    assert quoted(text) is None


def test_of_a_long_slice_the_clauses_around_the_mark_stay() -> None:
    text = "when the day is long, and the night too, we must never push, because it hurts, and so on"
    assert quoted(text, 40, text.index("must")) == "we must never push, because it hurts,"
    text = "x" * 80 + ", one two three four, we must stop"
    assert quoted(text, 60, text.index("must")) == "we must stop"
    assert quoted("天气很好，今天出门，不要改测试，因为会坏，然后回来，再说", 12, 10) == "不要改测试，因为会坏，"


def test_without_a_clause_the_slice_begins_at_its_mark_and_ends_between_graphemes() -> None:
    assert quoted("a" * 90 + "b" * 90, 40, 90) == "b" * 40
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert quoted(family * 10, 12) == family * 2


def test_a_slice_ends_before_a_secret() -> None:
    assert quoted(f'curl -H "X-Key: {KEY}" host', 200) == 'curl -H "X-Key:'
    assert quoted(KEY) is None
    text = f"token {KEY} and more"
    assert quote_span(text, 20, len(text), 100) is None


def test_a_secret_elsewhere_changes_nothing() -> None:
    text = f"{KEY} then use SQLite"
    assert quote_span(text, text.index("use"), len(text), 100) == (text.index("use"), len(text), False)


def test_no_escape_is_torn() -> None:
    raw = json.dumps('ab\\cd"ef\u4f60gh')[1:-1]
    for limit in range(3, len(raw)):
        piece = quoted(raw, limit, is_escaped=True)
        assert piece is not None
        json.loads(f'"{piece}"')


@given(ANY_TEXT, st.integers(2, 30), st.integers(0, 60))
def test_a_quote_is_a_slice_within_the_limit(text: str, limit: int, mark: int) -> None:
    span = quote_span(text, 0, len(text), limit, mark)
    if span is not None:
        start, end, is_cut = span
        assert 0 <= start < end <= len(text)
        assert end - start <= limit
        assert is_cut is (text[start:end] != text.strip()) or start > 0
