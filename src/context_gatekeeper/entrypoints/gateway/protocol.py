"""The server's side of a connection: uvicorn's, with limits on heads and trailers (size) and on heads (time).

What its parser refuses is told in the form of the client's API. Trailers are read and let go: what comes behind the
body must not become a header, where it could stand for what was checked in front of it (RFC 9110, section 6.5.1).
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from context_gatekeeper.entrypoints.gateway.routes import error_body, looks_anthropic

__all__ = ["HEAD_SECONDS", "MOST_HEAD_BYTES", "BoundedProtocol", "make_protocol"]

MOST_HEAD_BYTES = 64 * 1024
"""Of a head, of the trailers, and of what frames a body without being one."""
HEAD_SECONDS = 30.0
_LINE_OVERHEAD_BYTES = 4
"""The colon, the space and the line's end of a header."""
_HEAD_TEXT = "headers: more than 64 KB; send less"
_TRAILERS_TEXT = "trailers: more than 64 KB; send less"
_INVALID_TEXT = "request: it is no valid HTTP/1.1; correct it, and send it on a new connection"


class BoundedProtocol(HttpToolsProtocol):
    """One connection of a client."""

    head_seconds = HEAD_SECONDS
    """From the connection or the end of the last request to the end of the next head, once that has begun."""
    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    """Of the head, or of the trailers, as far as they are read."""
    _fed_bytes = 0
    """Since the last piece of a body, or the last request's end."""
    _is_in_head = True
    _is_offer = False
    """Whether the head that was read offers another protocol, so that it is read again."""
    headers: list[tuple[bytes, bytes]]
    url: bytes = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock of the first head."""
        super().connection_made(transport)
        self.headers = []
        self._start_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, unless what is no body has grown too large without coming to its end."""
        self._unset_keepalive_if_required()
        self._fed_bytes += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self.send_400_response(_INVALID_TEXT)
            return
        if self._fed_bytes > MOST_HEAD_BYTES:
            self._refuse_size()

    def _feed(self, data: bytes) -> None:
        """Let the parser have it. At the head of a request that offers another protocol it stops, and knows no body.

        The offer may be ignored (RFC 9110, section 7.8), and is: the request is read again as one without it.
        """
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as stopped:
                data = data[stopped.args[0] :]
                if self._is_offer:
                    self._is_offer = False
                    data = self._head_without_offer() + data
                    self.parser = httptools.HttpRequestParser(self)
            else:
                return

    def _head_without_offer(self) -> bytes:
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        for name, value in self.headers:
            kept = value
            if name == b"connection":
                kept = b",".join(one for one in value.split(b",") if one.strip().lower() != b"upgrade")
            lines.append(b"%b: %b" % (name, kept))
        return b"\r\n".join((*lines, b"", b""))

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        self._refuse(HTTPStatus.BAD_REQUEST, msg)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._start_head()

    def on_url(self, url: bytes) -> None:
        """A part of the target."""
        self._head_bytes += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which goes nowhere."""
        self._head_bytes += len(name) + len(value) + _LINE_OVERHEAD_BYTES
        if self._is_in_head:
            super().on_header(name, value)
        elif self._head_bytes > MOST_HEAD_BYTES:
            self._refuse_size()

    def on_headers_complete(self) -> None:
        """The head is whole: the application starts."""
        self._stop_timer()
        is_too_large = self._head_bytes > MOST_HEAD_BYTES
        if is_too_large:
            self._refuse_size()
        self._is_in_head = False
        self._fed_bytes = self._head_bytes = 0
        self._is_offer = self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"
        if not (is_too_large or self._is_offer):
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of the body; of a refused request there is nobody to read it."""
        self._fed_bytes = 0
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if not (self.transport.is_closing() or self._is_offer):
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

    def _refuse_size(self) -> None:
        self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _HEAD_TEXT if self._is_in_head else _TRAILERS_TEXT)

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Answer in the place of the application, where no answer is under way, and close the connection."""
        self._stop_timer()
        if self.transport.is_closing():
            return
        under_way = self.cycle is not None and not self.cycle.response_complete
        if not under_way or not (self._is_in_head or self.cycle.response_started):
            path = self.url.partition(b"?")[0].decode("latin-1")
            is_anthropic = looks_anthropic(path, dict(self.headers))
            body = error_body(message, "gatekeeper_error", is_anthropic=is_anthropic)
            head = (
                f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()


def make_protocol(head_seconds: float) -> type[BoundedProtocol]:
    """The protocol with another time for heads."""
    fields: dict[str, Any] = {"head_seconds": head_seconds}
    return type("BoundedProtocol", (BoundedProtocol,), fields)
