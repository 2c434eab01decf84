"""Slices of a page that may stand on a card: trimmed, short enough, without secrets."""

from __future__ import annotations

import re

from context_gatekeeper.core.cuts import cut_plain
from context_gatekeeper.core.secret_rules import find_secrets

__all__ = ["quote_span"]

_AROUND_CHARS = 100
"""A secret may begin before a slice or reach past it."""
_LEAST_CHARS = 2
_TORN_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*(?P<torn>\\(?:u[0-9a-fA-F]{0,3})?)\Z")
_CLAUSE_ENDS = re.compile(r"[,;:，；：、—。.!?！？](?=\s|[\u2e80-\uffff]|\Z)|\s[-–]\s")


def quote_span(
    text: str, start: int, end: int, limit_chars: int, mark: int | None = None, *, is_escaped: bool = False
) -> tuple[int, int, bool] | None:
    """The part of ``text[start:end]`` to quote.

    Args:
        text: the page's text.
        start: of the slice.
        end: of the slice.
        limit_chars: the most characters.
        mark: what the slice is quoted for; of a longer slice the clauses around it stay. None: the beginning.
        is_escaped: inside a JSON string, where no escape may be torn.

    Returns:
        (start, end, whether it was shortened), without white space around it; it ends before a secret.
        None when nothing is left. O(end - start).
    """
    start, end = _stripped(text, start, end)
    whole = end
    if end - start > limit_chars:
        start, end = _around(text, start, end, limit_chars, start if mark is None else min(mark, end))
    around = max(0, start - _AROUND_CHARS)
    for secret in find_secrets(text[around : end + _AROUND_CHARS]):
        if around + secret.end > start and around + secret.start < end:
            end = max(start, around + secret.start)
            break
    if is_escaped and end < whole:
        torn = _TORN_ESCAPE.search(text, max(start, end - 12), end)
        end = end if torn is None else torn.start("torn")
    start, end = _stripped(text, start, end)
    return (start, end, end < whole) if end - start >= _LEAST_CHARS else None


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    first = start + len(piece) - len(piece.lstrip())
    return first, max(first, start + len(piece.rstrip()))


def _around(text: str, start: int, end: int, limit_chars: int, mark: int) -> tuple[int, int]:
    """The clauses around ``mark``, at most ``limit_chars`` characters."""
    first = start
    for border in _CLAUSE_ENDS.finditer(text, max(start, mark - limit_chars // 2), mark):
        first = border.end()
        if mark - first < limit_chars // 4:
            break
    first = first if mark - first <= limit_chars // 2 else mark
    last = first + len(cut_plain(text[first : min(end, first + limit_chars + 300)], limit_chars))
    if last < end:
        borders = [border.start() for border in _CLAUSE_ENDS.finditer(text, max(mark, last - limit_chars // 3), last)]
        last = borders[-1] + 1 if borders else last
    return first, last
