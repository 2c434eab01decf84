"""What a text is of which no part may stand for the whole: JSON, JSON lines, binary data.

A prefix of JSON looks whole, or makes its reader fail; so such a text is only described: what it is, how many items
it has, and what error it tells of. Source: section 2 of the scheduling design.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from context_gatekeeper.core.cuts import cut_text
from context_gatekeeper.core.fences import find_fences
from context_gatekeeper.core.lazy_pattern import lazy_pattern
from context_gatekeeper.core.secret_rules import find_secrets

__all__ = ["Shape", "describe_shape"]


class Shape(NamedTuple):
    """What a text is."""

    kind: str
    """``JSON object``, ``JSON array``, ``JSON lines``, ``JSON values``, ``broken JSON``, ``binary``."""
    told: str
    """Its size, to stand behind the kind."""
    start: int
    """Of what must not be shown in part; a few lines may stand before it, as tools print them."""
    end: int
    error: str = ""
    """The error that it tells of, to stand behind the rest; "" for none."""


_JSON_START = lazy_pattern(
    r"(?:\{\s*(?:\"(?:[^\"\\\n]|\\.)*+\"\s*:|\})"
    r"|\[\s*(?:[\[{\"\]]|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\s*,|(?:true|false|null)\s*[,\]]))"
)
_BRACKET_LINE = lazy_pattern(r"^[{\[]", re.MULTILINE)
_BLANKS = lazy_pattern(r"\s+")
_ODD = lazy_pattern(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\ufffd]")
_PROBED_CHARS = 4096
_BINARY_SHARE = 0.05
_JSON_LINE_SHARE = 0.9
_AROUND_CHARS = 400
"""So much other text may stand before JSON, and behind it, as tools print it."""
_LISTED_KEYS = 8
_KEY_CHARS = 40
_LONG_CHARS = 100
_ERROR_KEY = lazy_pattern(r"error|errors|message|detail|stderr|reason", re.IGNORECASE)
_ERROR_VALUE_CHARS = 200


def describe_shape(text: str) -> Shape | None:
    """What ``text`` is when no part of it may stand for the whole; None for plain lines. O(len(text))."""
    probe = text[:_PROBED_CHARS]
    if "\x00" in probe or len(_ODD.findall(probe)) > _BINARY_SHARE * len(probe):
        return Shape("binary", "", 0, len(text))
    first = len(text) - len(text.lstrip())
    if _JSON_START.match(text, first) is not None:
        return _json_within(text, first) or _json_lines(text)
    starts = (found.start() for found in _BRACKET_LINE.finditer(text, 0, _AROUND_CHARS))
    start = next((start for start in starts if _JSON_START.match(text, start) is not None), None)
    return None if start is None else _json_within(text, start)


def _json_within(text: str, start: int) -> Shape | None:
    """JSON from ``start`` on, up to a few lines of other text at the end; None when it is none."""
    try:
        parsed, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    behind = text[end:].rstrip()
    if len(behind) > _AROUND_CHARS or (behind and (behind[0] not in "\r\n" or behind.lstrip()[0] in "{[")):
        return None
    if not all(fence.is_closed for fence in find_fences(f"{text[:start]}x{behind}")):
        return None
    end = end if behind else len(text)
    if isinstance(parsed, dict):
        return Shape("JSON object", _told_keys(parsed), start, end, _told_error(parsed))
    return Shape("JSON array", f" of {_counted(len(parsed), 'item')}", start, end)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _told_keys(parsed: dict[str, Any]) -> str:
    told = []
    for key, member in list(parsed.items())[:_LISTED_KEYS]:
        shown = json.dumps(key if len(key) <= _KEY_CHARS else key[:_KEY_CHARS] + "...", ensure_ascii=False)
        if isinstance(member, list | dict):
            shown += f" ({_counted(len(member), 'item' if isinstance(member, list) else 'key')})"
        elif isinstance(member, str) and len(member) > _LONG_CHARS:
            shown += f" ({len(member)} characters)"
        told.append(shown)
    more = len(parsed) - len(told)
    listed = f": {', '.join(told)}{f' and {more} more' if more else ''}" if told else ""
    return f" with {_counted(len(parsed), 'key')}{listed}"


def _told_error(parsed: dict[str, Any]) -> str:
    for key, member in parsed.items():
        told = json.dumps(member, ensure_ascii=False) if _ERROR_KEY.fullmatch(key) and member else ""
        if told and not find_secrets(told):
            return (
                f"; error: {told if len(told) <= _ERROR_VALUE_CHARS else cut_text(told, _ERROR_VALUE_CHARS) + ' ...'}"
            )
    return ""


def _json_lines(text: str) -> Shape:
    """Several JSON values behind one another, one a line as a rule; else what only begins like JSON."""
    lines = [line for line in text.split("\n") if line.strip()]
    count = _count_values(text)
    if count:
        return Shape("JSON lines" if count == len(lines) else "JSON values", f", {count} items", 0, len(text))
    opening = sum(line.lstrip().startswith(("{", "[")) for line in lines)
    if len(lines) > 1 and opening >= _JSON_LINE_SHARE * len(lines) and _count_values(lines[0]):
        return Shape("JSON lines", f", {len(lines)} items, some of which do not parse", 0, len(text))
    return Shape("broken JSON", ", which does not parse", 0, len(text))


def _count_values(text: str) -> int:
    """How many JSON values stand in ``text`` and nothing else; 0 when there is anything else."""
    decoder = json.JSONDecoder()
    count, place = 0, len(text) - len(text.lstrip())
    while place < len(text):
        try:
            _, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return 0
        count += 1
        blank = _BLANKS.match(text, place)
        place = place if blank is None else blank.end()
    return count
