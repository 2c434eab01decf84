"""Fenced code: where blocks begin and end, and the lines that open and close them. Linear in the text's length."""

from __future__ import annotations

import re
from typing import NamedTuple

from context_gatekeeper.core.lazy_pattern import lazy_pattern

__all__ = ["FENCE_LINE", "Fence", "closes_fence", "find_fences", "is_fence", "opens_fence"]

FENCE_LINE = lazy_pattern(r"^(?P<indent>[ \t>]*+)(?P<mark>`{3,}+|~{3,}+)(?P<info>[^\n]*+)", re.MULTILINE)
"""A line that may open or close fenced code, inside quotes and lists too."""
_MOST_INDENT = 3
"""Columns of a fence inside what holds it; more make it a line of code or text."""
_TAB = 4
_ITEM_LINE = lazy_pattern(
    r"^(?P<indent>[ \t>]*+)(?:(?P<mark>[-*+]|[0-9]{1,9}[.)])(?P<gap>[ \t]++)?+(?=[^ \t\n]|$)|(?=[^ \t>\n]))",
    re.MULTILINE,
)
"""A line that is not blank, with the mark of a list's item where it begins one."""
_LONGEST_LANGUAGE = 20
"""Characters of an info string that are repeated where a fence is opened again."""


class Fence(NamedTuple):
    """A fenced block of code as offsets into its text."""

    start: int
    """Of the opening line."""
    code_start: int
    """Past the opening line's break."""
    code_end: int
    """Of the line break before the closing line; the text's end when there is none."""
    end: int
    """Past the closing line, before its line break."""
    indent: str
    mark: str
    language: str
    is_closed: bool

    @property
    def opening(self) -> str:
        """A line that opens the block again."""
        return f"{self.indent}{self.mark}{self.language}\n"

    @property
    def closing(self) -> str:
        """A line break and the line that closes the block."""
        return f"\n{self.indent}{self.mark}"


def opens_fence(line: re.Match[str]) -> bool:
    """Whether a match of `FENCE_LINE` opens a block: one with a backtick in its info string is inline code."""
    return line["mark"][0] == "~" or "`" not in line["info"]


def closes_fence(line: re.Match[str], mark: str) -> bool:
    """Whether a match of `FENCE_LINE` closes the block that ``mark`` opened."""
    return line["mark"].startswith(mark) and not line["info"].strip()


def find_fences(text: str) -> list[Fence]:
    """The text's fenced blocks in order; one that is never closed reaches to the end."""
    if "```" not in text and "~~~" not in text:
        return []
    fences: list[Fence] = []
    items = _Items(text)
    opened: re.Match[str] | None = None
    base = 0
    for line in FENCE_LINE.finditer(text):
        column = _column(line["indent"])
        if opened is None:
            base = 0 if column <= _MOST_INDENT else items.column_at(line.start(), column)
            opened = line if opens_fence(line) and column <= base + _MOST_INDENT else None
        elif closes_fence(line, opened["mark"]) and column <= base + _MOST_INDENT:
            fences.append(_fence(opened, max(opened.end(), line.start() - 1), line.end(), is_closed=True))
            opened = None
    if opened is not None:
        fences.append(_fence(opened, len(text), len(text), is_closed=False))
    return fences


def _column(indent: str) -> int:
    """Columns of white space behind the last mark of a quote, whose own blank does not count."""
    quoted = indent.rfind(">") + 1
    return max(0, len(indent.expandtabs(_TAB)) - len(indent[:quoted].expandtabs(_TAB)) - bool(quoted))


class _Items:
    """The lists of a text, read from its beginning as far as somebody asks."""

    def __init__(self, text: str) -> None:
        self._lines = _ITEM_LINE.finditer(text)
        self._next = next(self._lines, None)
        self._columns: list[int] = []
        """Where the texts of the open items begin, the outermost first."""

    def column_at(self, place: int, column: int) -> int:
        """Where the text of the innermost item begins that a line at ``place`` belongs to; 0 outside of lists."""
        while self._next is not None and self._next.start() < place:
            self._take(self._next)
            self._next = next(self._lines, None)
        return next((one for one in reversed(self._columns) if one <= column), 0)

    def _take(self, line: re.Match[str]) -> None:
        column = _column(line["indent"])
        while self._columns and self._columns[-1] > column:
            self._columns.pop()
        inside = self._columns[-1] if self._columns else 0
        if line["mark"] is not None and column <= inside + _MOST_INDENT:
            marked = column + len(line["mark"])
            begins = len((" " * marked + (line["gap"] or " ")).expandtabs(_TAB))
            self._columns.append(begins if begins - marked <= _TAB else marked + 1)


def _fence(opened: re.Match[str], code_end: int, end: int, *, is_closed: bool) -> Fence:
    words = opened["info"].split(maxsplit=1)
    language = words[0] if words and len(words[0]) <= _LONGEST_LANGUAGE and words[0][0].isalnum() else ""
    return Fence(
        opened.start(), min(end, opened.end() + 1), code_end, end, opened["indent"], opened["mark"], language, is_closed
    )


def is_fence(unit: str) -> bool:
    """Whether a unit of ``split_sentences`` is fenced code."""
    line = FENCE_LINE.match(unit)
    return line is not None and opens_fence(line)
