"""Memory cards of a stored session, one for each of its tasks; entries cite blocks by their short handles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from context_gatekeeper.core.card import CardBuilder, MemoryCard, build_card, unverifiable_entries
from context_gatekeeper.core.card_records import CardEntry, CardField, CardSource, PinnedGoal
from context_gatekeeper.engine.agent_pages import block_places, page_message
from context_gatekeeper.engine.ingest import FIRST_TASK
from context_gatekeeper.engine.task_labels import TaskLabels
from context_gatekeeper.types import AgentMessage, BlockKind, ContentBlock, MessageRole, Page

__all__ = ["RunningCards", "TaskCard", "card_sources", "session_card", "task_cards"]

_BEFORE_ALL = -1
"""Place of a pinned goal: in front of every block, and on no page of the session."""


@dataclass(frozen=True, slots=True)
class TaskCard:
    """The card of one task."""

    task_id: str
    label: str
    """Its goal; "" where nobody said one."""
    first_block: int
    last_block: int
    """Other tasks' blocks may lie between."""
    card: MemoryCard
    """Its pages are block numbers."""
    unverifiable: int = 0
    """Entries that do not stand in the blocks that they cite: always 0."""
    goal_ids: tuple[str, ...] = ()
    """Active goals that the task serves; the first one's text stands in the place of the goal that was said."""
    handle: str = ""
    """Of the page that keeps the card; "" when none says the same."""

    @property
    def stretch(self) -> str:
        """Short handle of everything between its first and last block."""
        return f"p{self.first_block}" + (f"-p{self.last_block}" if self.last_block > self.first_block else "")

    def render(self, max_tokens: int = 300) -> str:
        """The card as text."""
        return self.card.render(max_tokens, handle=self.stretch)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        told = {"task_id": self.task_id, "label": self.label, "stretch": self.stretch, "handle": self.handle}
        told_goals = {"goal_ids": list(self.goal_ids)}
        return told | told_goals | {"unverifiable": self.unverifiable, "card": self.card.to_dict()}


def card_sources(pages: Sequence[Page]) -> Iterator[CardSource]:
    """The blocks of pages as cards read them: numbered as short handles number them."""
    for page in pages:
        message = page_message(page)
        if message is not None:
            yield from _sources(page, message)


def task_cards(
    pages: Sequence[Page], working_folder: str = "", goals: Mapping[str, str] | None = None
) -> tuple[TaskCard, ...]:
    """The cards of a session's tasks, the task that began first in front. O(the session's text).

    Args:
        pages: all of the session, in order.
        working_folder: where relative paths start.
        goals: active goals by their ids.
    """
    active = goals or {}
    labels = TaskLabels(active)
    cards = []
    for task_id, own in _by_task(pages, labels).items():
        served = labels.goals_of_task(task_id)
        cards.append(_card(task_id, list(card_sources(own)), working_folder, {one: active[one] for one in served}))
    return tuple(cards)


def session_card(
    pages: Sequence[Page], working_folder: str = "", goals: Mapping[str, str] | None = None
) -> TaskCard | None:
    """One card over all tasks of a session, its ``task_id`` ""; None for a session that holds nothing.

    It is made of the pages themselves, not of the tasks' cards: what a card left out is lost to whatever is made of
    it. Args as of `task_cards`. O(the session's text).
    """
    active = goals or {}
    labels = TaskLabels(active)
    tasks = _by_task(pages, labels)
    served = dict.fromkeys(goal_id for task_id in tasks for goal_id in labels.goals_of_task(task_id))
    sources = list(card_sources(pages))
    return _card("", sources, working_folder, {one: active[one] for one in served}) if sources else None


def _card(task_id: str, sources: Sequence[CardSource], working_folder: str, goals: Mapping[str, str]) -> TaskCard:
    pinned = _pinned(goals)
    card = build_card(sources, pinned_goal=pinned, working_folder=working_folder)
    texts = {source.page_id: source.text for source in sources}
    if pinned is not None:
        texts[pinned.page_id] = pinned.title
    said = card.of(CardField.GOAL)
    return TaskCard(
        task_id,
        said[0].text if said else "",
        sources[0].page_id,
        sources[-1].page_id,
        card,
        unverifiable_entries(card, texts),
        tuple(goals),
    )


def _pinned(goals: Mapping[str, str]) -> PinnedGoal | None:
    """The first of the goals that a task serves."""
    goal_id = next(iter(goals), None)
    return None if goal_id is None else PinnedGoal(goals[goal_id], _BEFORE_ALL, _BEFORE_ALL, goal_id)


class RunningCards:
    """Cards of a session that still runs: blocks are noted as they come, and read when a card is asked for.

    Args:
        labels: the session's tasks; only read.
        working_folder: where relative paths start.
    """

    def __init__(self, labels: TaskLabels, working_folder: str = "") -> None:
        self._labels = labels
        self._folder = working_folder
        self._turns: dict[int, list[CardSource]] = {}
        self._built: dict[str, _Built] = {}
        self._users = CardBuilder(working_folder)
        self._seq = 0

    def add(self, message: AgentMessage, first_block: int) -> None:
        """Note the next message, after the labels took it in. O(its blocks)."""
        sources = self._turns.setdefault(max(self._labels.turn, 0), [])
        for number, block in enumerate(message.blocks, first_block):
            source = _source(number, self._seq, message, block, message.time)
            sources.append(source)
            if message.role is MessageRole.USER and block.kind is BlockKind.TEXT:
                self._users.add(source)
        self._seq += 1

    def constraints(self) -> tuple[CardEntry, ...]:
        """What the user laid down so far, in any task, oldest first."""
        return self._users.card().of(CardField.CONSTRAINT)

    def running(self, goals: Mapping[str, str]) -> TaskCard | None:
        """The card of the running task; None before its first block. O(text that came since it was asked for last).

        Args:
            goals: active goals by their ids.
        """
        own = self._own()
        if not own:
            return None
        built = self._built_for(own)
        for _ in built.catch_up_steps(own):
            pass
        first, last = next(iter(own.values()))[0], list(own.values())[-1][-1]
        task_id = self._task_id
        served = {one: goals[one] for one in self._labels.goals_of_task(task_id) if one in goals}
        card = built.builder.card(_pinned(served))
        said = card.of(CardField.GOAL)
        label = said[0].text if said else ""
        return TaskCard(task_id, label, first.page_id, last.page_id, card, goal_ids=tuple(served))

    def read_steps(self) -> Iterator[None]:
        """Read what `running` would have to, block by block, while nobody waits for it."""
        own = self._own()
        return self._built_for(own).catch_up_steps(own)

    # -- inside -----------------------------------------------------------------------------

    @property
    def _task_id(self) -> str:
        return self._labels.running_task or FIRST_TASK

    def _own(self) -> dict[int, list[CardSource]]:
        """Turn -> blocks of the running task."""
        task_id = self._task_id
        return {
            turn: sources
            for turn, sources in self._turns.items()
            if (self._labels.task_of(turn) or FIRST_TASK) == task_id and sources
        }

    def _built_for(self, own: Mapping[int, Sequence[CardSource]]) -> _Built:
        built = self._built.get(self._task_id)
        if built is None or not built.begins(own):
            built = self._built[self._task_id] = _Built(CardBuilder(self._folder))
        return built


@dataclass(slots=True)
class _Built:
    """A card as far as it was read."""

    builder: CardBuilder
    read: dict[int, int] = field(default_factory=dict)
    """Turn -> blocks of it that were read; all of them but for the last turn's."""

    def begins(self, turns: Mapping[int, Sequence[CardSource]]) -> bool:
        """Whether what was read is how the turns begin: what is known later may move a turn to another task."""
        ahead = list(turns)[: len(self.read)]
        whole = list(self.read)[:-1]
        return ahead == list(self.read) and all(self.read[turn] == len(turns[turn]) for turn in whole)

    def catch_up_steps(self, turns: Mapping[int, Sequence[CardSource]]) -> Iterator[None]:
        """Read the blocks that came since, one by one, as far as it is gone through."""
        for turn, sources in turns.items():
            while (read := self.read.setdefault(turn, 0)) < len(sources):
                self.builder.add(sources[read])
                self.read[turn] = read + 1
                yield


def _by_task(pages: Iterable[Page], labels: TaskLabels) -> dict[str, list[Page]]:
    """Task -> its pages that hold something; ``labels`` takes them in."""
    turns: list[tuple[Page, int]] = []
    for page in pages:
        message = page_message(page)
        if message is not None:
            labels.add(message)
            turns.append((page, max(labels.turn, 0)))
    tasks: dict[str, list[Page]] = {}
    for page, turn in turns:
        tasks.setdefault(labels.task_of(turn) or FIRST_TASK, []).append(page)
    return tasks


def _sources(page: Page, message: AgentMessage) -> Iterator[CardSource]:
    for place in block_places(page):
        block = place.block
        yield _source(place.number, page.ordinal, message, block, page.time)


def _source(number: int, seq: int, message: AgentMessage, block: ContentBlock, time: float | None) -> CardSource:
    return CardSource(
        number,
        seq,
        message.role,
        block.kind,
        block.text,
        block.name,
        block.call_id,
        block.is_error,
        message.origin,
        time,
    )
