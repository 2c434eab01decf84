"""Repeated wording: what returns word for word under many subjects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.wording import RepeatedWording, WordingParams

FRAME = "what did we conclude about"


def wording_of(known: RepeatedWording, text: str, holders: int = 1) -> frozenset[str]:
    scan = scan_anchors(text)
    return known.wording_terms(scan.text, scan.spans, lambda _: holders)


def remembering(*texts: str, params: WordingParams | None = None) -> RepeatedWording:
    known = RepeatedWording() if params is None else RepeatedWording(params)
    for text in texts:
        known.add(text)
    return known


def test_a_repeated_frame_is_wording_and_its_new_subject_is_not() -> None:
    assert wording_of(remembering(f"{FRAME} redis"), f"{FRAME} kafka") == {"conclud"}


def test_a_repeated_chinese_frame_is_wording_and_its_new_subject_is_not() -> None:
    found = wording_of(remembering("请总结讨论结论缓存"), "请总结讨论结论队列")
    assert {"总结", "讨论", "结论"} <= found
    assert "队列" not in found


@pytest.mark.parametrize("text", ["", "redis", f"{FRAME} redis"])
def test_without_earlier_messages_nothing_is_wording(text: str) -> None:
    assert wording_of(RepeatedWording(), text) == frozenset()


@pytest.mark.parametrize(
    ("text", "is_wording"),
    [
        ("red fox jumped", False),
        ("red fox jumped far", True),
        ("红狐跳得远", False),
        ("红狐跳得很远", True),
        ("red fox 跳得远", True),
        ("red fox 跳得", False),
    ],
    ids=["3 words", "4 words", "5 characters", "6 characters", "2 words, 3 characters", "2 words, 2 characters"],
)
def test_a_run_needs_the_length_of_six_characters_or_four_words(text: str, is_wording: bool) -> None:
    assert bool(wording_of(remembering(text), text)) is is_wording


@pytest.mark.parametrize(("holders", "is_wording"), [(1, True), (2, False)])
def test_a_term_seen_elsewhere_too_often_is_no_wording(holders: int, is_wording: bool) -> None:
    found = wording_of(remembering(f"{FRAME} redis"), f"{FRAME} kafka", holders)
    assert ("conclud" in found) is is_wording


@pytest.mark.parametrize(("holders", "is_wording"), [(5, True), (6, False)])
def test_the_share_of_holders_is_six_tenths(holders: int, is_wording: bool) -> None:
    known = remembering(*(f"{FRAME} {name}" for name in ("redis", "mysql", "nginx")))
    assert ("conclud" in wording_of(known, f"{FRAME} kafka", holders)) is is_wording


def test_a_run_that_stands_twice_in_one_message_counts_once() -> None:
    known = remembering(f"{FRAME} redis. {FRAME} mysql")
    assert "conclud" not in wording_of(known, f"{FRAME} kafka", holders=2)


def test_a_term_that_also_stands_outside_of_the_run_is_no_wording() -> None:
    assert wording_of(remembering(FRAME), f"{FRAME} kafka; please conclude") == frozenset()


def test_letter_case_and_punctuation_do_not_hide_a_run() -> None:
    assert "conclud" in wording_of(remembering("What, did WE conclude about redis?"), f"{FRAME} kafka")


def test_only_the_first_4000_characters_are_read() -> None:
    padding = " " * 4000
    assert wording_of(remembering(padding + FRAME), FRAME) == frozenset()
    assert wording_of(remembering(FRAME), padding + FRAME) == frozenset()


def test_a_term_behind_the_read_part_is_no_wording() -> None:
    long_text = FRAME + " " * 4000 + "kafka"
    assert wording_of(remembering(FRAME), long_text) == {"conclud"}


def test_beyond_the_limit_runs_seen_once_are_forgotten_and_repeated_ones_stay() -> None:
    once, twice = "one red fox jumped", "two blue birds sang"
    known = remembering(twice, twice, once, params=WordingParams(max_rare_runs=1))
    assert wording_of(known, once) == frozenset()
    assert "bird" in wording_of(known, twice, holders=3)


def test_an_old_run_that_returns_keeps_its_count() -> None:
    twice = "two blue birds sang"
    known = remembering(twice, twice, "one red fox jumped", twice, params=WordingParams(max_rare_runs=1))
    assert "bird" in wording_of(known, twice, holders=5)
    assert "bird" not in wording_of(known, twice, holders=6)


@pytest.mark.parametrize(
    "text",
    ["\ud800\udfff", "a\0b\0c\0d", "\u202eשלום עולם", "👨‍👩‍👧‍👦" * 10, "", "锁" * 20_000, "a " * 10_000, "'" * 20_000],
    ids=["surrogates", "NUL", "right to left", "emoji", "empty", "han", "words", "quotes"],
)
def test_hostile_text_is_read(text: str) -> None:
    known = remembering(text)
    assert wording_of(known, text) <= set(scan_anchors(text).counts)


@given(st.lists(st.text(st.characters(), max_size=60), max_size=5), st.text(st.characters(), max_size=60))
def test_wording_is_always_a_part_of_the_messages_own_terms(earlier: list[str], text: str) -> None:
    assert wording_of(remembering(*earlier), text) <= set(scan_anchors(text).counts)
