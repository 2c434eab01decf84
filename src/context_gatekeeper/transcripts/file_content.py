"""Bytes of a file, plain or gzipped, told apart by their first two."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from context_gatekeeper.errors import GatekeeperError

__all__ = ["MOST_BYTES", "FileContent", "read_content"]

MOST_BYTES = 2 << 30
"""What a file may hold, inflated: 2 GiB. A gzip file can grow a thousandfold, and all of it stays in memory."""
_PIECE_BYTES = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class FileContent:
    """What a file holds, without a byte order mark."""

    data: bytes
    is_cut: bool = False
    """A gzip stream that ends in the middle; ``data`` is what could be inflated."""


def read_content(
    path: Path, refuse: Callable[[str, str], GatekeeperError], *, most_bytes: int = MOST_BYTES
) -> FileContent:
    """The bytes of ``path``, inflated where they are gzipped.

    Args:
        path: the file.
        refuse: makes the error about this file of a cause and a next step.
        most_bytes: the most that is taken into memory.

    Raises:
        GatekeeperError: what ``refuse`` made: no such file, a folder, unreadable, too large, a damaged gzip stream
            or UTF-16.
    """
    data = bytearray()
    try:
        with path.open("rb") as plain:
            is_gzip = plain.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
            stream = gzip.GzipFile(fileobj=plain) if is_gzip else plain
            is_cut = _inflate(stream, data, most_bytes)
    except FileNotFoundError:
        raise refuse("there is no such file", "check the path") from None
    except IsADirectoryError:
        raise refuse("it is a folder", "pass one file of it") from None
    except (OSError, ValueError, zlib.error) as error:
        raise refuse(f"it cannot be read ({error})", "pass a readable file, plain or gzipped") from error
    if len(data) > most_bytes:
        raise refuse(f"it holds more than {most_bytes:,} bytes", "split it into smaller files")
    if data.startswith(_UTF16_MARKS):
        raise refuse("it is UTF-16", "save it as UTF-8")
    if data.startswith(_UTF8_MARK):
        del data[: len(_UTF8_MARK)]
    return FileContent(bytes(data), is_cut)


def _inflate(stream: gzip.GzipFile | BufferedReader, data: bytearray, most_bytes: int) -> bool:
    """Add what is left of ``stream`` to ``data``; whether a gzip stream breaks off. Stops beyond ``most_bytes``."""
    try:
        while len(data) <= most_bytes and (piece := stream.read1(_PIECE_BYTES)):
            data += piece
    except EOFError:
        return True
    return False
