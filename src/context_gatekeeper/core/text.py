"""Text as the selection sees it: normal form, scripts, sentences.

Everything is linear in the length of the text and takes any ``str``, lone surrogates and NUL included.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from enum import StrEnum

from context_gatekeeper.core.fences import find_fences

__all__ = [
    "Script",
    "normalise_text",
    "replace_lone_surrogates",
    "script_of",
    "sentence_spans",
    "split_sentences",
]


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
# width, styled Latin letters. Superscripts, fractions, circled digits and the ellipsis stay, and two
# signs that stand for a whole Arabic phrase: nobody looks for them by its words, and a text would grow 18-fold.
_COMPATIBILITY_FORMS = re.compile(
    "[\u00a0\u2000-\u200a\u202f\u205f\u2f00-\u2fd5\u3000\uf900-\ufaff\ufb00-\ufdf9\ufdfc-\ufdff\ufe70-\ufefc\uff01-\uffee"
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
    for fence in find_fences(text):
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
