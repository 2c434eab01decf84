"""Open items: what is not done on the agent's to-do lists, and what its last message says is left.

To-do lists come as one call with all items, as Markdown boxes, or as one call an item with a number that later calls
name. Sentences by rules for English and Chinese.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from context_gatekeeper.core.card_prose import Prose
from context_gatekeeper.core.card_quotes import quote_span
from context_gatekeeper.core.card_records import CardEntry, CardField, CardSource, OpenItemFacts
from context_gatekeeper.core.tool_shapes import ToolKind, json_strings, tool_kind, tool_todos

__all__ = ["TodoLists", "find_said_items"]

_OPEN = re.compile(
    r"\bTODO\b|\b(?i:next steps?\b|next up\b|still (?:needs?|need to|to do|open|missing|failing|outstanding|have to"
    r"|requires?)\b|left to do\b|(?:is|are|remains?) (?:still )?(?:outstanding|open|unresolved|undone)\b"
    r"|remaining (?:work|tasks?|items?|steps?|todos?|issues?|failures?|phases?)\b|(?:what's|what is) left\b"
    r"|not yet (?:done|implemented|fixed|tested|supported|handled|verified)\b"
    r"|to be done\b|follow-?ups?:|haven't (?:\w{1,12} )?(?:done|implemented|fixed|tested|run|verified|touched)\b)"
    r"|待办|待完成|待处理|待确认|下一步|下一阶段|接下来(?:要|需要|是|的)|尚未|还需要?|还没有?|仍需|未完成|剩余|剩下|遗留"
)
_DONE = re.compile(
    r"\b(?:no|nothing|none|zero|without any) (?:\w{1,12} ){0,3}(?:remaining|outstanding|left|todos?|follow-?ups?)\b"
    r"|\ball (?:the )?remaining \w{1,20} (?:pass|are|were|now)\b|\bnothing (?:is |else )?(?:left|remaining"
    r"|outstanding)\b"
    r"|\b(?:was|were|had)\b|没有(?:剩余|遗留|待办)|无(?:剩余|遗留|待办)|无需",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"\b(?:anything else|let me know|would you like|do you want|want me to|shall i|should i|feel free|if you(?:'d"
    r"| would)? (?:like|want|need|prefer)|happy to|i can (?:also )?(?:help|do)|ready (?:to|for|when))\b"
    r"|还有(?:什么|其他|别的)|需要我|是否需要|要不要我|如果(?:你|您)?(?:需要|想|愿意)|随时|我可以(?:帮|继续|再)|告诉我|请(?:告诉|让)我|要我",
    re.IGNORECASE,
)
_HEADING = re.compile(r"[:：][*_ ]*\Z|\A#{1,6} |\A\*\*[^*\n]{1,80}\*\*[:：]?\Z")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,2}[.)、]|[（(]\d{1,2}[)）])\s{0,3}\S")
_ITEM_MARK = re.compile(r"(?:[-*+•]\s{1,3}|\d{1,2}[.)、]\s{0,3}|[（(]\d{1,2}[)）]\s{0,3})(?:\[ \]\s)?")
_DONE_ITEM = re.compile(r"\A[ \t]*(?:[-*+•]|\d{1,2}[.)、])\s{0,3}(?:\[[xX]\]|\u2705|\u2714|\u2713|~~)")
_MOST_ITEMS = 8


def find_said_items(prose: Prose) -> list[tuple[int, int]]:
    """(start, end) of what an agent's message names as still to do, the first 8.

    A sentence with a mark of something open counts; where that is a heading ("Next steps:"), the items of the list
    below count in its place. Offers ("let me know if ...", "需要我 ... 吗") count nowhere.
    """
    found: list[tuple[int, int]] = []
    in_list = False
    for start, end in prose.spans:
        line_start = prose.text.rfind("\n", 0, start) + 1
        whole, quiet = prose.text[start:end], prose.quiet[start:end]
        is_item = _LIST_ITEM.match(prose.text, line_start, end) is not None
        if in_list and is_item:
            if start <= line_start + 6 and not _OFFER.search(quiet) and not _DONE_ITEM.match(whole):
                mark = _ITEM_MARK.match(prose.text, start, end)
                found.append((mark.end() if mark is not None else start, end))
            continue
        in_list = False
        if not _OPEN.search(quiet) or _DONE.search(quiet) or _OFFER.search(quiet):
            continue
        if _HEADING.search(whole):
            in_list = True
        else:
            found.append((start, end))
    return [span for span in found if span[1] > span[0]][:_MOST_ITEMS]


_NUMBERED = re.compile(r"#(\d{1,6})\b")
_ENDED = frozenset(("completed", "deleted", "cancelled", "done"))


@dataclass(slots=True)
class TodoLists:
    """The newest state of an agent's to-do lists."""

    limit_chars: int
    _items: list[CardEntry] = field(default_factory=list)
    """Of the newest call or result that held a whole list."""
    _tasks: dict[str, CardEntry] = field(default_factory=dict)
    """Number -> item, of lists that are kept item by item."""
    _created: dict[str, str] = field(default_factory=dict)
    """Id of the call -> number of the item that it made."""

    def add_call(self, source: CardSource) -> None:
        """Take a call of any tool."""
        if source.name == "TaskCreate":
            number = str(len(self._created) + 1)
            self._created[source.call_id] = number
            strings = [found for found in json_strings(source.text) if found.key == "subject"]
            self._keep(number, source, [(found.start, found.end, "pending") for found in strings[:1]])
        elif source.name == "TaskUpdate":
            said = {found.key: source.text[found.start : found.end] for found in json_strings(source.text)}
            self._update(said.get("taskId", ""), said.get("status", ""))
        else:
            self.add_list(source)

    def add_result(self, source: CardSource) -> None:
        """Take a result of any tool: it may hold the list, or the number of an item."""
        number = self._created.get(source.call_id)
        if number is None:
            self.add_list(source)
        elif (told := _NUMBERED.search(source.text, 0, 200)) is not None and told[1] != number:
            self._created[source.call_id] = told[1]
            if number in self._tasks:
                self._tasks[told[1]] = self._tasks.pop(number)

    def add_list(self, source: CardSource) -> None:
        """A whole list takes the place of the one before."""
        todos = tool_todos(source.text) if tool_kind(source.name) is ToolKind.TODO else None
        if todos is not None:
            self._items = [entry for todo in todos if (entry := self._entry(source, *todo)) is not None]

    def _keep(self, number: str, source: CardSource, todos: list[tuple[int, int, str]]) -> None:
        for todo in todos:
            entry = self._entry(source, *todo)
            if entry is not None:
                self._tasks[number] = entry

    def _update(self, number: str, status: str) -> None:
        known = self._tasks.get(number)
        if known is None or not status:
            return
        if status in _ENDED:
            del self._tasks[number]
        else:
            self._tasks[number] = CardEntry(known.field, known.text, known.page_id, known.seq, OpenItemFacts(status))

    def _entry(self, source: CardSource, start: int, end: int, state: str) -> CardEntry | None:
        span = quote_span(source.text, start, end, self.limit_chars, is_escaped=True)
        if span is None:
            return None
        text = source.text[span[0] : span[1]]
        return CardEntry(CardField.OPEN_ITEM, text, source.page_id, source.seq, OpenItemFacts(state))

    def entries(self) -> list[CardEntry]:
        """What is not done, in the lists' order."""
        return [*self._items, *self._tasks.values()]
