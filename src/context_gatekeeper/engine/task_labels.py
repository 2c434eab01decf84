"""TaskLabels: which task each turn of an agent session belongs to (core module ``cluster``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from context_gatekeeper.core.anchor import inverse_document_frequency, scan_anchors
from context_gatekeeper.core.cluster import TaskDecision, TaskTracker
from context_gatekeeper.core.evidence import argument_texts
from context_gatekeeper.core.page_value import page_anchors
from context_gatekeeper.core.weights import base_weight
from context_gatekeeper.engine.tool_paths import path_argument
from context_gatekeeper.types import AgentMessage, BlockKind, MessageRole

__all__ = ["TaskLabels"]

_MOST_TEXT_CHARS = 20_000
"""Of a message or of a call's arguments; more tells no more about its task."""


class TaskLabels:
    """Follows a session message by message. A turn begins with a text that a person typed."""

    def __init__(self) -> None:
        self.turn = -1
        """Number of the running turn; -1 before the first."""
        self.decisions: list[TaskDecision] = []
        self._tracker = TaskTracker()
        self._task_of_turn: dict[int, str] = {}
        self._frequencies: Counter[str] = Counter()
        self._texts = 0

    def add(self, message: AgentMessage, goal_ids: Sequence[str] = ()) -> TaskDecision | None:
        """Take in one message; the decision when it opened, moved or joined a task."""
        if message.role is MessageRole.USER and not message.origin:
            text = "\n".join(block.text for block in message.blocks if block.kind is BlockKind.TEXT)[:_MOST_TEXT_CHARS]
            self.turn += 1
            return self._note(self._tracker.add_user_message(self.turn, self._anchors(text), goal_ids, text))
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
        self._texts += 1
        self._frequencies.update(scan_anchors(text).counts.keys())
        return page_anchors(text, self._idf)

    def _idf(self, term: str) -> float:
        """Rare in this session and rare in the language."""
        return inverse_document_frequency(self._frequencies[term], self._texts) * base_weight(term)
