"""Names of pools, sessions and append keys, and the errors about places that every store words alike."""

from __future__ import annotations

from context_gatekeeper.errors import ConfigError, PageNotFoundError
from context_gatekeeper.types import PageId

__all__ = ["MAX_NAME_CHARS", "check_name", "check_place", "misplaced_ordinal", "unknown_page"]

MAX_NAME_CHARS = 512
"""Longest name in characters: room for a path or a hash, too short to smuggle a text in."""


def check_name(what: str, name: object) -> None:
    """Raise ConfigError unless ``name`` can name a pool, session or append: 1 to 512 characters without NUL.

    Names never become paths or statements, so that dots, slashes, quotes, controls and half
    surrogate pairs are allowed.
    """
    if not isinstance(name, str):
        raise ConfigError(f"{what} name", f"it is a {type(name).__name__}, not a text", "pass a str")
    if len(name) > MAX_NAME_CHARS or "\0" in name or not name.strip():
        raise ConfigError(
            f"{what} name {name[:40]!a}",
            f"it is blank, longer than {MAX_NAME_CHARS} characters or holds NUL",
            "choose another name",
        )


def check_place(pool: object, session: object) -> None:
    """Raise ConfigError unless both names can be such."""
    check_name("pool", pool)
    check_name("session", session)


def misplaced_ordinal(session: str, ordinal: int, page_count: int) -> ConfigError:
    """Error for a page that does not go right behind the session's ``page_count`` pages."""
    place = f"turn {ordinal >> 1} of session {session!a}"
    if ordinal < page_count:
        return ConfigError(
            place, "another writer stored it first", "read the session again and append behind its last turn"
        )
    return ConfigError(
        place,
        f"the session holds {page_count} pages, so that its next page has ordinal {page_count}, not {ordinal}",
        "append pages in order and without gaps",
    )


def unknown_page(pool: str, page_id: PageId) -> PageNotFoundError:
    """Error for a page that the pool does not hold."""
    return PageNotFoundError(
        f"page {page_id!a}", f"pool {pool!a} has no such page", "use an id that append or scan returned"
    )
