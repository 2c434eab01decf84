"""The plot over calls: plain characters, honest axes, every series found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.entrypoints.cli.call_plot import call_plot


def test_a_plot_has_its_unit_marks_calls_and_legend() -> None:
    assert call_plot({"up": [0, 10, 20, 30, 40], "flat": [20] * 5}, columns=29, unit="tokens") == [
        "tokens",
        "40 +                    aaaaa",
        "   |",
        "   |",
        "   |",
        "30 +               aaaaa",
        "   |",
        "   |",
        "   |",
        "20 +bbbbbbbbbb*****bbbbbbbbbb",
        "   |",
        "   |",
        "   |",
        "10 +     aaaaa",
        "   |",
        "   |",
        "   |",
        " 0 +aaaaa",
        "   ++-------------------+----",
        "    1                   5",
        "    call",
        "a up   b flat   * several",
    ]


def test_nothing_to_plot_gives_no_lines() -> None:
    assert call_plot({}, columns=80, unit="tokens") == []
    assert call_plot({"a": []}, columns=80, unit="tokens") == []


def test_a_column_that_stands_for_several_calls_says_so() -> None:
    lines = call_plot({"a": list(range(400))}, columns=80, unit="tokens")
    assert lines[-2] == "     call; a column is the mean of 5.3 calls"
    assert lines[-3].split() == ["1", "100", "200", "300"]
    assert lines[-4].count("+") == 5, "the corner, and a mark for each number"


def test_two_plots_can_share_a_scale() -> None:
    low = call_plot({"low": [20.0]}, columns=60, unit="tokens", highest=100.0)
    high = call_plot({"high": [100.0]}, columns=60, unit="tokens", highest=100.0)
    assert [line[:4] for line in low][1:-1] == [line[:4] for line in high][1:-1]
    assert high[1].startswith("100 +aaa")
    assert low[1] == "100 +"
    assert any(line.startswith(" 20 +aaa") for line in low)


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_a_plot_fits_its_columns(columns: int) -> None:
    series = {f"policy-with-a-long-name-{number}": [number * 1000.0] * 300 for number in range(12)}
    lines = call_plot(series, columns=columns, unit="prompt tokens")
    assert max(map(len, lines)) <= columns
    assert max(map(len, lines)) > columns - 3


@given(
    st.integers(1, 120).flatmap(
        lambda calls: st.lists(st.lists(st.floats(0, 3e5), min_size=calls, max_size=calls), min_size=1, max_size=6)
    ),
    st.integers(0, 150),
)
def test_every_plot_is_ascii_and_shows_each_series_or_where_several_meet(
    listed: list[list[float]], columns: int
) -> None:
    series = {str(number): values for number, values in enumerate(listed)}
    lines = call_plot(series, columns=columns, unit="tokens")
    assert all(line.isascii() and line == line.rstrip() for line in lines)
    field = "".join(line for line in lines[1:] if "|" in line or "+" in line)
    for letter in "abcdef"[: len(series)]:
        assert letter in field or "*" in field
