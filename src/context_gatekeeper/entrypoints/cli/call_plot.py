"""A plot over the calls of a session, in plain characters: a letter for each series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from context_gatekeeper.replay.axes import bucket_means, round_ticks, short_number

__all__ = ["call_plot"]

_ROWS_A_TICK = 4
_TICKS = 5
_LEAST_COLUMNS = 20
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SEVERAL = "*"
_MARK_COLUMNS = 10
"""Between two marks below the plot, at least."""


def call_plot(
    series: Mapping[str, Sequence[float]], *, columns: int, unit: str, highest: float | None = None
) -> list[str]:
    """Lines of a plot, its legend below.

    Args:
        series: name -> a value for each call, the same number for all; at most 26.
        columns: of the whole plot; never made narrower than 30.
        unit: what the values are; stands above the plot.
        highest: value that the scale must hold, at least the highest of the series; None for that one.

    A value stands on the nearest row, so that it is off by half a row at most. Where a column has more
    than one call it shows their mean, and the axis says so; a call may also take several columns.
    """
    calls = max((len(values) for values in series.values()), default=0)
    if not calls:
        return []
    ticks = round_ticks(highest or max(max(values) for values in series.values()), _TICKS)
    rows = _ROWS_A_TICK * (len(ticks) - 1)
    labels = [short_number(tick) for tick in ticks]
    margin = max(map(len, labels))
    width = max(_LEAST_COLUMNS, columns - margin - 2)
    grid = [[" "] * width for _ in range(rows + 1)]
    for letter, values in zip(_LETTERS, series.values(), strict=False):
        for column, value in enumerate(_stretched(values, width)):
            row = min(rows, round(value / ticks[-1] * rows))
            grid[row][column] = letter if grid[row][column] == " " else _SEVERAL
    lines = [unit]
    for row in range(rows, -1, -1):
        label = labels[row // _ROWS_A_TICK] if row % _ROWS_A_TICK == 0 else ""
        edge = "+" if label else "|"
        lines.append(f"{label:>{margin}} {edge}{''.join(grid[row])}".rstrip())
    return [*lines, *_call_axis(calls, margin, width), *_legend(series, columns)]


def _stretched(values: Sequence[float], width: int) -> list[float]:
    """One value a column."""
    means = bucket_means(values, width)
    return [means[column * len(means) // width] for column in range(width)]


def _call_axis(calls: int, margin: int, width: int) -> list[str]:
    """The line below the plot with a mark at round call numbers, these, and what a column is."""
    rule, numbers = ["-"] * width, [" "] * width
    marks = [1, *(int(tick) for tick in round_ticks(calls, max(1, width // _MARK_COLUMNS))[1:] if tick == int(tick))]
    free = 0
    for call in marks:
        column = (call - 1) * width // calls
        text = str(call)
        if call <= calls and free <= column <= width - len(text):
            rule[column] = "+"
            numbers[column : column + len(text)] = text
            free = column + len(text) + 1
    told = "call" if calls <= width else f"call; a column is the mean of {calls / width:.1f} calls"
    indent = " " * (margin + 1)
    return [f"{indent}+{''.join(rule)}", f"{indent} {''.join(numbers)}".rstrip(), f"{indent} {told}"]


def _legend(series: Mapping[str, Sequence[float]], columns: int) -> list[str]:
    lines = [""]
    parts = [f"{letter} {name}" for letter, name in zip(_LETTERS, series, strict=False)]
    for part in [*parts, f"{_SEVERAL} several"]:
        if lines[-1] and len(lines[-1]) + len(part) + 3 > columns:
            lines.append("")
        lines[-1] += f"   {part}" if lines[-1] else part
    return lines
