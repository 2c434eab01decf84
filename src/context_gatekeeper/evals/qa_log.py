"""A conversation as the gatekeeper got it, with the way back to the file's lines."""

from __future__ import annotations

from collections.abc import Sequence

from context_gatekeeper.core.text import split_sentences
from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.evals.datasets import EvalTurn
from context_gatekeeper.types import RecallHit, Role

__all__ = ["LoggedTurns", "squeeze_spaces"]


def squeeze_spaces(text: str) -> str:
    """``text`` with every run of white space as one blank."""
    return " ".join(text.split())


class LoggedTurns:
    """Turns added so far. An *item* is what a ranking ranks: a line (unit ``turn``) or a pair (``block``)."""

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.last_time: float | None = None
        self.line_ids: dict[str, int] = {}
        """Line id -> turn id, in the order added."""
        self._item_of_page: list[tuple[str | None, str | None]] = []
        self._sides: dict[str, list[tuple[int, Role, str]]] = {}
        self._texts: dict[str, list[str]] = {}
        self._tokens: dict[str, int] = {}

    def add(self, turn: EvalTurn, turn_id: int) -> None:
        """Note a turn that ``add_turn`` stored as ``turn_id``."""
        if turn.time is not None:
            self.last_time = turn.time
        items: list[str | None] = []
        for line, role in ((turn.user, Role.USER), (turn.assistant, Role.ASSISTANT)):
            if line is None:
                items.append(None)
                continue
            self.line_ids[line.line_id] = turn_id
            self._sides.setdefault(line.line_id, []).append((turn_id, role, line.text))
            item = str(turn_id) if self.unit == "block" else line.line_id
            self._texts.setdefault(item, []).append(line.text)
            items.append(item)
        self._item_of_page.append((items[0], items[1]))

    def ranked_items(self, hits: Sequence[RecallHit]) -> list[str]:
        """Items in the order of their best page."""
        pages = (self._item_of_page[hit.turn_id][hit.role is Role.ASSISTANT] for hit in hits)
        return list(dict.fromkeys(item for item in pages if item is not None))

    def gold_items(self, evidence: Sequence[str]) -> tuple[str, ...]:
        """Items that hold the evidence; what is not in the log yet stays as it is, so that it counts as missed."""
        if self.unit != "block":
            return tuple(evidence)
        return tuple(
            dict.fromkeys(str(self.line_ids[one]) if one in self.line_ids else f"line {one}" for one in evidence)
        )

    def texts(self) -> dict[str, str]:
        """Item -> text, oldest first."""
        return {item: "\n".join(parts) for item, parts in self._texts.items()}

    def count_tokens(self, item: str) -> int:
        """Fitted estimate of an item's tokens."""
        tokens = self._tokens.get(item)
        if tokens is None:
            tokens = self._tokens[item] = sum(map(estimate_tokens, self._texts[item]))
        return tokens

    def is_kept(self, line_id: str, sent: dict[tuple[int, Role], str]) -> tuple[bool, bool]:
        """(whether a sentence of the line is in what was sent of its own side, whether its whole text is).

        ``sent`` maps (turn id, side) to text with spaces squeezed. A line without a sentence
        is there when its block is.
        """
        sides = [(sent.get((turn_id, role)), text) for turn_id, role, text in self._sides[line_id]]
        whole = all(side is not None and squeeze_spaces(text) in side for side, text in sides)
        return whole or any(_holds_sentence(side, text) for side, text in sides if side is not None), whole


def _holds_sentence(side: str, text: str) -> bool:
    return any(squeeze_spaces(sentence) in side for sentence in split_sentences(text))
