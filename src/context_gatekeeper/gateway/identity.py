"""Which conversation a request belongs to: by what the client says of itself, else by how it begins.

Source: section 4 of the client notes. Sub-agents use the id of the session that started them, so that the texts in
front of a conversation are part of its key. Two conversations with one key are told apart by their messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import NamedTuple

from context_gatekeeper.types import MessageRole
from context_gatekeeper.wire.records import WireRequest

__all__ = [
    "SESSION_HEADERS",
    "SessionKey",
    "history_digest",
    "named_session",
    "opening_digest",
    "session_key",
    "working_folder",
]

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
_NAME = re.compile(r"[A-Za-z0-9._:@-]{1,120}")
"""What a client's own name of a session may be made of, to be shown as it is."""
_FOLDERS = (
    re.compile(r"(?im)^[ \t>*-]{0,8}(?:primary )?working directory: *(/\S[^\n<]*)"),
    re.compile(r"<cwd>(/[^<\n]+)</cwd>"),
)
_OPENING_TURNS = 6
"""So many of the first turns may be a client's word on where it works."""


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
        shown = named if _NAME.fullmatch(named) else _digest(named)
        return SessionKey(credential, f"{shown}/{_digest(request.model, request.system_text)}")
    first = next((turn.message for turn in request.turns), None)
    texts = [block.text for block in first.blocks] if first is not None else []
    return SessionKey(credential, f"chat/{_digest(request.model, request.system_text, *texts)}")


def named_session(headers: Mapping[str, str]) -> str:
    """The session that the headers name; "" where none does."""
    return next((headers[name] for name in SESSION_HEADERS if headers.get(name)), "")


def opening_digest(request: WireRequest) -> str:
    """Digest of the first message: after a compaction a client's conversation begins anew."""
    return request.messages[0].fingerprint[:_DIGEST_BYTES].hex() if request.messages else ""


def history_digest(request: WireRequest) -> str:
    """Digest of all messages."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for message in request.messages:
        digest.update(message.fingerprint)
    return digest.hexdigest()


def working_folder(request: WireRequest) -> str:
    """Where the agent works, by what its client's program writes in front; "" where it does not say.

    What a person typed, a tool gave back or a model wrote is not believed.
    """
    for text in _programs_texts(request):
        for pattern in _FOLDERS:
            if found := pattern.search(text):
                return found[1].rstrip()
    return ""


def _programs_texts(request: WireRequest) -> Iterator[str]:
    yield request.system_text
    for turn in request.turns[:_OPENING_TURNS]:
        if turn.message.role is MessageRole.SYSTEM or (turn.message.role is MessageRole.USER and turn.message.origin):
            yield from (block.text for block in turn.message.blocks)


def _digest(*texts: str) -> str:
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()
