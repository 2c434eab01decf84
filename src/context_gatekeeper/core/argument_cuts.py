"""A tool call's arguments with stretches left out, still JSON of the same shape.

Only the insides of long string values are cut: keys, numbers, short values and all structure stay, so that the call
names the same tool on the same thing. O(length).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["ArgumentCut", "cut_arguments"]

_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"(\s*+:)?', re.DOTALL)
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.")
_SHORT_VALUE_CHARS = 80
"""Paths, commands and flags: what tells what the call did."""


class ArgumentCut(NamedTuple):
    """A stretch of the arguments' text that is left out."""

    start: int
    end: int
    note: str
    """Stands in its place where it first cuts a value."""
    short_note: str
    """Stands where it cuts further values."""


def cut_arguments(text: str, cuts: Sequence[ArgumentCut]) -> str:
    """The arguments without the stretches, as far as they lie inside string values of more than 80 characters.

    Args:
        text: JSON. What is none comes back as it is.
        cuts: ascending, none over another.
    """
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    written: list[str] = []
    told: set[int] = set()
    done = 0
    for start, end in _long_values(text):
        for number, cut in enumerate(cuts):
            first, last = max(start, cut.start), min(end, cut.end)
            if first >= last:
                continue
            first, last = _off_escapes(text, start, end, first), _off_escapes(text, start, end, last)
            note = cut.short_note if number in told else cut.note
            told.add(number)
            written += (text[done:first], _inside(note, text[start:first], text[last:end]))
            done = last
    return "".join((*written, text[done:]))


def _long_values(text: str) -> Iterator[tuple[int, int]]:
    """Where the insides of long string values begin and end."""
    for found in _STRING.finditer(text):
        # An escape of six characters says one.
        if not found[2] and len(_ESCAPE.sub("x", found[1])) > _SHORT_VALUE_CHARS:
            yield found.start(1), found.end(1)


def _off_escapes(text: str, start: int, end: int, place: int) -> int:
    """``place``, or the end of the escape that it stands in the middle of."""
    # The longest escape, a pair of surrogates, has twelve characters; before it an even number of backslashes counts.
    near = place
    while near > start and (text[near - 1] == "\\" or place - near < 12):
        near -= 1
    for escape in _ESCAPE.finditer(text, near, min(end, place + 12)):
        if escape.start() < place < escape.end():
            return escape.end()
    return place


def _inside(note: str, before: str, behind: str) -> str:
    """The note as the inside of a JSON string, on lines of its own."""
    literal = json.dumps(note, ensure_ascii=False)[1:-1]
    head = "" if not before or before.endswith("\\n") else "\\n"
    return f"{head}{literal}" + ("\\n" if behind and not behind.startswith("\\n") else "")
