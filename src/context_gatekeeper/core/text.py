"""Text as the selection sees it: normal form, scripts, sentences, fenced code, safe cuts.

Everything is linear in the length of the text. Cuts follow the subset of Unicode's
grapheme rules (UAX 29) that matters for storage: no cut inside a CR LF, before a combining
mark, variation selector or emoji modifier, around a zero-width joiner, inside a flag.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum

__all__ = [
    "CUT_MARK",
    "Script",
    "cut_head_tail",
    "cut_text",
    "normalise_text",
    "replace_lone_surrogates",
    "script_of",
    "split_sentences",
]

CUT_MARK = "\n[...]\n"
"""Stands where `cut_head_tail` left something out."""


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
    (0xC0, 0x24F, Script.LATIN),
    (0x370, 0x3FF, Script.GREEK),
    (0x400, 0x52F, Script.CYRILLIC),
    (0x590, 0x5FF, Script.HEBREW),
    (0x600, 0x6FF, Script.ARABIC),
    (0x750, 0x77F, Script.ARABIC),
    (0x900, 0x97F, Script.DEVANAGARI),
    (0xE00, 0xE7F, Script.THAI),
    (0x1100, 0x11FF, Script.HANGUL),
    (0x1E00, 0x1EFF, Script.LATIN),
    (0x3005, 0x3005, Script.HAN),
    (0x3040, 0x30FF, Script.KANA),
    (0x31F0, 0x31FF, Script.KANA),
    (0x3400, 0x4DBF, Script.HAN),
    (0x4E00, 0x9FFF, Script.HAN),
    (0xAC00, 0xD7A3, Script.HANGUL),
    (0xF900, 0xFAFF, Script.HAN),
    (0x20000, 0x3FFFF, Script.HAN),
)
_NEEDS_NORMAL_FORM = re.compile(r"[\u0300-\u036f\u1100-\u11ff\u2000-\u200a\u3000\uf900-\ufaff\ufb00-\ufb06\uff00-\uffef]")
_FENCE_LINE = re.compile(r"^[ \t]{0,3}(?P<mark>`{3,}|~{3,})", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?]+[\"'\u201d\u2019)\]]*(?=[ \t])|[\u3002\uff01\uff1f\uff1b\u2026!?]+[\u201d\u2019\u300d\u300f)\uff09]*|\n+")
_CJK_END = frozenset("\u3002\uff01\uff1f\uff1b\u2026")
_JOINER = "\u200d"


def normalise_text(text: str) -> str:
    """NFKC where it helps: full-width Latin, half-width kana, composed accents and Hangul, odd spaces.

    ASCII and text without such characters come back unchanged; lone surrogates and NUL are kept.
    """
    if text.isascii() or _NEEDS_NORMAL_FORM.search(text) is None:
        return text
    return unicodedata.normalize("NFKC", text)


def script_of(char: str) -> Script:
    """Script of one character; ``OTHER`` for digits, punctuation and everything not listed."""
    code = ord(char)
    for first, last, script in _SCRIPT_RANGES:
        if first <= code <= last:
            return script
    return Script.OTHER


def split_sentences(text: str) -> list[str]:
    """Sentences of ``text`` in order, stripped, without blank ones.

    A sentence ends at ``. ! ?`` followed by white space, at a run of ``。！？；…``, or at a line
    break. Fenced code, closed or not, is one unit. No non-blank character is lost.
    Source: DESIGN.md 4.6, reading 31.
    """
    units: list[str] = []
    for is_code, begin, end in _fenced_parts(text):
        if is_code:
            units.append(text[begin:end].strip())
            continue
        start = begin
        for match in _SENTENCE_END.finditer(text, begin, end):
            if match.group()[0] in "!?" and not _ends_here(text, match.end(), end):
                continue
            units.append(text[start : match.end()].strip())
            start = match.end()
        units.append(text[start:end].strip())
    return [unit for unit in units if unit]


def _ends_here(text: str, place: int, end: int) -> bool:
    """ASCII ``!`` and ``?`` end a sentence before white space, at the end, or before CJK text."""
    return place >= end or text[place].isspace() or text[place] > "\u2e7f"


def _fenced_parts(text: str) -> list[tuple[bool, int, int]]:
    """(is code, start, end) of the text's prose and fenced blocks, in order."""
    parts: list[tuple[bool, int, int]] = []
    at = 0
    opened: tuple[str, int] | None = None
    for match in _FENCE_LINE.finditer(text):
        mark = match.group("mark")
        if opened is None:
            parts.append((False, at, match.start()))
            opened, at = (mark, match.start()), match.start()
        elif mark[0] == opened[0][0] and len(mark) >= len(opened[0]):
            line_end = text.find("\n", match.end())
            stop = len(text) if line_end < 0 else line_end
            parts.append((True, at, stop))
            opened, at = None, stop
    parts.append((opened is not None, at, len(text)))
    return parts


def _is_bound(before: str, after: str) -> bool:
    """Whether two neighbouring characters belong to one grapheme (flags are the caller's)."""
    if after in ("\ufe0f", "\ufe0e", _JOINER) or before == _JOINER:
        return True
    if before == "\r":
        return after == "\n"
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":
        return True
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return True
    return after > "\u02ff" and unicodedata.category(after) in ("Mn", "Me", "Mc")


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


_LONGEST_GRAPHEME = 256
"""Longer combining storms are cut inside: nobody can read them."""


def _safe_place(text: str, place: int) -> int:
    """Largest grapheme border at or before ``place``; looks back at most 256 characters."""
    if place >= len(text):
        return len(text)
    floor = max(0, place - _LONGEST_GRAPHEME)
    at = place
    while at > floor and _is_bound(text[at - 1], text[at]):
        at -= 1
    if at > 0 and _is_flag(text[at]) and _is_flag(text[at - 1]):
        first = at
        while first > floor and _is_flag(text[first - 1]):
            first -= 1
        at -= (at - first) % 2
    return place if at == floor and at > 0 else at


def cut_text(text: str, limit_chars: int) -> str:
    """The longest prefix of at most ``limit_chars`` characters that ends between graphemes.

    An open code fence is closed again, inside the limit; a fence mark is never cut in two. The result
    is empty when not even one grapheme fits.
    """
    if len(text) <= limit_chars:
        return text
    head = text[: _safe_place(text, max(0, limit_chars))]
    return _balanced(head, limit_chars)


def cut_head_tail(text: str, limit_chars: int, mark: str = CUT_MARK) -> str:
    """Head and tail of ``text`` with ``mark`` between them, at most ``limit_chars`` characters.

    The head gets two thirds. A limit that leaves no room for the mark gives a plain prefix.
    """
    if len(text) <= limit_chars:
        return text
    room = limit_chars - len(mark)
    if room < 8:
        return cut_text(text, limit_chars)
    head = cut_text(text, room * 2 // 3)
    start = len(text) - (room - room * 2 // 3)
    safe = _safe_place(text, start)
    while safe < start and start < len(text):
        start += 1
        safe = _safe_place(text, start)
    tail = text[start:]
    if "```" in tail or "~~~" in tail or tail.lstrip().startswith("`"):
        tail = _FENCE_LINE.sub("", tail) if _open_fence(tail) else tail
    return head.rstrip("`~") + mark + tail.lstrip("`~") if _open_fence(head + mark + tail) else head + mark + tail


def _open_fence(text: str) -> str:
    """The mark of the fence that ``text`` leaves open; empty when it leaves none."""
    opened = ""
    for match in _FENCE_LINE.finditer(text):
        mark = match.group("mark")
        if not opened:
            opened = mark
        elif mark[0] == opened[0] and len(mark) >= len(opened):
            opened = ""
    return opened


def _balanced(head: str, limit_chars: int) -> str:
    """``head`` without a torn fence mark, its open fence closed inside the limit."""
    bare = head.rstrip("`~")
    if len(head) - len(bare) in (1, 2) and (not bare or bare.endswith("\n")):
        head = bare
    opened = _open_fence(head)
    if not opened:
        return head
    closing = f"\n{opened}"
    if len(head) + len(closing) <= limit_chars:
        return head + closing
    shorter = head[: _safe_place(head, max(0, limit_chars - len(closing)))]
    if _open_fence(shorter) == opened:
        return shorter.rstrip("`~") + closing if not shorter.endswith(opened) else shorter[: -len(opened)].rstrip()
    return shorter.rstrip("`~")


def replace_lone_surrogates(text: str) -> str:
    """``text`` with every lone surrogate as U+FFFD, so that it encodes to UTF-8; pairs are joined."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
