"""Which conversation a request belongs to: by what the client says of itself, else by how it begins.

Source: section 4 of the client notes. Sub-agents use the id of the session that started them, so that the texts in
front of a conversation are part of its key. Two conversations with one key are told apart by their messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple

from context_gatekeeper.wire.records import WireRequest

__all__ = ["SESSION_HEADERS", "SessionKey", "named_session", "session_key"]

SESSION_HEADERS = (
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "thread-id",
    "x-session-id",
    "x-opencode-session",
    "x-session-affinity",
    "conversation_id",
)
"""Headers in which clients name their session, in the order in which they are believed."""
_DIGEST_BYTES = 6
_SHOWN_CREDENTIAL_CHARS = 8
_MOST_NAME_CHARS = 120


class SessionKey(NamedTuple):
    """Names a conversation."""

    credential: str
    """Keyed hash of who asks: nobody meets another's sessions."""
    name: str
    """The client's own name of it, and a digest of what stands in front of it."""

    @property
    def pool_name(self) -> str:
        """Name of the session in the pool: another one for another credential."""
        return f"{self.name}.{self.credential[:_SHOWN_CREDENTIAL_CHARS]}" if self.credential else self.name


def session_key(request: WireRequest, headers: Mapping[str, str], credential: str) -> SessionKey:
    """The request's conversation.

    Args:
        request: decoded.
        headers: lower-case names.
        credential: keyed hash; "" for a client that sent none.
    """
    named = named_session(headers) or request.session_hint
    if named:
        shown = named if len(named) <= _MOST_NAME_CHARS and named.isprintable() else _digest(named)
        return SessionKey(credential, f"{shown}/{_digest(request.model, request.system_text)}")
    first = next((turn.message for turn in request.turns), None)
    texts = [block.text for block in first.blocks] if first is not None else []
    return SessionKey(credential, f"chat/{_digest(request.model, request.system_text, *texts)}")


def named_session(headers: Mapping[str, str]) -> str:
    """The session that the headers name; "" where none does."""
    return next((headers[name] for name in SESSION_HEADERS if headers.get(name)), "")


def _digest(*texts: str) -> str:
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()
