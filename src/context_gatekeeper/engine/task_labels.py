"""TaskLabels: the task of each turn of an agent session (core module ``cluster``), and the goals that it serves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from context_gatekeeper.core.anchor import inverse_document_frequency, scan_anchors
from context_gatekeeper.core.cluster import TaskDecision, TaskTracker
from context_gatekeeper.core.evidence import argument_texts
from context_gatekeeper.core.page_value import page_anchors
from context_gatekeeper.core.weights import base_weight, is_content
from context_gatekeeper.engine.back_references import own_words
from context_gatekeeper.engine.tool_paths import path_argument
from context_gatekeeper.types import AgentMessage, BlockKind, MessageRole

__all__ = ["TaskLabels"]

_MOST_TEXT_CHARS = 20_000
"""Of a message or of a call's arguments; more tells no more about its task."""
_LEAST_GOAL_SHARE = 0.45
"""Of the weight of a goal's anchors, what a text that serves it must hold: the same as for a page fault."""
_LEAST_GOAL_WORDS = 2
"""Anchors that such a text must share with a goal that has so many, one with content among them."""
_NAMED_GOAL = re.compile(r"(?:\bgoal|目标)[ \t]{0,3}(g[0-9]{1,9})(?![0-9A-Za-z_])", re.IGNORECASE)


class TaskLabels:
    """Follows a session message by message. A turn begins with a text that a person typed.

    Args:
        goals: active goals by their ids, in the order of setting.
    """

    def __init__(self, goals: Mapping[str, str] | None = None) -> None:
        self.turn = -1
        """Number of the running turn; -1 before the first."""
        self.decisions: list[TaskDecision] = []
        self._tracker = TaskTracker()
        self._task_of_turn: dict[int, str] = {}
        self._frequencies: Counter[str] = Counter()
        self._texts = 0
        self._goals: dict[str, str] = {}
        self._goal_words: dict[str, dict[str, float]] = {}
        self._goals_of_turn: dict[int, tuple[str, ...]] = {}
        self.set_goals(goals or {})

    def set_goals(self, goals: Mapping[str, str]) -> None:
        """Say which goals are active from now on; what served one before stays labelled."""
        self._goals = dict(goals)
        self._goal_words = {
            goal_id: {term: base_weight(term) for term in scan_anchors(text).counts} for goal_id, text in goals.items()
        }

    def served(self, text: str) -> tuple[str, ...]:
        """Ids of the active goals that a text of the user is about: one as a rule, several when they tie.

        A goal that is called by its id ("goal g2"), else the one of whose words' weight the text holds most, .45 at
        least. What we put into the window ourselves does not count.
        """
        if not self._goals:
            return ()
        words = own_words(text[:_MOST_TEXT_CHARS])
        named = dict.fromkeys(goal_id.lower() for goal_id in _NAMED_GOAL.findall(words))
        if known := tuple(goal_id for goal_id in named if goal_id in self._goals):
            return known
        anchors = scan_anchors(words).counts
        shares = {goal_id: _share(goal, anchors) for goal_id, goal in self._goal_words.items()}
        best = max(shares.values())
        if best < _LEAST_GOAL_SHARE:
            return ()
        return tuple(goal_id for goal_id, share in shares.items() if share == best)

    def add(self, message: AgentMessage, goal_ids: Sequence[str] = ()) -> TaskDecision | None:
        """Take in one message; the decision when it opened, moved or joined a task.

        Args:
            message: the next one.
            goal_ids: active goals that it serves, when that is known; by its words (`served`) otherwise.
        """
        if message.role is MessageRole.USER and not message.origin:
            text = "\n".join(block.text for block in message.blocks if block.kind is BlockKind.TEXT)[:_MOST_TEXT_CHARS]
            self.turn += 1
            served = tuple(goal_ids) or self.served(text)
            if served:
                self._goals_of_turn[self.turn] = served
            titles = [self._goals.get(goal_id, goal_id) for goal_id in served]
            return self._note(self._tracker.add_user_message(self.turn, self._anchors(text), titles, text))
        decision = None
        if message.role is MessageRole.ASSISTANT:
            for block in message.blocks:
                if block.kind is BlockKind.TOOL_CALL:
                    decision = self._note(self._add_call(block.text)) or decision
        return decision

    @property
    def running_task(self) -> str | None:
        """The task of the running turn; None before the first."""
        return self._tracker.running_task

    def task_of(self, turn: int) -> str | None:
        """The task of a turn, after every merge since; None for what came before the first turn."""
        task_id = self._task_of_turn.get(turn)
        return None if task_id is None else self._tracker.resolve(task_id)

    def goals_of(self, turn: int) -> tuple[str, ...]:
        """Ids of the goals that the turn's task serves, by any of its turns, in the order in which they came up."""
        task = self.task_of(turn)
        return () if task is None else self.goals_of_task(task)

    def goals_of_task(self, task: str) -> tuple[str, ...]:
        """The same of a task by its id. O(turns that serve a goal)."""
        tied = (goals for other, goals in self._goals_of_turn.items() if self.task_of(other) == task)
        return tuple(dict.fromkeys(goal_id for goals in tied for goal_id in goals))

    def taken_up_again(self, text: str) -> tuple[str, ...]:
        """Texts of the goals that ``text`` serves, an earlier turn served, and the running task does not."""
        running = self.goals_of(self.turn)
        known = {goal_id for goals in self._goals_of_turn.values() for goal_id in goals}
        return tuple(self._goals[one] for one in self.served(text) if one in known and one not in running)

    # -- inside -----------------------------------------------------------------------------

    def _add_call(self, arguments: str) -> TaskDecision | None:
        path = path_argument(arguments)
        text = "\n".join(argument_texts(arguments))[:_MOST_TEXT_CHARS]
        return self._tracker.add_tool_use(max(self.turn, 0), [path] if path else [], self._anchors(text))

    def _note(self, decision: TaskDecision | None) -> TaskDecision | None:
        if decision is not None:
            self._task_of_turn[decision.turn] = decision.task_id
            self.decisions.append(decision)
        return decision

    def _anchors(self, text: str) -> dict[str, float]:
        counts = scan_anchors(text).counts
        self._texts += 1
        self._frequencies.update(counts.keys())
        return page_anchors(text, self._idf, counts=counts)

    def _idf(self, term: str) -> float:
        """Rare in this session and rare in the language."""
        return inverse_document_frequency(self._frequencies[term], self._texts) * base_weight(term)


def _share(goal: Mapping[str, float], anchors: Mapping[str, int]) -> float:
    """Share of a goal's weight that the anchors hold, in [0, 1]; 0 when they share too few words."""
    shared = [term for term in goal if term in anchors]
    if len(shared) < min(_LEAST_GOAL_WORDS, len(goal)) or not any(map(is_content, shared)):
        return 0.0
    return sum(goal[term] for term in shared) / sum(goal.values())
