"""What a log holds as JSON is written again as it stood: the same numbers, the same keys, and always valid."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, NoReturn

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_gatekeeper.transcripts.exact_json import json_text, load_exact

NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?", fullmatch=True)
TEXTS = st.text('ab"\\\n你\ud83d ', max_size=4)
VALUES = st.recursive(
    st.one_of(
        NUMBERS,
        st.sampled_from(["true", "false", "null"]),
        TEXTS.map(lambda text: json.dumps(text, ensure_ascii=False)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]"),
        st.lists(st.tuples(st.sampled_from("abc"), inner), max_size=4).map(
            lambda pairs: "{" + ",".join(f'"{key}":{value}' for key, value in pairs) + "}"
        ),
    ),
    max_leaves=8,
)


def refused(name: str) -> NoReturn:
    raise ValueError(name)


@given(VALUES)
@example('{"a":1e999,"b":1,"b":2,"c":12345678901234567890.123456789}')
@example("[-0,-0.0,1.0,1E5,1e-999,[],{}]")
def test_json_without_spaces_comes_back_as_it_stood(text: str) -> None:
    assert json_text(load_exact(text, refused)) == text


@given(VALUES)
def test_what_is_read_is_what_python_reads(text: str) -> None:
    assert load_exact(text, refused) == json.loads(text)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_in_json_is_written_as_null(constant: str) -> None:
    written = json_text(load_exact(f'{{"a":[1.50,{constant}],"b":{{}}}}', float))
    assert written == '{"a":[1.50,null],"b":{}}'
    assert json.loads(written, parse_float=Decimal) == {"a": [Decimal("1.50"), None], "b": {}}


def test_it_is_on_one_line_in_its_own_characters() -> None:
    assert json_text({"键": ["值\n", float("nan"), "\ud800"]}) == '{"键":["值\\n",null,"\ud800"]}'


def test_control_characters_in_strings_are_taken() -> None:
    assert load_exact('"a\tb"', refused) == "a\tb"
    value: Any = {"a": (1, 2.5), "b": "\x00"}
    assert json_text(value) == '{"a":[1,2.5],"b":"\\u0000"}'
