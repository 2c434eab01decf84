"""What the fake service is asked and answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from context_gatekeeper.core.tokens import MESSAGE_TOKENS, estimate_tokens

__all__ = ["FakeReply", "ReceivedRequest", "content_text"]

_OK = 200


@dataclass(frozen=True, slots=True)
class FakeReply:
    """What the provider answers."""

    text: str = ""
    thinking: str = "Let me look at the context first."
    """Stands as ``<think>`` text on the OpenAI route and as a thinking block on the other; empty for none."""
    status: int = _OK
    """HTTP status; from 300 on ``text`` is the message of the error."""
    base_resp_code: int = 0
    """MiniMax's own error code, sent with status 200; ``text`` is its message."""
    retry_after: str | None = None
    breaks_off: bool = False
    """Close the connection in the middle of a streamed answer."""


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request as it arrived."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Mapping[str, Any]

    @property
    def is_stream(self) -> bool:
        """Whether a streamed answer was asked for."""
        return self.body.get("stream") is True

    @property
    def system(self) -> str:
        """Text of the system prompt, "" when there is none."""
        top = [content_text(self.body["system"])] if "system" in self.body else []
        listed = [content_text(m["content"]) for m in self.body["messages"] if m["role"] == "system"]
        return "\n".join(top + listed)

    @property
    def messages(self) -> list[tuple[str, str]]:
        """(role, text) of the messages without system messages."""
        return [(m["role"], content_text(m["content"])) for m in self.body["messages"] if m["role"] != "system"]

    @property
    def context(self) -> list[str]:
        """Texts of the messages before the last."""
        return [text for _, text in self.messages[:-1]]

    @property
    def query(self) -> str:
        """Text of the last message."""
        return self.messages[-1][1]

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the whole prompt by the fitted estimate, framing of the messages included."""
        texts = [text for _, text in self.messages]
        framing = MESSAGE_TOKENS * len(self.body["messages"])
        return framing + sum(estimate_tokens(text) for text in [self.system, *texts])


def content_text(content: object) -> str:
    """Text of a message's content; "" when it is of no allowed form."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        return ""
    texts = [part.get("text") for part in content if part.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str)) if len(texts) == len(content) else ""
