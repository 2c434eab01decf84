"""Charts as inline SVG, without script: lines over the calls of a session, and points with a name each.

Colours and dashes are classes (``s0`` ...) that the page's style gives a look, so that one chart serves a
dark and a light page. Numbers are rounded to a tenth of a unit of the drawing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from context_gatekeeper.replay.axes import bucket_means, round_ticks, short_number

__all__ = ["CHART_WIDTH", "call_chart", "point_chart"]

CHART_WIDTH = 760
_HEIGHT = 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 26, 44
_INNER_WIDTH, _INNER_HEIGHT = CHART_WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
_MOST_POINTS = 300
"""Of one line; more calls than that are drawn as means of neighbours."""
_Y_TICKS, _X_TICKS = 5, 8
_CHAR_WIDTH = 7.0
"""Of a label, about."""
_LINE_HEIGHT = 13.0
_LABEL_STEPS = 12
"""Half lines that a label may move up or down from its point."""


def call_chart(series: Mapping[str, Sequence[float]], classes: Mapping[str, str], *, title: str, unit: str) -> str:
    """A line for each series over the calls of a session, both axes from 0.

    Args:
        series: name -> a value for each call, the same number for all.
        classes: name -> class of its line.
        title: what the chart shows, for who cannot see it.
        unit: of the values.
    """
    calls = max((len(values) for values in series.values()), default=0)
    ticks = round_ticks(max((max(values, default=0.0) for values in series.values()), default=0.0), _Y_TICKS)
    marks = [mark for mark in round_ticks(calls, _X_TICKS) if mark == int(mark) and mark <= calls]
    told = "call" if calls <= _MOST_POINTS else f"call (each point is the mean of {calls / _MOST_POINTS:.1f} calls)"
    parts = [_frame(ticks, marks, ticks[-1], calls or 1, unit, told)]
    for name, values in series.items():
        means = bucket_means(values, _MOST_POINTS)
        points = (
            (_x((place + 1) * calls / len(means), calls), _y(value, ticks[-1])) for place, value in enumerate(means)
        )
        drawn = " ".join(f"{_short(x)},{_short(y)}" for x, y in points)
        parts.append(
            f'<polyline class="line {classes[name]}" points="{drawn}"><title>{escape(name)}</title></polyline>'
        )
    return _svg(title, parts)


def point_chart(
    points: Mapping[str, tuple[float, float]], classes: Mapping[str, str], *, title: str, x_unit: str, y_unit: str
) -> str:
    """A named point for each (x, y), both axes from 0; a name that would cover another moves down."""
    x_ticks = round_ticks(max((x for x, _ in points.values()), default=0.0), _X_TICKS)
    y_ticks = round_ticks(max((y for _, y in points.values()), default=0.0), _Y_TICKS)
    parts = [_frame(y_ticks, x_ticks, y_ticks[-1], x_ticks[-1], y_unit, x_unit)]
    places = {name: (_x(x, x_ticks[-1]), _y(y, y_ticks[-1])) for name, (x, y) in points.items()}
    taken = [(x - _GAP, y - _GAP, x + _GAP, y + _GAP) for x, y in places.values()]
    for name, (x, y) in sorted(places.items(), key=lambda item: item[1]):
        left, at = _label_place(x, y, len(name) * _CHAR_WIDTH, taken)
        told = ", ".join(short_number(value) for value in points[name])
        parts.append(
            f'<circle class="point {classes[name]}" cx="{_short(x)}" cy="{_short(y)}" r="4">'
            f"<title>{escape(name)}: {told}</title></circle>"
            f'<text class="name" x="{_short(left)}" y="{_short(at)}">{escape(name)}</text>'
        )
    return _svg(title, parts)


_GAP = 6.0
"""Between a point and its label."""
_Box = tuple[float, float, float, float]


def _label_place(x: float, y: float, width: float, taken: list[_Box]) -> tuple[float, float]:
    """Left end and base line of a label near its point: the nearest place, beside first, where nothing is yet."""
    right, left = x + _GAP + 2, x - _GAP - 2 - width
    sides = [side for side in (right, left) if side >= _LEFT and side + width <= CHART_WIDTH] or [right]
    for step in range(_LABEL_STEPS):
        for shift in (step, -step):
            for start in sides:
                at = y + 4 + shift * _LINE_HEIGHT / 2
                box = (start, at - 9, start + width, at + 3)
                if at < _HEIGHT - _BOTTOM and not any(_overlap(box, other) for other in taken):
                    taken.append(box)
                    return start, at
    return sides[0], y + 4


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _frame(
    y_ticks: Sequence[float], x_ticks: Sequence[float], highest_y: float, highest_x: float, y_unit: str, x_unit: str
) -> str:
    """Grid lines, marks and the names of the axes."""
    right, bottom = CHART_WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = [f'<text class="unit" x="{_LEFT}" y="14">{escape(y_unit)}</text>']
    for tick in y_ticks:
        y = _short(_y(tick, highest_y))
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="mark y" x="{_LEFT - 8}" y="{y}" dy="4">{short_number(tick)}</text>')
    for tick in x_ticks:
        x = _short(_x(tick, highest_x))
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{bottom}" y2="{bottom + 5}"/>')
        parts.append(f'<text class="mark x" x="{x}" y="{bottom + 18}">{short_number(tick)}</text>')
    parts.append(f'<text class="unit x" x="{right}" y="{_HEIGHT - 6}">{escape(x_unit)}</text>')
    return "".join(parts)


def _x(value: float, highest: float) -> float:
    return _LEFT + value / highest * _INNER_WIDTH


def _y(value: float, highest: float) -> float:
    return _TOP + (1 - value / highest) * _INNER_HEIGHT


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _svg(title: str, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {CHART_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
