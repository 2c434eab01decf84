"""Answers of OpenAI Responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from context_gatekeeper.types import BlockKind, ContentBlock, Usage
from context_gatekeeper.wire.answer_draft import (
    AnswerDraft,
    as_index,
    as_object,
    as_objects,
    as_text,
    error_text,
    inside_usage,
    joined,
    json_text,
    other_block,
)
from context_gatekeeper.wire.blocks import sealed_thinking

__all__ = ["ResponsesDraft"]

_FINISHED = frozenset({"completed", "incomplete", "failed", "cancelled"})
_KINDS: Mapping[str, BlockKind] = {
    "output_text": BlockKind.TEXT,
    "text": BlockKind.TEXT,
    "refusal": BlockKind.TEXT,
    "summary_text": BlockKind.THINKING,
    "reasoning_text": BlockKind.THINKING,
}


@dataclass(slots=True)
class _Item:
    """An output item of the Responses API; pieces are what deltas brought before it was whole."""

    value: Mapping[str, Any]
    pieces: dict[tuple[str, int, str], list[str]] = field(default_factory=dict)
    """Key of the item, place inside it and type of the part there (0 and "" where the key holds one text) -> pieces
    of the text."""

    def read(self) -> Iterable[ContentBlock]:
        value = dict(self.value)
        for (key, _, part_type), pieces in sorted(self.pieces.items()):
            text = joined(pieces)
            if part_type:
                listed = value.get(key)
                part = {"type": part_type, ("refusal" if part_type == "refusal" else "text"): text}
                value[key] = [*(listed if isinstance(listed, list) else []), part]
            else:
                value[key] = text
        return _item_blocks(value)


_DELTAS: Mapping[str, tuple[str, str, str, str]] = {
    "response.output_text.delta": ("message", "content", "content_index", "output_text"),
    "response.refusal.delta": ("message", "content", "content_index", "refusal"),
    "response.reasoning_text.delta": ("reasoning", "content", "content_index", "reasoning_text"),
    "response.reasoning_summary_text.delta": ("reasoning", "summary", "summary_index", "summary_text"),
    "response.function_call_arguments.delta": ("function_call", "arguments", "", ""),
    "response.custom_tool_call_input.delta": ("custom_tool_call", "input", "", ""),
}
"""Event -> type of its item, the key that grows, the place inside it, and the type of the part there."""


def _item_blocks(item: Mapping[str, Any]) -> Iterable[ContentBlock]:
    kind = as_text(item.get("type"))
    if kind == "message":
        return map(_part_block, as_objects(item.get("content")))
    if kind == "reasoning":
        parts = (*as_objects(item.get("summary")), *as_objects(item.get("content")))
        sealed = item.get("encrypted_content")
        return (*map(_part_block, parts), *((sealed_thinking(sealed),) if isinstance(sealed, str) else ()))
    key = _ARGUMENTS.get(kind, "arguments")
    if kind in _ARGUMENTS or (kind.endswith("_call") and item.get("call_id") and key in item):
        arguments = item.get(key, "")
        text = arguments if isinstance(arguments, str) else json_text(arguments)
        call_id = as_text(item.get("call_id")) or as_text(item.get("id"))
        name = as_text(item.get("name")) or kind.removesuffix("_call")
        return (ContentBlock(BlockKind.TOOL_CALL, text, call_id, name),)
    return (other_block(item, kind or "item"),)


_ARGUMENTS: Mapping[str, str] = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
}
"""Type of an item that is a call -> where its arguments stand."""


def _part_block(part: Mapping[str, Any]) -> ContentBlock:
    kind = as_text(part.get("type"))
    text = part.get("refusal" if kind == "refusal" else "text")
    if kind in _KINDS and isinstance(text, str):
        return ContentBlock(_KINDS[kind], text)
    return other_block(part, kind or "part")


@dataclass(slots=True)
class ResponsesDraft(AnswerDraft):
    """OpenAI Responses."""

    items: dict[int, _Item] = field(default_factory=dict)
    counted: Usage | None = None

    def take_body(self, body: Mapping[str, Any]) -> None:
        """See `AnswerDraft.take_body`."""
        self._take_response(body)
        self.is_complete = as_text(body.get("status")) in _FINISHED

    def take_event(self, kind: str, event: Mapping[str, Any]) -> None:
        """See `AnswerDraft.take_event`."""
        if kind in _DELTAS:
            self._take_delta(*_DELTAS[kind], event)
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self.items[self._place(event, len(self.items))] = _Item(as_object(event.get("item")))
        elif kind == "error":
            self.error = error_text(event.get("error") or {"code": event.get("code"), "message": event.get("message")})
        elif isinstance(event.get("response"), dict):
            self._take_response(event["response"])
            self.is_complete = self.is_complete or kind.removeprefix("response.") in _FINISHED

    def _place(self, event: Mapping[str, Any], default: int) -> int:
        index = as_index(event.get("output_index"))
        return default if index is None else index

    def _take_delta(self, kind: str, key: str, place_key: str, part_type: str, event: Mapping[str, Any]) -> None:
        place = self._place(event, max(len(self.items) - 1, 0))
        item = self.items.setdefault(place, _Item({"type": kind}))
        inside = as_index(event.get(place_key)) or 0
        item.pieces.setdefault((key, inside, part_type), []).append(as_text(event.get("delta")))

    def _take_response(self, response: Mapping[str, Any]) -> None:
        self.name(response)
        status = as_text(response.get("status"))
        if status in _FINISHED:
            self.stop_reason = as_text(as_object(response.get("incomplete_details")).get("reason")) or status
        self.error = error_text(response.get("error")) or self.error
        self.counted = inside_usage(as_object(response.get("usage"))) or self.counted
        output = as_objects(response.get("output"))
        if output:
            self.items = {place: _Item(item) for place, item in enumerate(output)}

    def blocks(self) -> Iterable[ContentBlock]:
        """See `AnswerDraft.blocks`."""
        return (block for _, item in sorted(self.items.items()) for block in item.read())

    def usage(self) -> Usage | None:
        """See `AnswerDraft.usage`."""
        return self.counted
