"""Messages that came in by pieces, put together again.

The log of a session that runs holds the first blocks of its newest answer, and a page never changes: what comes
later is a page of its own, which notes whose message it goes on with. Read in the order of the talk they
are the one page that they would have been, and blocks have the numbers that the whole log gives them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from context_gatekeeper.engine.agent_pages import continued_page, first_number, joined_page, page_blocks
from context_gatekeeper.types import Page

__all__ = ["numbered_pieces", "regrouped"]


def regrouped(pages: Iterable[Page]) -> list[Page]:
    """The pages of a session with the pieces of each message in one. O(pages).

    Args:
        pages: of one session in the order of their ordinals; where some are missing the rest stay together.
    """
    known = list(pages)
    found = []
    for number, pieces in _numbered(known):
        head = pieces[0]
        is_as_stored = len(pieces) == 1 and number == first_number(head)
        found.append(head if is_as_stored or number is None else joined_page(pieces, number))
    return found


def numbered_pieces(pages: Iterable[Page]) -> list[tuple[int, tuple[Page, ...]]]:
    """Number of the first block, and the pieces of its message, of each message of a session that is there. O(pages).

    Args:
        pages: as in `regrouped`.
    """
    return [
        (number, pieces) for number, pieces in _numbered(list(pages)) if number is not None and page_blocks(pieces[0])
    ]


def _numbered(pages: Sequence[Page]) -> list[tuple[int | None, tuple[Page, ...]]]:
    """The same of every page, also of those that hold no block; None where no number was noted."""
    groups = _groups(pages)
    joined = {piece.ordinal for pieces in groups.values() for piece in pieces[1:]}
    steps = _steps(groups.values())
    moved = 0
    found = []
    for page in pages:
        while steps and steps[-1][0] <= page.ordinal:
            moved += steps.pop()[1]
        number = first_number(page)
        if page.ordinal not in joined:
            pieces = groups.get(page.ordinal, (page,))
            found.append((None if number is None else number + moved, tuple(pieces)))
    return found


def _groups(pages: Sequence[Page]) -> dict[int, list[Page]]:
    """Ordinal of the first piece that is there -> all pieces, for messages of which there are several."""
    by_ordinal = {page.ordinal: page for page in pages}
    heads: dict[int, list[Page]] = {}
    for page in pages:
        head = continued_page(page)
        if head is not None:
            first = by_ordinal.get(head)
            heads.setdefault(head, [first] if first is not None and page_blocks(first) else []).append(page)
    return {pieces[0].ordinal: pieces for pieces in heads.values() if len(pieces) > 1}


def _steps(groups: Iterable[Sequence[Page]]) -> list[tuple[int, int]]:
    """(ordinal, blocks), last ordinal first: from there on so many more blocks, or fewer, stand before a page.

    Pages between the first piece and a later one stand behind its blocks, though they were stored before them.
    """
    steps: Counter[int] = Counter()
    for pieces in groups:
        for piece in pieces[1:]:
            blocks = len(page_blocks(piece))
            steps[pieces[0].ordinal + 1] += blocks
            steps[piece.ordinal] -= blocks
    return sorted(steps.items(), reverse=True)
