"""Sentence-level pruning inside one block (DESIGN.md 4.6, SPEC.md 3.5).

Per side the best three sentences by the weight of the query anchors they hold, printed in
order; the user's question and the assistant's first sentence always stay. Fenced code is one
unit. A side of at most three units stays byte-identical.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from context_gatekeeper.core.text import cut_head_tail, split_sentences

__all__ = ["PRUNE_PARAMS", "PruneParams", "PrunedBlock", "prune_block", "shrink_to_tokens"]


@dataclass(frozen=True, slots=True)
class PruneParams:
    """Numbers of DESIGN.md 4.6."""

    max_sentences: int = 3
    max_unit_chars: int = 2000
    """A longer unit (a line without an end, a big code block) is cut to head and tail."""


PRUNE_PARAMS = PruneParams()


@dataclass(frozen=True, slots=True)
class PrunedBlock:
    """What is left of a block."""

    user: str
    assistant: str


def prune_block(
    user_text: str,
    assistant_text: str,
    anchor_weights: Mapping[str, float],
    find_anchors: Callable[[str], Collection[str]],
    params: PruneParams = PRUNE_PARAMS,
) -> PrunedBlock | None:
    """Shorten a block to what answers the query; None when nothing but blanks is left.

    Args:
        user_text: the user's side.
        assistant_text: the assistant's side.
        anchor_weights: query anchor -> weight.
        find_anchors: query anchors in a sentence.
        params: how many sentences stay.
    """

    def weigh(sentence: str) -> float:
        return sum(anchor_weights[term] for term in find_anchors(sentence))

    user = _prune_side(user_text, weigh, _question_place, params)
    assistant = _prune_side(assistant_text, weigh, lambda _: 0, params)
    if not user.strip() and not assistant.strip():
        return None
    return PrunedBlock(user, assistant)


def _question_place(units: list[str]) -> int:
    """Place of the user's question: the last unit that ends as one, else the last unit."""
    for place in range(len(units) - 1, -1, -1):
        if units[place].rstrip("\"'\u201d\u2019)\uff09 ").endswith(("?", "\uff1f", "吗", "呢")):
            return place
    return len(units) - 1


def _prune_side(
    text: str, weigh: Callable[[str], float], place_kept: Callable[[list[str]], int], params: PruneParams
) -> str:
    units = split_sentences(text)
    if len(units) <= params.max_sentences and len(text) <= params.max_unit_chars:
        return text
    weights = [weigh(unit) for unit in units]
    best = sorted((place for place, weight in enumerate(weights) if weight > 0.0), key=lambda one: (-weights[one], one))
    kept = {place_kept(units), *best[: params.max_sentences]} if units else set()
    for place in list(kept):
        if units[place].endswith((":", "\uff1a")) and place + 1 < len(units) and units[place + 1].startswith(("```", "~~~")):
            kept.add(place + 1)
    return "\n".join(cut_head_tail(units[place], params.max_unit_chars) for place in sorted(kept))


def shrink_to_tokens(
    user_text: str, assistant_text: str, limit_tokens: int, count_tokens: Callable[[str], int]
) -> tuple[str, str] | None:
    """Head and tail of both sides within ``limit_tokens``; None when not even a word of either fits.

    The user's side gets up to half of the room. Measured by ``count_tokens``; O(log(length)) counts.
    """
    user = _cut_to(user_text, max(limit_tokens // 2, limit_tokens - count_tokens(assistant_text)), count_tokens)
    assistant = _cut_to(assistant_text, limit_tokens - count_tokens(user), count_tokens)
    if not user.strip() and not assistant.strip():
        return None
    return user, assistant


def _cut_to(text: str, limit_tokens: int, count_tokens: Callable[[str], int]) -> str:
    if count_tokens(text) <= limit_tokens:
        return text
    least, most = 0, len(text)
    while least < most:
        middle = (least + most + 1) // 2
        if count_tokens(cut_head_tail(text, middle)) <= limit_tokens:
            least = middle
        else:
            most = middle - 1
    cut = cut_head_tail(text, least)
    return cut if count_tokens(cut) <= limit_tokens else ""
