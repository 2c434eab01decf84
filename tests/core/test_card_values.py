"""Values that a message names."""

from __future__ import annotations

import pytest
from hypothesis import given

from context_gatekeeper.core.card_prose import read_prose
from context_gatekeeper.core.card_values import find_values
from tests.core.texts import ANY_TEXT


def values(text: str) -> list[str]:
    return [text[start:end] for start, end, _ in find_values(read_prose(text, by_user=True))]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("We run Python 3.11.7 here.", "We run Python 3.11.7"),
        ("端口 8080 已占用", "端口 8080"),
        ("set port to 5433", "set port to 5433"),
        ("It listens on localhost:8080, see", "It listens on localhost:8080"),
        ("see https://example.org/a?b=1.", "see https://example.org/a?b=1"),
        ("fixed in commit 1a2b3c4d", "fixed in commit 1a2b3c4d"),
        ("PR #158 is open", "PR #158"),
        ("the accent is #8abeb7", "the accent is #8abeb7"),
        ("ticket ENT-207", "ticket ENT-207"),
        ("id 0b8567ca-44a7-4b8b-8d4b-c4798da64eb6", "id 0b8567ca-44a7-4b8b-8d4b-c4798da64eb6"),
        ("timeout: 30s", "timeout: 30s"),
        ("超时改成 120 秒", "超时改成 120 秒"),
        ("at most 16000 characters", "at most 16000 characters"),
    ],
)
def test_values_are_quoted_with_the_words_before_them(text: str, value: str) -> None:
    assert values(text) == [value]


@pytest.mark.parametrize(
    "text", ["no numbers here", "step 3 of the plan", "file a1.py", "```\nport 80\n```", "1.", "abcdefg"]
)
def test_bare_numbers_names_and_code_are_no_values(text: str) -> None:
    assert values(text) == []


def test_a_secret_is_never_a_value() -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert values(f"use https://ann:Secr3tPass99@db.example.org/x and {token} and port 80") == ["and port 80"]


def test_the_same_value_is_the_same_in_any_case() -> None:
    found = find_values(read_prose("V1.2.3 is v1.2.3", by_user=True))
    assert {value for _, _, value in found} == {"v1.2.3"}


def test_a_table_of_numbers_tells_its_first_sixty() -> None:
    assert len(values(". ".join(f"row {n}.5.1" for n in range(500)))) == 60


@given(ANY_TEXT)
def test_values_stand_where_they_say(text: str) -> None:
    for start, end, value in find_values(read_prose(text, by_user=True)):
        assert text[start:end].lower().endswith(value)
