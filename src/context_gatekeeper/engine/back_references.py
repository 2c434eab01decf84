"""What a new text points back at: blocks by their handles, and the past by its words.

Only the writer's own words count. A block of recalled pages, the head of a digest and a note of what was left out
are ours: scanned, they would bring back what they stand for, turn after turn.

A short handle is an ordinary word too: a percentile (``p95``), a priority (``p1``), a variable. So one without
a range counts in prose only, and where the number is a usual one, only when the text says that a page is meant.

Source: section 1 of the paging notes (page fault).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from context_gatekeeper.core.background import simplify_han
from context_gatekeeper.core.block_handles import BlockMention, parse_block_handle
from context_gatekeeper.core.fences import find_fences
from context_gatekeeper.core.handles import HandleMention, find_handles
from context_gatekeeper.core.query_form import DEICTIC_PATTERNS, has_recall
from context_gatekeeper.core.text import normalise_text, split_sentences

__all__ = ["NamedPages", "named_pages", "own_words", "past_sentences"]

_BLOCK_MARK = re.compile(r"<(?P<end>/?)recalled-(?P<fence>[0-9a-z]{8,64})>")
_OUR_LINE = re.compile(
    r"^[ \t]*\[(?:out: |= )[^\n]*\][ \t]*$"
    r"|\[[^\[\]\n]{0,300}(?:whole text|left out): (?:page:|p\d)[^\[\]\n]{0,60}\]",
    re.MULTILINE,
)


def own_words(text: str) -> str:
    """``text`` without what we once put into a window: recalled blocks, heads of digests, notes of gaps.

    A recalled block that never ends was not made by us and stays. O(length).
    """
    kept: list[str] = []
    at, opened = 0, None
    for mark in _BLOCK_MARK.finditer(text):
        if opened is None:
            opened = None if mark["end"] else mark
        elif mark["end"] and mark["fence"] == opened["fence"]:
            kept.append(text[at : opened.start()])
            at, opened = mark.end(), None
    kept.append(text[at:])
    return _OUR_LINE.sub("", "".join(kept))


# -- handles ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NamedPages:
    """Pages that a text names by a handle."""

    written: str
    """The handle as it stands in the text, with its range."""
    start: int
    mention: BlockMention | HandleMention


_SHORT = re.compile(
    r"(?<![A-Za-z0-9_./\\#:@$%&=+*<>-])p[0-9]{1,9}"
    r"(?:-p[0-9]{1,9}|\#[LC][0-9]{1,9}(?:-[LC]?[0-9]{1,9})?)?"
    r"(?![A-Za-z0-9_%(\[=#]|[./\\:@*+-][A-Za-z0-9_]|[ \t]*(?:[-+*/<>]?=|->))"
)
_CODE_LINE = re.compile(
    r"[={};]|->|\w\(|^[ \t]*(?:import|from|def|class|return|if|elif|else|for|while|let|const|var|func|fn|type|case)\b",
)
_USUAL_NUMBERS = frozenset(("p0", "p1", "p2", "p3", "p4", "p50", "p75", "p90", "p95", "p98", "p99", "p999", "p9999"))
_MEANS_A_PAGE = re.compile(
    r"(?:\b(?:expand|open|show|read|see|recall|fetch|restore|load|pages?|blocks?|handles?|from page|cgk_expand)"
    r"|展开|打开|取回|召回|恢复|查看|看看|看下|看|读取|读|页面?|块|句柄)[ \t:：]{0,2}[`\"'(\[“「]?\Z",
    re.IGNORECASE,
)
_JOINT = re.compile(r"[ \t`\"'(\[\])]{0,2}(?:,|、|，|/|&|and|or|和|与|及|跟|到|to)[ \t`\"'(\[\])]{0,2}(?:and |or )?\Z")
"""Between two handles of a list: what is said of the first is said of the second."""
_BEFORE_CHARS = 24
_ALONE = re.compile(r"[`\"'(\[“「]\Z")


def named_pages(text: str) -> tuple[NamedPages, ...]:
    """Handles in the text, in order, each once. O(length).

    A handle of a page, a short one with a range, and a range of blocks count everywhere; a short one alone counts
    in prose. A range upside down is none.
    """
    found = [NamedPages(text[one.start : one.end], one.start, one) for one in find_handles(text)]
    fences: list[tuple[int, int]] | None = None
    listed_to = len(text)
    for match in _SHORT.finditer(text):
        mention = parse_block_handle(match.group())
        if mention is None:
            continue
        if mention.unit is None and "-" not in match.group() and _JOINT.match(text, listed_to, match.start()) is None:
            if fences is None:
                fences = [(fence.start, fence.end) for fence in find_fences(text)]
            if not _is_named(text, match, fences):
                continue
        listed_to = match.end()
        found.append(NamedPages(match.group(), match.start(), mention))
    first: dict[str, NamedPages] = {}
    for one in sorted(found, key=lambda one: one.start):
        first.setdefault(one.written, one)
    return tuple(first.values())


def _is_named(text: str, match: re.Match[str], fences: list[tuple[int, int]]) -> bool:
    """Whether a short handle without a range is one, and no word of its own."""
    start, end = match.span()
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    if line.strip(" \t`\"'()[]“”「」,，.。?？") == match.group():
        return True
    before = text[max(line_start, start - _BEFORE_CHARS) : start]
    if _MEANS_A_PAGE.search(before) is not None:
        return True
    is_bracketed = _ALONE.search(before) is not None and text[end : end + 1] in tuple("`\"')]”」")
    if match.group() in _USUAL_NUMBERS and not is_bracketed:
        return False
    in_fence = any(first <= start < last for first, last in fences)
    return not in_fence and _CODE_LINE.search(line) is None


# -- the past ---------------------------------------------------------------------------------------

_PROSE_CHARS = 3000
"""At each end of a text: a request stands in front of what was pasted or behind it."""
_LONGEST_SENTENCE = 400
"""A longer one is pasted text: what it refers to is not the session."""
_QUOTED = ("```", "~~~", ">")
_PAST_DEICTICS = tuple(pattern for pattern in DEICTIC_PATTERNS if pattern.startswith(("上面", "刚", "你(?:刚", "前面")))
"""The patterns of the topic gate that point at what was said; the others point at what is being talked about."""
_PAST = re.compile(
    "|".join(f"(?:{pattern})" for pattern in _PAST_DEICTICS) + r"|上一?(?:轮|版|遍)|早先|起初|当时|原先|那次|那会儿?"
    r"|\b(?:(?:the|our|your|my) (?:previous|last|earlier|first|original|old)"
    r"|last (?:run|turn|attempt|session|night|try)|a while ago|(?:minutes|hours|days|turns) ago"
    r"|at the (?:start|beginning)|already (?:did|fixed|saw|seen|tried|found)|used to|as before|like before|from before"
    r")\b"
)


def past_sentences(text: str) -> tuple[str, ...]:
    """Sentences of the text that refer to something said or done before, in order.

    Simplified and traditional Chinese, English, Japanese, Korean; code and quoted lines are not looked at. O(length).
    """
    if len(text) > 2 * _PROSE_CHARS:
        text = f"{text[:_PROSE_CHARS]}\n{text[-_PROSE_CHARS:]}"
    found: list[str] = []
    for sentence in split_sentences(text):
        if len(sentence) > _LONGEST_SENTENCE or sentence.startswith(_QUOTED) or _CODE_LINE.search(sentence) is not None:
            continue
        normal = simplify_han(normalise_text(sentence)).lower()
        if _PAST.search(normal) is not None or has_recall(normal):
            found.append(sentence)
    return tuple(found)
