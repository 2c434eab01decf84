"""The server's side of a connection: uvicorn's, with limits on a request's head (size, time), which it leaves open."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["HEAD_SECONDS", "MOST_HEAD_BYTES", "BoundedProtocol", "make_protocol"]

MOST_HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 30.0
_LINE_OVERHEAD_BYTES = 4
"""The colon, the space and the line's end of a header."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection of a client."""

    head_seconds = HEAD_SECONDS
    """From the connection or the end of the last request to the end of the next head, once that has begun."""
    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _fed_bytes = 0
    _is_in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock of the first head."""
        super().connection_made(transport)
        self._start_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, unless the head has grown too large without coming to its end."""
        self._fed_bytes += len(data)
        super().data_received(data)
        if self._is_in_head and self._fed_bytes > MOST_HEAD_BYTES:
            self._refuse_head()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._start_head()

    def on_url(self, url: bytes) -> None:
        """A part of the target."""
        self._head_bytes += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self._head_bytes += len(name) + len(value) + _LINE_OVERHEAD_BYTES
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is whole: the application starts."""
        self._stop_timer()
        self._is_in_head = False
        self._fed_bytes = 0
        if self._head_bytes > MOST_HEAD_BYTES:
            self._refuse_head()
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of the body; of a refused request there is nobody to read it."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if not self.transport.is_closing():
            super().on_message_complete()
        self._is_in_head = True
        self._fed_bytes = 0

    def _start_head(self) -> None:
        self._is_in_head = True
        self._head_bytes = 0
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)

    def _head_is_late(self) -> None:
        self._head_timer = None
        self.transport.close()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse_head(self) -> None:
        self._stop_timer()
        if self.transport.is_closing():
            return
        body = json.dumps({"error": {"type": "gatekeeper_error", "message": "headers: more than 64 KB"}}).encode()
        head = (
            "HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def make_protocol(head_seconds: float) -> type[BoundedProtocol]:
    """The protocol with another time for heads."""
    fields: dict[str, Any] = {"head_seconds": head_seconds}
    return type("BoundedProtocol", (BoundedProtocol,), fields)
