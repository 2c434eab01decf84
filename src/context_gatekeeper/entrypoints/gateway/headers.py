"""Headers on their way through: what is forwarded, what stays, and the keyed hash that stands for a credential."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qsl

from multidict import CIMultiDict

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.gateway.identity import SESSION_HEADERS

__all__ = [
    "NOTE_HEADER",
    "TOKEN_HEADER",
    "CredentialHash",
    "RawHeaders",
    "answer_headers",
    "forwarded_headers",
    "hide_credentials",
    "session_headers",
]

RawHeaders = Sequence[tuple[bytes, bytes]]
NOTE_HEADER = b"x-gatekeeper"
TOKEN_HEADER = b"x-gatekeeper-token"
_HOP_BY_HOP = frozenset(
    (
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
        b"trailer", b"transfer-encoding", b"upgrade",
    )
)  # fmt: skip
_NOT_FORWARDED = _HOP_BY_HOP | {b"host", b"content-length", b"expect", NOTE_HEADER, TOKEN_HEADER}
_NOT_ANSWERED = _HOP_BY_HOP | {NOTE_HEADER}
_CREDENTIALS = (b"x-api-key", b"authorization", b"api-key", b"x-goog-api-key")
_QUERY_CREDENTIAL = "key"
_BEARER = b"bearer "
_KEY_BYTES = 32
_HIDDEN = b"[credential]"


def forwarded_headers(headers: RawHeaders, *, is_edited: bool) -> CIMultiDict[str]:
    """The client's headers for the upstream, in their order, with all their repetitions.

    Args:
        headers: lower-case names.
        is_edited: the body is ours and plain, so that the client's ``content-encoding`` is not true of it.
    """
    left_out = _NOT_FORWARDED | _named_in_connection(headers)
    if is_edited:
        left_out |= {b"content-encoding"}
    return CIMultiDict(
        (name.decode("latin-1"), value.decode("utf-8", "replace")) for name, value in headers if name not in left_out
    )


def answer_headers(headers: RawHeaders, note: str) -> list[tuple[bytes, bytes]]:
    """The upstream's headers for the client, and what the gateway did."""
    left_out = _NOT_ANSWERED | _named_in_connection(headers)
    kept = [(name, value) for name, value in headers if name.lower() not in left_out]
    return [*kept, (NOTE_HEADER, note.encode())]


def _named_in_connection(headers: RawHeaders) -> frozenset[bytes]:
    """Names that a ``connection`` header makes a matter of one hop."""
    values = [value for name, value in headers if name.lower() == b"connection"]
    return frozenset(name.strip().lower() for value in values for name in value.split(b","))


def hide_credentials(content: bytes, headers: Mapping[bytes, bytes], query: bytes) -> bytes:
    """``content`` without the request's credentials: some services repeat them in their errors."""
    for value in _credentials(headers, query):
        content = content.replace(value, _HIDDEN)
    return content


def session_headers(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    """Those headers alone that tell the session."""
    found = ((name, headers.get(name.encode())) for name in SESSION_HEADERS)
    return {name: value.decode("utf-8", "replace") for name, value in found if value is not None}


class CredentialHash:
    """Names a credential without telling it: HMAC-SHA256 with a key of this installation.

    Args:
        key: at least 32 random bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def from_file(cls, path: Path) -> CredentialHash:
        """With the key in ``path``, which is made at the first call, for its owner alone.

        Raises:
            ConfigError: it cannot be made or read.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                pass
            else:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(secrets.token_bytes(_KEY_BYTES))
            key = path.read_bytes()
        except OSError as error:
            raise ConfigError(
                str(path), f"the gateway's key cannot be kept there ({error.strerror})", "make the folder writable"
            ) from error
        if len(key) < _KEY_BYTES:
            raise ConfigError(str(path), "the gateway's key is too short", "remove the file; a new one is made")
        return cls(key)

    def of(self, headers: Mapping[bytes, bytes], query: bytes) -> str:
        """Hash of the request's credential, in hex; "" when it has none."""
        given = next(_credentials(headers, query), b"")
        return hmac.new(self._key, given, hashlib.sha256).hexdigest() if given else ""


def _credentials(headers: Mapping[bytes, bytes], query: bytes) -> Iterator[bytes]:
    for name in _CREDENTIALS:
        value = headers.get(name, b"").lstrip()
        if value[: len(_BEARER)].lower() == _BEARER:
            value = value[len(_BEARER) :]
        if value.strip():
            yield value.strip()
    for parameter, text in parse_qsl(query.decode("latin-1")):
        if parameter == _QUERY_CREDENTIAL and text:
            yield text.encode()
