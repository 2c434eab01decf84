"""Digests: what stays in the window of slices that leave it (section 5.3, rule 5 of the paging notes).

One digest stands for a run of neighbours of one exchange: a handle, names of files, and whole lines of
theirs, verbatim, that are likely to be needed and stand nowhere else in the window.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from context_gatekeeper.core.argument_cuts import ArgumentCut, cut_arguments
from context_gatekeeper.core.economics import FAULT_CALL_TOKENS, PriceProfile
from context_gatekeeper.core.evidence import evidence_tokens, line_keys, token_runs
from context_gatekeeper.core.tokens import TOOL_CALL_TOKENS
from context_gatekeeper.engine.citation import CitationModel
from context_gatekeeper.engine.session_log import SessionLog, Slice, SliceKind, UnitKind, readable_text
from context_gatekeeper.engine.window import Entry, EntryForm, Window

__all__ = [
    "DIGEST_PARAMS",
    "DigestMaker",
    "DigestParams",
    "KeptLines",
    "handle_ranges",
    "run_through",
    "slice_text",
    "units_in",
]


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
_Result = TypeVar("_Result")


class KeptLines(NamedTuple):
    """What a digest keeps of one slice."""

    units: tuple[int, ...]
    texts: tuple[str, ...]


class _Line(NamedTuple):
    """A line of a slice that is short enough to be kept, and shows something."""

    text: str
    cost: float
    """In tokens."""
    units: list[int]


@dataclass(slots=True)
class _Run:
    """Neighbours that leave, or left, together."""

    exchange: int
    pieces: list[int] = field(default_factory=list)
    units: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


class DigestMaker:
    """Makes the digests of one session's windows."""

    def __init__(
        self,
        log: SessionLog,
        model: CitationModel,
        prices: PriceProfile,
        params: DigestParams = DIGEST_PARAMS,
    ) -> None:
        self._log = log
        self._model = model
        self._prices = prices
        self._params = params
        self._lines: dict[int, tuple[_Line, ...]] = {}
        """Of slices that left: a digest is made anew with every rewrite in front of it."""
        self._frames: dict[int, int] = {}
        """Tokens of calls that stayed for the sake of their results."""

    def lay(
        self, changed: Sequence[Entry], leaving: AbstractSet[int], window: Window, *, prompt_tokens: int, worth: float
    ) -> Generator[None, None, list[Entry]]:
        """Lay the changed stretch of a window, in small steps: entries that stay, and digests where entries leave.

        Old digests of the stretch leave too.

        Args:
            changed: entries from the first change on, in order.
            leaving: numbers of those that leave.
            window: holds what stays, and nothing of what leaves.
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
                    kept[entry.number, piece] = self._lines_of(self._log.slices[piece], window, gain, rent, shown)
                    yield
        laid = yield from self._join_runs(changed, leaving, window, kept)
        yield
        poorest = self._over_budget(laid, window)
        if poorest:
            kept = {key: lines for key, lines in kept.items() if key[1] not in poorest}
            laid = yield from self._join_runs(changed, leaving, window, kept)
        return laid

    def _join_runs(
        self,
        changed: Sequence[Entry],
        leaving: AbstractSet[int],
        window: Window,
        kept: dict[tuple[int, int], KeptLines],
    ) -> Generator[None, None, list[Entry]]:
        laid: list[Entry] = []
        run: _Run | None = None
        for entry in changed:
            if entry.form is not EntryForm.DIGEST and entry.number not in leaving:
                self._close(run, window, laid)
                run = None
                laid.append(entry)
                continue
            for piece in entry.pieces:
                lines = kept.get((entry.number, piece), KeptLines((), ()))
                exchange = self._log.exchange_of(piece)
                # Lines stand under the handle of their own exchange; stretches without lines share one.
                if run is not None and run.exchange != exchange and (run.lines or lines.texts):
                    self._close(run, window, laid)
                    run = None
                    yield
                run = run or _Run(exchange)
                run.exchange = exchange
                run.pieces.append(piece)
                run.units += lines.units
                run.lines += lines.texts
        self._close(run, window, laid)
        return laid

    def _close(self, run: _Run | None, window: Window, laid: list[Entry]) -> None:
        if run is None or all(self._is_thinking(piece) for piece in run.pieces):
            return  # thinking alone leaves nothing
        text = "\n".join([f"[out: {' '.join(handle_ranges(self._log, run.pieces))}]", *run.lines])
        frames = sum(self._frame_tokens(segment) for segment in self._calls_left_open(run.pieces, window))
        units = dict.fromkeys(run.units)
        laid.append(window.make(EntryForm.DIGEST, self._log.count(text) + frames, run.pieces, units, text=text))

    def _is_thinking(self, piece: int) -> bool:
        return self._log.segments[self._log.slices[piece].segment].kind is SliceKind.THINKING

    def _frame_tokens(self, segment: int) -> int:
        """Of a call that stays for the sake of its result: its framing, and what is left of its arguments."""
        tokens = self._frames.get(segment)
        if tokens is None:
            text = self._log.segments[segment].block.text
            left = cut_arguments(text, [ArgumentCut(0, len(text), "", "")])
            tokens = self._frames[segment] = TOOL_CALL_TOKENS + self._log.count(left)
        return tokens

    def _calls_left_open(self, pieces: Sequence[int], window: Window) -> set[int]:
        """Blocks of calls among the slices, whose frame stays because their result does."""
        log = self._log
        answered = set()
        for segment in {log.slices[piece].segment for piece in pieces}:
            for result in log.results_of(log.segments[segment]):
                if any(window.holds_piece(number) for number in result.slices):
                    answered.add(segment)
        return answered

    def _lines_of(self, piece: Slice, window: Window, gain: float, rent: float, shown: set[int]) -> KeptLines:
        """Lines of a leaving slice that are worth their rent; notes them in ``shown``."""
        log, params = self._log, self._params
        chances = {
            unit: chance
            for unit in piece.units
            if unit not in shown
            and not window.holds(unit)
            and (chance := self._model.unit_probability(unit)) > params.least_probability
        }
        units: list[int] = []
        kept: list[str] = []
        if not chances:
            return KeptLines((), ())
        paths = [unit for unit in chances if log.units[unit].kind is UnitKind.PATH]
        for unit in sorted(paths, key=lambda unit: (-chances[unit], unit)):
            name = log.name_of(unit)
            cost = 1 + 0.3 * len(name)
            if unit not in shown and chances[unit] * gain >= cost * rent:
                found = [n for run in token_runs(name) if (n := log.unit_id(run)) is not None]
                units += found
                shown.update(found)
                kept.append(name)
        for line in self._lines_with_units(piece):
            chance = sum([chances.get(unit, 0.0) for unit in line.units if unit not in shown])
            if chance and chance * gain >= line.cost * rent:
                units += line.units
                shown.update(line.units)
                kept.append(line.text)
        return KeptLines(tuple(units), tuple(kept))

    def _lines_with_units(self, piece: Slice) -> tuple[_Line, ...]:
        """The slice's lines that may be kept. All they show was taken into the log with the slice."""
        known = self._lines.get(piece.number)
        if known is None:
            params = self._params
            lines = []
            for line in self._log.text_read(piece).split("\n"):
                text = line.strip()
                cost = 1 + 0.3 * len(text)
                if params.least_line_tokens <= cost <= params.most_line_tokens and (held := units_in(self._log, line)):
                    lines.append(_Line(text, cost, held))
            known = self._lines[piece.number] = tuple(lines)
        return known

    def _over_budget(self, laid: list[Entry], window: Window) -> set[int]:
        """Slices whose lines go, those of the poorest digests, when all digests are over the budget.

        Their handles stay: nothing is out without a trace.
        """
        kept = window.entries
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


def run_through(steps: Generator[None, None, _Result]) -> _Result:
    """All steps at once; what they come to."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: _Result = end.value
            return result


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
        told.append(f"{log.handle(segment)}#{_span(segment.text, first, last.end)}")
        last_whole = -1
    return told


def _span(text: str, first: Slice, end: int) -> str:
    """``L40-88`` for whole lines, ``C100-200`` (from, before) for a stretch that does not begin or end with a line."""
    start, line = first.start, first.first_line
    if (start and text[start - 1] != "\n") or (end < len(text) and text[end - 1] != "\n"):
        return f"C{start}-{end}"
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
