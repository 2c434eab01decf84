"""``evals agents``: is an agent still able after a rule of the planner changed? A fixed list of real sessions tells.

Each session is replayed under the rules asked for (definitions of the goals, ``replay``; resident part 8K, warm cache).
Figures: the evidence that later text quoted and that stood in the prompt (``evidence_coverage``), calls that
missed some (``faulting_call_share``), calls that had to fetch it (``extra_calls``), slices fetched again within ten
calls after they had been swapped out (``refetched_hot_pages``), and how many times cheaper than append-only it was
(``billed_vs_append_only``). Sessions are few, so every share has a 90 % interval over resampled sessions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from context_gatekeeper.core.economics import PRICES, PriceProfile
from context_gatekeeper.engine.pager_params import OURS, PagerParams
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.evals.metrics import bootstrap_interval, share
from context_gatekeeper.replay.catalogue import policy_makers
from context_gatekeeper.replay.figures import SessionFigures
from context_gatekeeper.replay.policies import Ours
from context_gatekeeper.replay.run import (
    APPEND_ONLY,
    PolicyMaker,
    ReplayOptions,
    ReplaySession,
    replay_session,
    token_factor,
)
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentSession

__all__ = ["RULES", "listed_sessions", "measure_agents", "regression_rows"]

_PRICES = "anthropic-5m"
_RESIDENT_TOKENS = 8000
_INTERVAL_PERCENT = 90
_ANY_OVERDRAFT = 1e9
"""Share of the append-only bill that no rewrite ever reaches: the ledger stops nothing."""
_VARIANTS: dict[str, PagerParams] = {
    "ours": OURS,
    "ours-no-references": replace(OURS, refers=False),
    "ours-no-digests": replace(OURS, digest=False),
    "ours-no-ledger": replace(OURS, overdraft=_ANY_OVERDRAFT),
}
RULES = (APPEND_ONLY, "slim-2k", "mask-60k", *_VARIANTS)
"""What can be measured: other policies, and ours as it is and with a rule left out."""
_INTERVALS = ("billed_vs_append_only", "faulting_call_share", "evidence_coverage")
_SessionPair = tuple[SessionFigures, SessionFigures]
"""Of one session: under the rule, and under append-only."""


def listed_sessions() -> tuple[str, ...]:
    """Ids of the kept regression set, in order."""
    text = (files("context_gatekeeper.evals") / "data" / "agent_regression.txt").read_text("utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def measure_agents(
    paths: Sequence[Path],
    rules: Sequence[str] = ("ours",),
    *,
    session_ids: Sequence[str] = (),
    min_calls: int = 1,
) -> dict[str, Any]:
    """Figures by rule, and session by session.

    Args:
        paths: files of agent sessions, in any format that `read_sessions` knows.
        rules: of `RULES`.
        session_ids: replay these alone; empty: every session of the files.
        min_calls: sessions with fewer model calls are left out.

    Raises:
        ConfigError: a rule or session that there is none of, or no session left.
    """
    for rule in rules:
        if rule not in RULES:
            raise ConfigError(f"rule {rule!a}", "there is none of this name", f"use some of {', '.join(RULES)}")
    pairs: dict[str, list[_SessionPair]] = {rule: [] for rule in rules}
    names: list[str] = []
    for session, factor in _chosen(paths, session_ids, max(1, min_calls)):
        found = _replay(session, factor, rules)
        names.append(session.session_id)
        for rule in rules:
            pairs[rule].append((found[rule], found[APPEND_ONLY]))
    return {
        "sessions": len(names),
        "calls": sum(len(one.call_units) for _, one in pairs[rules[0]]),
        "prices": _PRICES,
        "resident_tokens": _RESIDENT_TOKENS,
        "rules": {rule: _figures(listed) for rule, listed in pairs.items()},
        "by_session": {
            name: {rule: _session_figures(listed[place]) for rule, listed in pairs.items()}
            for place, name in enumerate(names)
        },
    }


def regression_rows(figures: Mapping[str, Any]) -> Iterator[str]:
    """The figures as rows of the kept table (docs/agent-regression.md), a rule a row."""
    for rule, one in figures["rules"].items():
        cells = (
            rule,
            f"{one['billed_vs_append_only']:.2f}x ({_interval(one, 'billed_vs_append_only', '{:.2f}')})",
            f"{one['faulting_call_share']:.1%} ({_interval(one, 'faulting_call_share', '{:.1%}')})",
            f"{one['evidence_coverage']:.1%} ({_interval(one, 'evidence_coverage', '{:.1%}')})",
            f"{one['extra_calls']}",
            f"{one['refetched_hot_pages']}",
            f"{one['worst_billed_vs_append_only']:.2f}x, {one['worst_faulting_call_share']:.1%}",
        )
        yield f"| {' | '.join(cells)} |"


def _interval(figures: Mapping[str, Any], name: str, form: str) -> str:
    low, high = figures["intervals"][name]
    return f"{form.format(low)} to {form.format(high)}"


def _chosen(paths: Sequence[Path], session_ids: Sequence[str], min_calls: int) -> Iterator[tuple[AgentSession, float]]:
    """Sessions to replay, each with its file's calibration of token counts."""
    wanted = dict.fromkeys(session_ids)
    missing, is_empty = dict(wanted), True
    for path in paths:
        sessions = read_sessions(path)
        factor = token_factor(sessions)
        for session in sessions:
            missing.pop(session.session_id, None)
            if wanted and session.session_id not in wanted:
                continue
            if sum(message.is_call for message in session.messages) >= min_calls:
                is_empty = False
                yield session, factor
    if missing:
        raise ConfigError(f"session {next(iter(missing))!a}", "no file holds it", "name the file that does with --data")
    if is_empty:
        raise ConfigError("sessions to replay", "none has enough model calls", "lower --min-calls, or pass other files")


def _replay(session: AgentSession, factor: float, rules: Sequence[str]) -> dict[str, SessionFigures]:
    prices = PRICES[_PRICES]
    makers = policy_makers([rule for rule in rules if rule not in _VARIANTS], session, prices)
    makers |= {rule: _ours(prices, _VARIANTS[rule]) for rule in rules if rule in _VARIANTS}
    options = ReplayOptions(prices, _RESIDENT_TOKENS, token_factor=factor)
    return replay_session(ReplaySession(session), makers, options)[0]


def _ours(prices: PriceProfile, params: PagerParams) -> PolicyMaker:
    return lambda log, resident_tokens: Ours(log, prices, resident_tokens, params)


def _figures(pairs: Sequence[_SessionPair]) -> dict[str, Any]:
    """Ratios are ratios of sums over the sessions, shares are over all calls and needs."""
    each = [_session_figures(pair) for pair in pairs]
    return {
        **_shares(pairs),
        "extra_calls": sum(one.bill.extra_calls for one, _ in pairs),
        "refetched_hot_pages": sum(one.refetched_hot_pages for one, _ in pairs),
        "worst_billed_vs_append_only": min(one["billed_vs_append_only"] for one in each),
        "worst_faulting_call_share": max(one["faulting_call_share"] for one in each),
        "intervals": {name: _interval_of(pairs, name) for name in _INTERVALS},
    }


def _interval_of(pairs: Sequence[_SessionPair], name: str) -> list[float] | None:
    return bootstrap_interval(pairs, lambda drawn: _shares(drawn)[name], percent=_INTERVAL_PERCENT)


def _session_figures(pair: _SessionPair) -> dict[str, Any]:
    one, _ = pair
    return {
        **_shares([pair]),
        "calls": len(one.call_units),
        "extra_calls": one.bill.extra_calls,
        "refetched_hot_pages": one.refetched_hot_pages,
    }


def _shares(pairs: Sequence[_SessionPair]) -> dict[str, float]:
    needs = sum(one.needs for one, _ in pairs)
    return {
        "billed_vs_append_only": share(
            sum(reference.bill.units for _, reference in pairs), sum(one.bill.units for one, _ in pairs)
        ),
        "faulting_call_share": share(sum(one.faults for one, _ in pairs), sum(len(one.call_units) for one, _ in pairs)),
        "evidence_coverage": 1.0 - share(sum(one.missing for one, _ in pairs), needs),
    }
