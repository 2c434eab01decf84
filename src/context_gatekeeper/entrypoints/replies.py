"""Readers of the answers of both routes, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from context_gatekeeper.entrypoints.endpoints import Endpoint, Route
from context_gatekeeper.entrypoints.faults import base_resp_error, service_message
from context_gatekeeper.entrypoints.thinking import ReplyPiece, ThinkSplitter
from context_gatekeeper.errors import UpstreamError

__all__ = ["ReplyReader", "Usage", "open_reader"]

_END_MARK = "[DONE]"
_MOST_TOKENS = 10**9
"""Larger counts are mistakes of the service."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the service counted them; 0 where it did not say."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


class ReplyReader(Protocol):
    """Turns what a route sends into pieces of the reply."""

    usage: Usage
    is_finished: bool
    """Whether the service said that the reply is whole."""

    def read_body(self, body: Mapping[str, Any]) -> Iterator[ReplyPiece]:
        """Pieces of a reply that came whole. Raises UpstreamError."""
        ...

    def read_event(self, data: str) -> Iterator[ReplyPiece]:
        """Pieces that one event of a streamed reply brings. Raises UpstreamError."""
        ...

    def close(self) -> Iterator[ReplyPiece]:
        """What was held back when the stream ended."""
        ...


def open_reader(endpoint: Endpoint) -> ReplyReader:
    """A reader for one reply of the endpoint's route."""
    return _MessagesReader(endpoint) if endpoint.route is Route.MESSAGES else _ChatCompletionsReader(endpoint)


def _event_object(data: str, endpoint: Endpoint) -> Mapping[str, Any]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise UpstreamError(endpoint.name, "it sent an event that is no JSON object", "check the address or ask again")
    return event


def _raise_reported(body: Mapping[str, Any], data: str, endpoint: Endpoint) -> None:
    """Raise what the service reports inside an answer with status 200."""
    reported = base_resp_error(endpoint, body)
    if reported is not None:
        raise reported
    if body.get("error"):
        raise UpstreamError(endpoint.name, f"it broke off ({service_message(data, endpoint)})", "ask again")


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_TOKENS
    return value if is_count else 0  # type: ignore[return-value]


class _ChatCompletionsReader:
    """OpenAI's Chat Completions, with MiniMax's additions: ``<think>`` in the text, ``base_resp``."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._splitter = ThinkSplitter()
        self.usage = Usage()
        self.is_finished = False

    def read_body(self, body: Mapping[str, Any]) -> Iterator[ReplyPiece]:
        _raise_reported(body, json.dumps(body), self._endpoint)
        self._note_usage(body)
        for choice in _objects(body.get("choices"))[:1]:
            yield from self._pieces(_object(choice.get("message")))
            self.is_finished = True
        yield from self.close()

    def read_event(self, data: str) -> Iterator[ReplyPiece]:
        if data.strip() == _END_MARK:
            self.is_finished = True
            return
        event = _event_object(data, self._endpoint)
        _raise_reported(event, data, self._endpoint)
        self._note_usage(event)
        for choice in _objects(event.get("choices"))[:1]:
            # MiniMax closes a stream with the whole message once more: only deltas count.
            yield from self._pieces(_object(choice.get("delta")))
            if choice.get("finish_reason"):
                self.is_finished = True

    def close(self) -> Iterator[ReplyPiece]:
        return self._splitter.close()

    def _pieces(self, message: Mapping[str, Any]) -> Iterator[ReplyPiece]:
        thinking = _text(message.get("reasoning_content"))
        if thinking:
            yield ReplyPiece(thinking, is_thinking=True)
        yield from self._splitter.feed(_text(message.get("content")))

    def _note_usage(self, event: Mapping[str, Any]) -> None:
        usage = _object(event.get("usage"))
        if usage:
            self.usage = Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


class _MessagesReader:
    """Anthropic's Messages."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.usage = Usage()
        self.is_finished = False

    def read_body(self, body: Mapping[str, Any]) -> Iterator[ReplyPiece]:
        _raise_reported(body, json.dumps(body), self._endpoint)
        self._note_usage(_object(body.get("usage")))
        for block in _objects(body.get("content")):
            yield from _block_pieces(block)
        self.is_finished = bool(body.get("stop_reason"))

    def read_event(self, data: str) -> Iterator[ReplyPiece]:
        event = _event_object(data, self._endpoint)
        _raise_reported(event, data, self._endpoint)
        kind = event.get("type")
        if kind == "message_start":
            self._note_usage(_object(_object(event.get("message")).get("usage")))
        elif kind == "message_delta":
            self._note_usage(_object(event.get("usage")))
        elif kind == "message_stop":
            self.is_finished = True
        elif kind == "content_block_start":
            yield from _block_pieces(_object(event.get("content_block")))
        elif kind == "content_block_delta":
            yield from _block_pieces(_object(event.get("delta")))

    def close(self) -> Iterator[ReplyPiece]:
        return iter(())

    def _note_usage(self, usage: Mapping[str, Any]) -> None:
        # What was read from or written to a cache was part of the prompt too.
        prompt = sum(
            _count(usage.get(key)) for key in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        )
        completion = _count(usage.get("output_tokens"))
        self.usage = Usage(prompt or self.usage.prompt_tokens, completion or self.usage.completion_tokens)


def _block_pieces(block: Mapping[str, Any]) -> Iterator[ReplyPiece]:
    """Pieces of a content block or of one of its deltas."""
    text, thinking = _text(block.get("text")), _text(block.get("thinking"))
    if text:
        yield ReplyPiece(text)
    if thinking:
        yield ReplyPiece(thinking, is_thinking=True)
