"""Figures of the evaluations: shares, ranking quality, F1, bootstrap intervals."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import log2

__all__ = ["bootstrap_interval", "f1_figures", "mean", "ndcg_at", "recall_at", "share"]

_RESAMPLES = 1000
_SEED = 20_261_130


def share(part: float, whole: float) -> float:
    """``part / whole``; 0.0 when there is nothing."""
    return part / whole if whole else 0.0


def mean(figures: Sequence[float]) -> float:
    """Arithmetic mean; 0.0 for none."""
    return sum(figures) / len(figures) if figures else 0.0


def recall_at(ranked: Sequence[str], gold: frozenset[str], limit: int) -> float:
    """Share of ``gold`` among the first ``limit`` of ``ranked``."""
    return share(len(gold.intersection(ranked[:limit])), len(gold))


def ndcg_at(ranked: Sequence[str], gold: frozenset[str], limit: int) -> float:
    """Normalised discounted cumulative gain with binary relevance."""
    gain = sum(1 / log2(place + 2) for place, one in enumerate(ranked[:limit]) if one in gold)
    ideal = sum(1 / log2(place + 2) for place in range(min(limit, len(gold))))
    return share(gain, ideal)


def f1_figures(hits: int, false: int, missed: int) -> tuple[float, float, float]:
    """(precision, recall, F1) of the positive class."""
    return share(hits, hits + false), share(hits, hits + missed), share(2 * hits, 2 * hits + false + missed)


def bootstrap_interval(figures: Sequence[float]) -> list[float]:
    """95 % bootstrap interval of the mean, 1,000 resamples with a fixed seed; [0, 0] for none."""
    if not figures:
        return [0.0, 0.0]
    rng = random.Random(_SEED)  # noqa: S311 - statistics
    means = sorted(mean(rng.choices(figures, k=len(figures))) for _ in range(_RESAMPLES))
    return [means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES) - 1]]
