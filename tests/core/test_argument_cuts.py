"""Arguments of calls stay JSON of the same shape, whatever stretch of them is left out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.argument_cuts import ArgumentCut, cut_arguments

LONG = "\n".join(f"line {number}: some text of a file that is written" for number in range(30))
TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from('\\"\n\t/中🟢\x00'), max_size=300)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def shape(value: Any) -> Any:
    """The value with its long texts made equal."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value]
    return "..." if isinstance(value, str) and len(value) > 8 else value


def cut_all(text: str, note: str = "[out: p1]", short: str = "[out]") -> str:
    return cut_arguments(text, [ArgumentCut(0, len(text), note, short)])


def test_the_long_value_leaves_and_the_path_stays() -> None:
    text = json.dumps({"file_path": "/src/a.py", "content": LONG})
    assert json.loads(cut_all(text, "[out: p7]\nline 3: kept")) == {
        "file_path": "/src/a.py",
        "content": "[out: p7]\nline 3: kept",
    }


def test_further_long_values_get_the_short_note() -> None:
    text = json.dumps({"old_string": LONG, "new_string": LONG[::-1]})
    assert json.loads(cut_all(text)) == {"old_string": "[out: p1]", "new_string": "[out]"}


def test_what_stands_in_front_of_the_stretch_and_behind_it_stays_on_lines_of_its_own() -> None:
    text = json.dumps({"content": LONG})
    lines = LONG.split("\n")
    start, end = text.index("line 3:"), text.index("line 6:")
    cut = cut_arguments(text, [ArgumentCut(start, end, "[out: p1#L4-6]", "")])
    assert json.loads(cut)["content"].split("\n") == [*lines[:3], "[out: p1#L4-6]", *lines[6:]]


def test_two_stretches_of_one_value_leave_apart() -> None:
    text = json.dumps({"content": LONG})
    places = [text.index(f"line {number}:") for number in (2, 4, 8, 9)]
    cuts = [ArgumentCut(places[0], places[1], "[a]", ""), ArgumentCut(places[2], places[3], "[b]", "")]
    told = json.loads(cut_arguments(text, cuts))["content"].split("\n")
    assert told[2] == "[a]"
    assert told[7] == "[b]"


def test_a_stretch_in_the_middle_of_a_line_is_put_on_a_line_of_its_own() -> None:
    text = json.dumps({"content": "x" * 300})
    assert json.loads(cut_arguments(text, [ArgumentCut(100, 200, "[out]", "")]))["content"] == (
        f"{'x' * 87}\n[out]\n{'x' * 113}"
    )


@pytest.mark.parametrize("text", ['{"a": "' + "x" * 100, "ls -la " * 30, "", "[" * 100_000])
def test_what_is_no_json_stays_as_it_is(text: str) -> None:
    assert cut_all(text) == text


def test_short_values_stay() -> None:
    text = json.dumps({"command": "ls", "flags": ["-l", "-a"], "timeout": 3})
    assert cut_all(text) == text


@pytest.mark.parametrize("value", ['\\n" \\\\' * 40, "\U0001f7e2" * 60, "\\" * 200, '"' * 200, "\u0000" * 100])
def test_no_cut_tears_an_escape(value: str) -> None:
    text = json.dumps({"content": value})
    for place in range(len(text)):
        for stretch in (ArgumentCut(0, place, "[o]", ""), ArgumentCut(place, len(text), "[o]", "")):
            cut = json.loads(cut_arguments(text, [stretch]))
            cut["content"].encode("utf-8")  # no half of a pair either
            assert set(cut["content"]) <= set(value) | set("\n[o]")


@given(VALUES, st.integers(0, 600), st.integers(0, 600), TEXTS, st.booleans())
def test_the_rest_is_json_of_the_same_shape(value: Any, start: int, length: int, note: str, is_ascii: bool) -> None:
    text = json.dumps({"arguments": value}, ensure_ascii=is_ascii)
    cut = cut_arguments(text, [ArgumentCut(start, start + length, f"[out] {note}", f"[out] {note}")])
    assert shape(json.loads(cut)) == shape(json.loads(text))


def test_a_short_value_is_short_however_it_is_written() -> None:
    text = json.dumps({"old_string": "订单发票" * 15, "new_string": "订单发票" * 25})
    assert json.loads(cut_all(text)) == {"old_string": "订单发票" * 15, "new_string": "[out: p1]"}
