"""What the answers of the three APIs have in common: their frame, pieces of a stream, counts of output."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from context_gatekeeper.core.tokens import TOOL_CALL_TOKENS, estimate_tokens
from context_gatekeeper.testing.records import FakeCall, FakeReply, ReceivedRequest, RequestUsage

__all__ = ["CREATED", "Answer", "arguments_text", "cut_pieces", "data_event", "is_custom", "named_event"]

CREATED = 1_764_000_000
"""Time of every answer, in seconds since 1970: the same request is answered with the same bytes."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply on its way, with all that its form depends on."""

    request: ReceivedRequest
    reply: FakeReply
    number: int
    """Makes its ids."""
    usage: RequestUsage
    piece_chars: int
    """Streamed texts are cut after so many characters, in the middle of marks and words."""
    is_minimax: bool = False
    dropped: tuple[str, ...] = ()
    """Thinking blocks of the request that were left out."""

    def name(self, prefix: str, place: int | None = None) -> str:
        """An id."""
        return f"{prefix}_{self.number:06d}" + ("" if place is None else f"x{place}")

    def call_id(self, prefix: str, place: int) -> str:
        """Id of the call at ``place`` among the reply's."""
        return self.reply.calls[place].id or self.name(prefix, place)

    def output_tokens(self, *, has_thinking: bool) -> int:
        """Tokens of the reply."""
        calls = sum(TOOL_CALL_TOKENS + estimate_tokens(call.name + arguments_text(call)) for call in self.reply.calls)
        thinking = estimate_tokens(self.reply.thinking) if has_thinking else 0
        return thinking + estimate_tokens(self.reply.text) + calls


def arguments_text(call: FakeCall) -> str:
    """A call's arguments as they are sent."""
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(call.arguments, ensure_ascii=False)


def is_custom(call: FakeCall, tools: object) -> bool:
    """Whether the request declares the called tool as one that takes free text."""
    listed: Sequence[Any] = tools if isinstance(tools, list) else ()
    return any(
        isinstance(tool, dict)
        and tool.get("type") == "custom"
        and call.name in (tool.get("name"), (tool.get("custom") or {}).get("name"))
        for tool in listed
    )


def cut_pieces(text: str, chars: int) -> Iterator[str]:
    """A text in pieces; none of the empty text."""
    for start in range(0, len(text), chars):
        yield text[start : start + chars]


def data_event(body: Mapping[str, Any]) -> str:
    """A server-sent event without a name."""
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"


def named_event(body: Mapping[str, Any]) -> str:
    """A server-sent event that is named by its ``type``."""
    return f"event: {body['type']}\n{data_event(body)}"
