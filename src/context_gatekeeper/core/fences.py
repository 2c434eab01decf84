"""Fenced code: where blocks begin and end, and the lines that open and close them. Linear in the text's length."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["FENCE_LINE", "Fence", "closes_fence", "find_fences", "is_fence", "opens_fence"]

FENCE_LINE = re.compile(r"^(?P<indent>[ \t>]*+)(?P<mark>`{3,}+|~{3,}+)(?P<info>[^\n]*+)", re.MULTILINE)
"""A line that may open or close fenced code, inside quotes and lists too."""
_LONGEST_LANGUAGE = 20
"""Characters of an info string that are repeated where a fence is opened again."""


@dataclass(frozen=True, slots=True)
class Fence:
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
    opened: re.Match[str] | None = None
    for line in FENCE_LINE.finditer(text):
        if opened is None:
            opened = line if opens_fence(line) else None
        elif closes_fence(line, opened["mark"]):
            fences.append(_fence(opened, max(opened.end(), line.start() - 1), line.end(), is_closed=True))
            opened = None
    if opened is not None:
        fences.append(_fence(opened, len(text), len(text), is_closed=False))
    return fences


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
