"""CardBook: the memory cards of stored sessions, kept as pages, so that recall finds them.

At the end of an import each task of the session has one card page. It is made of the session's pages, never of
other cards; one that says something else than before supersedes the older one, which stays, as every page does, and is
found by its handle alone. A card quotes, so it goes when a page of its session is deleted, and is made again from what
is left.

Source: the scheduling design, sections 3 and 10; section 1 of the paging notes (memory card).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from context_gatekeeper.engine.agent_pages import block_places, empty_page
from context_gatekeeper.engine.card_notes import card_draft, cards_session
from context_gatekeeper.engine.goals import append_apart
from context_gatekeeper.engine.owner_view import OwnerView
from context_gatekeeper.engine.session_cards import TaskCard, task_cards
from context_gatekeeper.types import Page, PageDraft, PageId, PageKind, PageLabels, Provenance, Role

__all__ = ["CARD_PAGE_TOKENS", "CardBook"]

CARD_PAGE_TOKENS = 1000
"""Most tokens of a card that is kept as a page."""
_CURRENT = "cards"
"""Setting of a session of cards: pages that were there when they were made, and the card page of each task."""


class CardBook:
    """Cards of one owner's sessions in one pool.

    Args:
        view: the pool as he sees it.
        redact: makes a draft what may be stored.
        goals: gives his active goals by their ids.
    """

    def __init__(
        self, view: OwnerView, redact: Callable[[PageDraft], PageDraft], goals: Callable[[], Mapping[str, str]]
    ) -> None:
        self._view = view
        self._store = view.store
        self._pool = view.pool
        self._redact = redact
        self._goals = goals

    def refresh(self, session: str) -> int:
        """Store the cards of the session's tasks that say something new; how many. O(the session's text) when it grew.

        Raises StoreError.
        """
        count = self._store.page_count(self._pool, session)
        noted, current = self._noted(session)
        if noted == count:
            return 0
        pages = self._view.pages(session)
        holders = {place.number: page.page_id for page in pages for place in block_places(page)}
        if not holders:  # all of it was deleted, and the session is none any more
            return 0
        folder = self._view.facts(session).working_folder
        cards = [card for card in task_cards(pages, folder, self._goals()) if card.card.entries]
        older = {page.labels.task_id: page for page in self._view.live(current.values())}
        stored = {}
        for card in cards:
            page = self._store_card(session, card, holders, older.get(card.task_id))
            stored[card.task_id] = page.page_id
        told = json.dumps([count, stored])
        self._store.set_setting(self._pool, cards_session(session), _CURRENT, told)
        return len(set(stored.values()) - set(current.values()))

    def pages(self, session: str) -> dict[str, Page]:
        """Task -> its card page, as far as the owner may see it."""
        _, current = self._noted(session)
        return {page.labels.task_id: page for page in self._view.live(current.values())}

    def handle_of(self, session: str, card: TaskCard) -> str:
        """Handle of the page that keeps the card; "" when none says the same."""
        page = self.pages(session).get(card.task_id)
        is_kept = page is not None and page.text == self._drafted(card, None).text
        return self._view.handle_of(page) if page is not None and is_kept else ""

    def page_ids(self, session: str) -> frozenset[PageId]:
        """Ids of the card pages that count: neither superseded nor of a task that became part of another."""
        return frozenset(self._noted(session)[1].values())

    # -- inside -----------------------------------------------------------------------------

    def _drafted(self, card: TaskCard, older: Page | None) -> PageDraft:
        labels = PageLabels(
            owner=self._view.owner,
            task_id=card.task_id,
            goal_ids=card.goal_ids,
            supersedes=None if older is None else older.page_id,
            provenance=Provenance.DERIVED,
        )
        text = card.render(CARD_PAGE_TOKENS)
        return self._redact(PageDraft(0, Role.USER, text, kind=PageKind.CARD, labels=labels))

    def _noted(self, session: str) -> tuple[int, dict[str, PageId]]:
        noted = self._store.settings(self._pool, cards_session(session)).get(_CURRENT)
        count, current = (0, {}) if noted is None else json.loads(noted)
        return count, current

    def _store_card(self, session: str, card: TaskCard, holders: Mapping[int, PageId], older: Page | None) -> Page:
        """The card's page: the older one where it says the same."""
        draft = self._drafted(card, older)
        if older is not None and older.text == draft.text:
            return older
        cites = sorted({holders[number] for number in card.card.handles if number in holders})

        def sides(turn_id: int) -> Sequence[PageDraft]:
            return card_draft(replace(draft, turn_id=turn_id), cites), empty_page(
                turn_id, Role.ASSISTANT, self._view.owner
            )

        return append_apart(self._view, cards_session(session), sides)
