"""Frozen records shared by every layer. No behaviour beyond what a record implies.

Identifiers. ``turn_id`` counts the turns of one session from 0. A turn is stored as a
pair of pages, one a side; the *ordinal* of a page inside its session is
``2 * turn_id`` for the user's text and ``2 * turn_id + 1`` for the assistant's, so that
the order of a session never depends on a clock. In an agent's session tool results, files,
cards and goals are pages of the user's side, what the model wrote is one of the
assistant's; an empty page fills a side that is missing between two others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, NewType

__all__ = [
    "FIRST_SECOND",
    "LAST_SECOND",
    "NO_LABELS",
    "AgentMessage",
    "AgentSession",
    "Block",
    "BlockKind",
    "ContentBlock",
    "ConversationTurn",
    "Decision",
    "GateVerdict",
    "MessageRole",
    "NativeMode",
    "Page",
    "PageDraft",
    "PageId",
    "PageKind",
    "PageLabels",
    "PagePart",
    "PageScope",
    "Provenance",
    "RecallHit",
    "Role",
    "SessionEvent",
    "Stage",
    "TopicMove",
    "Usage",
]

FIRST_SECOND, LAST_SECOND = -6.2e10, 1e11
"""Bounds of times, in seconds since the epoch: years 5 to 5138, of which calendars tell month and year whatever
the time zone. Larger numbers are milliseconds."""
PageId = NewType("PageId", int)
"""Identity of a page inside its store: positive, assigned at append, never used again."""


class Role(StrEnum):
    """Whose words a page holds."""

    USER = "user"
    ASSISTANT = "assistant"


class PageKind(StrEnum):
    """What a page is made of."""

    TURN = "turn"
    """What one side said: of an agent's turn its text, thinking and calls one behind the other."""
    TOOL = "tool"
    """The result of one tool call, or one piece of it."""
    FILE = "file"
    """One version of a file."""
    CARD = "card"
    GOAL = "goal"


class PageScope(StrEnum):
    """How far a page may be recalled, as long as owner and access list allow it."""

    PRIVATE = "private"
    SHARED = "shared"
    KNOWLEDGE = "knowledge"


class NativeMode(StrEnum):
    """What is left to a provider's own means of keeping a context small."""

    OFF = "off"
    AUTO = "auto"
    """Native where ours cannot act or is known to cost more."""
    PREFER = "prefer"
    """Native wherever the provider has it."""


class Provenance(StrEnum):
    """The channel through which a text came in. Set at entry from the channel, never from the text."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    FILE = "file"
    WEB = "web"
    DERIVED = "derived"
    """Worked out by rules from other pages."""


class PagePart(NamedTuple):
    """One piece of a page that holds several, as offsets into its text."""

    kind: BlockKind
    start: int
    end: int
    name: str = ""
    """The tool of a call."""
    call_id: str = ""
    hidden_chars: int = 0
    """As in `ContentBlock`: characters of thinking or an image that are not in the text."""
    signature: str = ""
    """As in `ContentBlock`, like the next two."""
    data: str = ""
    media_type: str = ""


@dataclass(frozen=True, slots=True)
class PageLabels:
    """Whose page it is and what it belongs to. Each label has a default, which costs a store nothing."""

    namespace: str = "session"
    scope: PageScope = PageScope.PRIVATE
    owner: str = ""
    acl: tuple[str, ...] = ()
    """Who beside the owner may recall the page."""
    task_id: str = ""
    goal_ids: tuple[str, ...] = ()
    call_id: str = ""
    """The tool call that a page answers: pages of one call are one swap group."""
    tool: str = ""
    path: str = ""
    """The file of a file page."""
    content_hash: str = ""
    """Digest of the file as it was on the disk, where known; the page's own digest is ``Page.sha256``."""
    supersedes: PageId | None = None
    """The older version of the same thing."""
    provenance: Provenance | None = None
    """None where nobody said it: a turn's own side."""
    parts: tuple[PagePart, ...] = ()
    """Pieces of the text in order; empty when it is one piece."""
    origin: str = ""
    """Why a page of the user's side is there when no person typed it, as in `AgentMessage`; "" for a typed one."""
    is_error: bool = False
    """A result that its tool marked as failed."""
    deleted: bool = False
    """Whether the page's owner deleted it: text, terms and all other labels are gone. Set by stores alone."""


NO_LABELS = PageLabels()
"""All defaults."""


@dataclass(frozen=True, slots=True)
class PageDraft:
    """A page before a store gave it an identity.

    ``terms`` and ``derived`` can be rebuilt from ``text``; stores keep them so that a
    session reopens without analysing its texts again.
    """

    turn_id: int
    role: Role
    text: str
    """The original, byte for byte; lone surrogates and NUL allowed."""
    terms: Mapping[str, int] = field(default_factory=dict)
    """Anchor -> occurrences in ``text`` (1..255)."""
    derived: str = ""
    """What the engine worked out about the turn (JSON); empty when nothing."""
    time: float | None = None
    """Seconds since the epoch, UTC, when the caller knows it."""
    speaker: str | None = None
    kind: PageKind = PageKind.TURN
    labels: PageLabels = NO_LABELS

    @property
    def ordinal(self) -> int:
        """Place of the page inside its session (module docstring)."""
        return 2 * self.turn_id + (self.role is Role.ASSISTANT)


@dataclass(frozen=True, slots=True)
class Page:
    """An immutable stored page."""

    page_id: PageId
    pool: str
    session: str
    turn_id: int
    role: Role
    text: str
    terms: Mapping[str, int]
    derived: str
    time: float | None
    speaker: str | None
    kind: PageKind
    sha256: str
    """Hex digest of ``text`` in UTF-8 (surrogates passed through) and, behind it, of what parts hold beside it."""
    labels: PageLabels = NO_LABELS

    @property
    def ordinal(self) -> int:
        """Place of the page inside its session (module docstring)."""
        return 2 * self.turn_id + (self.role is Role.ASSISTANT)


@dataclass(frozen=True, slots=True)
class Block:
    """One turn as the chat selector sees it (SPEC.md section 2)."""

    turn_id: int
    user_text: str
    assistant_text: str
    tokens_user: int
    tokens_assistant: int
    anchors: tuple[str, ...]


class TopicMove(StrEnum):
    """What the topic gate decided about a query."""

    CONTINUE = "continue"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The topic gate's decision, with what led to it (DESIGN.md 4.2)."""

    move: TopicMove
    reason: str
    anchor_overlap_ratio: float
    """IDF mass of the query's anchors that the active topic holds, share in [0, 1]."""
    new_token_ratio: float
    """IDF mass of the query's anchors that it does not hold, share in [0, 1]."""
    points: float = 0.0
    """Sum of the score table; above 0 means switch. 0.0 when a rule decided before it."""
    is_deictic: bool = False
    is_soft: bool = False
    """A switch to a new subject that need not end the talk about the last block, which is kept."""


@dataclass(frozen=True, slots=True)
class RecallHit:
    """A page found by ``recall()``, best first."""

    page_id: PageId
    turn_id: int
    role: Role
    score: float
    """Comparable inside one result only; > 0."""


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One turn of a conversation file, as the transcript readers give it."""

    user_text: str
    assistant_text: str
    time: float | None = None
    speakers: tuple[str | None, str | None] = (None, None)
    """Names of the two sides where the file has them and they are persons."""
    source_ids: tuple[str | None, str | None] = (None, None)
    """The file's own identifiers of the two texts; equal when one line holds both."""
    session: str | None = None
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage of the selection let through."""

    stage: str
    kept: tuple[int, ...]
    """Turn ids, ascending."""
    dropped: tuple[int, ...]
    """Turn ids, ascending."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"stage": self.stage, "kept": list(self.kept), "dropped": list(self.dropped)}


@dataclass(frozen=True, slots=True)
class Decision:
    """The whole record of one selection: what is in, what left at which stage, and why."""

    query: str
    profile: str
    verdict: GateVerdict
    topic: str
    """``none`` (no history), ``running``, ``known`` (switch back) or ``new``."""
    topic_reason: str
    """What tied the query to the topic: a name, a segment, the run."""
    stages: tuple[Stage, ...]
    blocks: tuple[dict[str, Any], ...]
    """What `select` returns, in turn order."""
    coverage: float
    """Share of the query's anchor weight that the blocks cover, in [0, 1]."""
    anchor_weights: Mapping[str, float]
    """Query anchor as written -> weight used for coverage."""
    tokens_fitted: int
    """Blocks by the fitted estimate."""
    tokens_documented: int
    """Blocks by ``len * 1.5``."""
    budget_tokens: int
    """What was left for blocks after query, constraints and glue."""
    warnings: tuple[str, ...] = ()
    """What the caller should know: one line each, logged too."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form with the same names."""
        return {
            "query": self.query,
            "profile": self.profile,
            "verdict": {
                "move": self.verdict.move.value,
                "reason": self.verdict.reason,
                "anchor_overlap_ratio": self.verdict.anchor_overlap_ratio,
                "new_token_ratio": self.verdict.new_token_ratio,
                "points": self.verdict.points,
                "is_deictic": self.verdict.is_deictic,
                "is_soft": self.verdict.is_soft,
            },
            "topic": self.topic,
            "topic_reason": self.topic_reason,
            "stages": [stage.to_dict() for stage in self.stages],
            "blocks": [dict(block) for block in self.blocks],
            "coverage": self.coverage,
            "anchor_weights": dict(self.anchor_weights),
            "tokens_fitted": self.tokens_fitted,
            "tokens_documented": self.tokens_documented,
            "budget_tokens": self.budget_tokens,
            "warnings": list(self.warnings),
        }


# -- agent sessions, in no provider's format ----------------------------------------------------


class MessageRole(StrEnum):
    """Who sent a message of an agent session. Tool results have a role of their own, whatever the wire says."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class BlockKind(StrEnum):
    """What one piece of a message is."""

    TEXT = "text"
    THINKING = "thinking"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    IMAGE = "image"
    OTHER = "other"
    """Of a type that we do not know: kept whole, never looked into."""


@dataclass(frozen=True, slots=True)
class ContentBlock:
    """One piece of a message. Never cut or changed after it was read."""

    kind: BlockKind
    text: str = ""
    """Text, thinking, result; the arguments of a call as the log has them (JSON text); "" for an image."""
    call_id: str = ""
    """Pairs a call with its result; "" for other kinds."""
    name: str = ""
    """The tool's name, on a call and, where the call is known, on its result; the type of an ``OTHER`` block."""
    is_error: bool = False
    """A result that its tool marked as failed."""
    hidden_chars: int = 0
    """Characters of thinking that are not in the text, because it is sealed or the log only counts them; of the data
    of an image."""
    signature: str = ""
    """With which a provider recognises its own thinking."""
    data: str = ""
    """Of an image, in base64; of sealed thinking what its provider alone can read. As the log has it, never looked
    into: no text, no tokens."""
    media_type: str = ""
    """Of an image's data."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call as its provider billed them; the prompt is the sum of the first three."""

    plain_tokens: int = 0
    """Prompt tokens neither read from the cache nor written to it."""
    read_tokens: int = 0
    written_tokens: int = 0
    output_tokens: int | None = None
    """None where the log holds no final count."""

    @property
    def prompt_tokens(self) -> int:
        """Whole prompt, resident part included."""
        return self.plain_tokens + self.read_tokens + self.written_tokens


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """One message of an agent session. An assistant message with ``is_call`` is one model call."""

    role: MessageRole
    blocks: tuple[ContentBlock, ...]
    time: float | None = None
    """Seconds since the epoch, UTC, when it was logged; an assistant message's first block."""
    end_time: float | None = None
    """When an assistant message's last block was logged, where that differs."""
    usage: Usage | None = None
    is_call: bool = False
    """Whether a model wrote it: a notice of the program on the assistant's side is none."""
    origin: str = ""
    """Why a user message is there when no person typed it (``meta``, ``compact_summary`` ...); "" for a typed one."""
    source_line: int = 0
    """Line of the file that it begins on, from 1; 0 where the file has no lines."""


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """Where the agent's own program cut its context."""

    kind: str
    """``compact`` (all before became a summary) or ``microcompact`` (old results were cleared)."""
    time: float | None = None
    prompt_tokens: int | None = None
    """Prompt before the cut."""


@dataclass(frozen=True, slots=True)
class AgentSession:
    """One recorded session: the messages in the order of the conversation that its newest message belongs to."""

    session_id: str
    source: str
    """The reader's name for the format: ``agents``, ``claude-code``, ``codex``, ``openai-messages``."""
    messages: tuple[AgentMessage, ...]
    events: tuple[SessionEvent, ...] = ()
    working_folder: str = ""
    """Where the agent worked, when the log says so."""
    warnings: tuple[str, ...] = ()
    """What was skipped or mended: one line each, with the place."""
