"""Lines of a file as the result of a read shows them, with their numbers; and results that list a folder instead.

Tools print a file with line numbers (``12→``, ``12.``, ``12:``, a tab) or as it is. Behind its lines may stand
what the tool says itself; that is left out where it can be told. Source: the scheduling design, section 1.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence

__all__ = ["differs", "is_listing", "shown_lines"]

_NUMBERED = re.compile(r"[ ]{0,9}([0-9]{1,7})(?:(→|\t)|:|[.|] ?)")
_FOOTER_START = ("...", "[", "(", "<")
_FOOTER_LINES = 3
"""Of a file without numbers: what in its last lines begins like a tool's own words is left out."""
_COMMAND_HEAD = re.compile(
    r"(?:Exit code|Chunk ID|Process exited|Wall time)[^\n]{0,200}\n(?:[^\n]{0,200}\n){0,8}?Output:\n"
)
_WRAPPED = re.compile(r'\s{0,9}\{\s{0,9}"(?:output|stdout|metadata)"')
_LISTING_HEAD = re.compile(r"here(?:'|\u2019)?s? ?(?:are|is|re)? the files and directories", re.IGNORECASE)
_ENTRY = re.compile(r"(?:[0-9.]{1,8}[BKMGT]?[ \t]{1,8})?[^\s:;,|<>*?\"'`=(){}\[\]]{1,255}")
_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}\Z|/\Z")

Lines = Mapping[int, int]
"""Number of a line, from 1 -> hash of its text, good for this process alone."""


def shown_lines(text: str, starts: Sequence[int] = (1,)) -> tuple[Lines, ...]:
    """The lines of a file in a result, once for each way to read it; nothing when their numbers are not known. O(text).

    Args:
        text: of the result.
        starts: numbers that the first line may have, where the lines have none of their own.
    """
    if _WRAPPED.match(text):
        return ()
    head = _COMMAND_HEAD.match(text)
    lines = [line.rstrip("\r") for line in text[head.end() if head else 0 :].split("\n")]
    numbered = _numbered(lines[1:] if lines[0].startswith("[") else lines)
    if numbered:
        return (numbered,)
    shown = _without_footer(lines)
    return tuple({start + place: hash(line) for place, line in enumerate(shown)} for start in starts)


def _without_footer(lines: list[str]) -> list[str]:
    tail = max(0, len(lines) - _FOOTER_LINES)
    end = next((place for place in range(tail, len(lines)) if lines[place].startswith(_FOOTER_START)), len(lines))
    while end and not lines[end - 1]:
        end -= 1
    return lines[:end]


def _numbered(lines: Sequence[str]) -> dict[int, int]:
    """The lines in front that have numbers of their own, each one more than the last; none where that is a chance."""
    shown: dict[int, int] = {}
    is_sure = False
    for line in lines:
        found = _NUMBERED.match(line)
        if found is None or (shown and int(found[1]) - 1 not in shown):
            break
        is_sure = is_sure or found[2] is not None or bool(shown)
        shown[int(found[1])] = hash(line[found.end() :])
    return shown if is_sure else {}


def differs(known: Lines, readings: Sequence[Lines]) -> bool:
    """Whether a line that was known has another text now, however the new result is read. O(lines)."""
    return bool(readings) and all(
        any(known.get(number, line) != line for number, line in reading.items()) for reading in readings
    )


def is_listing(path: str, text: str) -> bool:
    """Whether a viewer's result lists the folder ``path`` rather than showing a file. O(text).

    It says so; or every line is a name, in order, and the path is no file's by its name. A single name must look
    like a file or a folder.
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines:
        return False
    if _LISTING_HEAD.match(lines[0]):
        return True
    if _SUFFIX.search(posixpath.basename(path).lstrip(".")) or not all(map(_ENTRY.fullmatch, lines)):
        return False
    if len(lines) == 1:
        return _SUFFIX.search(lines[0]) is not None
    return lines == sorted(lines) or [line.lower() for line in lines] == sorted(line.lower() for line in lines)
