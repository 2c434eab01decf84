"""Original bodies as the SQLite file keeps them: once a pool, by their sha256, compressed."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Collection
from hashlib import sha256

__all__ = ["INLINE_BYTES", "add_original", "drop_uncited_originals", "original_bytes"]

INLINE_BYTES = 1000
"""Longest body that stays in its page's row: another tree to write would cost a short text more than it saves."""
_ZLIB_LEVEL = 3
"""On tool results level 1 leaves 35 %, 3 34 %, 6 32 % of the size; 6 takes twice as long as 1."""

_FIND = "SELECT size, body FROM originals WHERE pool_id = ? AND sha256 = ?"
_ADD = "INSERT INTO originals (size, body, pool_id, sha256) VALUES (?, ?, ?, ?)"
_MEND = "UPDATE originals SET size = ?, body = ? WHERE pool_id = ? AND sha256 = ?"
_DROP = "DELETE FROM originals WHERE pool_id = ? AND sha256 = ?"
_CITED = "SELECT sha256 FROM pages WHERE pool_id = ?"


def original_bytes(size: object, packed: object, sha: object) -> bytes | None:
    """The body that columns ``size`` and ``body`` hold; None unless its sha256 is ``sha``.

    Never unpacks more than ``size`` bytes, whatever damage made of the row.
    """
    if not (isinstance(size, int) and isinstance(packed, bytes) and size > INLINE_BYTES):
        return None
    try:
        body = zlib.decompressobj().decompress(packed, size)
    except zlib.error:
        return None
    return body if sha256(body).digest() == sha else None


def add_original(connection: sqlite3.Connection, pool_id: int, sha: bytes, body: bytes) -> None:
    """Keep ``body``, unless the pool has it already; a damaged one that it has is replaced."""
    place = (pool_id, sha)
    known = connection.execute(_FIND, place).fetchone()
    size, packed = known or (None, None)
    if original_bytes(size, packed, sha) is None:
        row = (len(body), zlib.compress(body, _ZLIB_LEVEL), *place)
        connection.execute(_MEND if known else _ADD, row)


def drop_uncited_originals(connection: sqlite3.Connection, pool_id: int, shas: Collection[bytes]) -> tuple[bytes, ...]:
    """Those of ``shas`` that no page of the pool has any more, ascending; their originals are removed.

    O(pages of the store).
    """
    gone = set(shas)
    if gone:
        gone.difference_update(sha for (sha,) in connection.execute(_CITED, (pool_id,)))
    connection.executemany(_DROP, ((pool_id, sha) for sha in gone))
    return tuple(sorted(gone))
