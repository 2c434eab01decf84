"""Which task a message means: explicit goal label, explicit cue, link with the open tasks, in this order. Pure.

Source: section 1 of the paging notes (task clustering). "Between the two thresholds stay" has one exception,
measured on interleaved sessions: a task that is far ahead of the running one is joined there too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from context_gatekeeper.core.anchor import AnchorKind, anchor_kind, scan_anchors
from context_gatekeeper.core.background import simplify_han
from context_gatekeeper.core.query_form import read_form
from context_gatekeeper.core.task_cues import CueKind, TaskCue, read_task_cue
from context_gatekeeper.core.task_links import FileIndex, OpenTasks, known_share, link_scores
from context_gatekeeper.core.task_records import ClusterParams, OpenTask
from context_gatekeeper.core.text import normalise_text
from context_gatekeeper.core.weights import WEIGHT_PARAMS, base_weight, is_content

__all__ = ["FIRST_CHOICE", "TaskChoice", "TaskMessage", "choose_task", "linked_other", "view_tasks"]


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """What a message brings."""

    anchors: Mapping[str, float]
    """Anchor -> weight, > 0."""
    goal_ids: Sequence[str] = ()
    text: str = ""
    """As typed; "" when it is not known."""


@dataclass(frozen=True, slots=True)
class TaskChoice:
    """A task, or a new one, and why."""

    task_id: str | None
    """None for a new task."""
    reason: str
    scores: Mapping[str, float] = field(default_factory=dict)
    """Open task -> link in [0, 1]."""
    is_explicit: bool = False
    """By a goal or a cue: what the turn does later changes nothing."""
    cue_words: str = ""
    """Words that only said so and tell nothing of the task."""


_PAIR_CHARS = 2
FIRST_CHOICE = TaskChoice(None, "first message", is_explicit=True)


def view_tasks(
    tasks: Mapping[str, OpenTask],
    index: FileIndex,
    params: ClusterParams,
    words: Mapping[str, Collection[str]] | None = None,
) -> OpenTasks:
    """The open tasks for `link_scores`, by their core anchors or by ``words``. O(tasks)."""
    evidence = {task_id: task.evidence for task_id, task in tasks.items()}
    cores = words or {task_id: known.core(params.links) for task_id, known in evidence.items()}
    return OpenTasks(evidence, index, cores, params.links)


def choose_task(
    tasks: Mapping[str, OpenTask], running: str, index: FileIndex, message: TaskMessage, params: ClusterParams
) -> TaskChoice:
    """The task of a message.

    Args:
        tasks: the open tasks, the running one among them.
        running: task of the last turn.
        index: the files of the open tasks.
        message: anchors, goals, text.
        params: thresholds.

    O(tasks x anchors of the message).
    """
    view = view_tasks(tasks, index, params)
    scores = link_scores(view, index.called(message.anchors), message.anchors, message.goal_ids)
    if len(message.goal_ids) == 1:
        return _by_goal(tasks, running, message.goal_ids[0], scores, params)
    cue = read_task_cue(message.text) if message.text else None
    if cue is not None:
        named = _named_scores(tasks, index, cue.target, message.anchors, params)
        target, meaning = _by_cue(tasks, running, cue, scores, named, params)
        if meaning:
            return TaskChoice(target, f"says {cue.words!r}{meaning}", scores, is_explicit=True, cue_words=cue.words)
    return _by_link(tasks, running, message, scores, known_share(view, message.anchors), params)


def _by_goal(
    tasks: Mapping[str, OpenTask], running: str, goal: str, scores: Mapping[str, float], params: ClusterParams
) -> TaskChoice:
    for task_id, task in tasks.items():
        if goal in task.evidence.goals:
            return TaskChoice(task_id, f"serves the goal {goal!r}", scores, is_explicit=True)
    if not tasks[running].evidence.goals and scores[running] > params.join_above:
        return TaskChoice(running, f"the running task gets the goal {goal!r}", scores, is_explicit=True)
    return TaskChoice(None, f"first message of the goal {goal!r}", scores, is_explicit=True)


def _by_cue(
    tasks: Mapping[str, OpenTask],
    running: str,
    cue: TaskCue,
    scores: Mapping[str, float],
    named: Mapping[str, float],
    params: ClusterParams,
) -> tuple[str | None, str]:
    """(task that a cue means, None for a new one; what it goes by); an empty meaning when the cue means none."""
    if cue.kind is CueKind.NEW:
        return None, ", a new task"
    others = [task_id for task_id in tasks if task_id != running]
    if cue.names_previous:
        previous = _best(tasks, running, dict.fromkeys(others, 0.0))
        return previous, f", which is {previous}" if previous is not None else ""
    if cue.kind is CueKind.LEAVE:
        best = _best(tasks, running, {task_id: scores[task_id] for task_id in others})
        if best is None or scores[best] <= params.join_above:
            return None, ", and means none of the older tasks"
        return best, f" and is about {best} ({scores[best]:.2f})"
    best = _best(tasks, running, named) or running
    return best, f" and names {best} ({named[best]:.2f})" if named[best] > params.join_above else ""


def _named_scores(
    tasks: Mapping[str, OpenTask], index: FileIndex, target: str, anchors: Mapping[str, float], params: ClusterParams
) -> dict[str, float]:
    """Link of the words behind a cue, by all that is remembered of the tasks."""
    words = {term: anchors.get(term, base_weight(term)) for term in scan_anchors(target).counts}
    everything = {task_id: task.evidence.words for task_id, task in tasks.items()}
    return link_scores(view_tasks(tasks, index, params, everything), index.called(words), words)


def _by_link(
    tasks: Mapping[str, OpenTask],
    running: str,
    message: TaskMessage,
    scores: Mapping[str, float],
    known: float,
    params: ClusterParams,
) -> TaskChoice:
    other = linked_other(tasks, running, scores, params)
    if other is not None:
        shared = f"shares files or words with {other} ({scores[other]:.2f}; {running}: {scores[running]:.2f})"
        return TaskChoice(other, shared, scores)
    if scores[running] > params.join_above:
        return TaskChoice(running, f"shares files or words with what runs ({scores[running]:.2f})", scores)
    if max(scores.values()) >= params.new_below:
        return TaskChoice(running, "shares too little with any other task to leave this one", scores)
    if known > params.known_above:
        return TaskChoice(running, "says nothing that tells the open tasks apart", scores)
    units = _content_units(message.anchors)
    if units < params.least_units:
        return TaskChoice(running, "says too little to tell", scores)
    if units < params.lean_units and _leans_back(message.text):
        return TaskChoice(running, "is short and points back at what runs", scores)
    return TaskChoice(None, "shares nothing with the open tasks", scores)


def linked_other(
    tasks: Mapping[str, OpenTask], running: str, scores: Mapping[str, float], params: ClusterParams
) -> str | None:
    """Another task than the running one that the links tell to join; None to stay or to open one.

    Above ``join_above`` it must be ahead by more than ``lead``, from ``new_below`` on by ``clear_lead`` at least.
    """
    best = _best(tasks, running, scores) or running
    ahead = scores[best] - scores[running]
    is_linked = scores[best] > params.join_above and ahead > params.lead
    is_clear = scores[best] >= params.new_below and ahead >= params.clear_lead
    return best if best != running and (is_linked or is_clear) else None


def _best(tasks: Mapping[str, OpenTask], running: str, scores: Mapping[str, float]) -> str | None:
    """The task with the highest score; ties go to the running task, then to the one visited last."""
    return max(
        scores,
        key=lambda task_id: (scores[task_id], task_id == running, tasks[task_id].last_turn, task_id),
        default=None,
    )


def _content_units(anchors: Iterable[str]) -> float:
    """Words' worth of content: a Chinese pair is half a word, and a triple repeats its pairs."""
    units = 0.0
    for term in filter(is_content, anchors):
        if anchor_kind(term) is not AnchorKind.NGRAM:
            units += 1.0
        elif len(term) == _PAIR_CHARS:
            units += WEIGHT_PARAMS.pair_piece
    return units


def _leans_back(text: str) -> bool:
    """Whether the message opens or ends as one who goes on, or points at what was said."""
    form = read_form(simplify_han(normalise_text(text)))
    return form.points_back or form.leads_on or form.is_deictic
