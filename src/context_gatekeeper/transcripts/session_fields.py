"""Times and token counts of agent sessions, whatever the format names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_gatekeeper.transcripts.session_records import clip
from context_gatekeeper.transcripts.times import parse_time
from context_gatekeeper.types import Usage

__all__ = ["as_count", "as_name", "read_time", "read_usage"]

_APART = (
    ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"),
    ("input", "cache_read", "cache_creation", "output"),
)
"""Names where the prompt is the sum of three counts: plain, read, written; and the output."""
_INSIDE = (
    ("input_tokens", "input_tokens_details", "output_tokens"),
    ("prompt_tokens", "prompt_tokens_details", "completion_tokens"),
)
"""Names where what was read from the cache is a part of the prompt: prompt, where its parts stand, output."""
_CACHED = ("cached_input_tokens", "cached_tokens")


def as_count(value: object) -> int | None:
    """A count of tokens or characters: a whole number from 0; None where ``value`` is none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def as_name(value: object) -> str:
    """A name or id; "" where there is none. Numbers are written out."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def read_time(value: object, place: str, warnings: list[str]) -> float | None:
    """Seconds since the epoch; None, with a warning, where something stands there that is no time."""
    time = parse_time(value)
    if time is None and value not in (None, ""):
        warnings.append(f"{place}: {clip(value)} is no time; it is left out")
    return time


def read_usage(usage: object, is_final: bool, place: str, warnings: list[str]) -> Usage | None:
    """Tokens of one call as a provider or its log counts them; None where there are none.

    Args:
        usage: the object that holds the counts.
        is_final: whether the count of output is that of the whole answer. Logs that name the counts ``input`` and
            ``output`` say so themselves, in ``output_final``.
        place: for warnings.
        warnings: gets a line where ``usage`` cannot be read.
    """
    if usage is None:
        return None
    read = _usage(usage, is_final) if isinstance(usage, dict) else None
    if read is None:
        warnings.append(f"{place}: its usage holds no counts that are known; it is left out")
    return read


def _usage(usage: Mapping[str, Any], is_final: bool) -> Usage | None:
    for prompt, parts, output in _INSIDE:
        inside = usage.get(parts)
        holder = inside if isinstance(inside, dict) else usage
        cached = next((count for name in _CACHED if (count := as_count(holder.get(name))) is not None), None)
        whole = as_count(usage.get(prompt))
        if whole is not None and (cached is not None or prompt == "prompt_tokens"):
            read = min(cached or 0, whole)
            return Usage(whole - read, read, 0, as_count(usage.get(output)) if is_final else None)
    for plain, read_name, written, output in _APART:
        if as_count(usage.get(plain)) is not None:
            first, second, third = (as_count(usage.get(name)) or 0 for name in (plain, read_name, written))
            is_whole = is_final and usage.get("output_final", plain == "input_tokens") is True
            return Usage(first, second, third, as_count(usage.get(output)) if is_whole else None)
    return None
