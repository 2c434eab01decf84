"""Answers of Anthropic Messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from context_gatekeeper.types import BlockKind, ContentBlock, Usage
from context_gatekeeper.wire.answer_draft import (
    AnswerDraft,
    as_count,
    as_index,
    as_object,
    as_objects,
    as_text,
    error_text,
    joined,
    json_text,
    loaded_object,
    other_block,
    type_names,
)
from context_gatekeeper.wire.blocks import sealed_thinking

__all__ = ["MessagesDraft"]


@dataclass(slots=True)
class _Block:
    """A content block of Anthropic's, and what its deltas added behind it."""

    value: dict[str, Any]
    pieces: dict[str, list[str]] = field(default_factory=dict)

    def add(self, delta: Mapping[str, Any]) -> None:
        for key, value in delta.items():
            if key in _GROWING:
                self.pieces.setdefault(key, []).append(as_text(value))
            elif key not in ("type", "citation"):
                self.value[key] = value

    def text(self, key: str) -> str:
        return joined([as_text(self.value.get(key)), *self.pieces.get(key, ())])

    def read(self) -> ContentBlock:
        kind = as_text(self.value.get("type")) or next(
            (kind for key, kind in _GROWING.items() if key in self.pieces), "block"
        )
        if kind == "text":
            return ContentBlock(BlockKind.TEXT, self.text("text"))
        if kind == "thinking":
            return ContentBlock(
                BlockKind.THINKING, self.text("thinking"), signature=as_text(self.value.get("signature"))
            )
        if kind == "redacted_thinking":
            return sealed_thinking(as_text(self.value.get("data")))
        streamed = joined(self.pieces.get("partial_json", ()))
        if kind == "tool_use":
            arguments = streamed or json_text(self.value.get("input", {}))
            return ContentBlock(
                BlockKind.TOOL_CALL, arguments, as_text(self.value.get("id")), as_text(self.value.get("name"))
            )
        if streamed:
            loaded = loaded_object(streamed)
            self.value["input"] = streamed if loaded is None else loaded
        return other_block(self.value, kind)


_GROWING: Mapping[str, str] = {"text": "text", "thinking": "thinking", "partial_json": "tool_use"}
"""Key of a delta that goes on where the last one ended -> type of the block that it belongs to."""


@dataclass(slots=True)
class MessagesDraft(AnswerDraft):
    """Anthropic Messages."""

    content: dict[int, _Block] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def take_body(self, body: Mapping[str, Any]) -> None:
        """See `AnswerDraft.take_body`."""
        self._take_message(body)
        self.error = error_text(body.get("error"))
        for block in as_objects(body.get("content")):
            self.content[len(self.content)] = _Block(dict(block))
        self.stop_reason = as_text(body.get("stop_reason"))
        self.is_complete = bool(self.stop_reason)

    def take_event(self, kind: str, event: Mapping[str, Any]) -> None:
        """See `AnswerDraft.take_event`."""
        if kind == "message_start":
            self._take_message(as_object(event.get("message")))
        elif kind == "content_block_start":
            self.content[self._place(event, len(self.content))] = _Block(dict(as_object(event.get("content_block"))))
        elif kind == "content_block_delta":
            place = self._place(event, max(len(self.content) - 1, 0))
            self.content.setdefault(place, _Block({})).add(as_object(event.get("delta")))
        elif kind == "message_delta":
            self._take_message(event)
            self.stop_reason = as_text(as_object(event.get("delta")).get("stop_reason")) or self.stop_reason
        elif kind == "message_stop":
            self.is_complete = True
        elif kind == "error":
            self.error = error_text(event.get("error") or event)

    def _place(self, event: Mapping[str, Any], default: int) -> int:
        index = as_index(event.get("index"))
        return default if index is None else index

    def _take_message(self, holder: Mapping[str, Any]) -> None:
        """What stands beside the content; counts are those of the whole answer so far."""
        self.name(holder)
        usage = as_object(holder.get("usage"))
        for key in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"):
            count = as_count(usage.get(key))
            if count is not None:
                # Programs in front of others end with zeros for what they told at the start.
                self.counts[key] = count or self.counts.get(key, 0)
        lasting = as_count(as_object(usage.get("cache_creation")).get("ephemeral_1h_input_tokens"))
        self.written_1h_tokens = lasting or self.written_1h_tokens
        managed = as_object(holder.get("context_management"))
        self.applied_edits = type_names(managed.get("applied_edits")) or self.applied_edits
        if isinstance(holder.get("input_transformations"), list):
            self.input_transformations = type_names(holder["input_transformations"])

    def blocks(self) -> Iterable[ContentBlock]:
        """See `AnswerDraft.blocks`."""
        return (block.read() for _, block in sorted(self.content.items()))

    def usage(self) -> Usage | None:
        """See `AnswerDraft.usage`."""
        if not self.counts:
            return None
        keys = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        plain, read, written = (self.counts.get(key, 0) for key in keys)
        return Usage(plain, read, written, self.counts.get("output_tokens"))
