"""JSON read with the places of its values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.errors import WireFormatError
from context_gatekeeper.wire.json_source import MOST_LEVELS, Node, Shape, read_document, read_element, read_json
from tests.wire.requests import UNHURRIED, VALUES, odd_json

EVERYTHING: dict[str, Any] = {}
EVERYTHING.update(list=EVERYTHING, object=EVERYTHING)


def read(text: str, shape: Shape | None = None) -> Node:
    """The member ``a`` of an object."""
    return read_document(f'{{"a":{text}}}'.encode(), {} if shape is None else {"a": shape})[1]["a"]


def refusal(body: bytes, shape: Shape | None = None) -> str:
    with pytest.raises(WireFormatError) as caught:
        read_document(body, shape or {})
    assert caught.value.next_step == "it can only be sent on as it came"
    return caught.value.cause


@UNHURRIED
@given(st.dictionaries(st.sampled_from(["list", "object", "x", "é"]), VALUES), st.integers(0, 2**20))
def test_values_stand_where_it_says_walked_or_not(value: dict[str, Any], seed: int) -> None:
    text = odd_json(value, seed)
    for shape in ({}, EVERYTHING):
        source, members = read_document(text.encode(), shape)
        assert source == text
        waiting = list(members.values())
        assert {key: json.loads(source[node.start : node.end]) for key, node in members.items()} == value
        while waiting:
            node = waiting.pop()
            waiting += [*(node.members or {}).values(), *(node.items or ())]
            assert json.loads(source[node.start : node.end]) == restored(node.value)


def restored(value: Any) -> Any:
    """A value as `json.loads` gives it."""
    if isinstance(value, bytes):
        return json.loads(value)
    if isinstance(value, dict):
        return {key: restored(one) for key, one in value.items()}
    return [restored(one) for one in value] if isinstance(value, list) else value


def test_a_walked_object_tells_where_its_keys_begin() -> None:
    source, members = read_document(b'{ "b" : {"c": [ 1 , {"d":2} ], "c\\u0065" : "x" } }', {"b": {"c": {}}})
    inner = members["b"].members or {}
    assert list(inner) == ["c", "ce"]
    assert source[inner["c"].outer : inner["c"].end] == '"c": [ 1 , {"d":2} ]'
    assert source[inner["ce"].outer : inner["ce"].end] == '"c\\u0065" : "x"'
    items = inner["c"].items or []
    assert [source[item.start : item.end] for item in items] == ["1", '{"d":2}']


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (b'{"a":"\xff"}', "it is no UTF-8 (byte 6)"),
        (b'\xef\xbb\xbf{"a":1}', "it is no JSON object"),
        (b"", "it is no JSON object"),
        (b"[]", "it is no JSON object"),
        (b'"text"', "it is no JSON object"),
        (b'{"a":1} {}', "it is no JSON (something stands behind the object, character 8)"),
        (b"{", "it is no JSON (Expecting a key, character 1)"),
        (b'{"a"}', "it is no JSON (Expecting ':', character 4)"),
        (b'{"a":}', "it is no JSON (Expecting value, character 5)"),
        (b'{"a":"x"', "it is no JSON (Expecting ',' or '}', character 8)"),
        (b'{"a":1', "it is no JSON (Expecting ',' or '}', character 6)"),
        (b'{"a":1,}', "it is no JSON (Expecting a key, character 7)"),
        (b'{"a":"x" "b":1}', "it is no JSON (Expecting ',' or '}', character 9)"),
        (b'{"a":[1 2]}', "it is no JSON (Expecting ',' delimiter, character 8)"),
        (b'{"w":[1 2]}', "it is no JSON (Expecting ',' or ']', character 7)"),
        (b'{"w":[1,]}', "it is no JSON (Expecting value, character 8)"),
        (b'{"a":"\n"}', "it is no JSON (Invalid control character at, character 6)"),
        (b'{"a":01}', "it is no JSON (Expecting ',' or '}', character 6)"),
        (b'{"a":NaN}', "it is no JSON (NaN is no JSON)"),
        (b'{"a":[-Infinity]}', "it is no JSON (-Infinity is no JSON)"),
        (b"{'a':1}", "it is no JSON (Expecting a key, character 1)"),
    ],
)
def test_what_is_no_json_object_is_refused_with_its_place(body: bytes, cause: str) -> None:
    assert refusal(body, {"w": {}}) == cause


@pytest.mark.parametrize("text", ['{"k":1,"k":1}', '{"k":1,"\\u006b":"x"}'])
def test_a_key_that_stands_twice_in_a_walked_object_is_refused_elsewhere_it_is_kept(text: str) -> None:
    assert refusal(f'{{"a":{text}}}'.encode(), {"a": {}}).startswith("the key 'k' stands twice")
    assert refusal(f'{{"a":1,"b":{text},"a":1}}'.encode()).startswith("the key 'a' stands twice")
    assert read(text).value in ((("k", 1), ("k", 1)), (("k", 1), ("k", "x")))


@pytest.mark.parametrize("walked", [True, False])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"list":', "}")])
def test_two_hundred_levels_are_read_and_one_more_is_refused(walked: bool, opening: str, closing: str) -> None:
    shape: Shape = {"a": {"list": {"list": {}}}} if walked else {}
    levels = MOST_LEVELS - 1
    body = f'{{"a":{opening * levels}1{closing * levels}}}'.encode()
    read_document(body, shape)
    too_deep = f'{{"a":{opening * (levels + 1)}1{closing * (levels + 1)}}}'.encode()
    assert refusal(too_deep, shape) == "it is nested more than 200 levels deep"
    assert refusal(b'{"a":' + b"[" * 100_000, shape) == "it is nested more than 200 levels deep"


def test_many_containers_beside_each_other_are_not_deep() -> None:
    assert read("[" + ",".join(["[]", '{"k":[1,1]}', '{"k":1,"k":[]}'] * 300) + "]").value[-2:] == [
        {"k": [1, 1]},
        (("k", 1), ("k", [])),
    ]


def test_numbers_keep_their_digits() -> None:
    long = "9" * 5000
    assert read(long).value == long.encode()
    assert read("-0").value == b"-0"
    assert read("1e999").value == b"1e999"
    assert read("0.1000").value == b"0.1000"
    assert read("0.1").value == 0.1
    assert read("-12").value == -12


def test_keys_come_in_the_order_of_the_alphabet() -> None:
    assert list(read('{"b":{"d":1,"c":2},"a":3}').value) == ["a", "b"]
    assert list(read('{"b":{"d":1,"c":2},"a":3}', {}).value) == ["a", "b"]


def test_known_elements_of_the_named_list_are_not_read_again() -> None:
    body = b'{"x":[{"m":1}],"m":[ {"a":1} ,{"b":[]},3]}'
    _, members = read_document(body, {"m": {}, "x": {}}, "m", ['{"a":1}', '{"c":1}'])
    items = members["m"].items or []
    assert [item.is_known for item in items] == [True, False, False]
    assert [(item.start, item.end) for item in items] == [(21, 28), (30, 38), (39, 40)]
    assert (members["x"].items or [])[0].value == {"m": 1}


def test_one_element_can_be_read_by_itself() -> None:
    node = read_element('[ {"a":[1]} ]', 2, {"a": {}})
    assert ((node.members or {})["a"].items or [])[0].value == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [(' {"a":1} ', {"a": 1}), ("{", None), ("1 2", None), ("[" * 100_000, None), ("NaN", None), ("null", None)],
)
def test_a_text_is_read_as_json_or_as_nothing(text: str, value: Any) -> None:
    assert read_json(text) == value
