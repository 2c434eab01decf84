"""``evals curve``: how many times cheaper the planner is at each share of calls that miss something.

One figure says little, since a planner that misses more is cheaper. So for each price profile the planner runs once for
each of several targets (`PagerParams.fault_target`), all beside each other over the same recorded sessions and beside
append-only (definitions of the goals, ``replay``), and the curve is read off at round shares of faulting calls.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import exp, log
from pathlib import Path
from typing import Any

from context_gatekeeper.core.economics import PRICES, PRICES_AS_OF, PriceProfile
from context_gatekeeper.engine.pager_params import OURS, OURS_CAREFUL, OURS_FRUGAL, PagerParams
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.evals.metrics import bootstrap_interval, share
from context_gatekeeper.replay.figures import SessionFigures, policy_figures
from context_gatekeeper.replay.policies import Ours
from context_gatekeeper.replay.run import (
    APPEND_ONLY,
    PolicyMaker,
    ReplayOptions,
    ReplaySession,
    chain_sessions,
    replay_session,
    token_factor,
)
from context_gatekeeper.transcripts.agent_sessions import read_sessions

__all__ = [
    "CURVE_PRICES",
    "DEFAULT_TARGETS",
    "READ_AT",
    "CurveSettings",
    "half_of",
    "measure_curve",
    "start_factor",
    "times_at",
]

CURVE_PRICES = tuple(name for name in PRICES if name != "local")
"""What ``all`` stands for: an own model is billed by no tokens that were read, and nothing is ever rewritten for it."""
DEFAULT_TARGETS = (0.01, 0.02, 0.05, 0.08, 0.1)
READ_AT = (0.01, 0.02, 0.05, 0.08, 0.1)
"""Shares of faulting calls at which the curve is read off."""
_SHIPPED = (OURS_CAREFUL, OURS, OURS_FRUGAL)
"""Settings with a target and a start that belong together, by rising target."""
_KINDS = {
    "strict": "faulting_call_share",
    "words": "faulting_call_share_words",
    "hard": "hard_faulting_call_share",
}
"""Kind of a fault -> its key in a row."""
_COPIED = (
    *_KINDS.values(),
    "evidence_coverage",
    "evidence_coverage_words",
    "mean_prompt_tokens",
    "worst_session",
)
"""Keys of the contract that a row has under the same names."""
_INTERVAL_PERCENT = 90
_LEAST_SESSIONS = 3
"""For an interval: fewer give two figures and a guess."""
_SessionPair = tuple[SessionFigures, SessionFigures]
"""Of one session: under one setting, and under append-only."""


@dataclass(frozen=True, slots=True)
class CurveSettings:
    """What a curve is measured over.

    Raises:
        ConfigError: a price profile that there is none of, a number out of range, or nothing to measure.
    """

    prices: tuple[str, ...] = ("anthropic-5m",)
    """Names of `PRICES`; each gets a curve of its own."""
    targets: tuple[float, ...] = DEFAULT_TARGETS
    """Shares of faulting calls that the planner steers to, in (0, 1]; each is one row."""
    min_calls: int = 1
    """Shorter sessions, or chains, are left out."""
    resident_tokens: int | None = 8000
    """System text and tools, in every prompt; None: as the first call's usage shows."""
    uses_gaps: bool = False
    """Whether real gaps between calls let the cache go cold."""
    chain_calls: int = 0
    """Join the sessions of a file to chains of so many calls; 0: replay each alone."""
    half: int | None = None
    """Sessions of this half alone (`half_of`), 0 or 1; None: all."""

    def __post_init__(self) -> None:
        for name in self.prices:
            if name not in PRICES:
                raise ConfigError(
                    f"price profile {name!a}", "there is none of this name", f"use all, or some of {', '.join(PRICES)}"
                )
        if not self.prices or not self.targets:
            raise ConfigError("the curve", "no price profile or no target is named", "name one of each at least")
        for target in self.targets:
            if not 0.0 < target <= 1.0:
                raise ConfigError(f"target {target!a}", "it is no share of calls", "pass more than 0, 1 at most")
        if self.half not in (None, 0, 1):
            raise ConfigError(f"half {self.half!a}", "there are two halves", "pass 0 or 1")
        for name, number in (
            ("min_calls", self.min_calls),
            ("resident_tokens", self.resident_tokens or 0),
            ("chain_calls", self.chain_calls),
        ):
            if not 0 <= number <= 10_000_000:
                raise ConfigError(f"{name} {number!a}", "it is out of range", "pass 0 to 10000000")


def half_of(session_id: str) -> int:
    """Which half a session belongs to, 0 or 1, by its id: tables are learned on one and reported on the other."""
    return zlib.crc32(session_id.encode("utf-8", "surrogatepass")) & 1


def start_factor(target: float) -> float:
    """Worth of a fault from which the steering to ``target`` begins.

    Power laws through the shipped settings, the outer ones drawn out beyond them, within the bounds of the steering.
    """
    points = [
        (log(shipped.fault_target), log(shipped.fault_price_factor)) for shipped in _SHIPPED if shipped.fault_target
    ]
    place = min(max(bisect_left(points, (log(target),)), 1), len(points) - 1)
    (left, low), (right, high) = points[place - 1], points[place]
    factor = exp(low + (high - low) * (log(target) - left) / (right - left))
    return min(max(factor, OURS.factor_bounds[0]), OURS.factor_bounds[1])


def times_at(points: Sequence[tuple[float, float]], faulting: float) -> float | None:
    """Times cheaper at a share of faulting calls, read off linearly; None outside what was measured.

    Args:
        points: (share of faulting calls, times cheaper) of each setting; of equal shares the cheapest counts.
        faulting: the share to read at.
    """
    best: list[tuple[float, float]] = [
        (at, max(times for _, times in same)) for at, same in groupby(sorted(points), key=lambda point: point[0])
    ]
    place = bisect_left(best, (faulting,))
    if place == len(best):
        return None
    right, high = best[place]
    if right == faulting:
        return high
    if not place:
        return None
    left, low = best[place - 1]
    return low + (high - low) * (faulting - left) / (right - left)


def measure_curve(
    paths: Sequence[Path],
    settings: CurveSettings | None = None,
    *,
    on_call: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Rows by price profile and target, and each profile's curve read off at round shares of faulting calls.

    Args:
        paths: files of agent sessions, in any format that `read_sessions` knows; token estimates are calibrated
            file by file.
        settings: what to measure; the defaults of `CurveSettings`.
        on_call: hears after each model call how many are done, of how many, over all price profiles.

    Raises:
        ConfigError: no session is left to replay.
    """
    settings = settings or CurveSettings()
    work = _chosen(paths, settings)
    if not work:
        raise ConfigError(
            "sessions to replay", "none is of this half and has enough model calls", "lower --min-calls or --chain"
        )
    calls = sum(item.calls for item, _ in work)
    names = tuple(dict.fromkeys(settings.prices))
    done = 0

    def count_call() -> None:
        nonlocal done
        done += 1
        if on_call is not None:
            on_call(done, calls * len(names))

    return {
        "sessions": len(work),
        "calls": calls,
        "prices_as_of": PRICES_AS_OF,
        "resident_tokens": "logged" if settings.resident_tokens is None else settings.resident_tokens,
        "gaps": "real" if settings.uses_gaps else "none",
        "min_calls": settings.min_calls,
        "chain": settings.chain_calls,
        "half": settings.half,
        "prices": {name: _curve(work, PRICES[name], settings, count_call) for name in names},
    }


def _chosen(paths: Sequence[Path], settings: CurveSettings) -> list[tuple[ReplaySession, float]]:
    """What to replay, each with its file's calibration of token counts."""
    work: list[tuple[ReplaySession, float]] = []
    for path in paths:
        sessions = read_sessions(path)
        factor = token_factor(sessions)
        if settings.half is not None:
            sessions = [session for session in sessions if half_of(session.session_id) == settings.half]
        if settings.chain_calls:
            items = chain_sessions(sessions, settings.chain_calls)
        else:
            items = [ReplaySession(session) for session in sessions]
        work += [(item, factor) for item in items if item.calls >= max(1, settings.min_calls)]
    return work


def _curve(
    work: Sequence[tuple[ReplaySession, float]],
    prices: PriceProfile,
    settings: CurveSettings,
    on_call: Callable[[], None],
) -> dict[str, Any]:
    """One profile: every setting goes over a session in the same replay."""
    targets = sorted(set(settings.targets))
    makers = {str(target): _ours(prices, _params(target)) for target in targets}
    pairs: dict[float, list[_SessionPair]] = {target: [] for target in targets}
    for item, factor in work:
        options = ReplayOptions(prices, settings.resident_tokens, settings.uses_gaps, factor)
        found = replay_session(item, makers, options, on_call=on_call)[0]
        for target in targets:
            pairs[target].append((found[str(target)], found[APPEND_ONLY]))
    rows = [_row(prices.name, target, pairs[target]) for target in targets]
    return {"rows": rows, "at_faults": {kind: _read_off(rows, key) for kind, key in _KINDS.items()}}


def _params(target: float) -> PagerParams:
    return replace(OURS, fault_target=target, fault_price_factor=start_factor(target))


def _ours(prices: PriceProfile, params: PagerParams) -> PolicyMaker:
    return lambda log, resident_tokens: Ours(log, prices, resident_tokens, params)


def _row(prices: str, target: float, pairs: Sequence[_SessionPair]) -> dict[str, Any]:
    """Ratios are ratios of sums over the sessions, shares are over all calls and needs."""
    figures = policy_figures([one for one, _ in pairs], [reference for _, reference in pairs])
    interval = None
    if len(pairs) >= _LEAST_SESSIONS:
        interval = bootstrap_interval(pairs, _times_cheaper, percent=_INTERVAL_PERCENT)
    return {
        "prices": prices,
        "target": target,
        "start_factor": start_factor(target),
        "times_cheaper": _times_cheaper(pairs),
        "times_cheaper_interval": interval,
        **{key: figures[key] for key in _COPIED},
        "sessions": len(pairs),
        "calls": sum(len(one.call_units) for one, _ in pairs),
    }


def _times_cheaper(pairs: Sequence[_SessionPair]) -> float:
    return share(sum(reference.bill.units for _, reference in pairs), sum(one.bill.units for one, _ in pairs))


def _read_off(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, float | None]:
    points = [(row[key], row["times_cheaper"]) for row in rows]
    return {str(faulting): times_at(points, faulting) for faulting in READ_AT}
