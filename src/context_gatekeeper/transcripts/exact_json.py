"""JSON of logs, read so that it can be written again: numbers digit by digit, repeated keys each as often as it stands.

A tool's arguments are kept as a text. Read as Python's numbers, 1e999 would come out as Infinity, which is no JSON, and
12345678901234567890.5 as another number; read as a dict, of two equal keys the first would be lost.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["json_text", "load_exact"]


class _ExactFloat(float):
    """A number that Python writes differently than the log."""

    text: str


class _ExactInt(int):
    """The same of a whole number: minus zero."""

    text: str


class _RepeatedKeys(dict[str, Any]):
    """An object in which a key stands several times; as a dict it has the last value of each."""

    pairs: list[tuple[str, Any]]


def load_exact(text: str, parse_constant: Callable[[str], Any]) -> Any:
    """The value of a JSON text; control characters may stand in its strings.

    Args:
        text: JSON.
        parse_constant: makes a value of ``NaN``, ``Infinity`` or ``-Infinity``, which are no JSON.

    Raises:
        ValueError: it is no JSON, or a whole number is too long. RecursionError: it is nested too deep.
    """
    return json.loads(
        text,
        strict=False,
        parse_constant=parse_constant,
        parse_float=_read_float,
        parse_int=_read_int,
        object_pairs_hook=_read_object,
    )


def json_text(value: object) -> str:
    """``value`` as JSON on one line, without spaces, in its own characters; what is no number in JSON is null."""
    return "".join(_written(value)) if _is_special(value) else _dumped(value)


def _read_float(text: str) -> float:
    value = float(text)
    if repr(value) == text:
        return value
    exact = _ExactFloat(value)
    exact.text = text
    return exact


def _read_int(text: str) -> int:
    if text != "-0":
        return int(text)
    exact = _ExactInt(0)
    exact.text = text
    return exact


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    repeated = _RepeatedKeys(value)
    repeated.pairs = pairs
    return repeated


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _is_special(value: object) -> bool:
    """Whether something in it is not written as Python's JSON writes it."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, _ExactFloat | _ExactInt | _RepeatedKeys) or _is_no_number(one):
            return True
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list | tuple):
            waiting.extend(one)
    return False


def _is_no_number(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _written(value: object) -> Iterator[str]:
    if isinstance(value, _ExactFloat | _ExactInt):
        yield value.text
    elif _is_no_number(value):
        yield "null"
    elif isinstance(value, dict):
        pairs = value.pairs if isinstance(value, _RepeatedKeys) else value.items()
        start = "{"
        for key, one in pairs:
            yield f"{start}{_dumped(key)}:"
            yield from _written(one)
            start = ","
        yield "{}" if start == "{" else "}"
    elif isinstance(value, list | tuple):
        start = "["
        for one in value:
            yield start
            yield from _written(one)
            start = ","
        yield "[]" if start == "[" else "]"
    else:
        yield _dumped(value)
