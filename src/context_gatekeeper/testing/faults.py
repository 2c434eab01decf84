"""What can go wrong with an answer, and how it is cut into what is written to the socket."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["Cut", "Fault", "available_encodings", "cut_at", "decode_body", "encode_pieces", "shape_pieces"]

_MODULES = {"br": "brotli", "zstd": "zstandard"}
_GZIP_WINDOW = 31
_ANY_WINDOW = 47
"""Of zlib: gzip or zlib header, whichever comes."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with an answer. Counts are bytes of the body as it is sent, without the framing of chunks."""

    reset_after_bytes: int | None = None
    """TCP reset after so many bytes."""
    stall_after_bytes: int | None = None
    """Nothing more after so many bytes for ``seconds``, then the rest."""
    end_after_bytes: int | None = None
    """The connection is closed (FIN) after so many bytes."""
    seconds: float | None = None
    """Length of the stall; None until `FakeProvider.release_stalls`, the client's leaving or the end."""
    status: int | None = None
    """Refuse with this status, such as 429, 529, 503, 401, 413; no reply is used up."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with the answer: ``retry-after``, ``x-ratelimit-…``, ``request-id``."""
    body: str | bytes | None = None
    """Of the refusal; the API's own error body when None."""
    encoding: str = ""
    """``gzip``, ``deflate``; ``br`` and ``zstd`` where their packages are installed. A whole answer has its length."""
    one_byte_segments: bool = False
    """Every byte on the wire is a write of its own."""
    crlf: bool = False
    """Lines of the stream end in CR LF."""
    half_chunk: bool = False
    """The last chunk announces more than comes, then the connection is closed."""
    without_end_event: bool = False
    """The last event is left out (``message_stop``, ``[DONE]``, ``response.completed``)."""
    error_event_after: int | None = None
    """So many events, then the API's own event of an error, and the end."""
    until_close: bool = False
    """No chunks and no length: the end of the connection is the end of the body."""
    split_characters: bool = False
    """Each character of several bytes is split over two writes."""

    @property
    def cut(self) -> Cut | None:
        """Where the body is cut and what happens there, None when it is not."""
        for action, place in (
            ("reset", self.reset_after_bytes),
            ("stall", self.stall_after_bytes),
            ("end", self.end_after_bytes),
        ):
            if place is not None:
                return Cut(action, place)
        return None


@dataclass(frozen=True, slots=True)
class Cut:
    """A place in a body where something happens."""

    action: str
    """``reset``, ``stall`` or ``end``."""
    place: int


def available_encodings() -> tuple[str, ...]:
    """Encodings that this installation can write and read."""
    return ("gzip", "deflate", *(name for name, module in _MODULES.items() if find_spec(module)))


def encode_pieces(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """The pieces in ``encoding``, each flushed, so that a reader can decode it before the next.

    Raises ModuleNotFoundError where the encoding's package is missing, ValueError for an unknown encoding.
    """
    compress, flush, finish = _encoder(encoding)
    for piece in pieces:
        yield compress(piece) + flush()
    yield finish()


def _encoder(encoding: str) -> tuple[Callable[[bytes], bytes], Callable[[], bytes], Callable[[], bytes]]:
    """(compress, flush a piece, finish)."""
    if encoding in ("gzip", "deflate"):
        packer = zlib.compressobj(wbits=_GZIP_WINDOW if encoding == "gzip" else zlib.MAX_WBITS)
        return packer.compress, lambda: packer.flush(zlib.Z_SYNC_FLUSH), packer.flush
    if encoding not in _MODULES:
        raise ValueError(f"no such content encoding: {encoding!r}")
    module: Any = import_module(_MODULES[encoding])
    if encoding == "br":
        brotli = module.Compressor()
        return brotli.process, brotli.flush, brotli.finish
    zstd = module.ZstdCompressor().compressobj()
    return zstd.compress, lambda: zstd.flush(module.COMPRESSOBJ_FLUSH_BLOCK), zstd.flush


def decode_body(content: bytes, encoding: str) -> bytes:
    """A request's body without its encoding.

    Raises ValueError when it is of another encoding, or of one that is unknown.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return content
    try:
        if name in ("gzip", "deflate"):
            return zlib.decompress(content, _ANY_WINDOW)
        module: Any = import_module(_MODULES[name])
        if name == "br":
            return bytes(module.decompress(content))
        return bytes(module.ZstdDecompressor().decompressobj().decompress(content))
    except Exception as error:
        raise ValueError(f"the body cannot be decoded as {name}: {error}") from error


def shape_pieces(pieces: Iterable[bytes], fault: Fault) -> list[bytes]:
    """The pieces of a body as ``fault`` sends them: line ends, left out end, encoding, split characters."""
    shaped = list(pieces)
    if fault.without_end_event:
        shaped = shaped[:-1]
    if fault.crlf:
        shaped = [piece.replace(b"\n", b"\r\n") for piece in shaped]
    if fault.encoding:
        shaped = list(encode_pieces(shaped, fault.encoding))
    if fault.split_characters:
        shaped = [part for piece in shaped for part in _split_characters(piece)]
    return [piece for piece in shaped if piece]


def _split_characters(piece: bytes) -> Iterator[bytes]:
    """Cut behind the first byte of every character of several bytes."""
    start = 0
    for place in range(1, len(piece)):
        is_second_byte = piece[place] & 0xC0 == 0x80 and piece[place - 1] & 0xC0 == 0xC0
        if is_second_byte:
            yield piece[start:place]
            start = place
    yield piece[start:]


def cut_at(pieces: Iterable[bytes], place: int) -> tuple[list[bytes], list[bytes]]:
    """Pieces up to the byte ``place``, and those behind it; a body that is shorter has nothing behind."""
    before: list[bytes] = []
    behind: list[bytes] = []
    left = place
    for piece in pieces:
        before.append(piece[:left])
        behind.append(piece[left:])
        left = max(0, left - len(piece))
    return [piece for piece in before if piece], [piece for piece in behind if piece]
