"""Figures of the evaluations: shares, ranking quality, F1, bootstrap intervals."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from math import log2
from typing import TypeVar

__all__ = [
    "FEW_CONVERSATIONS",
    "FEW_QUESTIONS",
    "bootstrap_interval",
    "f1_figures",
    "hit_at",
    "mean",
    "mean_intervals",
    "mean_or_none",
    "ndcg_at",
    "recall_at",
    "recall_in_tokens",
    "rests_on_few",
    "share",
]

FEW_QUESTIONS = 200
"""A figure over fewer questions is reported with its interval ..."""
FEW_CONVERSATIONS = 30
"""... and so is one over fewer conversations."""
_RESAMPLES = 500
"""Enough for the second decimal of a 95 % interval."""
_SEED = 20_261_130
_Item = TypeVar("_Item")


def share(part: float, whole: float) -> float:
    """``part / whole``; 0.0 when there is nothing to share."""
    return part / whole if whole else 0.0


def mean(figures: Sequence[float]) -> float:
    """Arithmetic mean; 0.0 for none."""
    return sum(figures) / len(figures) if figures else 0.0


def mean_or_none(figures: Sequence[float]) -> float | None:
    """Arithmetic mean; None for none, so that an absent figure is not taken for a bad one."""
    return sum(figures) / len(figures) if figures else None


def recall_at(ranked: Sequence[str], gold: Collection[str], limit: int) -> float:
    """Share of ``gold`` among the first ``limit`` of ``ranked``, in [0, 1]."""
    return share(len(set(gold).intersection(ranked[:limit])), len(gold))


def hit_at(ranked: Sequence[str], gold: Collection[str], limit: int) -> float:
    """1.0 when at least one of ``gold`` is among the first ``limit`` of ``ranked``, else 0.0."""
    return float(not set(gold).isdisjoint(ranked[:limit]))


def ndcg_at(ranked: Sequence[str], gold: Collection[str], limit: int) -> float:
    """Normalised discounted cumulative gain with binary relevance, in [0, 1].

    The ideal ranking holds ``min(limit, len(gold))`` gold items first.
    """
    gain = sum(1 / log2(place + 2) for place, one in enumerate(ranked[:limit]) if one in gold)
    ideal = sum(1 / log2(place + 2) for place in range(min(limit, len(gold))))
    return share(gain, ideal)


def recall_in_tokens(
    ranked: Sequence[str], gold: Collection[str], limits: Sequence[int], count_tokens: Callable[[str], int]
) -> dict[int, float]:
    """Share of ``gold`` in the ranked list cut before the item that crosses each token limit.

    ``limits`` ascend; ``count_tokens`` gives the tokens of an item and is asked for no item
    behind the one that crosses the last limit.
    """
    shares: dict[int, float] = {}
    open_limits = list(limits)
    wanted = set(gold)
    spent = found = 0
    for one in ranked:
        spent += count_tokens(one)
        while open_limits and spent > open_limits[0]:
            shares[open_limits.pop(0)] = share(found, len(gold))
        if not open_limits:
            break
        found += one in wanted
    shares.update((limit, share(found, len(gold))) for limit in open_limits)
    return shares


def f1_figures(hits: int, false: int, missed: int) -> tuple[float, float, float]:
    """(precision, recall, F1) of the positive class; each 0.0 when it rests on nothing."""
    return share(hits, hits + false), share(hits, hits + missed), share(2 * hits, 2 * hits + false + missed)


def bootstrap_interval(
    items: Sequence[_Item], statistic: Callable[[Sequence[_Item]], float], *, percent: int = 95
) -> list[float] | None:
    """Percentile interval of ``statistic`` over resampled ``items``; the same on every run; None for none.

    ``percent``: how many of the resamples lie inside, 50 to 99.
    """
    if not items:
        return None
    rng = random.Random(_SEED)
    figures = sorted(statistic(rng.choices(items, k=len(items))) for _ in range(_RESAMPLES))
    tail = _RESAMPLES * (100 - percent) // 200
    return [figures[tail], figures[-1 - tail]]


def mean_intervals(figures: Mapping[str, Sequence[float]]) -> dict[str, list[float] | None]:
    """Interval of the mean of each named list."""
    return {name: bootstrap_interval(values, mean) for name, values in figures.items()}


def rests_on_few(questions: int, conversations: int = FEW_CONVERSATIONS) -> bool:
    """Whether a figure over so many questions and conversations needs its interval beside it."""
    return questions < FEW_QUESTIONS or conversations < FEW_CONVERSATIONS
