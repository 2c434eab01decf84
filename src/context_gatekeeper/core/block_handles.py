"""Short handles inside one session: ``p12`` is its block number 12.

``p12-p20`` names neighbouring blocks; a suffix asks for a piece of one block, as that of a page's handle does:
``p12#L40-88`` for lines, ``p12#C100-200`` for characters. They stand in digests and cards, where a page's own handle
would cost ten tokens more, and mean nothing outside of their session.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from context_gatekeeper.core.handles import RangeUnit

__all__ = ["BlockMention", "parse_block_handle"]

_MENTION = re.compile(
    r"p(?P<block>[0-9]{1,9})"
    r"(?:-p(?P<to>[0-9]{1,9})"
    r"|#(?P<unit>[LC])(?P<first>[0-9]{1,9})(?:-[LC]?(?P<last>[0-9]{1,9}))?)?"
)


@dataclass(frozen=True, slots=True)
class BlockMention:
    """Blocks as a text names them."""

    first_block: int
    last_block: int
    """At least ``first_block``."""
    unit: RangeUnit | None = None
    """None for whole blocks."""
    first: int = 0
    last: int = 0
    """As in `HandleMention`."""


def parse_block_handle(text: str) -> BlockMention | None:
    """The blocks that ``text`` names, blanks around it aside; None when it names none or is upside down."""
    found = _MENTION.fullmatch(text.strip())
    if found is None:
        return None
    block = int(found["block"])
    if found["unit"] is None:
        last_block = int(found["to"]) if found["to"] else block
        return BlockMention(block, last_block) if last_block >= block else None
    unit, first = RangeUnit(found["unit"]), int(found["first"])
    last = int(found["last"]) if found["last"] else first + (unit is RangeUnit.CHARACTERS)
    return BlockMention(block, block, unit, first, last) if last >= first else None
