"""What a model's name tells about its provider's rules.

Names come with a provider in front, with dots or dashes in the version, with a date or a release behind it:
``claude-opus-5-5``, ``anthropic/claude-opus-5.5``, ``us.anthropic.claude-opus-4-1-20250805-v1:0``,
``claude-haiku-4-5@20251001``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["binds_whole_prefix", "claude_version", "is_about_thinking", "min_cached_tokens"]

_NAMED = re.compile(r"(fable|mythos|opus|sonnet|haiku)-(\d{1,2})(?:[.-](\d{1,2}))?(?!\d)")
_NAMED_LATE = re.compile(r"claude-(\d{1,2})(?:[.-](\d{1,2}))?-(opus|sonnet|haiku)")
"""Older names: ``claude-3-5-sonnet-20241022``."""
_BOUND_SINCE: Mapping[str, tuple[int, int]] = {
    "fable": (5, 1),
    "mythos": (5, 1),
    "opus": (5, 5),
    "sonnet": (5, 5),
    "haiku": (5, 5),
}
"""First versions whose thinking is signed together with all before it. Newer ones than those known count too: a
history that is not rewritten costs some tokens, a refused request the user's work."""
_ABOUT_THINKING = re.compile(r"signature|thinking", re.IGNORECASE)
_DEFAULT_MINIMUM = 1024
_MINIMUMS: Mapping[tuple[str, int, int | None], int] = {
    ("opus", 5, None): 512,
    ("fable", 5, None): 512,
    ("mythos", 5, None): 512,
    ("opus", 4, 7): 2048,
    ("sonnet", 4, 6): 2048,
    ("opus", 4, 6): 4096,
    ("opus", 4, 5): 4096,
    ("haiku", 4, 5): 4096,
}
"""Family, major and minor version (None: each) -> shortest prefix that Anthropic caches, in tokens, where it is not the
default. Sources differ on Sonnet 4.6 (1,024 or 2,048); a mark that is too early costs a write for nothing."""


class _Version(NamedTuple):
    family: str
    major: int
    minor: int


def binds_whole_prefix(model: str) -> bool:
    """Whether the signatures of the model's thinking bind all that stands before it: an edit there is refused."""
    version = _read_version(model)
    return version is not None and (version.major, version.minor) >= _BOUND_SINCE[version.family]


def claude_version(model: str) -> tuple[int, int]:
    """Major and minor version of a Claude model, (0, 0) for every other."""
    version = _read_version(model)
    return (version.major, version.minor) if version is not None else (0, 0)


def is_about_thinking(refusal: str) -> bool:
    """Whether an error of the provider's says that thinking belongs to another conversation, or is not its own.

    Args:
        refusal: the error's text. Services word it in their own ways; all name the thinking or its signature.
    """
    return _ABOUT_THINKING.search(refusal) is not None


def min_cached_tokens(model: str) -> int:
    """Tokens of the shortest prefix that the provider caches; 1,024 for models that are not known."""
    version = _read_version(model)
    if version is None:
        return _DEFAULT_MINIMUM
    every_minor = _MINIMUMS.get((version.family, version.major, None), _DEFAULT_MINIMUM)
    return _MINIMUMS.get((version.family, version.major, version.minor), every_minor)


def _read_version(model: str) -> _Version | None:
    name = model.lower()
    if found := _NAMED.search(name):
        return _Version(found[1], int(found[2]), int(found[3] or 0))
    if found := _NAMED_LATE.search(name):
        return _Version(found[3], int(found[1]), int(found[2] or 0))
    return None
