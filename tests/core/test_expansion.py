"""Parts of an original, exactly as it stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.expansion import TextSlice, expand_lines, expand_pattern, expand_range
from context_gatekeeper.errors import ConfigError
from tests.core.texts import ANY_TEXT

LOG = "one\r\ntwo\nthree\n\nfive\nsix"


def test_a_range_of_characters_is_cut_out() -> None:
    assert (expand_range(LOG, 0), expand_range(LOG, 2, 6), expand_range(LOG, 5, 5)) == (LOG, "e\r\nt", "")
    assert expand_range(LOG, 4, 10_000) == LOG[4:]


@pytest.mark.parametrize(("start", "end"), [(-1, None), (99, None), (4, 3)])
def test_a_range_outside_the_text_is_refused(start: int, end: int | None) -> None:
    with pytest.raises(ConfigError, match="give"):
        expand_range(LOG, start, end)


def test_lines_come_with_their_breaks() -> None:
    assert expand_lines(LOG, 1, 1) == "one\r\n"
    assert expand_lines(LOG, 2, 4) == "two\nthree\n\n"
    assert expand_lines(LOG, 5) == "five\nsix"
    assert expand_lines(LOG, 6, 99) == "six"
    assert expand_lines("", 1) == ""
    assert expand_lines("a\n", 1, 2) == "a\n"


@pytest.mark.parametrize(("first", "last"), [(0, None), (7, None), (3, 2)])
def test_lines_outside_the_text_are_refused(first: int, last: int | None) -> None:
    with pytest.raises(ConfigError, match="give"):
        expand_lines(LOG, first, last)


@given(ANY_TEXT, st.integers(1, 8))
def test_the_lines_of_a_text_joined_are_the_text(text: str, split: int) -> None:
    count = len(text.removesuffix("\n").split("\n"))
    if split < count:
        assert expand_lines(text, 1, split) + expand_lines(text, split + 1) == text
    assert expand_range(text, 0, split) + expand_range(text, min(split, len(text))) == text


def test_a_pattern_is_shown_with_the_lines_around_it() -> None:
    assert expand_pattern(LOG, "three", context_lines=1) == (TextSlice(2, 4, "two\nthree\n\n"),)
    assert expand_pattern(LOG, "THREE") == ()
    assert expand_pattern(LOG, "THREE", ignore_case=True, context_lines=0) == (TextSlice(3, 3, "three\n"),)


def test_slices_that_meet_are_one() -> None:
    assert expand_pattern(LOG, "e", context_lines=0) == (
        TextSlice(1, 1, "one\r\n"), TextSlice(3, 3, "three\n"), TextSlice(5, 5, "five\n"),
    )  # fmt: skip
    assert expand_pattern(LOG, "e", context_lines=1) == (TextSlice(1, 6, LOG),)


def test_a_plain_text_may_reach_over_lines() -> None:
    assert expand_pattern(LOG, "two\nthr", context_lines=0) == (TextSlice(2, 3, "two\nthree\n"),)
    assert expand_pattern("a\n\n\nb", "\n", context_lines=0) == (TextSlice(1, 3, "a\n\n\n"),)


def test_the_first_matches_are_shown() -> None:
    text = "x\ny\n" * 50
    assert len(expand_pattern(text, "x", context_lines=0, most_matches=3)) == 3


def test_signs_of_regular_expressions_are_plain_unless_asked_for() -> None:
    assert expand_pattern("a.b\naxb", "a.b", context_lines=0) == (TextSlice(1, 1, "a.b\n"),)
    assert expand_pattern("a.b\naxb", "a.b", context_lines=0, regex=True) == (TextSlice(1, 2, "a.b\naxb"),)
    assert expand_pattern("end\r\nnot the end\r\nx", "end$", regex=True, context_lines=0) == (
        TextSlice(1, 2, "end\r\nnot the end\r\n"),
    )


@pytest.mark.parametrize("options", [{"pattern": ""}, {"context_lines": -1}, {"most_matches": 0}])
def test_options_out_of_range_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        expand_pattern(LOG, **{"pattern": "x", **options})  # type: ignore[arg-type]


def test_a_search_that_could_take_long_is_refused_with_the_next_step() -> None:
    with pytest.raises(ConfigError, match="search for plain text"):
        expand_pattern("a" * 9000, "a.*a.*c?", regex=True)
    assert expand_pattern("a" * 9000, "a.*b.*c", regex=True) == ()
    assert expand_pattern("c b a", "a.*b.*c", regex=True) == ()


def test_of_a_very_long_line_the_beginning_is_searched() -> None:
    assert expand_pattern("a" * 20_000 + "b", "b", regex=True) == ()
    assert len(expand_pattern("a" * 20_000 + "b", "b")) == 1


@given(ANY_TEXT, ANY_TEXT.filter(bool), st.integers(0, 3))
def test_every_slice_is_a_part_of_the_text_and_holds_the_pattern(text: str, pattern: str, context: int) -> None:
    found = expand_pattern(text, pattern, context_lines=context)
    assert (pattern in text) is bool(found)
    for part in found:
        assert part.text == expand_lines(text, part.first_line, part.last_line)
        assert pattern in part.text
