"""Background weights, function words and simplified forms, held to the word lists they are made from."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from math import log
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.background import (
    ENGLISH_STOP_WORDS,
    cut_function_words,
    ngram_background,
    simplify_han,
    word_background,
)
from context_gatekeeper.core.tables import chinese, english, stopwords, variants

ROOT = Path(__file__).parents[2]
TABLES = ROOT / "src" / "context_gatekeeper" / "core" / "tables"
HAN = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), max_size=60)
FUNCTION_TALK = st.lists(st.sampled_from(stopwords.FUNCTION_WORDS_ZH + stopwords.PROTECTED_WORDS_ZH)).map("".join)


@cache
def maker(package: str) -> dict[str, Any]:
    """The names of the script that makes the tables; the test is skipped where its word list is not installed."""
    try:
        distribution(package)
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed: its table cannot be made again")
    return runpy.run_path(str(ROOT / "scripts" / "make_background.py"))


@cache
def frequencies() -> dict[str, int]:
    return dict(maker("jieba")["ngram_frequencies"]())


def joined_entries() -> dict[str, list[str]]:
    """Table name -> its n-grams, cut up here without the decoder."""
    return {
        name: re.findall("." * int(name[-1]), text) for name, text in vars(chinese).items() if name.startswith("LEVEL_")
    }


# Words


@pytest.mark.parametrize(
    ("stem", "weight"),
    [
        ("the", 0.15),
        ("home", 0.15),
        ("market", log(444 / 300) / log(5000 / 300)),
        ("kubernet", 1.0),
        ("redi", 1.0),
    ],
)
def test_a_common_word_weighs_little_and_a_rare_one_all(stem: str, weight: float) -> None:
    assert word_background(stem) == pytest.approx(max(0.15, weight))


def test_every_listed_rank_gives_the_documented_weight() -> None:
    for entry in english.STEM_RANKS.split():
        stem, _, rank = entry.rpartition(":")
        expected = max(0.15, log(max(int(rank), 300) / 300) / log(5000 / 300))
        assert word_background(stem) in (pytest.approx(expected), 0.15), entry


def test_words_about_talk_weigh_least() -> None:
    assert [word_background(stem) for stem in ("recap", "discuss", "remind", "curious")] == [0.15] * 4


@pytest.mark.parametrize("number", ["8080", "3.14", "1,000", "0"])
def test_a_bare_number_weighs_less_than_a_rare_word(number: str) -> None:
    assert word_background(number) == 0.4


@pytest.mark.parametrize("word", ["k8s", "v1.2", "1a", ""])
def test_what_only_holds_a_digit_is_no_bare_number(word: str) -> None:
    assert word_background(word) == 1.0


@given(st.text(max_size=12))
def test_every_word_weighs_between_015_and_1(word: str) -> None:
    assert 0.15 <= word_background(word) <= 1.0


def test_the_word_table_is_made_from_the_frequency_list() -> None:
    assert maker("symspellpy")["english_ranks"]() == english.STEM_RANKS.split()
    assert 3000 < len(english.STEM_RANKS.split()) < 4000


# N-grams


@pytest.mark.parametrize(
    ("ngram", "weight"),
    [
        ("中国", 0.15),
        ("国务院", 0.15),
        ("东北", 0.2),
        ("讨论", 0.15),
        ("狍子", 1.0),
        ("龘龘", 0.6),
        ("龘龘龘", 0.6),
        ("中国龘", 0.15),
    ],
)
def test_ngrams_weigh_by_how_common_they_are(ngram: str, weight: float) -> None:
    assert ngram_background(ngram) == weight


@given(HAN.filter(lambda text: len(text) >= 3).map(lambda text: text[:3]))
def test_an_unlisted_triple_weighs_no_more_than_either_pair(triple: str) -> None:
    listed = {ngram for ngrams in joined_entries().values() for ngram in ngrams} | stopwords.TALK_NGRAMS_ZH
    if triple not in listed:
        pairs = ngram_background(triple[:2]), ngram_background(triple[1:])
        assert ngram_background(triple) == min(0.6, *pairs)


def test_every_common_ngram_has_the_documented_weight_to_half_a_step() -> None:
    common = {ngram: count for ngram, count in frequencies().items() if count > 500}
    assert 12_000 < len(common) < 13_000
    for ngram, count in common.items():
        if ngram not in stopwords.TALK_NGRAMS_ZH:
            exact = max(0.15, 1 - log(count / 500) / log(40))
            assert abs(ngram_background(ngram) - exact) <= 0.025 + 1e-9, ngram


def test_every_rare_pair_as_far_as_frequency_20_weighs_all_and_no_other_pair_does() -> None:
    pairs = {ngram: count for ngram, count in frequencies().items() if len(ngram) == 2 and count <= 500}
    wrong = [
        pair
        for pair, count in pairs.items()
        if pair not in stopwords.TALK_NGRAMS_ZH and ngram_background(pair) != (1.0 if count >= 20 else 0.6)
    ]
    assert wrong == []


def test_the_ngram_table_names_each_ngram_once() -> None:
    entries = [ngram for ngrams in joined_entries().values() for ngram in ngrams]
    entries += [group[0] + second for group in chinese.RARE_PAIRS.split() for second in group[1:]]
    assert len(entries) == len(set(entries)) > 80_000


def test_the_tables_stay_small() -> None:
    sizes = {path.name: path.stat().st_size for path in TABLES.glob("*.py")}
    assert sum(sizes.values()) < 700_000, sizes


def test_weights_do_not_depend_on_the_process() -> None:
    program = (
        "from context_gatekeeper.core.background import ngram_background as n, word_background as w;"
        "print([n(g) for g in ('中国', '东北', '狍子', '龘龘龘', '数据库')], [w(s) for s in ('market', 'recap', '7')])"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONUTF8": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] != ""


def test_importing_decodes_no_table() -> None:
    program = (
        "import sys, context_gatekeeper.core.background\n"
        "print([name for name in sys.modules if name.rpartition('.')[2] in ('chinese', 'english', 'variants')\n"
        "       and name.startswith('context_gatekeeper')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Function words


@pytest.mark.parametrize(
    ("run", "pieces"),
    [
        ("过期时间是多少", ["过期时间"]),
        ("什么是分布式锁", ["分布式锁"]),
        ("请问会议的要点是什么", ["会议", "要点"]),
        ("我们的目的地在哪里", ["目的地"]),
        ("麻烦帮我介绍一下太平洋的地理", ["太平洋", "地理"]),
        ("北京的地铁怎么样", ["北京", "地铁"]),
        ("怎么办呢", []),
        ("", []),
    ],
)
def test_a_run_is_cut_at_its_function_words(run: str, pieces: list[str]) -> None:
    assert cut_function_words(run) == pieces


@pytest.mark.parametrize("word", ["要点", "会议", "可能性", "的士", "和平", "目的", "地方", "能源", "地震", "中医"])
def test_a_content_word_that_holds_a_function_word_stays_whole(word: str) -> None:
    assert cut_function_words(word) == [word]
    assert cut_function_words(f"什么是{word}呢") == [word]


@pytest.mark.parametrize(
    ("traditional", "pieces"),
    [
        ("為什麼還沒有會議", ["会议"]),
        ("甚麼是分佈式鎖", ["分布式锁"]),
        ("請問這個資料庫怎麼樣", ["资料库"]),
        ("謝謝妳們", []),
    ],
)
def test_traditional_function_words_are_cut_after_folding(traditional: str, pieces: list[str]) -> None:
    assert cut_function_words(simplify_han(traditional)) == pieces


def test_no_function_word_is_protected() -> None:
    assert set(stopwords.FUNCTION_WORDS_ZH).isdisjoint(stopwords.PROTECTED_WORDS_ZH)
    assert len(set(stopwords.FUNCTION_WORDS_ZH)) == len(stopwords.FUNCTION_WORDS_ZH) >= 150


def test_the_chinese_lists_are_written_as_text_is_folded() -> None:
    words = stopwords.PROTECTED_WORDS_ZH + stopwords.FUNCTION_WORDS_ZH + tuple(stopwords.TALK_NGRAMS_ZH)
    assert [word for word in words if simplify_han(word) != word] == []


@given(st.one_of(HAN, FUNCTION_TALK))
def test_pieces_stand_in_the_run_in_order_and_are_never_empty(run: str) -> None:
    at = 0
    for piece in cut_function_words(run):
        assert piece
        at = run.index(piece, at) + len(piece)


def test_question_words_and_helpers_are_english_stop_words() -> None:
    assert {"do", "does", "what", "should", "don't", "what's", "please"} <= ENGLISH_STOP_WORDS
    assert all(word == word.lower() for word in ENGLISH_STOP_WORDS)
    assert len(ENGLISH_STOP_WORDS) >= 180


# Simplified forms


@pytest.mark.parametrize(
    ("text", "simplified"),
    [
        ("分佈式鎖", "分布式锁"),
        ("資料庫", "资料库"),
        ("分布式锁", "分布式锁"),
        ("Redis lock", "Redis lock"),
        ("ひらがな", "ひらがな"),
    ],
)
def test_traditional_characters_become_simplified(text: str, simplified: str) -> None:
    assert simplify_han(text) == simplified


@given(st.text())
def test_folding_keeps_the_length(text: str) -> None:
    assert len(simplify_han(text)) == len(text)


def test_the_character_table_is_made_from_opencc_and_pairs_place_by_place() -> None:
    assert maker("opencc-python-reimplemented")["traditional_pairs"]() == (variants.TRADITIONAL, variants.SIMPLIFIED)
    assert len(variants.TRADITIONAL) == len(variants.SIMPLIFIED) == len(set(variants.TRADITIONAL)) > 2500


# Licences


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("symspellpy", "Permission is hereby granted"),
        ("jieba", "Permission is hereby granted"),
        ("opencc", "Apache License"),
    ],
)
def test_each_source_of_a_table_has_its_notice_and_licence(source: str, words: str) -> None:
    notice = (ROOT / "NOTICE").read_text("utf-8")
    assert re.search(rf"^- .*{source}.*\((MIT|Apache-2\.0)\)", notice, re.MULTILINE | re.IGNORECASE)
    assert words in (ROOT / "licences" / f"{source}.txt").read_text("utf-8")
