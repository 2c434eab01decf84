"""Bytes of a file, plain or gzipped, told apart by their first two."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from context_gatekeeper.errors import GatekeeperError

__all__ = ["MOST_BYTES", "FileContent", "read_content"]

MOST_BYTES = 2 << 30
"""What a file may hold, inflated: 2 GiB. A gzip file can grow a thousandfold, and all of it stays in memory."""
_PIECE_BYTES = 1 << 20
_PACKED_BYTES = 1 << 14
"""Of a gzip stream taken in at once: inflated, at most a thousand times as much."""
_GZIP_BITS = 31
"""What `zlib` takes as "with gzip's own header and checksum"."""
_GZIP_MAGIC = b"\x1f\x8b"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"
_ENDS_EARLY = "it ends in the middle"
_CHECKS = ("incorrect data check", "incorrect length check")
"""What `zlib` says when the checksum behind the data does not fit: nobody knows then where the damage is."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """What a file holds, without a byte order mark."""

    data: bytes
    damage: str = ""
    """Why a gzip stream could not be inflated to its end; ``data`` is what came before. "" for a whole file."""


def read_content(
    path: Path, refuse: Callable[[str, str], GatekeeperError], *, most_bytes: int = MOST_BYTES
) -> FileContent:
    """The bytes of ``path``, inflated where they are gzipped.

    Args:
        path: the file.
        refuse: makes the error about this file of a cause and a next step.
        most_bytes: the most that is taken into memory.

    Raises:
        GatekeeperError: what ``refuse`` made: no such file, a folder, unreadable, too large, UTF-16, or a gzip
            stream with a wrong checksum or of which nothing can be inflated.
    """
    data = bytearray()
    damage = ""
    try:
        with path.open("rb") as file:
            if file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
                damage = _inflate(file, data, most_bytes)
            else:
                while len(data) <= most_bytes and (piece := file.read(_PIECE_BYTES)):
                    data += piece
    except FileNotFoundError:
        raise refuse("there is no such file", "check the path") from None
    except IsADirectoryError:
        raise refuse("it is a folder", "pass one file of it") from None
    except (OSError, ValueError) as error:
        raise refuse(f"it cannot be read ({error})", "pass a readable file, plain or gzipped") from error
    if len(data) > most_bytes:
        raise refuse(f"it holds more than {most_bytes:,} bytes", "split it into smaller files")
    if damage and (not data or damage in _CHECKS):
        raise refuse(f"it cannot be read (its gzip stream is damaged: {damage})", "get the file again")
    if data.startswith(_UTF16_MARKS):
        raise refuse("it is UTF-16", "save it as UTF-8")
    if data.startswith(_UTF8_MARK):
        del data[: len(_UTF8_MARK)]
    return FileContent(bytes(data), damage)


def _inflate(file: BufferedReader, data: bytearray, most_bytes: int) -> str:
    """Add what gzip streams hold to ``data``; why that ended early, "" when it did not. Stops beyond ``most_bytes``."""
    machine: zlib._Decompress | None = None
    while len(data) <= most_bytes and (piece := file.read(_PACKED_BYTES)):
        while piece:
            if machine is None:
                piece = piece.lstrip(b"\0")  # zeros fill a block behind a stream
                if not piece:
                    break
                machine = zlib.decompressobj(_GZIP_BITS)
            before = machine.copy()
            try:
                data += machine.decompress(piece)
            except zlib.error as error:
                _inflate_bytes(before, piece, data)
                return str(error).rpartition(": ")[2]
            piece = machine.unused_data  # where another stream may begin
            if machine.eof:
                machine = None
    return "" if machine is None or len(data) > most_bytes else _ENDS_EARLY


def _inflate_bytes(machine: zlib._Decompress, piece: bytes, data: bytearray) -> None:
    """Add what ``piece`` holds before its damage: what `zlib` has inflated of a piece is lost when it fails."""
    inflated: list[bytes] = []
    with suppress(zlib.error):
        inflated.extend(map(machine.decompress, (piece[place : place + 1] for place in range(len(piece)))))
    data += b"".join(inflated)
