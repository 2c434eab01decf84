"""From draft to page: what every store checks before it keeps anything, and the page it returns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from context_gatekeeper.core.page_bytes import page_digest, text_bytes
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.stores.labels import DELETED, checked_labels
from context_gatekeeper.stores.names import misplaced_ordinal
from context_gatekeeper.stores.postings import MAX_FREQUENCY
from context_gatekeeper.types import Page, PageDraft, PageId, PageKind, Role

__all__ = [
    "MAX_TURN_ID",
    "ORDINAL_BITS",
    "check_places",
    "check_setting",
    "checked_drafts",
    "deleted_page",
    "first_page_id",
    "ordinal_of",
    "page_of",
    "session_id_of",
    "text_bytes",
]

MAX_TURN_ID = 2**31 - 2
"""Last turn of a session: its ordinals still fit the index's 32 bits."""
ORDINAL_BITS = 32
"""Lower bits of a page's id; the upper ones are its session's id."""


def checked_drafts(drafts: Sequence[PageDraft]) -> tuple[PageDraft, ...]:
    """The drafts as every store keeps them: own copies of the terms, occurrences at most 255, times as floats.

    Raises:
        ConfigError: a field is not what `PageDraft` says. The thing named is the turn's side.
    """
    return tuple(_checked(draft) for draft in drafts)


def first_page_id(session_id: int) -> PageId:
    """Id of the session's page with ordinal 0; ordinal n has this id + n.

    An id is the page's place: no counter that every append of a store would have to write, and
    never given twice as long as session ids are not. ``session_id`` is 1 or more.
    """
    return PageId(session_id << ORDINAL_BITS)


def ordinal_of(page_id: int) -> int:
    """Ordinal of the page in its session."""
    return page_id % (1 << ORDINAL_BITS)


def session_id_of(page_id: int) -> int:
    """Id of the page's session."""
    return page_id >> ORDINAL_BITS


def check_places(session: str, drafts: Sequence[PageDraft], page_count: int) -> None:
    """Raise ConfigError unless the drafts follow the session's pages in order and without gaps."""
    for expected, draft in enumerate(drafts, page_count):
        if draft.ordinal != expected:
            raise misplaced_ordinal(session, draft.ordinal, expected)


def check_setting(key: object, value: object) -> None:
    """Raise ConfigError unless both are texts; a value may be None (remove the setting)."""
    if not isinstance(key, str) or not isinstance(value, str | None):
        raise ConfigError(
            f"setting {key!a}", f"the value is a {type(value).__name__}", "pass texts, or None to remove the setting"
        )


def page_of(draft: PageDraft, page_id: PageId, pool: str, session: str) -> Page:
    """The page that a checked draft becomes."""
    return Page(
        page_id,
        pool,
        session,
        draft.turn_id,
        draft.role,
        draft.text,
        draft.terms,
        draft.derived,
        draft.time,
        draft.speaker,
        draft.kind,
        page_digest(draft.text, draft.labels.parts),
        draft.labels,
    )


def deleted_page(page_id: PageId, pool: str, session: str, kind: PageKind) -> Page:
    """The marker that stands in the place of a deleted page: its kind, its place and nothing else."""
    ordinal = ordinal_of(page_id)
    draft = PageDraft(ordinal >> 1, Role.ASSISTANT if ordinal & 1 else Role.USER, "", kind=kind, labels=DELETED)
    return page_of(draft, page_id, pool, session)


def _checked(draft: PageDraft) -> PageDraft:
    if not isinstance(draft, PageDraft):
        raise ConfigError("page draft", f"it is a {type(draft).__name__}", "pass PageDraft records")
    place = f"{draft.role!s} page of turn {draft.turn_id!a}"
    if type(draft.turn_id) is not int or not 0 <= draft.turn_id <= MAX_TURN_ID:
        raise ConfigError(place, "the turn id is no whole number from 0", "count the session's turns from 0")
    if not (isinstance(draft.role, Role) and isinstance(draft.kind, PageKind)):
        raise ConfigError(place, "role or kind is none of the known ones", "pass members of Role and PageKind")
    if not (isinstance(draft.text, str) and isinstance(draft.derived, str) and isinstance(draft.speaker, str | None)):
        raise ConfigError(place, "text, derived or speaker is no text", "pass str; a speaker may be None")
    return PageDraft(
        draft.turn_id,
        draft.role,
        draft.text,
        _checked_terms(place, draft.terms),
        draft.derived,
        _checked_time(place, draft.time),
        draft.speaker,
        draft.kind,
        checked_labels(place, draft.labels, len(draft.text)),
    )


def _checked_terms(place: str, terms: Mapping[str, int]) -> dict[str, int]:
    try:
        occurrences = bytes([min(count, MAX_FREQUENCY) for count in terms.values()])
        line_breaks = "".join(terms).count("\n")
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigError(place, f"its terms are no mapping of texts to counts ({error})", "pass {str: int}") from error
    if 0 in occurrences or line_breaks:
        raise ConfigError(
            place, "a term occurs 0 times or holds a line break", "leave out absent terms and cut terms at line breaks"
        )
    return dict(zip(terms, occurrences, strict=True))


def _checked_time(place: str, time: float | None) -> float | None:
    if time is None:
        return None
    if isinstance(time, bool) or not isinstance(time, int | float) or not math.isfinite(time):
        raise ConfigError(place, f"its time {time!a} is no finite number", "pass seconds since the epoch or None")
    return time + 0.0  # a float in any case; minus zero becomes zero, which files cannot tell apart
