"""Task clustering: which of several tasks each turn of a session belongs to.

At each user message, in this order: an explicit goal label, an explicit cue ("换个任务", "back to X"),
then the link with the open tasks. Above .45 the message joins the best; below .20 everywhere a message
with something to say opens a new task; between the two it stays, unless another task is far ahead. Tool
use decides again, by the same rule and with better evidence: a turn whose files belong to another task
moves there, one whose files and words no task knows opens its own. A new task without a tool call was
small talk and is folded back. Tasks that prove to be one are merged; none is ever split.

A state machine without clock or chance: the same messages give the same tasks, in one process or after
`TaskTracker.from_dict`. A message costs O(open tasks x its anchors), however long the session.

Source: the scheduling design, section 7 (task clustering), and section 1 of the paging notes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.task_choice import (
    FIRST_CHOICE,
    TaskMessage,
    choose_task,
    linked_other,
    view_tasks,
)
from context_gatekeeper.core.task_links import (
    FileIndex,
    OpenTasks,
    TaskEvidence,
    core_overlap,
    file_id,
    file_likeness,
    is_folder,
    link_scores,
)
from context_gatekeeper.core.task_records import (
    CLUSTER_PARAMS,
    ClusterParams,
    OpenTask,
    RunningTurn,
    TaskDecision,
    TaskMove,
    TaskSummary,
)
from context_gatekeeper.core.weights import base_weight

__all__ = ["CLUSTER_PARAMS", "ClusterParams", "TaskDecision", "TaskMove", "TaskSummary", "TaskTracker"]


class TaskTracker:
    """The tasks of one session. Task ids are ``t1``, ``t2`` ... in the order of opening."""

    def __init__(self, params: ClusterParams = CLUSTER_PARAMS) -> None:
        self.params = params
        self._tasks: dict[str, OpenTask] = {}
        self._opened = 0
        self._folded: dict[str, str] = {}
        self._turn: RunningTurn | None = None
        self._recent: dict[int, str] = {}
        self._alike: dict[tuple[str, str], int] = {}
        self._index = FileIndex((), params.links)

    # -- what happens -------------------------------------------------------------------------------

    def add_user_message(
        self, turn: int, anchors: Mapping[str, float], goal_ids: Sequence[str] = (), text: str = ""
    ) -> TaskDecision:
        """Decide the task of a user message, and so of its turn.

        Args:
            turn: number of the turn, not below the last one's.
            anchors: the message's anchor terms with their weight (IDF x background), > 0; the most telling 64 of
                `core.page_value.page_anchors` are enough.
            goal_ids: goals the message serves. A single one is an explicit label; several are evidence only.
            text: the message as typed, for cues and for its form; pasted code and quotes do no harm.

        Returns:
            The decision; `add_tool_use` may move the turn later.
        """
        folded = self._end_turn()
        told = {term: weight for term, weight in anchors.items() if weight > 0.0}
        choice = FIRST_CHOICE
        if self._turn is not None:
            message = TaskMessage(told, goal_ids, text)
            choice = choose_task(self._tasks, self._turn.task_id, self._index, message, self.params)
        folded += self._fold_small_talk(choice.task_id)
        before = self.running_task
        task_id = choice.task_id
        if task_id is None:
            task_id = self._open(turn, None if choice.is_explicit else before)
        self._turn = RunningTurn(turn, task_id, choice.is_explicit, choice.task_id is None, before)
        said = scan_anchors(choice.cue_words).counts
        self._note_message(self._turn, {term: told[term] for term in told if term not in said}, goal_ids)
        self._remember(turn, task_id)
        move = TaskMove.STAY if task_id == before else TaskMove.RESUME
        return TaskDecision(
            turn,
            task_id,
            TaskMove.NEW if choice.task_id is None else move,
            choice.reason,
            choice.scores,
            self._tasks[task_id].origin is not None,
            tuple(folded),
        )

    def add_tool_use(
        self, turn: int, files: Sequence[str] = (), anchors: Mapping[str, float] | None = None
    ) -> TaskDecision | None:
        """Take in one tool call.

        Args:
            turn: the turn that called.
            files: paths that the call reads or writes, resolved by its working folder.
            anchors: anchors of its arguments with their weight.

        Returns:
            The turn's new decision when its files belong elsewhere or the call confirms a provisional task; None
            when nothing changed. A call before any message opens the first task.
        """
        running = self._turn
        if running is None:
            running = self._turn = RunningTurn(turn, self._open(turn, None), opened_task=True)
            self._remember(turn, running.task_id)
        if turn != running.turn:
            self._add_late(turn, files, anchors or {})
            return None
        links = self.params.links
        running.evidence.add_words(anchors or {}, links)
        brings_file = any(file_id(path) not in running.evidence.files for path in files)
        for path in files:
            running.evidence.add_file(path, links)
        if brings_file and not running.is_settled and running.watched < self.params.watched_uses:
            running.watched += 1
            moved = self._decide_again(running)
            if moved is not None:
                return moved
        return self._confirm(running)

    def add_answer(self, turn: int, anchors: Mapping[str, float]) -> None:
        """Take in the anchors of what the agent said in the turn."""
        if self._turn is not None and self._turn.turn == turn:
            self._turn.evidence.add_words(anchors, self.params.links)
        else:
            self._add_late(turn, (), anchors)

    # -- what is known ------------------------------------------------------------------------------

    @property
    def running_task(self) -> str | None:
        """Task of the turn that runs; None before the first."""
        return self._turn.task_id if self._turn is not None else None

    def resolve(self, task_id: str) -> str:
        """The task that ``task_id`` became part of, or itself: older pages keep the old name."""
        while task_id in self._folded:
            task_id = self._folded[task_id]
        return task_id

    def tasks(self) -> tuple[TaskSummary, ...]:
        """The open tasks, the oldest first."""
        return tuple(task.summary(task_id) for task_id, task in self._tasks.items())

    def tasks_of_file(self, path: str) -> tuple[str, ...]:
        """Open tasks that used the file, the oldest first: one file may serve many."""
        file = file_id(path)
        running = self._turn
        now = running.task_id if running is not None and file in running.evidence.files else None
        return tuple(key for key, task in self._tasks.items() if key == now or file in task.evidence.files)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form of the whole state."""
        return {
            "tasks": {task_id: task.to_dict() for task_id, task in self._tasks.items()},
            "opened": self._opened,
            "folded": dict(self._folded),
            "turn": self._turn.to_dict() if self._turn is not None else None,
            "recent": [list(row) for row in self._recent.items()],
            "alike": [[*pair, visits] for pair, visits in self._alike.items()],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], params: ClusterParams = CLUSTER_PARAMS) -> TaskTracker:
        """Inverse of `to_dict`."""
        tracker = cls(params)
        tracker._tasks = {task_id: OpenTask.from_dict(task) for task_id, task in stored["tasks"].items()}
        tracker._opened = stored["opened"]
        tracker._folded = dict(stored["folded"])
        tracker._turn = RunningTurn.from_dict(stored["turn"]) if stored["turn"] is not None else None
        tracker._recent = dict(stored["recent"])
        tracker._alike = {(older, younger): visits for older, younger, visits in stored["alike"]}
        tracker._index = FileIndex((task.evidence for task in tracker._tasks.values()), params.links)
        return tracker

    # -- the running turn ---------------------------------------------------------------------------

    def _note_message(self, running: RunningTurn, anchors: Mapping[str, float], goal_ids: Sequence[str]) -> None:
        links = self.params.links
        running.evidence.add_words(anchors, links)
        for file in self._index.called(anchors):
            if not is_folder(file):
                running.evidence.add_file(file, links)
        if len(goal_ids) == 1 or running.opened_task:
            goals = self._tasks[running.task_id].evidence.goals
            for goal in goal_ids:
                if goal not in goals:
                    goals.add(goal)
                    running.evidence.add_words({term: base_weight(term) for term in scan_anchors(goal).counts}, links)

    def _decide_again(self, running: RunningTurn) -> TaskDecision | None:
        """Decide by the files and words of the turn: it may belong to another task, or to none."""
        here = running.task_id
        words = running.evidence.heaviest(self.params.most_words)
        view = view_tasks(self._tasks, self._index, self.params)
        scores = link_scores(view, dict.fromkeys(running.evidence.files, 1.0), words)
        best = linked_other(self._tasks, here, scores, self.params)
        if best is not None:
            return self._move(running, best, f"works on files of {best} ({scores[best]:.2f})", scores)
        is_new = running.opened_task or self._tasks[here].origin is not None
        is_known = all(self._index.holders(file) for file in running.evidence.files)
        if is_new or is_known or max(scores.values()) >= self.params.new_below:
            return None
        return self._move(running, None, "works on files that no open task knows", scores)

    def _move(self, running: RunningTurn, target: str | None, reason: str, scores: Mapping[str, float]) -> TaskDecision:
        """Give the turn to another task, or a new one for None; a task it opened, or small talk, is folded."""
        left = self._tasks[running.task_id]
        folded: tuple[tuple[str, str], ...] = ()
        if running.opened_task and target is not None:
            folded = (self._fold(running.task_id, target),)
        elif left.origin is not None:
            folded = (self._fold(running.task_id, left.origin),)
        running.opened_task = target is None
        running.task_id = self._open(running.turn, None) if target is None else target
        self._remember(running.turn, running.task_id)
        move = TaskMove.STAY if target == running.came_from else TaskMove.RESUME
        return TaskDecision(
            running.turn, running.task_id, TaskMove.NEW if target is None else move, reason, scores, folded=folded
        )

    def _confirm(self, running: RunningTurn) -> TaskDecision | None:
        """A tool call makes a provisional task a real one; in a later turn it must name a file."""
        task = self._tasks[running.task_id]
        if task.origin is None or not (running.opened_task or running.evidence.files):
            return None
        task.origin = None
        return TaskDecision(running.turn, running.task_id, TaskMove.NEW, "a new task, and work on it began")

    def _end_turn(self) -> list[tuple[str, str]]:
        """What the turn brought becomes part of its task; gives the merge that follows, if any."""
        running = self._turn
        if running is None:
            return []
        task = self._tasks[running.task_id]
        task.last_turn = running.turn
        self._add_evidence(task, running.evidence)
        running.evidence = TaskEvidence()
        return self._merge_alike(running) if task.origin is None else []

    def _add_late(self, turn: int, files: Sequence[str], anchors: Mapping[str, float]) -> None:
        """Evidence of a turn that runs no more goes to that turn's task, if it is remembered and open."""
        task = self._tasks.get(self.resolve(self._recent.get(turn, "")))
        if task is not None:
            late = TaskEvidence()
            late.add_words(anchors, self.params.links)
            for path in files:
                late.add_file(path, self.params.links)
            self._add_evidence(task, late)

    def _remember(self, turn: int, task_id: str) -> None:
        self._recent[turn] = task_id
        for old in list(islice(self._recent, max(0, len(self._recent) - self.params.recent_turns))):
            del self._recent[old]

    # -- opening, folding, merging ------------------------------------------------------------------

    def _open(self, turn: int, origin: str | None) -> str:
        self._opened += 1
        task_id = f"t{self._opened}"
        if len(self._tasks) >= self.params.most_open:
            in_use = {origin, self.running_task, self._turn.came_from if self._turn is not None else None}
            idle = [key for key in self._tasks if key not in in_use]
            self._close(min(idle, key=lambda key: self._tasks[key].last_turn))
        self._tasks[task_id] = OpenTask(TaskEvidence(), turn, turn, origin)
        return task_id

    def _fold_small_talk(self, chosen: str | None) -> list[tuple[str, str]]:
        """A provisional task that the next message leaves goes back to the task it came from."""
        running = self._turn
        if running is None or chosen == running.task_id:
            return []
        origin = self._tasks[running.task_id].origin
        if origin is None:
            return []
        pair = self._fold(running.task_id, origin)
        running.task_id = origin
        return [pair]

    def _fold(self, task_id: str, into: str) -> tuple[str, str]:
        """``task_id`` becomes part of ``into``; what it said is forgotten."""
        self._close(task_id)
        self._folded[task_id] = into
        return task_id, into

    def _merge_alike(self, running: RunningTurn) -> list[tuple[str, str]]:
        """Count visits at which another task looks the same; at the third the younger becomes part of the older."""
        view = view_tasks(self._tasks, self._index, self.params)
        for other in [task_id for task_id in self._tasks if task_id != running.task_id]:
            older, younger = sorted((other, running.task_id), key=lambda key: int(key[1:]))
            if not self._look_alike(view, older, younger):
                self._alike.pop((older, younger), None)
                continue
            visits = self._alike[older, younger] = self._alike.get((older, younger), 0) + 1
            if visits >= self.params.merge_visits:
                absorbed = self._tasks[younger]
                pair = self._fold(younger, older)
                self._add_evidence(self._tasks[older], absorbed.evidence)
                self._tasks[older].last_turn = running.turn
                running.task_id = older
                return [pair]
        return []

    def _look_alike(self, view: OpenTasks, one: str, other: str) -> bool:
        first, second = view.tasks[one], view.tasks[other]
        if core_overlap(first, second, self.params.links) <= self.params.merge_core:
            return False
        if first.goals and second.goals and not first.goals & second.goals:
            return False
        if min(first.file_count(), second.file_count()) < self.params.merge_least_files:
            return False
        return file_likeness(view, one, other) > self.params.merge_files

    def _close(self, task_id: str) -> None:
        self._index.remove(self._tasks.pop(task_id).evidence.files)
        self._alike = {pair: visits for pair, visits in self._alike.items() if task_id not in pair}

    # -- evidence -----------------------------------------------------------------------------------

    def _add_evidence(self, task: OpenTask, brought: TaskEvidence) -> None:
        known = set(task.evidence.files)
        task.evidence.absorb(brought, self.params.links)
        files = task.evidence.files
        self._index.add(file for file in files if file not in known)
        self._index.remove(file for file in known if file not in files)
