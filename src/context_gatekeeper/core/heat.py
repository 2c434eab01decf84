"""Heat of a page: a decayed count of real references, and the memory of faults that stops thrashing.

Time is counted in turns, never in hours: a session that slept over a weekend wakes up as warm as it
was. A turn is whatever ascending step its owner counts by; an agent session counts model calls.
Showing a page heats nothing, or the pages that are shown would keep themselves in the window.

Source: the scheduling design, section 7 (heat) and 9 (problem 3: the cost of a wrong swap), section 1 of the
paging notes, and public reports of agents that read, lose and re-read one page for ever.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import exp2
from typing import Any, Generic, TypeVar

__all__ = [
    "HEAT_PARAMS",
    "FaultHistory",
    "FaultVerdict",
    "Heat",
    "HeatEvent",
    "HeatParams",
    "is_thrashing",
    "touched",
]

PageKey = TypeVar("PageKey", bound=Hashable)


class HeatEvent(StrEnum):
    """What happened to a page."""

    CREATED = "created"
    SHOWN = "shown"
    KEYWORD_HIT_USED = "keyword_hit_used"
    """Found by its words and then used."""
    HANDLE_QUOTED = "handle_quoted"
    """The agent wrote the page's handle."""
    HANDLE_READ = "handle_read"
    FILE_EDITED = "file_edited"
    GOAL_ACTIVE = "goal_active"
    """The page belongs to a goal that is worked on this turn."""


@dataclass(frozen=True, slots=True)
class HeatParams:
    """Weights, half-life and the limits of thrashing."""

    half_life_turns: float = 8.0
    created: float = 0.5
    """First access. The second access adds it once more, so that only a page that comes back counts whole."""
    keyword_hit_used: float = 1.0
    handle_quoted: float = 2.0
    handle_read: float = 3.0
    file_edited: float = 3.0
    goal_active: float = 1.0
    """At most once in ``goal_turns``."""
    goal_turns: int = 4
    most_a_turn: float = 3.0
    """A batch of reads in one turn heats a page by no more than this."""
    fault_window_turns: int = 10
    faults_to_stay: int = 3
    """A page with so many faults inside the window becomes resident ..."""
    resident_turns: int = 8
    """... for so many turns."""
    refetch_turns: int = 5
    """A fault at most this long after the page was swapped out says that it was still hot."""
    refetches_to_pin: int = 2
    """A page fetched again so often within one run stays until the run ends."""

    def weight(self, event: HeatEvent) -> float:
        """What one event adds, before the cap."""
        return {
            HeatEvent.CREATED: self.created,
            HeatEvent.SHOWN: 0.0,
            HeatEvent.KEYWORD_HIT_USED: self.keyword_hit_used,
            HeatEvent.HANDLE_QUOTED: self.handle_quoted,
            HeatEvent.HANDLE_READ: self.handle_read,
            HeatEvent.FILE_EDITED: self.file_edited,
            HeatEvent.GOAL_ACTIVE: self.goal_active,
        }[event]


HEAT_PARAMS = HeatParams()


@dataclass(frozen=True, slots=True)
class Heat:
    """Heat of one page as of the turn it was last touched."""

    level: float = 0.0
    """>= 0, as of ``turn``; `at` gives it for a later one."""
    turn: int = 0
    gained: float = 0.0
    """Added during ``turn``, for the cap."""
    accesses: int = 0
    """Real references so far; showing and an active goal are none."""
    goal_turn: int | None = None
    """Turn in which an active goal last counted."""

    def at(self, turn: int, params: HeatParams = HEAT_PARAMS) -> float:
        """Heat at ``turn``, >= 0; an earlier turn than the last touch is read as that one. O(1)."""
        return self.level * exp2(-max(0, turn - self.turn) / params.half_life_turns)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "level": self.level,
            "turn": self.turn,
            "gained": self.gained,
            "accesses": self.accesses,
            "goal_turn": self.goal_turn,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Heat:
        """Inverse of `to_dict`."""
        goal_turn = stored["goal_turn"]
        return cls(
            float(stored["level"]),
            int(stored["turn"]),
            float(stored["gained"]),
            int(stored["accesses"]),
            None if goal_turn is None else int(goal_turn),
        )


COLD = Heat()


def touched(heat: Heat, event: HeatEvent, turn: int, params: HeatParams = HEAT_PARAMS) -> Heat:
    """The page's heat after ``event``; showing changes nothing at all.

    Args:
        heat: before; ``COLD`` for a new page.
        event: what happened.
        turn: when, >= the last touch; an earlier one counts as that.
        params: weights.

    O(1). Pure.
    """
    if event is HeatEvent.SHOWN:
        return heat
    now = max(turn, heat.turn)
    if event is HeatEvent.GOAL_ACTIVE:
        if heat.goal_turn is not None and now - heat.goal_turn < params.goal_turns:
            return heat
        return replace(_warmed(heat, params.weight(event), now, params), goal_turn=now)
    gain = params.weight(event) + (params.created if heat.accesses == 1 else 0.0)
    return replace(_warmed(heat, gain, now, params), accesses=heat.accesses + 1)


def _warmed(heat: Heat, gain: float, turn: int, params: HeatParams) -> Heat:
    gained = heat.gained if turn == heat.turn else 0.0
    room = max(0.0, params.most_a_turn - gained)
    added = min(gain, room)
    return replace(heat, level=heat.at(turn, params) + added, turn=turn, gained=gained + added)


# -- thrashing --------------------------------------------------------------------------------------


def is_thrashing(fault_turns: Iterable[int], turn: int, params: HeatParams = HEAT_PARAMS) -> bool:
    """Whether a page with faults at ``fault_turns`` thrashes at ``turn``: three of them in the last ten turns."""
    recent = sum(turn - params.fault_window_turns < fault <= turn for fault in fault_turns)
    return recent >= params.faults_to_stay


@dataclass(frozen=True, slots=True)
class FaultVerdict:
    """What one fault means."""

    refetched: bool
    """The page had been swapped out a few turns before: it was hot, and the swap a mistake."""
    resident_until: int | None
    """Last turn of the stay that the page earned, this one included; None when it earned none."""
    pinned_for_run: bool
    """Fetched again twice in this run: stays until `FaultHistory.start_run`."""
    reason: str
    """In words for the plan."""


@dataclass(slots=True)
class FaultHistory(Generic[PageKey]):
    """Faults and swaps of one session. Every call is O(1) amortised; what is too old to matter is forgotten."""

    params: HeatParams = HEAT_PARAMS
    fault_count: int = 0
    refetch_count: int = 0
    """Mis-scheduled hot pages so far: the price of wrong swaps."""
    _faults: dict[PageKey, deque[int]] = field(default_factory=dict)
    _swapped_out: dict[PageKey, int] = field(default_factory=dict)
    _resident: dict[PageKey, int] = field(default_factory=dict)
    _run_refetches: dict[PageKey, int] = field(default_factory=dict)
    _swept_at: int = 0

    def swapped_out(self, page: PageKey, turn: int) -> None:
        """The page left the window, whole or for its handle."""
        self._sweep(turn)
        self._swapped_out[page] = turn

    def faulted(self, page: PageKey, turn: int) -> FaultVerdict:
        """The page was asked for and was not in the window."""
        self._sweep(turn)
        self.fault_count += 1
        turns = self._faults.setdefault(page, deque(maxlen=self.params.faults_to_stay))
        turns.append(turn)
        left_at = self._swapped_out.pop(page, None)
        refetched = left_at is not None and turn - left_at <= self.params.refetch_turns
        if refetched:
            self.refetch_count += 1
            self._run_refetches[page] = self._run_refetches.get(page, 0) + 1
        if is_thrashing(turns, turn, self.params):
            self._resident[page] = turn + self.params.resident_turns - 1
        last, pinned = self._resident.get(page), self._is_pinned(page)
        stay = last if last is not None and last >= turn else None
        return FaultVerdict(refetched, stay, pinned, self._reason(len(turns), stay, refetched=refetched, pinned=pinned))

    def is_resident(self, page: PageKey, turn: int) -> bool:
        """Whether the page must stay at ``turn`` because it thrashed."""
        return self._resident.get(page, turn - 1) >= turn or self._is_pinned(page)

    def start_run(self) -> None:
        """A new run of tool calls begins, with a message of the user: pins of the last run end."""
        self._run_refetches.clear()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; pages stand in lists, so that numbers stay numbers."""
        return {
            "fault_count": self.fault_count,
            "refetch_count": self.refetch_count,
            "faults": [[page, list(turns)] for page, turns in self._faults.items()],
            "swapped_out": [list(row) for row in self._swapped_out.items()],
            "resident": [list(row) for row in self._resident.items()],
            "run_refetches": [list(row) for row in self._run_refetches.items()],
            "swept_at": self._swept_at,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], params: HeatParams = HEAT_PARAMS) -> FaultHistory[Any]:
        """Inverse of `to_dict`."""
        return cls(
            params,
            stored["fault_count"],
            stored["refetch_count"],
            {page: deque(turns, maxlen=params.faults_to_stay) for page, turns in stored["faults"]},
            dict(stored["swapped_out"]),
            dict(stored["resident"]),
            dict(stored["run_refetches"]),
            stored["swept_at"],
        )

    def _is_pinned(self, page: PageKey) -> bool:
        return self._run_refetches.get(page, 0) >= self.params.refetches_to_pin

    def _reason(self, recent: int, stay: int | None, *, refetched: bool, pinned: bool) -> str:
        if pinned:
            return "fetched again twice in this run: stays until the run ends"
        if stay is not None:
            return f"{recent} faults in {self.params.fault_window_turns} turns: resident until turn {stay}"
        if refetched:
            return "fetched again soon after it was swapped out: it was still hot"
        return "fault"

    def _sweep(self, turn: int) -> None:
        """Forget what cannot matter any more, once in a window."""
        window = self.params.fault_window_turns
        if turn - self._swept_at < window:
            return
        self._swept_at = turn
        self._faults = {page: turns for page, turns in self._faults.items() if turn - turns[-1] < window}
        self._swapped_out = {
            page: left for page, left in self._swapped_out.items() if turn - left <= self.params.refetch_turns
        }
        self._resident = {page: last for page, last in self._resident.items() if last >= turn}
