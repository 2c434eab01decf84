"""A message as its writer's own sentences."""

from __future__ import annotations

import pytest
from hypothesis import given

from context_gatekeeper.core.card_prose import Prose, is_hypothetical, is_question, read_prose, says_enough
from tests.core.texts import ANY_TEXT, MARKDOWN


def sentences(text: str, *, by_user: bool = True) -> list[str]:
    prose = read_prose(text, by_user=by_user)
    return [text[start:end] for start, end in prose.spans]


def words(prose: Prose) -> str:
    return " ".join(prose.quiet.split())


def test_code_and_quoted_lines_are_nobody_s_words() -> None:
    text = "Use this:\n```py\nwe decided = True\n```\n> he said: never\nThanks."
    assert sentences(text) == ["Use this:", "Thanks."]


def test_what_stands_in_quotation_marks_is_quiet_but_stays_in_the_sentence() -> None:
    text = "He said “never” and `always` and \"must\" and 'do not', 「不要」 too; it's mine."
    prose = read_prose(text, by_user=True)
    assert [text[start:end] for start, end in prose.spans] == [text]
    assert words(prose) == "He said and and and , too; it's mine."


def test_an_apostrophe_opens_no_quotation() -> None:
    assert words(read_prose("don’t use the user's and the team's key", by_user=True)) == (
        "don't use the user's and the team's key"
    )


def test_the_program_s_own_words_around_a_message_are_blank() -> None:
    text = (
        "<command-name>/go</command-name><command-args>keep it small</command-args>\n"
        "<system-reminder>never do x</system-reminder>\nrename it <system-reminder>cut"
    )
    prose = read_prose(text, by_user=True)
    assert words(prose) == "keep it small rename it cut"


def test_tags_inside_a_tag_end_with_it() -> None:
    text = "<system-reminder>a <task-notification> b</system-reminder> mine <system-reminder>x <system-reminder>y"
    assert words(read_prose(text, by_user=True)) == "mine x <system-reminder>y"


@pytest.mark.parametrize(
    "line",
    [
        "[Request interrupted by user]",
        "[image omitted]",
        "Operation stopped by hook: never mind",
    ],
)
def test_notices_of_the_program_are_no_words(line: str) -> None:
    assert sentences(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "2026-01-02 10:00:00 must not happen",
        "[10:02:03] never",
        "    at run (a.js:3)",
        "const never = 1;",
        "+ always = true;",
        "src/a.py:12: do not",
        "$ make never",
        "ann@host:~ $ never",
        "| never | always |",
        "ValueError: must be set",
        "   12→never",
        "if (never) {",
    ],
)
def test_pasted_lines_are_no_words_of_a_user(line: str) -> None:
    assert sentences(f"see\n{line}\nplease") == ["see", "please"]
    assert line.strip() in " ".join(sentences(f"see\n{line}\nplease", by_user=False))


@pytest.mark.parametrize(
    ("text", "asks", "asks_politely"),
    [
        ("Is it done?", True, True),
        ("好了吗", True, True),
        ("你用的是哪个版本呢？", True, True),
        ("why did it fail", True, True),
        ("要不要重写", True, True),
        ("Can you never push to main?", False, True),
        ("Do it.", False, False),
        ("说明为何如此。", False, False),
    ],
)
def test_questions_are_known_in_both_languages(text: str, asks: bool, asks_politely: bool) -> None:
    assert is_question(text) is asks
    assert is_question(text, polite=True) is asks_politely


@pytest.mark.parametrize(
    "text", ["if we chose Redis", "might work", "如果用 Redis", "假如換掉", "I would use it", "也许可以"]
)
def test_a_thought_that_is_played_with_is_hypothetical(text: str) -> None:
    assert is_hypothetical(read_prose(text, by_user=True).quiet)


def test_a_wish_is_not_hypothetical() -> None:
    assert not is_hypothetical("I would like to use Redis")


def test_three_letters_say_nothing() -> None:
    assert not says_enough("1. ok!")
    assert says_enough("不要重写")


@given(MARKDOWN | ANY_TEXT)
def test_every_offset_stays_true(text: str) -> None:
    for by_user in (True, False):
        prose = read_prose(text, by_user=by_user)
        assert len(prose.quiet) == len(text)
        assert all(0 <= start < end <= len(text) for start, end in prose.spans)
