"""A memory card as text under a cap of tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from context_gatekeeper.core.card_records import (
    CardEntry,
    CardField,
    CommandFacts,
    ErrorFacts,
    ErrorState,
    FileFacts,
    SaidFacts,
)

__all__ = ["LEAST_CARD_TOKENS", "render_card"]

LEAST_CARD_TOKENS = 40
"""Room for the frame of a card and one short entry."""
_FIRST_SHARE = 0.3
"""Of the cap, for one section before the others had their turn."""


def _is_open(entry: CardEntry) -> bool:
    return isinstance(entry.facts, ErrorFacts) and entry.facts.state is ErrorState.OPEN


_SECTIONS: tuple[tuple[str, Callable[[CardEntry], bool]], ...] = (
    ("constraints", lambda entry: entry.field is CardField.CONSTRAINT),
    ("open errors", _is_open),
    ("decisions", lambda entry: entry.field is CardField.DECISION),
    ("files", lambda entry: entry.field is CardField.FILE),
    ("commands", lambda entry: entry.field is CardField.COMMAND),
    ("goal", lambda entry: entry.field is CardField.GOAL),
    ("open items", lambda entry: entry.field is CardField.OPEN_ITEM),
    ("tests", lambda entry: entry.field is CardField.TEST),
    ("other errors", lambda entry: entry.field is CardField.ERROR and not _is_open(entry)),
    ("values", lambda entry: entry.field is CardField.VALUE),
)
_NOTED = frozenset((CardField.FILE, CardField.COMMAND, CardField.TEST, CardField.OPEN_ITEM))


def _rank(entry: CardEntry) -> tuple[int, int]:
    """Which entry of a section is shown first: the greatest. Age breaks ties, newest first."""
    facts = entry.facts
    if isinstance(facts, SaidFacts):
        return (entry.field is CardField.DECISION and facts.note == "user"), entry.seq
    if isinstance(facts, FileFacts):
        return (0 if facts.is_generated else 1 + 2 * (facts.writes > 0)), entry.seq
    if isinstance(facts, CommandFacts):
        return (0 if facts.is_probe else 1 + facts.has_failed), entry.seq
    if isinstance(facts, ErrorFacts):
        return (facts.state is ErrorState.UNCONFIRMED), entry.seq
    return 0, entry.seq


_LEAST_FOLDER_CHARS = 12


def _common_folder(entries: Sequence[CardEntry]) -> str:
    """The folder, with its slash, under which most files of the card lie; "" when that saves nothing."""
    paths = [entry.text for entry in entries if entry.field is CardField.FILE and entry.text.startswith(("/", "~"))]
    if len(paths) < 2:
        return ""
    ranked = sorted(paths)
    first, last = ranked[len(ranked) // 5], ranked[-1 - len(ranked) // 5]
    same = next((place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    folder = first[: first.rfind("/", 0, same) + 1]
    return folder if len(folder) >= _LEAST_FOLDER_CHARS else ""


def _line(entry: CardEntry, folder: str) -> str:
    note = entry.note if entry.field in _NOTED else ""
    if isinstance(entry.facts, ErrorFacts):
        note = "" if _is_open(entry) else entry.facts.state.value
    if isinstance(entry.facts, SaidFacts) and entry.field is CardField.DECISION and entry.note == "user":
        note = "user"
    text = entry.text.removeprefix(folder) if entry.field is CardField.FILE else entry.text
    pinned = entry.facts.goal_id if isinstance(entry.facts, SaidFacts) else ""
    return f"- {text}{f' ({note})' if note else ''} [{pinned or f'p{entry.page_id}'}]"


def _frame(pages: tuple[int, int], left_out: int, handle: str) -> tuple[str, str]:
    first, last = pages
    where = f"pages {first}-{last}" if last != first else f"page {first}"
    turns = "turn" if left_out == 1 else "turns"
    return f"memory card of {where}", f"{left_out} {turns} not represented{f': {handle}' if handle else ''}"


class _Sheet:
    """The sections of one card while it is filled."""

    def __init__(
        self,
        entries: Sequence[CardEntry],
        pages: tuple[int, int],
        turn_starts: Sequence[int],
        handle: str,
        count_tokens: Callable[[str], int],
    ) -> None:
        self.pages, self.turn_starts, self.handle, self.count_tokens = pages, turn_starts, handle, count_tokens
        self.folder = _common_folder(entries)
        self.titles = [title for title, _ in _SECTIONS]
        if self.folder:
            self.titles[3] += f" under {self.folder}"
        self.waiting = [
            sorted((entry for entry in entries if belongs(entry)), key=_rank, reverse=True) for _, belongs in _SECTIONS
        ]
        self.shown: list[list[CardEntry]] = [[] for _ in _SECTIONS]

    def fill(self, place: int, share: float, room: float) -> float:
        """Move entries of one section onto the sheet; what they cost."""
        spent = 0.0
        waiting, shown = self.waiting[place], self.shown[place]
        while waiting:
            cost = self.count_tokens(_line(waiting[0], self.folder)) + 1
            cost += 0 if shown else self.count_tokens(self.titles[place]) + 2
            if spent + cost > min(share, room):
                break
            shown.append(waiting.pop(0))
            spent += cost
        return spent

    def text(self) -> str:
        """The card as it stands."""
        turns = {bisect_right(self.turn_starts, entry.seq) for section in self.shown for entry in section}
        head, foot = _frame(self.pages, len(self.turn_starts) - len(turns - {0}), self.handle)
        lines = [head]
        for title, section in zip(self.titles, self.shown, strict=True):
            if section:
                ordered = sorted(section, key=lambda entry: entry.seq)
                lines += [f"{title}:", *(_line(entry, self.folder) for entry in ordered)]
        return "\n".join((*lines, foot))


def render_card(
    entries: Sequence[CardEntry],
    pages: tuple[int, int],
    turn_starts: Sequence[int],
    handle: str,
    max_tokens: int,
    count_tokens: Callable[[str], int],
) -> str:
    """The card's lines; see `MemoryCard.render`.

    Each section first gets 30 % of the cap at most, so that none starves; what is left then goes by their order.
    The estimate of the whole counts: while it is over the cap, the last entry leaves.
    """
    sheet = _Sheet(entries, pages, turn_starts, handle, count_tokens)
    room: float = max_tokens - sum(count_tokens(line) + 1 for line in _frame(pages, len(turn_starts), handle))
    for share in (_FIRST_SHARE * max_tokens, max_tokens):
        for place in range(len(_SECTIONS)):
            room -= sheet.fill(place, share, room)
    text = sheet.text()
    while count_tokens(text) > max_tokens and any(sheet.shown):
        next(section for section in reversed(sheet.shown) if section).pop()
        text = sheet.text()
    return text
