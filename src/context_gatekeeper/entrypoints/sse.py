"""Server-sent events from a stream of bytes (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["ServerSentEvent", "read_events"]

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event."""

    name: str
    """The ``event`` field; "message" when there was none."""
    data: str
    """The ``data`` lines, joined by newlines."""


def read_events(chunks: Iterable[bytes]) -> Iterator[ServerSentEvent]:
    """Events of a byte stream; how the stream is cut into chunks makes no difference.

    Only CR, LF and CRLF end a line, so that other separators inside a text stay text. An event
    that the stream breaks off in the middle of is not given out.
    """
    name, data_lines = "", list[str]()
    for line in _lines(chunks):
        if not line:
            if data_lines:
                yield ServerSentEvent(name or "message", "\n".join(data_lines))
            name, data_lines = "", []
            continue
        field, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data_lines.append(value)
        elif field == "event":
            name = value


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []  # pieces of a line that has not ended: put together once, however many there are
    is_first = True
    for chunk in chunks:
        may_end = _LINE_END.search(chunk) or (held and held[-1].endswith(b"\r"))
        held.append(chunk)
        if not may_end:
            continue
        together = b"".join(held)
        # A CR at the very end may be half of a CRLF.
        certain = together[:-1] if together.endswith(b"\r") else together
        *lines, rest = _LINE_END.split(certain)
        held = [rest + together[len(certain) :]]
        for line in lines:
            yield line.removeprefix(_BOM) if is_first else line
            is_first = False
    last = b"".join(held)
    if last.endswith(b"\r"):
        yield last[:-1].removeprefix(_BOM) if is_first else last[:-1]
