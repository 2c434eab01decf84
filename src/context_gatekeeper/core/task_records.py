"""Records of task clustering: the numbers, what a decision says, and the state that outlives a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from context_gatekeeper.core.task_links import LINK_PARAMS, LinkParams, TaskEvidence

__all__ = ["CLUSTER_PARAMS", "ClusterParams", "OpenTask", "RunningTurn", "TaskDecision", "TaskMove", "TaskSummary"]


@dataclass(frozen=True, slots=True)
class ClusterParams:
    """Thresholds and the bounds of the state.

    ``join_above``, ``new_below`` and the three numbers of merging are those of the paging notes; the others were
    chosen on interleaved sessions of one code base.
    """

    links: LinkParams = LINK_PARAMS
    join_above: float = 0.45
    """A message with a stronger link joins the best task."""
    new_below: float = 0.20
    """One whose links are all weaker may open a task."""
    known_above: float = 0.45
    """A message of whose anchors the open tasks together hold more opens none."""
    lead: float = 0.10
    """Where both the running and another task are above ``join_above``, the other must be ahead by so much."""
    clear_lead: float = 0.20
    """Between the two thresholds another task is joined when it is ahead of the running one by so much."""
    least_units: float = 3.0
    """Units of content (a word; a Chinese pair is half of one) that a message needs to open a task."""
    lean_units: float = 6.0
    """A message that points back ("why does it ...") opens none with fewer."""
    merge_files: float = 0.6
    merge_core: float = 0.45
    merge_visits: int = 3
    """Visits in a row at which two tasks must look alike."""
    merge_least_files: int = 2
    """Files of each that make the comparison worth anything."""
    most_open: int = 64
    """Open tasks, at least 4; beyond it the one visited longest ago is closed: its pages keep it, nothing joins it."""
    watched_uses: int = 8
    """Calls with a new file, at the beginning of a turn, that may still move the turn to another task."""
    most_words: int = 64
    """Anchors of the turn, the heaviest first, that are looked at then."""
    recent_turns: int = 16
    """Turns whose late tool results still find their task."""


CLUSTER_PARAMS = ClusterParams()


class TaskMove(StrEnum):
    """What a decision did."""

    STAY = "stay"
    RESUME = "resume"
    """Back to a task that was there before."""
    NEW = "new"


@dataclass(frozen=True, slots=True)
class TaskDecision:
    """The task of one turn, and why."""

    turn: int
    task_id: str
    move: TaskMove
    reason: str
    """For a reader, such as "shares files or words with t2 (0.61)"."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Open task -> link in [0, 1]; empty where no link was asked for."""
    is_provisional: bool = False
    """A new task that no tool call has confirmed yet."""
    folded: tuple[tuple[str, str], ...] = ()
    """(task, task it became part of): small talk folded back, tasks merged. Older pages follow by
    `TaskTracker.resolve`."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "turn": self.turn,
            "task_id": self.task_id,
            "move": self.move.value,
            "reason": self.reason,
            "scores": dict(self.scores),
            "is_provisional": self.is_provisional,
            "folded": [list(pair) for pair in self.folded],
        }


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """What a reader is shown of an open task."""

    task_id: str
    label: str
    """Its goal, else its three heaviest anchors."""
    first_turn: int
    last_turn: int
    file_count: int
    goal_ids: tuple[str, ...]
    is_provisional: bool


@dataclass(slots=True)
class OpenTask:
    """A task that messages may join."""

    evidence: TaskEvidence
    first_turn: int
    last_turn: int
    origin: str | None = None
    """Task that a provisional one is folded back into; None once it is confirmed."""

    def summary(self, task_id: str) -> TaskSummary:
        """The task as a reader sees it."""
        words = self.evidence.words
        goals = tuple(sorted(self.evidence.goals))
        label = goals[0] if goals else " ".join(sorted(words, key=lambda term: -words[term])[:3])
        return TaskSummary(
            task_id,
            label,
            self.first_turn,
            self.last_turn,
            self.evidence.file_count(),
            goals,
            self.origin is not None,
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "evidence": self.evidence.to_dict(),
            "first_turn": self.first_turn,
            "last_turn": self.last_turn,
            "origin": self.origin,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> OpenTask:
        """Inverse of `to_dict`."""
        evidence = TaskEvidence.from_dict(stored["evidence"])
        return cls(evidence, stored["first_turn"], stored["last_turn"], stored["origin"])


@dataclass(slots=True)
class RunningTurn:
    """The turn that runs; what it brings becomes part of its task when the next message comes."""

    turn: int
    task_id: str
    is_settled: bool = False
    """By a goal or a cue: no tool use moves it."""
    opened_task: bool = False
    """Whether its message opened the task."""
    came_from: str | None = None
    """Task that ran before."""
    evidence: TaskEvidence = field(default_factory=TaskEvidence)
    watched: int = 0
    """Calls with a new file so far."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "turn": self.turn,
            "task_id": self.task_id,
            "is_settled": self.is_settled,
            "opened_task": self.opened_task,
            "came_from": self.came_from,
            "evidence": self.evidence.to_dict(),
            "watched": self.watched,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> RunningTurn:
        """Inverse of `to_dict`."""
        evidence = TaskEvidence.from_dict(stored["evidence"])
        return cls(
            stored["turn"],
            stored["task_id"],
            stored["is_settled"],
            stored["opened_task"],
            stored["came_from"],
            evidence,
            stored["watched"],
        )
