"""Digests: what stays in the window of slices that leave it (section 5.3, rule 5 of the paging notes).

One digest stands for a run of neighbours of one exchange: a handle, names of files, and whole lines of
theirs, verbatim, that are likely to be needed and stand nowhere else in the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from context_gatekeeper.core.economics import FAULT_CALL_TOKENS, PriceProfile
from context_gatekeeper.core.evidence import evidence_tokens, line_keys, token_runs
from context_gatekeeper.core.tokens import TOOL_CALL_TOKENS
from context_gatekeeper.engine.citation import CitationModel
from context_gatekeeper.engine.session_log import SessionLog, Slice, SliceKind, UnitKind, readable_text
from context_gatekeeper.engine.window import Entry, EntryForm, Window

__all__ = ["DIGEST_PARAMS", "DigestMaker", "DigestParams", "KeptLines", "handle_ranges", "slice_text", "units_in"]


@dataclass(frozen=True, slots=True)
class DigestParams:
    """Numbers of the digests."""

    horizon_calls: float = 100.0
    """Calls whose rent a line must be worth."""
    page_tokens: float = 300.0
    """Page that a fault would bring back, on average."""
    worth_factor: float = 2.0
    """Worth of a line's use beside a slice's: a line that is there serves more than one call."""
    most_line_tokens: int = 45
    least_line_tokens: int = 3
    budget_tokens: int = 12_000
    """All digests together; beyond it the poorest lose their lines until `budget_share` of it is left."""
    budget_share: float = 0.6
    least_probability: float = 0.002


DIGEST_PARAMS = DigestParams()


class KeptLines(NamedTuple):
    """What a digest keeps of one slice."""

    units: tuple[int, ...]
    texts: tuple[str, ...]


@dataclass(slots=True)
class _Run:
    """Neighbours that leave, or left, together."""

    exchange: int
    pieces: list[int] = field(default_factory=list)
    units: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


class DigestMaker:
    """Makes the digests of one window."""

    def __init__(
        self,
        log: SessionLog,
        window: Window,
        model: CitationModel,
        prices: PriceProfile,
        params: DigestParams = DIGEST_PARAMS,
    ) -> None:
        self._log = log
        self._window = window
        self._model = model
        self._prices = prices
        self._params = params

    def lay(
        self, changed: Sequence[Entry], leaving: AbstractSet[int], *, prompt_tokens: int, worth: float
    ) -> list[Entry]:
        """The changed stretch of a window: entries that stay, and digests where entries leave.

        The window holds what stays, and nothing of what leaves; old digests of the stretch leave too.

        Args:
            changed: entries from the first change on, in order.
            leaving: numbers of those that leave.
            prompt_tokens: of a request, for the price of a fault.
            worth: the fault price factor; 0 leaves handles only.
        """
        prices = self._prices
        asked = prices.read * prompt_tokens + prices.output * FAULT_CALL_TOKENS
        gain = worth * self._params.worth_factor * (asked + prices.write * self._params.page_tokens)
        rent = prices.read * self._params.horizon_calls + max(0.0, prices.write - prices.read)
        shown: set[int] = set()
        kept: dict[tuple[int, int], KeptLines] = {}  # a slice may stand in two: it left, came back, and leaves again
        for entry in reversed(changed):  # newest first: an older line that stands again is not needed
            if gain and (entry.number in leaving or entry.form is EntryForm.DIGEST):
                for piece in reversed(entry.pieces):
                    kept[entry.number, piece] = self._lines_of(self._log.slices[piece], gain, rent, shown)
        laid = self._join_runs(changed, leaving, kept)
        poorest = self._over_budget(laid)
        if poorest:
            kept = {key: lines for key, lines in kept.items() if key[1] not in poorest}
            laid = self._join_runs(changed, leaving, kept)
        return laid

    def _join_runs(
        self, changed: Sequence[Entry], leaving: AbstractSet[int], kept: dict[tuple[int, int], KeptLines]
    ) -> list[Entry]:
        laid: list[Entry] = []
        run: _Run | None = None
        for entry in changed:
            if entry.form is not EntryForm.DIGEST and entry.number not in leaving:
                self._close(run, laid)
                run = None
                laid.append(entry)
                continue
            for piece in entry.pieces:
                lines = kept.get((entry.number, piece), KeptLines((), ()))
                exchange = self._log.exchange_of(piece)
                # Lines stand under the handle of their own exchange; stretches without lines share one.
                if run is not None and run.exchange != exchange and (run.lines or lines.texts):
                    self._close(run, laid)
                    run = None
                run = run or _Run(exchange)
                run.exchange = exchange
                run.pieces.append(piece)
                run.units += lines.units
                run.lines += lines.texts
        self._close(run, laid)
        return laid

    def _close(self, run: _Run | None, laid: list[Entry]) -> None:
        if run is None or all(self._is_thinking(piece) for piece in run.pieces):
            return  # thinking alone leaves nothing
        text = "\n".join([f"[out: {' '.join(handle_ranges(self._log, run.pieces))}]", *run.lines])
        frames = TOOL_CALL_TOKENS * len(self._calls_left_open(run.pieces))
        units = dict.fromkeys(run.units)
        laid.append(self._window.make(EntryForm.DIGEST, self._log.count(text) + frames, run.pieces, units, text=text))

    def _is_thinking(self, piece: int) -> bool:
        return self._log.segments[self._log.slices[piece].segment].kind is SliceKind.THINKING

    def _calls_left_open(self, pieces: Sequence[int]) -> set[int]:
        """Blocks of calls among the slices, whose frame stays because their result does."""
        log = self._log
        answered = set()
        for segment in {log.slices[piece].segment for piece in pieces}:
            for result in log.results_of(log.segments[segment]):
                if any(self._window.holds_piece(number) for number in result.slices):
                    answered.add(segment)
        return answered

    def _lines_of(self, piece: Slice, gain: float, rent: float, shown: set[int]) -> KeptLines:
        """Lines of a leaving slice that are worth their rent; notes them in ``shown``."""
        log, params = self._log, self._params
        chances = {
            unit: chance
            for unit in piece.units
            if unit not in shown
            and (chance := self._model.unit_probability(unit)) > params.least_probability
            and not self._window.holds(unit)
        }
        units: list[int] = []
        kept: list[str] = []
        if not chances:
            return KeptLines((), ())
        for unit, chance in sorted(chances.items(), key=lambda item: (-item[1], item[0])):
            if log.units[unit].kind is UnitKind.PATH and unit not in shown:
                name = log.name_of(unit)
                cost = 1 + 0.3 * len(name)
                if chance * gain >= cost * rent:
                    found = [n for run in token_runs(name) if (n := log.unit_id(run)) is not None]
                    units += found
                    shown.update(found)
                    kept.append(name)
        for line in slice_text(log, piece).split("\n"):
            cost = 1 + 0.3 * len(line.strip())
            if not params.least_line_tokens <= cost <= params.most_line_tokens:
                continue
            held = units_in(log, line)
            chance = sum(chances.get(unit, 0.0) for unit in held if unit not in shown)
            if chance and chance * gain >= cost * rent:
                units += held
                shown.update(held)
                kept.append(line.strip())
        return KeptLines(tuple(units), tuple(kept))

    def _over_budget(self, laid: list[Entry]) -> set[int]:
        """Slices whose lines go, those of the poorest digests, when all digests are over the budget.

        Their handles stay: nothing is out without a trace.
        """
        kept = self._window.entries
        total = sum(entry.tokens for entry in (*kept, *laid) if entry.form is EntryForm.DIGEST)
        # Entries of ``laid`` that are in the window are no digests, so nothing is counted twice.
        poorest: set[int] = set()
        if total <= self._params.budget_tokens:
            return poorest
        digests = [entry for entry in laid if entry.form is EntryForm.DIGEST and "\n" in entry.text]
        for entry in sorted(digests, key=lambda entry: (self._worth_a_token(entry), entry.number)):
            if total <= self._params.budget_share * self._params.budget_tokens:
                break
            poorest.update(entry.pieces)
            total -= entry.tokens
        return poorest

    def _worth_a_token(self, entry: Entry) -> float:
        return (sum(self._model.unit_probability(unit) for unit in entry.units) + 0.001) / entry.tokens


def handle_ranges(log: SessionLog, pieces: Sequence[int]) -> list[str]:
    """Handles of slices in order.

    ``p12`` for a block, ``p12-p20`` for several, ``p12#L40-88`` for some lines of one, ``p12#C100-200`` for a
    stretch of a long line.
    """
    told: list[str] = []
    first_whole = last_whole = -1
    place = 0
    while place < len(pieces):
        segment = log.segments[log.slices[pieces[place]].segment]
        end = place
        while end + 1 < len(pieces) and pieces[end + 1] == pieces[end] + 1 and pieces[end + 1] <= segment.slices[-1]:
            end += 1
        first, last = log.slices[pieces[place]], log.slices[pieces[end]]
        place = end + 1
        if (first.number, last.number) == (segment.slices[0], segment.slices[-1]):
            if last_whole >= 0 and segment.number == last_whole + 1:
                told[-1] = f"{log.handle(log.segments[first_whole])}-{log.handle(segment)}"
            else:
                told.append(log.handle(segment))
                first_whole = segment.number
            last_whole = segment.number
            continue
        told.append(f"{log.handle(segment)}#{_span(segment.text, first.start, last.end)}")
        last_whole = -1
    return told


def _span(text: str, start: int, end: int) -> str:
    """``L40-88`` for whole lines, ``C100-200`` (from, before) for a stretch that does not begin or end with a line."""
    if (start and text[start - 1] != "\n") or (end < len(text) and text[end - 1] != "\n"):
        return f"C{start}-{end}"
    line = text.count("\n", 0, start) + 1
    return f"L{line}-{line + text.count(chr(10), start, end - 1)}"


def slice_text(log: SessionLog, piece: Slice) -> str:
    """The slice as a reader sees it: a call's arguments without their JSON."""
    return readable_text(log.segments[piece.segment].block, piece.start, piece.end)


def units_in(log: SessionLog, line: str) -> list[int]:
    """Numbers of the evidence units that one line shows."""
    names = dict.fromkeys(line_keys(line))
    for token in evidence_tokens(line):
        names.update(dict.fromkeys(token_runs(token)))
    return [number for name in names if (number := log.unit_id(name)) is not None]
