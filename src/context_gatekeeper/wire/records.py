"""Requests of the three APIs as the planner sees them, and what it may change in them.

A request is a JSON text with places marked in it. What the planner does not touch keeps its bytes: order of keys,
spaces, escapes. Offsets are characters of the decoded text, ``(start, end)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from context_gatekeeper.types import AgentMessage, ContentBlock, MessageRole

__all__ = [
    "CacheMark",
    "PartKey",
    "RequestEdits",
    "Span",
    "WireApi",
    "WireMessage",
    "WirePart",
    "WireRequest",
    "WireTurn",
]


class WireApi(StrEnum):
    """Whose form a request has."""

    MESSAGES = "messages"
    """Anthropic Messages."""
    CHAT = "chat"
    """OpenAI Chat Completions."""
    RESPONSES = "responses"
    """OpenAI Responses."""


class Span(NamedTuple):
    """A stretch of the request's text."""

    start: int
    end: int


class PartKey(NamedTuple):
    """Names a part inside its request."""

    message: int
    part: int


@dataclass(frozen=True, slots=True)
class WirePart:
    """What the planner keeps or leaves out: one block, or one piece of a tool result that has several."""

    key: PartKey
    block: ContentBlock
    """Of a call ``text`` is the exact JSON text of its arguments, of a type that we do not know its whole JSON."""
    span: Span
    """The JSON value that leaves with it: the block's object; of a piece of a tool result that piece's; of a message
    whose content is a text that literal."""
    text_span: Span | None
    """The JSON value that holds ``block.text``: a string literal with its quotes, of Anthropic's calls the object
    ``input``; None where the text cannot be replaced (thinking, images, unknown types, no such key)."""
    is_marked: bool = False
    """Whether the client put a cache breakpoint on it."""


@dataclass(frozen=True, slots=True)
class WireMessage:
    """One element of ``messages`` or ``input``."""

    number: int
    role: MessageRole
    """As the API names it; items of the Responses API that a model put out are its assistant's, outputs of tools are
    ``TOOL``, and so are Chat's tool messages; a user message of Anthropic's is ``USER`` whatever it holds."""
    span: Span
    parts: tuple[WirePart, ...]
    fingerprint: bytes
    """Digest of all that it says, without cache breakpoints, spaces and the order of keys: equal for a message that
    is sent again."""


@dataclass(frozen=True, slots=True)
class WireTurn:
    """A neutral message, and the parts that its blocks are."""

    message: AgentMessage
    keys: tuple[PartKey, ...]
    """One for each of ``message.blocks``."""


@dataclass(frozen=True, slots=True)
class CacheMark:
    """A cache breakpoint of the client's (Anthropic's ``cache_control``)."""

    where: str
    """``tools``, ``system``, ``messages``, or ``request`` for the one at the top, which moves by itself."""
    ttl: str
    """``5m`` or ``1h``."""


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A decoded request."""

    api: WireApi
    source: str
    """Its text; ``source.encode("utf-8", "surrogatepass")`` is what came in."""
    model: str
    is_stream: bool
    messages: tuple[WireMessage, ...]
    turns: tuple[WireTurn, ...]
    """The same as neutral messages, in order: of the model's outputs one for each call (``is_call``), of the rest
    one for each tool result and one for what stands between them."""
    system_text: str
    """The texts in front of the conversation, joined by empty lines: ``system``, ``instructions``, and system or
    developer messages before the first other one (those are in ``messages`` too, but in no turn)."""
    tools_text: str
    """JSON text of the tool definitions; "" for none."""
    session_hint: str = ""
    """The conversation's name in the body: ``metadata.user_id``'s session, ``prompt_cache_key``; "" for none."""
    marks: tuple[CacheMark, ...] = ()
    has_server_history: bool = False
    """Whether the provider keeps earlier messages (``previous_response_id``, ``conversation``) and the request holds
    new ones alone."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestEdits:
    """What the planner changes. Empty: the received bytes are sent."""

    texts: Mapping[PartKey, str] = field(default_factory=dict)
    """Part -> its new text; of a call the JSON text of its new arguments."""
    dropped: frozenset[PartKey] = frozenset()
    """Parts that leave. A tool result leaves when all its pieces do, a message when all its parts do and nothing is
    added."""
    added: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Number of a message on the user's side -> texts behind what it holds, in the user's role."""
    marked: frozenset[PartKey] = frozenset()
    """Parts that get a cache breakpoint of ours (Anthropic alone)."""
    marks_added: frozenset[int] = frozenset()
    """Messages whose last added text gets one."""
    mark_ttl: str = "5m"

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return bool(self.texts or self.dropped or self.added or self.marked or self.marks_added)
