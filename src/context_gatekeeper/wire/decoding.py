"""What the three decoders share: parts, turns and fingerprints of messages, and what an earlier request tells."""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Protocol

from context_gatekeeper.types import AgentMessage, BlockKind, ContentBlock, MessageRole
from context_gatekeeper.wire.blocks import (
    ANTHROPIC_MARK,
    MARK_KEYS,
    ReadBlock,
    as_name,
    other_block,
    read_block,
    text_of,
)
from context_gatekeeper.wire.json_source import Node, Shape, read_element, refuse
from context_gatekeeper.wire.records import (
    CacheMark,
    PartKey,
    Span,
    WireApi,
    WireMessage,
    WirePart,
    WireRequest,
    WireTurn,
)

__all__ = [
    "CLIENT_ORIGIN",
    "Conversation",
    "Envelope",
    "PartCollector",
    "ReadMessage",
    "Run",
    "known_texts",
    "make_turns",
    "marks_of",
    "origin_of_typed",
    "read_again",
    "read_conversation",
    "read_envelope",
    "reuse_message",
]

CLIENT_ORIGIN = "client"
"""Origin of messages on the user's side that the client's program wrote."""
_IN_MESSAGES = "messages"
_REMINDER_START, _REMINDER_END = "<system-reminder>", "</system-reminder>"
_FINGERPRINT_BYTES = 16
_MARSHAL_VERSION = 2
"""The newest whose bytes depend on nothing but the value."""
_LONGER_TTL, _PLAIN_TTL = "1h", "5m"
_RESULT = BlockKind.TOOL_RESULT
_BLOCK_LISTS = ("content", "output")
_MAYBE_ODD = (BlockKind.TOOL_CALL, BlockKind.TOOL_RESULT, BlockKind.OTHER)
"""Blocks whose text cannot be replaced perhaps because something is odd with them."""


_make = tuple.__new__
"""Makes a named tuple of a tuple, without the cost of its constructor."""


@dataclass(slots=True)
class Run:
    """Parts of one message that belong together: one tool's result, or what stands between results."""

    is_result: bool
    numbers: list[int]
    """Of the parts."""


@dataclass(slots=True)
class PartCollector:
    """Collects the parts of one message after the other."""

    source: str
    names: dict[str, str] = field(default_factory=dict)
    """Call id -> the tool's name, of the calls so far."""
    warnings: list[str] = field(default_factory=list)
    marks: list[CacheMark] = field(default_factory=list)
    number: int = 0
    """Of the message."""
    parts: list[WirePart] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    is_marked: bool = False
    """Whether the message holds a cache breakpoint."""

    def begin(self, number: int) -> None:
        """Go on to a message."""
        self.number = number
        self.parts, self.runs, self.is_marked = [], [], False

    def add(self, block: ContentBlock, node: Node, text_node: Node | None, *, is_marked: bool = False) -> None:
        """Add a part to what stands between results."""
        if not self.runs or self.runs[-1].is_result:
            self.runs.append(Run(False, []))
        self._put(block, _make(Span, node[1:3]), text_node, is_marked)

    def add_read(self, read: ReadBlock, node: Node, *, is_marked: bool = False) -> None:
        """Add a part that was read, with its warning."""
        if read.oddity:
            self.warn(read.oddity)
        self.add(read.block, node, read.text_node, is_marked=is_marked)

    def add_content(self, content: Node | None) -> None:
        """Add what a message holds: nothing for null and an empty text, a text, or a list of parts."""
        if content is None or content.value is None or content.value == "":
            return
        if content.items is not None:
            for item in content.items:
                self._add_item(item)
        elif isinstance(content.value, str):
            self.add(ContentBlock(BlockKind.TEXT, content.value), content, content)
        else:
            self.warn("its content is neither a text nor a list")
            self.add(other_block(content, self.source, "content"), content, None)

    def add_result(
        self,
        holder: Node,
        content: Node | None,
        call_id: str,
        *,
        is_error: bool = False,
        name: str = "",
        is_message: bool = False,
    ) -> None:
        """Add what a tool gave back as a run of its own: a ``TOOL_RESULT`` for each text, other parts between them.

        The first block is a ``TOOL_RESULT``: where no text comes first an empty one that stands for ``holder``.

        Args:
            holder: what leaves when the whole result does.
            content: a text, null, a list of parts; another value is taken as its JSON text.
            call_id: of the call that it answers.
            is_error: whether the tool failed.
            name: the tool's, where the result says it.
            is_message: whether ``holder`` is a message, whose content as a text stands for itself.
        """
        self.runs.append(Run(True, []))
        name = name or self.name_of(call_id)
        is_marked = self._take_mark(holder)
        if content is None or content.items is None:
            text, text_node = self._read_plain_result(content)
            block = ContentBlock(_RESULT, text, call_id, name, is_error)
            place = text_node if text_node is not None and is_message else holder
            self._put(block, _make(Span, place[1:3]), text_node, is_marked)
            return
        reads = [read_block(item, self.source) for item in content.items]
        if not reads or reads[0].block.kind is not BlockKind.TEXT:
            block = ContentBlock(_RESULT, "", call_id, name, is_error)
            self._put(block, _make(Span, holder[1:3]), None, is_marked)
        for item, read in zip(content.items, reads, strict=True):
            is_own = self._take_mark(item)
            if read.oddity:
                self.warn(read.oddity)
            is_text = read.block.kind is BlockKind.TEXT
            block = ContentBlock(_RESULT, read.block.text, call_id, name, is_error) if is_text else read.block
            text_node = read.text_node if is_text else None
            self._put(block, _make(Span, item[1:3]), text_node, is_marked or is_own)

    def name_of(self, call_id: str) -> str:
        """The tool that was called under an id; "" where no call before has it."""
        return self.names.get(call_id, "") if call_id else ""

    def finish(self, role: MessageRole, node: Node, *, is_text_list: bool) -> WireMessage:
        """The message of the parts since `begin`.

        Args:
            role: of the message.
            node: the message.
            is_text_list: whether a text as its content says the same as a list with one part of type ``text``.
        """
        digest = _fingerprint(node.value, is_text_list=is_text_list, is_marked=self.is_marked)
        return WireMessage(self.number, role, _make(Span, node[1:3]), tuple(self.parts), digest)

    def warn(self, oddity: str) -> None:
        """Tell what is odd with the message."""
        self.warnings.append(f"message {self.number}: {oddity}; it is kept as it is")

    def _read_plain_result(self, content: Node | None) -> tuple[str, Node | None]:
        """Of a result that is no list: its text, and what is changed to change it."""
        if content is None:
            return "", None
        if content.value is None or isinstance(content.value, str):
            return content.value or "", content
        self.warn("a tool result is neither a text nor a list")
        return self.source[content.start : content.end], None

    def _add_item(self, item: Node) -> None:
        members = item.members
        if members is not None and text_of(members.get("type")) == "tool_result":
            self.add_result(
                item,
                members.get("content"),
                as_name(members["tool_use_id"].value) if "tool_use_id" in members else "",
                is_error="is_error" in members and members["is_error"].value is True,
            )
        else:
            self.add_read(read_block(item, self.source), item, is_marked=self._take_mark(item))

    def _put(self, block: ContentBlock, span: Span, text_node: Node | None, is_marked: bool) -> None:
        number = len(self.parts)
        self.runs[-1].numbers.append(number)
        text_span = _make(Span, text_node[1:3]) if text_node is not None else None
        self.parts.append(WirePart(_make(PartKey, (self.number, number)), block, span, text_span, is_marked))
        if block.kind is BlockKind.TOOL_CALL:
            self.names[block.call_id] = block.name

    def _take_mark(self, node: Node) -> bool:
        """Whether a block has a cache breakpoint, which is listed."""
        members = node.members
        if members is None or MARK_KEYS.isdisjoint(members):
            return False
        found = [members[key].value for key in sorted(MARK_KEYS) if key in members]
        self.is_marked = True
        marks = [_mark(_IN_MESSAGES, value) for value in found if value is not None]
        self.marks += marks
        return bool(marks)


# -- the request around the messages ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Envelope:
    """What all three APIs name alike around the conversation."""

    model: str
    is_stream: bool
    tools_text: str
    tools: Any
    prompt_cache_key: str


def read_envelope(members: Mapping[str, Node], source: str) -> Envelope:
    """The members of a request beside its conversation."""
    tools = members.get("tools") or members.get("functions")
    stream = members.get("stream")
    return Envelope(
        model=text_of(members.get("model")),
        is_stream=stream is not None and stream.value is True,
        tools_text=source[tools.start : tools.end] if tools is not None and tools.value else "",
        tools=tools.value if tools is not None else None,
        prompt_cache_key=text_of(members.get("prompt_cache_key")),
    )


def marks_of(where: str, blocks: object) -> list[CacheMark]:
    """Cache breakpoints on the objects of a list."""
    if not isinstance(blocks, list):
        return []
    listed = (block for block in blocks if isinstance(block, dict))
    return [_mark(where, block[ANTHROPIC_MARK]) for block in listed if block.get(ANTHROPIC_MARK) is not None]


def _mark(where: str, value: Any) -> CacheMark:
    ttl = value.get("ttl") if isinstance(value, dict) else None
    return CacheMark(where, _LONGER_TTL if ttl == _LONGER_TTL else _PLAIN_TTL)


# -- turns ---------------------------------------------------------------------------------------------


def make_turns(message: WireMessage, runs: Sequence[Run], origin: str | None = None) -> list[WireTurn]:
    """The neutral messages of one message: an assistant's own blocks are one call in front of results.

    Args:
        message: of any role.
        runs: its parts.
        origin: why it is there where nobody typed it; None finds out by its texts.
    """
    parts, role = message.parts, message.role
    own = [run.numbers for run in runs if not run.is_result]
    if role is MessageRole.ASSISTANT:
        runs = [Run(False, [one for numbers in own for one in numbers]), *(run for run in runs if run.is_result)]
    elif not runs:
        runs = [Run(False, [])]
    turns = []
    for run in runs:
        blocks = tuple([parts[number].block for number in run.numbers])
        if run.is_result:
            told = AgentMessage(MessageRole.TOOL, blocks)
        elif role is MessageRole.ASSISTANT:
            told = AgentMessage(role, blocks, is_call=True)
        else:
            is_user = role is MessageRole.USER
            told = AgentMessage(
                role, blocks, origin=origin if origin is not None else origin_of_typed(blocks) if is_user else ""
            )
        turns.append(WireTurn(told, tuple([parts[number].key for number in run.numbers])))
    return turns


def origin_of_typed(blocks: Sequence[ContentBlock]) -> str:
    """Why a user message is there: "client" where it holds nothing but reminders that the client's program wrote."""
    is_client = bool(blocks) and all(block.kind is BlockKind.TEXT and _is_reminder(block.text) for block in blocks)
    return CLIENT_ORIGIN if is_client else ""


def _is_reminder(text: str) -> bool:
    """Whether a text consists of reminders alone: what stands between two of them may be typed."""
    position = len(text) - len(text.lstrip())
    if not text.startswith(_REMINDER_START, position):
        return False
    while text.startswith(_REMINDER_START, position):
        end = text.find(_REMINDER_END, position)
        if end < 0:
            return False
        position = end + len(_REMINDER_END)
        while text[position : position + 1].isspace():
            position += 1
    return position == len(text)


# -- fingerprints ----------------------------------------------------------------------------------------


def _fingerprint(value: Any, *, is_text_list: bool, is_marked: bool) -> bytes:
    """Digest of a message. Clients turn a text into a list with it to mark it, so that both count as the same."""
    if is_text_list and isinstance(value.get("content"), str):
        value = {**value, "content": [{"text": value["content"], "type": "text"}]}
    elif is_marked:
        value = _without_marks(value)
    return blake2b(marshal.dumps(value, _MARSHAL_VERSION), digest_size=_FINGERPRINT_BYTES).digest()


def _without_marks(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object without breakpoints on it or on the blocks that it holds."""
    kept = {key: one for key, one in value.items() if key not in MARK_KEYS}
    for key in _BLOCK_LISTS:
        if isinstance(kept.get(key), list):
            kept[key] = [_without_marks(block) if isinstance(block, dict) else block for block in kept[key]]
    return kept


# -- what is known from an earlier request ----------------------------------------------------------------


def known_texts(known: WireRequest | None, api: WireApi) -> Sequence[str]:
    """Texts of the messages of an earlier request that need not be read again."""
    if known is None or known.api is not api:
        return ()
    return [known.source[message.span.start : message.span.end] for message in known.messages]


def reuse_message(collector: PartCollector, node: Node, message: WireMessage) -> WireMessage | None:
    """An earlier request's message at its new place; None where it has to be read anew.

    That is so where it has no parts (which turn it was cannot be told), something of it is told elsewhere too (marks,
    warnings), or a result's tool has another name now.
    """
    names = collector.names
    for part in message.parts:
        block = part.block
        if part.is_marked or (part.text_span is None and block.kind in _MAYBE_ODD):
            return None
        if block.kind is BlockKind.TOOL_CALL:
            names[block.call_id] = block.name
        elif block.kind is BlockKind.TOOL_RESULT and block.name != collector.name_of(block.call_id):
            return None
    shift = node.start - message.span.start
    if not message.parts or not shift:
        return message if message.parts else None
    parts = [
        WirePart(
            part.key,
            part.block,
            _shifted(part.span, shift),
            _shifted(part.text_span, shift) if part.text_span else None,
        )
        for part in message.parts
    ]
    return WireMessage(message.number, message.role, _make(Span, node[1:3]), tuple(parts), message.fingerprint)


def _shifted(span: Span, shift: int) -> Span:
    return Span(span.start + shift, span.end + shift)


# -- conversations whose messages are turns by themselves ------------------------------------------------


class ReadMessage(Protocol):
    """How an API's message is read."""

    def __call__(self, collector: PartCollector, node: Node) -> tuple[WireMessage, str | None]:
        """The message, its parts being in the collector, and its origin; None where its texts tell that."""
        ...


@dataclass(frozen=True, slots=True)
class Conversation:
    """What was read of a list of messages."""

    messages: tuple[WireMessage, ...]
    turns: tuple[WireTurn, ...]
    leading_texts: tuple[str, ...]
    """Of the system messages in front."""


def read_conversation(
    collector: PartCollector, items: Sequence[Node], shape: Shape, read: ReadMessage, known: WireRequest | None
) -> Conversation:
    """Messages that are turns by themselves, as Anthropic's and Chat's are.

    Args:
        collector: a new one.
        items: the messages.
        shape: of a message.
        read: reads one that is an object.
        known: an earlier request of the same API; messages with the same text are taken from it.

    Raises:
        WireFormatError: a message is no object or has a key twice.
    """
    known_turns = _turns_by_message(known)
    messages: list[WireMessage] = []
    turns: list[WireTurn] = []
    leading: list[str] = []
    is_leading = True
    for number, item in enumerate(items):
        collector.begin(number)
        told = known_turns.get(number, [])
        message = reuse_message(collector, item, known.messages[number]) if known and told and item.is_known else None
        if message is None:
            node = read_again(collector.source, item, shape)
            message, origin = read(collector, node)
            told = make_turns(message, collector.runs, origin)
        is_leading = is_leading and message.role is MessageRole.SYSTEM
        if is_leading:
            leading += [part.block.text for part in message.parts if part.block.kind is BlockKind.TEXT]
        else:
            turns += told
        messages.append(message)
    return Conversation(tuple(messages), tuple(turns), tuple(leading))


def read_again(source: str, item: Node, shape: Shape) -> Node:
    """A message with its members, though it was not read because its text is known.

    Raises:
        WireFormatError: it is no object.
    """
    node = read_element(source, item.start, shape) if item.is_known else item
    if node.members is None:
        raise refuse("a message is no object")
    return node


def _turns_by_message(known: WireRequest | None) -> dict[int, list[WireTurn]]:
    """Turns that have parts, by the number of their message; not those whose origin may come with a warning."""
    found: dict[int, list[WireTurn]] = {}
    for turn in known.turns if known is not None else ():
        if turn.keys and not turn.message.origin:
            found.setdefault(turn.keys[0].message, []).append(turn)
    return found
