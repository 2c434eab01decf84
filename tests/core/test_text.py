"""Normal form, scripts, sentences and cuts."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_gatekeeper.core.text import (
    CUT_MARK,
    Script,
    cut_head_tail,
    cut_text,
    is_fence,
    normalise_text,
    replace_lone_surrogates,
    script_of,
    sentence_spans,
    split_sentences,
)

ANY_TEXT = st.text(st.characters(), max_size=60)
"""Includes lone surrogates and NUL."""
CODE_PIECES = (
    "A script:\n", "\n", "```bash\n", "```\n", "```", "``", "`", "`x`", "``a`b``", " text ", "code. x", "~~~\n",
    "~~~~ py\n", "~~~", "  ```\n", "> ```\n", "\r\n", "🇩🇪", "e\u0301", "````\n", "```a`b", "   ",
)  # fmt: skip
MARKDOWN = st.lists(st.sampled_from(CODE_PIECES), max_size=14).map("".join)
SCRIPT_BLOCK = "A script:\n\n```bash\n#!/bin/bash\necho hello\n```\n\ntail"
GRAPHEMES = (
    "🌤", "💼", "🏆", "👨\u200d👩\u200d👧\u200d👦", "🇩🇪", "e\u0301", "❤\ufe0f", "👍🏽", "1\ufe0f\u20e3", "\r\n", "한",
    "\u1112\u1161\u11ab", "क्षि", "กำ", "🏴\U000e0067\U000e0062\U000e007f", "字", "x", " ", "\u0600١", "ｶﾞ",
)  # fmt: skip


def leaves_fence_open(text: str) -> bool:
    """CommonMark's rule, written apart from the module: a fence closes by an equal or longer bare run."""
    opened = ""
    for line in text.split("\n"):
        found = re.match(r"[ \t>]*(`{3,}|~{3,})(.*)$", line)
        if found is None:
            continue
        run, info = found.groups()
        if not opened:
            opened = run if run[0] == "~" or "`" not in info else ""
        elif run.startswith(opened) and not info.strip():
            opened = ""
    return bool(opened)


def unpaired_backticks(text: str) -> int:
    """Runs of one or two backticks without a partner on their line, outside fenced code."""
    total, opened = 0, ""
    for line in text.split("\n"):
        found = re.match(r"[ \t>]*(`{3,}|~{3,})(.*)$", line)
        if opened:
            if found is not None and found[1].startswith(opened) and not found[2].strip():
                opened = ""
            continue
        if found is not None and (found[1][0] == "~" or "`" not in found[2]):
            opened = found[1]
            continue
        runs = [len(run) for run in re.findall("`+", line)]
        while runs:
            run = runs.pop(0)
            if run in runs:
                del runs[: runs.index(run) + 1]
            else:
                total += run < 3
    return total


# -- normal form and scripts ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("Ｒｅｄｉｓ　７．２", "Redis 7.2"),
        ("ｶﾞｲﾄﾞ", "ガイド"),
        ("ﾊﾝｸﾞﾙ", "ハングル"),
        ("\u1112\u1161\u11ab글", "한글"),
        ("cafe\u0301", "café"),
        ("ﬁle\u00a0name", "file name"),
        ("⽤⽊", "用木"),
        ("𝗯𝗼𝗹𝗱", "bold"),
        ("x² ½ ① … ™", "x² ½ ① … ™"),
        ("plain ASCII\x00", "plain ASCII\x00"),
    ],
)
def test_normal_form_is_what_people_type(written: str, plain: str) -> None:
    assert normalise_text(written) == plain


@given(ANY_TEXT)
@example("か\uff9e")
@example("a" + "\u0301\u0316" * 40)
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise_text(text)
    assert normalise_text(once) == once


@pytest.mark.parametrize(
    ("prefix", "script"),
    [
        ("CJK UNIFIED IDEOGRAPH", Script.HAN),
        ("HIRAGANA LETTER", Script.KANA),
        ("KATAKANA LETTER", Script.KANA),
        ("HANGUL SYLLABLE", Script.HANGUL),
        ("LATIN SMALL LETTER", Script.LATIN),
        ("LATIN CAPITAL LETTER", Script.LATIN),
        ("CYRILLIC SMALL LETTER", Script.CYRILLIC),
        ("GREEK SMALL LETTER", Script.GREEK),
        ("ARABIC LETTER", Script.ARABIC),
        ("HEBREW LETTER", Script.HEBREW),
        ("THAI CHARACTER", Script.THAI),
        ("DEVANAGARI LETTER", Script.DEVANAGARI),
    ],
)
def test_scripts_agree_with_the_character_database(prefix: str, script: Script) -> None:
    named = [char for char in map(chr, range(0xFFFF)) if unicodedata.name(char, "").startswith(prefix)]
    rare_blocks = [char for char in named if script_of(char) is not script]
    assert len(named) > 20
    assert len(rare_blocks) <= len(named) * 0.1, "only letters of rare extension blocks may be missing"
    assert all(ord(char) > 0x2AF for char in rare_blocks)


@pytest.mark.parametrize("char", ["7", " ", "。", "!", "×", "÷", "\x00", "\ud800", "🙂", "_"])
def test_digits_and_marks_belong_to_no_script(char: str) -> None:
    assert script_of(char) is Script.OTHER


# -- sentences --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("先看日志。再重启！好吗？好；行……完", ["先看日志。", "再重启！", "好吗？", "好；", "行……", "完"]),
        ("真的吗?我不信!好", ["真的吗?", "我不信!", "好"]),
        ("Use v1.2.3 or 10.0.0.1 here", ["Use v1.2.3 or 10.0.0.1 here"]),
        ("e.g. this", ["e.g.", "this"]),
        ("line one\n\nline two\r\nline three", ["line one", "line two", "line three"]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        ("他说：“走吧。”然后走了。", ["他说：“走吧。”", "然后走了。"]),
        ("1. Mix it. 2. Bake it.", ["1. Mix it.", "2. Bake it."]),
        ("Call `a. b` now. Done.", ["Call `a. b` now.", "Done."]),
        ("What?! Really...", ["What?!", "Really..."]),
        ("ما هذا؟ نعم", ["ما هذا؟", "نعم"]),
        (" \n\t ", []),
        ("", []),
    ],
)
def test_sentences_end_where_the_rules_say(text: str, units: list[str]) -> None:
    assert split_sentences(text) == units


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Run:\n```sh\nls. -l\n\necho. done\n```\nThat is all. Bye.", "```sh\nls. -l\n\necho. done\n```"),
        ("Run:\n~~~\na. b\n```\nc\n~~~\nend", "~~~\na. b\n```\nc\n~~~"),
        ("Open:\n```\nfirst. second\nthird", "```\nfirst. second\nthird"),
        ("Nested:\n````md\n```py\nx. y\n```\n````\nend", "````md\n```py\nx. y\n```\n````"),
        ("1. In a list:\n   ```\n   a. b\n   ```\n", "```\n   a. b\n   ```"),
    ],
)
def test_fenced_code_is_one_unit(text: str, code: str) -> None:
    assert [unit for unit in split_sentences(text) if is_fence(unit)] == [code]


def test_backticks_on_one_line_are_no_fence() -> None:
    assert split_sentences("```a. b``` is code. Yes.") == ["```a. b``` is code.", "Yes."]


@given(st.one_of(ANY_TEXT, MARKDOWN))
def test_splitting_loses_no_visible_character(text: str) -> None:
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@given(st.one_of(ANY_TEXT, MARKDOWN))
def test_between_sentences_there_is_only_white_space(text: str) -> None:
    end = 0
    for start, stop in sentence_spans(text):
        assert end <= start < stop
        assert not text[end:start].strip()
        end = stop
    assert not text[end:].strip()


# -- cuts -------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(GRAPHEMES), max_size=12))
def test_cuts_fall_between_graphemes(graphemes: list[str]) -> None:
    text = "".join(graphemes)
    borders, place = {0}, 0
    for grapheme in graphemes:
        place += len(grapheme)
        borders.add(place)
    for limit in range(len(text) + 1):
        cut = cut_text(text, limit)
        assert text.startswith(cut)
        assert len(cut) in borders
        assert limit - len(cut) < 12, "the longest grapheme above has eleven characters"


@pytest.mark.parametrize("limit", range(1, 65))
def test_emoji_cut_at_any_length_stay_valid(limit: int) -> None:
    for text in ("🌤💼🏆📉🎯🚀🔥🟢" * 400, "👨\u200d👩\u200d👧\u200d👦" * 20, "🇩🇪" * 40, "e\u0301" * 40):
        for cut in (cut_text(text, limit), cut_head_tail(text, limit)):
            assert json.loads(json.dumps(cut).encode("utf-8")) == cut
            assert not cut.startswith(("\u200d", "\u0301"))
            assert not cut.endswith("\u200d")
            assert sum(char in "🇩🇪" for char in cut) % 2 == 0


@pytest.mark.parametrize("limit", range(len(SCRIPT_BLOCK) + 1))
def test_a_cut_in_a_fenced_block_leaves_no_fence_open(limit: int) -> None:
    cut = cut_text(SCRIPT_BLOCK, limit)
    assert len(cut) <= limit
    assert cut.count("```") % 2 == 0
    assert "`" not in cut.replace("```", "")


@given(MARKDOWN)
@example("```\ncode ```py\n```")
@example("`a `` b ` c ``")
@example("`a````````` ``b`")  # The tail begins at backticks that stand inside inline code.
def test_cuts_leave_no_code_open_that_the_text_closes(text: str) -> None:
    for limit in range(-1, len(text)):
        for cut in (cut_text(text, limit), cut_head_tail(text, limit, mark="~")):
            assert len(cut) <= max(0, limit)
            assert not leaves_fence_open(cut)
            assert unpaired_backticks(cut) <= unpaired_backticks(text)


@given(ANY_TEXT, st.integers(-2, 70))
def test_a_text_that_fits_comes_back_as_it_is(text: str, limit: int) -> None:
    for cut in (cut_text(text, limit), cut_head_tail(text, limit)):
        assert len(cut) <= max(limit, 0)
        assert (cut == text) is (len(text) <= limit or not text)


def test_head_and_tail_stand_around_the_mark_and_prefer_whole_lines() -> None:
    lines = [f"line {number:03} of the log" for number in range(200)]
    cut = cut_head_tail("\n".join(lines), 400)
    head, tail = cut.split(f"\n{CUT_MARK}\n")
    assert set(head.split("\n")) | set(tail.split("\n")) <= set(lines)
    assert head.startswith(lines[0])
    assert tail.endswith(lines[-1])
    assert len(head) > len(tail) > 80


def test_code_goes_on_behind_the_mark() -> None:
    code = "\n".join(f"step_{number}()" for number in range(100))
    cut = cut_head_tail(f"Do:\n```python\n{code}\n```", 200)
    assert re.fullmatch(
        r"Do:\n```python\nstep_0\(\)\n.*\n```\n\[\.\.\.\]\n```python\n.*step_99\(\)\n```", cut, re.DOTALL
    )


def test_lone_surrogates_are_replaced_and_pairs_joined() -> None:
    assert replace_lone_surrogates("a\ud83d b\udc00 \ud83d\ude00") == "a\ufffd b\ufffd 😀"
    assert replace_lone_surrogates("plain\x00") == "plain\x00"


@given(ANY_TEXT)
def test_without_lone_surrogates_every_text_is_valid_utf8(text: str) -> None:
    assert replace_lone_surrogates(text).encode("utf-8").decode("utf-8") == replace_lone_surrogates(text)


LONG = 100_000
STORMS = {
    "dots": "." * LONG, "quoted dots": '."' * (LONG // 2), "backticks": "`" * LONG, "spans": "` " * (LONG // 2),
    "marks": "a" + "\u0301\u0316" * (LONG // 2), "lines": "\r\n" * (LONG // 2), "flags": "🇩🇪" * (LONG // 2),
    "joiners": "\u200d" * LONG, "fences": "```\n" * (LONG // 4), "surrogates": "\ud83d" * LONG,
    "runs": " ".join("`" * length for length in range(1, 440)), "tildes": "~~~ " * (LONG // 4),
    "jamo": "\u1112\u1161\u11ab" * (LONG // 3), "ends": "。" * LONG, "blanks": " " * LONG, "quotes": '"' * LONG,
    "numbers": "1. " * (LONG // 3), "NUL": "\x00" * LONG, "arabic": "\u0644\u0627\u064e" * (LONG // 3),
    "devanagari": "\u0915\u094d\u0937" * (LONG // 3), "thai": "\u0e01\u0e33" * (LONG // 2),
}  # fmt: skip


@pytest.mark.parametrize("name", STORMS)
def test_storms_of_one_kind_pass_through_everything(name: str) -> None:
    text = STORMS[name]
    units = split_sentences(normalise_text(text))
    assert bool(units) is bool(text.strip())
    for limit in (len(text) // 2, 1000):
        assert len(cut_text(text, limit)) <= limit
        assert len(cut_head_tail(text, limit)) <= limit
