"""An answer that is still coming in, and how its JSON is read, whatever stands in it."""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from context_gatekeeper.types import BlockKind, ContentBlock, Usage

__all__ = [
    "AnswerDraft",
    "as_count",
    "as_index",
    "as_object",
    "as_objects",
    "as_text",
    "error_text",
    "first_count",
    "inside_usage",
    "joined",
    "json_text",
    "loaded_object",
    "other_block",
    "type_names",
]

_MOST_TOKENS = 10**9
"""Larger counts are mistakes of the provider."""
_MOST_ERROR_CHARS = 500
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class AnswerDraft(ABC):
    """An answer that is still coming in."""

    is_complete: bool = False
    stop_reason: str = ""
    response_id: str = ""
    model: str = ""
    error: str = ""
    applied_edits: tuple[str, ...] = ()
    input_transformations: tuple[str, ...] = ()
    written_1h_tokens: int = 0
    broken_events: int = 0

    @abstractmethod
    def take_body(self, body: Mapping[str, Any]) -> None:
        """Take a whole answer."""

    @abstractmethod
    def take_event(self, kind: str, event: Mapping[str, Any]) -> None:
        """Take one event of a stream."""

    @abstractmethod
    def blocks(self) -> Iterable[ContentBlock]:
        """What the model said so far."""

    @abstractmethod
    def usage(self) -> Usage | None:
        """What was counted so far."""

    def name(self, holder: Mapping[str, Any]) -> None:
        """Take id and model."""
        self.response_id = as_text(holder.get("id")) or self.response_id
        self.model = as_text(holder.get("model")) or self.model


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


_decode = json.JSONDecoder(strict=False, parse_constant=lambda _: None, parse_float=_finite).decode


def loaded_object(text: str) -> dict[str, Any] | None:
    """The JSON object in ``text``; None where there is none. What is no number in JSON becomes null."""
    try:
        value = _decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def json_text(value: object) -> str:
    """``value`` on one line, without spaces, in its own characters; "" where it is nested too deep."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:  # it was read a few levels less deep inside the program
        return ""


def as_text(value: object) -> str:
    """``value`` where it is a text, else ""."""
    return value if isinstance(value, str) else ""


def as_object(value: object) -> Mapping[str, Any]:
    """``value`` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_objects(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list; none where ``value`` is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def as_count(value: object) -> int | None:
    """A count of tokens; None where ``value`` is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _MOST_TOKENS else None


def as_index(value: object) -> int | None:
    """``value`` where it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def first_count(*values: object) -> int:
    """The first value that is a count; 0 where none is."""
    return next((count for value in values if (count := as_count(value)) is not None), 0)


def joined(pieces: Iterable[str]) -> str:
    """The pieces as one text; of a character that JSON escapes cut into two pieces its halves come together."""
    text = "".join(pieces)
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def error_text(error: object) -> str:
    """An error as providers tell it: a text, or an object with a message and a type or code."""
    told = as_object(error)
    kind = as_text(told.get("type")) or as_text(told.get("code"))
    message = as_text(error) or as_text(told.get("message")) or ("" if kind or not error else json_text(error))
    line = " ".join(f"{kind}: {message}".split() if kind and message else (kind or message).split())
    return line[:_MOST_ERROR_CHARS]


def type_names(value: object) -> tuple[str, ...]:
    """Types of the objects of a list, in order."""
    return tuple(name for one in as_objects(value) if (name := as_text(one.get("type"))))


def other_block(value: Mapping[str, Any], name: str) -> ContentBlock:
    """A block of a type that we do not know."""
    return ContentBlock(BlockKind.OTHER, json_text(value), name=name)


def inside_usage(usage: Mapping[str, Any]) -> Usage | None:
    """Counts where what was read from the cache is a part of the prompt (OpenAI's APIs); None where there are none."""
    details = as_object(usage.get("prompt_tokens_details")) or as_object(usage.get("input_tokens_details"))
    hit, miss = usage.get("prompt_cache_hit_tokens"), usage.get("prompt_cache_miss_tokens")
    told = (as_count(usage.get("prompt_tokens")), as_count(usage.get("input_tokens")))
    prompt = max((count for count in told if count is not None), default=None)
    if prompt is None and (as_count(hit) is None or as_count(miss) is None):
        return None
    whole = prompt if prompt is not None else first_count(hit) + first_count(miss)
    read = first_count(
        details.get("cached_tokens"), hit, usage.get("cached_tokens"), usage.get("cache_read_input_tokens")
    )
    written = first_count(details.get("cache_write_tokens"), usage.get("cache_creation_input_tokens"))
    read = min(read, whole)
    written = min(written, whole - read)
    output = first_count(usage.get("completion_tokens"), usage.get("output_tokens"))
    # Gemini's route and others count thinking in the total alone.
    output = max(output, first_count(usage.get("total_tokens")) - whole)
    return Usage(whole - read - written, read, written, output)
