"""Handles: the short text that stands in a context in place of a page.

``page:`` and 16 characters of lower-case base32: 80 bits of a keyed hash of the page's id, so that
nobody without the pool's key can guess one, and the same page has the same handle for ever. A
suffix asks for a piece: ``#L10-20`` lines 10 to 20, ``#C100-200`` characters 100 to 199.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from context_gatekeeper.types import PageId

__all__ = [
    "HANDLE_BYTES",
    "HANDLE_CHARS",
    "HANDLE_KEY_BYTES",
    "HandleMention",
    "RangeUnit",
    "digest_in_handle",
    "find_handles",
    "handle_digest",
    "handle_of",
    "parse_handle",
]

HANDLE_KEY_BYTES = 32
"""A pool's key."""
HANDLE_BYTES = 10
"""80 bits: a million guesses at a pool of a million pages hit with a chance of 1e-12."""
HANDLE_CHARS = 16
_PREFIX = "page:"
_DIGITS = "abcdefghijklmnopqrstuvwxyz234567"
"""Of RFC 4648's base 32, in small letters: none looks like another."""
_DIGIT_BITS = 5
_AS_PYTHON_DIGITS = str.maketrans(_DIGITS, "0123456789abcdefghijklmnopqrstuv")
_PAGE_ID_BYTES = 8
_MENTION = re.compile(
    r"(?<![A-Za-z0-9_])page:(?P<code>[a-z2-7]{16})(?![A-Za-z0-9_])"
    # At most nine digits: no text makes us read a number of a million digits.
    r"(?:#(?P<unit>[LC])(?P<first>[0-9]{1,9})(?:-[LC]?(?P<last>[0-9]{1,9}))?(?![A-Za-z0-9_]))?"
)


class RangeUnit(StrEnum):
    """What a handle's range counts."""

    LINES = "L"
    """From 1, the last one included."""
    CHARACTERS = "C"
    """From 0, the last one left out."""


@dataclass(frozen=True, slots=True)
class HandleMention:
    """A handle as a text names it."""

    handle: str
    """Without a range: what `handle_of` returned."""
    start: int
    """Where in the text it begins."""
    end: int
    """Past its range."""
    unit: RangeUnit | None = None
    """None for the whole page."""
    first: int = 0
    last: int = 0
    """At least ``first``; of one line or one character alone, as if it had been named as a range."""


def handle_digest(page_id: PageId, key: bytes) -> bytes:
    """The 10 bytes that the handle of a page spells; ``key`` is its pool's."""
    return blake2b(page_id.to_bytes(_PAGE_ID_BYTES, "big"), digest_size=HANDLE_BYTES, key=key).digest()


def handle_of(page_id: PageId, key: bytes) -> str:
    """The page's handle, ``page:`` and 16 characters; ``key`` is its pool's."""
    number = int.from_bytes(handle_digest(page_id, key), "big")
    shifts = range((HANDLE_CHARS - 1) * _DIGIT_BITS, -1, -_DIGIT_BITS)
    return _PREFIX + "".join(_DIGITS[number >> shift & 31] for shift in shifts)


def digest_in_handle(handle: str) -> bytes:
    """The 10 bytes that a well-formed handle spells."""
    number = int(handle.removeprefix(_PREFIX).translate(_AS_PYTHON_DIGITS), 1 << _DIGIT_BITS)
    return number.to_bytes(HANDLE_BYTES, "big")


def parse_handle(text: str) -> HandleMention | None:
    """The handle that ``text`` is, blanks around it aside; None when it is none or its range is upside down."""
    found = _MENTION.fullmatch(text.strip())
    mention = _mention(found) if found else None
    return mention if mention is not None and mention.end == len(text.strip()) else None


def find_handles(text: str) -> tuple[HandleMention, ...]:
    """The handles that ``text`` names, in order. O(length). A range upside down is no range."""
    if _PREFIX not in text:
        return ()
    return tuple(map(_mention, _MENTION.finditer(text)))


def _mention(found: re.Match[str]) -> HandleMention:
    handle = _PREFIX + found["code"]
    if found["unit"] is None:
        return HandleMention(handle, found.start(), found.end())
    unit, first = RangeUnit(found["unit"]), int(found["first"])
    last = int(found["last"]) if found["last"] else first + (unit is RangeUnit.CHARACTERS)
    if last < first:
        return HandleMention(handle, found.start(), found.end("code"))
    return HandleMention(handle, found.start(), found.end(), unit, first, last)
