"""Answers of OpenAI Chat Completions and of all who speak it."""

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
)
from context_gatekeeper.wire.blocks import sealed_thinking

__all__ = ["ChatDraft"]

_REASONING = ("reasoning_content", "reasoning")


@dataclass(slots=True)
class _Call:
    """A call of Chat Completions."""

    call_id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ChatDraft(AnswerDraft):
    """OpenAI Chat Completions. Of several choices the first counts."""

    thinking: list[str] = field(default_factory=list)
    detail_text: str = ""
    signature: str = ""
    sealed: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    slots: dict[int, _Call] = field(default_factory=dict)
    """Index of a call -> the call that its next piece belongs to."""
    counted: Usage | None = None

    def take_body(self, body: Mapping[str, Any]) -> None:
        """See `AnswerDraft.take_body`."""
        self._take_chunk(body, "message")
        self.is_complete = self.is_complete or any(
            isinstance(choice.get("message"), dict) for choice in as_objects(body.get("choices"))
        )

    def take_event(self, kind: str, event: Mapping[str, Any]) -> None:
        """See `AnswerDraft.take_event`."""
        self._take_chunk(event, "delta")
        if kind == "error" and not self.error:
            self.error = error_text(event)

    def _take_chunk(self, chunk: Mapping[str, Any], key: str) -> None:
        self.name(chunk)
        base_resp = as_object(chunk.get("base_resp"))
        if chunk.get("error"):
            self.error = error_text(chunk["error"])
        elif base_resp.get("status_code"):
            self.error = error_text(base_resp.get("status_msg")) or f"code {base_resp['status_code']}"
        self._take_usage(chunk)
        for choice in as_objects(chunk.get("choices")):
            if choice.get("index") not in (0, None):
                continue
            self._take_usage(choice)
            # MiniMax closes a stream with the whole message once more.
            is_new = key in choice or not (self.texts or self.thinking or self.calls)
            self._take_message(as_object(choice.get(key, choice.get("message") if is_new else None)))
            reason = as_text(choice.get("finish_reason"))
            self.stop_reason = reason or self.stop_reason
            self.is_complete = self.is_complete or bool(reason)

    def _take_usage(self, holder: Mapping[str, Any]) -> None:
        usage = holder.get("usage")
        if isinstance(usage, dict):
            self.counted = inside_usage(usage) or self.counted

    def _take_message(self, message: Mapping[str, Any]) -> None:
        thinking = next((told for key in _REASONING if (told := as_text(message.get(key)))), "")
        self.thinking.append(thinking)
        self._seal(message.get("encrypted_content"))
        for detail in as_objects(message.get("reasoning_details")):
            self.signature = as_text(detail.get("signature")) or self.signature
            self._seal(detail.get("data"))
            if not thinking:
                # MiniMax tells all of it each time, others what is new.
                told = as_text(detail.get("text"))
                is_whole = told.startswith(self.detail_text)
                self.detail_text = told if is_whole else self.detail_text + told
        content = message.get("content")
        parts = (as_text(part.get("text")) for part in as_objects(content))
        self.texts.append(content if isinstance(content, str) else "".join(parts))
        self.refusals.append(as_text(message.get("refusal")))
        for call in as_objects(message.get("tool_calls")):
            self._take_call(call)
        if isinstance(message.get("function_call"), dict):
            self._take_call({"index": 0, "function": message["function_call"]})

    def _seal(self, data: object) -> None:
        if isinstance(data, str) and data:
            self.sealed.append(data)

    def _take_call(self, piece: Mapping[str, Any]) -> None:
        call_id, index = as_text(piece.get("id")), as_index(piece.get("index"))
        # Without an index a piece goes on with the last call, unless it brings an id: Gemini sends whole calls.
        slot = index if index is not None else max(len(self.slots) - 1, 0)
        call = self.slots.get(slot)
        if call is None or (call_id and call.call_id and call_id != call.call_id):
            call = _Call()
            self.calls.append(call)
            self.slots[slot] = call
        call.call_id = call.call_id or call_id
        function = as_object(piece.get("function")) or as_object(piece.get("custom"))
        call.name = call.name or as_text(function.get("name"))
        arguments = function.get("arguments", function.get("input"))
        is_told = arguments is not None and not isinstance(arguments, str)
        call.arguments.append(json_text(arguments) if is_told else as_text(arguments))

    def blocks(self) -> Iterable[ContentBlock]:
        """See `AnswerDraft.blocks`."""
        thinking = joined(self.thinking) or self.detail_text
        if thinking:
            yield ContentBlock(BlockKind.THINKING, thinking, signature=self.signature)
        yield from map(sealed_thinking, self.sealed)
        for text in (joined(self.texts), joined(self.refusals)):
            if text:
                yield ContentBlock(BlockKind.TEXT, text)
        for call in self.calls:
            yield ContentBlock(BlockKind.TOOL_CALL, joined(call.arguments), call.call_id, call.name)

    def usage(self) -> Usage | None:
        """See `AnswerDraft.usage`."""
        return self.counted
