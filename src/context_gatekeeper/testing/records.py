"""What the fake service is asked and answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from context_gatekeeper.core.tokens import MESSAGE_TOKENS, estimate_tokens
from context_gatekeeper.testing.faults import Fault
from context_gatekeeper.testing.rendering import RenderedBlock
from context_gatekeeper.wire.records import WireApi

__all__ = ["FakeCall", "FakeReply", "ReceivedRequest", "RequestUsage", "content_text", "read_session"]

_OK = 200
_SESSION_HEADERS = ("x-claude-code-session-id", "session-id", "session_id", "thread-id", "x-session-id")


@dataclass(frozen=True, slots=True)
class FakeCall:
    """A tool call of the model's."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    """Of a text: sent as it is, as a call's JSON text, or as the input of a custom tool (Responses)."""
    id: str | None = None
    """Made by the provider when None: unique, and the same in every run."""


@dataclass(frozen=True, slots=True)
class FakeReply:
    """What the provider answers."""

    text: str = ""
    thinking: str = "Let me look at the context first."
    """Empty for none. A thinking block on the Anthropic routes when the request switches thinking on, a reasoning item
    of the Responses API when it asks for reasoning, ``reasoning_content`` of DeepSeek's models; MiniMax's models send
    it always, on the chat route as ``<think>`` text."""
    status: int = _OK
    """HTTP status; from 300 on ``text`` is the message of the error."""
    base_resp_code: int = 0
    """MiniMax's own error code, sent with status 200; ``text`` is its message."""
    retry_after: str | None = None
    breaks_off: bool = False
    """Close the connection in the middle of a streamed answer."""
    calls: tuple[FakeCall, ...] = ()
    """Tool calls behind the text."""
    stop_reason: str = ""
    """Of the Messages and Chat APIs, such as ``max_tokens``; by text and calls when empty."""
    is_redacted: bool = False
    """The thinking goes out as a ``redacted_thinking`` block."""
    fault: Fault | None = None
    """What goes wrong with this answer."""
    blocks: tuple[Mapping[str, Any], ...] = ()
    """Content blocks of the Messages API, or output items of the Responses API, that stand as they are between
    thinking and text, such as a server tool's call and its result."""


@dataclass(slots=True)
class RequestUsage:
    """Tokens of one request, or the sum of several."""

    plain: int = 0
    """Prompt tokens that were neither read from the cache nor written to it."""
    read: int = 0
    written: int = 0
    """Prompt tokens written to the cache, whatever the provider charges for that."""
    output: int = 0
    written_1h: int = 0
    """Those of ``written`` that live an hour."""

    @property
    def prompt(self) -> int:
        """All tokens of the prompt."""
        return self.plain + self.read + self.written

    def __add__(self, other: RequestUsage) -> RequestUsage:
        """Sum, figure by figure."""
        return RequestUsage(
            self.plain + other.plain,
            self.read + other.read,
            self.written + other.written,
            self.output + other.output,
            self.written_1h + other.written_1h,
        )


@dataclass(slots=True, eq=False)
class ReceivedRequest:
    """A request as it arrived, and what became of it."""

    path: str
    """Without the query."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Mapping[str, Any]
    """Decoded; empty when it is no JSON object."""
    method: str = "POST"
    target: str = ""
    """Path and query as they came."""
    raw: bytes = b""
    """The body as it came, in its encoding."""
    raw_headers: tuple[tuple[bytes, bytes], ...] = ()
    api: WireApi | None = None
    """None of routes that no model answers."""
    status: int = 0
    """Of the answer; 0 as long as there is none."""
    usage: RequestUsage = field(default_factory=RequestUsage)
    """What the provider charges: nothing before the answer begins."""
    blocks: tuple[RenderedBlock, ...] = ()
    """The prompt as the cache sees it."""
    sent_blocks: tuple[RenderedBlock, ...] = ()
    """The prompt before the provider's own edits: what thinking is bound to. The documentation speaks of what was sent;
    that edits are excepted is our reading."""
    applied_edits: tuple[Mapping[str, Any], ...] = ()
    """What the provider cleared of the context, as the answer tells it."""

    @property
    def model(self) -> str:
        """Name of the model, "" when there is none."""
        name = self.body.get("model")
        return name if isinstance(name, str) else ""

    @property
    def session(self) -> str:
        """Name of the session by header or body, "" when the client gives none."""
        return read_session(self.headers, self.body)

    @property
    def is_stream(self) -> bool:
        """Whether a streamed answer was asked for."""
        return self.body.get("stream") is True

    @property
    def items(self) -> Sequence[Any]:
        """Elements of ``messages`` or ``input``; a text as ``input`` is one message of the user."""
        listed = self.body.get("messages", self.body.get("input", ()))
        if isinstance(listed, str):
            return ({"role": "user", "content": listed},)
        return listed if isinstance(listed, list) else ()

    @property
    def system(self) -> str:
        """Text of the system prompt, "" when there is none."""
        top = [content_text(self.body[key]) for key in ("system", "instructions") if self.body.get(key) is not None]
        listed = [content_text(m.get("content")) for m in self.items if m.get("role") == "system"]
        return "\n".join(top + listed)

    @property
    def messages(self) -> list[tuple[str, str]]:
        """(role, text) of the messages without system messages and tool items."""
        return [
            (m["role"], content_text(m.get("content")))
            for m in self.items
            if m.get("role") not in (None, "system", "developer")
        ]

    @property
    def context(self) -> list[str]:
        """Texts of the messages before the last."""
        return [text for _, text in self.messages[:-1]]

    @property
    def query(self) -> str:
        """Text of the last message."""
        return self.messages[-1][1] if self.messages else ""

    @property
    def user_text(self) -> str:
        """All text of the last message of the user's that has any, "" when none has."""
        for message in reversed(self.items):
            if message.get("role") == "user":
                text = "\n".join(_texts(message.get("content")))
                if text:
                    return text
        return ""

    @property
    def results(self) -> list[tuple[str, str]]:
        """(id of the call, text) of every tool result, in order."""
        found = []
        for item in self.items:
            if item.get("role") == "tool":
                found.append((str(item.get("tool_call_id")), "\n".join(_texts(item.get("content")))))
            elif str(item.get("type")).endswith("_call_output"):
                found.append((str(item.get("call_id")), "\n".join(_texts(item.get("output")))))
            elif isinstance(item.get("content"), list):
                found += [
                    (str(block.get("tool_use_id")), "\n".join(_texts(block.get("content"))))
                    for block in item["content"]
                    if isinstance(block, dict) and block.get("type") == "tool_result"
                ]
        return found

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the whole prompt by the fitted estimate, framing of the messages included."""
        texts = [text for _, text in self.messages]
        framing = MESSAGE_TOKENS * len(self.items)
        return framing + sum(estimate_tokens(text) for text in [self.system, *texts])


def content_text(content: object) -> str:
    """Text of a message's content; "" when it is of no allowed form or holds more than text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        return ""
    texts = [part.get("text") for part in content if part.get("type") in ("text", "input_text", "output_text")]
    return "\n".join(text for text in texts if isinstance(text, str)) if len(texts) == len(content) else ""


def _texts(content: object) -> list[str]:
    """Every text in a content, whatever stands beside it."""
    if isinstance(content, str):
        return [content] if content else []
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]


def read_session(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """The session's name: by header, by ``metadata.user_id``, by ``prompt_cache_key``; "" for none."""
    for name in _SESSION_HEADERS:
        if headers.get(name):
            return headers[name]
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    if isinstance(user, str):
        try:
            named = json.loads(user)
        except ValueError:
            return user
        return str(named.get("session_id", "")) if isinstance(named, dict) else user
    key = body.get("prompt_cache_key")
    return key if isinstance(key, str) else ""
