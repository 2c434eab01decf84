"""Evidence units: what of a text later text may quote (the replay definitions of the goals, "Need").

A unit is an exact line of at least 30 characters or a token (identifier, path, number) of at least 8
with a digit, one of ``_ . / : -`` or an inner capital. A token also stands for every run of its
components (cut at ``/ . :``): ``/a/b/x_test.go`` holds ``x_test.go``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

__all__ = [
    "MIN_LINE_CHARS",
    "MIN_TOKEN_CHARS",
    "Evidence",
    "argument_texts",
    "evidence_tokens",
    "line_keys",
    "plain_lines",
    "read_evidence",
    "token_halves",
    "token_runs",
    "unescape_json",
]

MIN_LINE_CHARS = 30
MIN_TOKEN_CHARS = 8
_MOST_TOKEN_CHARS = 300
"""Longer ones are data (base64, minified code), not names."""
_MOST_COMPONENTS = 14
"""Of a token that is taken apart; a longer one stands for itself."""
_MOST_NESTING = 20

_TOKEN = re.compile(r"[\w./:~@\-]{8,}")
_ASCII_PART = re.compile(r"[A-Za-z0-9_./:~@\-]{8,}")
_EDGES = "./:-~@"
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9_./:~@\-]*\Z")
# An inner capital: getName, JSONDecoder; not README.
_MARKED = re.compile(r"[0-9_./:\-]|[a-z][A-Z]|[A-Z]{2}[a-z]")
_NAMED_FILE = re.compile(r"/|\.[A-Za-z0-9]{1,5}\Z")
_COMPONENT = re.compile(r"[/.:]")
# What tools put in front of a file's lines: "  12→", "12\t", "12. ", "path:12:", "12:", "12-".
_LINE_PREFIX = re.compile(r"\s*(?P<path>[^\s:→]{1,200}[:\-])?(?P<number>\d{1,7})(?P<mark>→|\t|:|\. |-)")
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\[^u]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The units of one text, each once, in the order in which they stand."""

    lines: tuple[str, ...]
    tokens: tuple[str, ...]
    """As they stand, without the runs inside them."""

    @property
    def runs(self) -> tuple[str, ...]:
        """Tokens and every run of components inside them."""
        return tuple(dict.fromkeys(run for token in self.tokens for run in token_runs(token)))


def read_evidence(text: str) -> Evidence:
    """Units of ``text``. O(len(text))."""
    lines: dict[str, None] = {}
    for line in text.split("\n"):
        if len(line) >= MIN_LINE_CHARS:
            lines.update(dict.fromkeys(line_keys(line)))
    return Evidence(tuple(lines), tuple(evidence_tokens(text)))


def line_keys(line: str) -> tuple[str, ...]:
    """How a line is compared: without the blanks around it, and also without a tool's line number.

    Empty for a line that is too short, or that is one token and counts as such.
    """
    keys = []
    whole = line.strip()
    if len(whole) >= MIN_LINE_CHARS and not _ASCII_TOKEN.match(whole):
        keys.append(whole)
    numbered = _LINE_PREFIX.match(line)
    if numbered is not None:
        rest = line[numbered.end() :].strip()
        if len(rest) >= MIN_LINE_CHARS and not _ASCII_TOKEN.match(rest):
            keys.append(rest)
    return tuple(keys)


def plain_lines(lines: Sequence[str]) -> list[str]:
    """Lines as their file has them: without blanks at the end, and without the numbers of a listing.

    A number in front of a line is a listing's where it counts up by one from the line before or to the line
    behind; sizes, counts and times stay. O(their length).
    """
    numbers = [_listing_number(line) for line in lines]
    plain = []
    for place, (path, number, end) in enumerate(numbers):
        near = numbers[max(0, place - 1) : place + 2]
        is_listed = end and any(other == path and abs(n - number) == 1 for other, n, _ in near)
        plain.append((lines[place][end:] if is_listed else lines[place]).rstrip())
    return plain


def _listing_number(line: str) -> tuple[str, int, int]:
    """(path, number, where the line itself begins); the last is 0 for a line without a number."""
    found = _LINE_PREFIX.match(line)
    if found is None or found["mark"] == ". ":
        return "", -2, 0
    return (found["path"] or "")[:-1], int(found["number"]), found.end()


def evidence_tokens(text: str) -> list[str]:
    """Tokens of ``text`` that count as evidence, each once, in the order in which they stand.

    Where there are no blanks between words, a name may stand amid letters of another script: it counts too.
    """
    found: dict[str, None] = {}
    for raw in _TOKEN.findall(text):
        found[_as_token(raw)] = None
        if not raw.isascii():
            found.update(dict.fromkeys(_as_token(part) for part in _ASCII_PART.findall(raw)))
    found.pop("", None)
    return list(found)


@lru_cache(maxsize=1 << 16)
def _as_token(raw: str) -> str:
    """The token without marks around it; "" when it is no evidence."""
    token = raw.strip(_EDGES)
    return token if _counts(token) else ""


def _counts(token: str) -> bool:
    if not MIN_TOKEN_CHARS <= len(token) <= _MOST_TOKEN_CHARS or _MARKED.search(token) is None:
        return False
    # Without blanks between words, a sentence is one run of letters: only names of files count there.
    return token.isascii() or _NAMED_FILE.search(token) is not None


@lru_cache(maxsize=1 << 16)
def token_runs(token: str) -> tuple[str, ...]:
    """The token and the runs of its components that count as evidence, each once, the whole first."""
    starts = [0] + [match.end() for match in _COMPONENT.finditer(token)]
    if len(starts) == 1 or len(starts) > _MOST_COMPONENTS:
        return (token,)
    ends = [start - 1 for start in starts[1:]] + [len(token)]
    runs = {token: None}
    for number, start in enumerate(starts):
        for end in ends[number:]:
            run = token[start:end].strip(_EDGES)
            if len(run) >= MIN_TOKEN_CHARS and _counts(run):
                runs[run] = None
    return tuple(runs)


@lru_cache(maxsize=1 << 16)
def token_halves(token: str) -> tuple[tuple[str, str], ...]:
    """Ways to compose the token of two parts (folder and name, package and identifier), for presence tests.

    Both may be units: they are long enough.
    """
    found = []
    for match in _COMPONENT.finditer(token, MIN_TOKEN_CHARS, max(0, len(token) - MIN_TOKEN_CHARS)):
        left, right = token[: match.start()].strip(_EDGES), token[match.end() :].strip(_EDGES)
        if len(left) >= MIN_TOKEN_CHARS and len(right) >= MIN_TOKEN_CHARS:
            found.append((left, right))
    return tuple(found)


def unescape_json(stretch: str) -> str:
    """A stretch of JSON text with the escapes of its strings read, for a reader; broken ones stay."""
    return _ESCAPES.sub(_read_escape, stretch)


def _read_escape(found: re.Match[str]) -> str:
    try:
        return str(json.loads(f'"{found.group()}"'))
    except ValueError:
        return found.group()


def argument_texts(arguments: str) -> list[str]:
    """The texts in a call's arguments, keys left out: what a model wrote. Broken JSON counts as one text."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return [arguments] if arguments else []
    found: list[str] = []
    _collect_texts(value, found, _MOST_NESTING)
    return found


def _collect_texts(value: object, found: list[str], depth: int) -> None:
    if isinstance(value, str):
        found.append(value)
    elif depth and isinstance(value, dict):
        for item in value.values():
            _collect_texts(item, found, depth - 1)
    elif depth and isinstance(value, list):
        for item in value:
            _collect_texts(item, found, depth - 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found.append(str(value))
