"""Evidence units: what of a text later text may quote (the replay definitions of the goals, "Need").

A unit is an exact line of at least 30 characters or a token (identifier, path, number) of at least 8
with a digit, one of ``_ . / : -`` or an inner capital. A token also stands for every run of its
components (cut at ``/ . :``): ``/a/b/x_test.go`` holds ``x_test.go``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache

__all__ = [
    "MIN_LINE_CHARS",
    "MIN_TOKEN_CHARS",
    "Evidence",
    "argument_texts",
    "bare_line",
    "evidence_tokens",
    "line_keys",
    "read_evidence",
    "token_halves",
    "token_runs",
]

MIN_LINE_CHARS = 30
MIN_TOKEN_CHARS = 8
_MOST_TOKEN_CHARS = 300
"""Longer ones are data (base64, minified code), not names."""
_MOST_COMPONENTS = 14
"""Of a token that is taken apart; a longer one stands for itself."""
_MOST_NESTING = 20

_TOKEN = re.compile(r"[\w./:~@\-]{8,}")
_EDGES = "./:-~@"
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9_./:~@\-]*\Z")
_MARKED = re.compile(r"[0-9_./:\-]|[a-z][A-Z]")
_NAMED_FILE = re.compile(r"/|\.[A-Za-z0-9]{1,5}\Z")
_COMPONENT = re.compile(r"[/.:]")
# What tools put in front of a file's lines: "  12→", "12\t", "12. ", "path:12:", "12:", "12-".
_LINE_PREFIX = re.compile(r"\s*(?:[^\s:]{1,200}[:\-])?\d{1,7}(?:→|\t|: ?|\. |- ?)")


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


def bare_line(line: str) -> str:
    """The line without blanks around it and without a tool's line number."""
    numbered = _LINE_PREFIX.match(line)
    return (line[numbered.end() :] if numbered is not None else line).strip()


def evidence_tokens(text: str) -> list[str]:
    """Tokens of ``text`` that count as evidence, each once, in the order in which they stand."""
    return list(dict.fromkeys(token for raw in _TOKEN.findall(text) if (token := _as_token(raw))))


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


@lru_cache(maxsize=1 << 14)
def token_halves(token: str) -> tuple[tuple[str, str], ...]:
    """Ways to compose the token of two parts (folder and name, package and identifier), for presence tests."""
    return tuple(
        (left, right)
        for match in _COMPONENT.finditer(token)
        if (left := token[: match.start()].strip(_EDGES)) and (right := token[match.end() :].strip(_EDGES))
    )


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
