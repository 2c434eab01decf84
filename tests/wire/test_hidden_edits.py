"""Changes of a JSON text by paths."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.errors import WireFormatError
from context_gatekeeper.wire.hidden_edits import JsonEdits
from tests.wire.requests import odd_json

SHAPE = {"list": {"in": {}}, "object": {}}
SOURCE = ' {"list" : [1, {"in":{"x":1}} , 3],\n"object":{}, "none": null, "text":"a"} '


def test_values_are_found_with_their_texts() -> None:
    edits = JsonEdits(SOURCE, SHAPE)
    assert edits.source(("list", 1)) == '{"in":{"x":1}}'
    assert edits.source(("list", 1, "in", "x")) == "1"
    assert edits.sources(("list",)) == ["1", '{"in":{"x":1}}', "3"]
    assert edits.source(("list", 3)) == edits.source(("no", "such", "thing")) == edits.source(("text", 0)) == ""
    assert edits.sources(("text",)) == edits.sources(("no",)) == []


def test_what_is_not_changed_keeps_its_characters() -> None:
    edits = JsonEdits(SOURCE, SHAPE)
    assert edits.text() == SOURCE
    edits.set(("list", 1, "in", "x"), "2")
    edits.set(("list", 1, "new"), '"n"')
    edits.set(("object", "k"), "[]")
    edits.set(("none", "k"), "1")
    edits.set(("text", "k"), "1")
    edits.remove(("list", 0))
    edits.prepend(("list",), ["-1", "0"])
    edits.append(("list",), ["4"])
    edits.append(("text",), ["4"])
    assert edits.text() == (
        ' {"list" : [-1,0,{"in":{"x":2},"new":"n"} , 3,4],\n"object":{"k":[]}, "none": null, "text":"a"} '
    )


@pytest.mark.parametrize("text", ["", "x", '{"a":1,"a":2}', "{"])
def test_a_text_that_cannot_be_read_is_refused_when_it_is(text: str) -> None:
    edits = JsonEdits(text, {})
    assert edits.text() == text
    with pytest.raises(WireFormatError):
        edits.find(("a",))


def test_a_text_that_is_no_object_holds_nothing() -> None:
    edits = JsonEdits(' [{"a":1}]', {})
    edits.set(("a",), "2")
    assert edits.find(("a",)) is None
    assert edits.text() == ' [{"a":1}]'


@given(
    elements=st.lists(st.integers(0, 9), max_size=4),
    leaving=st.sets(st.integers(0, 3)),
    front=st.lists(st.integers(10, 12), max_size=2),
    back=st.lists(st.integers(20, 22), max_size=2),
    seed=st.integers(0, 99),
)
def test_lists_stay_lists(elements: list[int], leaving: set[int], front: list[int], back: list[int], seed: int) -> None:
    edits = JsonEdits(odd_json({"a": elements, "b": 1}, seed), {"a": {}})
    for place in leaving:
        edits.remove(("a", place))
    edits.prepend(("a",), [str(one) for one in front])
    edits.append(("a",), [str(one) for one in back])
    kept = [one for place, one in enumerate(elements) if place not in leaving]
    assert json.loads(edits.text()) == {"a": [*front, *kept, *back], "b": 1}


@given(
    held=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9)),
    removed=st.sets(st.sampled_from("abcd")),
    changed=st.dictionaries(st.sampled_from("abcdé"), st.integers(10, 19)),
    seed=st.integers(0, 99),
)
def test_objects_stay_objects(held: dict[str, int], removed: set[str], changed: dict[str, int], seed: int) -> None:
    edits = JsonEdits(odd_json(held, seed), {})
    for key in removed:
        edits.remove((key,))
    for key, value in changed.items():
        edits.set((key,), str(value))
    expected: dict[str, Any] = {key: changed.get(key, value) for key, value in held.items() if key not in removed}
    expected |= {key: value for key, value in changed.items() if key not in held}
    assert json.loads(edits.text()) == expected
