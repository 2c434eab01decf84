"""Page faults: the pages that the newest text refers to and that are not in the window.

Four things refer to a page, the surest first: its handle or the id of a tool call; a name or a whole line that
stands in it and nowhere in the window; words that point at the past, or a goal that is taken up again; plain
keywords. At most five pages a turn come back, and they leave again unless they are used. Only what the user or the
agent newly wrote is read, never what we put into the window ourselves, so that no page calls for itself.

Source: the scheduling design, section 7 (page fault); section 1 of the paging notes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from context_gatekeeper.core.anchor import AnchorKind, anchor_kind, inverse_document_frequency
from context_gatekeeper.core.evidence import evidence_tokens, line_keys, token_runs
from context_gatekeeper.core.heat import FaultHistory
from context_gatekeeper.engine.back_references import own_words, past_sentences
from context_gatekeeper.engine.digest import handle_ranges
from context_gatekeeper.engine.named_blocks import BlockResolver, NamedBlock, NamedBlocks
from context_gatekeeper.engine.returned_pages import ReturnedPages
from context_gatekeeper.engine.session_log import SessionLog, UnitKind
from context_gatekeeper.engine.slice_terms import SliceTerms, TermShare, word_terms
from context_gatekeeper.engine.window import EntryForm, Window
from context_gatekeeper.types import AgentMessage

__all__ = ["FAULT_PARAMS", "FaultKind", "FaultParams", "FaultTrigger", "PageFault", "PageFaults"]


class FaultTrigger(StrEnum):
    """What referred to the page, the surest first."""

    HANDLE = "handle"
    """Its handle, or the id of its tool call."""
    EXACT = "exact"
    """A path, identifier, version or whole line."""
    PAST = "past"
    """Words that point at what was before."""
    GOAL = "goal"
    """A goal or task that is taken up again."""
    KEYWORDS = "keywords"


class FaultKind(StrEnum):
    """How far away the page was."""

    MINOR = "minor"
    """A digest, head or reference of it stands in the window."""
    MAJOR = "major"
    """Nothing of it does."""
    UNRESOLVED = "unresolved"
    """There is no such page."""


@dataclass(frozen=True, slots=True)
class FaultParams:
    """Limits of what a text may bring back."""

    most_pages: int = 5
    """Pages a turn."""
    keyword_pages: int = 2
    """Pages of a turn up to which keywords may bring more than one for a text."""
    least_overlap: float = 0.45
    """Share of the weight of a reference's terms that a page must hold."""
    least_weight: float = 1.5
    """The same in IDF: what one new word counts. A single everyday word finds nothing."""
    least_keywords: int = 2
    """Exact or content terms that a page must share with a text that has nothing else to go by."""
    agent_keywords: bool = False
    """Whether keywords of the agent count too. Of the pages they would bring one in fifty is used."""
    most_terms: int = 64
    """Heaviest terms of a reference that count."""
    most_names: int = 256
    """Names and lines of a text that are looked for, the first ones."""
    line_weight: float = 2.0
    """Of a whole line beside a name."""
    most_name_share: float = 0.2
    """A name in more than this share of the slices belongs to no page ..."""
    few_holders: int = 4
    """... unless no more than so many hold it."""
    most_chars: int = 40_000
    """Of a longer text so much is read, half of it at each end."""
    used_heat: float = 2.0
    """From this heat on, gained since it came back, a page is used and stays."""


FAULT_PARAMS = FaultParams()


@dataclass(frozen=True, slots=True)
class PageFault:
    """One page that a text refers to and that is not in the window in full."""

    pieces: tuple[int, ...]
    """Its slices that are missing, ascending; none when there is no such page."""
    handle: str
    """Of these slices; as it was written when there is no such page."""
    trigger: FaultTrigger
    kind: FaultKind
    share: float
    """1 for a handle, else the share of the reference's weight that the page holds, in (0, 1]; 0 when unresolved."""
    reason: str
    """In words, without any of the text's."""
    turn: int
    tokens: int = 0
    refetched: bool = False
    """It had left a few turns before: the swap was a mistake."""
    resident_until: int | None = None
    """Last turn of a stay that it earned by coming back so often."""
    pinned_for_run: bool = False
    """Stays until the next text of the user."""

    def to_record(self) -> dict[str, Any]:
        """JSON-ready form for the event feed."""
        return {
            "pages": [self.handle],
            "trigger": self.trigger.value,
            "kind": self.kind.value,
            "share": round(self.share, 3),
            "reason": self.reason,
            "turn": self.turn,
            "tokens": self.tokens,
            "refetched": self.refetched,
            "resident_until": self.resident_until,
            "pinned_for_run": self.pinned_for_run,
        }


@dataclass(frozen=True, slots=True)
class _Claim:
    """A page that something in the text asks for, before the quota."""

    pieces: tuple[int, ...]
    trigger: FaultTrigger
    share: float
    reason: str
    written: str = ""
    """The handle of a page that there is not."""


@dataclass(frozen=True, slots=True)
class _Name:
    """Something exact in a text that stands outside the window only."""

    holders: tuple[int, ...]
    weight: float


# Names too short for evidence units: error codes, versions, small identifiers.
_SHORT_NAME = re.compile(
    r"(?<![A-Za-z0-9_./-])[A-Za-z0-9][A-Za-z0-9_.-]{1,5}[A-Za-z0-9](?![A-Za-z0-9_/-]|\.[A-Za-z0-9])"
)
_SHORT_VERSION = re.compile(r"[vV]\d+\.\d")
_SHORT_KINDS = (AnchorKind.IDENTIFIER, AnchorKind.VERSION)


class PageFaults:
    """Finds the page faults of one session, and remembers which pages came back.

    Args:
        log: the session; only read.
        window: what is in the next request; only read.
        params: limits.
        history: memory of faults and swaps, shared with whoever swaps; what is found here is counted there, so
            that whoever serves it must not count it again. None: one of its own.
        resolve: leads from a page's own handle (``page:...``) to the session's blocks on it.
    """

    def __init__(
        self,
        log: SessionLog,
        window: Window,
        params: FaultParams = FAULT_PARAMS,
        *,
        history: FaultHistory[int] | None = None,
        resolve: BlockResolver | None = None,
    ) -> None:
        self.history: FaultHistory[int] = history if history is not None else FaultHistory()
        self.counts: Counter[tuple[FaultTrigger, FaultKind]] = Counter()
        self.hits = 0
        """Handles and names that were in the window when a text used them."""
        self._log = log
        self._window = window
        self._params = params
        self._terms = SliceTerms(log)
        self._blocks = NamedBlocks(log, resolve)
        self._returned = ReturnedPages(log, self.history, params.used_heat)
        self._turn = -1
        self._pages_this_turn = 0
        self._asked_for: set[int] = set()
        """Slices that this turn's texts brought back."""
        self._referring: frozenset[int] = frozenset()
        self.named_here: set[int] = set()
        """Slices that a text named and that stand in the window. Whoever plans empties it with each request."""

    def find(
        self,
        text: str,
        *,
        turn: int,
        by_user: bool,
        goals: Sequence[str] = (),
        triggers: Collection[FaultTrigger] = frozenset(FaultTrigger),
    ) -> tuple[PageFault, ...]:
        """Pages that ``text`` refers to and that are not in the window, in the order of the session.

        Pages that do not exist come last. Call it before the text itself is taken into the log.

        Args:
            text: what the user typed, or what the agent wrote and its calls' arguments, one below the other.
            turn: ascending; an agent session counts model calls. The quota is one turn's.
            by_user: a person wrote it; the run of tool calls before it has ended.
            goals: texts of goals or tasks that this turn takes up again.
            triggers: what is looked for; nothing else is found, counted or remembered.

        O(length of the text + postings of its terms). Once pages are outside of the window each slice of the log is
        read for terms, when they are needed or by `follow_steps`.
        """
        if turn > self._turn:
            self._turn, self._pages_this_turn = turn, 0
            self._asked_for.clear()
        if by_user:
            self.history.start_run()
        self._blocks.follow()
        words = own_words(self._readable(text))
        units: list[int] = []
        found: list[PageFault] = []
        for claim in self._claims(words, goals, triggers, by_user=by_user):
            if not claim.pieces:
                found.append(self._unresolved(claim))
                continue
            if self._is_full():
                break
            self._asked_for.update(claim.pieces)
            units = units or self._units_of(words)
            found.append(self._fault(claim, units))
        for fault in found:
            self.counts[fault.trigger, fault.kind] += 1
        return tuple(sorted(found, key=lambda fault: (not fault.pieces, fault.pieces)))

    def follow_steps(self) -> Iterator[None]:
        """Read for terms what came into the log since, slice by slice, so that no text of the user waits for it."""
        return self._terms.follow_steps()

    def used(self, message: AgentMessage, *, turn: int) -> tuple[int, ...]:
        """Heat the pages that came back and that ``message`` of the agent uses; those that are to stay from now on.

        A line of the page that it quotes, and a change of the page's file, are real uses; a name alone is half of one.
        What the text that called the page had said itself is none.
        """
        return self._returned.used(message, turn)

    def leaving(self, turn: int) -> tuple[int, ...]:
        """Slices that came back before ``turn``, were not used and may leave again, ascending."""
        return self._returned.leaving(turn)

    def swapped_out(self, pieces: Collection[int], turn: int) -> None:
        """Slices left the window: one that comes back soon was still hot."""
        for piece in sorted(pieces):
            self._returned.left(piece)
            self.history.swapped_out(piece, turn)

    def to_record(self) -> dict[str, Any]:
        """What was found so far, JSON-ready, for statistics."""
        kinds: Counter[FaultKind] = Counter()
        triggers: Counter[FaultTrigger] = Counter()
        for (trigger, kind), count in self.counts.items():
            kinds[kind] += count
            triggers[trigger] += count
        return {
            "hits": self.hits,
            "faults": {kind.value: kinds[kind] for kind in FaultKind},
            "triggers": {trigger.value: triggers[trigger] for trigger in FaultTrigger},
            "refetched": self.history.refetch_count,
        }

    # -- what a text asks for ---------------------------------------------------------------

    def _claims(
        self,
        words: str,
        goals: Sequence[str],
        triggers: Collection[FaultTrigger],
        *,
        by_user: bool,
    ) -> Iterator[_Claim]:
        """What the text asks for, the surest first; later sorts are looked for only while pages are left."""
        params = self._params

        def is_wanted(trigger: FaultTrigger) -> bool:
            return trigger in triggers and not self._is_full()

        if is_wanted(FaultTrigger.HANDLE):
            for named in self._blocks.find(words):
                yield from self._named(named)
        if is_wanted(FaultTrigger.EXACT):
            yield from self._exact(words, self._units_of(words))
        for sentence in past_sentences(words):
            if is_wanted(FaultTrigger.PAST):
                yield from self._alike(sentence, FaultTrigger.PAST, 1, most=1)
        for goal in goals:
            if is_wanted(FaultTrigger.GOAL):
                yield from self._alike(own_words(self._readable(goal)), FaultTrigger.GOAL, 1, most=params.most_pages)
        if (by_user or params.agent_keywords) and is_wanted(FaultTrigger.KEYWORDS):
            most = max(1, params.keyword_pages - self._pages_this_turn)
            yield from self._alike(words, FaultTrigger.KEYWORDS, params.least_keywords, most=most)

    def _is_full(self) -> bool:
        return self._pages_this_turn >= self._params.most_pages

    def _named(self, named: NamedBlock) -> Iterator[_Claim]:
        held = self._window.holds_piece
        missing = tuple(piece for piece in named.pieces if not held(piece) and piece not in self._asked_for)
        self.named_here.update(set(named.pieces).difference(missing))
        if not named.pieces:
            yield _Claim((), FaultTrigger.HANDLE, 0.0, named.problem, named.written)
        elif missing:
            yield _Claim(missing, FaultTrigger.HANDLE, 1.0, "named by its handle or call")
        else:
            self.hits += 1
            for piece in named.pieces:
                self._returned.named(piece, self._turn)

    def _exact(self, words: str, units: Sequence[int]) -> Iterator[_Claim]:
        """Few pages that hold the names and lines which stand nowhere in the window, the fullest first.

        Ties go to the newer page.
        """
        names = self._missing_names(words, units)
        count, total = len(names), sum(name.weight for name in names)
        while names:
            held: dict[int, float] = {}
            for name in names:
                for piece in name.holders:
                    held[piece] = held.get(piece, 0.0) + name.weight
            best = max(held, key=lambda piece: (held[piece], piece))
            rest = [name for name in names if best not in name.holders]
            told = f"holds {len(names) - len(rest)} of {count} names or lines that stand nowhere in the window"
            yield _Claim((best,), FaultTrigger.EXACT, held[best] / total, told)
            names = rest

    def _missing_names(self, words: str, units: Sequence[int]) -> list[_Name]:
        """Names and lines of the text that slices outside of the window hold, and nothing in it."""
        params = self._params
        names: list[_Name] = []
        for unit in units:
            record = self._log.units[unit]
            if self._window.holds(unit, by_words=True) or not self._asked_for.isdisjoint(record.holders):
                self.hits += 1
            else:
                names += self._name(record.holders, params.line_weight if record.kind is UnitKind.LINE else 1.0)
        tokens = dict.fromkeys(_SHORT_NAME.findall(words)) if self._misses_some() else ()
        for token in tokens:
            term = next((term for term, _ in word_terms(token)), "")
            holders = self._terms.holders(term)
            is_name = anchor_kind(term) in _SHORT_KINDS or _SHORT_VERSION.match(token) is not None if holders else False
            if is_name and not any(map(self._is_present, holders)) and not self._stands_in_digest(token):
                names += self._name(holders, 1.0)
        return names[: params.most_names]

    def _name(self, holders: Sequence[int], weight: float) -> Iterator[_Name]:
        """A name that no slice in the window holds."""
        slices = len(self._log.slices)
        if len(holders) <= max(self._params.few_holders, self._params.most_name_share * slices):
            yield _Name(tuple(holders), weight * inverse_document_frequency(len(holders), slices))

    def _units_of(self, words: str) -> list[int]:
        """Evidence units of the text that the log knows: of each line and token the longest part, each once."""
        found: dict[int, None] = {}
        for line in words.split("\n"):
            for key in line_keys(line):
                if (unit := self._log.unit_id(key)) is not None:
                    found[unit] = None
        for token in evidence_tokens(words):
            for run in sorted(token_runs(token), key=len, reverse=True):
                if (unit := self._log.unit_id(run)) is not None:
                    found[unit] = None
                    break
        return list(found)

    def _stands_in_digest(self, token: str) -> bool:
        return any(token in entry.text for entry in self._window.entries)

    def _alike(self, text: str, trigger: FaultTrigger, least_terms: int, *, most: int) -> Iterator[_Claim]:
        """Slices outside of the window that hold more of the text than any in it does, the best first.

        Ties go to the newer.
        """
        if not self._misses_some():
            return
        params = self._params
        inside = 0.0
        outside: list[TermShare] = []
        for one in self._terms.shares(text, params.most_terms):
            if self._is_present(one.piece):
                inside = max(inside, one.share)
            elif one.share >= params.least_overlap and one.weight >= params.least_weight:
                outside.append(one)
        better = [one for one in outside if one.share > inside and one.whole_terms >= least_terms]
        for one in sorted(better, key=lambda one: (-one.share, -one.piece))[:most]:
            told = f"holds {one.share:.0%} of the weight of {_ABOUT[trigger]}"
            yield _Claim((one.piece,), trigger, min(1.0, one.share), told)

    def _is_present(self, piece: int) -> bool:
        """Whether the slice stands in the window, whole or by reference, or is about to come back."""
        return self._window.holds_piece(piece) or piece in self._referring or piece in self._asked_for

    def _misses_some(self) -> bool:
        """Whether a slice is not present. Then all are read for terms: it may be what a text is about. O(slices)."""
        entries = self._window.entries
        self._referring = frozenset(
            piece for entry in entries if entry.form is EntryForm.REFERENCE for piece in entry.pieces
        )
        misses = not all(self._is_present(piece.number) for piece in self._log.slices)
        if misses:
            self._terms.follow()
        return misses

    def _readable(self, text: str) -> str:
        most = self._params.most_chars
        return text if len(text) <= most else f"{text[: most // 2]}\n{text[-most // 2 :]}"

    # -- pages that came back ---------------------------------------------------------------

    def _fault(self, claim: _Claim, units: Sequence[int]) -> PageFault:
        log, turn = self._log, self._turn
        self._pages_this_turn += 1
        pieces = tuple(sorted(claim.pieces))
        verdicts = [self.history.faulted(piece, turn) for piece in pieces]
        told = next((one.reason for one in verdicts if one.reason != "fault"), "")
        for piece in pieces:
            self._returned.came_back(piece, turn, set(units), is_named=claim.trigger is FaultTrigger.HANDLE)
        has_view = any(not set(entry.pieces).isdisjoint(pieces) for entry in self._window.entries)
        stays = [one.resident_until for one in verdicts if one.resident_until is not None]
        return PageFault(
            pieces,
            " ".join(handle_ranges(log, pieces)),
            claim.trigger,
            FaultKind.MINOR if has_view else FaultKind.MAJOR,
            claim.share,
            f"{claim.reason}; {told}" if told else claim.reason,
            turn,
            sum(log.slices[piece].tokens for piece in pieces),
            any(one.refetched for one in verdicts),
            max(stays, default=None),
            any(one.pinned_for_run for one in verdicts),
        )

    def _unresolved(self, claim: _Claim) -> PageFault:
        return PageFault((), claim.written, claim.trigger, FaultKind.UNRESOLVED, 0.0, claim.reason, self._turn)


_ABOUT = {
    FaultTrigger.PAST: "a sentence on what was before",
    FaultTrigger.GOAL: "a goal that is taken up again",
    FaultTrigger.KEYWORDS: "the text's words",
}
