"""Regular expressions from outside: what is refused, what is known of the others."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_gatekeeper.core.bounded_pattern import MOST_PATTERN_CHARS, compile_bounded
from context_gatekeeper.errors import ConfigError


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b", "(a*)*", "(a|a)*b", "(a|ab)+c", "((a?){2}){30}", "(x+x+)+y", "([a-z]+)*", "(?:a{1,20}){1,20}",
        "(?=a)b", "(?<!a)b", "(?i)a", "(?>a+)b", r"(a)\1", "(?P<n>a)(?P=n)",
    ],
)  # fmt: skip
def test_what_could_hang_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"it (repeats a group|looks around|refers back)"):
        compile_bounded(pattern)


@pytest.mark.parametrize("pattern", ["", "a" * (MOST_PATTERN_CHARS + 1)])
def test_a_pattern_has_one_to_two_hundred_characters(pattern: str) -> None:
    with pytest.raises(ConfigError, match="characters; give it 1 to 200"):
        compile_bounded(pattern)


@pytest.mark.parametrize("pattern", ["(", "a)", "[a", "*a", "a{3", "\\", "a{2}{3}", "[b-a]", "(?P<1>a)", "a**"])
def test_what_is_no_pattern_is_refused_or_means_itself(pattern: str) -> None:
    try:
        expected: re.Pattern[str] | None = re.compile(pattern)
    except re.error:
        expected = None
    if expected is None:
        with pytest.raises(ConfigError, match=r"it is no regular expression|it looks around|repeats"):
            compile_bounded(pattern)
    else:
        assert compile_bounded(pattern).compiled == expected


@pytest.mark.parametrize("pattern", ["[[a]", "[a--b]", "[a||b]", "[a&&b]", "[a~~b]"])
def test_sets_inside_sets_are_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="a set inside a set"):
        compile_bounded(pattern)


def test_escaped_brackets_are_characters() -> None:
    assert compile_bounded(r"[\[\]a]\(").compiled.search("x](") is not None


@pytest.mark.parametrize(
    ("pattern", "needed", "choices", "repeats"),
    [
        ("error", ("error",), 1, 0),
        ("error.*boom", ("error", "boom"), 1, 1),
        (r"^\w+Error: .*\d$", ("Error: ",), 1, 2),
        ("https?://", ("http", "://"), 2, 0),
        ("(one|two) three", (" three",), 2, 0),
        ("a|b", (), 2, 0),
        ("(ab)?c", ("c",), 2, 0),
        ("(ab)*c", ("c",), 1, 1),
        ("(ab){2}c", ("ab", "c"), 1, 0),
        (r"a\.b\d", ("a.b",), 1, 0),
        ("x{2,5}y", ("y",), 4, 0),
        ("x{2,50}y", ("y",), 1, 1),
        ("x{,3}y", ("y",), 4, 0),
        ("x{,}y", ("y",), 1, 1),
        ("x{3}y", ("y",), 1, 0),
        ("x{}y", ("x{}y",), 1, 0),
        ("a*?b+?c", ("c",), 1, 2),
        ("[abc]d", ("d",), 1, 0),
        ("a.b", ("a", "b"), 1, 0),
    ],
)
def test_what_every_match_holds_and_how_it_varies_is_known(
    pattern: str, needed: tuple[str, ...], choices: int, repeats: int
) -> None:
    found = compile_bounded(pattern)
    assert (found.needed, found.choices, found.repeats) == (needed, choices, repeats)


def test_lines_without_what_every_match_holds_are_passed_over() -> None:
    found = compile_bounded("Error.*Boom")
    assert [found.may_match(line) for line in ("Error: Boom", "Error: none", "error: boom")] == [True, False, False]
    loose = compile_bounded("Error.*Boom", ignore_case=True)
    assert [loose.may_match(line) for line in ("ERROR: boom", "error", "\u017f")] == [True, False, True]


def test_the_work_of_a_line_grows_with_repeats_and_falls_with_an_anchor() -> None:
    assert (
        compile_bounded("error").steps(100) < compile_bounded("a.*b").steps(100) < compile_bounded("a.*b.*c").steps(100)
    )
    assert compile_bounded("^a.*b").steps(100) < compile_bounded("a.*b").steps(100)
    assert compile_bounded("^a|b.*c").is_anchored is False
    assert compile_bounded("a.*b").steps(10_000) == compile_bounded("a.*b").steps(10_000_000)


@pytest.mark.parametrize(
    ("pattern", "lengths", "is_too_long"),
    [
        ("error", [10_000] * 1000, False),
        ("a.*b", [1000] * 10, False),
        ("a.*b.*c", [10_000], True),
        ("a?" * 40 + "a" * 40, [40], True),
        ("(a|b)" * 30, [40], True),
        (".*" * 20, [10_000], True),
        ("[a-y]{4000}z", [10_000] * 600, True),
        (".{5000}z", [10_000] * 600, True),
        ("(ab){2500}c", [10_000] * 600, True),
        ("x{5000,}y", [10_000] * 600, True),
        ("[ab]" * 49 + "z", [10_000] * 600, True),
        ("a" * 199 + "b", [10_000] * 600, False),
        ("[a-y]{4000}z", [80] * 2000, False),
        ("[a-z]{8}-[0-9]{4}", [100] * 5000, False),
    ],
)
def test_a_search_that_could_take_more_than_a_second_is_known(
    pattern: str, lengths: list[int], is_too_long: bool
) -> None:
    assert compile_bounded(pattern).is_too_long(lengths) is is_too_long


@pytest.mark.parametrize(
    ("pattern", "length"),
    [
        ("error", 1),
        ("error.*boom", 6),
        ("ab{3}", 4),
        (".{50}z", 51),
        ("(ab){10}", 20),
        ("(ab){10,15}c", 31),
        ("(ab){10,}c", 21),
        ("ab|cd", 4),
    ],
)
def test_a_fixed_repeat_counts_as_often_as_it_repeats(pattern: str, length: int) -> None:
    assert compile_bounded(pattern).length == length
    assert compile_bounded(pattern, ignore_case=True).length >= length


ESCAPED = st.sampled_from(
    [
        *(
            r"\x41",
            r"\x2e",
            r"\u4f60",
            r"\U0001f600",
            r"\N{LATIN SMALL LETTER A}",
            r"\0",
            r"\07",
            r"\141",
            r"\n",
            r"\t",
        ),
        *(r"\d", r"\w", r"\s", r"\b", r"\.", r"\-", r"\\", r"[\x41-\x43]", "b", "1", "bc", "{2}", "?", "+"),
    ]
)


@settings(max_examples=400)
@given(
    st.lists(ESCAPED, min_size=1, max_size=5).map("".join), st.text("Aab1.c\n\t\\-\0\u4f60\U0001f600\x07", max_size=8)
)
def test_an_escape_means_what_the_engine_takes_it_for(pattern: str, line: str) -> None:
    try:
        real = re.search(pattern, line)
    except re.error:
        with pytest.raises(ConfigError):
            compile_bounded(pattern)
        return
    try:
        found = compile_bounded(pattern)
    except ConfigError:
        return  # a repeat of a repeat, which is refused
    assert (found.compiled.search(line) is None) == (real is None)
    assert real is None or found.may_match(line)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"\x41bc", "Abc"),
        (r"\u4f60好", "你好"),
        (r"a\x2eb", "a.b"),
        (r"\141b", "ab"),
        (r"\N{BULLET} x", "• x"),
        (r"\0a", "\0a"),
    ],
)
def test_a_character_by_its_number_or_name_is_found(pattern: str, text: str) -> None:
    assert compile_bounded(pattern).may_match(text)
    assert compile_bounded(pattern).compiled.search(text)


PARTS = st.sampled_from(
    ["a", "b", "ab", ".", "a?", "b*", "[ab]", "(ab)", "(?:a|b)", "(a)?", "a{2}", r"\.", "^", "$", "|", r"\w", "b+?"]
)


@given(st.lists(PARTS, min_size=1, max_size=6).map("".join), st.text("ab.c", max_size=8))
def test_what_is_needed_is_in_every_match(pattern: str, line: str) -> None:
    found = compile_bounded(pattern)
    if re.search(pattern, line):
        assert found.may_match(line)
