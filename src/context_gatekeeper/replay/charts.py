"""Charts as inline SVG, without script: lines over the calls of a session, and points with a name each.

Colours and dashes are classes that the page's style gives a look, so that one chart serves a dark and a
light page. Numbers are rounded to a tenth of a unit of the drawing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from context_gatekeeper.replay.axes import bucket_means, round_ticks, short_number

__all__ = ["call_chart", "point_chart"]

_WIDTH = 760
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 26, 44
_CALL_HEIGHT, _POINT_HEIGHT = 300, 420
_MOST_POINTS = 300
"""Of one line; more calls than that are drawn as means of neighbours."""
_Y_TICKS, _X_TICKS = 5, 8
_CHAR_WIDTH, _LINE_HEIGHT = 7.0, 13.0
"""Of a label, about."""
_GAP = 6.0
"""Around a point."""
_LABEL_STEPS = 16
"""Half lines that a label may move up or down from its point."""
_Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class _Field:
    """Where values stand in the drawing."""

    height: int
    x_ticks: Sequence[float]
    y_ticks: Sequence[float]
    highest_x: float

    @property
    def bottom(self) -> int:
        return self.height - _BOTTOM

    def x(self, value: float) -> float:
        return _LEFT + value / self.highest_x * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _TOP + (1 - value / self.y_ticks[-1]) * (self.bottom - _TOP)


def call_chart(series: Mapping[str, Sequence[float]], classes: Mapping[str, str], *, title: str, unit: str) -> str:
    """A line for each series over the calls of a session, both axes from 0.

    Args:
        series: name -> a value for each call, the same number, one or more, for all.
        classes: name -> class of its line.
        title: what the chart shows, for who cannot see it.
        unit: of the values.
    """
    calls = max(len(values) for values in series.values())
    x_ticks = [tick for tick in round_ticks(calls, _X_TICKS) if tick == int(tick) and tick <= calls]
    y_ticks = round_ticks(max(max(values) for values in series.values()), _Y_TICKS)
    field = _Field(_CALL_HEIGHT, x_ticks, y_ticks, calls)
    told = "call" if calls <= _MOST_POINTS else f"call (a point is the mean of {calls / _MOST_POINTS:.1f})"
    parts = [_frame(field, unit, told)]
    for name, values in series.items():
        means = bucket_means(values, _MOST_POINTS)
        steps = ((field.x((place + 1) * calls / len(means)), field.y(value)) for place, value in enumerate(means))
        drawn = " ".join(f"{_short(x)},{_short(y)}" for x, y in steps)
        parts.append(
            f'<polyline class="line {classes[name]}" points="{drawn}"><title>{escape(name)}</title></polyline>'
        )
    return _svg(field, title, parts)


def point_chart(
    points: Mapping[str, tuple[float, float]], classes: Mapping[str, str], *, title: str, x_unit: str, y_unit: str
) -> str:
    """A named point for each (x, y), both axes from 0; a line leads to a name that had to move away.

    Args:
        points: name -> place, neither number below 0; one or more.
        classes: name -> class of its point.
        title: what the chart shows, for who cannot see it.
        x_unit: of the first number.
        y_unit: of the second.
    """
    x_ticks = round_ticks(max(x for x, _ in points.values()), _X_TICKS)
    y_ticks = round_ticks(max(y for _, y in points.values()), _Y_TICKS)
    field = _Field(_POINT_HEIGHT, x_ticks, y_ticks, x_ticks[-1])
    places = {name: (field.x(x), field.y(y)) for name, (x, y) in points.items()}
    taken = [(x - _GAP, y - _GAP, x + _GAP, y + _GAP) for x, y in places.values()]
    parts = [_frame(field, y_unit, x_unit)]
    for name, (x, y) in sorted(places.items(), key=lambda item: item[1]):
        box = _label_box(field, x, y, len(name) * _CHAR_WIDTH, taken)
        taken.append(box)
        if not box[1] <= y <= box[3]:
            near = box[0] if box[0] > x else box[2]
            middle = (box[1] + box[3]) / 2
            parts.append(
                f'<line class="lead" x1="{_short(x)}" y1="{_short(y)}" x2="{_short(near)}" y2="{_short(middle)}"/>'
            )
        told = ", ".join(short_number(value) for value in points[name])
        parts.append(
            f'<circle class="point {classes[name]}" cx="{_short(x)}" cy="{_short(y)}" r="4">'
            f"<title>{escape(name)}: {told}</title></circle>"
            f'<text class="name" x="{_short(box[0])}" y="{_short(box[3] - 3)}">{escape(name)}</text>'
        )
    return _svg(field, title, parts)


def _label_box(field: _Field, x: float, y: float, width: float, taken: Sequence[_Box]) -> _Box:
    """Room for a label beside its point, as near as it goes: (left, top, right, bottom)."""
    right, left = x + 2 * _GAP, x - 2 * _GAP - width
    starts = [start for start in (right, left) if start >= _LEFT and start + width <= _WIDTH] or [right]
    boxes = [
        (start, y - 7 + shift * _LINE_HEIGHT / 2, start + width, y + 7 + shift * _LINE_HEIGHT / 2)
        for step in range(_LABEL_STEPS)
        for start in starts
        for shift in (step, -step)
    ]
    free = (box for box in boxes if box[3] <= field.bottom and not any(_overlap(box, other) for other in taken))
    return next(free, boxes[0])


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _frame(field: _Field, y_unit: str, x_unit: str) -> str:
    """Grid lines, marks and the names of the axes."""
    right, bottom = _WIDTH - _RIGHT, field.bottom
    parts = [f'<text class="unit" x="{_LEFT}" y="14">{escape(y_unit)}</text>']
    for tick in field.y_ticks:
        y = _short(field.y(tick))
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="mark y" x="{_LEFT - 8}" y="{y}" dy="4">{short_number(tick)}</text>')
    for tick in field.x_ticks:
        x = _short(field.x(tick))
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{bottom}" y2="{bottom + 5}"/>')
        parts.append(f'<text class="mark x" x="{x}" y="{bottom + 18}">{short_number(tick)}</text>')
    parts.append(f'<text class="unit x" x="{right}" y="{field.height - 6}">{escape(x_unit)}</text>')
    return "".join(parts)


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _svg(field: _Field, title: str, parts: Sequence[str]) -> str:
    inner = "".join(parts)
    return f'<svg viewBox="0 0 {_WIDTH} {field.height}" role="img" aria-label="{escape(title)}">{inner}</svg>'
