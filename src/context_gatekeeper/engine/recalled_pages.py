"""From hits of a recall to the pages that are shown: each text once, with excerpt, age and what came after it.

A card quotes pages, so it never stands beside one that it quotes: it takes their place where it was found before
them and holds all that was asked for and stands in them, else it leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.excerpt import excerpt
from context_gatekeeper.core.recalled_text import RecalledItem
from context_gatekeeper.core.weights import base_weight
from context_gatekeeper.engine.agent_pages import called_tools
from context_gatekeeper.engine.card_notes import carded_session, cited_pages
from context_gatekeeper.engine.owner_view import OwnerView
from context_gatekeeper.engine.session_recall import SessionHit
from context_gatekeeper.engine.session_view import file_marks
from context_gatekeeper.types import Page, PageId, PageKind

__all__ = ["EXCERPT_CHARS", "RecalledPage", "recalled_pages"]

EXCERPT_CHARS = 1600
"""Of one recalled page, about 400 tokens."""
_MOST_OF_A_FILE = 2
"""Versions of one file among the pages of one recall."""


@dataclass(frozen=True, slots=True)
class RecalledPage:
    """A page that a recall found."""

    item: RecalledItem
    strength: float
    """Comparable inside one result only; > 0."""
    ordinal: int
    time: float | None
    """When it was said, in seconds since the epoch."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        item = self.item
        return {
            "handle": item.handle,
            "session": item.session,
            "ordinal": self.ordinal,
            "score": self.strength,
            "kind": item.kind.value,
            "provenance": item.provenance.value if item.provenance else "",
            "tool": item.tool,
            "path": item.path,
            "copies": item.copies,
            "superseded_by": item.superseded_by,
            "changed_by": item.changed_by,
            "time": self.time,
            "excerpt": item.text,
        }


@dataclass(slots=True)
class _Found:
    page: Page
    strength: float
    copies: int = 1


def recalled_pages(
    query: str,
    hits: Sequence[SessionHit],
    view: OwnerView,
    *,
    limit: int,
    now: float | None = None,
    cards: Collection[PageId] = (),
) -> tuple[RecalledPage, ...]:
    """The first ``limit`` pages of the hits that may be shown, best first.

    Args:
        query: what was asked, for the excerpts.
        hits: best first.
        view: of whoever asks.
        limit: most pages.
        now: seconds since the epoch, for the pages' age; not told when None.
        cards: the card pages that count; others are superseded.
    """
    weights = {term: base_weight(term) for term in scan_anchors(query).counts}
    seen = [one for one in _seen(hits, view) if one.page.kind is not PageKind.CARD or one.page.page_id in cards]
    found = _without_copies(_cards_or_pages(seen, weights.keys(), limit), limit)
    marks = {name: _marks(name, view) for name in {one.page.session for one in found if one.page.labels.path}}
    recalled = []
    for one in found:
        page, handle = one.page, view.handle_of(one.page)
        superseded_by, changed_by = marks.get(page.session, {}).get(page.ordinal, ("", ""))
        item = RecalledItem(
            handle,
            page.kind,
            page.labels.provenance,
            carded_session(page.session),
            excerpt(page.text, weights, most_chars=EXCERPT_CHARS, handle=handle),
            page.labels.owner,
            page.labels.tool or ", ".join(called_tools(page)),
            page.labels.path,
            None if now is None or page.time is None else max(0.0, now - page.time),
            one.copies,
            superseded_by,
            changed_by,
        )
        recalled.append(RecalledPage(item, one.strength, page.ordinal, page.time))
    return tuple(recalled)


def _seen(hits: Iterable[SessionHit], view: OwnerView) -> Iterator[_Found]:
    for one in hits:
        for page in view.live((one.hit.page_id,)):
            yield _Found(page, one.hit.score)


def _cards_or_pages(found: list[_Found], asked: Collection[str], limit: int) -> list[_Found]:
    """The same without each card, or without the pages that it quotes."""
    for card in [one for one in found if one.page.kind is PageKind.CARD]:
        cited = cited_pages(card.page)
        sources = [one for one in _without_copies(found, limit) if one.page.page_id in cited]
        asked_in_card = {term for term in asked if term in card.page.terms}
        tells_all = all(
            one.strength < card.strength and all(term in asked_in_card for term in asked if term in one.page.terms)
            for one in sources
        )
        gone = cited if tells_all else {card.page.page_id}
        found = [one for one in found if one.page.page_id not in gone]
    return found


def _without_copies(found: Iterable[_Found], limit: int) -> list[_Found]:
    """The first ``limit``: of equal texts the newest page in the best one's place, of a file two versions."""
    kept: dict[str, _Found] = {}
    versions: Counter[tuple[str, str]] = Counter()
    for one in found:
        same = kept.get(one.page.text)
        if same is not None:
            same.copies += 1
            same.page = max(same.page, one.page, key=lambda page: (page.time or 0.0, page.page_id))
            continue
        file = (one.page.session, one.page.labels.path)
        if len(kept) < limit and versions[file] < _MOST_OF_A_FILE:
            kept[one.page.text] = replace(one)
            versions[file] += one.page.labels.path != ""
    return list(kept.values())


def _marks(name: str, view: OwnerView) -> dict[int, tuple[str, str]]:
    """Ordinal -> handles of what supersedes and what changed a file page of the session."""
    pages = list(view.pages(name))
    handles: dict[int | None, str] = {page.ordinal: view.handle_of(page) for page in pages}
    handles[None] = ""
    return {
        ordinal: (handles[one.superseded_by], handles[one.changed_by])
        for ordinal, one in file_marks(pages, view.facts(name).working_folder).items()
    }
