"""Cuts between graphemes and around code."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_gatekeeper.core.cuts import CUT_MARK, cut_head_tail, cut_plain, cut_text
from tests.core.texts import ANY_TEXT, MARKDOWN, STORMS

SCRIPT_BLOCK = "A script:\n\n```bash\n#!/bin/bash\necho hello\n```\n\ntail"
GRAPHEMES = (
    "🌤", "💼", "🏆", "👨\u200d👩\u200d👧\u200d👦", "🇩🇪", "e\u0301", "❤\ufe0f", "👍🏽", "1\ufe0f\u20e3", "\r\n", "한",
    "\u1112\u1161\u11ab", "क्षि", "กำ", "🏴\U000e0067\U000e0062\U000e007f", "字", "x", " ", "\u0600١", "ｶﾞ",
)  # fmt: skip


def leaves_fence_open(text: str) -> bool:
    """CommonMark's rule outside of lists, written apart from the module.

    A fence closes by an equal or longer bare run, and stands at most three columns in.
    """
    opened = ""
    for line in text.split("\n"):
        found = re.match(r"(?:[ \t>]*>[ \t]?)?[ ]{0,3}(`{3,}|~{3,})(.*)$", line)
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
        found = re.match(r"(?:[ \t>]*>[ \t]?)?[ ]{0,3}(`{3,}|~{3,})(.*)$", line)
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


@pytest.mark.parametrize("name", STORMS)
def test_storms_of_one_kind_are_cut_like_any_text(name: str) -> None:
    text = STORMS[name]
    for limit in (len(text) // 2, 1000):
        assert len(cut_text(text, limit)) <= limit
        assert len(cut_head_tail(text, limit)) <= limit


@given(st.lists(st.sampled_from(GRAPHEMES), max_size=12), st.integers(0, 40))
def test_a_plain_cut_is_the_longest_prefix_that_ends_between_graphemes(graphemes: list[str], limit: int) -> None:
    text = "".join(graphemes)
    prefix = cut_plain(text, limit)
    assert text.startswith(prefix)
    assert len(prefix) <= limit
    assert prefix == text or len(prefix) + 20 > limit


def test_a_plain_cut_leaves_code_open() -> None:
    assert cut_plain("```\ncode\n```", 6) == "```\nco"
