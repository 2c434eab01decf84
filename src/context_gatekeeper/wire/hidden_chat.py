"""Own calls hidden in answers of OpenAI Chat Completions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from context_gatekeeper.wire.answer_draft import as_index, as_object, as_objects, as_text, joined, json_text
from context_gatekeeper.wire.hidden_draft import HiddenDraft, OwnCall, edited
from context_gatekeeper.wire.hidden_edits import JsonEdits, Path
from context_gatekeeper.wire.hidden_frames import Frame
from context_gatekeeper.wire.json_source import Shape
from context_gatekeeper.wire.own_tool import OWN_TOOL
from context_gatekeeper.wire.splicing import write_text

__all__ = ["HiddenChat"]

_USAGE_SHAPE: Shape = {"completion_tokens_details": {}}
_CHUNK_SHAPE: Shape = {"choices": {"delta": {"tool_calls": {}}, "usage": _USAGE_SHAPE}, "usage": _USAGE_SHAPE}
_BODY_SHAPE: Shape = {
    "choices": {"message": {"content": {}, "tool_calls": {}}, "usage": _USAGE_SHAPE},
    "usage": _USAGE_SHAPE,
}
_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
"""Keys whose texts grow from delta to delta."""
_UNSAID = frozenset({"role", "name", "annotations", "tool_calls", "function_call", "reasoning_details"})
"""Keys of a delta that need not be sent back, or are looked at apart."""
_FOR_CALLS = ("tool_calls", "function_call")
"""Reasons to stop that promise calls."""
_SAME_IN_ALL = ("id", "created")
"""What all chunks of an answer have in common."""


@dataclass(slots=True)
class _Call:
    """A call as it is put together from a stream."""

    place: int
    """Its index for the client."""
    is_own: bool
    value: dict[str, Any] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)

    def add(self, piece: Mapping[str, Any]) -> None:
        function = as_object(piece.get("function"))
        for key, value in piece.items():
            if key not in ("index", "function") and value:
                self.value.setdefault(key, value)
        arguments = function.get("arguments")
        is_told = arguments is not None and not isinstance(arguments, str)
        self.arguments.append(json_text(arguments) if is_told else as_text(arguments))

    def whole(self) -> dict[str, Any]:
        """The call of our tool as a request holds it."""
        return {"type": "function", **self.value, "function": {"name": OWN_TOOL, "arguments": joined(self.arguments)}}


class HiddenChat(HiddenDraft):
    """OpenAI Chat Completions. Requests with our tool ask for one answer: the first choice counts.

    Chunks bear the first answer's ``id`` and ``created``, and the role once. The texts of the answers follow each other
    without anything between them. The whole message that MiniMax closes its streams with is left out where it would
    say something else than the stream.
    """

    output_key = "completion_tokens"
    details_key = "completion_tokens_details"
    going_on = frozenset({"tool_calls", "stop"})

    def __init__(self) -> None:
        super().__init__()
        self._common: dict[str, str] = {}
        self._has_role = False
        self._visible: dict[str, str] = {}

    def begin(self) -> None:
        """See `HiddenDraft.begin`."""
        super().begin()
        self._calls: list[_Call] = []
        self._slots: dict[int, _Call] = {}
        self._texts: dict[str, list[str]] = {}
        self._thoughts: dict[str, dict[str, Any]] = {}
        self._message = ""

    def next_answer(self) -> None:
        """See `HiddenDraft.next_answer`."""
        for key, pieces in self._texts.items():
            self._visible[key] = self._visible.get(key, "") + joined(pieces)
        super().next_answer()

    # -- streams -------------------------------------------------------------------------------

    def take_event(self, frame: Frame, event: Mapping[str, Any]) -> bytes:
        """See `HiddenDraft.take_event`."""
        self.count(event.get("usage"))
        changes = self._common_changes(event)
        changes.update(self.usage_changes(("usage",), event.get("usage")))
        place, choice = _first_choice(event)
        if not choice:
            return self._send(edited(frame, _CHUNK_SHAPE, changes))
        self.stop_reason = as_text(choice.get("finish_reason")) or self.stop_reason
        is_end = bool(as_text(choice.get("finish_reason")))
        self.is_complete = self.is_complete or is_end
        if "delta" not in choice and "message" in choice:
            if self.is_touched:
                changes["choices",] = "[]"
            return self._send(edited(frame, _CHUNK_SHAPE, changes))
        self.count(choice.get("usage"))
        changes.update(self.usage_changes(("choices", place, "usage"), choice.get("usage")))
        edits = JsonEdits(frame.data or "", _CHUNK_SHAPE)
        is_less, is_said = self._take_delta(edits, ("choices", place, "delta"), as_object(choice.get("delta")))
        if is_end and self.is_own_only:
            return self._take_end(frame, edits, changes, place, is_said=is_said)
        if is_less and not is_said and not is_end and not event.get("usage"):
            return b""
        for path, value in changes.items():
            edits.set(path, value)
        return self._send(frame.with_data(edits.text()) if is_less or changes else frame.raw)

    def _send(self, content: bytes) -> bytes:
        """A chunk, which is held back when it comes behind the end of an answer that goes on."""
        return self.hold(content) if self.is_complete else content

    def _common_changes(self, event: Mapping[str, Any]) -> dict[Path, str]:
        changes: dict[Path, str] = {}
        for key in _SAME_IN_ALL:
            if key in event:
                own = json_text(event[key])
                if self._common.setdefault(key, own) != own and not self.is_first:
                    changes[key,] = self._common[key]
        return changes

    def _take_delta(self, edits: JsonEdits, place: Path, delta: Mapping[str, Any]) -> tuple[bool, bool]:
        """(whether something is taken out of the delta, or renumbered, whether what stays says anything)."""
        self._note_said(delta)
        is_less = "role" in delta and self._has_role and not self.is_first
        if is_less:
            edits.remove((*place, "role"))
        pieces = delta.get("tool_calls")
        listed = [as_object(piece) for piece in pieces] if isinstance(pieces, list) else []
        hidden: list[Path] = []
        for number, piece in enumerate(listed):
            path, call, index = (*place, "tool_calls", number), self._call_of(piece), as_index(piece.get("index"))
            if call.is_own:
                hidden.append(path)
            elif index not in (None, call.place):
                edits.set((*path, "index"), str(call.place))
                is_less = True
        _take_out(edits, (*place, "tool_calls"), hidden, len(listed))
        says_more = any(value for key, value in delta.items() if key not in ("role", "tool_calls"))
        is_said = says_more or len(hidden) < len(listed)
        is_less = is_less or bool(hidden)
        self._has_role = self._has_role or ("role" in delta and (is_said or not is_less))
        return is_less, is_said

    def _call_of(self, piece: Mapping[str, Any]) -> _Call:
        """The call that a piece belongs to, by the rules of `ChatDraft`; the piece is added to it."""
        call_id, index = as_text(piece.get("id")), as_index(piece.get("index"))
        slot = index if index is not None else max(len(self._slots) - 1, 0)
        call = self._slots.get(slot)
        if call is None or (call_id and as_text(call.value.get("id")) not in ("", call_id)):
            call = self._begin_call(piece, index)
            self._slots[slot] = call
        call.add(piece)
        return call

    def _begin_call(self, piece: Mapping[str, Any], index: int | None) -> _Call:
        is_own = as_object(piece.get("function")).get("name") == OWN_TOOL
        visible = sum(not call.is_own for call in self._calls)
        call = _Call(visible if self.is_touched or index is None else index, is_own)
        self._calls.append(call)
        self.has_own_calls = self.has_own_calls or is_own
        self.is_hiding = self.is_hiding or is_own
        self.has_client_calls = self.has_client_calls or not is_own
        return call

    def _note_said(self, delta: Mapping[str, Any]) -> None:
        if delta.get("function_call"):
            self.has_client_calls = True
        for detail in as_objects(delta.get("reasoning_details")):
            _merge_detail(self._thoughts.setdefault(json_text([detail.get("index"), detail.get("type")]), {}), detail)
        for key, value in delta.items():
            if key in _TEXTS and isinstance(value, str):
                self._texts.setdefault(key, []).append(value)
            elif value and key not in _UNSAID:
                self.oddity = "a delta is of a kind that is not known"

    def _take_end(
        self, frame: Frame, edits: JsonEdits, changes: Mapping[Path, str], place: int, *, is_said: bool
    ) -> bytes:
        """Hold the end back; what the same chunk says before it is sent."""
        end = {**changes, ("choices", place, "delta"): "{}"}
        if self.stop_reason in _FOR_CALLS:
            end["choices", place, "finish_reason"] = '"stop"'
        self.held.append(edited(frame, _CHUNK_SHAPE, end))
        if not is_said:
            return b""
        for path, value in changes.items():
            if "usage" not in path:
                edits.set(path, value)
        edits.set(("choices", place, "finish_reason"), "null")
        edits.remove(("usage",))
        edits.remove(("choices", place, "usage"))
        return frame.with_data(edits.text())

    # -- whole answers -------------------------------------------------------------------------

    def take_body(self, text: str, body: Mapping[str, Any]) -> str:
        """See `HiddenDraft.take_body`."""
        edits = JsonEdits(text, _BODY_SHAPE)
        place, choice = _first_choice(body)
        message = choice.get("message")
        if not isinstance(message, dict):
            return text
        path: Path = ("choices", place, "message")
        self._message = edits.source(path)
        self.is_complete = True
        self.stop_reason = as_text(choice.get("finish_reason"))
        self._take_calls(edits, path, message)
        self._join_texts(edits, path, message)
        self.count(body.get("usage"))
        for changed, value in self.usage_changes(("usage",), body.get("usage")).items():
            edits.set(changed, value)
        if self.is_own_only and self.stop_reason in _FOR_CALLS:
            edits.set(("choices", place, "finish_reason"), '"stop"')
        return edits.text()

    def _take_calls(self, edits: JsonEdits, path: Path, message: Mapping[str, Any]) -> None:
        listed = message.get("tool_calls")
        pieces = [as_object(piece) for piece in listed] if isinstance(listed, list) else []
        hidden: list[Path] = []
        for number, piece in enumerate(pieces):
            call = self._begin_call(piece, None)
            call.add(piece)
            if call.is_own:
                hidden.append((*path, "tool_calls", number))
        _take_out(edits, (*path, "tool_calls"), hidden, len(pieces))
        self.has_client_calls = self.has_client_calls or bool(message.get("function_call"))

    def _join_texts(self, edits: JsonEdits, path: Path, message: Mapping[str, Any]) -> None:
        """Put what the earlier answers said in front of what this one does."""
        for key in _TEXTS:
            said, earlier = message.get(key), self._visible.get(key, "")
            if isinstance(said, str):
                self._texts[key] = [said]
            elif said:
                self.oddity = "what it says is no text"
            if earlier and isinstance(said, list):
                edits.prepend((*path, key), [f'{{"type":"text","text":{write_text(earlier)}}}'])
            elif earlier:
                edits.set((*path, key), write_text(earlier + as_text(said)))

    # -- what goes back ------------------------------------------------------------------------

    def calls(self) -> tuple[OwnCall, ...]:
        """See `HiddenDraft.calls`."""
        return tuple(
            OwnCall(as_text(call.value.get("id")), joined(call.arguments)) for call in self._calls if call.is_own
        )

    def blocks(self) -> tuple[str, ...]:
        """See `HiddenDraft.blocks`: one message."""
        if self._message:
            return (self._message,)
        said = {key: joined(pieces) for key, pieces in self._texts.items()}
        message: dict[str, Any] = {"role": "assistant", "content": said.pop("content", "") or None}
        message.update({key: text for key, text in said.items() if text})
        if self._thoughts:
            message["reasoning_details"] = list(self._thoughts.values())
        calls = [call.whole() for call in self._calls if call.is_own]
        return (json.dumps({**message, "tool_calls": calls} if calls else message, separators=(",", ":")),)


def _first_choice(holder: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
    """(place, choice) of the one that counts; an empty one when there is none."""
    choices = holder.get("choices")
    for place, choice in enumerate(choices if isinstance(choices, list) else ()):
        if as_object(choice) and choice.get("index") in (0, None):
            return place, choice
    return 0, {}


def _take_out(edits: JsonEdits, container: Path, hidden: Sequence[Path], count: int) -> None:
    """Take elements out of a list of ``count``; with the last the list goes."""
    for path in hidden if len(hidden) < count else [container]:
        edits.remove(path)


def _merge_detail(held: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add a piece of thinking; some providers tell what is new, MiniMax all of it each time."""
    for key, value in piece.items():
        before = held.get(key)
        if key in ("text", "summary", "data") and isinstance(before, str) and isinstance(value, str):
            held[key] = value if value.startswith(before) else before + value
        elif value is not None or key not in held:
            held[key] = value
