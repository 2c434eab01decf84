"""Server-sent events with the bytes that they came in, so that what is not changed is sent on as it was."""

from __future__ import annotations

import re
from dataclasses import dataclass

from context_gatekeeper.wire.sse import MOST_EVENT_BYTES, EventReader

__all__ = ["Frame", "FrameReader"]

_LINE_END = re.compile(rb"\r\n|\n|\r(?=[^\n])")
"""A CR at the end of what came is none yet: its LF may follow."""
_LINES = re.compile(rb"(\r\n|\n|\r)")
_BOM = b"\xef\xbb\xbf"
_COMMENT = b":"


@dataclass(frozen=True, slots=True)
class Frame:
    """One event, or what stands between events: a comment, a blank line."""

    raw: bytes
    """As it came, the blank line behind it included."""
    name: str = "message"
    """The ``event`` field."""
    data: str | None = None
    """The ``data`` lines, joined by newlines; None where there are none."""

    def with_data(self, data: str) -> bytes:
        """The bytes with other data: the first ``data`` lines become these, all else keeps its bytes."""
        pieces = _LINES.split(self.raw)
        written: list[bytes] = []
        is_written = False
        pieces[0] = pieces[0].removeprefix(_BOM)
        for line, end in zip(pieces[::2], [*pieces[1::2], b""], strict=True):
            if line.partition(b":")[0] != b"data":
                written += (line, end)
            elif not is_written:
                is_written = True
                told = data.encode("utf-8", "surrogatepass").split(b"\n")
                written += ((end or b"\n").join(b"data: " + one for one in told), end)
        return b"".join(written)


class FrameReader:
    """Frames of a byte stream; how it is cut into pieces makes no difference.

    A frame is given out with its blank line, comments and further blank lines at once. Where lines end in CR alone it
    takes one byte more, since that may be an LF which belongs to it.

    Args:
        most_bytes: what a frame may hold, from 1; see `is_too_large`.
    """

    def __init__(self, most_bytes: int = MOST_EVENT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._buffer = bytearray()
        self._line_start = 0
        self._scanned = 0
        self._has_begun = False

    @property
    def is_too_large(self) -> bool:
        """Whether more is held of one frame than it may have."""
        return len(self._buffer) > self._most_bytes

    def feed(self, piece: bytes) -> list[Frame]:
        """The frames that end in ``piece``, in order. O(its length)."""
        self._buffer += piece
        content = bytes(self._buffer) if self._scanned == 0 else bytes(self._buffer[self._scanned :])
        shift, start = self._scanned, 0
        frames: list[Frame] = []
        for found in _LINE_END.finditer(content):
            end = found.end() + shift
            is_blank = found.start() + shift == self._line_start
            is_comment = self._line_start == start and self._buffer.startswith(_COMMENT, start)
            self._line_start = end
            if is_blank or is_comment:
                frames.append(self._read(bytes(self._buffer[start:end])))
                start = end
        del self._buffer[:start]
        self._line_start -= start
        self._scanned = max(len(self._buffer) - 1, self._line_start)
        return frames

    def close(self) -> Frame | None:
        """What is left at the end of the stream, as if a blank line stood behind it; None for nothing."""
        rest = self.take_rest()
        return self._read(rest, b"\n\n") if rest else None

    def take_rest(self) -> bytes:
        """The bytes that are held; they are forgotten."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._line_start = self._scanned = 0
        return rest

    def _read(self, raw: bytes, end: bytes = b"") -> Frame:
        reader = EventReader(max(MOST_EVENT_BYTES, len(raw)))
        if self._has_begun:
            reader.feed(b"\n")  # a byte order mark counts at the start of the stream alone
        self._has_begun = True
        events = reader.feed(raw + end)
        return Frame(raw, events[0].name, events[0].data) if events else Frame(raw)
