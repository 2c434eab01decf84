"""One session replayed and told: the bill of a few policies, what ours missed, and its largest rewrite."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any

from context_gatekeeper.core.economics import PRICES, PRICES_AS_OF, PriceProfile
from context_gatekeeper.engine.pager import Rewrite
from context_gatekeeper.engine.pager_params import OURS
from context_gatekeeper.engine.plan import ContextPlan
from context_gatekeeper.engine.session_log import SessionLog, SliceKind, UnitKind
from context_gatekeeper.replay.catalogue import policy_makers
from context_gatekeeper.replay.figures import policy_figures
from context_gatekeeper.replay.policies import Ours
from context_gatekeeper.replay.run import APPEND_ONLY, ReplayOptions, ReplaySession, replay_session, token_factor
from context_gatekeeper.types import AgentSession

__all__ = ["Demonstration", "LeftOut", "MissedNeed", "RewriteStory", "StayedIn", "demonstrate", "tell_rewrite"]

_POLICIES = (APPEND_ONLY, "mask-60k", "ours", "clairvoyant-seen")
_PRICES = "anthropic-5m"
_RESIDENT_TOKENS = 8000
_SINCE = re.compile(r" since call \d+")
"""In a reason; without it equal reasons can be counted together."""
_KIND_WORDS = {
    SliceKind.READ: "file read",
    SliceKind.SEARCH: "search result",
    SliceKind.SHELL: "shell output",
    SliceKind.OTHER_RESULT: "tool result",
    SliceKind.EDIT_CALL: "edit made",
    SliceKind.WRITE_CALL: "file written",
    SliceKind.OTHER_CALL: "tool call",
    SliceKind.THINKING: "thinking",
    SliceKind.ASSISTANT: "answer",
    SliceKind.USER: "user text",
}


@dataclass(frozen=True, slots=True)
class MissedNeed:
    """Something that a call quoted and that was nowhere in its prompt."""

    call: int
    """Calls made before it."""
    text: str
    """The line or name."""
    what: str
    """Kind of text that held it last."""
    file: str
    """Name of the file that text was of; "" for none."""
    was_named: bool
    """Whether a handle for it stood in the prompt."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What of one kind and file left the window."""

    what: str
    file: str
    slices: int
    tokens: int


@dataclass(frozen=True, slots=True)
class StayedIn:
    """What stands in the window in one form and for one reason."""

    form: str
    reason: str
    entries: int
    tokens: int


@dataclass(frozen=True, slots=True)
class RewriteStory:
    """A rewrite of the window, and what came of it."""

    call: int
    """Calls made before it."""
    reason: str
    """``cold`` or ``rent``."""
    tokens_before: int
    """Of the window, the resident part left out."""
    tokens_after: int
    """The digests that stay behind included."""
    price: float
    """Extra units of writing again what stands behind the first change; 0 where the cache was cold."""
    left: tuple[LeftOut, ...]
    """Most tokens first."""
    quoted_later: int
    """Of the slices that left, those that a later call quoted all the same."""
    stayed: tuple[StayedIn, ...]
    """What the request then held, most tokens first."""
    expected_units: float
    """Bill of that request without its output."""
    saved_units: float
    """Net savings of the session until then."""
    fault_price_factor: float
    """Worth of a page fault in units of its own bill."""

    @property
    def slices(self) -> int:
        """How many left."""
        return sum(one.slices for one in self.left)


@dataclass(frozen=True, slots=True)
class Demonstration:
    """What is shown of a session."""

    session_id: str
    calls: int
    prices: str
    prices_as_of: str
    resident_tokens: int
    policies: dict[str, dict[str, Any]]
    """Figures of the replay, by policy."""
    missed: tuple[MissedNeed, ...]
    """Under our policy, in the order of the calls."""
    rewrites: int
    plan: RewriteStory | None
    """The rewrite that freed most; None where the window was never rewritten."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return asdict(self)


def demonstrate(session: AgentSession) -> Demonstration:
    """Replay one session under append-only, masking, our policy and the clairvoyant bound."""
    prices = PRICES[_PRICES]
    makers = policy_makers(_POLICIES, session, prices)
    noted: list[_NotingOurs] = []

    def make_ours(log: SessionLog, resident_tokens: int) -> _NotingOurs:
        noted.append(_NotingOurs(log, prices, resident_tokens))
        return noted[0]

    makers["ours"] = make_ours
    options = ReplayOptions(prices, _RESIDENT_TOKENS, token_factor=token_factor([session]))
    figures, _, log = replay_session(ReplaySession(session), makers, options)
    ours = noted[0]
    rewrites = ours.pager.rewrites
    largest = max(rewrites, key=lambda one: one.tokens_before - one.tokens_after, default=None)
    story = None if largest is None else tell_rewrite(log, largest, ours.plans[largest.call])
    return Demonstration(
        session.session_id,
        log.calls,
        prices.name,
        PRICES_AS_OF,
        _RESIDENT_TOKENS,
        {name: policy_figures([figures[name]], [figures[APPEND_ONLY]]) for name in _POLICIES},
        _told_once(ours.missed),
        len(rewrites),
        story,
    )


def tell_rewrite(log: SessionLog, rewrite: Rewrite, plan: ContextPlan) -> RewriteStory:
    """What a rewrite took out, by kind and file, what stayed and why, and what of the first was quoted later.

    Args:
        log: of the whole session, so that it is known what came later.
        rewrite: one of its planner's.
        plan: of the request that the rewrite was made for.
    """
    return RewriteStory(
        rewrite.call,
        rewrite.reason,
        rewrite.tokens_before,
        rewrite.tokens_after,
        round(rewrite.price, 1),
        _left_out(log, rewrite),
        sum(log.slices[number].last_cited >= rewrite.call for number in rewrite.swapped_out),
        _stayed_in(plan),
        round(plan.expected_units, 1),
        round(plan.saved_units, 1),
        round(plan.fault_price_factor, 4),
    )


def _left_out(log: SessionLog, rewrite: Rewrite) -> tuple[LeftOut, ...]:
    sums: dict[tuple[str, str], list[int]] = {}
    for number in rewrite.swapped_out:
        found = sums.setdefault(_origin(log, number), [0, 0])
        found[0] += 1
        found[1] += log.slices[number].tokens
    left = [LeftOut(what, file, slices, tokens) for (what, file), (slices, tokens) in sums.items()]
    return tuple(sorted(left, key=lambda one: (-one.tokens, one.what, one.file)))


def _stayed_in(plan: ContextPlan) -> tuple[StayedIn, ...]:
    sums: dict[tuple[str, str], list[int]] = {}
    for entry in plan.entries:
        found = sums.setdefault((entry.form, _SINCE.sub("", entry.reason)), [0, 0])
        found[0] += 1
        found[1] += entry.tokens
    stayed = [StayedIn(form, reason, entries, tokens) for (form, reason), (entries, tokens) in sums.items()]
    return tuple(sorted(stayed, key=lambda one: (-one.tokens, one.form, one.reason)))


class _NotingOurs(Ours):
    """Our policy, with a note of everything that a call missed, and of each rewrite's plan."""

    def __init__(self, log: SessionLog, prices: PriceProfile, resident_tokens: int) -> None:
        super().__init__(log, prices, resident_tokens, OURS)
        self.missed: list[tuple[bool, MissedNeed]] = []
        """Whether it was a whole line, and what."""
        self.plans: dict[int, ContextPlan] = {}
        """Calls made before a rewrite -> its plan."""

    def prepare(self, *, is_cold: bool) -> bool:
        """See `WindowPolicy.prepare`."""
        is_epoch = super().prepare(is_cold=is_cold)
        if is_epoch:
            self.plans[self.log.calls] = self.pager.plan()
        return is_epoch

    def holds(self, unit: int, *, by_words: bool) -> bool:
        """See `Policy.holds`."""
        is_there = super().holds(unit, by_words=by_words)
        if not is_there and not by_words:
            record = self.log.units[unit]
            holder = record.holders[-1]
            need = MissedNeed(self.log.calls, self.log.name_of(unit), *_origin(self.log, holder), self.hints_at(holder))
            self.missed.append((record.kind is UnitKind.LINE, need))
        return is_there


def _told_once(missed: Sequence[tuple[bool, MissedNeed]]) -> tuple[MissedNeed, ...]:
    """One need for each call and origin: a line before a name, the longest of them."""
    best: dict[tuple[int, str, str], tuple[bool, int, str, MissedNeed]] = {}
    for is_line, need in missed:
        key = need.call, need.what, need.file
        rank = is_line, len(need.text), need.text, need
        if key not in best or rank[:3] > best[key][:3]:
            best[key] = rank
    return tuple(best[key][3] for key in sorted(best))


def _origin(log: SessionLog, number: int) -> tuple[str, str]:
    """Kind of a slice in words, and the name of its file."""
    segment = log.segments[log.slices[number].segment]
    return _KIND_WORDS[segment.kind], PurePosixPath(segment.path).name
