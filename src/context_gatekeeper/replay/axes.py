"""Axes of the charts over calls: round tick marks, short numbers, series drawn together to fewer points."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import floor, log10

__all__ = ["bucket_means", "round_ticks", "short_number"]

_LEAST = 1e-9
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def round_ticks(highest: float, most: int) -> list[float]:
    """Marks from 0 at equal round steps, the last at or above ``highest``; at most ``most`` + 1 of them.

    Args:
        highest: greatest value to be shown; one that is next to nothing is taken as 1.
        most: steps, 1 or more.
    """
    highest = highest if highest > _LEAST else 1.0
    power = 10.0 ** floor(log10(highest / most))
    step = next((power * one for one in _STEPS if power * one * most >= highest), power * 10)
    count = 1
    while step * count < highest:
        count += 1
    return [step * number for number in range(count + 1)]


def short_number(value: float) -> str:
    """A number as axes write it: ``0``, ``0.5``, ``250``, ``40K``, ``1.2M``."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{unit}"
    return f"{value:.3g}"


def bucket_means(values: Sequence[float], most: int) -> list[float]:
    """The values, or where there are more than ``most``, the means of as many neighbouring stretches."""
    count = len(values)
    if count <= most:
        return list(values)
    edges = [number * count // most for number in range(most + 1)]
    return [sum(values[start:end]) / (end - start) for start, end in pairwise(edges)]
