"""Memory cards of a stored session, one for each of its tasks; entries cite blocks by their short handles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Any

from context_gatekeeper.core.anchor import inverse_document_frequency
from context_gatekeeper.core.card import MemoryCard, build_card, unverifiable_entries
from context_gatekeeper.core.card_records import CardSource
from context_gatekeeper.core.cluster import TaskTracker
from context_gatekeeper.core.page_value import PAGE_VALUE_PARAMS
from context_gatekeeper.core.weights import base_weight
from context_gatekeeper.engine.agent_pages import block_places, page_message
from context_gatekeeper.engine.context_terms import is_context_term
from context_gatekeeper.engine.file_versions import read_file_call
from context_gatekeeper.ports import Postings
from context_gatekeeper.types import AgentMessage, BlockKind, MessageRole, Page

__all__ = ["TaskCard", "card_sources", "task_cards"]


@dataclass(frozen=True, slots=True)
class TaskCard:
    """The card of one task."""

    task_id: str
    label: str
    """Its heaviest anchors; "" for a task that was closed."""
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


def task_cards(pages: Sequence[Page], postings: Postings, working_folder: str = "") -> tuple[TaskCard, ...]:
    """The cards of a session's tasks, the task that began first in front. O(the session's text).

    Args:
        pages: all of the session, in order.
        postings: its index, for the weights of words.
        working_folder: where relative paths start.
    """
    tasks, labels = _tasks(pages, _weigher(postings), working_folder)
    members: dict[str, list[Page]] = {}
    for page in pages:
        if page.ordinal in tasks:
            members.setdefault(tasks[page.ordinal], []).append(page)
    cards = []
    for task_id, own in members.items():
        sources = list(card_sources(own))
        card = build_card(sources, working_folder=working_folder)
        texts = {source.page_id: source.text for source in sources}
        first, last = sources[0].page_id, sources[-1].page_id
        cards.append(TaskCard(task_id, labels.get(task_id, ""), first, last, card, unverifiable_entries(card, texts)))
    return tuple(cards)


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


def _weigher(postings: Postings) -> Callable[[Page], dict[str, float]]:
    """Page -> its heaviest anchors with their weights."""

    def anchors(page: Page) -> dict[str, float]:
        weights = {
            term: inverse_document_frequency(postings.document_frequency(term), postings.block_count)
            * base_weight(term)
            for term in page.terms
            if not is_context_term(term)
        }
        return dict(nlargest(PAGE_VALUE_PARAMS.most_anchors, weights.items(), key=lambda item: (item[1], item[0])))

    return anchors


def _tasks(
    pages: Sequence[Page], anchors: Callable[[Page], Mapping[str, float]], working_folder: str
) -> tuple[dict[int, str], dict[str, str]]:
    """(ordinal -> task of the page that holds something, task -> label)."""
    tracker = TaskTracker()
    task_of_turn: dict[int, str] = {}
    turn_of: dict[int, int] = {}
    turn = 0
    for page in pages:
        message = page_message(page)
        if message is None:
            continue
        if message.role is MessageRole.USER and not message.origin:
            turn += bool(task_of_turn)
            task_of_turn[turn] = tracker.add_user_message(turn, anchors(page), text=page.text).task_id
        elif message.role is MessageRole.ASSISTANT:
            for block in message.blocks:
                if block.kind is BlockKind.TOOL_CALL:
                    call = read_file_call(block.name, block.text, working_folder)
                    decision = tracker.add_tool_use(turn, call.paths if call is not None else ())
                    task_of_turn[turn] = decision.task_id if decision is not None else tracker.running_task or ""
            tracker.add_answer(turn, anchors(page))
        turn_of[page.ordinal] = turn
    first = next(iter(task_of_turn.values()), "t1")
    labels = {task.task_id: task.label for task in tracker.tasks()}
    return {at: tracker.resolve(task_of_turn.get(turn, first)) for at, turn in turn_of.items()}, labels
