"""A message as its writer's own sentences, in English and both spellings of Chinese.

Only words that somebody wrote count: fenced code, quoted lines, what the agent's program put around a message and what
a user pasted are blanked out, and the marks of a decision or constraint are looked for outside quotation marks and
inline code. Every offset stays true. Source: section 1 of the paging notes (memory card).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from context_gatekeeper.core.background import simplify_han
from context_gatekeeper.core.fences import find_fences
from context_gatekeeper.core.text import sentence_spans

__all__ = [
    "ANNOUNCES",
    "LIST_ITEM",
    "Prose",
    "holds_any",
    "is_hypothetical",
    "is_question",
    "read_prose",
    "says_enough",
]

ANNOUNCES = re.compile(r"\A[^\n]{0,60}[:：][*_ ]{0,3}\Z")
"""A sentence that only says what comes below it."""
LIST_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,2}[.)、]|[（(]\d{1,2}[)）])\s{0,3}\S")


@dataclass(frozen=True, slots=True)
class Prose:
    """A message as its writer's own sentences."""

    text: str
    """As it stands in the page."""
    quiet: str
    """The same length, simplified Chinese; what its writer did not say himself is blank."""
    spans: tuple[tuple[int, int], ...]
    """(start, end) of the sentences, ascending."""


# -- what its writer did not say ----------------------------------------------------------------

_PROGRAM_TAG = re.compile(
    r"<(?P<name>command-(?:name|message)|local-command-[a-z]{1,12}|system-reminder|task-notification|bash-(?:input"
    r"|stdout|stderr)"
    r"|user-prompt-submit-hook|environment_context|user_instructions|INSTRUCTIONS|ide_[a-z_]{1,24}|persisted-output"
    r"|file_contents|attachment)\b[^<>\n]{0,200}>"
)
_PROGRAM_LINE = re.compile(
    r"^(?:\[(?:Request interrupted|image|Image|no result)[^\]\n]{0,80}\]|Operation stopped by hook: "
    r"|Caveat: The messages below)",
)
_QUOTED_LINE = re.compile(r"^[ \t]*>[^\n]*", re.MULTILINE)
_PASTED_LINE = re.compile(
    r"[+-] ?\d{1,6} |[+-] .*[;{}]\Z|@@ |\d{4}[-/]\d\d[-/]\d\d[T ]\d|\[?\d\d:\d\d:\d\d|at \S{1,200} ?\(|File \""
    r"|Traceback "
    r"|(?:import|from|def|class|func|const|var|return|public|private|package|type|//|/\*|#include|#!)[ /*].*[;{(:)]\Z"
    r"|[\w./\\-]{2,200}:\d{1,6}(?::\d{1,5})?[: ]|[\u2500-\u259f\u2800-\u28ff\u279c$%]"
    r"|[\w.-]{1,40}@[\w.-]{1,60}[:~ ].*[$#%>]|\|.*\|\Z"
    r"|\w{1,40}(?:Error|Exception): |\d{1,6}(?:\u2192|\t|\. {2,})"
)
_CODE_END = (";", "{", "}")
_QUOTE_MARK = re.compile("[`\"'\u201c\u2018\u300c\u300e]")
_SPOKEN_QUOTE = re.compile(
    r"`[^`\n]{1,300}`|\u201c[^\u201c\u201d\n]{1,300}\u201d|[\u300c\u300e][^\u300c-\u300f\n]{1,300}[\u300d\u300f]"
    r"|(?<![\w\"])\"[^\"\n]{1,300}\"(?!\w)|(?<![\w'])'[^'\n]{1,80}'(?!\w)|\u2018[^\u2018\u2019\n]{1,80}\u2019"
)
_APOSTROPHE = re.compile(r"(?<=\w)\u2019(?=\w)")
_COMMAND_ARGUMENTS = re.compile(r"</?command-args>")


def _blank(found: re.Match[str]) -> str:
    return " " * len(found.group())


def _blank_spans(text: str, spans: list[tuple[int, int]]) -> str:
    """``text`` with the spans, ascending, blank."""
    if not spans:
        return text
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += (text[at:start], " " * (end - start))
        at = end
    return "".join((*parts, text[at:]))


def _quoted_spans(text: str) -> list[tuple[int, int]]:
    """What stands in quotation marks or is inline code."""
    spans: list[tuple[int, int]] = []
    at = 0
    for mark in _QUOTE_MARK.finditer(text):
        if mark.start() >= at and (quoted := _SPOKEN_QUOTE.match(text, mark.start())) is not None:
            spans.append(quoted.span())
            at = quoted.end()
    return spans


def _program_spans(text: str) -> list[tuple[int, int]]:
    """What the agent's program wrapped in its own tags; a tag that never ends stands for itself."""
    spans: list[tuple[int, int]] = []
    at = 0
    unclosed: set[str] = set()
    for tag in _PROGRAM_TAG.finditer(text):
        if tag.start() < at or tag["name"] in unclosed:
            continue
        close = f"</{tag['name']}>"
        end = text.find(close, tag.end())
        if end < 0:
            unclosed.add(tag["name"])
            end = tag.end()
        else:
            end += len(close)
        spans.append((tag.start(), end))
        at = end
    return spans


def _is_pasted(line: str) -> bool:
    return line.endswith(_CODE_END) or _PASTED_LINE.match(line) is not None


def read_prose(text: str, *, by_user: bool) -> Prose:
    """The sentences of a message. O(len(text)).

    Args:
        text: the message.
        by_user: whether a person typed it: then pasted logs, listings and diffs are no words of theirs either.
    """
    quiet = simplify_han(text)
    if "<" in quiet:
        quiet = _blank_spans(quiet, _program_spans(quiet))
        quiet = _COMMAND_ARGUMENTS.sub(_blank, quiet)
    quiet = _blank_spans(quiet, [(fence.start, fence.end) for fence in find_fences(quiet)])
    if ">" in quiet:
        quiet = _QUOTED_LINE.sub(_blank, quiet)
    if by_user:
        if _PROGRAM_LINE.match(quiet):
            quiet = " " * len(quiet)
        quiet = "\n".join([" " * len(line) if _is_pasted(line.strip()) else line for line in quiet.split("\n")])
    spans = tuple(sentence_spans(quiet))
    quiet = _blank_spans(quiet, _quoted_spans(quiet))
    return Prose(text, _APOSTROPHE.sub("'", quiet) if "\u2019" in quiet else quiet, spans)


def holds_any(lowered: str, hints: Iterable[str]) -> bool:
    """Whether one of the hints occurs: ten times faster than the pattern that it goes before."""
    return any(hint in lowered for hint in hints)


_LEAST_LETTERS = 4
_LETTER = re.compile(r"[^\W_]")


def says_enough(quiet: str) -> bool:
    """Whether a sentence has more than three letters of its own."""
    return len(_LETTER.findall(quiet[:60])) >= _LEAST_LETTERS


# -- questions and hypotheticals --------------------------------------------------------------

_QUESTION = re.compile(
    r"\A\W{0,3}(?:why|how|what|which|where|who)\b(?![^?\n]*[.!]\s*\Z)|[?\uff1f][\"'\u201d)\uff09*_ ]*\Z|(?:吗|呢"
    r"|么)[\u3002.\uff01! ]*\Z"
    r"|是不是|要不要|能不能|有没有|可不可以|是否|为什么|怎么"
)
_POLITE_ORDER = re.compile(
    r"\W{0,3}(?:ok(?:ay)?,? |and |so |also |please )?(?:can|could|would|will) (?:you|we)\b",
    re.IGNORECASE,
)
_HYPOTHETICAL = re.compile(
    r"\b(?:if|might|maybe|perhaps|could|whether|unless|suppose|supposing|assuming|hypothetically|wonder(?:ing)?"
    r"|would(?! (?:like|rather)\b)|probably|either)\b"
    r"|如果|假如|要是|假设|倘若|若(?:是|要)|万一|或许|也许|可能|说不定|是否|要不要|能不能|是不是|可以考虑|不知道",
    re.IGNORECASE,
)


def is_question(quiet: str, *, polite: bool = False) -> bool:
    """Whether a sentence asks; "can you ..." orders, which is asking only to a ``polite`` reader."""
    return _QUESTION.search(quiet) is not None and (polite or _POLITE_ORDER.match(quiet) is None)


def is_hypothetical(quiet: str) -> bool:
    """Whether a sentence only plays with a thought."""
    return _HYPOTHETICAL.search(quiet) is not None
