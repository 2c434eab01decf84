"""Server-sent events from a stream of bytes (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["MOST_EVENT_BYTES", "EventReader", "ServerSentEvent", "read_events"]

MOST_EVENT_BYTES = 32 * 1024 * 1024
"""No model says so much in one event."""
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event."""

    name: str
    """The ``event`` field; "message" when there was none."""
    data: str
    """The ``data`` lines, joined by newlines."""


class EventReader:
    """Events of a byte stream as it comes in; how the stream is cut into chunks makes no difference.

    Only CR, LF and CRLF end a line, so that other separators inside a text stay text; a character whose bytes stand
    in several chunks is whole. An event counts with the blank line behind it: one that the stream breaks off in the
    middle of is not given out. Comments and unknown fields are passed over.

    Args:
        most_bytes: what one event, or one line, may hold, from 1. A larger one is dropped and counted, the rest of
            it is not kept.
    """

    def __init__(self, most_bytes: int = MOST_EVENT_BYTES) -> None:
        self.dropped_events = 0
        """How many were too large."""
        self._most_bytes = most_bytes
        self._is_first_line = True
        self._is_behind_cr = False  # an LF that comes now belongs to it
        self._line = bytearray()
        self._start_event()

    def _start_event(self) -> None:
        self._name = ""
        self._data_lines: list[str] = []
        self._data_bytes = 0
        self._is_too_large = False

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """The events that end in ``chunk``, in order. O(its length)."""
        if self._is_behind_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._is_behind_cr = False
        if not chunk:
            return []
        self._is_behind_cr = chunk.endswith(b"\r")
        *ends, rest = _LINE_END.split(chunk)
        events: list[ServerSentEvent] = []
        for end in ends:
            self._hold(end)
            line = bytes(self._line)
            self._line.clear()
            event = self._read_line(line)
            if event is not None:
                events.append(event)
        self._hold(rest)
        return events

    def close(self) -> bool:
        """Forget what is held; whether the stream broke off in the middle of an event."""
        is_cut = bool(self._line or self._data_lines or self._is_too_large)
        self.dropped_events += self._is_too_large
        self._line.clear()
        self._start_event()
        self._is_first_line, self._is_behind_cr = True, False
        return is_cut

    def _hold(self, piece: bytes) -> None:
        """Add to the line that has not ended. Of one that is too large a single byte stays: it is no blank line."""
        if self._data_bytes + len(self._line) + len(piece) > self._most_bytes:
            self._is_too_large = True
            self._data_lines, self._data_bytes = [], 0
        self._line += piece
        if self._is_too_large:
            del self._line[1:]

    def _read_line(self, line: bytes) -> ServerSentEvent | None:
        """Take a line without its end; the event when it is the blank one behind it."""
        if self._is_first_line:
            line = line.removeprefix(_BOM)
            self._is_first_line = False
        if not line:
            return self._end_event()
        if self._is_too_large:
            return None
        field, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data_lines.append(value)
            self._data_bytes += len(line)
        elif field == "event":
            self._name = value
        return None

    def _end_event(self) -> ServerSentEvent | None:
        name, lines = self._name or "message", self._data_lines
        self.dropped_events += self._is_too_large
        self._start_event()
        return ServerSentEvent(name, "\n".join(lines)) if lines else None


def read_events(chunks: Iterable[bytes]) -> Iterator[ServerSentEvent]:
    """Events of a whole stream, each as soon as it ends; as of `EventReader`."""
    reader = EventReader()
    for chunk in chunks:
        yield from reader.feed(chunk)
