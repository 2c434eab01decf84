"""Own calls hidden in answers of Anthropic Messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from context_gatekeeper.wire.answer_draft import as_count, as_index, as_object, as_text, joined, json_text
from context_gatekeeper.wire.hidden_draft import HiddenDraft, OwnCall, edited
from context_gatekeeper.wire.hidden_edits import JsonEdits, Path
from context_gatekeeper.wire.hidden_frames import Frame
from context_gatekeeper.wire.json_source import Shape, read_json
from context_gatekeeper.wire.own_tool import OWN_TOOL
from context_gatekeeper.wire.splicing import write_text

__all__ = ["HiddenMessages"]

_CALL = "tool_use"
_OF_BLOCK = "content_block_"
_BLOCK_START, _BLOCK_DELTA = "content_block_start", "content_block_delta"
_USAGE_SHAPE: Shape = {"output_tokens_details": {}}
_END_SHAPE: Shape = {"delta": {}, "usage": _USAGE_SHAPE}
_BLOCK_SHAPE: Shape = {"citations": {}}
_BODY_SHAPE: Shape = {"content": {}, "usage": _USAGE_SHAPE}
_INPUT_KEYS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_GROWING: Mapping[str, str] = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
"""Type of a delta that goes on where the last one ended -> its key."""


@dataclass(slots=True)
class _Block:
    """A block as it is put together from a stream."""

    began: str
    """JSON text of the block when it began."""
    value: Mapping[str, Any]
    pieces: dict[str, list[str]] = field(default_factory=dict)
    citations: list[str] = field(default_factory=list)
    signature: str = ""
    is_odd: bool = False
    """Whether it grew in a way that we do not know."""

    @property
    def is_own(self) -> bool:
        return _is_own(self.value)

    def add(self, delta: Mapping[str, Any]) -> None:
        kind = as_text(delta.get("type"))
        if kind in _GROWING:
            self.pieces.setdefault(kind, []).append(as_text(delta.get(_GROWING[kind])))
        elif kind == "signature_delta":
            self.signature = as_text(delta.get("signature"))
        elif kind == "citations_delta":
            self.citations.append(json_text(delta.get("citation")))
        else:
            self.is_odd = True

    def arguments(self) -> str:
        """JSON text of a call's input."""
        return joined(self.pieces.get("input_json_delta", ())) or json_text(self.value.get("input", {}))

    def json(self) -> str:
        """JSON text of the whole block."""
        edits = JsonEdits(self.began, _BLOCK_SHAPE)
        for kind in ("text_delta", "thinking_delta"):
            key = _GROWING[kind]
            if kind in self.pieces:
                edits.set((key,), write_text(joined((as_text(self.value.get(key)), *self.pieces[kind]))))
        if self.signature:
            edits.set(("signature",), write_text(self.signature))
        if self.citations:
            edits.set(("citations",), f"[{','.join((*edits.sources(('citations',)), *self.citations))}]")
        if "input_json_delta" in self.pieces:
            edits.set(("input",), self.arguments())
        return edits.text()

    def has_object(self) -> bool:
        """Whether its input is an object, as the API wants it back."""
        return "input_json_delta" not in self.pieces or isinstance(read_json(self.arguments()), dict | tuple)


def _is_own(block: Mapping[str, Any]) -> bool:
    return block.get("type") == _CALL and block.get("name") == OWN_TOOL


class HiddenMessages(HiddenDraft):
    """Anthropic Messages.

    Indexes of blocks go on from answer to answer. The last ``message_delta`` tells the input of the last answer, which
    the ``message_start`` of the first could not know.
    """

    output_key = "output_tokens"
    details_key = "output_tokens_details"
    going_on = frozenset({"tool_use", "end_turn"})

    def __init__(self) -> None:
        super().__init__()
        self._next_place = 0
        self._visible: list[str] = []

    def begin(self) -> None:
        """See `HiddenDraft.begin`."""
        super().begin()
        self._blocks: dict[int, _Block] = {}
        self._places: dict[int, int | None] = {}
        self._inputs: dict[str, int] = {}
        self._whole: list[tuple[str, OwnCall | None]] = []

    def next_answer(self) -> None:
        """See `HiddenDraft.next_answer`."""
        self._visible += [text for text, call in self._whole if call is None]
        super().next_answer()

    def take_event(self, frame: Frame, event: Mapping[str, Any]) -> bytes:
        """See `HiddenDraft.take_event`."""
        kind = as_text(event.get("type")) or frame.name
        if kind == "message_start":
            self._note_inputs(as_object(as_object(event.get("message")).get("usage")))
            return frame.raw if self.is_first else b""
        if kind == "message_delta":
            return self._take_end(frame, event)
        if kind == "message_stop":
            self.is_complete = True
            return self.hold(frame.raw)
        index = as_index(event.get("index"))
        place = index
        if index is None and kind.startswith(_OF_BLOCK):
            place = len(self._blocks) if kind == _BLOCK_START else max(len(self._blocks) - 1, 0)
        if place is not None:
            self._take_of_block(frame, event, kind, place)
        if place not in self._places:
            return frame.raw
        visible = self._places[place]
        if visible is None:
            return b""
        return edited(frame, {}, {("index",): str(visible)} if index not in (None, visible) else {})

    def _take_of_block(self, frame: Frame, event: Mapping[str, Any], kind: str, place: int) -> None:
        if kind == _BLOCK_START:
            began = JsonEdits(frame.data or "", {}).source(("content_block",))
            value = as_object(event.get("content_block"))
            if value:
                JsonEdits(began, _BLOCK_SHAPE).find(())  # so that it can be read again
            else:
                self.oddity = "a block is no object"
            self._begin_block(_Block(began, value), place)
        elif kind == _BLOCK_DELTA and place in self._blocks:
            self._blocks[place].add(as_object(event.get("delta")))
        elif kind == _BLOCK_DELTA:
            self.oddity = "a delta belongs to no block"

    def _begin_block(self, block: _Block, place: int) -> None:
        self._blocks[place] = block
        if block.is_own:
            self.has_own_calls = self.is_hiding = True
            self._places[place] = None
            return
        self.has_client_calls = self.has_client_calls or block.value.get("type") == _CALL
        # As long as nothing is changed the provider's own numbers stand, whatever they are.
        visible = self._next_place if self.is_touched else place
        self._places[place] = visible
        self._next_place = max(self._next_place, visible + 1)

    def _note_inputs(self, usage: Mapping[str, Any]) -> None:
        for key in _INPUT_KEYS:
            count = as_count(usage.get(key))
            if count is not None:
                # Programs in front of others end with zeros for what they told at the start.
                self._inputs[key] = count or self._inputs.get(key, 0)

    def _take_end(self, frame: Frame, event: Mapping[str, Any]) -> bytes:
        usage = as_object(event.get("usage"))
        self._note_inputs(usage)
        self.count(usage)
        self.stop_reason = as_text(as_object(event.get("delta")).get("stop_reason")) or self.stop_reason
        changes = self.usage_changes(("usage",), usage)
        if not self.is_first:
            told: dict[Path, str] = {
                ("usage", key): str(count) for key, count in self._inputs.items() if usage.get(key) != count
            }
            changes.update(told)
        if self.is_own_only and self.stop_reason == _CALL:
            changes["delta", "stop_reason"] = '"end_turn"'
        return self.hold(edited(frame, _END_SHAPE, changes))

    def take_body(self, text: str, body: Mapping[str, Any]) -> str:
        """See `HiddenDraft.take_body`."""
        edits = JsonEdits(text, _BODY_SHAPE)
        content = body.get("content")
        if not isinstance(content, list):
            return text
        for place, (value, source) in enumerate(zip(content, edits.sources(("content",)), strict=True)):
            block = as_object(value)
            call = None
            if _is_own(block):
                self.has_own_calls = self.is_hiding = True
                call = OwnCall(as_text(block.get("id")), json_text(block.get("input", {})))
                edits.remove(("content", place))
            self.has_client_calls = self.has_client_calls or (call is None and block.get("type") == _CALL)
            self._whole.append((source, call))
        self.stop_reason = as_text(body.get("stop_reason"))
        self.is_complete = bool(self.stop_reason)
        self.count(body.get("usage"))
        edits.prepend(("content",), self._visible)
        for path, value in self.usage_changes(("usage",), body.get("usage")).items():
            edits.set(path, value)
        if self.is_own_only and self.stop_reason == _CALL:
            edits.set(("stop_reason",), '"end_turn"')
        return edits.text()

    def calls(self) -> tuple[OwnCall, ...]:
        """See `HiddenDraft.calls`."""
        streamed = [
            OwnCall(as_text(block.value.get("id")), block.arguments())
            for _, block in sorted(self._blocks.items())
            if block.is_own
        ]
        return (*streamed, *(call for _, call in self._whole if call is not None))

    def blocks(self) -> tuple[str, ...]:
        """See `HiddenDraft.blocks`."""
        return (*(block.json() for _, block in sorted(self._blocks.items())), *(text for text, _ in self._whole))

    def cause(self) -> str:
        """See `HiddenDraft.cause`."""
        cause = super().cause()
        if not cause and any(block.is_odd for block in self._blocks.values()):
            return "a block grew in a way that is not known"
        if not cause and not all(block.has_object() for block in self._blocks.values()):
            return "the input of a call is no object"
        return cause
