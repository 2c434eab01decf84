"""The lines of a page that a query is about."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_gatekeeper.core.excerpt import excerpt
from context_gatekeeper.errors import ConfigError

HANDLE = "page:abcdefghijklmnop"
LOG = "\n".join(f"2026-02-01 worker {number} idle" for number in range(200))
GAP = re.compile(r"\[(?:line \d+|lines (\d+)-(\d+)) left out: page:[a-z2-7]+#L(\d+)-(\d+)\]")


def lines_of(shown: str) -> list[str]:
    return [line for line in shown.split("\n") if not GAP.fullmatch(line)]


def test_a_short_text_is_shown_whole() -> None:
    assert excerpt("one\ntwo\n", {"two": 1.0}, most_chars=8, handle=HANDLE) == "one\ntwo\n"


def test_the_lines_that_hold_the_query_come_with_their_neighbours_and_the_gaps_are_told() -> None:
    text = LOG.replace("worker 120 idle", "worker 120 lost its lease")
    shown = excerpt(text, {"leas": 2.0}, most_chars=200, handle=HANDLE)
    assert shown.split("\n") == [
        f"[lines 1-119 left out: {HANDLE}#L1-119]",
        "2026-02-01 worker 119 idle",
        "2026-02-01 worker 120 lost its lease",
        "2026-02-01 worker 121 idle",
        f"[lines 123-200 left out: {HANDLE}#L123-200]",
    ]


def test_the_heavier_line_comes_first_where_there_is_no_room_for_both() -> None:
    text = "\n".join(["alpha here", *["nothing"] * 50, "alpha and beta here", *["nothing"] * 50])
    shown = excerpt(text, {"alpha": 1.0, "beta": 1.0}, most_chars=20, handle=HANDLE)
    assert lines_of(shown) == ["alpha and beta here"]


def test_one_line_is_shown_even_where_it_is_over_the_bound() -> None:
    text = f"{'x' * 50}\nthe needle is here\n{'x' * 50}"
    assert "the needle is here" in excerpt(text, {"needl": 1.0}, most_chars=5, handle=HANDLE)


def test_of_a_text_without_the_query_the_beginning_is_shown() -> None:
    shown = excerpt(LOG, {"zebra": 1.0}, most_chars=60, handle=HANDLE)
    assert lines_of(shown) == LOG.split("\n")[:2]
    assert lines_of(excerpt("a\n" * 50, {}, most_chars=99, handle=HANDLE)) == ["a"] * 49
    assert lines_of(excerpt("a\n" * 50, {}, most_chars=1, handle=HANDLE)) == ["a"]


def test_of_a_line_too_long_the_stretch_around_the_heaviest_term_is_shown() -> None:
    line = f"{'a b ' * 400}the needle{' c d' * 400}"
    shown = excerpt(f"first\n{line}\nlast", {"needl": 1.0, "zebra": 9.0}, most_chars=900, handle=HANDLE)
    kept = re.search(r"\[(\d+) characters of the line left out\] (.*) \[(\d+) characters of the line left out\]", shown)
    assert kept is not None
    assert kept[2] in line
    assert "the needle" in kept[2]
    assert int(kept[1]) + len(kept[2]) + int(kept[3]) == len(line)
    beginning = excerpt(f"{line}\nlast", {"zebra": 9.0}, most_chars=700, handle=HANDLE)
    assert beginning.startswith("a b a b")


def test_a_very_long_line_is_searched_for_the_letters_of_a_term() -> None:
    line = f"{'{}' * 5000}error_code{'[]' * 5000}"
    shown = excerpt(f"first\n\n{line}", {"error_code": 1.0}, most_chars=700, handle=HANDLE)
    assert "error_code" in shown


def test_a_very_long_text_is_looked_at_from_its_beginning() -> None:
    text = "x y z\n" * 60_000 + "the needle"
    assert excerpt(text, {"needl": 1.0}, most_chars=12, handle=HANDLE).startswith("x y z\nx y z\n[lines 3-")


def test_no_room_is_refused() -> None:
    with pytest.raises(ConfigError, match="most_chars"):
        excerpt("text", {}, most_chars=0, handle=HANDLE)


@settings(deadline=None)
@given(st.text(alphabet="ab \n\r👨‍é", max_size=400), st.integers(1, 60))
def test_lines_are_those_of_the_text_and_gaps_add_up(text: str, most_chars: int) -> None:
    shown = excerpt(text, {"ab": 1.0, "ba": 0.5}, most_chars=most_chars, handle=HANDLE)
    if len(text) <= most_chars:
        assert shown == text
        return
    lines = text.split("\n")
    kept = lines_of(shown)
    left_out = sum(int(gap[2]) - int(gap[1]) + 1 for gap in re.findall(r"(#L(\d+)-(\d+)\])", shown))
    assert len(kept) + left_out == len(lines) - (lines[-1] == "")
    assert all(line in lines for line in kept)
