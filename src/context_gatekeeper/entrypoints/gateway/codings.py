"""Content codings of bodies (gzip, deflate, br, zstd), decoded under caps: what is sent to us may be a bomb."""

from __future__ import annotations

import asyncio
import io
import zlib
from collections.abc import Callable, Iterator, Mapping

import brotli
import zstandard

__all__ = [
    "CodingError",
    "decode_beginning",
    "decode_beginning_aside",
    "decode_body",
    "decode_body_aside",
    "split_codings",
]

_STEP_BYTES = 64 * 1024
_MOST_FED_BYTES = 16 * 1024
"""Given to a decoder of zlib at a time: of what lies behind a member's end it makes a copy."""
_AT_ONCE_BYTES = (64 * 1024, 256 * 1024)
"""Encoded and decoded: so much is decoded in a few milliseconds, and more in a thread."""
_MOST_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
"""What every decoder must support (RFC 8878, section 3.1.1.1.2); larger windows are refused."""
_GZIP_WINDOW_BITS, _ZLIB_WINDOW_BITS, _RAW_WINDOW_BITS = 31, 15, -15


class CodingError(Exception):
    """A body that is not decoded: it is damaged, too large, or of a coding that nobody here reads."""


class _TooLargeError(CodingError):
    """Beyond a cap."""


def split_codings(header: str) -> list[str]:
    """Names in a ``content-encoding`` header in the order in which they were applied; identity is none."""
    names = [name.strip().lower() for name in header.split(",")]
    return [name for name in names if name not in ("", "identity")]


def decode_body(content: bytes, header: str, *, most_bytes: int, most_ratio: float) -> bytes:
    """Undo the codings of a whole body.

    Args:
        content: as received.
        header: its ``content-encoding``.
        most_bytes: of each decoded form.
        most_ratio: decoded bytes per received byte.

    Raises:
        CodingError: damaged, beyond a cap, or of an unknown coding.
    """
    return _decoded(content, header, min(most_bytes, int(len(content) * most_ratio)))


async def decode_body_aside(content: bytes, header: str, *, most_bytes: int, most_ratio: float) -> bytes:
    """`decode_body` for an event loop: what is more than a little is decoded in a thread."""
    if not split_codings(header):
        return content
    limit = min(most_bytes, int(len(content) * most_ratio))
    if len(content) <= _AT_ONCE_BYTES[0]:
        try:
            return _decoded(content, header, min(limit, _AT_ONCE_BYTES[1]))
        except _TooLargeError:
            if limit <= _AT_ONCE_BYTES[1]:
                raise
    return await asyncio.to_thread(_decoded, content, header, limit)


def _decoded(content: bytes, header: str, limit: int) -> bytes:
    for name in reversed(split_codings(header)):
        pieces, size = [], 0
        for piece in _steps(name, content):
            size += len(piece)
            if size > limit:
                raise _TooLargeError("it decodes to more than is planned")
            pieces.append(piece)
        content = b"".join(pieces)
    return content


async def decode_beginning_aside(content: bytes, header: str, *, most_bytes: int) -> bytes | None:
    """`decode_beginning` for an event loop: what is more than a little is decoded in a thread."""
    if not split_codings(header):
        return decode_beginning(content, header, most_bytes=most_bytes)
    if len(content) <= _AT_ONCE_BYTES[0]:
        found = decode_beginning(content, header, most_bytes=min(most_bytes, _AT_ONCE_BYTES[1]))
        if found is not None or most_bytes <= _AT_ONCE_BYTES[1]:
            return found
    return await asyncio.to_thread(decode_beginning, content, header, most_bytes=most_bytes)


def decode_beginning(content: bytes, header: str, *, most_bytes: int) -> bytes | None:
    """What can be decoded of a body that may have broken off; None when it is too long or unreadable."""
    for name in reversed(split_codings(header)):
        pieces, size = [], 0
        try:
            for piece in _steps(name, content):
                size += len(piece)
                if size > most_bytes:
                    return None
                pieces.append(piece)
        except CodingError:
            if not pieces:
                return None
        content = b"".join(pieces)
    return content if len(content) <= most_bytes else None


def _steps(name: str, content: bytes) -> Iterator[bytes]:
    """Pieces of the decoded content, each of a bounded size. Raises CodingError."""
    decoder = _DECODERS.get(name)
    if decoder is None:
        raise CodingError("its coding is not known")
    try:
        yield from decoder(content)
    except (zlib.error, brotli.error, zstandard.ZstdError) as error:
        raise CodingError("it is damaged") from error


def _zlib_steps(content: bytes, window_bits: int) -> Iterator[bytes]:
    whole = memoryview(content)
    place = 0
    decoder = zlib.decompressobj(window_bits)
    while place < len(whole):
        fed: bytes | memoryview = whole[place : place + _MOST_FED_BYTES]
        place += len(fed)
        piece = b""
        while fed or len(piece) == _STEP_BYTES:  # A full step may have left output behind.
            if decoder.eof:  # gzip: members may follow one another
                decoder = zlib.decompressobj(window_bits)
            piece = decoder.decompress(fed, _STEP_BYTES)
            if piece:
                yield piece
            fed = decoder.unused_data if decoder.eof else decoder.unconsumed_tail


def _gzip_steps(content: bytes) -> Iterator[bytes]:
    return _zlib_steps(content, _GZIP_WINDOW_BITS)


def _deflate_steps(content: bytes) -> Iterator[bytes]:
    """With the header of zlib, as the standard says, or without, as some send it."""
    has_header = len(content) > 1 and content[0] & 15 == 8 and int.from_bytes(content[:2], "big") % 31 == 0
    return _zlib_steps(content, _ZLIB_WINDOW_BITS if has_header else _RAW_WINDOW_BITS)


def _brotli_steps(content: bytes) -> Iterator[bytes]:
    decoder = brotli.Decompressor()
    piece = decoder.process(content, output_buffer_limit=_STEP_BYTES)
    while piece:
        yield piece
        piece = b"" if decoder.is_finished() else decoder.process(b"", output_buffer_limit=_STEP_BYTES)


def _zstd_steps(content: bytes) -> Iterator[bytes]:
    decoder = zstandard.ZstdDecompressor(max_window_size=_MOST_ZSTD_WINDOW_BYTES)
    with decoder.stream_reader(io.BytesIO(content), read_across_frames=True) as reader:
        while piece := reader.read(_STEP_BYTES):
            yield piece


_DECODERS: Mapping[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": _gzip_steps,
    "x-gzip": _gzip_steps,
    "deflate": _deflate_steps,
    "br": _brotli_steps,
    "zstd": _zstd_steps,
}
