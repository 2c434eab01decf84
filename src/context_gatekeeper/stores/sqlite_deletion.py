"""Deleting pages of the SQLite file, so that their content is nowhere in it any more."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from context_gatekeeper.stores.drafts import deleted_page, first_page_id, ordinal_of
from context_gatekeeper.stores.names import unknown_page
from context_gatekeeper.stores.originals import drop_uncited_originals
from context_gatekeeper.stores.sqlite_statements import (
    SessionRow,
    find_session_of,
    page_values,
    terms_values,
    write_counts,
)
from context_gatekeeper.types import PageId, PageKind

__all__ = ["blank_pages", "find_places"]

_FIND_PAGE = "SELECT kind, sha256 FROM pages WHERE page_id = ?"
_SET_PAGE = """
    INSERT OR REPLACE INTO pages (page_id, pool_id, kind, time, speaker, labels, sha256, body, digest)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SET_TERMS = "INSERT OR REPLACE INTO page_terms (page_id, pool_id, terms, derived, digest) VALUES (?, ?, ?, ?, ?)"
_KINDS: dict[object, PageKind] = {kind.value.encode(): kind for kind in PageKind}


def find_places(
    connection: sqlite3.Connection, path: str, pool: str, page_ids: Sequence[PageId]
) -> dict[tuple[str, SessionRow], set[int]]:
    """The sessions that hold the pages, each with their ordinals.

    Raises:
        PageNotFoundError: for the first unknown id.
    """
    places: dict[tuple[str, SessionRow], set[int]] = {}
    for page_id in page_ids:
        place = find_session_of(connection, path, pool, page_id)
        if place is None:
            raise unknown_page(pool, page_id)
        places.setdefault(place, set()).add(ordinal_of(page_id))
    return places


def blank_pages(
    connection: sqlite3.Connection, here: SessionRow, pool: str, session: str, ordinals: Iterable[int]
) -> tuple[str, ...]:
    """Put markers in the place of pages, damaged ones too.

    Returns hex sha256 of the texts that no page of the pool has any more, ascending.
    """
    shas = set()
    first_id = first_page_id(here.session_id)
    for ordinal in ordinals:
        page_id = PageId(first_id + ordinal)
        kind, sha = connection.execute(_FIND_PAGE, (page_id,)).fetchone() or (None, None)
        if isinstance(sha, bytes):
            shas.add(sha)
        marker = deleted_page(page_id, pool, session, _KINDS.get(kind, PageKind.TURN))
        connection.execute(_SET_PAGE, page_values(connection, here, marker))
        connection.execute(_SET_TERMS, terms_values(here, marker))
    write_counts(connection, here._replace(deletions=here.deletions + 1), pool, session)
    gone = drop_uncited_originals(connection, here.pool_id, shas)
    return tuple(sha.hex() for sha in gone)
