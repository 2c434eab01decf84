"""Records of memory cards: what goes in, what stands on a card, and what was worked out beside it.

A card quotes. Whatever is not a slice of a page (counts, exit codes, states) stands in typed fields of its own, so
that a card can be checked against its pages. Source: section 1 of the paging notes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from context_gatekeeper.types import BlockKind, MessageRole

__all__ = [
    "CARD_PARAMS",
    "CardEntry",
    "CardField",
    "CardParams",
    "CardSource",
    "CommandFacts",
    "ErrorFacts",
    "ErrorState",
    "Facts",
    "FileFacts",
    "OpenItemFacts",
    "PinnedGoal",
    "Quote",
    "SaidFacts",
    "TestFacts",
]


@dataclass(frozen=True, slots=True)
class CardParams:
    """Limits of a card."""

    goal_chars: int = 160
    sentence_chars: int = 240
    """Of a longer sentence the clauses around its mark are quoted."""
    command_chars: int = 120
    line_chars: int = 200
    """Of an error line, frame, test line."""
    most_entries: int = 40
    """A field holds no more; what is newer, failed or the user's stays."""
    errors_a_result: int = 3
    """Error lines taken from one result."""


CARD_PARAMS = CardParams()


@dataclass(frozen=True, slots=True)
class CardSource:
    """One block of a session, with the page that keeps it."""

    page_id: int
    seq: int
    """Place in the session; ascending, several blocks of one message may share it."""
    role: MessageRole
    kind: BlockKind
    text: str
    """Text, thinking, result; the arguments of a call as logged. Equal to the page's text, or a part of it."""
    name: str = ""
    """The tool's, on calls and results."""
    call_id: str = ""
    is_error: bool = False
    origin: str = ""
    """Why a user message is there when no person typed it; "" for a typed one."""
    time: float | None = None
    """Seconds since the epoch, when the log tells it."""


@dataclass(frozen=True, slots=True)
class PinnedGoal:
    """The goal that is pinned for the stretch."""

    title: str
    page_id: int
    """Of the goal page, whose text holds ``title``."""
    seq: int
    goal_id: str = ""
    """Names the goal where its page is none of the session's blocks, as ``g2``."""


class CardField(StrEnum):
    """What an entry tells of."""

    GOAL = "goal"
    DECISION = "decisions"
    FILE = "files"
    COMMAND = "commands"
    TEST = "tests"
    ERROR = "errors"
    OPEN_ITEM = "open_items"
    CONSTRAINT = "constraints"
    VALUE = "values"


@dataclass(frozen=True, slots=True)
class Quote:
    """A slice of a page's text."""

    text: str
    page_id: int
    seq: int


@dataclass(frozen=True, slots=True)
class SaidFacts:
    """Beside a goal, decision, constraint or value."""

    by: MessageRole
    is_cut: bool = False
    """Only a part of the sentence is quoted."""
    goal_id: str = ""
    """Of a goal that is pinned: stands in the place of the block's handle."""

    @property
    def note(self) -> str:
        """Who said it."""
        return self.by.value


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Beside a path."""

    reads: int
    writes: int
    patches: int
    """Times a patch or diff names it."""
    last_page_id: int
    """The newest page with its content or its change."""
    is_generated: bool = False

    @property
    def note(self) -> str:
        """Counts that are not 0."""
        parts = (("written", self.writes), ("read", self.reads), ("in diffs", self.patches))
        return ", ".join(f"{name} {count}" for name, count in parts if count)


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """Beside a command: its last run."""

    exit_code: int | None
    """None is unknown, never success."""
    has_failed: bool
    """Marked as failed by its tool, or an exit code other than 0."""
    is_masked: bool
    """The exit code may be that of a pipe's last program, or of the last of several."""
    runs: int
    duration_seconds: float | None = None
    is_probe: bool = False

    @property
    def note(self) -> str:
        """Exit code, time, runs."""
        code = "unknown" if self.exit_code is None else str(self.exit_code)
        parts = [f"exit {code}{' (masked)' if self.is_masked and self.exit_code == 0 else ''}"]
        if self.has_failed and self.exit_code is None:
            parts[0] = "failed, exit unknown"
        if self.duration_seconds is not None:
            parts.append(f"{self.duration_seconds:.1f} s")
        if self.runs > 1:
            parts.append(f"{self.runs} runs")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class TestFacts:
    """Beside the last counts of a test runner."""

    __test__ = False

    runner: str
    passed: int
    failed: int
    unit: str = "tests"
    """``packages`` where the runner prints nothing finer."""

    @property
    def note(self) -> str:
        """Runner and counts."""
        return f"{self.runner}: {self.passed} passed, {self.failed} failed {self.unit}"


class ErrorState(StrEnum):
    """What became of an error."""

    OPEN = "open"
    UNCONFIRMED = "unconfirmed"
    """Another command, or one whose exit code is not its own, went through since."""
    CLOSED = "closed"
    """The same command went through since, or the user said that it is fixed."""


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """Beside an error line."""

    state: ErrorState
    times: int
    first_seq: int

    @property
    def note(self) -> str:
        """State and count."""
        return f"{self.state.value}{f', {self.times} times' if self.times > 1 else ''}"


@dataclass(frozen=True, slots=True)
class OpenItemFacts:
    """Beside an open item."""

    state: str
    """``pending``, ``in_progress`` ... as its list says, ``open``, ``unanswered``, ``said``."""

    @property
    def note(self) -> str:
        """The state."""
        return self.state


Facts = SaidFacts | FileFacts | CommandFacts | TestFacts | ErrorFacts | OpenItemFacts


@dataclass(frozen=True, slots=True)
class CardEntry:
    """One line of a card."""

    field: CardField
    text: str
    """A slice of the page's text, never changed."""
    page_id: int
    seq: int
    facts: Facts
    """What is not a quote."""
    quotes: tuple[Quote, ...] = ()
    """What belongs to it from other places: a command's last error line, an error's top frame."""

    @property
    def note(self) -> str:
        """The facts in words."""
        return self.facts.note

    def all_quotes(self) -> tuple[Quote, ...]:
        """Everything that it quotes, itself first."""
        return (Quote(self.text, self.page_id, self.seq), *self.quotes)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "text": self.text,
            "page_id": self.page_id,
            "seq": self.seq,
            "note": self.note,
            "facts": asdict(self.facts),
            "quotes": [asdict(quote) for quote in self.quotes],
        }
