"""Memory cards of a stored session, one for each of its tasks; entries cite blocks by their short handles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from context_gatekeeper.core.card import MemoryCard, build_card, unverifiable_entries
from context_gatekeeper.core.card_records import CardField, CardSource
from context_gatekeeper.engine.agent_pages import block_places, page_message
from context_gatekeeper.engine.ingest import FIRST_TASK
from context_gatekeeper.engine.task_labels import TaskLabels
from context_gatekeeper.types import AgentMessage, Page

__all__ = ["TaskCard", "card_sources", "task_cards"]


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

    @property
    def stretch(self) -> str:
        """Short handle of everything between its first and last block."""
        return f"p{self.first_block}" + (f"-p{self.last_block}" if self.last_block > self.first_block else "")

    def render(self, max_tokens: int = 300) -> str:
        """The card as text."""
        return self.card.render(max_tokens, handle=self.stretch)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        told = {"task_id": self.task_id, "label": self.label, "stretch": self.stretch}
        return told | {"unverifiable": self.unverifiable, "card": self.card.to_dict()}


def card_sources(pages: Sequence[Page]) -> Iterator[CardSource]:
    """The blocks of pages as cards read them: numbered as short handles number them."""
    for page in pages:
        message = page_message(page)
        if message is not None:
            yield from _sources(page, message)


def task_cards(pages: Sequence[Page], working_folder: str = "") -> tuple[TaskCard, ...]:
    """The cards of a session's tasks, the task that began first in front. O(the session's text).

    Args:
        pages: all of the session, in order.
        working_folder: where relative paths start.
    """
    cards = []
    for task_id, own in _by_task(pages).items():
        sources = list(card_sources(own))
        card = build_card(sources, working_folder=working_folder)
        texts = {source.page_id: source.text for source in sources}
        goals = card.of(CardField.GOAL)
        cards.append(
            TaskCard(
                task_id,
                goals[0].text if goals else "",
                sources[0].page_id,
                sources[-1].page_id,
                card,
                unverifiable_entries(card, texts),
            )
        )
    return tuple(cards)


def _by_task(pages: Sequence[Page]) -> dict[str, list[Page]]:
    """Task -> its pages that hold something."""
    labels = TaskLabels()
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
        yield CardSource(
            place.number,
            page.ordinal,
            message.role,
            block.kind,
            block.text,
            block.name,
            block.call_id,
            block.is_error,
            message.origin,
            page.time,
        )
