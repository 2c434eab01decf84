"""Memory cards: what a stretch of a session leaves behind when its pages leave the window, by rules only.

Every entry quotes one page, verbatim; everything else about it stands in typed facts. Nothing is summed up in words,
so a card can be checked against its pages, and a card of cards is made again from the pages. Prose without any of the
known marks is not represented; the rendered card says how many turns that leaves out, and where they are.

Linear in the length of the stretch. Source: section 1 of the paging notes (memory card); section 3 of the
scheduling design.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.card_goal import find_ask
from context_gatekeeper.core.card_marks import constraint_mark, find_decisions, says_fixed
from context_gatekeeper.core.card_open_items import TodoLists, find_said_items
from context_gatekeeper.core.card_prose import Prose, is_question, read_prose
from context_gatekeeper.core.card_quotes import quote_span
from context_gatekeeper.core.card_records import (
    CARD_PARAMS,
    CardEntry,
    CardField,
    CardParams,
    CardSource,
    OpenItemFacts,
    PinnedGoal,
    SaidFacts,
)
from context_gatekeeper.core.card_text import LEAST_CARD_TOKENS, render_card
from context_gatekeeper.core.card_values import find_values
from context_gatekeeper.core.card_work import StretchWork, user_reply_start
from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.types import BlockKind, MessageRole

__all__ = ["CardBuilder", "MemoryCard", "build_card", "unverifiable_entries"]


@dataclass(frozen=True, slots=True)
class MemoryCard:
    """What a stretch of one task leaves behind."""

    entries: tuple[CardEntry, ...]
    """Goal, constraints, decisions, files, commands, tests, errors, open items, values; each kind oldest first."""
    handles: tuple[int, ...]
    """Pages that the entries quote, ascending: they must stay as long as the card does."""
    first_page_id: int
    last_page_id: int
    turn_starts: tuple[int, ...]
    """``seq`` of the first block of each turn of the stretch, ascending."""

    def of(self, kind: CardField) -> tuple[CardEntry, ...]:
        """The entries of one field, oldest first."""
        return tuple(entry for entry in self.entries if entry.field is kind)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, one list a field."""
        fields: dict[str, Any] = {kind.value: [entry.to_dict() for entry in self.of(kind)] for kind in CardField}
        return fields | {
            "handles": list(self.handles),
            "first_page_id": self.first_page_id,
            "last_page_id": self.last_page_id,
            "turns": len(self.turn_starts),
        }

    def render(
        self, max_tokens: int = 300, *, handle: str = "", count_tokens: Callable[[str], int] = estimate_tokens
    ) -> str:
        """The card as text of at most ``max_tokens``.

        Constraints, open errors, decisions, files, commands, then the rest; the last line says how many turns no
        shown entry quotes, and gives ``handle``, which expands to the whole stretch.

        Raises:
            ConfigError: less than 40 tokens: the frame alone would not fit.
        """
        if max_tokens < LEAST_CARD_TOKENS:
            raise ConfigError(
                "max_tokens", f"{max_tokens} is no room for a card", f"give it {LEAST_CARD_TOKENS} tokens or more"
            )
        pages = (self.first_page_id, self.last_page_id)
        return render_card(self.entries, pages, self.turn_starts, handle, max_tokens, count_tokens)


def build_card(
    sources: Iterable[CardSource],
    *,
    pinned_goal: PinnedGoal | None = None,
    working_folder: str = "",
    params: CardParams = CARD_PARAMS,
) -> MemoryCard:
    """The memory card of a stretch.

    Args:
        sources: blocks of one task in the order of the session.
        pinned_goal: stands in the place of what the first message asks for.
        working_folder: where relative paths start; "" when it is not known.
        params: limits.

    Thinking, images and messages that no person typed are not read. O(length of the stretch).
    """
    builder = CardBuilder(working_folder, params)
    for source in sources:
        builder.add(source)
    return builder.card(pinned_goal)


class CardBuilder:
    """The card of a stretch that still grows: blocks go in one by one, the card may be asked for at any time.

    Args:
        working_folder: where relative paths start; "" when it is not known.
        params: limits.
    """

    def __init__(self, working_folder: str = "", params: CardParams = CARD_PARAMS) -> None:
        self._stretch = _Stretch(params, StretchWork(params, working_folder), TodoLists(params.sentence_chars))

    def add(self, source: CardSource) -> None:
        """Take the next block of the stretch. O(its length)."""
        self._stretch.add(source)

    def card(self, pinned_goal: PinnedGoal | None = None) -> MemoryCard:
        """The card of all blocks so far; a ``pinned_goal`` stands in the place of what the first message asks for."""
        return self._stretch.card(pinned_goal)


def unverifiable_entries(card: MemoryCard, texts: Mapping[int, str]) -> int:
    """How many entries quote something that does not occur in the page they name, or name no page of ``texts``."""

    def stands(text: str, page_id: int) -> bool:
        return text in texts.get(page_id, "") and bool(text)

    return sum(not all(stands(quote.text, quote.page_id) for quote in entry.all_quotes()) for entry in card.entries)


_ITEM_MARK = re.compile(r"(?:[-*+•]|\d{1,2}[.)、])\s{1,3}(?=\S)")

# -- reading a stretch ------------------------------------------------------------------------


@dataclass(slots=True)
class _Decision:
    entry: CardEntry
    terms: frozenset[str]
    weight: int
    """How many words or runs of Han its terms are."""
    by_user: bool


@dataclass(slots=True)
class _Stretch:
    """Gathers one stretch, block by block."""

    params: CardParams
    work: StretchWork
    todos: TodoLists
    goal: CardEntry | None = None
    decisions: list[_Decision] = field(default_factory=list)
    constraints: dict[str, CardEntry] = field(default_factory=dict)
    values: dict[str, CardEntry] = field(default_factory=dict)
    turn_starts: list[int] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    last_answer: tuple[CardSource, Prose] | None = None
    last_question: tuple[CardSource, Prose] | None = None

    def add(self, source: CardSource) -> None:
        """Take one block."""
        self.pages.append(source.page_id)
        if not self.turn_starts:
            self.turn_starts.append(source.seq)
        if source.kind is BlockKind.TOOL_CALL:
            self.work.add_call(source)
            self.todos.add_call(source)
        elif source.kind is BlockKind.TOOL_RESULT:
            self._add_result(source)
        elif source.kind is BlockKind.TEXT and source.role is MessageRole.USER and not source.origin:
            if source.seq != self.turn_starts[-1]:
                self.turn_starts.append(source.seq)
            self._add_user_text(source, read_prose(source.text, by_user=True))
        elif source.kind is BlockKind.TEXT and source.role is MessageRole.ASSISTANT:
            prose = read_prose(source.text, by_user=False)
            self.last_answer, self.last_question = (source, prose), None
            self._add_decisions(source, prose, by_user=False)
            self._add_values(source, prose)

    def _add_result(self, source: CardSource) -> None:
        reply = user_reply_start(source.text)
        if reply is not None:
            quiet = " " * reply + source.text[reply:]
            self._add_user_words(source, read_prose(quiet, by_user=True))
        self.work.add_result(source)
        self.todos.add_result(source)

    def _add_user_text(self, source: CardSource, prose: Prose) -> None:
        if self.goal is None and (ask := find_ask(prose)) is not None:
            self.goal = self._said(CardField.GOAL, source, ask[:2], self.params.goal_chars, ask[2])
        self.last_question = (source, prose)
        self.work.add_reported_errors(source)
        self._add_user_words(source, prose)

    def _add_user_words(self, source: CardSource, prose: Prose) -> None:
        for start, end in prose.spans:
            quiet = prose.quiet[start:end]
            mark = constraint_mark(quiet)
            if mark is not None:
                entry = self._said(CardField.CONSTRAINT, source, (start, end), self.params.sentence_chars, start + mark)
                if entry is not None:
                    self.constraints.pop(entry.text, None)
                    self.constraints[entry.text] = entry
            if says_fixed(quiet):
                self.work.confirm_fixed(quiet)
        self._add_decisions(source, prose, by_user=True)
        self._add_values(source, prose)

    def _add_decisions(self, source: CardSource, prose: Prose, *, by_user: bool) -> None:
        for start, end, mark in find_decisions(prose, by_user=by_user):
            entry = self._said(CardField.DECISION, source, (start, end), self.params.sentence_chars, mark)
            if entry is not None:
                self._decide(entry, by_user=by_user)

    def _decide(self, entry: CardEntry, *, by_user: bool) -> None:
        """The last decision about the same things wins; an agent's takes no user's place."""
        spans = [
            (start, end, term) for term, start, end in scan_anchors(entry.text).spans if not _MARK_TERM.search(term)
        ]
        terms = frozenset(term for _, _, term in spans)
        decision = _Decision(entry, terms, _places(spans), by_user)
        self.decisions = [
            known
            for known in self.decisions
            if (known.by_user and not by_user) or not _is_about_the_same(known, decision, spans)
        ]
        self.decisions.append(decision)
        if len(self.decisions) > _MOST_DECISIONS:
            oldest = next((place for place, known in enumerate(self.decisions) if not known.by_user), 0)
            del self.decisions[oldest]

    def _add_values(self, source: CardSource, prose: Prose) -> None:
        for start, end, value in find_values(prose):
            entry = self._said(CardField.VALUE, source, (start, end), self.params.sentence_chars)
            known = self.values.get(value)
            is_users = known is not None and known.note == MessageRole.USER.value
            if entry is not None and not (is_users and source.role is MessageRole.ASSISTANT):
                self.values.pop(value, None)
                self.values[value] = entry

    def _said(
        self, kind: CardField, source: CardSource, span: tuple[int, int], limit_chars: int, mark: int | None = None
    ) -> CardEntry | None:
        item = _ITEM_MARK.match(source.text, *span) if kind is not CardField.VALUE else None
        quoted = quote_span(source.text, item.end() if item is not None else span[0], span[1], limit_chars, mark)
        if quoted is None:
            return None
        start, end, is_cut = quoted
        by = MessageRole.ASSISTANT if source.role is MessageRole.ASSISTANT else MessageRole.USER
        return CardEntry(kind, source.text[start:end], source.page_id, source.seq, SaidFacts(by, is_cut))

    # -- the card -----------------------------------------------------------------------------

    def card(self, pinned_goal: PinnedGoal | None) -> MemoryCard:
        """The card of everything taken so far."""
        goal = self.goal
        if pinned_goal is not None:
            facts = SaidFacts(MessageRole.USER, goal_id=pinned_goal.goal_id)
            goal = CardEntry(CardField.GOAL, pinned_goal.title, pinned_goal.page_id, pinned_goal.seq, facts)
        most = self.params.most_entries
        entries = [
            *([] if goal is None else [goal]),
            *list(self.constraints.values())[-most:],
            *_kept([decision.entry for decision in self.decisions], most),
            *self.work.entries(most),
            *self._open_items()[:most],
            *_kept(list(self.values.values()), most),
        ]
        cited = {quote.page_id for entry in entries for quote in entry.all_quotes()}
        return MemoryCard(
            tuple(entries),
            tuple(sorted(cited)),
            min(self.pages, default=0),
            max(self.pages, default=0),
            tuple(self.turn_starts),
        )

    def _open_items(self) -> list[CardEntry]:
        items = self.todos.entries()
        found: list[tuple[CardSource, tuple[int, int], str]] = []
        if self.last_answer is not None:
            source, prose = self.last_answer
            found += [(source, span, "said") for span in find_said_items(prose)]
        if self.last_question is not None:
            source, prose = self.last_question
            found += [(source, span, "unanswered") for span in prose.spans if is_question(prose.quiet[slice(*span)])]
        for source, span, state in found:
            quoted = quote_span(source.text, *span, self.params.sentence_chars)
            if quoted is not None:
                text = source.text[quoted[0] : quoted[1]]
                items.append(CardEntry(CardField.OPEN_ITEM, text, source.page_id, source.seq, OpenItemFacts(state)))
        return items


def _kept(entries: list[CardEntry], most: int) -> list[CardEntry]:
    """The newest ``most`` entries, the user's before the agent's, in their old order."""
    if len(entries) <= most:
        return entries
    by_rank = sorted(range(len(entries)), key=lambda place: (entries[place].facts.note == "user", place))
    return [entries[place] for place in sorted(by_rank[-most:])]


_MARK_TERM = re.compile(
    r"决定|改用|采用|不再|选择|结论|因为|所以|我们|\A(?:decid|agree?|chose|opt|settl|use|instead|rather|go|let|keep|want|need|won|user"
    r"|root|caus)\Z"
)
_FIRST_HAN = "\u3400"
_LEAST_SHARED = 2
_MOST_DECISIONS = 200
"""Compared with each new one; the agent's oldest leaves first."""


def _places(spans: Iterable[tuple[int, int, str]]) -> int:
    """How many words the spans cover: overlapping ones are one; of Han every two characters."""
    words = 0
    covered = 0
    for start, end, term in sorted(spans):
        if term[0] < _FIRST_HAN:
            words += 2 * (start >= covered)
        else:
            words += max(0, end - max(start, covered))
        covered = max(covered, end)
    return words // 2


def _is_about_the_same(old: _Decision, new: _Decision, spans: list[tuple[int, int, str]]) -> bool:
    """Whether two decisions share a pair of anchors, and half of what the shorter one names."""
    if old.entry.text == new.entry.text:
        return True
    if len(old.terms & new.terms) < _LEAST_SHARED:
        return False
    shared = _places(span for span in spans if span[2] in old.terms)
    return shared >= _LEAST_SHARED and 2 * shared >= min(old.weight, new.weight)
