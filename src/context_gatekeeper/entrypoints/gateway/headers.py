"""Headers on their way through: what is forwarded, what stays, and the keyed hash that stands for a credential."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

from multidict import CIMultiDict

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.gateway.identity import SESSION_HEADERS

__all__ = [
    "NOTE_HEADER",
    "TOKEN_HEADER",
    "CredentialHash",
    "CredentialMask",
    "RawHeaders",
    "answer_headers",
    "forwarded_headers",
    "has_marks",
    "raw_head",
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
_CREDENTIALS = (b"x-api-key", b"authorization", b"api-key", b"x-goog-api-key", b"cookie")
_QUERY_CREDENTIALS = frozenset(("key", "api_key", "api-key", "access_token"))
_BEARER = b"bearer "
_KEY_BYTES = 32
_FIRST_MARK = 0x10FE00
"""Characters of the last private plane stand for the bytes of a value that is no UTF-8."""
_MARKS = {byte: _FIRST_MARK + byte for byte in range(0x80, 0x100)}
_MARKED = re.compile(rb"\xf4\x8f[\xb8-\xbb][\x80-\xbf]")
_NAME_DIGITS = 12
_LONG_BYTES = 16
"""From here on a credential is no word of any text."""


def forwarded_headers(headers: RawHeaders, *, is_edited: bool) -> CIMultiDict[str]:
    """The client's headers for the upstream, in their order, with all their repetitions.

    Args:
        headers: lower-case names.
        is_edited: the body is ours and plain, so that the client's ``content-encoding`` is not true of it.
    """
    left_out = _NOT_FORWARDED | _named_in_connection(headers)
    if is_edited:
        left_out |= {b"content-encoding"}
    return CIMultiDict((name.decode("latin-1"), _header_text(value)) for name, value in headers if name not in left_out)


def _header_text(value: bytes) -> str:
    """A value as text, of which the upstream's client makes the same bytes again (`raw_head`)."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = ""
    return text if text and not has_marks(text) else value.decode("latin-1").translate(_MARKS)


def raw_head(head: bytes) -> bytes:
    """A head of aiohttp, which writes UTF-8 alone, with the bytes that `forwarded_headers` marked."""
    return _MARKED.sub(lambda found: bytes((_byte_of(found[0]),)), head)


def has_marks(value: str) -> bool:
    """Whether `forwarded_headers` had bytes to mark; such a value has no other characters beyond ASCII."""
    return any(_FIRST_MARK <= ord(char) < _FIRST_MARK + 256 for char in value)


def _byte_of(mark: bytes) -> int:
    return ord(mark.decode()) - _FIRST_MARK


def answer_headers(headers: RawHeaders, note: str) -> list[tuple[bytes, bytes]]:
    """The upstream's headers for the client, and what the gateway did."""
    left_out = _NOT_ANSWERED | _named_in_connection(headers)
    kept = [(name, value) for name, value in headers if name.lower() not in left_out]
    return [*kept, (NOTE_HEADER, note.encode())]


def _named_in_connection(headers: RawHeaders) -> frozenset[bytes]:
    """Names that a ``connection`` header makes a matter of one hop."""
    values = [value for name, value in headers if name.lower() == b"connection"]
    return frozenset(name.strip().lower() for value in values for name in value.split(b","))


@dataclass(frozen=True, slots=True)
class CredentialMask:
    """What one request's credentials are called where its texts are planned and kept.

    A text may hold a credential: some services repeat it in their answers, and the client sends those back. What the
    planner hears has names in the place of credentials, the same ones as long as the credential is; what it gives back
    to be sent has the credentials again.
    """

    names: tuple[tuple[bytes, bytes], ...] = ()
    """(credential, name), the longest first."""

    def hide(self, content: bytes) -> bytes:
        """``content`` with names."""
        for value, name in self.names:
            if value in content:
                content = _hidden(content, value, name)
        return content

    def hide_request(self, content: bytes) -> tuple[bytes, CredentialMask]:
        """A request with names, and the mask that shows them again: of what was not in it nothing is shown."""
        used = []
        for value, usual in self.names:
            if value not in content:
                continue
            name = usual
            while name in content:  # The text holds the name itself: another one, so that it stays what it is.
                name = name[:-1] + b"_]"
            used.append((value, name))
            content = _hidden(content, value, name)
        return content, CredentialMask(tuple(used))

    def show(self, content: bytes) -> bytes:
        """``content`` with the credentials in the place of their names."""
        for value, name in self.names:
            content = content.replace(name, value)
        return content


def _hidden(content: bytes, value: bytes, name: bytes) -> bytes:
    """A long credential is hidden wherever it stands; a short one may be a part of a word, or one (``ollama``)."""
    if len(value) >= _LONG_BYTES:
        return content.replace(value, name)
    if not any(48 <= byte < 58 for byte in value):  # No digit in it.
        return content
    return re.sub(rb"(?<![\w-])" + re.escape(value) + rb"(?![\w-])", lambda _: name, content)


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

    def mask(self, headers: Mapping[bytes, bytes], query: bytes) -> CredentialMask:
        """Names for the request's credentials, which tell nothing of them."""
        values = sorted({*_secrets(headers, query)}, key=lambda value: (-len(value), value))
        return CredentialMask(tuple((value, b"[credential %b]" % self._name(value)) for value in values))

    def _name(self, value: bytes) -> bytes:
        return hmac.new(self._key, b"name " + value, hashlib.sha256).hexdigest()[:_NAME_DIGITS].encode()

    def of(self, headers: Mapping[bytes, bytes], query: bytes) -> str:
        """Hash of the request's credential, in hex; "" when it has none."""
        given = next(_credentials(headers, query), b"")
        return hmac.new(self._key, given, hashlib.sha256).hexdigest() if given else ""


def _secrets(headers: Mapping[bytes, bytes], query: bytes) -> Iterator[bytes]:
    """What must not be kept: credentials, with and without the word that stands in front of them, whatever it is."""
    for value in _credentials(headers, query):
        yield from {value, value.rpartition(b" ")[2]}


def _credentials(headers: Mapping[bytes, bytes], query: bytes) -> Iterator[bytes]:
    for name in _CREDENTIALS:
        value = headers.get(name, b"").lstrip()
        if value[: len(_BEARER)].lower() == _BEARER:
            value = value[len(_BEARER) :]
        if value.strip():
            yield value.strip()
    for parameter, text in parse_qsl(query.decode("latin-1")):
        if parameter in _QUERY_CREDENTIALS and text:
            yield text.encode()
