"""Long bodies: once a pool, compressed, verified."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from context_gatekeeper.stores.migrations import migrate
from context_gatekeeper.stores.originals import (
    INLINE_BYTES,
    add_original,
    drop_uncited_originals,
    original_bytes,
)
from context_gatekeeper.stores.sqlite import SqliteStore
from context_gatekeeper.types import PageDraft, Role
from tests.conformance.samples import turn

BODY = b"line of a tool result\n" * 300


def originals(path: Path) -> list[tuple[int, bytes, int, bytes]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT pool_id, sha256, size, body FROM originals ORDER BY original_id").fetchall()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pages.db"


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    """A file with the layout and one pool."""
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        migrate(opened, str(path))
        opened.execute("INSERT INTO pools VALUES (1, CAST('p' AS BLOB), x'', x'')")
        yield opened


def test_a_body_is_stored_once_a_pool_and_compressed(path: Path) -> None:
    store = SqliteStore(path)
    text = BODY.decode()
    for session in ("s", "t"):
        for number in range(3):
            store.append("p", session, turn(number, text, text))
    store.append("q", "s", turn(0, text))
    store.close()
    kept = originals(path)
    assert [(pool_id, sha, size) for pool_id, sha, size, _ in kept] == [
        (pool_id, sha256(BODY).digest(), len(BODY)) for pool_id in (1, 2)
    ]
    assert max(len(body) for *_, body in kept) < len(BODY) / 20


def test_equal_messages_of_a_transcript_read_in_ten_times_are_stored_once(path: Path) -> None:
    store = SqliteStore(path)
    transcript = ["(the same output)\n" * 99 if number % 12 < 5 else f"{number} " * 600 for number in range(60)]
    for _ in range(10):
        for number, text in enumerate(transcript):
            role = Role.ASSISTANT if number % 2 else Role.USER
            store.append("p", "s", [PageDraft(number // 2, role, text)], idempotency_key=f"message {number}")
    assert store.page_count("p", "s") == 60
    store.close()
    assert len(originals(path)) == 36


@pytest.mark.parametrize(
    ("text", "is_inline"),
    [
        ("", True),
        ("x" * INLINE_BYTES, True),
        ("x" * (INLINE_BYTES + 1), False),
        ("缓" * 333, True),
        ("缓" * 334, False),
        ("\ud83d" * 334, False),
    ],
)
def test_the_bound_counts_bytes(path: Path, text: str, is_inline: bool) -> None:
    store = SqliteStore(path)
    store.append("p", "s", turn(0, text, ""))
    assert next(store.scan("p", "s")).text == text
    store.close()
    assert (originals(path) == []) is is_inline


def test_a_body_that_does_not_compress_comes_back(path: Path) -> None:
    text = random.Random(3).randbytes(50_000).decode("latin-1")
    store = SqliteStore(path)
    store.append("p", "s", turn(0, text, ""))
    store.close()
    store = SqliteStore(path)
    assert next(store.scan("p", "s")).text == text
    store.close()


def packed(connection: sqlite3.Connection) -> tuple[int, bytes]:
    size, body = connection.execute("SELECT size, body FROM originals").fetchone()
    return size, body


def test_only_the_right_bytes_come_back(connection: sqlite3.Connection) -> None:
    sha = sha256(BODY).digest()
    add_original(connection, 1, sha, BODY)
    size, body = packed(connection)
    assert original_bytes(size, body, sha) == BODY
    flipped = bytes([*body[:-8], body[-8] ^ 1, *body[-7:]])
    for damaged in (
        (size - 1, body, sha),
        (INLINE_BYTES, body, sha),
        (-1, body, sha),
        (0, body, sha),
        (None, None, sha),
        ("x", body, sha),
        (size, "x", sha),
        (size, b"", sha),
        (size, body[:-20], sha),
        (size, flipped, sha),
        (size, b"no zlib", sha),
        (size, body, bytes(32)),
        (size, body, None),
    ):
        assert original_bytes(*damaged) is None
    assert original_bytes(2**62, body, sha) == BODY  # what a flipped bit says of the size is believed up to the sha


def test_a_damaged_original_is_mended_by_the_same_body(connection: sqlite3.Connection) -> None:
    sha = sha256(BODY).digest()
    add_original(connection, 1, sha, BODY)
    connection.execute("UPDATE originals SET body = zeroblob(40)")
    add_original(connection, 1, sha, BODY)
    assert original_bytes(*packed(connection), sha) == BODY
    rows = connection.execute("SELECT count(*) FROM originals").fetchone()
    assert rows == (1,)


def test_originals_go_when_no_page_of_the_pool_has_their_text(connection: sqlite3.Connection) -> None:
    bodies = [BODY + bytes([number]) for number in range(3)]
    shas = [sha256(body).digest() for body in bodies]
    for sha, body in zip(shas, bodies, strict=True):
        add_original(connection, 1, sha, body)
    connection.execute(
        "INSERT INTO pages (page_id, pool_id, kind, labels, sha256, digest) VALUES (1, 1, x'', x'', ?, x'')", (shas[0],)
    )
    assert drop_uncited_originals(connection, 1, []) == ()
    assert drop_uncited_originals(connection, 1, shas[:2]) == (shas[1],)
    left = connection.execute("SELECT sha256 FROM originals ORDER BY original_id").fetchall()
    assert left == [(shas[0],), (shas[2],)]
