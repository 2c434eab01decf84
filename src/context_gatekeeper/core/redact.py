"""Redacting: visible placeholders in the place of secrets, and the way back.

``<redacted:KIND:8HEX>`` tells the kind of the secret and, by a keyed hash, which one: equal secrets of a pool
have equal placeholders, and without the pool's key nobody can try out whether a guess is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import blake2b, sha256
from itertools import pairwise

from context_gatekeeper.core.secret_rules import find_secrets
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.types import PagePart

__all__ = [
    "PLACEHOLDER_START",
    "RedactedSpan",
    "Redaction",
    "RedactionMode",
    "join",
    "redact",
    "redact_parts",
    "sealed_name",
]

PLACEHOLDER_START = "<redacted:"
_HASH_BYTES = 4
_HASH_PURPOSE = b"redaction"
"""Keeps these hashes apart from others that are made with the same key."""
_NAME_BYTES = 32
_NAME_PURPOSE = b"sealed text"


class RedactionMode(StrEnum):
    """What becomes of well-known secrets in texts that are stored."""

    KEEP = "keep"
    """A placeholder is stored, the original is sealed: its owner gets it back."""
    DROP = "drop"
    """A placeholder is stored, the original is nowhere."""
    OFF = "off"
    """Texts are stored as they are."""


@dataclass(frozen=True, slots=True)
class RedactedSpan:
    """One placeholder and what it stands for."""

    start: int
    """Where the placeholder begins, in the redacted text."""
    placeholder: str
    original: str

    @property
    def end(self) -> int:
        """Past the placeholder, in the redacted text."""
        return self.start + len(self.placeholder)


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text without its secrets."""

    text: str
    spans: tuple[RedactedSpan, ...]
    """In order; empty when the text is as it was."""


def redact(text: str, key: bytes) -> Redaction:
    """Put placeholders in the place of the text's secrets (module ``secret_rules``). O(length).

    Args:
        text: any text.
        key: the pool's, for the hash in the placeholders; at most 64 bytes.
    """
    pieces: list[str] = []
    spans: list[RedactedSpan] = []
    copied_to = length = 0
    for secret in find_secrets(text):
        before, original = text[copied_to : secret.start], text[secret.start : secret.end]
        placeholder = f"{PLACEHOLDER_START}{secret.kind}:{_hash_of(original, key)}>"
        spans.append(RedactedSpan(length + len(before), placeholder, original))
        pieces += (before, placeholder)
        length += len(before) + len(placeholder)
        copied_to = secret.end
    if not spans:
        return Redaction(text, ())
    pieces.append(text[copied_to:])
    return Redaction("".join(pieces), tuple(spans))


def redact_parts(text: str, parts: Sequence[PagePart], key: bytes) -> tuple[Redaction, tuple[PagePart, ...]]:
    """Redact a page that holds several pieces: each apart, so that no secret reaches over two of them.

    Args:
        text: the whole page.
        parts: pieces of it in order; what lies between two is redacted apart too.
        key: as in `redact`.

    Returns the redacted page and its parts at their new places.
    """
    cuts = sorted({0, len(text), *(place for part in parts for place in (part.start, part.end))})
    pieces: list[str] = []
    spans: list[RedactedSpan] = []
    moved = {0: 0}
    length = 0
    for start, end in pairwise(cuts):
        piece = redact(text[start:end], key)
        spans += (replace(span, start=span.start + length) for span in piece.spans)
        pieces.append(piece.text)
        length += len(piece.text)
        moved[end] = length
    places = tuple(part._replace(start=moved[part.start], end=moved[part.end]) for part in parts)
    return Redaction("".join(pieces), tuple(spans)), places


def join(text: str, spans: Sequence[RedactedSpan]) -> str:
    """The original of a redacted text: inverse of `redact`.

    Raises:
        ConfigError: the spans are not those of this text.
    """
    pieces: list[str] = []
    copied_to = 0
    for span in spans:
        if span.start < copied_to or text[span.start : span.end] != span.placeholder:
            raise ConfigError(
                f"redacted span at {span.start}", "the text has no such placeholder there", "join the whole stored text"
            )
        pieces += (text[copied_to : span.start], span.original)
        copied_to = span.end
    return "".join((*pieces, text[copied_to:]))


def sealed_name(text: str, owner: str = "") -> str:
    """Under which name the secrets of a redacted text are sealed, 64 hex digits; the sha256 of a text of nobody's.

    One owner's text has another name than the same text of another: whoever copies a text with placeholders, which
    may be shared, gets no secret by it.
    """
    content = text.encode("utf-8", "surrogatepass")
    if not owner:
        return sha256(content).hexdigest()
    key = sha256(owner.encode("utf-8", "surrogatepass")).digest()
    return blake2b(content, digest_size=_NAME_BYTES, key=key, person=_NAME_PURPOSE).hexdigest()


def _hash_of(original: str, key: bytes) -> str:
    content = original.encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=_HASH_BYTES, key=key, person=_HASH_PURPOSE).hexdigest()
