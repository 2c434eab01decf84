"""What the planner changes, as splices of the request's text.

An element of a list leaves when all parts that it holds do, a member of an object likewise, and a message when nothing
but thinking would be left of it. So no empty content is ever sent, and no list of calls without one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from context_gatekeeper.errors import WireFormatError
from context_gatekeeper.types import BlockKind, MessageRole
from context_gatekeeper.wire.blocks import ANTHROPIC_MARK, text_of
from context_gatekeeper.wire.json_source import Node, Shape, read_element, read_json
from context_gatekeeper.wire.records import PartKey, RequestEdits, Span, WireMessage, WirePart, WireRequest
from context_gatekeeper.wire.splicing import Splice, apply_splices, edit_elements, write_text

__all__ = ["ApiForm", "apply_edits"]

_PLAIN_TTL = "5m"
_JOINT = "\n\n"


@dataclass(frozen=True, slots=True)
class ApiForm:
    """How one API's messages are changed."""

    shape: Shape
    """Of a message."""
    text_type: str
    """Type of a text in a user message."""
    new_message: str
    """JSON of a user message up to its content."""
    joins_texts: bool
    """Whether texts are joined to content that is a text; if not it becomes a list."""
    new_is_text: bool = False
    """Whether the content of a new message is a text."""
    emptied: Mapping[str, str] = field(default_factory=dict)
    """Member -> JSON that stands for it where all its parts left; other members leave whole."""
    twins: frozenset[str] = frozenset()
    """Members that say the same in other forms: where one leaves the others do that hold no part that stays."""
    takes_marks: bool = False
    """Whether cache breakpoints can be put on blocks."""
    markable_types: frozenset[str] = frozenset()
    """Types of blocks that take one, beside texts, images, calls and results."""
    leaves_out_empty_texts: bool = False
    """Whether the API refuses empty texts in content: they leave where their message is changed anyway."""
    binds_thinking: bool = False
    """Whether a message of thinking alone belongs to the one behind it: it leaves with that, and only so."""


def apply_edits(request: WireRequest, edits: RequestEdits, form: ApiForm) -> str:
    """The request's text with the edits.

    Raises:
        WireFormatError: an edit names what is not there or cannot be changed, or no message would be left.
    """
    _check_keys(request, edits)
    _check_texts(request, edits)
    _check_added(request, edits, form)
    return _Editor(request, edits, form).apply()


def _refuse(cause: str) -> WireFormatError:
    return WireFormatError("the edits of the request", cause, "send the request as it came")


def _check_keys(request: WireRequest, edits: RequestEdits) -> None:
    messages = request.messages
    for key in (*edits.texts, *edits.dropped, *edits.marked):
        if not (0 <= key.message < len(messages) and 0 <= key.part < len(messages[key.message].parts)):
            raise _refuse(f"message {key.message} has no part {key.part}")


def _check_texts(request: WireRequest, edits: RequestEdits) -> None:
    for key, text in edits.texts.items():
        span = request.messages[key.message].parts[key.part].text_span
        if span is None:
            raise _refuse(f"part {key.part} of message {key.message} holds no text that can be replaced")
        if request.source[span.start] == "{" and not isinstance(read_json(text), dict | tuple):
            raise _refuse(f"the new arguments of part {key.part} of message {key.message} are no JSON object")


def _check_added(request: WireRequest, edits: RequestEdits, form: ApiForm) -> None:
    for number, texts in edits.added.items():
        if not 0 <= number < len(request.messages):
            raise _refuse(f"there is no message {number}")
        if request.messages[number].role is MessageRole.ASSISTANT:
            raise _refuse(f"message {number} is the model's, where nothing can be added")
        if not texts or not all(texts):
            raise _refuse(f"a text added to message {number} is empty")
    if edits.marks_added - edits.added.keys():
        raise _refuse("a breakpoint is put on an added text where none is")
    if (edits.marked or edits.marks_added) and not form.takes_marks:
        raise _refuse("the API takes no cache breakpoints")


class _Editor:
    """Works out the splices of one request."""

    def __init__(self, request: WireRequest, edits: RequestEdits, form: ApiForm) -> None:
        self._request = request
        self._source = request.source
        self._edits = edits
        self._form = form
        self._splices: list[Splice] = []
        self._leaving: set[int] = set()
        self._new: dict[int, list[str]] = {}
        self._run_ends = _run_ends(request.messages) if edits.added else []
        ttl = f',"ttl":{write_text(edits.mark_ttl)}' if edits.mark_ttl != _PLAIN_TTL else ""
        self._mark_value = f'{{"type":"ephemeral"{ttl}}}'

    def apply(self) -> str:
        """The edited text."""
        edits, messages = self._edits, self._request.messages
        changed = {key.message for keys in (edits.texts, edits.dropped, edits.marked) for key in keys}
        for number in sorted(changed.union(edits.added)):
            self._edit_message(messages[number], number in changed)
        if self._form.binds_thinking:
            self._bind_thinking()
        if len(self._leaving) == len(messages) and not self._new:
            raise _refuse("no message would be left")
        if self._leaving or self._new:
            self._splices += edit_elements([message.span for message in messages], self._leaving, self._new)
        return apply_splices(self._source, self._splices)

    # -- messages ----------------------------------------------------------------------------------

    def _edit_message(self, message: WireMessage, is_changed: bool) -> None:
        if self._leaves_whole(message):
            self._leaving.add(message.number)
            return
        node = read_element(self._source, message.span.start, self._form.shape)
        added = self._edits.added.get(message.number, ())
        content = _content_of_user(node) if added else None
        if added and content is None:
            self._add_message(message, added)
            added = ()
        if not (added or is_changed) or self._is_bound(message):
            return
        dropped = self._leaving_parts(message)
        kept = [part for part in message.parts if part.key not in dropped]
        if dropped and not added and all(part.block.kind is BlockKind.THINKING for part in kept):
            self._leaving.add(message.number)
            return
        own = content if content is not None else (node.members or {}).get("content")
        if own is not None and isinstance(own.value, str) and (added or self._wants_list(own, kept)):
            self._edit_text(message, own, kept, added)
            return
        self._replace_texts(kept)
        self._mark_blocks(own, kept)
        self._take_out(node, message.parts, dropped, content, self._new_parts(message.number, added))

    def _leaves_whole(self, message: WireMessage) -> bool:
        """Whether nothing of it is left, so that it need not be read: of most messages that are changed."""
        dropped = self._edits.dropped
        if message.number in self._edits.added or not any(part.key in dropped for part in message.parts):
            return False
        is_left = any(part.key not in dropped and part.block.kind is not BlockKind.THINKING for part in message.parts)
        return not is_left and not self._is_bound(message)

    def _leaving_parts(self, message: WireMessage) -> set[PartKey]:
        """Parts that leave, empty texts included where the API refuses them."""
        edits = self._edits
        leaving = {part.key for part in message.parts if part.key in edits.dropped}
        if self._form.leaves_out_empty_texts:
            leaving.update(
                part.key
                for part in message.parts
                if part.block.kind is BlockKind.TEXT and not edits.texts.get(part.key, part.block.text)
            )
        return leaving

    def _add_message(self, message: WireMessage, added: Sequence[str]) -> None:
        """A message of its own for added texts, behind the results that stand together."""
        if self._form.new_is_text:
            content = write_text(_JOINT.join(added))
        else:
            content = f"[{','.join(self._new_parts(message.number, added))}]"
        self._new.setdefault(self._run_ends[message.number], []).append(f"{self._form.new_message}{content}}}")

    def _is_bound(self, message: WireMessage) -> bool:
        return (
            self._form.binds_thinking
            and message.role is MessageRole.ASSISTANT
            and all(part.block.kind is BlockKind.THINKING for part in message.parts)
        )

    def _bind_thinking(self) -> None:
        """Let thinking leave with what it led to; where nothing follows it by the planner's word."""
        messages = self._request.messages
        for message in reversed(messages):
            if not self._is_bound(message):
                continue
            behind = message.number + 1
            if behind < len(messages) and messages[behind].role is MessageRole.ASSISTANT:
                is_leaving = behind in self._leaving
            else:
                is_leaving = bool(message.parts) and all(part.key in self._edits.dropped for part in message.parts)
            if is_leaving:
                self._leaving.add(message.number)

    # -- content that is a text --------------------------------------------------------------------

    def _wants_list(self, content: Node, kept: Sequence[WirePart]) -> bool:
        """Whether a breakpoint is put on content that is a text."""
        spans = [part.span for part in kept if part.key in self._edits.marked]
        return Span(content.start, content.end) in spans

    def _edit_text(self, message: WireMessage, content: Node, kept: Sequence[WirePart], added: Sequence[str]) -> None:
        """All changes of a message whose content is a text."""
        literal, mark = "", ""
        for part in kept:
            new = self._edits.texts.get(part.key)
            literal = write_text(new) if new is not None else self._source[content.start : content.end]
            mark = self._mark_value if part.key in self._edits.marked else ""
        if self._form.joins_texts:
            text = write_text(_JOINT.join(("", *added) if literal else added))
            written = literal[:-1] + text[1:] if literal else text
        else:
            blocks = [self._new_part(literal, mark)] if literal else []
            written = f"[{','.join((*blocks, *self._new_parts(message.number, added)))}]"
        self._splices.append(Splice(content.start, content.end, written))

    # -- parts -------------------------------------------------------------------------------------

    def _replace_texts(self, kept: Sequence[WirePart]) -> None:
        for part in kept:
            text, span = self._edits.texts.get(part.key), part.text_span
            if text is not None and span is not None:
                written = text if self._source[span.start] == "{" else write_text(text)
                self._splices.append(Splice(span.start, span.end, written))

    def _mark_blocks(self, content: Node | None, kept: Sequence[WirePart]) -> None:
        """Put breakpoints on blocks of a list; a piece of a result gives its to the result."""
        marked = sorted(part.span.start for part in kept if self._may_be_marked(part))
        waiting = iter(marked)
        place = next(waiting, None)
        for item in content.items or () if content is not None else ():
            is_wanted = False
            while place is not None and place < item.end:
                is_wanted = is_wanted or place >= item.start
                place = next(waiting, None)
            if is_wanted and item.members:
                self._mark_object(item.members)

    def _may_be_marked(self, part: WirePart) -> bool:
        if part.key not in self._edits.marked or part.is_marked or part.block.kind is BlockKind.THINKING:
            return False
        return part.block.kind is not BlockKind.OTHER or part.block.name in self._form.markable_types

    def _mark_object(self, members: Mapping[str, Node]) -> None:
        present = members.get(ANTHROPIC_MARK)
        if present is not None:  # and null, since the part is not marked
            self._splices.append(Splice(present.start, present.end, self._mark_value))
            return
        end = max(member.end for member in members.values())
        self._splices.append(Splice(end, end, f',"{ANTHROPIC_MARK}":{self._mark_value}'))

    def _new_parts(self, number: int, added: Sequence[str]) -> list[str]:
        mark = self._mark_value if number in self._edits.marks_added else ""
        last = len(added) - 1
        return [self._new_part(write_text(text), mark if place == last else "") for place, text in enumerate(added)]

    def _new_part(self, literal: str, mark: str) -> str:
        marking = f',"{ANTHROPIC_MARK}":{mark}' if mark else ""
        return f'{{"type":"{self._form.text_type}","text":{literal}{marking}}}'

    def _take_out(
        self, node: Node, parts: Sequence[WirePart], dropped: set[PartKey], target: Node | None, new: Sequence[str]
    ) -> None:
        """Take out what holds nothing but parts that leave, and put new parts at the end of the list ``target``."""
        named = list(node.members.items()) if node.members is not None else [("", item) for item in node.items or ()]
        elements = [element for _, element in named]
        held = _held_by(elements, parts)
        leaving: set[int] = set()
        for place, (name, element) in enumerate(named):
            is_target = target is not None and element.start == target.start
            if is_target or (held[place] and any(part.key not in dropped for part in held[place])):
                self._take_out(element, held[place], dropped, target, new)
            elif held[place] and name in self._form.emptied:
                self._splices.append(Splice(element.start, element.end, self._form.emptied[name]))
            elif held[place]:
                leaving.add(place)
        if not leaving.isdisjoint(place for place, (name, _) in enumerate(named) if name in self._form.twins):
            leaving.update(
                place for place, (name, _) in enumerate(named) if name in self._form.twins and not held[place]
            )
        is_target = target is not None and node.start == target.start
        if elements:
            places = [Span(element.outer, element.end) for element in elements]
            self._splices += edit_elements(places, leaving, {len(elements) - 1: new} if is_target else {})
        elif is_target and new:
            self._splices.append(Splice(node.start + 1, node.start + 1, ",".join(new)))


def _run_ends(messages: Sequence[WireMessage]) -> list[int]:
    """For each message the last of the results that it stands among; itself for other messages."""
    ends = list(range(len(messages)))
    for number in reversed(range(len(messages) - 1)):
        if messages[number].role is MessageRole.TOOL and messages[number + 1].role is MessageRole.TOOL:
            ends[number] = ends[number + 1]
    return ends


def _content_of_user(node: Node) -> Node | None:
    """The content of a user message, a text or a list; None where texts cannot come into it."""
    if node.members is None:
        return node
    members = node.members
    content = members.get("content")
    is_message = text_of(members.get("role")) == "user" and text_of(members.get("type")) in ("", "message")
    is_open = content is not None and (content.items is not None or isinstance(content.value, str))
    return content if is_message and is_open else None


def _held_by(elements: Sequence[Node], parts: Sequence[WirePart]) -> list[list[WirePart]]:
    """For each element the parts that stand in it."""
    ordered = sorted(parts, key=lambda part: part.span.start)
    held: list[list[WirePart]] = []
    place = 0
    for element in elements:
        while place < len(ordered) and ordered[place].span.start < element.start:
            place += 1
        first = place
        while place < len(ordered) and ordered[place].span.start < element.end:
            place += 1
        held.append(ordered[first:place])
    return held
