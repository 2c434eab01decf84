"""KeepRule: which entries of a window are worth their rent, and which leave first when more must go.

Source: the keep rule of section 5.3 of the paging notes; relevance and information gain of the scheduling design,
section 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from context_gatekeeper.core.economics import PriceProfile, fault_price
from context_gatekeeper.core.heat import FaultHistory
from context_gatekeeper.core.page_value import (
    PageForm,
    PageTies,
    PageValue,
    information_gain,
    page_value,
    relevance,
)
from context_gatekeeper.engine.citation import CitationModel
from context_gatekeeper.engine.pager_params import PagerParams
from context_gatekeeper.engine.session_log import SessionLog, SliceKind
from context_gatekeeper.engine.window import Entry, EntryForm, Window
from context_gatekeeper.types import MessageRole

__all__ = ["Idle", "Judgement", "KeepRule"]

_LATER_FORMS = frozenset({EntryForm.RECALLED, EntryForm.RESIDENT, EntryForm.DIGEST, EntryForm.NOTE})
"""What may stand behind texts that are newer than it: pages that came back, cards, and what is left of them."""
_SAME_FILE_CALLS = 8
"""A file that a call named so lately is what the running work is about."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Why a slice stays in the window or may leave it."""

    stays: bool
    reason: str
    risk: float = 0.0
    """Expected units of a fault when it leaves, before the factor."""
    rent: float = 0.0
    """Units that keeping it costs over the calls it must be worth."""
    is_fixed: bool = False
    """No rewrite may leave it out, not even one that is forced."""


class Idle(NamedTuple):
    """What `KeepRule.look` found."""

    entries: set[int]
    """Numbers of those that may leave."""
    over_quota: set[int]
    """Of other tasks, those that have no room beside the running one."""
    since: dict[int, int]
    """Idle entry -> call at which it was first found so."""


class KeepRule:
    """Judges the entries of one session's window.

    Args:
        log: the session; only read.
        window: what is sent; only read.
        model: how likely a slice is quoted again.
        prices: what the provider charges.
        params: the numbers.
        faults: which slices came back again and again.
    """

    def __init__(
        self,
        log: SessionLog,
        window: Window,
        model: CitationModel,
        prices: PriceProfile,
        params: PagerParams,
        faults: FaultHistory[int],
    ) -> None:
        self.idle_since: dict[int, int] = {}
        """Entry -> call at which it was first found not to be worth its rent."""
        self.resident_text = ""
        """What is pinned now."""
        self.unused: frozenset[int] = frozenset()
        """Slices that came back and were not used, as far as is known now."""
        self.asked_for: frozenset[int] = frozenset()
        """Entries that were asked for since the last request: they leave for nothing but a limit."""
        self._log = log
        self._window = window
        self._model = model
        self._prices = prices
        self._params = params
        self._faults = faults
        self._rested_on: dict[int, list[int]] = {}

    def rests_on(self, piece: int, older: Iterable[int]) -> None:
        """Note that a slice is sent as references to older ones: they are needed as much as it is."""
        for number in older:
            self._rested_on.setdefault(number, []).append(piece)

    def look(self, prompt_tokens: int, factor: float, *, ahead: int = 0) -> Idle:
        """The entries that are not worth their rent, as far as they may leave; nothing is noted.

        Args:
            prompt_tokens: of a request, for the price of a fault.
            factor: what a page fault is worth in units of its own bill.
            ahead: calls that come before the request that is judged for, beside those of the log.
        """
        entries = self._window.entries
        last = self.tail_start(ahead)
        price = fault_price(self._prices, prompt_tokens, 0)
        idle: set[int] = set()
        for entry in entries[:last]:
            is_slice = entry.is_whole or entry.form is EntryForm.REFERENCE
            if self.is_outdated(entry) or (is_slice and not self.judge(entry, price, factor).stays):
                idle.add(entry.number)
        over_quota = self._over_quota(entries[:last], idle, prompt_tokens)
        idle |= over_quota
        idle -= self.asked_for | self._bound(entries, idle)
        since = dict(self.idle_since)
        for entry in entries[:last]:
            if entry.number in idle:
                since.setdefault(entry.number, self._log.calls)
            else:
                since.pop(entry.number, None)
        return Idle(idle, over_quota, since)

    def note(self, found: Idle) -> None:
        """Remember what `look` found last."""
        self.idle_since = found.since

    def forced(self, idle: AbstractSet[int], tokens: int, *, ahead: int = 0) -> set[int]:
        """Numbers of entries of at least ``tokens`` together, idle ones first, then those of the least value.

        Fewer where the rest may not leave. Value is relevance x information gain; ties go to the older entry.
        """
        entries = self._window.entries[: self.tail_start(ahead)]
        free = [entry for entry in entries if self._may_be_forced(entry)]
        free.sort(key=lambda entry: (entry.number not in idle, self.worth_keeping(entry), entry.number))
        chosen: set[int] = set()
        for entry in free:
            if tokens <= 0:
                break
            chosen.add(entry.number)
            tokens -= entry.tokens
        return chosen - self._bound(self._window.entries, chosen)

    def is_outdated(self, entry: Entry) -> bool:
        """Whether it says what was pinned before something else took its place."""
        return entry.form is EntryForm.RESIDENT and entry.text != self.resident_text

    def tail_start(self, ahead: int = 0) -> int:
        """Place of the first entry of the newest part, which always stays: the last calls whole, and some tokens.

        Args:
            ahead: as of `look`.
        """
        entries, log = self._window.entries, self._log
        newest = log.calls + ahead - self._params.kept_exchanges
        tail, first = 0, len(entries)
        for place in range(len(entries) - 1, -1, -1):
            entry = entries[place]
            is_new = bool(entry.pieces) and log.exchange_of(entry.pieces[-1]) >= newest
            if is_new or tail < self._params.tail_tokens:
                first = place
                tail += entry.tokens
            elif entry.form not in _LATER_FORMS:
                break
        return first

    def judge(self, entry: Entry, price: float, factor: float) -> Judgement:
        """Whether an entry's slice is worth its rent; ``price`` is that of a fault without the page."""
        params, log = self._params, self._log
        piece = log.slices[entry.pieces[0]]
        segment = log.segments[piece.segment]
        if segment.role is MessageRole.SYSTEM:
            return Judgement(stays=True, reason="the client's system text", is_fixed=True)
        if segment.kind is SliceKind.USER and piece.tokens <= params.short_user_tokens:
            return Judgement(stays=True, reason="a short text of the user", is_fixed=True)
        rent = piece.tokens * self._prices.read * params.keep_calls
        if piece.number in self.unused:
            return Judgement(stays=False, reason="came back and was not used", rent=rent)
        if self._faults.is_resident(piece.number, log.calls):
            return Judgement(stays=True, reason="came back again and again: resident for a while", is_fixed=True)
        if segment.kind is SliceKind.THINKING:
            return Judgement(stays=False, reason="thinking of an earlier turn", rent=rent)
        risk = self._worth(piece.number) * (price + self._prices.write * piece.tokens)
        stays = risk * factor >= rent
        reason = "likely to be quoted again" if stays else "hardly quoted again"
        return Judgement(stays, reason, risk, rent)

    def worth_keeping(self, entry: Entry) -> PageValue:
        """Relevance x information gain of a slice, by its goal, file and task and by what stands elsewhere too."""
        if not entry.pieces:
            return PageValue(0.0, 0.0)
        log = self._log
        piece = log.slices[entry.pieces[0]]
        segment = log.segments[piece.segment]
        touched = log.touches.get(segment.path) if segment.path else None
        ties = PageTies(
            same_goal=bool(log.tasks.goals_of(segment.turn)),
            same_file=touched is not None and log.calls - touched < _SAME_FILE_CALLS,
            same_task=not log.is_of_other_task(piece),
        )
        units = {log.name_of(unit): 1.0 for unit in piece.units}
        elsewhere = [log.name_of(unit) for unit in piece.units if self._stands_elsewhere(unit, piece.number)]
        gain = information_gain(units, elsewhere)
        return page_value(
            relevance(0.0, ties), gain, PageForm.RAW, turns_ago=log.calls - max(piece.born, piece.last_cited)
        )

    # -- inside -----------------------------------------------------------------------------

    def _bound(self, entries: Sequence[Entry], leaving: AbstractSet[int]) -> set[int]:
        """Leaving entries that must stay with what stays.

        Thinking stays with its message. A short call stays with its results: they are one swap group. A long one may
        leave its arguments behind in the pool; its digest then keeps the frame of the call.
        """
        log = self._log
        with_results: set[int] = set()
        messages: set[int] = set()
        for entry in entries:
            if entry.number in leaving or not entry.pieces or entry.form is EntryForm.DIGEST:
                continue
            segment = log.segments[log.slices[entry.pieces[0]].segment]
            if segment.kind is not SliceKind.THINKING:
                messages.add(segment.message)
            call = log.call_of(segment)
            if call is not None and sum(log.slices[n].tokens for n in call.slices) <= self._params.short_call_tokens:
                with_results.add(call.number)
                messages.add(call.message)
        bound: set[int] = set()
        for entry in entries:
            if entry.number in leaving and entry.pieces:
                segment = log.segments[log.slices[entry.pieces[0]].segment]
                is_thinking = segment.kind is SliceKind.THINKING
                if segment.number in with_results or (is_thinking and segment.message in messages):
                    bound.add(entry.number)
        return bound

    def _over_quota(self, entries: Sequence[Entry], idle: AbstractSet[int], prompt_tokens: int) -> set[int]:
        """Entries of other tasks that would stay, the least likely first, as far as they are over their quota."""
        log = self._log
        others = [
            (self._worth(entry.pieces[0]), entry)
            for entry in entries
            if entry.is_whole and entry.number not in idle and log.is_of_other_task(log.slices[entry.pieces[0]])
        ]
        excess = sum(entry.tokens for _, entry in others) - self._params.other_task_share * prompt_tokens
        over: set[int] = set()
        for _, entry in sorted(others, key=lambda item: (item[0], item[1].number)):
            if excess <= 0:
                break
            if self._may_be_forced(entry):
                over.add(entry.number)
                excess -= entry.tokens
        return over

    def _worth(self, number: int) -> float:
        """Probability that the slice, or one that refers to it, is quoted soon; a mere name counts less."""
        worth = 0.0
        for piece in (number, *self._rested_on.get(number, ())):
            by_line, by_name = self._model.slice_probabilities(self._log.slices[piece])
            worth = max(worth, by_line + self._params.name_weight * by_name)
        return worth

    def _may_be_forced(self, entry: Entry) -> bool:
        if entry.form is EntryForm.HEAD or self.is_outdated(entry):
            return True
        is_slice = entry.is_whole or entry.form is EntryForm.REFERENCE
        return is_slice and not self.judge(entry, 0.0, 0.0).is_fixed

    def _stands_elsewhere(self, unit: int, piece: int) -> bool:
        return self._window.whole_holders(unit) > self._window.holds_piece(piece)
