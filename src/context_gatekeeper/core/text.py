"""Text as the selection sees it: normal form, scripts, sentences, fenced code, safe cuts.

Everything is linear in the length of the text and takes any ``str``, lone surrogates and NUL
included. Cuts follow a subset of Unicode's rules for extended grapheme clusters (UAX 29):
no cut inside CR LF, before a combining mark, variation selector, emoji modifier or tag, on
either side of a zero-width joiner, inside a flag, a Hangul syllable, an Indic conjunct, or
after a prepended Arabic number sign. A cluster longer than 256 characters is cut inside:
nobody can read it, and looking for its borders would cost the whole text.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = [
    "CUT_MARK",
    "Script",
    "cut_head_tail",
    "cut_text",
    "is_fence",
    "normalise_text",
    "replace_lone_surrogates",
    "script_of",
    "sentence_spans",
    "split_sentences",
]

CUT_MARK = "[...]"
"""Stands on a line of its own where `cut_head_tail` left something out."""


class Script(StrEnum):
    """Writing system of a character, as far as the selection tells them apart."""

    HAN = "han"
    KANA = "kana"
    HANGUL = "hangul"
    LATIN = "latin"
    CYRILLIC = "cyrillic"
    GREEK = "greek"
    ARABIC = "arabic"
    HEBREW = "hebrew"
    THAI = "thai"
    DEVANAGARI = "devanagari"
    OTHER = "other"


_SCRIPT_RANGES: tuple[tuple[int, int, Script], ...] = (
    (0x41, 0x5A, Script.LATIN),
    (0x61, 0x7A, Script.LATIN),
    (0xC0, 0xD6, Script.LATIN),
    (0xD8, 0xF6, Script.LATIN),
    (0xF8, 0x2AF, Script.LATIN),
    (0x370, 0x3FF, Script.GREEK),
    (0x400, 0x52F, Script.CYRILLIC),
    (0x590, 0x5FF, Script.HEBREW),
    (0x600, 0x6FF, Script.ARABIC),
    (0x750, 0x77F, Script.ARABIC),
    (0x8A0, 0x8FF, Script.ARABIC),
    (0x900, 0x963, Script.DEVANAGARI),
    (0x966, 0x97F, Script.DEVANAGARI),
    (0xE01, 0xE3A, Script.THAI),
    (0xE40, 0xE5B, Script.THAI),
    (0x1100, 0x11FF, Script.HANGUL),
    (0x1C80, 0x1C8F, Script.CYRILLIC),
    (0x1D00, 0x1D25, Script.LATIN),
    (0x1D6B, 0x1D77, Script.LATIN),
    (0x1D79, 0x1D9A, Script.LATIN),
    (0x1E00, 0x1EFF, Script.LATIN),
    (0x1F00, 0x1FFF, Script.GREEK),
    (0x2C60, 0x2C7F, Script.LATIN),
    (0x2DE0, 0x2DFF, Script.CYRILLIC),
    (0x2E80, 0x2FDF, Script.HAN),
    (0x3005, 0x3007, Script.HAN),
    (0x3041, 0x309A, Script.KANA),
    (0x309D, 0x309F, Script.KANA),
    (0x30A1, 0x30FA, Script.KANA),
    (0x30FC, 0x30FF, Script.KANA),
    (0x3131, 0x318E, Script.HANGUL),
    (0x31F0, 0x31FF, Script.KANA),
    (0x3400, 0x4DBF, Script.HAN),
    (0x4E00, 0x9FFF, Script.HAN),
    (0xA640, 0xA69F, Script.CYRILLIC),
    (0xA720, 0xA7FF, Script.LATIN),
    (0xA8E0, 0xA8FF, Script.DEVANAGARI),
    (0xA960, 0xA97F, Script.HANGUL),
    (0xAB30, 0xAB64, Script.LATIN),
    (0xAC00, 0xD7FF, Script.HANGUL),
    (0xF900, 0xFAFF, Script.HAN),
    (0xFB00, 0xFB06, Script.LATIN),
    (0xFB1D, 0xFB4F, Script.HEBREW),
    (0xFB50, 0xFDFF, Script.ARABIC),
    (0xFE70, 0xFEFC, Script.ARABIC),
    (0xFF21, 0xFF3A, Script.LATIN),
    (0xFF41, 0xFF5A, Script.LATIN),
    (0xFF66, 0xFF9D, Script.KANA),
    (0xFFA0, 0xFFDC, Script.HANGUL),
    (0x1B000, 0x1B16F, Script.KANA),
    (0x20000, 0x3FFFF, Script.HAN),
)
_SCRIPT_STARTS = [first for first, _, _ in _SCRIPT_RANGES]

# Compatibility forms whose plain form is what people type: odd spaces, Kangxi radicals, the
# ideographic space, compatibility Han, ligatures and presentation forms, full and half
# width, styled Latin letters. Superscripts, fractions, circled digits and the ellipsis stay.
_COMPATIBILITY_FORMS = re.compile(
    "[\u00a0\u2000-\u200a\u202f\u205f\u2f00-\u2fd5\u3000\uf900-\ufaff\ufb00-\ufdff\ufe70-\ufefc\uff01-\uffee"
    "\U0001d400-\U0001d7ff\U0002f800-\U0002fa1f]+"
)
# What composes: a character with at most 30 marks (UAX 15's stream-safe limit, so that sorting
# the marks stays linear), and conjoining Hangul letters.
_MARK = "\u0300-\u036f\u3099\u309a"
_COMPOSABLE = re.compile(f"[^{_MARK}][{_MARK}]{{1,30}}(?![{_MARK}])|[\uac00-\ud7a3]?[\u1100-\u11ff]+")


def normalise_text(text: str) -> str:
    """NFKC where it helps retrieval: full-width Latin, half-width kana, accents and Hangul composed, plain spaces.

    Case is left to the caller; ``² ½ ① …`` stay. ASCII comes back unchanged. Idempotent; the length may change.
    """
    if text.isascii():
        return text
    plain = _COMPATIBILITY_FORMS.sub(lambda found: unicodedata.normalize("NFKC", found.group()), text)
    return _COMPOSABLE.sub(lambda found: unicodedata.normalize("NFC", found.group()), plain)


def script_of(char: str) -> Script:
    """Script of one character; ``OTHER`` for digits, punctuation and everything not listed."""
    code = ord(char)
    place = bisect_right(_SCRIPT_STARTS, code) - 1
    if place < 0:
        return Script.OTHER
    _, last, script = _SCRIPT_RANGES[place]
    return script if code <= last else Script.OTHER


def replace_lone_surrogates(text: str) -> str:
    """``text`` with every lone surrogate as U+FFFD, so that it encodes to UTF-8; pairs are joined."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# -- fenced code ------------------------------------------------------------------------------

_FENCE_LINE = re.compile(r"^(?P<indent>[ \t>]*+)(?P<mark>`{3,}+|~{3,}+)(?P<info>[^\n]*+)", re.MULTILINE)
_LONGEST_LANGUAGE = 20
"""Characters of an info string that are repeated where a fence is opened again."""


@dataclass(frozen=True, slots=True)
class _Fence:
    """A fenced block of code as offsets into its text."""

    start: int
    """Of the opening line."""
    code_start: int
    """Past the opening line's break."""
    code_end: int
    """Of the line break before the closing line; the text's end when there is none."""
    end: int
    """Past the closing line, before its line break."""
    indent: str
    mark: str
    language: str
    is_closed: bool

    @property
    def opening(self) -> str:
        """A line that opens the block again."""
        return f"{self.indent}{self.mark}{self.language}\n"

    @property
    def closing(self) -> str:
        """A line break and the line that closes the block."""
        return f"\n{self.indent}{self.mark}"


def _opens(line: re.Match[str]) -> bool:
    """A backtick fence has no backtick in its info string: such a line is inline code."""
    return line["mark"][0] == "~" or "`" not in line["info"]


def _closes(line: re.Match[str], mark: str) -> bool:
    return line["mark"].startswith(mark) and not line["info"].strip()


def _find_fences(text: str) -> list[_Fence]:
    """The text's fenced blocks in order; one that is never closed reaches to the end."""
    if "```" not in text and "~~~" not in text:
        return []
    fences: list[_Fence] = []
    opened: re.Match[str] | None = None
    for line in _FENCE_LINE.finditer(text):
        if opened is None:
            opened = line if _opens(line) else None
        elif _closes(line, opened["mark"]):
            fences.append(_fence(opened, max(opened.end(), line.start() - 1), line.end(), is_closed=True))
            opened = None
    if opened is not None:
        fences.append(_fence(opened, len(text), len(text), is_closed=False))
    return fences


def _fence(opened: re.Match[str], code_end: int, end: int, *, is_closed: bool) -> _Fence:
    words = opened["info"].split(maxsplit=1)
    language = words[0] if words and len(words[0]) <= _LONGEST_LANGUAGE and words[0][0].isalnum() else ""
    return _Fence(
        opened.start(), min(end, opened.end() + 1), code_end, end, opened["indent"], opened["mark"], language, is_closed
    )


def is_fence(unit: str) -> bool:
    """Whether a unit of `split_sentences` is fenced code."""
    line = _FENCE_LINE.match(unit)
    return line is not None and _opens(line)


# -- sentences --------------------------------------------------------------------------------

_ENDS = "\u3002\uff01\uff1f\uff1b\u2026\uff61\u061f\u06d4\u0964\u0965"
"""End marks that need no space behind them: those of Chinese and Japanese, Arabic, Devanagari."""
_CLOSERS = "\"'\u201d\u2019)\\]\u300d\u300f\uff09\u3011\u300b"
_SENTENCE_BREAK = re.compile(
    r"(?P<code>`[^`\n]++`)"
    rf"|(?P<end>(?<![.!?{_ENDS}])[.!?{_ENDS}]++[{_CLOSERS}]*+)"
    "|(?P<line>[\r\n\u2028\u2029]+)"
)
_HAS_END = re.compile(f"[{_ENDS}]")
_LIST_NUMBER_CHARS = 8
_FIRST_CJK = "\u2e80"


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """(start, end) of the units of `split_sentences`, ascending; only white space lies outside them."""
    spans: list[tuple[int, int]] = []
    at = 0
    for fence in _find_fences(text):
        spans.extend(_prose_spans(text, at, fence.start))
        spans.extend(_stripped(text, fence.start, fence.end))
        at = fence.end
    spans.extend(_prose_spans(text, at, len(text)))
    return spans


def split_sentences(text: str) -> list[str]:
    """Sentences of ``text`` in order, stripped, without blank ones.

    A sentence ends at ``. ! ?`` (and closing quotes) followed by white space, at ``! ?`` before
    CJK text, at a run of ``。！？；…``, or at a line break; the dot of a list number ("1. Mix") and
    marks inside inline code end none. Abbreviations are not known: "e.g. this" is two units,
    "v1.2.3" is one. Fenced code, closed or not, is one unit. No non-blank character is lost.
    Source: DESIGN.md 4.6, reading 31.
    """
    return [text[start:end] for start, end in sentence_spans(text)]


def _prose_spans(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    start = begin
    for found in _SENTENCE_BREAK.finditer(text, begin, end):
        if found.lastgroup == "code" or (found.lastgroup == "end" and not _is_sentence_end(text, start, end, found)):
            continue
        yield from _stripped(text, start, found.end())
        start = found.end()
    yield from _stripped(text, start, end)


def _is_sentence_end(text: str, start: int, end: int, found: re.Match[str]) -> bool:
    place = found.end()
    if place < end and not text[place].isspace():
        marks = found.group()
        return _HAS_END.search(marks) is not None or (text[place] >= _FIRST_CJK and marks[0] != ".")
    is_short = found.start() - start <= _LIST_NUMBER_CHARS
    return not (is_short and found.group() == "." and text[start : found.start()].strip().isdecimal())


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The span without the white space around it; nothing when it is blank."""
    piece = text[start:end]
    if bare := piece.strip():
        first = start + len(piece) - len(piece.lstrip())
        yield first, first + len(bare)


# -- cuts -------------------------------------------------------------------------------------

_JOINERS = "\u200c\u200d"
_ZERO_WIDTH_JOINER = "\u200d"
_LINKERS = frozenset("\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d")
_PREPENDED = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f")
_EXTENDING = re.compile("[\u0e33\u0eb3\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
_HANGUL_JOINT = re.compile(
    "[\u1100-\u115f\ua960-\ua97c][\u1100-\u11ff\uac00-\ud7a3]|[\u1160-\u11ff\uac00-\ud7a3][\u1160-\u11ff]"
)
_HARD_PAIR = re.compile("\r\n|[\ud800-\udbff][\udc00-\udfff]")
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


def _fence_at(fences: Sequence[_Fence], place: int) -> _Fence | None:
    return next((fence for fence in fences if fence.start < place < fence.end), None)


def _line_around(text: str, place: int) -> tuple[int, int]:
    end = text.find("\n", place)
    return text.rfind("\n", 0, place) + 1, len(text) if end < 0 else end


_BACKTICKS = re.compile("`+")


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


def cut_text(text: str, limit_chars: int) -> str:
    """A prefix of at most ``limit_chars`` characters that ends between graphemes.

    Fenced or inline code that the cut falls into is closed again, inside the limit, or left out where
    nothing of it would stay; a run of backticks is never cut in two. Empty when nothing fits; the
    whole text, as it is, when it fits.
    """
    return text if len(text) <= limit_chars else _head(text, limit_chars, _find_fences(text))


def _head(text: str, limit_chars: int, fences: Sequence[_Fence]) -> str:
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
    line = _FENCE_LINE.match(text, _line_around(text, place)[0], place)
    # Without the backtick behind it an unpaired run at the start of a line would open a fence.
    is_torn = line is not None and _opens(line) and all(fence.end != place for fence in fences)
    return text[: line.start()] if line is not None and is_torn else text[:place]


def _code_head(text: str, limit_chars: int, fence: _Fence) -> str:
    place = _border(text, min(limit_chars - len(fence.closing), fence.code_end), -1)
    place = _past_marks(text, place, -1)
    line = _FENCE_LINE.match(text, _line_around(text, place)[0], place)
    if line is not None and _closes(line, fence.mark):
        place = line.start()
    if place <= fence.code_start:
        return text[: fence.start]
    return text[:place].removesuffix("\n") + fence.closing


def _tail(text: str, limit_chars: int, fences: Sequence[_Fence]) -> str:
    """A suffix of at most ``limit_chars`` characters; code that it begins inside is opened again."""
    closing = fences[-1].closing if fences and not fences[-1].is_closed else ""
    first = len(text) + len(closing) - limit_chars
    place = _border(text, first, 1)
    if place == len(text):
        return ""
    fence = _fence_at(fences, place)
    if fence is not None:
        place = _past_marks(text, max(_border(text, first + len(fence.opening), 1), fence.code_start), 1)
        line = _FENCE_LINE.match(text[place : _line_around(text, place)[1]])
        if line is not None and _closes(line, fence.mark):
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
    line = _FENCE_LINE.match(text[place : _line_around(text, place)[1]])
    if line is not None and _opens(line) and all(fence.start != place for fence in fences):
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
    fences = _find_fences(text)
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
