"""What counts as evidence: lines, tokens and the runs inside them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.evidence import (
    MIN_TOKEN_CHARS,
    argument_texts,
    evidence_tokens,
    line_keys,
    plain_lines,
    read_evidence,
    token_halves,
    token_runs,
    unescape_json,
)

LINE = "return self.orders.find_by_customer(customer_id)"


@pytest.mark.parametrize(
    "shown",
    [LINE, f"    {LINE}  ", f"   12→\t{LINE}", f"12\t{LINE}", f"12. {LINE}", f"src/a.py:12:{LINE}", f"12-{LINE}"],
)
def test_a_line_is_the_same_with_and_without_what_a_tool_puts_in_front(shown: str) -> None:
    assert LINE in line_keys(shown)


@pytest.mark.parametrize("line", ["", "short", "x" * 29, "/srv/shop/src/orders/find_by_customer.py", "   }   "])
def test_short_lines_and_single_tokens_are_no_lines(line: str) -> None:
    assert line_keys(line) == ()


def test_a_chinese_sentence_is_a_line_and_no_token() -> None:
    sentence = "请不要在没有运行全部测试之前提交任何代码，除非用户明确要求，并且说明了原因"
    assert line_keys(sentence) == (sentence,)
    assert not evidence_tokens(sentence)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("see src/orders.py, please", {"src/orders.py"}),
        ("call getUserById now", {"getUserById"}),
        ("plainword and another", set()),
        ("version 14.2.1.0 of it", {"14.2.1.0"}),
        ("ab.c", set()),
        ("打开 docs/上下文工程_方案.md 看看", {"docs/上下文工程_方案.md"}),
        ("看看订单导出的脚本说明.md", {"看看订单导出的脚本说明.md"}),
        ("snake_case_name.", {"snake_case_name"}),
        ("x" * 200 + "_" + "y" * 200, set()),
    ],
)
def test_tokens_are_names_paths_and_numbers(text: str, tokens: set[str]) -> None:
    found = evidence_tokens(text)
    assert (set(found), len(found)) == (tokens, len(tokens))


def test_a_token_stands_for_the_runs_of_its_components() -> None:
    runs = token_runs("/srv/shop/orders_test.go".strip("/"))
    assert runs[0] == "srv/shop/orders_test.go"
    assert {"orders_test.go", "shop/orders_test.go", "srv/shop"} <= set(runs)
    assert "shop" not in runs
    assert token_runs("plain_name") == ("plain_name",)
    assert token_runs("/".join("abcdefghijklmnopqrst")) == ("/".join("abcdefghijklmnopqrst"),)


def test_a_token_is_composed_of_two_halves_at_each_border_where_both_may_be_units() -> None:
    assert token_halves("commands/client/main_loop.go") == (
        ("commands", "client/main_loop.go"),
        ("commands/client", "main_loop.go"),
    )
    assert token_halves("src:://longer_name_of_it") == ()
    assert token_halves("longer_name_of::/it_it_it") == (("longer_name_of", "it_it_it"),) * 3
    assert token_halves("plain_name") == ()
    assert token_halves("a.b") == ()


def test_evidence_of_a_text_holds_each_unit_once() -> None:
    found = read_evidence(f"{LINE}\n  {LINE}\nand src/orders.py")
    assert list(found.lines) == [LINE]
    assert "src/orders.py" in found.tokens
    assert set(found.tokens) <= set(found.runs)


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        ('{"a": "x", "b": ["y", {"c": "z"}], "n": 3, "t": true, "o": null}', ["x", "y", "z", "3"]),
        ("not json", ["not json"]),
        ("", []),
        ("null", []),
        ("[" * 50 + '"deep"' + "]" * 50, []),
        ("[" * 100_000, ["[" * 100_000]),
    ],
)
def test_arguments_give_the_texts_that_a_model_wrote(arguments: str, texts: list[str]) -> None:
    assert argument_texts(arguments) == texts


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    found = read_evidence(text)
    assert all(len(line) >= 30 for line in found.lines)
    assert all(8 <= len(token) <= 300 for token in found.runs)


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_arguments_can_be_read(value: object) -> None:
    assert all(isinstance(text, str) for text in argument_texts(json.dumps(value)))


def test_a_listing_is_read_without_its_numbers_and_other_numbers_stay() -> None:
    assert plain_lines(["   12→def total():  ", "   13→    return 1"]) == ["def total():", "    return 1"]
    assert plain_lines(["a.py:7:x = 1", "a.py:8:y = 2", "b.py:8:z = 3"]) == ["x = 1", "y = 2", "b.py:8:z = 3"]
    assert plain_lines(["404: not found", "12:30 lunch", "1. first"]) == ["404: not found", "12:30 lunch", "1. first"]
    assert plain_lines([]) == []


def test_escapes_of_json_are_read_and_broken_ones_stay() -> None:
    assert unescape_json('a\\nb \\u00e9 \\ud83d\\ude00 \\"x\\"') == 'a\nb é 😀 "x"'
    assert unescape_json("\\x \\") == "\\x \\"


def test_a_name_amid_letters_of_another_script_is_found() -> None:
    assert "src/orders/export_all.py" in evidence_tokens("请修改src/orders/export_all.py里的函数")
    assert "getUserById" in evidence_tokens("调用getUserById即可")
    assert evidence_tokens("使用ordinary这个词") == []


def test_a_numbered_line_that_is_short_without_its_number_is_compared_whole_only() -> None:
    line = "path/to/file.py:120: too short here"
    assert line_keys(line) == (line,)


def test_a_number_is_taken_off_in_front_of_text_that_looks_numbered_itself() -> None:
    inner = "retry-3: wait for the queue of orders to drain"
    assert inner in line_keys(f"   12→{inner}")


NAMES = st.text("ab1_.:/-~@Z", max_size=40)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=60)


@given(NAMES)
def test_runs_stand_in_their_token_and_have_no_runs_of_their_own_beyond_it(name: str) -> None:
    for token in evidence_tokens(name):
        runs = token_runs(token)
        assert runs[0] == token
        assert len(runs) == len(set(runs))
        for run in runs:
            assert run in token
            assert set(token_runs(run)) <= set(runs)


@given(NAMES)
def test_halves_are_what_stands_before_and_behind_a_border(name: str) -> None:
    for left, right in token_halves(name):
        assert len(left) >= MIN_TOKEN_CHARS
        assert len(right) >= MIN_TOKEN_CHARS
        assert left in name
        assert right in name


@given(WORDS, st.integers(1, 99_999), st.sampled_from(["   {}→{}", "{}\t{}", "src/a.py:{}:{}"]))
def test_a_line_in_a_listing_has_the_keys_of_the_line_alone(words: str, number: int, frame: str) -> None:
    line = f"x {words}"
    assert set(line_keys(line)[:1]) <= set(line_keys(frame.format(number, line)))


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n")), min_size=2), st.integers(1, 9999))
def test_a_listing_is_the_file_but_for_blanks_at_the_ends_of_lines(lines: list[str], first: int) -> None:
    listing = [f"{number:6}→{line}" for number, line in enumerate(lines, first)]
    assert plain_lines(listing) == [line.rstrip() for line in lines]


@given(st.text(), st.data())
def test_pieces_of_json_read_apart_are_the_text_read_as_a_whole(text: str, data: st.DataObject) -> None:
    stretch = json.dumps(text)[1:-1]
    assert unescape_json(stretch) == text
    places = [0, *(place + 2 for place in range(len(stretch)) if stretch.startswith("\\n", place))]
    cut = data.draw(st.sampled_from(places))
    assert unescape_json(stretch[:cut]) + unescape_json(stretch[cut:]) == text
