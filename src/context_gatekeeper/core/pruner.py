"""Sentence-level pruning inside one block (DESIGN.md 4.6, SPEC.md 3.5).

Per side the best three units by the weight of the query anchors they hold, printed in order; the
user's question and the assistant's first unit stay as well. A unit is a sentence, or a block of
fenced code together with the line that announces it. A side of at most three units stays
byte-identical.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from context_gatekeeper.core.cuts import cut_head_tail
from context_gatekeeper.core.fences import is_fence
from context_gatekeeper.core.text import sentence_spans

__all__ = ["PRUNE_PARAMS", "PruneParams", "PrunedBlock", "prune_block", "shrink_to_tokens"]


@dataclass(frozen=True, slots=True)
class PruneParams:
    """Numbers of DESIGN.md 4.6."""

    max_sentences: int = 3
    """Units a side that stay for their anchors; also the size up to which a side stays whole."""
    max_unit_chars: int = 2000
    """A longer unit (a line without an end, a big block of code) is cut to head and tail: about 500 tokens."""


PRUNE_PARAMS = PruneParams()


@dataclass(frozen=True, slots=True)
class PrunedBlock:
    """What is left of a block."""

    user: str
    assistant: str
    user_kept: tuple[int, ...] = ()
    """Places of the kept units in ``split_sentences`` of the side, ascending."""
    assistant_kept: tuple[int, ...] = ()


def prune_block(
    user_text: str,
    assistant_text: str,
    query_anchor_weights: Mapping[str, float],
    find_anchors: Callable[[str], Collection[str]],
    params: PruneParams = PRUNE_PARAMS,
) -> PrunedBlock | None:
    """Shorten a block to what answers the query; None when both sides are blank.

    Args:
        user_text: the user's side.
        assistant_text: the assistant's side.
        query_anchor_weights: query anchor -> weight, of every kind; exact terms count by theirs.
        find_anchors: the query's anchors in a sentence; others are ignored, each counts once.
        params: how much stays.

    Ties of weight go to the earlier unit. Neighbours keep the text between them, others meet at a line
    break. O(length of both sides). Source: DESIGN.md 4.6, SPEC.md 3.5, readings 30 to 32.
    """
    if not user_text.strip() and not assistant_text.strip():
        return None

    def weigh(sentence: str) -> float:
        return sum(query_anchor_weights.get(anchor, 0.0) for anchor in set(find_anchors(sentence)))

    user, user_kept = _prune_side(user_text, weigh, _question_place, params)
    assistant, assistant_kept = _prune_side(assistant_text, weigh, _first_place, params)
    return PrunedBlock(user, assistant, user_kept, assistant_kept)


_QUESTION_ENDS = ("?", "\uff1f", "\u061f", "\u5417", "\u55ce", "\u5462")
"""Question marks, and the Chinese particles 吗 (嗎) 呢 with which a question without a mark ends."""
_BEHIND_AN_END = "\"'\u201d\u2019\u300d\u300f)\uff09\u3002.!\uff01 "


def _question_place(units: Sequence[str], weights: Sequence[float]) -> int:
    """Place of the user's question: the weightiest, else last, unit that ends as one, else the last unit."""
    places = [place for place, unit in enumerate(units) if unit.rstrip(_BEHIND_AN_END).endswith(_QUESTION_ENDS)]
    return max(places, key=lambda place: (weights[place], place), default=len(units) - 1)


def _first_place(units: Sequence[str], weights: Sequence[float]) -> int:
    del units, weights
    return 0


def _prune_side(
    text: str,
    weigh: Callable[[str], float],
    find_constant: Callable[[Sequence[str], Sequence[float]], int],
    params: PruneParams,
) -> tuple[str, tuple[int, ...]]:
    """The side's remaining text and the places of its units."""
    spans = sentence_spans(text)
    units = [text[start:end] for start, end in spans]
    if len(units) <= params.max_sentences:
        kept: list[int] = list(range(len(units)))
        if all(len(unit) <= params.max_unit_chars for unit in units):
            return text, tuple(kept)
    else:
        kept = _choose(units, weigh, find_constant, params.max_sentences)
    return _print(text, spans, kept, params.max_unit_chars), tuple(kept)


def _choose(
    units: Sequence[str],
    weigh: Callable[[str], float],
    find_constant: Callable[[Sequence[str], Sequence[float]], int],
    max_sentences: int,
) -> list[int]:
    """Places of the units that stay, ascending."""
    weights = [weigh(unit) for unit in units]
    announced = {
        place
        for place in range(1, len(units))
        if is_fence(units[place]) and units[place - 1].endswith((":", "\uff1a")) and not is_fence(units[place - 1])
    }
    # Code and the line that announces it are one unit: found by the words of both.
    joint = {
        place: weight + (weights[place + 1] if place + 1 in announced else 0.0)
        for place, weight in enumerate(weights)
        if place not in announced
    }
    ranked = sorted((place for place, weight in joint.items() if weight > 0.0), key=lambda one: (-joint[one], one))
    best = ranked[:max_sentences]
    kept = {find_constant(units, weights), *best}
    kept.update(place + 1 for place in tuple(kept) if place + 1 in announced)
    # Code right behind a sentence that was chosen for its anchors is what it talks about.
    kept.update(place + 1 for place in best if place + 1 < len(units) and is_fence(units[place + 1]))
    return sorted(kept)


def _print(text: str, spans: Sequence[tuple[int, int]], kept: Sequence[int], max_unit_chars: int) -> str:
    pieces: list[str] = []
    last = -1
    for place in kept:
        start, end = spans[place]
        if pieces:
            pieces.append(text[spans[last][1] : start] if place == last + 1 else "\n")
        pieces.append(cut_head_tail(text[start:end], max_unit_chars))
        last = place
    return "".join(pieces)


def shrink_to_tokens(
    user_text: str, assistant_text: str, limit_tokens: int, count_tokens: Callable[[str], int]
) -> tuple[str, str] | None:
    """Head and tail of each side, a mark between them, that together take at most ``limit_tokens``.

    A side that fits its share stays as it is: the user's share is half of the limit, or what the assistant
    leaves. None when nothing visible of either side fits. Measured by ``count_tokens``, whatever it counts;
    O(log(length)) counts.
    """
    user_limit = max(limit_tokens // 2, limit_tokens - count_tokens(assistant_text))
    user = _cut_to_tokens(user_text, user_limit, count_tokens)
    assistant = _cut_to_tokens(assistant_text, limit_tokens - count_tokens(user), count_tokens)
    return (user, assistant) if user.strip() or assistant.strip() else None


def _cut_to_tokens(text: str, limit_tokens: int, count_tokens: Callable[[str], int]) -> str:
    total = count_tokens(text)
    if total <= limit_tokens:
        return text
    if limit_tokens <= 0:
        return ""
    best, least, most = "", 0, len(text) - 1
    # Tokens lie nearly evenly: a first look at the limit's share of the text saves most of the counting.
    middle = min(most, len(text) * limit_tokens // total)
    while least < most:
        cut = cut_head_tail(text, middle)
        if count_tokens(cut) <= limit_tokens:
            best, least = cut, middle
        else:
            most = middle - 1
        middle = (least + most + 1) // 2
    return best
