"""Changes of a text by places."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.wire.records import Span
from context_gatekeeper.wire.splicing import Splice, apply_splices, edit_elements, write_text


@given(st.text(st.characters(exclude_categories=())))
def test_a_text_is_written_as_a_literal_that_utf_8_can_hold(text: str) -> None:
    written = write_text(text)
    assert json.loads(written.encode().decode()) == json.loads(json.dumps(text))


def test_characters_stay_and_halves_of_them_are_escaped() -> None:
    assert write_text('é\U0001f600"\n\ud83d') == '"é\U0001f600\\"\\n\\ud83d"'


def test_splices_are_made_by_place_and_insertions_come_before_what_is_replaced() -> None:
    splices = [Splice(4, 5, "E"), Splice(1, 3, ""), Splice(1, 1, "x"), Splice(1, 1, "y"), Splice(5, 5, "!")]
    assert apply_splices("abcde", splices) == "axydE!"
    assert apply_splices("abcde", []) == "abcde"


SOURCE = "[ 0 , 1,2 ,\n3 ]"
SPANS = [Span(place, place + 1) for place in (2, 6, 8, 12)]


@given(
    st.sets(st.integers(0, 3)), st.dictionaries(st.integers(0, 3), st.lists(st.sampled_from(["7", "8"]), max_size=2))
)
def test_elements_leave_and_come_with_their_commas(leaving: set[int], inserted: dict[int, list[str]]) -> None:
    changed = apply_splices(SOURCE, edit_elements(SPANS, leaving, inserted))
    expected = []
    for number in range(4):
        expected += [] if number in leaving else [number]
        expected += [int(one) for one in inserted.get(number, ())]
    assert json.loads(changed) == expected


@pytest.mark.parametrize(
    ("leaving", "changed"),
    [
        (set[int](), SOURCE),
        ({0}, "[ 1,2 ,\n3 ]"),
        ({0, 1}, "[ 2 ,\n3 ]"),
        ({1}, "[ 0,2 ,\n3 ]"),
        ({3}, "[ 0 , 1,2 ]"),
        ({0, 1, 2, 3}, "[  ]"),
    ],
)
def test_what_stays_keeps_the_comma_and_the_spaces_in_front_of_it(leaving: set[int], changed: str) -> None:
    assert apply_splices(SOURCE, edit_elements(SPANS, leaving, {})) == changed
