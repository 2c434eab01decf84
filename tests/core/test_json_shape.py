"""What a text is of which no part may stand for the whole."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.json_shape import Shape, describe_shape
from tests.core.texts import ANY_TEXT


def kind(text: str) -> str | None:
    shape = describe_shape(text)
    return None if shape is None else shape.kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', "JSON object"), ("{}", "JSON object"), ('  [{"a": 1}]\n', "JSON array"), ("[1, 2]", "JSON array"),
        ("[true]", "JSON array"), ('["a"]', "JSON array"), ("[]", "JSON array"), ("[[1], [2]]", "JSON array"),
        ("[-1.5e3, 2]", "JSON array"), ('{"a": 1}\n{"a": 2}\n', "JSON lines"), ("[1, 2]\n\n[3, 4]", "JSON lines"),
        ('{"a":\n1}\n{"a":\n2}', "JSON values"), ('{"a": 1}{"b": 2}', "JSON values"),
        ('{"a": 1}\n' * 30 + "{oops}\n", "JSON lines"), ('{"a": 1\n' * 30, "broken JSON"),
        ('{"a": 1', "broken JSON"), ('{"a": 1}\nhello\nworld' + "x" * 500, "broken JSON"), ("[" * 9000, "broken JSON"),
        ("a\x00b", "binary"), ("", None), ("plain", None), ("[INFO] x",
        None), ("[12] x", None), ("[2026-01-02] x", None),
        ("{ x }", None), ("[truest]", None), ("see {\"a\": 1}", None), ("a\nb\nc", None), ("head\n[INFO] x", None),
        ("head\n{\"a\": 1", None),
    ],
)  # fmt: skip
def test_texts_are_known_by_their_shape(text: str, expected: str | None) -> None:
    assert kind(text) == expected


def test_json_between_a_few_lines_of_a_tool_is_found() -> None:
    text = 'Exit code 1\n[INFO] go\n{"a": [1, 2]}\n\n<exited>'
    shape = describe_shape(text)
    assert shape is not None
    assert (shape.kind, text[shape.start : shape.end]) == ("JSON object", '{"a": [1, 2]}')
    fenced = '```json\n{"a": 1}\n```\n'
    assert describe_shape(fenced) == Shape("JSON object", ' with 1 key: "a"', 8, 16)


@pytest.mark.parametrize(
    "text", ["x" * 500 + '\n{"a": 1}', 'go\n{"a": 1}\n' + "x" * 500, 'go\n{"a": 1} and more', '```json\n{"a": 1}\nbye']
)
def test_json_in_the_midst_of_much_else_is_plain_text(text: str) -> None:
    assert kind(text) is None


def test_an_object_tells_its_keys_and_their_sizes() -> None:
    shape = describe_shape(json.dumps({"rows": [1, 2, 3], "by": {"a": 1}, "text": "x" * 300, "k" * 50: 0, "汉": None}))
    assert shape is not None
    assert shape.told == (
        f' with 5 keys: "rows" (3 items), "by" (1 key), "text" (300 characters), "{"k" * 40}...", "汉"'
    )


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({"error": "gone"}, '; error: "gone"'),
        ({"Message": "m" * 300}, f'; error: "{"m" * 199} ...'),
        ({"error": None, "detail": ["x"]}, '; error: ["x"]'),
        ({"data": "error"}, ""),
        ({"error": "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2}, ""),
    ],
)
def test_an_object_tells_its_error_but_no_secret(document: object, error: str) -> None:
    shape = describe_shape(json.dumps(document))
    assert shape is not None
    assert shape.error == error


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | ANY_TEXT, lambda inner: st.lists(inner, max_size=4), max_leaves=9
    )
)
def test_every_list_is_an_array_of_its_items(document: object) -> None:
    text = json.dumps([document, 1])
    shape = describe_shape(text)
    assert shape is None or (shape.kind, shape.told) == ("JSON array", " of 2 items")


@given(ANY_TEXT)
def test_any_text_can_be_described(text: str) -> None:
    shape = describe_shape(text)
    assert shape is None or 0 <= shape.start <= shape.end <= len(text)
