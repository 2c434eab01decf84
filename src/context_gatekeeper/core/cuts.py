"""Cuts of a text that leave it readable: between graphemes, with code closed and opened again.

Everything is linear in the length of the text and takes any ``str``, lone surrogates and NUL
included. Cuts follow a subset of Unicode's rules for extended grapheme clusters (UAX 29):
no cut inside CR LF, before a combining mark, variation selector, emoji modifier or tag, on
either side of a zero-width joiner, inside a flag, a Hangul syllable, an Indic conjunct, or
after a prepended Arabic number sign. A cluster longer than 256 characters is cut inside:
nobody can read it, and looking for its borders would cost the whole text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from context_gatekeeper.core.fences import FENCE_LINE, Fence, closes_fence, find_fences, opens_fence
from context_gatekeeper.core.lazy_pattern import lazy_pattern

__all__ = ["CUT_MARK", "cut_head_tail", "cut_plain", "cut_text"]

CUT_MARK = "[...]"
"""Stands on a line of its own where `cut_head_tail` left something out."""
_JOINERS = "\u200c\u200d"
_ZERO_WIDTH_JOINER = "\u200d"
_LINKERS = frozenset("\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d")
_PREPENDED = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f")
_EXTENDING = lazy_pattern("[\u0e33\u0eb3\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
_HANGUL_JOINT = lazy_pattern(
    "[\u1100-\u115f\ua960-\ua97c][\u1100-\u11ff\uac00-\ud7a3]|[\u1160-\u11ff\uac00-\ud7a3][\u1160-\u11ff]"
)
_HARD_PAIR = lazy_pattern("\r\n|[\ud800-\udbff][\udc00-\udfff]")
_LONGEST_GRAPHEME = 256


def _is_inside_grapheme(text: str, at: int) -> bool:
    """Whether a cut before ``text[at]`` would split a grapheme."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if before < "\u0300" and after < "\u0300":
        return before == "\r" and after == "\n"
    if _is_flag(before) and _is_flag(after):
        first = at
        while first > 0 and _is_flag(text[first - 1]):
            first -= 1
        return (at - first) % 2 == 1
    return (
        after in _JOINERS
        or before == _ZERO_WIDTH_JOINER
        or before in _PREPENDED
        or unicodedata.category(after)[0] == "M"
        or _EXTENDING.match(after) is not None
        or (before in _LINKERS and unicodedata.category(after) == "Lo")
        or _HANGUL_JOINT.match(before + after) is not None
        or _HARD_PAIR.match(before + after) is not None
    )


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _border(text: str, place: int, step: int) -> int:
    """The grapheme border at ``place`` or the next one in the direction of ``step`` (-1 or 1)."""
    place = min(max(place, 0), len(text))
    for at in range(place, place + step * _LONGEST_GRAPHEME, step):
        if not _is_inside_grapheme(text, at):
            return at
    return place + step if _HARD_PAIR.match(text, place - 1) else place


def _past_marks(text: str, place: int, step: int) -> int:
    """``place`` moved out of a run of backticks or tildes."""
    while 0 < place < len(text) and text[place] == text[place - 1] and text[place] in "`~":
        place += step
    return place


def _fence_at(fences: Sequence[Fence], place: int) -> Fence | None:
    return next((fence for fence in fences if fence.start < place < fence.end), None)


def _line_around(text: str, place: int) -> tuple[int, int]:
    end = text.find("\n", place)
    return text.rfind("\n", 0, place) + 1, len(text) if end < 0 else end


_BACKTICKS = lazy_pattern("`+")


def _inline_code_at(text: str, place: int) -> tuple[int, int, int] | None:
    """(start, end, marks) of the inline code around ``place``: equal runs of backticks on one line."""
    runs = [run.span() for run in _BACKTICKS.finditer(text, *_line_around(text, place))]
    partner: dict[int, int] = {}
    last_of_length: dict[int, int] = {}
    for number in range(len(runs) - 1, -1, -1):
        length = runs[number][1] - runs[number][0]
        if length in last_of_length:
            partner[number] = last_of_length[length]
        last_of_length[length] = number
    number = 0
    while number < len(runs) and runs[number][0] < place:
        start, content = runs[number]
        if number not in partner:
            number += 1
            continue
        end = runs[partner[number]][1]
        if place < end:
            return start, end, content - start
        number = partner[number] + 1
    return None


def cut_plain(text: str, limit_chars: int) -> str:
    """The longest prefix of at most ``limit_chars`` characters that ends between graphemes; code is left open."""
    return text[: _border(text, limit_chars, -1)]


def cut_text(text: str, limit_chars: int) -> str:
    """A prefix of at most ``limit_chars`` characters that ends between graphemes.

    Fenced or inline code that the cut falls into is closed again, inside the limit, or left out where
    nothing of it would stay; a run of backticks is never cut in two. Empty when nothing fits; the
    whole text, as it is, when it fits.
    """
    return text if len(text) <= limit_chars else _head(text, limit_chars, find_fences(text))


def _head(text: str, limit_chars: int, fences: Sequence[Fence]) -> str:
    place = _border(text, limit_chars, -1)
    fence = _fence_at(fences, place)
    if fence is not None:
        return _code_head(text, limit_chars, fence)
    inline = _inline_code_at(text, place)
    if inline is not None:
        start, end, marks = inline
        place = _border(text, min(place, limit_chars - marks, end - marks), -1)
        while place > start + marks and text[place - 1] == "`":
            place -= 1
        if place > start + marks:
            return text[:place] + "`" * marks
        place = start
    place = _past_marks(text, place, -1)
    line = FENCE_LINE.match(text, _line_around(text, place)[0], place)
    # Without the backtick behind it an unpaired run at the start of a line would open a fence.
    is_torn = line is not None and opens_fence(line) and all(fence.end != place for fence in fences)
    return text[: line.start()] if line is not None and is_torn else text[:place]


def _code_head(text: str, limit_chars: int, fence: Fence) -> str:
    place = _border(text, min(limit_chars - len(fence.closing), fence.code_end), -1)
    place = _past_marks(text, place, -1)
    line = FENCE_LINE.match(text, _line_around(text, place)[0], place)
    if line is not None and closes_fence(line, fence.mark):
        place = line.start()
    if place <= fence.code_start:
        return text[: fence.start]
    return text[:place].removesuffix("\n") + fence.closing


def _tail(text: str, limit_chars: int, fences: Sequence[Fence]) -> str:
    """A suffix of at most ``limit_chars`` characters; code that it begins inside is opened again."""
    closing = fences[-1].closing if fences and not fences[-1].is_closed else ""
    first = len(text) + len(closing) - limit_chars
    place = _border(text, first, 1)
    if place == len(text):
        return ""
    fence = _fence_at(fences, place)
    if fence is not None:
        place = _past_marks(text, max(_border(text, first + len(fence.opening), 1), fence.code_start), 1)
        line = FENCE_LINE.match(text[place : _line_around(text, place)[1]])
        if line is not None and closes_fence(line, fence.mark):
            place += line.end()
        if place < fence.code_end:
            return fence.opening + text[place:] + closing
        return text[fence.end :] + closing if fence.is_closed else ""
    inline = _inline_code_at(text, place)
    if inline is not None:
        _, end, marks = inline
        place = _border(text, first + marks, 1)
        while place < end - marks and text[place] == "`":
            place += 1
        if place < end - marks:
            return "`" * marks + text[place:] + closing
        place = end
    place = _past_marks(text, place, 1)
    # Brought to the start of a line, an unpaired run would open a fence: the line's rest goes too.
    line = FENCE_LINE.match(text[place : _line_around(text, place)[1]])
    if line is not None and opens_fence(line) and all(fence.start != place for fence in fences):
        place += line.end()
    return text[place:] + closing


_LEAST_PART_CHARS = 12
"""With less room beside the mark a plain prefix says more."""


def cut_head_tail(text: str, limit_chars: int, mark: str = CUT_MARK) -> str:
    """Head and tail of ``text`` with ``mark`` on a line between them, at most ``limit_chars`` characters.

    The head gets two thirds. Both cuts are those of `cut_text` and prefer a line break within a quarter of
    their part, else a blank within a tenth. Without room for the mark the result is a plain prefix.
    """
    if len(text) <= limit_chars:
        return text
    room = limit_chars - len(mark) - 2
    if room < _LEAST_PART_CHARS:
        return cut_text(text, limit_chars)
    fences = find_fences(text)
    head_chars = _shorter_head(text, room * 2 // 3)
    head = _head(text, head_chars, fences)
    tail = _tail(text, _shorter_tail(text, room - room * 2 // 3), fences)
    return f"{head}\n{mark}\n{tail}"


def _shorter_head(text: str, limit_chars: int) -> int:
    for gap, part in (("\n", 4), (" ", 10)):
        place = text.rfind(gap, limit_chars - limit_chars // part, limit_chars)
        if place > 0:
            return place
    return limit_chars


def _shorter_tail(text: str, limit_chars: int) -> int:
    start = len(text) - limit_chars
    for gap, part in (("\n", 4), (" ", 10)):
        place = text.find(gap, start, start + limit_chars // part)
        if place > 0:
            return len(text) - place - 1
    return limit_chars
