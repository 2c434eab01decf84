"""What every store checks and computes alike: names, digests, errors about places."""

from __future__ import annotations

from hashlib import sha256

from context_gatekeeper.errors import ConfigError, PageNotFoundError
from context_gatekeeper.types import PageId

__all__ = ["check_name", "taken_ordinal", "text_bytes", "text_digest", "unknown_page"]

MAX_NAME_CHARS = 512


def check_name(what: str, name: object) -> None:
    """Raise ConfigError unless ``name`` can name a pool or session: 1 to 512 characters without NUL.

    Names never become paths, so that dots and slashes are allowed.
    """
    if not isinstance(name, str):
        raise ConfigError(f"{what} name", f"it is a {type(name).__name__}, not a text", "pass a str")
    if not name.strip() or len(name) > MAX_NAME_CHARS or "\0" in name:
        shown = repr(name[:40])
        raise ConfigError(
            f"{what} name {shown}", f"it is blank, longer than {MAX_NAME_CHARS} characters or holds NUL", "choose another name"
        )
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(f"{what} name", "it holds half a surrogate pair", "choose another name") from None


def text_bytes(text: str) -> bytes:
    """UTF-8 with surrogates passed through, so that any ``str`` survives."""
    return text.encode("utf-8", "surrogatepass")


def text_digest(text: str) -> str:
    """Hex sha256 of `text_bytes`."""
    return sha256(text_bytes(text)).hexdigest()


def taken_ordinal(session: str, ordinal: int) -> ConfigError:
    """Error for a place that another writer filled first."""
    return ConfigError(
        f"turn {ordinal >> 1} of session {session!r}",
        "another writer stored it first",
        "read the session again and append behind its last turn",
    )


def unknown_page(pool: str, page_id: PageId) -> PageNotFoundError:
    """Error for a page that the pool does not hold."""
    return PageNotFoundError(f"page {page_id}", f"pool {pool!r} has no such page", "use an id that append or scan returned")
