"""From a transcript to drafts of pages, walked beside what a store already holds of it.

Page after page of the store is matched with the transcript's next blocks; where the store ends, drafts go on. So a
transcript that was taken in before adds nothing, one that has grown adds what is new, and one that
differs is told from both. Nothing counts messages or hashes whole files: equal messages keep their places,
an answer that was logged in pieces goes on where it broke off, and the empty page behind a question
that had no answer yet is no difference.

Pure: redaction and storing are whoever's who asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from context_gatekeeper.core.redact import redact_parts
from context_gatekeeper.engine.agent_pages import (
    draft_page,
    empty_page,
    is_empty_side,
    page_blocks,
    result_provenance,
    run_end,
    side_of,
)
from context_gatekeeper.engine.file_versions import FileTracker
from context_gatekeeper.engine.task_labels import TaskLabels
from context_gatekeeper.types import (
    NO_LABELS,
    AgentMessage,
    AgentSession,
    BlockKind,
    ContentBlock,
    Page,
    PageDraft,
    PageLabels,
    Role,
)

__all__ = ["FIRST_TASK", "Ingest", "RawPage"]

FIRST_TASK = "t1"
"""Of what nobody asked for."""


@dataclass(frozen=True, slots=True)
class RawPage:
    """The next page of a transcript, as it came."""

    draft: PageDraft
    """Unredacted, without terms."""
    blocks: tuple[ContentBlock, ...]
    """None for an empty side."""
    number: int
    """Of the first block in the session, of an empty side's next one."""
    supersedes: int | None = None
    """Ordinal of the newest page whose place it takes."""


class Ingest:
    """One walk over a transcript.

    Args:
        session: the transcript.
        key: the pool's, by which stored texts were redacted.
        owner: whose pages they are.
    """

    def __init__(self, session: AgentSession, key: bytes, owner: str = "") -> None:
        self._messages = [message for message in session.messages if message.blocks]
        self._key = key
        self._owner = owner
        self._files = FileTracker(session.working_folder)
        self._calls: dict[str, ContentBlock] = {}
        self._tasks: list[str] = []
        self._message = 0
        self._start = 0
        """Block of the message that the next page begins with."""
        self.ordinal = 0
        """Of the next page."""
        self.number = 0
        """Of the next block, in the session."""

    @property
    def is_done(self) -> bool:
        """Whether every block of the transcript has its page."""
        return self._message == len(self._messages)

    @property
    def opening(self) -> str:
        """Text of the transcript's first page without its secrets; "" for an empty transcript."""
        if not self._messages:
            return ""
        message = self._messages[0]
        draft = draft_page(message, message.blocks[: run_end(message, 0)], 0)
        return redact_parts(draft.text, draft.labels.parts, self._key)[0].text

    def match(self, page: Page) -> bool:
        """Go on past the stored page with ``ordinal``; False, and nothing moves, when it is not the transcript's next.

        A deleted page stands for whatever was there. At the end of the transcript only an empty side matches. O(page).
        """
        if page.labels.owner != self._owner and not page.labels.deleted and not is_empty_side(page):
            return False
        if is_empty_side(page):
            blocks: tuple[ContentBlock, ...] = ()
        elif page.labels.deleted:
            blocks = self._next_blocks(page.role)
        else:
            stored = page_blocks(page)
            blocks = self._next_blocks(page.role)[: len(stored)]
            if page.labels.provenance is None or not blocks or not self._is_same(page, stored, blocks):
                return False
        if blocks:
            self._take(blocks)
        self.ordinal += 1
        return True

    def next_turn(self) -> tuple[RawPage, ...]:
        """The pages up to the end of the turn that ``ordinal`` is in: two, or the assistant's alone."""
        pages = [self._next_page()]
        if self.ordinal % 2:
            pages.append(self._next_page())
        return tuple(pages)

    # -- inside -----------------------------------------------------------------------------

    def _next_blocks(self, role: Role) -> tuple[ContentBlock, ...]:
        """Blocks of the next page when it is on this side; none when the other side, or nothing, comes next."""
        if self.is_done or side_of(self._messages[self._message]) is not role:
            return ()
        message = self._messages[self._message]
        return message.blocks[self._start : run_end(message, self._start)]

    def _is_same(self, page: Page, stored: Sequence[ContentBlock], blocks: tuple[ContentBlock, ...]) -> bool:
        if [block.kind for block in stored] != [block.kind for block in blocks]:
            return False
        draft = draft_page(self._messages[self._message], blocks, page.turn_id)
        if sha256(draft.text.encode("utf-8", "surrogatepass")).hexdigest() == page.sha256:
            return True
        # Stored under another setting, or by rules that know fewer secrets: what is left without secrets counts.
        ours, theirs = (redact_parts(one.text, one.labels.parts, self._key)[0].text for one in (draft, page))
        return ours == theirs

    def _next_page(self) -> RawPage:
        turn_id, role = self.ordinal >> 1, Role.ASSISTANT if self.ordinal & 1 else Role.USER
        blocks = self._next_blocks(role)
        if not blocks:
            raw = RawPage(empty_page(turn_id, role, self._owner), (), self.number)
        else:
            message, number = self._messages[self._message], self.number
            task_id = self._task_of(self._message)
            labels, superseded = self._take(blocks)
            labels = replace(labels, task_id=task_id)
            raw = RawPage(draft_page(message, blocks, turn_id, labels), blocks, number, superseded)
        self.ordinal += 1
        return raw

    def _task_of(self, message: int) -> str:
        """Task of a message by all that the transcript tells; worked out for the first page that is new."""
        if not self._tasks:
            labels = TaskLabels()
            turns = []
            for one in self._messages:
                labels.add(one)
                turns.append(max(labels.turn, 0))
            self._tasks = [labels.task_of(turn) or FIRST_TASK for turn in turns]
        return self._tasks[message]

    def _take(self, blocks: tuple[ContentBlock, ...]) -> tuple[PageLabels, int | None]:
        """Go past the blocks of a page; its labels and what it supersedes."""
        message: AgentMessage = self._messages[self._message]
        labels = replace(NO_LABELS, owner=self._owner)
        superseded = None
        self._files.note_calls(blocks)
        self._calls |= {block.call_id: block for block in blocks if block.kind is BlockKind.TOOL_CALL}
        first = blocks[0]
        if side_of(message) is Role.USER and first.kind is BlockKind.TOOL_RESULT:
            note = self._files.note_result(first.call_id, self.ordinal, is_error=first.is_error)
            is_version = note is not None and note.path != ""
            if note is not None and is_version:
                labels = replace(labels, path=note.path, content_hash=note.content_hash)
                superseded = max(note.superseded, default=None)
            is_read = is_version and not labels.content_hash
            provenance = result_provenance(self._calls.get(first.call_id), is_file=is_read)
            labels = replace(labels, provenance=provenance)
        self._start += len(blocks)
        self.number += len(blocks)
        if self._start == len(message.blocks):
            self._message, self._start = self._message + 1, 0
        return labels, superseded
