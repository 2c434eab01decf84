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
    held = b""
    is_first = True
    for chunk in chunks:
        held += chunk
        if is_first and len(held) >= len(_BOM):
            held, is_first = held.removeprefix(_BOM), False
        # A CR at the very end may be half of a CRLF.
        certain = held[:-1] if held.endswith(b"\r") else held
        *lines, rest = _LINE_END.split(certain)
        held = rest + held[len(certain) :]
        yield from lines
    if held.endswith(b"\r"):
        yield held[:-1]
