"""SessionLog: one agent session as slices and evidence units, with what each was used for so far.

The log only grows. A *slice* is a run of whole lines of one block of a message, at most about 400
tokens: the unit that the planner keeps or leaves out. Every statistic looks at the past alone and
costs the units of the new message, never the history.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from context_gatekeeper.core.evidence import (
    argument_texts,
    evidence_tokens,
    line_keys,
    read_evidence,
    token_runs,
    unescape_json,
)
from context_gatekeeper.core.tokens import MESSAGE_TOKENS, TOOL_CALL_TOKENS, estimate_tokens, image_tokens
from context_gatekeeper.engine.task_labels import TaskLabels
from context_gatekeeper.engine.tool_paths import path_argument
from context_gatekeeper.types import AgentMessage, BlockKind, ContentBlock, MessageRole

__all__ = [
    "MOST_READ_CHARS",
    "OUTPUT_KINDS",
    "SLICE_TOKENS",
    "THINKING_TOKENS_A_CHAR",
    "Segment",
    "SessionLog",
    "Slice",
    "SliceKind",
    "Unit",
    "UnitKind",
    "readable_text",
    "tool_kind",
    "written_texts",
]

MOST_READ_CHARS = 512 * 1024
"""Of a longer text so much feeds statistics, half of it at each end (threat T11)."""
SLICE_TOKENS = 400
"""Aim of a slice; a single longer line is a slice of its own."""
THINKING_TOKENS_A_CHAR = 0.275
"""Thinking is billed by the log's count of characters where its text is left out (paging notes 2.1)."""


class SliceKind(IntEnum):
    """What a slice is a piece of; rows of the citation tables."""

    READ = 0
    """Result of reading a file."""
    SEARCH = 1
    SHELL = 2
    OTHER_RESULT = 3
    EDIT_CALL = 4
    WRITE_CALL = 5
    OTHER_CALL = 6
    THINKING = 7
    ASSISTANT = 8
    USER = 9


OUTPUT_KINDS = frozenset(
    {SliceKind.EDIT_CALL, SliceKind.WRITE_CALL, SliceKind.OTHER_CALL, SliceKind.THINKING, SliceKind.ASSISTANT}
)
"""What a model call puts out."""


class UnitKind(IntEnum):
    """What an evidence unit is."""

    IDENTIFIER = 0
    PATH = 1
    LINE = 2


@dataclass(slots=True)
class Unit:
    """One evidence unit and its uses so far."""

    kind: UnitKind
    holders: list[int] = field(default_factory=list)
    """Numbers of the slices that hold it, ascending, each once."""
    first_call: int = 0
    used: int = 0
    """Calls whose output quoted it."""
    last_used: int = -1
    """Newest of those calls; -1 for none."""
    is_users: bool = False
    """Whether a person wrote it."""


@dataclass(slots=True)
class Slice:
    """A run of whole lines of one block, and its uses so far."""

    number: int
    segment: int
    start: int
    """First character in the block's text."""
    end: int
    tokens: int
    born: int
    """Calls before it came."""
    first_line: int = 1
    """Of its block's lines, from 1, the one that it begins in."""
    units: tuple[int, ...] = ()
    """Its evidence units: lines, tokens and their runs."""
    lines: int = 0
    """Its evidence lines."""
    repeated: int = 0
    """Of those, the ones that came again in a later slice."""
    newest: int = 0
    """Of its units, those that no later slice holds."""
    line_citations: int = 0
    """Calls that quoted a line whose newest holder it was."""
    citations: int = 0
    """Calls that quoted a unit whose newest holder it was."""
    last_cited: int = -1
    """Newest of those calls; -1 for none."""


@dataclass(slots=True)
class Segment:
    """One block of one message."""

    number: int
    message: int
    block: ContentBlock
    kind: SliceKind
    path: str
    """File that the call or its result is about; "" for none."""
    born: int
    role: MessageRole
    """Who the message is of."""
    turn: int = -1
    """Number of the person's text that it follows, from 0; -1 before the first."""
    slices: list[int] = field(default_factory=list)
    last_cited: int = -1

    @property
    def text(self) -> str:
        """The block's text."""
        return self.block.text


_READ = re.compile(r"(?i)read|view|cat|open_file|get_file")
_SEARCH = re.compile(r"(?i)grep|glob|search|find|\bls\b|list|rg\b|tree")
_SHELL = re.compile(r"(?i)bash|shell|exec|terminal|run_|command|powershell")
_EDIT = re.compile(r"(?i)edit|patch|replace|insert|update_file|modify")
_WRITE = re.compile(r"(?i)write|create|save_file")
_RESULT_KINDS = (
    (_SHELL, SliceKind.SHELL),
    (_EDIT, SliceKind.OTHER_RESULT),
    (_READ, SliceKind.READ),
    (_SEARCH, SliceKind.SEARCH),
)
_CALL_KINDS = ((_SHELL, SliceKind.OTHER_CALL), (_EDIT, SliceKind.EDIT_CALL), (_WRITE, SliceKind.WRITE_CALL))


def tool_kind(name: str, *, is_result: bool) -> SliceKind:
    """Kind of a tool's call or result by the tool's name, whatever agent it belongs to."""
    kinds = _RESULT_KINDS if is_result else _CALL_KINDS
    for pattern, kind in kinds:
        if pattern.search(name):
            return kind
    return SliceKind.OTHER_RESULT if is_result else SliceKind.OTHER_CALL


class SessionLog:
    """One session's messages as slices and units.

    Args:
        token_factor: real tokens over estimated ones, for the model in question (calibration).
        count_tokens: estimate of a text's tokens.
    """

    def __init__(self, *, token_factor: float = 1.0, count_tokens: Callable[[str], int] = estimate_tokens) -> None:
        self.segments: list[Segment] = []
        self.slices: list[Slice] = []
        self.units: list[Unit] = []
        self.tasks = TaskLabels()
        self.calls = 0
        """Model calls so far."""
        self.user_turns: list[int] = []
        """For each text a person typed, the calls before it."""
        self.edits: dict[str, list[int]] = {}
        """File -> calls that changed it."""
        self.last_action = SliceKind.USER
        """Kind of the newest call of a tool; ``USER`` before the first."""
        self.touches: dict[str, int] = {}
        """File -> newest call that named it in its arguments."""
        self._ids: dict[str, int] = {}
        self._names: list[str] = []
        self.token_factor = token_factor
        self._count_tokens = count_tokens
        self._arguments: dict[str, str] = {}
        self._call_segments: dict[str, int] = {}
        self._result_segments: dict[str, list[int]] = {}
        self._calls_by_id: dict[str, tuple[str, str]] = {}
        self._message_count = 0

    def add_message(self, message: AgentMessage) -> list[Slice]:
        """Take in one message; its new slices. An assistant message is also read for what it quotes."""
        quoted: set[int] = set()
        if message.role is MessageRole.ASSISTANT:
            quoted = self.quoted_units(message)
            self._note_quotes(quoted)
        elif message.role is MessageRole.USER and not message.origin:
            self.user_turns.append(self.calls)
        self.tasks.add(message)
        added: list[Slice] = []
        for block in message.blocks:
            added += self._add_block(message, block)
        if message.role is MessageRole.ASSISTANT and message.is_call:
            self.calls += 1
        self._message_count += 1
        return added

    def count(self, text: str) -> int:
        """Tokens of a text by the estimate and its calibration."""
        return round(self._count_tokens(text) * self.token_factor)

    def handle(self, segment: Segment) -> str:
        """Name of a block inside its session, as digests and references write it."""
        return f"p{segment.number}"

    def is_of_other_task(self, piece: Slice) -> bool:
        """Whether the slice belongs to another task than the running one."""
        task = self.tasks.task_of(self.segments[piece.segment].turn)
        return task is not None and task != self.tasks.running_task

    def call_of(self, segment: Segment) -> Segment | None:
        """The call that a result answers; None for another block, or when the call is not known."""
        if segment.block.kind is not BlockKind.TOOL_RESULT:
            return None
        number = self._call_segments.get(segment.block.call_id)
        return None if number is None else self.segments[number]

    def results_of(self, segment: Segment) -> list[Segment]:
        """Results that answer a call, in order; none for another block."""
        if segment.block.kind is not BlockKind.TOOL_CALL:
            return []
        return [self.segments[number] for number in self._result_segments.get(segment.block.call_id, ())]

    def arguments_of(self, segment: Segment) -> str:
        """Arguments of the call that the result answers; "" when the call is not known."""
        return self._arguments.get(segment.block.call_id, "")

    def exchange_of(self, piece: int) -> int:
        """Number of the call whose output or results the slice belongs to; -1 before the first call."""
        segment = self.segments[self.slices[piece].segment]
        return segment.born if segment.kind in OUTPUT_KINDS else segment.born - 1

    def unit_id(self, unit: str) -> int | None:
        """Number of a unit that some message held; None for one never seen."""
        return self._ids.get(unit)

    def quoted_units(self, message: AgentMessage) -> set[int]:
        """Units of the message's texts and call arguments that stood earlier in the session.

        A token counts whole, where it or a longer one that holds it stood; the runs inside it do not.
        """
        quoted: set[int] = set()
        for text in map(_ends, written_texts(message)):
            for line in text.split("\n"):
                for key in line_keys(line):
                    if (unit := self._ids.get(key)) is not None:
                        quoted.add(unit)
            for token in evidence_tokens(text):
                if (unit := self._ids.get(token)) is not None:
                    quoted.add(unit)
        return quoted

    def text_read(self, piece: Slice) -> str:
        """What of a slice feeds statistics, as a reader sees it: no thinking, and of a giant text its two ends.

        The rest of a giant text leaves the window and comes back like any other, but nothing is found by it.
        """
        segment = self.segments[piece.segment]
        block, size = segment.block, len(segment.block.text)
        if segment.kind is SliceKind.THINKING:
            return ""
        if size <= MOST_READ_CHARS:
            return readable_text(block, piece.start, piece.end)
        ahead, behind = MOST_READ_CHARS // 2, size - MOST_READ_CHARS // 2
        parts = ((piece.start, min(piece.end, ahead)), (max(piece.start, behind), piece.end))
        return "\n".join(readable_text(block, start, end) for start, end in parts if start < end)

    def name_of(self, unit: int) -> str:
        """The unit's text. O(1)."""
        return self._names[unit]

    # -- inside -----------------------------------------------------------------------------

    def _note_quotes(self, quoted: set[int]) -> None:
        """Give each quoted unit's newest holder the credit, once a call."""
        call = self.calls
        cited: dict[int, bool] = {}
        for number in quoted:
            unit = self.units[number]
            unit.used += 1
            unit.last_used = call
            holder = unit.holders[-1]
            cited[holder] = cited.get(holder, False) or unit.kind is UnitKind.LINE
        for holder, by_line in cited.items():
            piece = self.slices[holder]
            piece.citations += 1
            piece.line_citations += by_line
            piece.last_cited = call
            self.segments[piece.segment].last_cited = call

    def _add_block(self, message: AgentMessage, block: ContentBlock) -> list[Slice]:
        kind, path = self._classify(message, block)
        number, turn = len(self.segments), self.tasks.turn
        segment = Segment(number, self._message_count, block, kind, path, self.calls, message.role, turn)
        self.segments.append(segment)
        if block.kind is BlockKind.THINKING:
            chars = block.hidden_chars or len(block.text)
            spans = [(0, len(block.text), round(chars * THINKING_TOKENS_A_CHAR))]
        elif block.kind is BlockKind.IMAGE:
            spans = [(0, 0, image_tokens())]
        else:
            spans = self._spans(block)
        is_typed = message.role is MessageRole.USER and not message.origin
        added = []
        line = 1
        for start, end, tokens in spans:
            piece = Slice(len(self.slices), segment.number, start, end, max(1, tokens), self.calls, line)
            line += block.text.count("\n", start, end)
            self.slices.append(piece)
            segment.slices.append(piece.number)
            if read := self.text_read(piece):
                self._index(piece, read, is_users=is_typed)
            added.append(piece)
        return added

    def _classify(self, message: AgentMessage, block: ContentBlock) -> tuple[SliceKind, str]:
        if block.kind is BlockKind.TOOL_CALL:
            path = path_argument(block.text)
            kind = tool_kind(block.name, is_result=False)
            self._calls_by_id[block.call_id] = block.name, path
            self._arguments[block.call_id] = block.text
            self._call_segments[block.call_id] = len(self.segments)
            self.last_action = tool_kind(block.name, is_result=True) if kind is SliceKind.OTHER_CALL else kind
            if path:
                self.touches[path] = self.calls
                if kind in (SliceKind.EDIT_CALL, SliceKind.WRITE_CALL):
                    self.edits.setdefault(path, []).append(self.calls)
            return kind, path
        if block.kind is BlockKind.TOOL_RESULT:
            self._result_segments.setdefault(block.call_id, []).append(len(self.segments))
            name, path = self._calls_by_id.get(block.call_id, (block.name, ""))
            return tool_kind(name, is_result=True), path
        if block.kind is BlockKind.THINKING:
            return SliceKind.THINKING, ""
        if message.role is MessageRole.ASSISTANT:
            return SliceKind.ASSISTANT, ""
        return SliceKind.USER, ""

    def _count_all(self, text: str) -> float:
        """Tokens of a text without the calibration; of a giant one as many as its ends let expect."""
        read = _ends(text)
        return self._count_tokens(text) if read is text else self._count_tokens(read) * (len(text) / len(read))

    def _spans(self, block: ContentBlock) -> list[tuple[int, int, int]]:
        """(start, end, tokens) of the block's slices: whole lines, about `SLICE_TOKENS` each."""
        text = block.text
        frame = TOOL_CALL_TOKENS if block.kind is BlockKind.TOOL_CALL else MESSAGE_TOKENS
        total = self._count_all(text) * self.token_factor
        if total <= SLICE_TOKENS:
            return [(0, len(text), round(total) + frame)]
        share = total / len(text)
        most_chars = int(SLICE_TOKENS / share)
        separator = "\n"
        if block.kind is BlockKind.TOOL_CALL and text.count("\\n") > text.count("\n"):
            separator = "\\n"  # as JSON writes a line break
        spans: list[tuple[int, int, int]] = []
        start = 0
        while start < len(text):
            end = len(text)
            if end - start > most_chars:
                end = text.rfind(separator, start, start + most_chars) + len(separator)
                if end <= start + len(separator) - 1:  # a line longer than a slice
                    found = text.find(separator, max(start, start + most_chars + 1 - len(separator)))
                    end = len(text) if found < 0 else found + len(separator)
            spans.append((start, end, round((end - start) * share) + (0 if start else frame)))
            start = end
        return spans

    def _index(self, piece: Slice, read: str, *, is_users: bool) -> None:
        found = read_evidence(read)
        numbers: dict[int, None] = {}
        for line in found.lines:
            number = self._hold(line, UnitKind.LINE, piece, is_users)
            piece.lines += 1
            numbers[number] = None
        for token in found.tokens:
            for run in token_runs(token):
                kind = UnitKind.PATH if "/" in run else UnitKind.IDENTIFIER
                numbers[self._hold(run, kind, piece, is_users)] = None
        piece.units = tuple(numbers)

    def _hold(self, text: str, kind: UnitKind, piece: Slice, is_users: bool) -> int:
        number = self._ids.get(text)
        if number is None:
            number = self._ids[text] = len(self.units)
            self.units.append(Unit(kind, first_call=self.calls))
            self._names.append(text)
        unit = self.units[number]
        if not unit.holders or unit.holders[-1] != piece.number:
            if unit.holders:
                older = self.slices[unit.holders[-1]]
                older.newest -= 1
                older.repeated += kind is UnitKind.LINE
            unit.holders.append(piece.number)
            piece.newest += 1
        unit.is_users = unit.is_users or is_users
        return number


def _ends(text: str) -> str:
    """The text; of a giant one both ends."""
    half = MOST_READ_CHARS // 2
    return text if len(text) <= MOST_READ_CHARS else f"{text[:half]}\n{text[-half:]}"


def readable_text(block: ContentBlock, start: int, end: int) -> str:
    """A stretch of a block as a reader sees it: a call's arguments without their JSON."""
    text = block.text[start:end]
    if block.kind is not BlockKind.TOOL_CALL:
        return text
    return "\n".join(argument_texts(text)) if (start, end) == (0, len(block.text)) else unescape_json(text)


def written_texts(message: AgentMessage) -> list[str]:
    """What a model wrote in one message: its texts and the texts of its calls' arguments."""
    texts: list[str] = []
    for block in message.blocks:
        if block.kind is BlockKind.TEXT:
            texts.append(block.text)
        elif block.kind is BlockKind.TOOL_CALL:
            texts += argument_texts(block.text)
    return texts
