"""Replay of sessions: every policy sees the same log, call by call (definitions of the goals)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from context_gatekeeper.core.economics import PriceProfile
from context_gatekeeper.core.ledger import Bill, PromptCache
from context_gatekeeper.core.tokens import MESSAGE_TOKENS
from context_gatekeeper.engine.session_log import SessionLog, Slice, UnitKind
from context_gatekeeper.replay.figures import SessionFigures
from context_gatekeeper.replay.policies import AppendOnly, Policy
from context_gatekeeper.types import AgentMessage, AgentSession, MessageRole

__all__ = [
    "APPEND_ONLY",
    "PolicyMaker",
    "ReplayOptions",
    "ReplaySession",
    "chain_sessions",
    "replay_session",
    "token_factor",
]

APPEND_ONLY = "append-only"
_HOT_CALLS = 10
_LEAST_DELTAS = 5
_DELTA_BOUNDS = (0.5, 2.5)
"""Ratios of logged to estimated growth outside them are no measure: a rewound or compacted prompt."""

PolicyMaker = Callable[[SessionLog, int], Policy]
"""Makes a policy for a session's log and the tokens of the resident part."""


@dataclass(frozen=True, slots=True)
class ReplaySession:
    """Messages to replay; ``seams`` are places of messages before which the cache is cold."""

    session: AgentSession
    seams: frozenset[int] = frozenset()

    @property
    def calls(self) -> int:
        """Model calls of the session."""
        return sum(message.is_call for message in self.session.messages)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How a replay bills."""

    prices: PriceProfile
    resident_tokens: int | None = 8000
    """None: as the log shows it, the first call's prompt less its messages."""
    uses_gaps: bool = False
    """Whether real gaps between calls let the cache go cold."""
    token_factor: float = 1.0


def token_factor(sessions: Iterable[AgentSession]) -> float:
    """Real tokens over estimated ones, by the logged growth of the prompt from call to call; 1.0 without usage."""
    real = estimated = deltas = 0
    for session in sessions:
        log = SessionLog()
        tokens, before = 0, None
        for message in session.messages:
            if message.is_call and message.usage is not None:
                now = message.usage.prompt_tokens, tokens
                if before is not None and now[1] > before[1]:
                    grown, expected = now[0] - before[0], now[1] - before[1]
                    if _DELTA_BOUNDS[0] < grown / expected < _DELTA_BOUNDS[1]:
                        real, estimated, deltas = real + grown, estimated + expected, deltas + 1
                before = now
            tokens += sum(piece.tokens for piece in log.add_message(message))
    return real / estimated if deltas >= _LEAST_DELTAS else 1.0


def chain_sessions(sessions: Sequence[AgentSession], least_calls: int) -> list[ReplaySession]:
    """Sessions joined in time order to chains of at least ``least_calls`` calls; a rest that is shorter is left out."""
    ordered = sorted(sessions, key=lambda session: (_first_time(session), session.session_id))
    chains: list[ReplaySession] = []
    messages: list[AgentMessage] = []
    seams: list[int] = []
    names: list[str] = []
    for session in ordered:
        if messages:
            seams.append(len(messages))
        messages += session.messages
        names.append(session.session_id)
        if sum(message.is_call for message in messages) >= least_calls:
            joined = replace(ordered[0], session_id="+".join(names), messages=tuple(messages), events=())
            chains.append(ReplaySession(joined, frozenset(seams)))
            messages, seams, names = [], [], []
    return chains


def replay_session(
    item: ReplaySession,
    makers: Mapping[str, PolicyMaker],
    options: ReplayOptions,
    *,
    on_call: Callable[[], None] | None = None,
) -> tuple[dict[str, SessionFigures], dict[str, Policy], SessionLog]:
    """Replay one session under every policy; figures by name, append-only always among them.

    Args:
        item: the session.
        makers: of the policies, by name.
        options: how to bill.
        on_call: hears of each model call when all policies have had it.
    """
    session = item.session
    log = SessionLog(token_factor=options.token_factor)
    resident = options.resident_tokens
    if resident is None:
        resident = _logged_resident(session, options.token_factor)
    policies: dict[str, Policy] = {APPEND_ONLY: AppendOnly(log)}
    policies |= {name: make(log, resident) for name, make in makers.items() if name != APPEND_ONLY}
    runs = [_PolicyRun(name, policy, options.prices, resident, session.session_id) for name, policy in policies.items()]
    is_seam, own = True, 0  # slices before ``own`` belong to earlier sessions of the chain
    last_time: float | None = None
    for place, message in enumerate(session.messages):
        if place in item.seams:
            is_seam, own = True, len(log.slices)
        if not message.is_call:
            if message.role is MessageRole.ASSISTANT:
                log.quoted_units(message)
            _add(runs, log.add_message(message))
            continue
        asked_at = _asked_at(session.messages, place)
        is_cold = is_seam or (options.uses_gaps and _is_gap(last_time, asked_at, options.prices))
        is_seam = False
        last_time = message.end_time or message.time or last_time
        quoted = {unit for unit in log.quoted_units(message) if log.units[unit].holders[-1] >= own}
        for run in runs:
            run.call(log, quoted, is_cold=is_cold)
        added = log.add_message(message)
        output = _output_tokens(message, added)
        for run in runs:
            run.answer(output, runs[0])
        _add(runs, added)
        if on_call is not None:
            on_call()
    return {run.name: run.figures for run in runs}, policies, log


class _PolicyRun:
    """One policy's requests, faults and bill."""

    def __init__(self, name: str, policy: Policy, prices: PriceProfile, resident: int, session_id: str) -> None:
        self.name = name
        self.policy = policy
        self.figures = SessionFigures(session_id)
        self._cache = PromptCache(prices, self.figures.bill)
        self._resident = resident
        self._units = 0.0

    def call(self, log: SessionLog, quoted: set[int], *, is_cold: bool) -> None:
        """Send one request, and serve its fault when the answer needs what is not there."""
        figures, policy = self.figures, self.policy
        request = policy.request(is_cold=is_cold)
        tokens = self._resident + request.tokens
        self._units = 0.0
        if request.summary_tokens:
            before = figures.call_prompts[-1] if figures.call_prompts else tokens
            self._units += self._cache.fault(before, 0, 0)
            self._cache.answer(request.summary_tokens)
            self._units += self._cache.prices.output * request.summary_tokens
        # At a seam the resident part is cold too; the first call of all finds nothing cached.
        common = self._resident + request.common_tokens if figures.bill.calls else 0
        uncached_before = _uncached_tokens(figures.bill)
        self._units += self._cache.call(tokens, common, is_cold=is_cold, volatile_tokens=request.volatile_tokens)
        figures.call_uncached.append(_uncached_tokens(figures.bill) - uncached_before)
        figures.call_prompts.append(tokens)
        other = policy.other_task_tokens()
        if other is None or figures.other_task_tokens is None:
            figures.other_task_tokens = None
        else:
            figures.other_task_tokens += other
        figures.epochs += request.is_epoch
        figures.prefix_breaks += request.breaks_prefix and not request.is_epoch
        self._serve(log, quoted, tokens)

    def _serve(self, log: SessionLog, quoted: set[int], tokens: int) -> None:
        figures, policy = self.figures, self.policy
        missing = [unit for unit in quoted if not policy.holds(unit, by_words=False)]
        figures.needs += len(quoted)
        figures.missing += len(missing)
        if not missing:
            return
        by_words = [unit for unit in missing if not policy.holds(unit, by_words=True)]
        figures.missing_words += len(by_words)
        figures.faults += 1
        figures.word_faults += bool(by_words)
        figures.hard_faults += any(log.units[unit].kind is UnitKind.LINE for unit in missing)
        pieces = sorted({log.units[unit].holders[-1] for unit in missing})
        figures.major_faults += any(not policy.hints_at(piece) for piece in pieces)
        left = [policy.left_at(piece) for piece in pieces]
        figures.refetched_hot_pages += sum(call is not None and log.calls - call <= _HOT_CALLS for call in left)
        added = policy.fault(pieces)
        uncached_before = _uncached_tokens(figures.bill)
        self._units += self._cache.fault(tokens, added, len(pieces))
        figures.call_uncached[-1] += _uncached_tokens(figures.bill) - uncached_before

    def answer(self, output: int, append_only: _PolicyRun) -> None:
        """Bill the answer, and tell the policy what the call cost."""
        self.policy.billed(self._units, append_only._units)
        self._cache.answer(output)
        self.figures.call_units.append(self._units + self._cache.prices.output * output)


def _uncached_tokens(bill: Bill) -> int:
    return bill.prompt_tokens - bill.read_tokens


def _add(runs: Sequence[_PolicyRun], pieces: Sequence[Slice]) -> None:
    for run in runs:
        run.policy.add(pieces)


def _output_tokens(message: AgentMessage, added: Sequence[Slice]) -> int:
    """Logged output where it is final, else the estimate of what was written."""
    if message.usage is not None and message.usage.output_tokens is not None:
        return message.usage.output_tokens
    return max(1, sum(piece.tokens for piece in added) - MESSAGE_TOKENS * len(message.blocks))


def _logged_resident(session: AgentSession, factor: float) -> int:
    """The first call's prompt less the messages before it; 0 without usage."""
    log = SessionLog(token_factor=factor)
    tokens = 0
    for message in session.messages:
        if message.is_call and message.usage is not None:
            return max(0, message.usage.prompt_tokens - tokens)
        tokens += sum(piece.tokens for piece in log.add_message(message))
    return 0


def _asked_at(messages: Sequence[AgentMessage], place: int) -> float | None:
    """When the request left: when the message before the answer was logged."""
    before = messages[place - 1].end_time or messages[place - 1].time if place else None
    return before or messages[place].time


def _is_gap(last: float | None, now: float | None, prices: PriceProfile) -> bool:
    return last is not None and now is not None and now - last > prices.ttl_seconds


def _first_time(session: AgentSession) -> float:
    return min((message.time for message in session.messages if message.time is not None), default=0.0)
