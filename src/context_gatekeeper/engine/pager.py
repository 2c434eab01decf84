"""Pager: which slices of an agent session stay in the window, call by call (section 5.3 of the paging notes).

Between two rewrites (an *epoch*) the window only grows at its tail, so that the provider's cached
prefix stays byte-identical. A rewrite leaves out slices that will hardly be quoted again and leaves a
digest in their place: a handle, and the lines that are still likely to be quoted. It is made when the rent of
what could be left out has reached its price (ski rental, by depth), or when the cache is cold anyway, and only
when the session's ledger can pay for it. A page fault brings a slice back at the tail.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from context_gatekeeper.core.economics import FAULT_FRAME_TOKENS, PriceProfile, call_price, fault_price, rewrite_price
from context_gatekeeper.core.heat import FaultHistory
from context_gatekeeper.core.ledger import NetLedger
from context_gatekeeper.core.slimming import head_view, should_slim_at_birth
from context_gatekeeper.core.tokens import MESSAGE_TOKENS
from context_gatekeeper.engine.citation import CitationModel
from context_gatekeeper.engine.digest import DigestMaker, handle_ranges, run_through, units_in
from context_gatekeeper.engine.keep_rule import Idle, KeepRule
from context_gatekeeper.engine.pager_params import OURS, PagerParams
from context_gatekeeper.engine.plan import ContextPlan, PlannedDeparture, PlannedEntry
from context_gatekeeper.engine.repeats import reference_to_window
from context_gatekeeper.engine.session_log import OUTPUT_KINDS, SessionLog, Slice, SliceKind
from context_gatekeeper.engine.window import Entry, EntryForm, Window

__all__ = ["Pager", "Rewrite", "RewriteReason"]


_USUAL_READ_PRICE = 0.1
_USUAL_RESIDENT_TOKENS = 8000
_USUAL_WINDOW_TOKENS = 28_000


class RewriteReason(StrEnum):
    """Why a window was laid anew."""

    COLD = "cold"
    """The cache had run out, or there is none: everything is written anyway."""
    RENT = "rent"
    """What could be left out had cost as much rent as the rewrite costs, a few times over."""
    WINDOW = "window"
    """The request would not have fitted into the model's window."""
    STEP = "step"
    """The request would have been dearer as a whole, beyond a step of the price."""


class _Limit(NamedTuple):
    """A size of a request that should not be exceeded."""

    tokens: int
    reason: RewriteReason


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Record of one rewrite, for explanations and for the event feed."""

    call: int
    reason: RewriteReason
    swapped_out: tuple[int, ...]
    """Numbers of the slices that left."""
    tokens_before: int
    tokens_after: int
    price: float
    """Extra units of writing again what stands behind the first change."""


class _Laid(NamedTuple):
    """A window that may take the place of the one there is."""

    cut: int
    """Place of the first entry that is another."""
    leaving: set[int]
    window: Window
    reason: RewriteReason
    price: float
    """Of writing it, where the cache is alive."""


class Pager:
    """Keeps one session's window.

    Args:
        log: the session; only read.
        prices: what the provider charges.
        resident_tokens: system text and tools, in front of the window, never cut.
        params: the numbers.
        window_tokens: most that the model takes in one request, resident part included; None for no bound.
    """

    def __init__(
        self,
        log: SessionLog,
        prices: PriceProfile,
        *,
        resident_tokens: int,
        params: PagerParams = OURS,
        window_tokens: int | None = None,
    ) -> None:
        self.window = Window(log)
        self.ledger = NetLedger()
        self.rewrites: list[Rewrite] = []
        self.fault_price_factor = params.fault_price_factor
        if params.fault_target is not None:
            self.fault_price_factor *= _start_correction(prices, resident_tokens)
        self.swapped_out_at: dict[int, int] = {}
        """Slice -> call at which it left last."""
        self.faults: FaultHistory[int] = FaultHistory()
        self.refetched_hot_slices = 0
        """Slices fetched again a few calls after they had left: the price of wrong swaps."""
        self._log = log
        self._prices = prices
        self._resident_tokens = resident_tokens
        self._params = params
        self._model = CitationModel(log)
        self._digests = DigestMaker(log, self._model, prices)
        self._rule = KeepRule(log, self.window, self._model, prices, params, self.faults)
        self._window_tokens = window_tokens
        self._faulted = False
        self._refused_price = 0.0
        self._fault_share = 0.0
        self._faults_in_epoch = 0
        self.named: frozenset[int] = frozenset()
        """Slices that were named since the last request and stand in the window."""
        self._sent: list[int] = []
        self._sent_before: list[int] = []

    @property
    def prompt_tokens(self) -> int:
        """Of the next request."""
        return self._resident_tokens + self.window.tokens

    def other_task_tokens(self) -> int:
        """Tokens in the window that belong to other tasks than the running one."""
        slices = self._log.slices
        return sum(
            entry.tokens
            for entry in self.window.entries
            if entry.is_whole and self._log.is_of_other_task(slices[entry.pieces[0]])
        )

    def add(self, pieces: Iterable[Slice]) -> None:
        """Put new slices at the tail: whole, as references to what stands in the window, or as a huge result's head."""
        slimmed = -1
        for piece in pieces:
            if piece.segment == slimmed:
                continue
            head = self._head(piece)
            if head is not None:
                self.window.append(head)
                slimmed = piece.segment
                continue
            found = reference_to_window(self._log, self.window, piece) if self._params.refers else None
            if found is None:
                self.window.append(self.window.make(EntryForm.RAW, piece.tokens, [piece.number]))
                continue
            self.window.append(found.entry)
            self._rule.rests_on(piece.number, found.rests_on)

    def lay_resident(self, text: str) -> None:
        """Say what must always be in the window: goals, pins, constraints; "" for nothing.

        Before the first request it stands in front. Later nothing that was sent may change: a new text goes to the
        tail, and the older one leaves with the next rewrite from its place on.
        """
        if text == self._rule.resident_text:
            return
        self._rule.resident_text = text
        if not text:
            return
        entry = self.window.make(EntryForm.RESIDENT, self._log.count(text) + MESSAGE_TOKENS, text=text)
        if self._sent:
            self.window.append(entry)
        else:
            older = [other for other in self.window.entries if other.form is not EntryForm.RESIDENT]
            self.window.replace_all([entry, *older])

    def fault(self, pieces: Sequence[int]) -> None:
        """Count page faults, and bring the slices back. One that keeps coming back stays for a while."""
        for number in pieces:
            self.refetched_hot_slices += self.faults.faulted(number, self._log.calls).refetched
        self.bring_back(pieces)

    def bring_back(self, pieces: Sequence[int]) -> None:
        """Put slices whole at the tail, after faults that `faults` has counted."""
        for number in pieces:
            tokens = self._log.slices[number].tokens + FAULT_FRAME_TOKENS
            self.window.append(self.window.make(EntryForm.RECALLED, tokens, [number]))
        self._faults_in_epoch += len(pieces)
        self._faulted = True

    def note_faults(self, count: int) -> None:
        """Count page faults whose pages reach the agent another way."""
        self._faults_in_epoch += count
        self._faulted = True

    def release(self, unused: Collection[int]) -> None:
        """Slices that came back and were not used, as far as is known now: not worth their rent any more.

        They leave with the next rewrite, since nothing inside the cached prefix may change before it.
        """
        self._rule.unused = frozenset(unused)

    def prepare(self, *, is_cold: bool, was_looked_ahead: bool = False) -> Rewrite | None:
        """Decide, before a call, whether to rewrite the window; the rewrite's record when it was done.

        Args:
            is_cold: the provider's cache has run out, so that everything is written again anyway.
            was_looked_ahead: `look_ahead` has decided for this call: only what cannot wait is done.
        """
        self._steer()
        self._sent_before = self._sent
        limit = self._limit()
        is_over = limit is not None and self.prompt_tokens > limit.tokens
        is_left = was_looked_ahead and not is_cold and not is_over
        rewrite = None if is_left else run_through(self._decide(is_cold=is_cold))
        self._sent = [entry.number for entry in self.window.entries]
        if rewrite is not None:
            self._faults_in_epoch = 0
        return rewrite

    def look_ahead(self) -> Generator[None, None, Rewrite | None]:
        """Decide between two calls, while nobody waits, whether the next one gets a rewritten window.

        What the next request adds is not known yet; it goes behind. The record is that of a rewrite for that call.
        It is decided in small steps, of which only the last changes anything: when something is added or decided
        meanwhile, the rest must not be gone through.
        """
        rewrite = yield from self._decide(is_cold=False, ahead=1)
        if rewrite is not None:
            self._faults_in_epoch = 0
        return rewrite

    def _decide(self, *, is_cold: bool, ahead: int = 0) -> Generator[None, None, Rewrite | None]:
        """Decide for the request that comes after ``ahead`` more calls; only the last step changes anything."""
        limit = self._limit()
        is_over = limit is not None and self.prompt_tokens > limit.tokens
        is_cold = is_cold or not self._prices.has_cache
        if not is_over and not self._is_time(self._log.calls + ahead, is_cold=is_cold):
            return None
        self._rule.asked_for = self._asked_for()
        idle = self._rule.look(self.prompt_tokens, self.fault_price_factor, ahead=ahead)
        if limit is not None and is_over:
            laid = yield from self._force(limit, idle, ahead)
        else:
            cut = self._first_change(idle, self._log.calls + ahead, is_cold=is_cold)
            laid = None if cut is None else (yield from self._rewrite(cut, idle.entries, is_cold=is_cold))
        self._rule.note(idle)
        if laid is None:
            return None
        return self._leave(laid, self._log.calls + ahead)

    def _asked_for(self) -> frozenset[int]:
        """Entries that were asked for since the last request: pages that came back, and those that stood here."""
        sent = set(self._sent)
        return frozenset(
            entry.number
            for entry in self.window.entries
            if (entry.form is EntryForm.RECALLED and entry.number not in sent)
            or (entry.is_whole and not self.named.isdisjoint(entry.pieces))
        )

    def _is_time(self, call: int, *, is_cold: bool) -> bool:
        """Whether the window is looked at before this call."""
        if not self._can_pay_off() or (call % self._params.every_calls and not is_cold):
            return False
        target = self._params.fault_target
        return target is None or self._fault_share <= self._params.patience_share * target

    def plan(self, *, explains: bool = True) -> ContextPlan:
        """The record of the window as it stands, for the request that `prepare` was last called for.

        Args:
            explains: whether each entry and departure gets its reason; without, both are left empty.
        """
        rewritten = self.rewrites[-1] if self.rewrites and self.rewrites[-1].call == self._log.calls else None
        common = self._common_tokens()
        written = self.window.tokens - common
        return ContextPlan(
            call=self._log.calls,
            epoch=len(self.rewrites),
            rewrite=rewritten.reason if rewritten is not None else "",
            resident_tokens=self._resident_tokens,
            window_tokens=self.window.tokens,
            written_tokens=written,
            expected_units=call_price(self._prices, self._resident_tokens + common, written, 0, 0),
            fault_price_factor=self.fault_price_factor,
            faults_since_rewrite=self._faults_in_epoch,
            saved_units=self.ledger.saved,
            running_task=self._log.tasks.running_task or "",
            entries=self._explained() if explains else (),
            departures=self._departures() if explains else (),
        )

    # -- inside -----------------------------------------------------------------------------

    def _common_tokens(self) -> int:
        """Tokens of the prefix that the last prepared request had too."""
        common = 0
        for entry, number in zip(self.window.entries, self._sent_before, strict=False):
            if entry.number != number:
                break
            common += entry.tokens
        return common

    def _explained(self) -> tuple[PlannedEntry, ...]:
        price = fault_price(self._prices, self.prompt_tokens, 0)
        return tuple(self._planned(place, entry, price) for place, entry in enumerate(self.window.entries))

    def _planned(self, place: int, entry: Entry, price: float) -> PlannedEntry:
        log = self._log
        handle = " ".join(handle_ranges(log, entry.pieces))
        if entry.form is EntryForm.RESIDENT:
            reason = "what is pinned has changed since" if self._rule.is_outdated(entry) else "pinned: always sent"
            return PlannedEntry(handle, entry.form.value, "", "", "", entry.tokens, reason, 0.0, 0.0)
        if entry.form in (EntryForm.DIGEST, EntryForm.HEAD):
            reason = "left; the handle gives it back"
            if entry.form is EntryForm.HEAD:
                reason = "too long to be sent whole"
            elif "\n" in entry.text:
                reason = "left, but for lines likely to be needed"
            return PlannedEntry(handle, entry.form.value, "", "", "", entry.tokens, reason, 0.0, 0.0)
        piece = log.slices[entry.pieces[0]]
        segment = log.segments[piece.segment]
        verdict = self._rule.judge(entry, price, self.fault_price_factor)
        idle_since = self._rule.idle_since.get(entry.number)
        if place >= self._rule.tail_start():
            reason = "the newest part"
        elif idle_since is not None:
            reason = f"{verdict.reason} since call {idle_since}, but a rewrite does not pay yet"
        elif not verdict.stays:
            reason = f"{verdict.reason}, but stays with its call or message"
        else:
            reason = verdict.reason
        task = log.tasks.task_of(segment.turn) or ""
        kind = segment.kind.name.lower()
        return PlannedEntry(
            handle, entry.form.value, kind, segment.path, task, entry.tokens, reason, verdict.risk, verdict.rent
        )

    def _departures(self) -> tuple[PlannedDeparture, ...]:
        log = self._log
        gone = [(call, number) for number, call in self.swapped_out_at.items() if not self.window.holds_piece(number)]
        return tuple(
            PlannedDeparture(handle_ranges(log, [number])[0], call, "hardly quoted again", log.slices[number].tokens)
            for call, number in sorted(gone, reverse=True)
        )

    def _can_pay_off(self) -> bool:
        """A prefix that is read for nothing costs no rent."""
        return self._prices.read > 0

    def _steer(self) -> None:
        """Move the price of a fault towards the target share of faults. While nothing has left there is none."""
        target = self._params.fault_target
        if target is not None and (self._faulted or self.rewrites):
            step = self._params.steering
            factor = self.fault_price_factor * (1 + step) ** ((1.0 if self._faulted else 0.0) - target)
            low, high = self._params.factor_bounds
            self.fault_price_factor = min(high, max(low, factor))
            self._fault_share += (float(self._faulted) - self._fault_share) / self._params.fault_memory_calls
        self._faulted = False

    def _head(self, piece: Slice) -> Entry | None:
        """The head of a huge machine output, in place of all its slices; None for another block."""
        segment = self._log.segments[piece.segment]
        block = segment.block
        if segment.slices[0] != piece.number or segment.kind in OUTPUT_KINDS or segment.kind is SliceKind.USER:
            return None
        arguments = self._log.arguments_of(segment)
        if not should_slim_at_birth(block.text, tool=block.name, arguments=arguments, is_error=block.is_error):
            return None
        view = head_view(
            block.text,
            handle=self._log.handle(segment),
            name=segment.path,
            tool=block.name,
            is_error=block.is_error,
        )
        if view is None:
            return None
        units = dict.fromkeys(unit for line in view.text.split("\n") for unit in units_in(self._log, line))
        tokens = self._log.count(view.text) + MESSAGE_TOKENS
        return self.window.make(EntryForm.HEAD, tokens, segment.slices, units, text=view.text)

    def _limit(self) -> _Limit | None:
        """The smallest size from which on a request is dearer as a whole or does not fit; None where there is none."""
        limits = [_Limit(step.above_tokens, RewriteReason.STEP) for step in self._prices.steps]
        if self._window_tokens is not None:
            limits.append(_Limit(self._window_tokens, RewriteReason.WINDOW))
        return min(limits, default=None)

    def _force(self, limit: _Limit, idle: Idle, ahead: int) -> Generator[None, None, _Laid | None]:
        """Leave out as much as brings the request well below a limit, whatever the ledger says.

        None when nothing may leave: what is fixed and the newest calls alone are over it.
        """
        entries = self.window.entries
        found: _Laid | None = None
        for share, worth in ((self._params.limit_share, self.fault_price_factor), (self._params.limit_share / 2, 0.0)):
            most = round(share * limit.tokens)
            leaving = self._rule.forced(idle.entries, self.prompt_tokens - most, ahead=ahead)
            # Where lines of digests have taken the room, all digests are laid anew as handles alone.
            changed = [e.number in leaving or (not worth and e.form is EntryForm.DIGEST) for e in entries]
            if not leaving:
                break
            found = yield from self._lay(changed.index(True), leaving, worth, limit.reason)
            if self._resident_tokens + found.window.tokens <= limit.tokens:
                break
        return found

    def _first_change(self, idle: Idle, now: int, *, is_cold: bool) -> int | None:
        """Place of the first entry that a rewrite would change; None when no rewrite is due or affordable."""
        if not idle.entries:
            return None
        prices = self._prices
        rent, stay, left = 0.0, 0, 0
        found = None
        for place in range(len(self.window.entries) - 1, -1, -1):
            entry = self.window.entries[place]
            if entry.number not in idle.entries:
                stay += entry.tokens
                continue
            left += entry.tokens
            rent += prices.read * entry.tokens * (now - idle.since[entry.number] + 2)
            price = 0.0 if is_cold else rewrite_price(prices, stay + self._tokens_in_front(place))
            is_due = is_cold or rent >= self._params.patience * price
            is_due = is_due or entry.number in idle.over_quota
            if is_due and self._can_pay(max(price, self._refused_price), left):
                found = place
        return found

    def _tokens_in_front(self, place: int) -> int:
        """Tokens of the block that an entry stands in, in front of it, where they are written again with it."""
        if not self._params.whole_blocks:
            return 0
        entries, tokens = self.window.entries, 0
        segment = self._log.slices[entries[place].pieces[0]].segment if entries[place].pieces else -1
        for entry in reversed(entries[:place]):
            if not any(self._log.slices[piece].segment == segment for piece in entry.pieces):
                break
            tokens += entry.tokens
        return tokens

    def _can_pay(self, price: float, tokens_out: int) -> bool:
        """Whether the ledger can pay for a rewrite, and for page faults beside it as far as its savings do not.

        Where as much leaves as stays, what a call saves pays for a fault in every one of them.
        """
        prices = self._prices
        asked = fault_price(prices, self.prompt_tokens - tokens_out, self._params.reserve_page_tokens)
        reserve = self._params.reserve_faults * max(0.0, asked - prices.read * tokens_out)
        return self.ledger.can_afford(price + reserve, self._params.overdraft)

    def _rewrite(self, cut: int, leaving: set[int], *, is_cold: bool) -> Generator[None, None, _Laid | None]:
        """Lay the window anew from ``cut`` on; None when the ledger cannot pay for what is written."""
        worth = self.fault_price_factor if self._params.digest else 0.0
        reason = RewriteReason.COLD if is_cold else RewriteReason.RENT
        laid = yield from self._lay(cut, leaving, worth, reason)
        out = self.window.tokens - laid.window.tokens
        if out <= 0 or not self._can_pay(laid.price, out):
            self._refused_price = laid.price
            return None
        return laid

    def _leave(self, laid: _Laid, now: int) -> Rewrite:
        """Put what was laid in place of the window."""
        changed, before = self.window.entries[laid.cut :], self.window.tokens
        self._refused_price = 0.0
        self.window.take_over(laid.window)
        left: list[int] = []
        for entry in changed:
            if entry.number in laid.leaving:
                self._rule.idle_since.pop(entry.number, None)
                left += entry.pieces
        for number in left:
            self.swapped_out_at[number] = now
            self.faults.swapped_out(number, now)
        record = Rewrite(now, laid.reason, tuple(left), before, self.window.tokens, laid.price)
        self.rewrites.append(record)
        return record

    def _lay(self, cut: int, leaving: set[int], worth: float, reason: RewriteReason) -> Generator[None, None, _Laid]:
        """What stands when some entries from ``cut`` on have left."""
        entries = self.window.entries
        changed = entries[cut:]
        # Old digests are judged again: what stands in them does not stand in the window meanwhile.
        staying = [entry for entry in changed if entry.number not in leaving and entry.form is not EntryForm.DIGEST]
        draft = self.window.draft(entries[:cut] + staying)
        prompt_tokens = self._resident_tokens + sum(entry.tokens for entry in entries)
        laid = yield from self._digests.lay(changed, leaving, draft, prompt_tokens=prompt_tokens, worth=worth)
        yield
        draft.replace_all(entries[:cut] + laid)
        yield
        is_free = reason is RewriteReason.COLD
        price = 0.0 if is_free else rewrite_price(self._prices, sum(entry.tokens for entry in laid))
        return _Laid(cut, leaving, draft, reason, price)


def _start_correction(prices: PriceProfile, resident_tokens: int) -> float:
    """Where the steering starts, beside a read price of .1 and a resident part of 8K.

    The bill of a fault grows with the read price and the prompt, the chance of one does not: where it is
    dear, more must be paid to see as few; measured at .025, .1 and 1, and at 8K and 40K.
    """
    prompt = _USUAL_WINDOW_TOKENS + resident_tokens
    usual = _USUAL_WINDOW_TOKENS + _USUAL_RESIDENT_TOKENS
    return float((prices.read / _USUAL_READ_PRICE * usual / prompt) ** 0.5)
