"""Policies that a replay compares: each lays the next request of one session.

Definitions: the replay paragraph of the goals; ``ours`` is the engine's own planner, not a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from context_gatekeeper.core.economics import FAULT_FRAME_TOKENS, PriceProfile
from context_gatekeeper.core.evidence import read_evidence
from context_gatekeeper.core.slimming import SPEC_SLIMMING, head_view, should_slim_at_birth
from context_gatekeeper.core.tokens import MESSAGE_TOKENS
from context_gatekeeper.engine.pager import Pager
from context_gatekeeper.engine.pager_params import PagerParams
from context_gatekeeper.engine.session_log import OUTPUT_KINDS, Segment, SessionLog, Slice, SliceKind
from context_gatekeeper.engine.window import Entry, EntryForm, Window
from context_gatekeeper.replay.holdings import Holdings
from context_gatekeeper.types import BlockKind

__all__ = [
    "AppendOnly",
    "AutoCompact",
    "MaskResults",
    "Ours",
    "Policy",
    "Request",
    "SlidingWindow",
    "SlimAtBirth",
    "WindowPolicy",
]

_PLACEHOLDER = "[cleared]"
"""What stands in place of a cleared tool result."""
_SAMPLE_HANDLE = "page:" + "0" * 16
"""As long as a real one."""
_RESULT_KINDS = (SliceKind.READ, SliceKind.SEARCH, SliceKind.SHELL, SliceKind.OTHER_RESULT)


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt as the bill sees it. Tokens without the resident part."""

    tokens: int
    common_tokens: int
    """Of the prefix that the request before had too."""
    volatile_tokens: int = 0
    """Of the tail, sent outside the cache."""
    breaks_prefix: bool = False
    """Whether something that the request before had is not in the prefix any more."""
    is_epoch: bool = False
    """Whether the policy declared that it would rewrite."""
    summary_tokens: int = 0
    """Output of an extra call that made a summary of the whole window before; 0 for none."""


class Policy(Protocol):
    """Lays the requests of one session, in order."""

    def add(self, pieces: Sequence[Slice]) -> None:
        """Take in new slices of the log."""
        ...

    def request(self, *, is_cold: bool) -> Request:
        """Decide, and lay the next prompt."""
        ...

    def holds(self, unit: int, *, by_words: bool) -> bool:
        """Whether the unit can be read in that prompt."""
        ...

    def hints_at(self, piece: int) -> bool:
        """Whether a handle for the slice stands in the prompt."""
        ...

    def fault(self, pieces: Sequence[int]) -> int:
        """Bring slices back for this call; their own tokens. Each stands in its frame, which the bill adds itself."""
        ...

    def billed(self, spent: float, append_only: float) -> None:
        """Hear what the call cost, and what it would have cost with append-only; outputs left out."""
        ...

    def other_task_tokens(self) -> int | None:
        """Tokens of that prompt, sent whole, that belong to other tasks than the running one; None: it has no such."""
        ...

    def left_at(self, piece: int) -> int | None:
        """Call before which a slice that had been sent whole was left out, the last time; None for never."""
        ...


class WindowPolicy:
    """A policy that keeps a window of entries. As it stands it sends everything."""

    def __init__(self, log: SessionLog, window: Window | None = None) -> None:
        self.log = log
        self.window = window or Window(log)
        self._sent: list[int] = []
        self._summary_tokens = 0
        self._holdings = Holdings(log, self.window)

    def add(self, pieces: Sequence[Slice]) -> None:
        """See `Policy.add`."""
        for piece in pieces:
            self.window.append(self.window.make(EntryForm.RAW, piece.tokens, [piece.number]))

    def prepare(self, *, is_cold: bool) -> bool:
        """Change the window before a call; whether it did."""
        return False

    def request(self, *, is_cold: bool) -> Request:
        """See `Policy.request`."""
        self._summary_tokens = 0
        is_epoch = self.prepare(is_cold=is_cold)
        entries, sent = self.window.entries, self._sent
        place = common = 0
        for entry, number in zip(entries, sent, strict=False):
            if entry.number != number:
                break
            common += entry.tokens
            place += 1
        broken = place < len(sent)
        self._sent = [entry.number for entry in entries]
        self._holdings.look()
        return Request(self.window.tokens, common, 0, broken, is_epoch, self._summary_tokens)

    def holds(self, unit: int, *, by_words: bool) -> bool:
        """See `Policy.holds`."""
        return self.window.holds(unit, by_words=by_words)

    def hints_at(self, piece: int) -> bool:
        """See `Policy.hints_at`."""
        return any(piece in entry.pieces for entry in self.window.entries)

    def fault(self, pieces: Sequence[int]) -> int:
        """See `Policy.fault`."""
        before = self.window.tokens
        self.bring_back(pieces)
        self._sent += [entry.number for entry in self.window.entries[len(self._sent) :]]
        self._holdings.look()
        return self.window.tokens - before - FAULT_FRAME_TOKENS * len(pieces)

    def bring_back(self, pieces: Sequence[int]) -> None:
        """Put slices at the tail as a recall does: each whole, in its frame."""
        for number in pieces:
            tokens = self.log.slices[number].tokens + FAULT_FRAME_TOKENS
            self.window.append(self.window.make(EntryForm.RECALLED, tokens, [number]))

    def billed(self, spent: float, append_only: float) -> None:
        """See `Policy.billed`."""

    def other_task_tokens(self) -> int | None:
        """See `Policy.other_task_tokens`."""
        return self._holdings.other_task_tokens()

    def left_at(self, piece: int) -> int | None:
        """See `Policy.left_at`."""
        return self._holdings.left_at(piece)


class AppendOnly(WindowPolicy):
    """Everything, in the order it came: an unlimited window with a perfect cache."""


class Ours(WindowPolicy):
    """The planner of the engine."""

    def __init__(self, log: SessionLog, prices: PriceProfile, resident_tokens: int, params: PagerParams) -> None:
        self.pager = Pager(log, prices, resident_tokens=resident_tokens, params=params)
        super().__init__(log, self.pager.window)

    def add(self, pieces: Sequence[Slice]) -> None:
        """See `Policy.add`."""
        self.pager.add(pieces)

    def prepare(self, *, is_cold: bool) -> bool:
        """See `WindowPolicy.prepare`."""
        return self.pager.prepare(is_cold=is_cold) is not None

    def bring_back(self, pieces: Sequence[int]) -> None:
        """See `WindowPolicy.bring_back`."""
        self.pager.fault(pieces)

    def billed(self, spent: float, append_only: float) -> None:
        """See `Policy.billed`."""
        self.pager.ledger.spent += spent
        self.pager.ledger.append_only += append_only


class SlidingWindow(WindowPolicy):
    """The newest exchanges within a number of tokens, whole."""

    def __init__(self, log: SessionLog, most_tokens: int) -> None:
        super().__init__(log)
        self._most_tokens = most_tokens

    def prepare(self, *, is_cold: bool) -> bool:
        """Drop the oldest exchanges."""
        entries = self.window.entries
        kept, first = 0, len(entries)
        while first:
            exchange = self._exchange(entries[first - 1])
            start = first
            while start and self._exchange(entries[start - 1]) == exchange:
                start -= 1
            size = sum(entry.tokens for entry in entries[start:first])
            if kept and kept + size > self._most_tokens:
                break
            kept += size
            first = start
        if not first:
            return False
        self.window.replace_all(entries[first:])
        return True

    def _exchange(self, entry: Entry) -> int:
        return self.log.exchange_of(entry.pieces[0])


class MaskResults(WindowPolicy):
    """Observation masking as LangChain's ``ClearToolUsesEdit`` does it to a list of messages.

    Over ``trigger_tokens`` (window and resident part) the results of all tool calls but the newest
    ``keep`` become a placeholder, oldest first; with ``clear_at_least`` only until that many tokens
    are gone. A result whose call does not stand in the assistant message before it stays. What was
    cleared stays cleared. (That library's middleware edits a fresh copy for each call, which costs
    more than this: the clearing begins anew each time, and the cached prefix breaks with it.)

    Args:
        log: the session.
        resident_tokens: system text and tools.
        trigger_tokens: prompts up to this size are left alone.
        keep: newest results that stay.
        clear_at_least: tokens after which a clearing ends; 0 for no end.
        needs_all: clear nothing where fewer tokens than that can go, as providers' own editing does it.
    """

    def __init__(
        self,
        log: SessionLog,
        resident_tokens: int,
        trigger_tokens: int,
        *,
        keep: int = 3,
        clear_at_least: int = 0,
        needs_all: bool = False,
    ) -> None:
        super().__init__(log)
        self._resident_tokens = resident_tokens
        self._trigger_tokens = trigger_tokens
        self._keep = keep
        self._clear_at_least = clear_at_least
        self._needs_all = needs_all
        self._placeholder_tokens = log.count(_PLACEHOLDER) + MESSAGE_TOKENS

    def prepare(self, *, is_cold: bool) -> bool:
        """Clear old results."""
        if self.window.tokens + self._resident_tokens <= self._trigger_tokens:
            return False
        results = self._results()
        chosen: dict[int, list[Entry]] = {}
        cleared = 0
        for result in results[: -self._keep] if self._keep else results:
            if not self._is_answer(result[0]):
                continue
            chosen[result[0].number] = result
            cleared += sum(entry.tokens for entry in result) - self._placeholder_tokens
            if self._clear_at_least and cleared >= self._clear_at_least:
                break
        if not chosen or (self._needs_all and cleared < self._clear_at_least):
            return False
        self.window.replace_all(list(self._masked(chosen)))
        return True

    def _results(self) -> list[list[Entry]]:
        """Entries of each result that still stands there, oldest first. A page that was asked for is one of its own."""
        results: list[list[Entry]] = []
        newest = -1
        for entry in self.window.entries:
            segment = self._segment(entry) if entry.is_whole else None
            if segment is None or segment.kind not in _RESULT_KINDS:
                newest = -1
            elif entry.form is EntryForm.RAW and segment.number == newest:
                results[-1].append(entry)
            else:
                newest = segment.number if entry.form is EntryForm.RAW else -1
                results.append([entry])
        return results

    def _segment(self, entry: Entry) -> Segment:
        return self.log.segments[self.log.slices[entry.pieces[0]].segment]

    def _is_answer(self, entry: Entry) -> bool:
        """Whether the result's call stands in the newest assistant message before it. O(blocks between them)."""
        if entry.form is EntryForm.RECALLED:
            return True
        result = self._segment(entry)
        message = None
        for number in range(result.number - 1, -1, -1):
            segment = self.log.segments[number]
            if segment.kind not in OUTPUT_KINDS:
                continue
            if message not in (None, segment.message):
                break
            message = segment.message
            if segment.block.kind is BlockKind.TOOL_CALL and segment.block.call_id == result.block.call_id:
                return True
        return False

    def _masked(self, chosen: Mapping[int, list[Entry]]) -> Iterable[Entry]:
        gone = {entry.number for result in chosen.values() for entry in result}
        for entry in self.window.entries:
            if entry.number in chosen:
                yield self.window.make(EntryForm.NOTE, self._placeholder_tokens)
            elif entry.number not in gone:
                yield entry


class AutoCompact(WindowPolicy):
    """Over a limit the model writes a summary of everything, which takes its place.

    The summary is taken to hold no evidence unit, and is billed: the prompt once more, and its output.
    """

    SUMMARY_TOKENS = 4000

    def __init__(self, log: SessionLog, resident_tokens: int, most_tokens: int) -> None:
        super().__init__(log)
        self._resident_tokens = resident_tokens
        self._most_tokens = most_tokens

    def prepare(self, *, is_cold: bool) -> bool:
        """Compact when the window is over the limit."""
        if self.window.tokens + self._resident_tokens <= self._most_tokens:
            return False
        newest = self.log.exchange_of(len(self.log.slices) - 1) if self.log.slices else -1
        kept = [e for e in self.window.entries if e.pieces and self.log.exchange_of(e.pieces[0]) == newest]
        if len(kept) == sum(entry.form is not EntryForm.NOTE for entry in self.window.entries):
            return False  # Nothing but an older summary would leave.
        self._summary_tokens = self.SUMMARY_TOKENS
        note = self.window.make(EntryForm.NOTE, self.SUMMARY_TOKENS)
        self.window.replace_all([note, *kept])
        return True


class SlimAtBirth(WindowPolicy):
    """The specification's slimming: a result over 2,000 characters is a head of about 200 and a handle, at once."""

    def add(self, pieces: Sequence[Slice]) -> None:
        """Send heads instead of long results."""
        slimmed: set[int] = set()
        for piece in pieces:
            segment = self.log.segments[piece.segment]
            block = segment.block
            is_result = segment.kind in _RESULT_KINDS
            if not is_result or not should_slim_at_birth(
                block.text, tool=block.name, is_error=block.is_error, params=SPEC_SLIMMING
            ):
                super().add([piece])
            elif segment.number not in slimmed:
                slimmed.add(segment.number)
                self._add_head(segment.number)

    def _add_head(self, number: int) -> None:
        segment = self.log.segments[number]
        view = head_view(
            segment.text,
            handle=_SAMPLE_HANDLE,
            name=segment.path,
            tool=segment.block.name,
            is_error=segment.block.is_error,
            params=SPEC_SLIMMING,
        )
        if view is None:
            super().add([self.log.slices[n] for n in segment.slices])
            return
        found = read_evidence(view.text)
        units = [n for name in (*found.lines, *found.runs) if (n := self.log.unit_id(name)) is not None]
        tokens = self.log.count(view.text) + MESSAGE_TOKENS
        self.window.append(self.window.make(EntryForm.HEAD, tokens, segment.slices, sorted(set(units))))
