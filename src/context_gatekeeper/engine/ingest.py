"""From a transcript to drafts of pages, walked beside what a store already holds of it.

Page after page of the store is matched with the transcript's next blocks; where the store ends, drafts go on. So a
transcript that was taken in before adds nothing, one that has grown adds what is new, and one that
differs is told from both. Nothing counts messages or hashes whole files: equal messages keep their places,
an answer that was logged in pieces goes on where it broke off, and the empty page behind a question
that had no answer yet is no difference.

Pure: redaction and storing are whoever's who asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from context_gatekeeper.core.redact import redact, redact_parts
from context_gatekeeper.engine.agent_pages import (
    continued_page,
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
    MessageRole,
    Page,
    PageDraft,
    PageLabels,
    Role,
)

__all__ = ["FIRST_TASK", "HeldBlocks", "Ingest", "RawPage"]

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
    continues: int | None = None
    """Ordinal of the page whose message goes on here: its first blocks came in before the others were logged."""


@dataclass(frozen=True, slots=True)
class HeldBlocks:
    """What a page held before its owner deleted it."""

    blocks: int
    """0 for an empty side."""
    continues: int | None = None
    """As in `RawPage`."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A block of the transcript, with which a page begins."""

    message: int
    start: int
    head: int | None = None
    """Ordinal of the page that holds the first blocks of the same run; None where the run begins here."""
    end: int = 0
    """Past the run's last block, where it does not begin here."""


class Ingest:
    """One walk over a transcript.

    Args:
        session: the transcript.
        key: the pool's, by which stored texts were redacted.
        owner: whose pages they are.
        goals: active goals by their ids: pages of turns that serve one are labelled with it.
    """

    def __init__(
        self, session: AgentSession, key: bytes, owner: str = "", goals: Mapping[str, str] | None = None
    ) -> None:
        self._messages = [message for message in session.messages if message.blocks]
        self._key = key
        self._owner = owner
        self._files = FileTracker(session.working_folder)
        self._calls: dict[str, ContentBlock] = {}
        self._goals = dict(goals or {})
        self._tasks: list[tuple[str, tuple[str, ...]]] = []
        """Of each message its task, and the goals that this serves."""
        self._next = _Place(0, 0)
        """Where the next page begins that goes on with none."""
        self._rests: list[_Place] = []
        """What stored pages lack of their runs, because the log went on there later."""
        self.ordinal = 0
        """Of the next page."""
        self.number = 0
        """Of the next block, in the session."""

    @property
    def is_done(self) -> bool:
        """Whether every block of the transcript has its page."""
        return self._next.message == len(self._messages) and not self._rests

    @property
    def opening(self) -> str:
        """Text of the transcript's first block without its secrets; "" for an empty transcript."""
        if not self._messages:
            return ""
        message = self._messages[0]
        draft = draft_page(message, message.blocks[:1], 0)
        return redact_parts(draft.text, draft.labels.parts, self._key)[0].text

    def match(self, page: Page, held: HeldBlocks | None = None) -> bool:
        """Go on past the stored page with ``ordinal``; False, and nothing moves, when it is not the transcript's next.

        At the end of the transcript only an empty side matches, and a page that holds more of its last message.
        O(page).

        Args:
            page: of the store.
            held: what a deleted page held; where nobody knows it stands for whatever is next on its side.
        """
        if not is_empty_side(page):
            found = self._deleted(page, held) if page.labels.deleted else self._same(page)
            if found is None:
                return False
            place, blocks = found
            if blocks:
                self._take(place, blocks)
        self.ordinal += 1
        return True

    def next_turn(self) -> tuple[RawPage, ...]:
        """The pages up to the end of the turn that ``ordinal`` is in: two, or the assistant's alone."""
        pages = [self._next_page()]
        if self.ordinal % 2:
            pages.append(self._next_page())
        return tuple(pages)

    # -- inside -----------------------------------------------------------------------------

    def _run(self, place: _Place | None, role: Role) -> tuple[ContentBlock, ...]:
        """Blocks of the page that begins there; none when the other side, or nothing, is there."""
        if place is None or place.message == len(self._messages):
            return ()
        message = self._messages[place.message]
        return message.blocks[place.start : _end_of(message, place)] if side_of(message) is role else ()

    def _place_of(self, continues: int | None) -> _Place | None:
        """Where a page begins that goes on with another one, or with none."""
        if continues is None:
            return self._next
        return next((rest for rest in self._rests if rest.head == continues), None)

    def _deleted(self, page: Page, held: HeldBlocks | None) -> tuple[_Place, tuple[ContentBlock, ...]] | None:
        """Where a deleted page began, and its blocks; None where the transcript has too few."""
        place = self._place_of(held.continues if held is not None else None)
        blocks = self._run(place, page.role)
        if place is None or (held is not None and len(blocks) < held.blocks):
            return None
        return place, blocks if held is None else blocks[: held.blocks]

    def _same(self, page: Page) -> tuple[_Place, tuple[ContentBlock, ...]] | None:
        """Where a page begins, and its blocks; None where the transcript goes on differently."""
        labels, stored = page.labels, page_blocks(page)
        if labels.owner != self._owner or labels.provenance is None:
            return None
        place = self._place_of(continued_page(page))
        blocks = self._run(place, page.role)[: len(stored)]
        if place is None or not blocks:
            return None
        if len(blocks) < len(stored) and not self._ends_at(place, len(blocks)):
            return None
        return (place, blocks) if self._is_same(page, place, stored[: len(blocks)], blocks) else None

    def _ends_at(self, place: _Place, count: int) -> bool:
        """Whether nothing but so many blocks is left: an older copy of the log may end inside a message."""
        is_rest = place.head is not None
        is_last = place.message == len(self._messages) - 1 and len(self._rests) == is_rest
        is_alone = not is_rest or self._next.message == len(self._messages)
        return is_last and is_alone and place.start + count == len(self._messages[place.message].blocks)

    def _is_same(
        self, page: Page, place: _Place, stored: tuple[ContentBlock, ...], blocks: tuple[ContentBlock, ...]
    ) -> bool:
        message = self._messages[place.message]
        if message.role is not MessageRole.ASSISTANT and self._origin(message, blocks) != page.labels.origin:
            return False
        # A result may be logged in front of its call, which alone tells the tool's name.
        stored = tuple(
            replace(one, name=block.name) if one.kind is BlockKind.TOOL_RESULT and not one.name else one
            for one, block in zip(stored, blocks, strict=True)
        )
        stored, blocks = _with_what_both_hold(stored, blocks)
        if stored == blocks:
            return True
        # Stored under another setting, or by rules that know fewer secrets: what is left without secrets counts.
        return self._redacted(message, stored) == self._redacted(message, blocks)

    def _origin(self, message: AgentMessage, blocks: tuple[ContentBlock, ...]) -> str:
        return redact(draft_page(message, blocks, 0).labels.origin, self._key).text

    def _redacted(self, message: AgentMessage, blocks: tuple[ContentBlock, ...]) -> list[ContentBlock]:
        """Blocks of a page without their secrets; whether it failed is a result's alone, as on pages."""
        told = page_blocks(draft_page(message, blocks, 0))
        return [
            replace(
                block,
                text=redact(block.text, self._key).text,
                name=redact(block.name, self._key).text,
                call_id=redact(block.call_id, self._key).text,
            )
            for block in told
        ]

    def _next_page(self) -> RawPage:
        turn_id, role = self.ordinal >> 1, Role.ASSISTANT if self.ordinal & 1 else Role.USER
        place = self._rests[0] if self._rests else self._next
        blocks = self._run(place, role)
        if not blocks:
            raw = RawPage(empty_page(turn_id, role, self._owner), (), self.number)
        else:
            message, number = self._messages[place.message], self.number
            task_id, goal_ids = self._task_of(place.message)
            labels, superseded = self._take(place, blocks)
            labels = replace(labels, task_id=task_id, goal_ids=goal_ids)
            raw = RawPage(draft_page(message, blocks, turn_id, labels), blocks, number, superseded, place.head)
        self.ordinal += 1
        return raw

    def _task_of(self, message: int) -> tuple[str, tuple[str, ...]]:
        """Task and goals of a message by all that the transcript tells; worked out for the first page that is new."""
        if not self._tasks:
            labels = TaskLabels(self._goals)
            turns = []
            for one in self._messages:
                labels.add(one)
                turns.append(max(labels.turn, 0))
            goals = {turn: labels.goals_of(turn) for turn in set(turns)}
            self._tasks = [(labels.task_of(turn) or FIRST_TASK, goals[turn]) for turn in turns]
        return self._tasks[message]

    def _take(self, place: _Place, blocks: tuple[ContentBlock, ...]) -> tuple[PageLabels, int | None]:
        """Go past the blocks of a page; its labels and what it supersedes."""
        message: AgentMessage = self._messages[place.message]
        labels = replace(NO_LABELS, owner=self._owner)
        superseded = None
        self._files.note_calls(blocks)
        self._calls |= {block.call_id: block for block in blocks if block.kind is BlockKind.TOOL_CALL}
        first = blocks[0]
        if side_of(message) is Role.USER and first.kind is BlockKind.TOOL_RESULT:
            note = self._files.note_result(first.call_id, self.ordinal, is_error=first.is_error, text=first.text)
            is_version = note is not None and note.path != ""
            if note is not None and is_version:
                labels = replace(labels, path=note.path, content_hash=note.content_hash)
                superseded = max(note.superseded, default=None)
            is_read = is_version and not labels.content_hash
            provenance = result_provenance(self._calls.get(first.call_id), is_file=is_read)
            labels = replace(labels, provenance=provenance)
        self._move(place, len(blocks))
        self.number += len(blocks)
        return labels, superseded

    def _move(self, place: _Place, count: int) -> None:
        """Go past so many blocks; what is left of their run waits, since a page that follows may stand behind it."""
        message = self._messages[place.message]
        end = _end_of(message, place)
        left = place.start + count
        head = self.ordinal if place.head is None else place.head
        rest = [_Place(place.message, left, head, end)] if left < end else []
        if place.head is None:
            is_over = end == len(message.blocks)
            self._next = _Place(place.message + 1, 0) if is_over else _Place(place.message, end)
            self._rests += rest
        else:
            where = self._rests.index(place)
            self._rests[where : where + 1] = rest


def _with_what_both_hold(
    stored: tuple[ContentBlock, ...], blocks: tuple[ContentBlock, ...]
) -> tuple[tuple[ContentBlock, ...], tuple[ContentBlock, ...]]:
    """Blocks without the signatures and data that one side has not.

    Pages of earlier versions hold none, and have sealed thinking as their text; nor does every format hold them.
    """
    pairs = [(_unsealed(one, other), _unsealed(other, one)) for one, other in zip(stored, blocks, strict=True)]
    return tuple(one for one, _ in pairs), tuple(other for _, other in pairs)


def _unsealed(block: ContentBlock, other: ContentBlock) -> ContentBlock:
    if block.kind is BlockKind.THINKING and block.data and not block.text and other.text:
        return replace(block, text=block.data, data="", hidden_chars=0)
    if not other.data:
        block = replace(block, data="", media_type="")
    return block if other.signature else replace(block, signature="")


def _end_of(message: AgentMessage, place: _Place) -> int:
    return run_end(message, place.start) if place.head is None else place.end
