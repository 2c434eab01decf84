"""What a session is about, kept turn by turn: runs, segments, names, repeated wording.

A *run* is the stretch of turns since the gate's last own switch; each run is one segment.
The tracker holds nothing that cannot be rebuilt from the pages: `absorb` takes in a stored
turn, whoever wrote it, with what the engine worked out when the turn was added.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from context_gatekeeper.core.anchor import AnchorKind, AnchorScan, anchor_kind
from context_gatekeeper.core.query_form import QueryForm, read_form
from context_gatekeeper.core.topic_keys import TOPIC_KEY_PARAMS, TopicKeys
from context_gatekeeper.core.weights import is_content, term_background
from context_gatekeeper.core.wording import RepeatedWording
from context_gatekeeper.engine.context_terms import is_context_term
from context_gatekeeper.engine.pool import StoredTurn

__all__ = ["ACTIVE_TURNS", "TopicTracker", "TurnNotes", "key_candidates"]

ACTIVE_TURNS = 3
"""The active topic's anchors are those of this many last turns of the run (section 6.1)."""
RECENT_TURNS = 6
"""Turns in which switches are counted."""
_DAY_SECONDS = 86_400.0
_LABEL_STEPS = 12
"""Turns of a run over which a topic's name is inherited."""


@dataclass(frozen=True, slots=True)
class TurnNotes:
    """What the engine works out about a turn when it is added, and stores with it."""

    is_switch: bool
    candidates: tuple[str, ...] = ()
    """Terms of the user's text that may become topic keys."""
    wording: frozenset[str] = frozenset()
    """Those of them that were repeated wording."""
    changed_roots: Mapping[str, str | None] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Compact JSON-ready form."""
        return {
            "switch": self.is_switch,
            "keys": list(self.candidates),
            "wording": sorted(self.wording),
            "roots": dict(self.changed_roots),
        }

    @classmethod
    def from_dict(cls, derived: Mapping[str, Any]) -> TurnNotes:
        """Inverse of `to_dict`; missing parts count as empty."""
        return cls(
            bool(derived.get("switch", False)),
            tuple(derived.get("keys", ())),
            frozenset(derived.get("wording", ())),
            dict(derived.get("roots", {})),
        )


def key_candidates(scan: AnchorScan) -> tuple[str, ...]:
    """Terms of a user message that may become topic keys, the rarest in everyday language first."""
    able = [
        term
        for term in scan.counts
        if anchor_kind(term) is not AnchorKind.NUMBER
        and term_background(term) >= TOPIC_KEY_PARAMS.min_background
        and scan.shares[term] >= TOPIC_KEY_PARAMS.min_share
    ]
    able.sort(key=term_background, reverse=True)
    return tuple(able[: TOPIC_KEY_PARAMS.max_terms])


def _is_own_content(term: str) -> bool:
    return not is_context_term(term) and is_content(term)


class TopicTracker:
    """State of one session."""

    def __init__(self) -> None:
        self.keys = TopicKeys()
        self.wording = RepeatedWording()
        self.segment_of = array("I")
        """Turn id -> number of its segment."""
        self.segment_starts = array("I")
        self.last_form: QueryForm | None = None
        self.last_time: float | None = None
        self.names_speakers = False
        """Whether any page tells who speaks: talk between persons, both of whose sides carry facts."""
        self.seam = 0
        """First turn of the running segment from which each turn is tied to the one before: shares a content word
        with it, points back to it, or brings none of its own."""
        self._last_terms: frozenset[str] = frozenset()
        self.sitting_of = array("I")
        """Turn id -> number of its sitting (day, where times are known)."""

    @property
    def turn_count(self) -> int:
        """Turns absorbed."""
        return len(self.segment_of)

    @property
    def run_start(self) -> int:
        """First turn of the running segment; 0 without history."""
        return self.segment_starts[-1] if self.segment_starts else 0

    def recent_switches(self) -> int:
        """Switches among the last six turns; the first turn of a session is none."""
        first = max(1, self.turn_count - RECENT_TURNS)
        return len(self.segment_starts) - bisect_left(self.segment_starts, first)

    def is_new_day(self, time: float | None) -> bool | None:
        """Whether ``time`` lies on another UTC day than the last turn; None when either is unknown."""
        if time is None or self.last_time is None:
            return None
        return time // _DAY_SECONDS != self.last_time // _DAY_SECONDS

    def segment_turns(self, segment: int) -> range:
        """Turn ids of one segment."""
        ends = self.segment_starts
        stop = ends[segment + 1] if segment + 1 < len(ends) else self.turn_count
        return range(ends[segment], stop)

    def inherits(self, turn_id: int, named: frozenset[int] | set[int], roots: frozenset[str]) -> bool:
        """Whether a turn that names no topic stands, in one run, behind a turn that names one of ``roots``.

        Args:
            turn_id: the turn.
            named: turn ids whose user text holds one of the roots.
            roots: the roots.
        """
        for _ in range(_LABEL_STEPS):
            if turn_id in named:
                return True
            if self.keys.own_roots(turn_id) - roots:
                return False
            if turn_id == self.segment_starts[self.segment_of[turn_id]]:
                return False
            turn_id -= 1
        return False

    def note_turn(
        self, scan: AnchorScan, wording: frozenset[str], is_answered: Callable[[str], bool], *, is_switch: bool
    ) -> TurnNotes:
        """Work out the notes of the next turn and take its user text in."""
        candidates = key_candidates(scan)
        flagged = frozenset(term for term in candidates if term in wording)
        changed = self.keys.add_message(self.turn_count, candidates, flagged, is_answered, continues=not is_switch)
        self.wording.add(scan.text)
        return TurnNotes(is_switch, candidates, flagged, changed)

    def absorb(self, turn: StoredTurn, notes: TurnNotes, scan_text: str) -> None:
        """Take in a stored turn whose user text was noted (by `note_turn` or `restore`)."""
        if notes.is_switch or not self.segment_starts:
            self.segment_starts.append(turn.turn_id)
        self.segment_of.append(len(self.segment_starts) - 1)
        time = turn.user.time
        new_sitting = self.is_new_day(time)
        previous = self.sitting_of[-1] if self.sitting_of else 0
        self.sitting_of.append(previous + bool(new_sitting))
        self.names_speakers = self.names_speakers or bool(turn.user.speaker or turn.assistant.speaker)
        if time is not None:
            self.last_time = time
        self.last_form = read_form(scan_text)
        form = self.last_form
        leans_back = form.points_back or form.leads_on or form.is_deictic
        if turn.turn_id == self.run_start or not (leans_back or self._shares_content(turn.user.terms)):
            self.seam = turn.turn_id
        self._last_terms = frozenset((*turn.user.terms, *turn.assistant.terms))

    def _shares_content(self, terms: Collection[str]) -> bool:
        """Whether a user text has a content word in common with the last turn, or none of its own."""
        last = self._last_terms
        return any(term in last and _is_own_content(term) for term in terms) or not any(map(_is_own_content, terms))

    def restore(self, turn: StoredTurn, scan_text: str) -> None:
        """Take in a turn that another process, or an earlier one, added."""
        notes = TurnNotes.from_dict(turn.derived)
        self.keys.restore_message(
            turn.turn_id, notes.candidates, notes.wording, notes.changed_roots, continues=not notes.is_switch
        )
        self.wording.add(scan_text)
        self.absorb(turn, notes, scan_text)
