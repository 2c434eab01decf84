"""What a page is worth to the next request: information gain, relevance, and the form it would take.

Nothing here reads a clock or a store: IDF and the anchors of the window are handed in. A page's
anchors are those of its readable part; hashes, encoded bytes and minified lines are left out, because
garbage that occurs once has the highest IDF of all. Known limits: a paraphrase counts as new, and a
newer fact that contradicts an older one looks merely new, so that ties go to the newer page.

Source: the scheduling design, section 7 (relevance x information gain), and section 1 of the paging notes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import exp2, log

from context_gatekeeper.core.anchor import scan_anchors

__all__ = [
    "PAGE_VALUE_PARAMS",
    "NewItems",
    "PageForm",
    "PageTies",
    "PageValue",
    "PageValueParams",
    "containment",
    "information_gain",
    "page_anchors",
    "page_value",
    "readable_text",
    "relevance",
]


@dataclass(frozen=True, slots=True)
class PageValueParams:
    """Numbers of the paging notes."""

    most_anchors: int = 64
    """Anchors a page may count, those with the highest IDF x (1 + ln tf) first."""
    longest_line_chars: int = 500
    """Longer lines are minified code or data and give no anchors."""
    new_item_gain: float = 0.2
    """Gain for each kind of new item: handle, error line, decision mark, number."""
    superseded_from: float = 0.9
    """A page of whose anchors a newer page holds this share tells nothing any more."""
    full_score: float = 3.4
    """Ranking score of a page that answers the query whole: relevance 1."""
    same_goal: float = 0.7
    same_file: float = 0.6
    same_task: float = 0.3
    recency: float = 0.2
    """Of a page used this turn; halves every ``recency_turns``. It breaks ties and nothing else."""
    recency_turns: float = 8.0
    known_share: float = 0.1
    """What a page is worth when it tells nothing new, as a share of its relevance."""
    raw: float = 0.6
    handle: float = 0.4
    card: float = 0.8
    knowledge: float = 1.0
    """The four forms' share of a page's worth as background."""


PAGE_VALUE_PARAMS = PageValueParams()


# -- anchors of a page ------------------------------------------------------------------------------

_HASH = re.compile(r"(?<![0-9A-Za-z])(?:0[xX])?[0-9A-Fa-f]{16,}(?![0-9A-Za-z])")
_UUID = re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Za-z])")
_ENCODED = re.compile(r"[A-Za-z0-9+/=_-]{20,}")
_ALNUM_RUN = re.compile(r"[A-Za-z0-9]{16,}")
_ENCODED_SWITCHES = 0.4
"""Random base64 changes between capitals, small letters and digits at .62 of its places, a long camel-case name at
.3 of them or less."""


def readable_text(text: str, params: PageValueParams = PAGE_VALUE_PARAMS) -> str:
    """``text`` without overlong lines, hex of 16 digits or more, UUIDs and base64-like runs. O(len(text))."""
    lines = (line for line in text.splitlines() if len(line) <= params.longest_line_chars)
    kept = _HASH.sub(" ", _UUID.sub(" ", "\n".join(lines)))
    return _ENCODED.sub(lambda found: " " if _is_encoded(found.group()) else found.group(), kept)


def _is_encoded(token: str) -> bool:
    """Whether the longest unbroken run of the token changes its kind of character as random bytes do."""
    run = max(_ALNUM_RUN.findall(token), key=len, default="")
    switches = sum(_class_of(one) != _class_of(other) for one, other in pairwise(run))
    return switches > _ENCODED_SWITCHES * len(run) > 0.0


def _class_of(char: str) -> int:
    return 0 if char.isdigit() else 1 if char.isupper() else 2


def page_anchors(
    text: str,
    idf: Callable[[str], float],
    params: PageValueParams = PAGE_VALUE_PARAMS,
    *,
    counts: Mapping[str, int] | None = None,
) -> dict[str, float]:
    """The page's most telling anchors with their IDF, at most 64, best first.

    Args:
        text: the page's original text.
        idf: anchor term -> IDF over pages, >= 0; terms with 0 are left out.
        params: caps.
        counts: of the terms of ``text``, where it has been scanned: a text that is readable as a whole is not again.

    Ties of IDF x (1 + ln tf) go to the term that comes first in the text. O(len(text)).
    """
    readable = readable_text(text, params)
    if counts is None or readable != text.removesuffix("\n"):
        counts = scan_anchors(readable).counts
    weighted = [(idf(term), count, term) for term, count in counts.items()]
    weighted.sort(key=lambda row: -row[0] * (1.0 + log(row[1])))
    return {term: weight for weight, _, term in weighted[: params.most_anchors] if weight > 0.0}


# -- information gain -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewItems:
    """How many items of a page stand nowhere in the window."""

    handles: int = 0
    error_lines: int = 0
    decision_marks: int = 0
    numbers: int = 0

    def kinds(self) -> int:
        """Kinds of which there is one at least, 0 to 4: a table of numbers is no more news than one."""
        return sum(count > 0 for count in (self.handles, self.error_lines, self.decision_marks, self.numbers))


NOTHING_NEW = NewItems()


def containment(page: Mapping[str, float], other: Collection[str]) -> float:
    """Share of the page's IDF mass that ``other`` holds, in [0, 1]; 0.0 for a page without anchors."""
    mass = sum(page.values())
    return sum(weight for term, weight in page.items() if term in other) / mass if mass > 0.0 else 0.0


def information_gain(
    page: Mapping[str, float],
    window: Collection[str],
    new_items: NewItems = NOTHING_NEW,
    newer_pages: Iterable[Collection[str]] = (),
    params: PageValueParams = PAGE_VALUE_PARAMS,
) -> float:
    """How much of a page the window does not tell, in [0, 1].

    Args:
        page: anchor -> IDF, as `page_anchors` gives them.
        window: anchors that stand in the window.
        new_items: handles, error lines, decision marks and numbers that do not.
        newer_pages: anchors of newer pages; one that holds .9 of the page's mass makes the gain 0.
        params: numbers.

    O(anchors of the page x newer pages).
    """
    if any(containment(page, newer) >= params.superseded_from for newer in newer_pages):
        return 0.0
    new_share = 1.0 - containment(page, window) if page else 0.0
    return min(1.0, new_share + params.new_item_gain * new_items.kinds())


# -- relevance and worth ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PageTies:
    """What ties a page to the running turn, beside its words."""

    is_named: bool = False
    """Its handle stands in the turn."""
    same_goal: bool = False
    same_file: bool = False
    same_task: bool = False


UNTIED = PageTies()


def relevance(ranking_score: float, ties: PageTies = UNTIED, params: PageValueParams = PAGE_VALUE_PARAMS) -> float:
    """How much a page belongs to the turn, in [0, 1]: the strongest tie counts, ties do not add up.

    Args:
        ranking_score: of `core.sparse`, >= 0; 0 when the page was not found.
        ties: goal, file, task, handle.
        params: numbers.
    """
    return max(
        min(1.0, max(0.0, ranking_score) / params.full_score),
        1.0 if ties.is_named else 0.0,
        params.same_goal if ties.same_goal else 0.0,
        params.same_file if ties.same_file else 0.0,
        params.same_task if ties.same_task else 0.0,
    )


class PageForm(StrEnum):
    """The form a page would take in the window."""

    RAW = "raw"
    HANDLE = "handle"
    CARD = "card"
    KNOWLEDGE = "knowledge"


@dataclass(frozen=True, slots=True, order=True)
class PageValue:
    """Worth of one page in one form; compares by worth, then recency."""

    worth: float
    """>= 0: relevance x (known share + information gain) x form."""
    recency: float
    """In [0, .2]: breaks ties, so that of two pages that say the opposite the newer comes first."""


def page_value(
    page_relevance: float,
    gain: float,
    form: PageForm,
    *,
    turns_ago: int = 0,
    is_named: bool = False,
    lacks_exact_term: bool = False,
    params: PageValueParams = PAGE_VALUE_PARAMS,
) -> PageValue:
    """Worth of a page in one form.

    Args:
        page_relevance: of `relevance`, in [0, 1].
        gain: of `information_gain`, in [0, 1].
        form: of the page in the window.
        turns_ago: turns since the page was last used, >= 0.
        is_named: its handle stands in the turn: then the raw form counts whole.
        lacks_exact_term: an identifier, version, number or phrase of the query stands in the page but not in this
            form of it. Such a card or handle is worth nothing, so that the raw form wins.
        params: numbers.
    """
    shares = {
        PageForm.RAW: 1.0 if is_named else params.raw,
        PageForm.HANDLE: params.handle,
        PageForm.CARD: params.card,
        PageForm.KNOWLEDGE: params.knowledge,
    }
    share = 0.0 if lacks_exact_term and form is not PageForm.RAW else shares[form]
    recency = params.recency * exp2(-max(0, turns_ago) / params.recency_turns)
    return PageValue(page_relevance * (params.known_share + gain) * share, recency)
