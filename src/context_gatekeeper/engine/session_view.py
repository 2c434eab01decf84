"""What a reader is shown of an agent session: its pages, which of them are out of date, and how they add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from context_gatekeeper.engine.agent_pages import (
    block_places,
    called_tools,
    is_empty_side,
    page_blocks,
    page_message,
    page_tokens,
)
from context_gatekeeper.engine.file_versions import FileTracker
from context_gatekeeper.engine.owner_view import SessionFacts
from context_gatekeeper.types import AgentMessage, AgentSession, BlockKind, Page

__all__ = [
    "PageMarks",
    "PageView",
    "SessionTotals",
    "file_marks",
    "session_of",
    "view_pages",
]

_HEAD_CHARS = 200


def session_of(name: str, facts: SessionFacts, pages: Iterable[Page]) -> AgentSession:
    """The session as its pages hold it: every block, in order; what providers billed is not kept."""
    messages: list[AgentMessage] = [message for page in pages if (message := page_message(page)) is not None]
    return AgentSession(name, facts.source, tuple(messages), facts.events, facts.working_folder)


# -- versions of files --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PageMarks:
    """Why a page may not be the last word."""

    superseded_by: int | None = None
    """Ordinal of the page that shows a newer version."""
    changed_by: int | None = None
    """Ordinal of the result after which its file is another."""


def file_marks(pages: Iterable[Page], working_folder: str = "") -> dict[int, PageMarks]:
    """Ordinal -> marks of the file pages that have one. O(the session's text)."""
    files = FileTracker(working_folder)
    superseded: dict[int, int] = {}
    changed: dict[int, int] = {}
    for page in pages:
        blocks = page_blocks(page)
        files.note_calls(blocks)
        if blocks and blocks[0].kind is BlockKind.TOOL_RESULT:
            first = blocks[0]
            note = files.note_result(first.call_id, page.ordinal, is_error=first.is_error, text=first.text)
            if note is not None:
                superseded |= dict.fromkeys(note.superseded, page.ordinal)
                changed |= dict.fromkeys(note.changed, page.ordinal)
    return {ordinal: PageMarks(superseded.get(ordinal), changed.get(ordinal)) for ordinal in {**superseded, **changed}}


# -- the pages of a session ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PageView:
    """One page that holds something."""

    handle: str
    blocks: str
    """Short handle of its blocks: ``p12`` or ``p12-p14``; "" for a page of no agent and a deleted one."""
    ordinal: int
    kind: str
    provenance: str
    """The channel; "" where nobody said it."""
    role: str
    tool: str
    """Of a result; the tools that an assistant's page calls, with commas."""
    path: str
    tokens: int
    chars: int
    head: str
    """Where its text begins, on one line."""
    time: float | None = None
    is_error: bool = False
    is_deleted: bool = False
    superseded_by: str = ""
    """Handle of the newer version."""
    changed_by: str = ""
    """Handle of the result after which its file is another."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form with the same names."""
        return {name: getattr(self, name) for name in PageView.__slots__}


def view_pages(pages: Sequence[Page], working_folder: str, handle_of: Callable[[Page], str]) -> tuple[PageView, ...]:
    """The pages that hold something, in order, with their marks."""
    marks = file_marks(pages, working_folder)
    handles = {page.ordinal: handle_of(page) for page in pages if not is_empty_side(page)}
    return tuple(
        _view(page, handles, marks.get(page.ordinal, PageMarks())) for page in pages if page.ordinal in handles
    )


def _view(page: Page, handles: Mapping[int, str], marks: PageMarks) -> PageView:
    labels = page.labels
    numbers = [place.number for place in block_places(page)]
    return PageView(
        handles[page.ordinal],
        (f"p{numbers[0]}" + (f"-p{numbers[-1]}" if len(numbers) > 1 else "")) if numbers else "",
        page.ordinal,
        page.kind.value,
        labels.provenance.value if labels.provenance is not None else "",
        page.role.value,
        labels.tool or ",".join(called_tools(page)),
        labels.path,
        page_tokens(page),
        len(page.text),
        " ".join(page.text[:_HEAD_CHARS].split()),
        page.time,
        labels.is_error,
        labels.deleted,
        handles[marks.superseded_by] if marks.superseded_by is not None else "",
        handles[marks.changed_by] if marks.changed_by is not None else "",
    )


@dataclass(slots=True)
class SessionTotals:
    """How pages add up."""

    pages: int = 0
    """That hold something."""
    tokens: int = 0
    chars: int = 0
    blocks: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """Kind -> pages."""
    kind_tokens: Counter[str] = field(default_factory=Counter)
    superseded: int = 0
    changed: int = 0
    deleted: int = 0
    errors: int = 0

    def add(self, pages: Sequence[Page], working_folder: str) -> None:
        """Take in the pages of a session."""
        marks = file_marks(pages, working_folder)
        self.superseded += sum(one.superseded_by is not None for one in marks.values())
        self.changed += sum(one.changed_by is not None for one in marks.values())
        for page in pages:
            if page.labels.deleted:
                self.deleted += 1
            elif not is_empty_side(page):
                self.pages += 1
                self.tokens += page_tokens(page)
                self.chars += len(page.text)
                self.blocks += len(page_blocks(page))
                self.kinds[page.kind.value] += 1
                self.kind_tokens[page.kind.value] += page_tokens(page)
                self.errors += page.labels.is_error

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form with the same names."""
        told = {name: getattr(self, name) for name in SessionTotals.__slots__}
        return told | {"kinds": dict(self.kinds), "kind_tokens": dict(self.kind_tokens)}
