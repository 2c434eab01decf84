"""The policies by name, as `cgk replay --policy` takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from context_gatekeeper.core.economics import PriceProfile
from context_gatekeeper.engine.pager_params import OURS, OURS_CAREFUL, OURS_FRUGAL, PagerParams
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.replay.clairvoyant import Clairvoyant, last_uses
from context_gatekeeper.replay.policies import (
    AppendOnly,
    AutoCompact,
    MaskResults,
    Ours,
    SlidingWindow,
    SlimAtBirth,
)
from context_gatekeeper.replay.reselect import Reselect
from context_gatekeeper.replay.run import PolicyMaker
from context_gatekeeper.types import AgentSession

__all__ = ["OUR_POLICIES", "POLICY_NAMES", "policy_makers"]

_OURS = {"ours": OURS, "ours-frugal": OURS_FRUGAL, "ours-careful": OURS_CAREFUL}
_FIXED: dict[str, PolicyMaker] = {
    "append-only": lambda log, _resident: AppendOnly(log),
    "window-20k": lambda log, _resident: SlidingWindow(log, 20_000),
    "window-40k": lambda log, _resident: SlidingWindow(log, 40_000),
    "mask-100k": lambda log, resident: MaskResults(log, resident, 100_000),
    "mask-60k": lambda log, resident: MaskResults(log, resident, 60_000, clear_at_least=20_000, needs_all=True),
    "auto-compact-160k": lambda log, resident: AutoCompact(log, resident, 160_000),
    "slim-2k": lambda log, _resident: SlimAtBirth(log),
    "reselect": lambda log, _resident: Reselect(log),
}
_BOUNDS = {"clairvoyant-seen": True, "clairvoyant-exact": False}
OUR_POLICIES = tuple(_OURS)
POLICY_NAMES = (*_FIXED, *_OURS, *_BOUNDS)
"""In the order in which they are reported."""


def policy_makers(
    names: Sequence[str],
    session: AgentSession,
    prices: PriceProfile,
    *,
    fault_price: float | None = None,
    fault_target: float | None = None,
) -> dict[str, PolicyMaker]:
    """Makers of the named policies for one session.

    Args:
        names: of `POLICY_NAMES`.
        session: what the clairvoyant ones look ahead in.
        prices: what the provider charges.
        fault_price: fixes the knob of our policies; None leaves each its own.
        fault_target: share of faulting calls that they steer to; None leaves each its own.

    Raises:
        ConfigError: an unknown name.
    """

    @cache
    def uses() -> dict[str, int]:
        return last_uses(session)

    makers: dict[str, PolicyMaker] = {}
    for name in names:
        if name in _FIXED:
            makers[name] = _FIXED[name]
        elif name in _OURS:
            makers[name] = _ours(_with_knob(_OURS[name], fault_price, fault_target), prices)
        elif name in _BOUNDS:
            makers[name] = _bound(uses, seen=_BOUNDS[name])
        else:
            raise ConfigError(f"policy {name!a}", "there is none of this name", f"use one of {', '.join(POLICY_NAMES)}")
    return makers


def _with_knob(params: PagerParams, fault_price: float | None, fault_target: float | None) -> PagerParams:
    if fault_price is not None:
        params = replace(params, fault_price_factor=fault_price, fault_target=fault_target)
    elif fault_target is not None:
        params = replace(params, fault_target=fault_target)
    return params


def _ours(params: PagerParams, prices: PriceProfile) -> PolicyMaker:
    return lambda log, resident: Ours(log, prices, resident, params)


def _bound(uses: Callable[[], dict[str, int]], *, seen: bool) -> PolicyMaker:
    return lambda log, _resident: Clairvoyant(log, uses(), seen=seen)
