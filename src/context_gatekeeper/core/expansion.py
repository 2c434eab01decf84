"""Parts of an original text, exactly as it stands: by characters, by lines, by a pattern.

What a handle expands to is cut out here and nowhere changed: the parts of a whole, joined, are the whole.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from context_gatekeeper.core.bounded_pattern import MOST_LINE_CHARS, compile_bounded
from context_gatekeeper.errors import ConfigError

__all__ = ["TextSlice", "expand_lines", "expand_pattern", "expand_range"]


@dataclass(frozen=True, slots=True)
class TextSlice:
    """Neighbouring lines of a text."""

    first_line: int
    """From 1."""
    last_line: int
    text: str
    """The lines with their breaks, a slice of the original."""


def expand_range(text: str, start: int, end: int | None = None) -> str:
    """The characters ``start`` (from 0) up to but not including ``end``; to the end of the text without one.

    Raises:
        ConfigError: ``start`` is below 0 or past the text, or ``end`` is before it.
    """
    if not 0 <= start <= len(text):
        raise ConfigError(f"start {start}", f"the text has {len(text)} characters", f"give 0 to {len(text)}")
    if end is not None and end < start:
        raise ConfigError(f"end {end}", f"it is before start {start}", "give an end that is not before the start")
    return text[start:end]


def expand_lines(text: str, first: int, last: int | None = None) -> str:
    r"""The lines ``first`` to ``last``, from 1, both included, with their breaks; to the end without ``last``.

    Lines end at ``\n``; a break at the very end begins no line. ``last`` may be past the end.

    Raises:
        ConfigError: ``first`` is below 1 or past the text, or ``last`` is before it.
    """
    starts = _line_starts(text)
    if not 1 <= first <= len(starts):
        raise ConfigError(f"line {first}", f"the text has {len(starts)} lines", f"give 1 to {len(starts)}")
    if last is not None and last < first:
        raise ConfigError(f"last line {last}", f"it is before line {first}", "give a last line that is not before it")
    return text[starts[first - 1] : _end(text, starts, len(starts) if last is None else last)]


def expand_pattern(
    text: str,
    pattern: str,
    *,
    regex: bool = False,
    ignore_case: bool = False,
    context_lines: int = 2,
    most_matches: int = 50,
) -> tuple[TextSlice, ...]:
    """The lines around each place where ``pattern`` occurs; slices that meet are one.

    Args:
        text: the original.
        pattern: a text, which may reach over lines; a regular expression of one line with ``regex``.
        regex: search each line for a regular expression.
        ignore_case: small letters are capital ones.
        context_lines: lines shown before and behind, >= 0.
        most_matches: places that are shown, the first ones, >= 1.

    Raises:
        ConfigError: the pattern is empty or over 200 characters with ``regex``, no regular expression, or could take
            too long in this text; a number is out of range.
    """
    if not pattern:
        raise ConfigError("pattern", "it is empty", "say what to look for")
    if context_lines < 0 or most_matches < 1:
        raise ConfigError(
            "context_lines or most_matches", f"{context_lines} and {most_matches} are too small", "give >= 0 and >= 1"
        )
    starts = _line_starts(text)
    places = _regex_lines if regex else _literal_lines
    shown: list[list[int]] = []
    for count, (first, last) in enumerate(places(text, starts, pattern, ignore_case=ignore_case)):
        if count == most_matches:
            break
        begin, end = max(0, first - context_lines), min(len(starts) - 1, last + context_lines)
        if shown and begin <= shown[-1][1] + 1:
            shown[-1][1] = max(shown[-1][1], end)
        else:
            shown.append([begin, end])
    return tuple(
        TextSlice(begin + 1, end + 1, text[starts[begin] : _end(text, starts, end + 1)]) for begin, end in shown
    )


def _line_starts(text: str) -> list[int]:
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    if len(starts) > 1 and starts[-1] == len(text):
        starts.pop()
    return starts


def _end(text: str, starts: Sequence[int], count: int) -> int:
    """Where the first ``count`` lines end, their breaks included."""
    return starts[count] if count < len(starts) else len(text)


def _literal_lines(text: str, starts: Sequence[int], pattern: str, *, ignore_case: bool) -> Iterator[tuple[int, int]]:
    """(first, last) line, from 0, of each place of a plain text."""
    wanted = re.compile(re.escape(pattern), re.IGNORECASE if ignore_case else re.NOFLAG)
    for found in wanted.finditer(text):
        first = bisect_right(starts, found.start()) - 1
        yield first, max(first, bisect_right(starts, found.end() - 1) - 1)


def _regex_lines(text: str, starts: Sequence[int], pattern: str, *, ignore_case: bool) -> Iterator[tuple[int, int]]:
    """(n, n) for each line, from 0, that a regular expression matches."""
    wanted = compile_bounded(pattern, ignore_case=ignore_case)
    lines = [
        (number, line)
        for number, start in enumerate(starts)
        if wanted.may_match(line := text[start : min(_end(text, starts, number + 1), start + MOST_LINE_CHARS)])
    ]
    if wanted.is_too_long(len(line) for _, line in lines):
        raise ConfigError(
            f"pattern {pattern!r}",
            "it could take too long in lines this many and this long",
            "put a longer plain word into it, use fewer and shorter repeats, or search for plain text",
        )
    for number, line in lines:
        if wanted.compiled.search(line.removesuffix("\n").removesuffix("\r")):
            yield number, number
