"""Changes of a text by places: what lies between them keeps its characters."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from context_gatekeeper.wire.records import Span

__all__ = ["Splice", "apply_splices", "edit_elements", "write_text"]

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


class Splice(NamedTuple):
    """What stands from ``start`` to ``end`` becomes ``text``."""

    start: int
    end: int
    text: str


def write_text(text: str) -> str:
    """A text as a JSON literal in its own characters, but halves of some, which UTF-8 has no bytes for, as escapes."""
    literal = json.dumps(text, ensure_ascii=False)
    return _LONE_SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", literal)


def apply_splices(source: str, splices: Iterable[Splice]) -> str:
    """The text with all splices. They do not overlap; at one place insertions come first, in the order given."""
    pieces: list[str] = []
    position = 0
    for splice in sorted(splices, key=_place):
        pieces += (source[position : splice.start], splice.text)
        position = splice.end
    pieces.append(source[position:])
    return "".join(pieces)


def _place(splice: Splice) -> tuple[int, int]:
    return splice.start, splice.end


def edit_elements(
    elements: Sequence[Span], leaving: Collection[int], inserted: Mapping[int, Sequence[str]]
) -> list[Splice]:
    """Splices that take elements out of a list or object and put new ones in, each comma with the element behind it.

    Args:
        elements: of the container, in order; at least one.
        leaving: places of those that leave.
        inserted: place of an element -> what comes behind it, or behind where it was.
    """
    splices: list[Splice] = []
    is_empty = True
    for place, element in enumerate(elements):
        gap_start = elements[place - 1].end if place else element.start
        if place in leaving:
            splices.append(Splice(gap_start, element.end, ""))
        else:
            if is_empty and place:
                splices.append(Splice(gap_start, element.start, ""))
            is_empty = False
        new = inserted.get(place, ())
        if new:
            splices.append(Splice(element.end, element.end, ("" if is_empty else ",") + ",".join(new)))
            is_empty = False
    return splices
