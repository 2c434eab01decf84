"""Pager: which slices of an agent session stay in the window, call by call (section 5.3 of the paging notes).

Between two rewrites (an *epoch*) the window only grows at its tail, so that the provider's cached
prefix stays byte-identical. A rewrite leaves out slices that will hardly be quoted again and leaves a
digest in their place: a handle, and the lines that are still likely to be quoted. It is made when the rent of
what could be left out has reached its price (ski rental, by depth), or when the cache is cold anyway, and only
when the session's ledger can pay for it. A page fault brings a slice back at the tail.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from context_gatekeeper.core.economics import PriceProfile, call_price, fault_price, rewrite_price
from context_gatekeeper.core.heat import FaultHistory
from context_gatekeeper.core.ledger import NetLedger
from context_gatekeeper.core.slimming import head_view, should_slim_at_birth
from context_gatekeeper.core.tokens import MESSAGE_TOKENS
from context_gatekeeper.engine.citation import CitationModel
from context_gatekeeper.engine.digest import DigestMaker, handle_ranges, units_in
from context_gatekeeper.engine.plan import ContextPlan, PlannedDeparture, PlannedEntry
from context_gatekeeper.engine.repeats import reference_to_window
from context_gatekeeper.engine.session_log import OUTPUT_KINDS, SessionLog, Slice, SliceKind
from context_gatekeeper.engine.window import Entry, EntryForm, Window

__all__ = ["OURS", "OURS_CAREFUL", "OURS_FRUGAL", "Judgement", "Pager", "PagerParams", "Rewrite"]


_USUAL_READ_PRICE = 0.1
_USUAL_RESIDENT_TOKENS = 8000
_USUAL_WINDOW_TOKENS = 28_000


@dataclass(frozen=True, slots=True)
class PagerParams:
    """Numbers of the planner. ``fault_price_factor`` is the one knob of the user."""

    fault_price_factor: float = 0.9
    """What a page fault is worth in units of its own bill; with a target, where the steering starts."""
    fault_target: float | None = 0.045
    """Share of calls that may fault; the factor is steered to it. None: the factor stays."""
    steering: float = 0.12
    """Step of the factor's logarithm a call: up by this much at a fault, down by the target's share of it."""
    fault_memory_calls: float = 40.0
    """Calls over which the running share of faults is taken."""
    patience_share: float = 2.0
    """Running share over target beyond which nothing more is left out until faults have become rarer."""
    factor_bounds: tuple[float, float] = (0.3, 8.0)
    name_weight: float = 0.2
    """Worth of a slice of which only a name may be quoted, beside one with a line."""
    keep_calls: float = 8.0
    """Calls whose rent a slice must be worth to stay at a rewrite."""
    patience: float = 3.0
    """Rent over price at which a rewrite is due."""
    tail_tokens: int = 1000
    """Newest part of the window, which always stays."""
    short_user_tokens: int = 150
    """A person's text up to this size always stays."""
    short_call_tokens: int = 100
    """A call up to this size stays as long as its result does."""
    other_task_share: float = 0.1
    """Of a request that other tasks than the running one may fill."""
    every_calls: int = 2
    """Calls between two looks at the window."""
    overdraft: float = 0.01
    """Share of the append-only bill by which a session's own may stand above it."""
    reserve_faults: float = 1.0
    """Page faults that the ledger must be able to pay beside a rewrite."""
    digest: bool = True
    refers: bool = True


OURS = PagerParams()
"""The headline: about one call in twenty faults."""
OURS_FRUGAL = replace(OURS, fault_price_factor=0.5, fault_target=0.09)
"""Cheaper, with about one fault in eleven calls."""
OURS_CAREFUL = replace(OURS, fault_price_factor=1.5, fault_target=0.018)
"""About one fault in fifty calls."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Why a slice stays in the window or may leave it."""

    stays: bool
    reason: str
    risk: float = 0.0
    """Expected units of a fault when it leaves, before the factor."""
    rent: float = 0.0
    """Units that keeping it costs over the calls it must be worth."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Record of one rewrite, for explanations and for the event feed."""

    call: int
    reason: str
    """``cold`` (the cache had run out) or ``rent``."""
    swapped_out: tuple[int, ...]
    """Numbers of the slices that left."""
    tokens_before: int
    tokens_after: int
    price: float
    """Extra units of writing again what stands behind the first change."""


class Pager:
    """Keeps one session's window.

    Args:
        log: the session; only read.
        prices: what the provider charges.
        resident_tokens: system text and tools, in front of the window, never cut.
        params: the numbers.
    """

    def __init__(
        self, log: SessionLog, prices: PriceProfile, *, resident_tokens: int, params: PagerParams = OURS
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
        self._digests = DigestMaker(log, self.window, self._model, prices)
        self._idle_since: dict[int, int] = {}
        self._faulted = False
        self._fault_share = 0.0
        self._faults_in_epoch = 0
        self._sent: list[int] = []
        self._sent_before: list[int] = []
        self._rested_on: dict[int, list[int]] = {}

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
            for older in found.rests_on:
                self._rested_on.setdefault(older, []).append(piece.number)

    def fault(self, pieces: Sequence[int]) -> None:
        """Count page faults, and bring the slices back. One that keeps coming back stays for a while."""
        for number in pieces:
            self.refetched_hot_slices += self.faults.faulted(number, self._log.calls).refetched
        self.bring_back(pieces)

    def bring_back(self, pieces: Sequence[int]) -> None:
        """Put slices whole at the tail, after faults that `faults` has counted."""
        for number in pieces:
            self.window.append(self.window.make(EntryForm.RECALLED, self._log.slices[number].tokens, [number]))
        self._faults_in_epoch += len(pieces)
        self._faulted = True

    def prepare(self, *, is_cold: bool) -> Rewrite | None:
        """Decide, before a call, whether to rewrite the window; the rewrite's record when it was done.

        Args:
            is_cold: the provider's cache has run out, so that everything is written again anyway.
        """
        self._steer()
        self._sent_before = self._sent
        rewrite = self._decide(is_cold=is_cold)
        self._sent = [entry.number for entry in self.window.entries]
        if rewrite is not None:
            self._faults_in_epoch = 0
        return rewrite

    def _decide(self, *, is_cold: bool) -> Rewrite | None:
        if not self._prices.has_cache:
            is_cold = True
        if not self._can_pay_off() or (self._log.calls % self._params.every_calls and not is_cold):
            return None
        target = self._params.fault_target
        if target is not None and self._fault_share > self._params.patience_share * target:
            return None
        idle = self._idle_entries()
        cut = self._first_change(idle, is_cold=is_cold)
        return None if cut is None else self._rewrite(cut, idle, is_cold=is_cold)

    def plan(self) -> ContextPlan:
        """The record of the window as it stands, for the request that `prepare` was last called for."""
        price = fault_price(self._prices, self.prompt_tokens, 0)
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
            entries=tuple(self._planned(place, entry, price) for place, entry in enumerate(self.window.entries)),
            departures=self._departures(),
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

    def _planned(self, place: int, entry: Entry, price: float) -> PlannedEntry:
        log = self._log
        handle = " ".join(handle_ranges(log, entry.pieces))
        if entry.form in (EntryForm.DIGEST, EntryForm.HEAD):
            reason = "left; the handle gives it back"
            if entry.form is EntryForm.HEAD:
                reason = "too long to be sent whole"
            elif "\n" in entry.text:
                reason = "left, but for lines likely to be needed"
            return PlannedEntry(handle, entry.form.value, "", "", "", entry.tokens, reason, 0.0, 0.0)
        piece = log.slices[entry.pieces[0]]
        segment = log.segments[piece.segment]
        verdict = self._judge(entry, price)
        idle_since = self._idle_since.get(entry.number)
        if place >= self._tail_start():
            reason = "the newest part"
        elif idle_since is not None:
            reason = f"{verdict.reason} since call {idle_since}, but a rewrite does not pay yet"
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

    def _tail_start(self) -> int:
        """Place of the first entry of the newest part, which always stays."""
        entries = self.window.entries
        tail, first = 0, len(entries)
        while first and tail < self._params.tail_tokens:
            first -= 1
            tail += entries[first].tokens
        return first

    def _can_pay_off(self) -> bool:
        """A prefix that is read for nothing costs no rent."""
        return self._prices.read > 0

    def _steer(self) -> None:
        """Move the price of a fault towards the target share of faults."""
        target = self._params.fault_target
        if target is not None and self._log.calls:
            step = self._params.steering
            factor = self.fault_price_factor * (1 + step) ** ((1.0 if self._faulted else 0.0) - target)
            low, high = self._params.factor_bounds
            self.fault_price_factor = min(high, max(low, factor))
            self._fault_share += (float(self._faulted) - self._fault_share) / self._params.fault_memory_calls
        self._faulted = False

    def _idle_entries(self) -> set[int]:
        """Numbers of the entries that are not worth their rent."""
        entries = self.window.entries
        last = self._tail_start()
        price = fault_price(self._prices, self.prompt_tokens, 0)
        idle: set[int] = set()
        for entry in entries[:last]:
            if not entry.is_whole and entry.form is not EntryForm.REFERENCE:
                continue
            if not self._judge(entry, price).stays:
                idle.add(entry.number)
        idle |= self._over_quota(entries[:last], idle)
        idle -= self._small_calls_with_results(entries, idle)
        for entry in entries[:last]:
            if entry.number in idle:
                self._idle_since.setdefault(entry.number, self._log.calls)
            else:
                self._idle_since.pop(entry.number, None)
        return idle

    def _small_calls_with_results(self, entries: Sequence[Entry], idle: AbstractSet[int]) -> set[int]:
        """Idle entries of short calls whose results stay: a call and its results are one swap group.

        A long call may leave its arguments behind in the pool; its digest then keeps the frame of the call.
        """
        log = self._log
        with_results: set[int] = set()
        for entry in entries:
            if entry.number in idle or not entry.pieces or entry.form is EntryForm.DIGEST:
                continue
            call = log.call_of(log.segments[log.slices[entry.pieces[0]].segment])
            if call is not None and sum(log.slices[n].tokens for n in call.slices) <= self._params.short_call_tokens:
                with_results.add(call.number)
        return {
            entry.number
            for entry in entries
            if entry.number in idle and log.slices[entry.pieces[0]].segment in with_results
        }

    def _over_quota(self, entries: Sequence[Entry], idle: AbstractSet[int]) -> set[int]:
        """Entries of other tasks that would stay, the least likely first, as far as they are over their quota."""
        log = self._log
        others = [
            (self._worth(entry.pieces[0]), entry)
            for entry in entries
            if entry.is_whole and entry.number not in idle and log.is_of_other_task(log.slices[entry.pieces[0]])
        ]
        excess = sum(entry.tokens for _, entry in others) - self._params.other_task_share * self.prompt_tokens
        over: set[int] = set()
        for _, entry in sorted(others, key=lambda item: (item[0], item[1].number)):
            if excess <= 0:
                break
            over.add(entry.number)
            excess -= entry.tokens
        return over

    def _judge(self, entry: Entry, price: float) -> Judgement:
        """Whether an entry's slice is worth its rent; ``price`` is that of a fault without the page."""
        params, log = self._params, self._log
        piece = log.slices[entry.pieces[0]]
        kind = log.segments[piece.segment].kind
        if kind is SliceKind.USER and piece.tokens <= params.short_user_tokens:
            return Judgement(stays=True, reason="a short text of the user")
        if self.faults.is_resident(piece.number, log.calls):
            return Judgement(stays=True, reason="came back again and again: resident for a while")
        rent = piece.tokens * self._prices.read * params.keep_calls
        if kind is SliceKind.THINKING:
            return Judgement(stays=False, reason="thinking of an earlier turn", rent=rent)
        risk = self._worth(piece.number) * (price + self._prices.write * piece.tokens)
        stays = risk * self.fault_price_factor >= rent
        reason = "likely to be quoted again" if stays else "hardly quoted again"
        return Judgement(stays, reason, risk, rent)

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

    def _worth(self, number: int) -> float:
        """Probability that the slice, or one that refers to it, is quoted soon; a mere name counts less."""
        worth = 0.0
        for piece in (number, *self._rested_on.get(number, ())):
            by_line, by_name = self._model.slice_probabilities(self._log.slices[piece])
            worth = max(worth, by_line + self._params.name_weight * by_name)
        return worth

    def _first_change(self, idle: set[int], *, is_cold: bool) -> int | None:
        """Place of the first entry that a rewrite would change; None when no rewrite is due or affordable."""
        if not idle:
            return None
        prices, now = self._prices, self._log.calls
        reserve = self._params.reserve_faults * fault_price(prices, self.prompt_tokens, 0)
        rent, stay = 0.0, 0
        found = None
        for place in range(len(self.window.entries) - 1, -1, -1):
            entry = self.window.entries[place]
            if entry.number not in idle:
                stay += entry.tokens
                continue
            rent += prices.read * entry.tokens * (now - self._idle_since[entry.number] + 2)
            price = 0.0 if is_cold else rewrite_price(prices, stay)
            is_due = is_cold or rent >= self._params.patience * price
            if is_due and self.ledger.can_afford(price + reserve, self._params.overdraft):
                found = place
        return found

    def _rewrite(self, cut: int, idle: set[int], *, is_cold: bool) -> Rewrite:
        entries, before = self.window.entries, self.window.tokens
        changed = entries[cut:]
        leaving = [entry for entry in changed if entry.number in idle]
        staying = [entry for entry in changed if entry.number not in idle]
        for entry in leaving:
            self._idle_since.pop(entry.number, None)
            self.swapped_out_at[entry.pieces[0]] = self._log.calls
            self.faults.swapped_out(entry.pieces[0], self._log.calls)
        worth = self.fault_price_factor if self._params.digest else 0.0
        prompt_tokens = self.prompt_tokens
        # Old digests are judged again: what stands in them does not stand in the window meanwhile.
        self.window.replace_all(entries[:cut] + [entry for entry in staying if entry.form is not EntryForm.DIGEST])
        self.window.replace_all(
            entries[:cut] + self._digests.lay(changed, idle, prompt_tokens=prompt_tokens, worth=worth)
        )
        record = Rewrite(
            self._log.calls,
            "cold" if is_cold else "rent",
            tuple(entry.pieces[0] for entry in leaving),
            before,
            self.window.tokens,
            0.0 if is_cold else rewrite_price(self._prices, sum(entry.tokens for entry in staying)),
        )
        self.rewrites.append(record)
        return record


def _start_correction(prices: PriceProfile, resident_tokens: int) -> float:
    """Where the steering starts, beside a read price of .1 and a resident part of 8K.

    The bill of a fault grows with the read price and the prompt, the chance of one does not: where it is
    dear, more must be paid to see as few; measured at .025, .1 and 1, and at 8K and 40K.
    """
    prompt = _USUAL_WINDOW_TOKENS + resident_tokens
    usual = _USUAL_WINDOW_TOKENS + _USUAL_RESIDENT_TOKENS
    return float((prices.read / _USUAL_READ_PRICE * usual / prompt) ** 0.5)
