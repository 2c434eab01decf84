"""``python -m benchmarks plan``: one scheduling decision over an agent session, in CPU time.

A decision is what happens before a model call: `Pager.add` of the slices that came since the last one, and
`Pager.prepare`, with a rewrite where one is due. Only decisions that look at the window count: between them
`prepare` returns at once, so that counting them would halve the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import thread_time
from typing import Any

from benchmarks.agent_corpus import made_session
from benchmarks.timing import percentile
from context_gatekeeper.core.economics import PRICES, PriceProfile
from context_gatekeeper.engine.pager_params import OURS, PagerParams
from context_gatekeeper.engine.session_log import SessionLog, Slice
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.replay.policies import Ours, Request
from context_gatekeeper.replay.run import ReplayOptions, ReplaySession, replay_session, token_factor
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentSession

__all__ = ["PlanSettings", "measure_plan"]

_LONGER = 1.3
"""Made sessions are longer than asked for by this, so that each gives some decisions behind the mark."""
_NEVER_PAYS = -1.0
"""An overdraft at which no rewrite is ever affordable."""


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """What to measure."""

    tokens: int = 100_000
    """Of the session: decisions count once all its messages together have so many."""
    data: Path | None = None
    """Recorded sessions, measured beside the made ones."""
    sessions: int = 4
    """Made ones."""
    seed: int = 7


@dataclass(slots=True)
class _Decisions:
    """CPU seconds of the decisions that count."""

    looks: list[float] = field(default_factory=list)
    """Without a rewrite."""
    rewrites: list[float] = field(default_factory=list)
    window_tokens: list[int] = field(default_factory=list)

    def add(self, other: _Decisions) -> None:
        self.looks += other.looks
        self.rewrites += other.rewrites
        self.window_tokens += other.window_tokens


def measure_plan(settings: PlanSettings) -> dict[str, Any]:
    """Milliseconds of one decision in made sessions; with `PlanSettings.data` those of recorded ones under ``data``.

    Raises:
        ConfigError: no recorded session is long enough.
    """
    recorded: list[AgentSession] = []
    if settings.data is not None:
        recorded = _long_enough(read_sessions(settings.data), settings.tokens)
        if not recorded:
            raise ConfigError(
                str(settings.data),
                f"no session of it has {settings.tokens} tokens",
                "pass fewer --tokens, or another file",
            )
    least_tokens = round(settings.tokens * _LONGER)
    made = [made_session(settings.seed + number, least_tokens) for number in range(settings.sessions)]
    result = _figures(made, settings.tokens)
    return {**result, "data": _figures(recorded, settings.tokens)} if recorded else result


def _long_enough(sessions: Sequence[AgentSession], tokens: int) -> list[AgentSession]:
    factor = token_factor(sessions)
    return [session for session in sessions if _tokens_of(session, factor) >= tokens]


def _figures(sessions: Sequence[AgentSession], tokens: int) -> dict[str, Any]:
    factor = token_factor(sessions)
    decided, whole = _Decisions(), _Decisions()
    for session in sessions:
        decided.add(_decisions(session, factor, tokens, OURS))
        whole.add(_decisions(session, factor, tokens, replace(OURS, overdraft=_NEVER_PAYS)))
    both = decided.looks + decided.rewrites
    return {
        "plan_p50_ms": _ms(both, 0.5),
        "plan_p99_ms": _ms(both, 0.99),
        "rewrite_p50_ms": _ms(decided.rewrites, 0.5),
        "whole_window_p50_ms": _ms(whole.looks, 0.5),
        "whole_window_p99_ms": _ms(whole.looks, 0.99),
        "decisions": len(both),
        "rewrites": len(decided.rewrites),
        "window_tokens_p50": _middle(decided.window_tokens),
        "whole_window_tokens_p50": _middle(whole.window_tokens),
    }


def _tokens_of(session: AgentSession, factor: float) -> int:
    log = SessionLog(token_factor=factor)
    return sum(piece.tokens for message in session.messages for piece in log.add_message(message))


def _decisions(session: AgentSession, factor: float, tokens: int, params: PagerParams) -> _Decisions:
    prices = PRICES["anthropic-5m"]
    timed: list[_TimedOurs] = []

    def make(log: SessionLog, resident_tokens: int) -> _TimedOurs:
        timed.append(_TimedOurs(log, prices, resident_tokens, params, tokens))
        return timed[0]

    replay_session(ReplaySession(session), {"ours": make}, ReplayOptions(prices, token_factor=factor))
    return timed[0].decisions


class _TimedOurs(Ours):
    """Our policy under a stop-watch."""

    def __init__(
        self, log: SessionLog, prices: PriceProfile, resident_tokens: int, params: PagerParams, tokens: int
    ) -> None:
        super().__init__(log, prices, resident_tokens, params)
        self.decisions = _Decisions()
        self._every_calls = params.every_calls
        self._counts_from = tokens
        self._tokens = 0
        self._seconds = 0.0

    def add(self, pieces: Sequence[Slice]) -> None:
        """See `Policy.add`."""
        self._tokens += sum(piece.tokens for piece in pieces)
        started = thread_time()
        super().add(pieces)
        self._seconds += thread_time() - started

    def request(self, *, is_cold: bool) -> Request:
        """See `Policy.request`; what was added since the last request is part of this decision."""
        request = super().request(is_cold=is_cold)
        self._seconds = 0.0
        return request

    def prepare(self, *, is_cold: bool) -> bool:
        """See `WindowPolicy.prepare`."""
        started = thread_time()
        is_epoch = super().prepare(is_cold=is_cold)
        self._seconds += thread_time() - started
        if self._tokens >= self._counts_from and self.log.calls % self._every_calls == 0:
            (self.decisions.rewrites if is_epoch else self.decisions.looks).append(self._seconds)
            self.decisions.window_tokens.append(self.window.tokens)
        return is_epoch


def _ms(seconds: Sequence[float], share: float) -> float | None:
    return percentile(seconds, share) * 1e3 if seconds else None


def _middle(numbers: Sequence[int]) -> int | None:
    return sorted(numbers)[len(numbers) // 2] if numbers else None
