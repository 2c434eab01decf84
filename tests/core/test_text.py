"""Normal form, scripts and sentences."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_gatekeeper.core.text import (
    Script,
    normalise_text,
    replace_lone_surrogates,
    script_of,
    sentence_spans,
    split_sentences,
)
from tests.core.texts import ANY_TEXT, MARKDOWN, STORMS

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


def test_lone_surrogates_are_replaced_and_pairs_joined() -> None:
    assert replace_lone_surrogates("a\ud83d b\udc00 \ud83d\ude00") == "a\ufffd b\ufffd 😀"
    assert replace_lone_surrogates("plain\x00") == "plain\x00"


@given(ANY_TEXT)
def test_without_lone_surrogates_every_text_is_valid_utf8(text: str) -> None:
    assert replace_lone_surrogates(text).encode("utf-8").decode("utf-8") == replace_lone_surrogates(text)


@pytest.mark.parametrize("name", STORMS)
def test_storms_of_one_kind_are_split_like_any_text(name: str) -> None:
    text = STORMS[name]
    units = split_sentences(normalise_text(text))
    assert bool(units) is bool(text.strip())


def test_a_sign_for_a_whole_phrase_does_not_make_a_text_grow() -> None:
    assert normalise_text("\ufdfa\ufdfb") == "\ufdfa\ufdfb"
    assert normalise_text("\ufdf9\ufdfc") == "\u0635\u0644\u0649\u0631\u06cc\u0627\u0644"
