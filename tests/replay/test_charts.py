"""Axes and drawings: round marks, honest places, every name there and escaped."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.replay.axes import bucket_means, round_ticks, short_number
from context_gatekeeper.replay.charts import call_chart, point_chart

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("highest", "most", "ticks"),
    [
        (0, 4, [0, 0.25, 0.5, 0.75, 1.0]),
        (4, 4, [0, 1, 2, 3, 4]),
        (41, 4, [0, 20, 40, 60]),
        (154_000, 5, [0, 50_000, 100_000, 150_000, 200_000]),
        (1, 1, [0, 1]),
        (7, 1, [0, 10]),
    ],
)
def test_marks_are_round_and_reach_the_highest_value(highest: float, most: int, ticks: list[float]) -> None:
    assert round_ticks(highest, most) == pytest.approx(ticks)


@given(st.floats(1e-6, 1e12), st.integers(1, 10))
def test_marks_are_few_and_the_last_is_never_below_the_highest_value(highest: float, most: int) -> None:
    ticks = round_ticks(highest, most)
    assert 2 <= len(ticks) <= most + 1
    assert ticks[-1] >= highest > ticks[-2] * 0.999999
    assert ticks[0] == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.25, "0.25"), (250, "250"), (40_000, "40K"), (1_250_000, "1.25M"), (3e9, "3G"), (-2000, "-2K")],
)
def test_numbers_of_an_axis_are_short(value: float, text: str) -> None:
    assert short_number(value) == text


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.integers(1, 20))
def test_means_of_stretches_keep_to_the_range_and_the_number(values: list[float], most: int) -> None:
    means = bucket_means(values, most)
    assert len(means) == min(most, len(values))
    assert min(values) - 1e-6 <= min(means) <= max(means) <= max(values) + 1e-6


def test_stretches_that_divide_evenly_are_plain_means() -> None:
    assert bucket_means([1, 3, 5, 7], 2) == [2.0, 6.0]


def points_of(drawing: ET.Element) -> list[list[tuple[float, float]]]:
    lines = [element.attrib["points"] for element in drawing.iter("polyline")]
    return [[(float(x), float(y)) for x, y in (pair.split(",") for pair in line.split())] for line in lines]


def test_a_line_is_drawn_for_each_series_on_the_same_scale() -> None:
    svg = call_chart({"a": [0, 5, 10], "b": [10, 10, 10]}, {"a": "s0", "b": "s1"}, title="t", unit="tokens")
    drawing = ET.fromstring(svg)
    first, second = points_of(drawing)
    assert [x for x, _ in first] == [x for x, _ in second] == sorted(x for x, _ in first)
    assert first[0][1] > first[1][1] > first[2][1] == second[0][1] == second[2][1]
    assert [element.text for element in drawing.iter("title")] == ["a", "b"]
    texts = [element.text for element in drawing.iter("text")]
    assert {"tokens", "call", "0", "10", "1", "3"} <= set(texts)
    assert drawing.attrib["aria-label"] == "t"


def test_many_calls_are_drawn_as_means_and_the_axis_says_so() -> None:
    svg = call_chart({"a": list(range(900))}, {"a": "s0"}, title="t", unit="tokens")
    drawing = ET.fromstring(svg)
    assert len(points_of(drawing)[0]) == 300
    assert "call (a point is the mean of 3.0)" in [element.text for element in drawing.iter("text")]


def test_names_are_escaped() -> None:
    nasty = '<script>"&'
    for svg in (
        call_chart({nasty: [1.0]}, {nasty: "s0"}, title=nasty, unit=nasty),
        point_chart({nasty: (1.0, 2.0)}, {nasty: "s0"}, title=nasty, x_unit=nasty, y_unit=nasty),
    ):
        assert "<script>" not in svg
        assert ET.fromstring(svg).attrib["aria-label"] == nasty


@given(
    st.dictionaries(
        st.sampled_from([f"policy-{number}" for number in range(13)]),
        st.tuples(st.floats(0, 50), st.floats(0, 6)),
        min_size=1,
    )
)
def test_every_point_has_its_name_inside_the_drawing(points: dict[str, tuple[float, float]]) -> None:
    svg = point_chart(points, dict.fromkeys(points, "s0"), title="t", x_unit="%", y_unit="times")
    drawing = ET.fromstring(svg)
    names = [element for element in drawing.iter("text") if element.attrib["class"] == "name"]
    assert {element.text for element in names} == set(points)
    assert len(list(drawing.iter("circle"))) == len(points)
    for element in names:
        assert 0 <= float(element.attrib["x"]) <= 760


def test_a_name_that_had_to_move_is_tied_to_its_point() -> None:
    crowd = {f"policy-{number}": (1.0, 1.0) for number in range(6)}
    svg = point_chart(crowd, dict.fromkeys(crowd, "s0"), title="t", x_unit="%", y_unit="times")
    assert 'class="lead"' in svg
    assert 'class="lead"' not in point_chart({"a": (1.0, 1.0)}, {"a": "s0"}, title="t", x_unit="%", y_unit="times")
