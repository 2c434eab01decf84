"""Cards as pages: the session that keeps them, and what is noted beside each.

Why they have a session of their own: docs/decisions/0013-cards-are-pages-of-a-session-of-their-own.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.engine.agent_pages import page_terms
from context_gatekeeper.types import Page, PageDraft, PageId, PageKind

__all__ = ["card_draft", "carded_session", "cards_session", "cited_pages"]

_CARDS_MARK = "cgk:cards "
_TOKENS, _CITES = "tokens", "cites"


def cards_session(name: str) -> str:
    """Name of the session that keeps the cards of an agent's session."""
    return f"{_CARDS_MARK}{name}"


def carded_session(name: str) -> str:
    """The session that a page of session ``name`` tells of: of a card the one that it was made of."""
    return name.removeprefix(_CARDS_MARK)


def card_draft(redacted: PageDraft, cites: Sequence[PageId]) -> PageDraft:
    """A redacted draft of a card as it is stored: with its terms, its size and the pages that it quotes."""
    notes = {_TOKENS: estimate_tokens(redacted.text), _CITES: list(cites)}
    return replace(redacted, terms=page_terms(redacted), derived=json.dumps(notes, separators=(",", ":")))


def cited_pages(page: Page) -> frozenset[PageId]:
    """The pages that a card quotes; none for any other page and for a deleted one."""
    if page.kind is not PageKind.CARD or not page.derived:
        return frozenset()
    return frozenset(json.loads(page.derived)[_CITES])
