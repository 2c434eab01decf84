"""The chat gatekeeper at each call: the newest exchange whole, and of the rest what `select` returns.

The real `ContextGatekeeper`, in memory, profile ``strict``, with its own budget. An exchange of the
session is a turn: the user's side is what went into a call (texts, tool results), the assistant's
side what the model wrote there (text, arguments of calls; no thinking, which nobody can quote).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from context_gatekeeper.core.evidence import argument_texts, read_evidence
from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.engine.session_log import OUTPUT_KINDS, Segment, SessionLog, Slice, SliceKind
from context_gatekeeper.engine.window import Entry, EntryForm
from context_gatekeeper.gatekeeper import ContextGatekeeper
from context_gatekeeper.replay.policies import Request, WindowPolicy
from context_gatekeeper.types import BlockKind

__all__ = ["Reselect"]

SIDE_CHARS = 8_000
"""Most of one side of a turn that the gatekeeper is given: a call may be answered by megabytes. What is behind
them is not sent again, so that it can fault. (Of 4,000, 8,000 and 20,000 this one misses least.)"""
QUERY_CHARS = 2_000
"""Of the newest input, and of the newest text that a person typed."""
_ROOM_TOKENS = 1_000_000
"""A budget that every turn fits in: while turns are added nothing is to be said of those above the real one."""
_COUNTS_KEPT = 256


class Reselect(WindowPolicy):
    """Selects afresh for each call.

    What it sends changes from call to call, so it goes behind the cached part, at the plain price.
    Pages that a fault brought back stay for that call.
    """

    def __init__(self, log: SessionLog) -> None:
        super().__init__(log)
        # The same counts as the default's: one selection counts its query again and again.
        self._gatekeeper = ContextGatekeeper(token_counter=lru_cache(maxsize=_COUNTS_KEPT)(estimate_tokens))
        self._budget_tokens = self._gatekeeper.token_budget
        self._asked: list[str] = []
        """What went into the newest call; after it, the user's side of its turn."""
        self._inputs: list[str] = []
        self._outputs: list[str] = []
        self._newest: list[Slice] = []
        """What came since the newest call: its output, and what went in behind it."""
        self._typed = ""
        self._typed_count = 0
        self._wrote: int | None = None
        """Slice of the newest output."""
        self._slice_of_turn: list[int | None] = []
        """For each of the gatekeeper's turns."""
        self._block_tokens: list[tuple[int | None, int]] = []
        """Of the newest request's blocks: a slice of the turn, and tokens."""

    def add(self, pieces: Sequence[Slice]) -> None:
        """See `Policy.add`."""
        self._newest += pieces
        for piece in pieces:
            if self.log.segments[piece.segment].kind in OUTPUT_KINDS:
                self._wrote = piece.number
        typed: list[str] = []
        for number in dict.fromkeys(piece.segment for piece in pieces):
            segment = self.log.segments[number]
            if segment.kind in OUTPUT_KINDS:
                self._outputs += _written(segment)
            else:
                self._inputs.append(segment.text)
                typed += [segment.text] if segment.kind is SliceKind.USER else []
        if typed and len(self.log.user_turns) > self._typed_count:
            self._typed = _side(typed, QUERY_CHARS)
        self._typed_count = len(self.log.user_turns)

    def request(self, *, is_cold: bool) -> Request:
        """See `Policy.request`."""
        if self._asked or self._outputs:
            self._gatekeeper.token_budget = _ROOM_TOKENS
            self._gatekeeper.add_turn(_side(self._asked, SIDE_CHARS), _side(self._outputs, SIDE_CHARS))
            self._gatekeeper.token_budget = self._budget_tokens
            self._slice_of_turn.append(self._wrote)
        newest_turn = self._gatekeeper.turn_count - 1
        blocks = self._gatekeeper.select(self._query())
        entries = [self._block_entry(block, is_newest=block["turn_id"] == newest_turn) for block in blocks]
        self._block_tokens = [
            (self._slice_of_turn[block["turn_id"]], entry.tokens) for block, entry in zip(blocks, entries, strict=True)
        ]
        entries += [self.window.make(EntryForm.RAW, piece.tokens, [piece.number]) for piece in self._newest]
        self.window.replace_all(entries)
        self._asked, self._inputs, self._outputs, self._newest = self._inputs, [], [], []
        self._holdings.look()
        return Request(self.window.tokens, 0, volatile_tokens=self.window.tokens)

    def other_task_tokens(self) -> int | None:
        """See `Policy.other_task_tokens`; what is selected of older turns counts too."""
        log = self.log
        older = sum(
            tokens
            for number, tokens in self._block_tokens
            if number is not None and log.is_of_other_task(log.slices[number])
        )
        return older + self._holdings.other_task_tokens()

    def _query(self) -> str:
        query = _side(self._inputs, QUERY_CHARS)
        return query if self._typed in query else f"{query}\n{self._typed}"

    def _block_entry(self, block: dict[str, Any], *, is_newest: bool) -> Entry:
        """What stands of a turn. The newest turn's output is sent whole anyway."""
        text = block["user"] if is_newest else f"{block['user']}\n{block['assistant']}"
        found = read_evidence(text)
        units = [n for name in (*found.lines, *found.runs) if (n := self.log.unit_id(name)) is not None]
        tokens = self.log.count(text) if is_newest else round(block["tokens"] * self.log.token_factor)
        return self.window.make(EntryForm.HEAD, tokens, (), sorted(set(units)))


def _written(segment: Segment) -> list[str]:
    if segment.kind is SliceKind.THINKING:
        return []
    if segment.block.kind is BlockKind.TOOL_CALL:
        return [segment.block.name, *argument_texts(segment.text)]
    return [segment.text]


def _side(texts: Sequence[str], most_chars: int) -> str:
    """The texts one below another, the first ``most_chars`` characters."""
    kept: list[str] = []
    left = most_chars
    for text in texts:
        if left <= 0:
            break
        kept.append(text[:left])
        left -= len(text) + 1
    return "\n".join(kept)
