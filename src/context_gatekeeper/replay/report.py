"""One replay from files to figures: what `cgk replay` prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from context_gatekeeper.core.economics import PRICES, PRICES_AS_OF, PriceProfile
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.replay.catalogue import OUR_POLICIES, POLICY_NAMES, policy_makers
from context_gatekeeper.replay.checks import SessionChecks, SessionInPool, check_session
from context_gatekeeper.replay.figures import SessionFigures, first_token_seconds, policy_figures
from context_gatekeeper.replay.policies import Ours
from context_gatekeeper.replay.run import (
    APPEND_ONLY,
    ReplayOptions,
    ReplaySession,
    chain_sessions,
    replay_session,
    token_factor,
)
from context_gatekeeper.types import AgentSession

__all__ = ["DEFAULT_POLICIES", "ReplayReport", "ReplaySettings", "replay_files"]

DEFAULT_POLICIES = (APPEND_ONLY, "mask-60k", "auto-compact-160k", "slim-2k", "ours", "clairvoyant-seen")
"""Shown unless others are named: the reference, the rivals, ours, the bound."""
_NAMED_SESSIONS = 5
"""Of those that a message offers."""
_RATIO_DIGITS = 2


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """What a replay compares, and how it bills.

    Raises:
        ConfigError: a name that there is none of, or a number out of range.
    """

    policies: tuple[str, ...] = DEFAULT_POLICIES
    """Of `POLICY_NAMES`; ``all`` stands for every one. Append-only is always among them."""
    prices: str = "anthropic-5m"
    resident_tokens: int | None = 8000
    """System text and tools, in every prompt; None: as the first call's usage shows."""
    fault_price: float | None = None
    """Fixes the knob of our policies."""
    fault_target: float | None = None
    """Share of faulting calls that they steer to."""
    uses_gaps: bool = False
    """Whether real gaps between calls let the cache go cold."""
    min_calls: int = 1
    """Shorter sessions are left out."""
    chain_calls: int = 0
    """Join the sessions of a file to chains of so many calls; 0: replay each alone."""
    prefill_rate: float = 5000.0
    """Tokens a second that a provider takes in, for the estimate of the time to the first token: an assumption of
    the right size, not a figure of any provider."""

    def __post_init__(self) -> None:
        for name in self.policies:
            if name not in (*POLICY_NAMES, "all"):
                raise ConfigError(
                    f"policy {name!a}", "there is none of this name", f"use all, or some of {', '.join(POLICY_NAMES)}"
                )
        if self.prices not in PRICES:
            raise ConfigError(
                f"price profile {self.prices!a}", "there is none of this name", f"use one of {', '.join(PRICES)}"
            )
        numbers = (
            ("resident_tokens", self.resident_tokens or 0, 0, 10_000_000),
            ("fault_price", 1.0 if self.fault_price is None else self.fault_price, 0.0, 1000.0),
            ("fault_target", 0.05 if self.fault_target is None else self.fault_target, 0.0, 1.0),
            ("min_calls", self.min_calls, 0, 10_000_000),
            ("chain_calls", self.chain_calls, 0, 10_000_000),
            ("prefill_rate", self.prefill_rate, 1.0, 1e9),
        )
        for name, number, low, high in numbers:
            if not low <= number <= high:
                raise ConfigError(f"{name} {number!a}", "it is out of range", f"pass {low:g} to {high:g}")

    @property
    def names(self) -> tuple[str, ...]:
        """The policies to run, append-only first."""
        wanted = POLICY_NAMES if "all" in self.policies else self.policies
        return tuple(dict.fromkeys((APPEND_ONLY, *wanted)))

    @property
    def price_profile(self) -> PriceProfile:
        """The prices."""
        return PRICES[self.prices]


@dataclass(slots=True)
class ReplayReport:
    """Everything a replay found out."""

    settings: ReplaySettings
    sessions: dict[str, list[SessionFigures]] = field(default_factory=dict)
    """Policy -> its figures, session by session, in the same order for all."""
    checks: SessionChecks = field(default_factory=SessionChecks)
    prefix_breaks: int = 0
    """Requests of ours that changed what was sent before outside a declared epoch."""

    def figures(self) -> dict[str, dict[str, Any]]:
        """The contract's figures, policy by policy, and the estimated time to the first token."""
        reference = self.sessions.get(APPEND_ONLY, [])
        rate = self.settings.prefill_rate
        return {
            name: {
                **policy_figures(listed, reference),
                "first_token_seconds_estimated": first_token_seconds(listed, rate),
            }
            for name, listed in self.sessions.items()
        }

    def left_alone(self) -> int:
        """Sessions that each of our policies sent as append-only would: no rewrite, and the same bill to 1 in 100."""
        reference = self.sessions.get(APPEND_ONLY, [])
        ours = [self.sessions[name] for name in OUR_POLICIES if name in self.sessions]
        return sum(
            all(
                not one.epochs and round(_ratio(base.bill.units, one.bill.units), _RATIO_DIGITS) == 1
                for one in (listed[place] for listed in ours)
            )
            for place, base in enumerate(reference if ours else [])
        )

    def place_of(self, session_id: str | None = None) -> int:
        """Place of a session in the lists of figures; None for the one with most calls, the first of equals.

        Raises:
            ConfigError: there is none of this id.
        """
        listed = self.sessions.get(APPEND_ONLY, [])
        if session_id is None:
            return max(range(len(listed)), key=lambda place: len(listed[place].call_units))
        for place, session in enumerate(listed):
            if session.session_id == session_id:
                return place
        some = ", ".join(session.session_id for session in listed[:_NAMED_SESSIONS])
        raise ConfigError(f"session {session_id!a}", "none that was replayed has this id", f"pass one of {some}")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, the keys of the contract and some more."""
        reference = self.sessions.get(APPEND_ONLY, [])
        return {
            "sessions": len(reference),
            "calls": sum(len(session.call_units) for session in reference),
            "prices": self.settings.prices,
            "prices_as_of": PRICES_AS_OF,
            "policies": self.figures(),
            "prefill_tokens_per_second": self.settings.prefill_rate,
            "expand_exact": self.checks.expand_exact,
            "prefix_breaks_outside_epochs": self.prefix_breaks,
            "unverifiable_card_entries": self.checks.unverifiable_card_entries,
            "card_entries": self.checks.card_entries,
        }


def _ratio(base: float, units: float) -> float:
    return base / units if units else 1.0


def replay_files(
    files: Sequence[Sequence[AgentSession]],
    settings: ReplaySettings,
    *,
    on_call: Callable[[int, int], None] | None = None,
) -> ReplayReport:
    """Replay the sessions of several files.

    Args:
        files: for each file its sessions; token estimates are calibrated file by file.
        settings: what to compare.
        on_call: hears after each model call how many are done, of how many.

    Raises:
        ConfigError: no session has enough calls.
    """
    work: list[tuple[ReplaySession, float]] = []
    for sessions in files:
        factor = token_factor(sessions)
        if settings.chain_calls:
            items = chain_sessions(sessions, settings.chain_calls)
        else:
            items = [ReplaySession(session) for session in sessions]
        work += [(item, factor) for item in items if item.calls >= max(1, settings.min_calls)]
    if not work:
        raise ConfigError(
            "sessions to replay", "none has enough model calls", "lower --min-calls or --chain, or pass other files"
        )
    report = ReplayReport(settings)
    done, total = 0, sum(item.calls for item, _ in work)

    def count_call() -> None:
        nonlocal done
        done += 1
        if on_call is not None:
            on_call(done, total)

    for item, factor in work:
        _replay(item, factor, settings, report, count_call)
    return report


def _replay(
    item: ReplaySession, factor: float, settings: ReplaySettings, report: ReplayReport, on_call: Callable[[], None]
) -> None:
    prices = settings.price_profile
    options = ReplayOptions(prices, settings.resident_tokens, settings.uses_gaps, factor)
    makers = policy_makers(
        settings.names, item.session, prices, fault_price=settings.fault_price, fault_target=settings.fault_target
    )
    figures, policies, log = replay_session(item, makers, options, on_call=on_call)
    for name, found in figures.items():
        report.sessions.setdefault(name, []).append(found)
    ours = {name: policy for name, policy in policies.items() if isinstance(policy, Ours)}
    if not ours:
        return
    in_pool = SessionInPool(item.session)
    for name, policy in ours.items():
        report.prefix_breaks += figures[name].prefix_breaks
        report.checks.add(check_session(log, policy.pager, in_pool))
    in_pool.close()
