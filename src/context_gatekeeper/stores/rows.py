"""What the rows of the SQLite file hold: packed terms, digests, and pages read back and verified.

A digest covers the meaning of its row, names of pool and session included: a row that a
flipped bit moved to another session, place or id does not verify.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from hashlib import blake2b, sha256
from typing import Any, NamedTuple

from context_gatekeeper.core.page_bytes import bytes_beside
from context_gatekeeper.errors import StoreDamagedError
from context_gatekeeper.stores.drafts import ordinal_of, text_bytes
from context_gatekeeper.stores.labels import unpack_labels
from context_gatekeeper.stores.originals import original_bytes
from context_gatekeeper.types import Page, PageId, PageKind, Role

__all__ = [
    "PAGE_ROW",
    "TERMS_ROW",
    "RowShape",
    "TermsRow",
    "damaged",
    "digest_of",
    "pack_settings",
    "pack_terms",
    "page_from_row",
    "session_place",
    "stored_text",
    "terms_from_row",
    "unpack_settings",
    "unpack_terms",
    "verify",
]


class RowShape(NamedTuple):
    """What to read of pages ``p``."""

    columns: str
    joins: str
    """Derived row and original; a missing one is damage that the reading function reports."""


_TERMS_COLUMNS = "p.page_id, t.terms, t.derived, t.digest"
_TERMS_JOIN = "LEFT JOIN page_terms AS t ON t.page_id = p.page_id AND t.pool_id = p.pool_id"
TERMS_ROW = RowShape(_TERMS_COLUMNS, _TERMS_JOIN)
"""Of `terms_from_row`."""
PAGE_ROW = RowShape(
    f"{_TERMS_COLUMNS}, p.kind, p.time, p.speaker, p.labels, p.sha256, p.body, p.digest, o.size, o.body",
    # No original is looked for where the body lies in the row: nothing equals NULL.
    f"{_TERMS_JOIN} LEFT JOIN originals AS o"
    " ON o.pool_id = p.pool_id AND o.sha256 = CASE WHEN p.body IS NULL THEN p.sha256 END",
)
"""Of `page_from_row`; its first columns are those of `TERMS_ROW`."""

_DIGEST_BYTES = 16
_ZLIB_LEVEL = 1
"""Terms are short: higher levels cost three times the time for 2 % of the size."""
_COUNT_BYTES = 4


def digest_of(*meaning: str | float | None, payload: bytes = b"") -> bytes:
    """16-byte BLAKE2b of the values as Python literals in ASCII, then of the payload."""
    return blake2b(ascii(meaning).encode("ascii") + payload, digest_size=_DIGEST_BYTES).digest()


def stored_text(place: str, stored: object) -> str:
    """A stored text. Raises StoreDamagedError for ``place`` when it is none."""
    try:
        return stored.decode("utf-8", "surrogatepass")  # type: ignore[attr-defined,no-any-return]
    except (AttributeError, ValueError):
        raise damaged(place) from None


def verify(place: str, stored_digest: object, *meaning: str | float | None, payload: Any = b"") -> None:
    """Raise StoreDamagedError for ``place`` unless the digest is that of the meaning and the payload of bytes."""
    try:
        is_right = digest_of(*meaning, payload=payload) == stored_digest
    except TypeError:  # a damaged column came back with another type
        is_right = False
    if not is_right:
        raise damaged(place)


def damaged(place: str) -> StoreDamagedError:
    """Error for one damaged row."""
    return StoreDamagedError(
        place, "its row is damaged (checksum)", "restore the file from a backup; other pages can still be read"
    )


def pack_terms(terms: Mapping[str, int]) -> bytes:
    """Terms in order, compressed: count (4 bytes, big-endian), occurrences (a byte each), texts in lines."""
    if not terms:
        return b""
    head = len(terms).to_bytes(_COUNT_BYTES, "big") + bytes(terms.values())
    return zlib.compress(head + text_bytes("\n".join(terms)), _ZLIB_LEVEL)


def unpack_terms(packed: bytes) -> dict[str, int]:
    """Inverse of `pack_terms`."""
    if not packed:
        return {}
    unpacked = zlib.decompress(packed)
    texts_start = _COUNT_BYTES + int.from_bytes(unpacked[:_COUNT_BYTES], "big")
    occurrences, texts = unpacked[_COUNT_BYTES:texts_start], unpacked[texts_start:].decode("utf-8", "surrogatepass")
    return dict(zip(texts.split("\n"), occurrences, strict=True))


def pack_settings(settings: Mapping[str, str]) -> bytes:
    """Settings in order, as a JSON object."""
    return json.dumps(settings).encode("ascii")


def unpack_settings(packed: bytes) -> dict[str, str]:
    """Inverse of `pack_settings`."""
    return dict(json.loads(packed))


def session_place(path: str, session: object) -> str:
    """How errors name a session."""
    return f"session {session!a} of store {path}"


class TermsRow(NamedTuple):
    """The derived part of a page, verified."""

    ordinal: int
    terms: dict[str, int]
    derived: str


def terms_from_row(path: str, pool: str, session: str, row: tuple[Any, ...]) -> TermsRow:
    """Verify a row of `TERMS_ROW` and unpack it.

    Raises:
        StoreDamagedError: names the page.
    """
    page_id, terms, derived, digest = row
    ordinal = ordinal_of(page_id)
    place = f"page {page_id!a} (session {session!a}, ordinal {ordinal!a}) of store {path}"
    if not (isinstance(terms, bytes) and isinstance(derived, bytes)):
        raise damaged(place)
    verify(place, digest, pool, session, page_id, ordinal, len(terms), payload=terms + derived)
    return TermsRow(ordinal, unpack_terms(terms), stored_text(place, derived))


def page_from_row(path: str, pool: str, session: str, row: tuple[Any, ...]) -> Page:
    """Verify a row of `PAGE_ROW` and make the page.

    Raises:
        StoreDamagedError: names the page.
    """
    page_id = row[0]
    ordinal = ordinal_of(page_id)
    kind, time, speaker, labels, sha, inline_body, digest, size, packed = row[4:]
    place = f"page {page_id!a} (session {session!a}, ordinal {ordinal!a}) of store {path}"
    body = original_bytes(size, packed, sha) if inline_body is None else _inline_bytes(inline_body, sha)
    if body is None or not isinstance(labels, bytes):
        raise damaged(place)
    kind_name = stored_text(place, kind)
    speaker_name = None if speaker is None else stored_text(place, speaker)
    verify(place, digest, pool, session, page_id, ordinal, kind_name, time, speaker_name, payload=sha + labels)
    derived_row = terms_from_row(path, pool, session, row[:4])
    known = unpack_labels(labels, body)
    text = body[: len(body) - len(bytes_beside(known.parts))]
    return Page(
        PageId(page_id),
        pool,
        session,
        ordinal >> 1,
        Role.ASSISTANT if ordinal & 1 else Role.USER,
        stored_text(place, text),
        derived_row.terms,
        derived_row.derived,
        time,
        speaker_name,
        PageKind(kind_name),
        sha.hex(),
        known,
    )


def _inline_bytes(body: object, sha: object) -> bytes | None:
    """The body that lies in its page's row; None unless its sha256 is ``sha``."""
    return body if isinstance(body, bytes) and sha256(body).digest() == sha else None
