"""The JSON values of a session file with their places, whatever the format.

What cannot be read is left out and told in a warning: a session is written while its agent
runs, so a last line may be cut off, and one broken line must not cost the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from context_gatekeeper.errors import ConfigError, NoSessionError
from context_gatekeeper.transcripts.exact_json import load_exact
from context_gatekeeper.transcripts.file_content import FileContent, read_content

__all__ = ["KNOWN_FORMATS", "LogRecord", "clip", "read_records"]

KNOWN_FORMATS = (
    "pass a session of Claude Code (JSON Lines), a rollout of Codex, JSON Lines with 'id', 'source' and 'messages', "
    'or OpenAI or Anthropic messages (a list, {"messages": [...]} or one a line)'
)
_MOST_LEVELS = 200
"""Nesting of a value, so that what is read can also be written again: Python's JSON stops near 1,000 levels."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_CLIP_CHARS = 60


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One JSON value of a file."""

    value: Any
    line: int
    """Line that it stands on, from 1; 0 where it is part of a document of many lines."""
    number: int
    """Its place among the values, from 1."""
    is_item: bool = False
    """One of the values of a list or document, not a line's only one."""

    @property
    def place(self) -> str:
        """Where it stands, for warnings."""
        places = (f"line {self.line}" if self.line else "", f"item {self.number}" if self.is_item else "")
        return ", ".join(filter(None, places))


def clip(name: object) -> str:
    """A name out of a file, quoted and short enough for a warning."""
    return repr(name if isinstance(name, str | int | float | None) else type(name).__name__)[:_CLIP_CHARS]


def read_records(path: Path) -> tuple[list[LogRecord], list[str]]:
    """Every readable value of a file, in order, and a warning for each thing skipped or mended.

    JSON Lines, or one JSON document; of a document, or an only line, that is a list, its items.
    Bytes that are no UTF-8 become lone surrogates (U+DC80 to U+DCFF), so that nothing of them is
    lost; NaN and Infinity are taken as numbers; all others keep their digits (`exact_json`).

    Raises:
        NoSessionError: it is empty.
        ConfigError: the file cannot be opened, is damaged before its first line ends, or holds no JSON object or list.
    """

    def refuse(cause: str, next_step: str) -> ConfigError:
        return ConfigError(str(path), cause, next_step)

    content = read_content(path, refuse)
    data, warnings = _before_damage(content, refuse) if content.damage else (content.data, [])
    lines = list(_lines(data))
    if not lines:
        raise NoSessionError(str(path), "it is empty", KNOWN_FORMATS)
    is_whole = data.endswith(b"\n")
    parsed = [_parse(raw, f"line {number}") for number, raw in lines]
    if not isinstance(parsed[0].value, dict | list):
        document = _parse(data, "the document")
        if isinstance(document.value, dict | list):
            return _items(document.value, 0), [*warnings, *document.warnings]
    if not any(isinstance(one.value, dict | list) for one in parsed):
        raise refuse(f"it holds no JSON object or list ({parsed[0].trouble or 'a bare value'})", KNOWN_FORMATS)
    records = []
    for position, ((line, _), one) in enumerate(zip(lines, parsed, strict=True), 1):
        warnings += one.warnings
        if one.trouble and position == len(lines) and not is_whole:
            warnings.append(f"line {line}: it is cut off ({one.trouble}); it is skipped")
        elif one.trouble:
            warnings.append(f"line {line}: {one.trouble}; it is skipped")
        else:
            records.append(LogRecord(one.value, line, position))
    if len(records) == 1 and isinstance(records[0].value, list):
        records = _items(records[0].value, records[0].line)
    return records, warnings


def _before_damage(content: FileContent, refuse: Callable[[str, str], ConfigError]) -> tuple[bytes, list[str]]:
    """The lines before the damage of a gzip stream, and a warning that tells where it is.

    Raises:
        ConfigError: no whole line stands there.
    """
    data = content.data
    last = data[data.rfind(b"\n") + 1 :]
    line = data.count(b"\n") + 1
    if last.strip() and _parse(last, "").trouble:  # a last line that can be read is whole, but for its end
        data = data[: len(data) - len(last)]
    if not data.strip():
        cause = f"its gzip stream is damaged before its first line ends ({content.damage})"
        raise refuse(cause, "get the file again")
    return data, [f"line {line}: the gzip stream is damaged here ({content.damage}); the whole lines before are read"]


def _items(value: Any, line: int) -> list[LogRecord]:
    values = value if isinstance(value, list) else [value]
    return [LogRecord(item, line, number, is_item=True) for number, item in enumerate(values, 1)]


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their numbers. Only a newline ends one: JSON may hold U+2028 and the like."""
    start, number = 0, 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        number += 1
        raw = data[start:end]
        if raw.strip():
            yield number, raw
        start = end + 1


@dataclass(frozen=True, slots=True)
class _Parsed:
    value: Any = None
    trouble: str = ""
    """Why there is no value."""
    warnings: tuple[str, ...] = ()


def _parse(raw: bytes, place: str) -> _Parsed:
    """One JSON value of bytes."""
    warnings: list[str] = []
    constants: list[str] = []

    def take_constant(name: str) -> float:
        constants.append(name)
        return float(name)

    text, bad_bytes = _decode(raw)
    try:
        value = load_exact(text, take_constant)
    except json.JSONDecodeError as error:
        return _Parsed(trouble=f"it is no JSON ({error.msg}, column {error.colno})")
    except (ValueError, RecursionError) as error:
        return _Parsed(trouble=f"it is no usable JSON ({error})")
    depth, has_surrogate = _survey(value, bad_bytes == 0 and _SURROGATE_ESCAPE.search(text) is not None)
    if depth > _MOST_LEVELS:
        return _Parsed(trouble=f"it is nested more than {_MOST_LEVELS} levels deep")
    if bad_bytes:
        warnings.append(f"{place}: {bad_bytes} bytes are no UTF-8; they are kept as lone surrogates")
    if has_surrogate:
        warnings.append(f"{place}: it holds a lone surrogate (half a character), which is kept")
    if constants:
        warnings.append(f"{place}: {constants[0]} is no JSON; where JSON is kept as a text, null stands for it")
    return _Parsed(value, warnings=tuple(warnings))


def _decode(raw: bytes) -> tuple[str, int]:
    """Text of UTF-8, and how many bytes are none."""
    try:
        return raw.decode("utf-8"), 0
    except UnicodeDecodeError:
        text = raw.decode("utf-8", "surrogateescape")
        return text, len(_LONE_SURROGATE.findall(text))


def _survey(value: Any, wants_surrogates: bool) -> tuple[int, bool]:
    """How deep a value is nested, up to one level too many, and whether one of its texts holds a lone surrogate."""
    level, depth = [value], 0
    has_surrogate = False
    while level and depth <= _MOST_LEVELS:
        if wants_surrogates and not has_surrogate:
            has_surrogate = any(_LONE_SURROGATE.search(text) for text in _texts(level))
        level = [inner for outer in level for inner in _inner(outer)]
        depth += bool(level)
    return depth, has_surrogate


def _inner(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _texts(values: list[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from value
