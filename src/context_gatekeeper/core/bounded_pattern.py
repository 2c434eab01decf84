"""Regular expressions from outside that cannot hang: the steps of a search are bounded before it begins.

Python's engine tries every way in which the repeats and choices of a pattern can share out a line, so their number
bounds its work, times the characters that one of these ways compares. A pattern is read first: a repeat of what itself
repeats or chooses, a look-around or a back-reference is refused, and the rest is multiplied out. Lines without a
word that every match must hold are never searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import comb

from context_gatekeeper.errors import ConfigError

__all__ = ["MOST_LINE_CHARS", "MOST_PATTERN_CHARS", "BoundedPattern", "compile_bounded"]

MOST_PATTERN_CHARS = 200
MOST_LINE_CHARS = 10_000
"""Of a longer line only the beginning is searched."""
_MOST_STEPS = 40_000_000
"""About a second of the engine's work at the very worst; ordinary patterns need a thousandth."""
_SMALL_REPEAT = 8
"""Up to this many times a repeat is a choice of a few; beyond, it may share out the whole line."""


@dataclass(frozen=True, slots=True)
class BoundedPattern:
    """A pattern with what is known of its work."""

    compiled: re.Pattern[str]
    needed: tuple[str, ...]
    """Texts that every match holds."""
    choices: int
    """Ways to take its optional parts and alternatives."""
    repeats: int
    """Repeats that may reach over a whole line."""
    length: int
    """Characters that one way compares, repeats of a fixed number counted out; a plain beginning is one."""
    is_anchored: bool
    """Begins where the line does."""
    ignore_case: bool

    def steps(self, line_chars: int) -> int:
        """The most steps that a search of one line can take, as to their order of magnitude."""
        places = min(line_chars, MOST_LINE_CHARS)
        ways = self.choices * (comb(places + self.repeats, self.repeats + (not self.is_anchored)) + 1)
        return ways * min(self.length, places + 1)

    def may_match(self, line: str) -> bool:
        """False when a line lacks what every match holds."""
        if not self.ignore_case:
            return all(text in line for text in self.needed)
        lowered = line.lower()
        return not line.isascii() or all(text in lowered for text in self.needed)

    def is_too_long(self, line_lengths: Iterable[int]) -> bool:
        """Whether searching such lines could take more than about a second."""
        return sum(map(self.steps, line_lengths)) > _MOST_STEPS


def compile_bounded(pattern: str, *, ignore_case: bool = False) -> BoundedPattern:
    """Read and compile a pattern.

    Raises:
        ConfigError: it is empty, over 200 characters, no regular expression, or of a kind that is refused.
    """
    if not pattern or len(pattern) > MOST_PATTERN_CHARS:
        raise _refused(pattern, f"it has {len(pattern)} characters", f"give it 1 to {MOST_PATTERN_CHARS}")
    reader = _Reader(pattern)
    reader.read_choice()
    try:
        compiled = re.compile(pattern, re.IGNORECASE if ignore_case else re.NOFLAG)
    except (re.error, OverflowError, RecursionError) as error:
        raise _refused(
            pattern, f"it is no regular expression ({error})", "mend it, or search for plain text"
        ) from error
    needed = tuple(run.lower() if ignore_case else run for run in reader.runs)
    is_anchored = pattern.startswith(("^", "\\A")) and not reader.chooses_at_top
    # The engine looks for a plain beginning in one pass over the line.
    is_plain = not (ignore_case or reader.chooses_at_top)
    length = reader.length - (max(len(_PLAIN_START.match(pattern)[0]) - 1, 0) if is_plain else 0)  # type: ignore[index]
    return BoundedPattern(compiled, needed, reader.choices, reader.repeats, max(length, 1), is_anchored, ignore_case)


def _refused(pattern: str, cause: str, next_step: str) -> ConfigError:
    shown = pattern if len(pattern) <= 60 else pattern[:60] + "..."
    return ConfigError(f"pattern {shown!r}", cause, next_step)


_QUANTIFIER = re.compile(r"[*+?]|\{(?=[\d,])(?P<least>\d*)(?P<range>,(?P<most>\d*))?\}")
_CLASS = re.compile(r"\[\^?\]?(?P<inside>(?:[^\]\\]|\\.)*+)\]", re.DOTALL)
_SET_OPERATION = re.compile(r"(?<!\\)\[|--|&&|~~|\|\|")
_ESCAPE = re.compile(
    r"\\(?:(?:x(?P<byte>[\da-fA-F]{2})|u(?P<unit>[\da-fA-F]{4}))"
    r"|U[\da-fA-F]{8}|N\{[^}]*+\}|0[0-7]{0,2}|[1-3][0-7]{2}|(?P<back>\d)|(?P<other>.))",
    re.DOTALL,
)
_PLAIN_START = re.compile(r"(?:[^\\.^$*+?{}\[\]|()](?![*+?{]))*+")
_GROUP = re.compile(r"\((?:\?:|\?P<\w+>|(?!\?))")


class _Reader:
    """Reads a pattern once from left to right; whatever is no pattern at all is left to `re`."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.choices = 1
        self.repeats = 0
        self.length = 0
        """Characters compared on the longest way, an open repeat taken once."""
        self.runs: list[str] = []
        """Texts that every match holds."""
        self.chooses_at_top = False
        self._run = ""

    def read_choice(self) -> bool:
        """Read alternatives up to a closing bracket; whether there was a choice or a repeat in them."""
        branches = 1
        is_varied = False
        marked = len(self.runs)
        while self.at < len(self.pattern) and self.pattern[self.at] != ")":
            if self.pattern[self.at] == "|":
                branches += 1
                self.at += 1
                self._end_run()
            else:
                is_varied = self._read_piece() or is_varied
        self._end_run()
        self.chooses_at_top = branches > 1
        if branches > 1:
            del self.runs[marked:]
            self.choices *= branches
        return is_varied or branches > 1

    def _end_run(self) -> None:
        if self._run:
            self.runs.append(self._run)
        self._run = ""

    def _read_piece(self) -> bool:
        """One character, class or group with its repeat; whether it varies."""
        literal, is_varied = "", False
        char = self.pattern[self.at]
        marked, before = len(self.runs) + bool(self._run), self.length
        self.length += char != "("
        if char == "(":
            is_varied = self._read_group()
        elif char == "[":
            self._read_class()
        elif char == "\\":
            literal = self._read_escape()
        else:
            literal = "" if char in ".^$" else char
            self.at += 1
        quantifier = _QUANTIFIER.match(self.pattern, self.at)
        if quantifier is not None:
            self._end_run()
            self._repeat(quantifier, is_varied=is_varied, marked=marked, before=before)
            return True
        if literal:
            self._run += literal
        elif char not in "^$":
            self._end_run()
        return is_varied

    def _read_class(self) -> None:
        found = _CLASS.match(self.pattern, self.at)
        if found is not None and _SET_OPERATION.search(found["inside"]):
            raise _refused(self.pattern, "it has a set inside a set", "put a backslash before [ - & ~ | inside [ ]")
        self.at = found.end() if found is not None else len(self.pattern)

    def _read_group(self) -> bool:
        self._end_run()
        opening = _GROUP.match(self.pattern, self.at)
        if opening is None:
            raise _refused(self.pattern, "it looks around, or sets flags, inside a group", "use plain and (?: ) groups")
        self.at = opening.end()
        is_varied = self.read_choice()
        self.at += 1
        return is_varied

    def _read_escape(self) -> str:
        """The character that an escape stands for; "" for a class of characters."""
        escape = _ESCAPE.match(self.pattern, self.at)
        if escape is None:  # a backslash at the end, which is no pattern
            self.at = len(self.pattern)
            return ""
        if escape["back"] is not None:
            raise _refused(self.pattern, "it refers back to a group", "write out what may stand there")
        self.at = escape.end()
        code = escape["byte"] or escape["unit"]
        if code is not None:
            return chr(int(code, 16))
        other = escape["other"] or ""
        return "" if other.isalnum() else other

    def _repeat(self, quantifier: re.Match[str], *, is_varied: bool, marked: int, before: int) -> None:
        self.at = quantifier.end()
        if self.pattern[self.at : self.at + 1] in ("?", "+"):
            self.at += 1
        least, most = _bounds(quantifier)
        if least == 0:
            del self.runs[marked:]
        if is_varied and most != 1:
            raise _refused(
                self.pattern, "it repeats a group that itself repeats or chooses", "take the repeat out of the group"
            )
        is_open = most is None or most - least > _SMALL_REPEAT
        self.length = before + (self.length - before) * max(least if is_open or most is None else most, 1)
        if most is None or is_open:
            self.repeats += 1
        else:
            self.choices *= max(1, most - least + 1)


def _bounds(quantifier: re.Match[str]) -> tuple[int, int | None]:
    """The least and the most times; None is without end."""
    mark = quantifier.group()
    if mark[0] != "{":
        return int(mark == "+"), 1 if mark == "?" else None
    least = int(quantifier["least"] or 0)
    if quantifier["range"] is None:
        return least, least
    return least, int(quantifier["most"]) if quantifier["most"] else None
