"""Bodies of requests: read under a limit and a time, held once, given away when they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

__all__ = [
    "LEAST_RATE",
    "BodyTooLargeError",
    "ClientGoneError",
    "ClientSilentError",
    "SentOnceBody",
    "StreamedBody",
    "read_body",
]

_SLICE_BYTES = 256 * 1024
LEAST_RATE = 1024.0
"""Bytes per second, once the longest silence has been used up: a body that comes slower is never whole."""
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class BodyTooLargeError(Exception):
    """More than the limit."""


class ClientSilentError(Exception):
    """The client stopped in the middle of its request, or sends it too slowly.

    Its text says which, for the client.
    """


class ClientGoneError(Exception):
    """The client left."""


async def read_body(receive: Receive, declared_bytes: int | None, *, most_bytes: int, idle_seconds: float) -> bytes:
    """The whole body.

    Args:
        receive: of ASGI.
        declared_bytes: the request's ``content-length``.
        most_bytes: limit.
        idle_seconds: longest silence; all waiting together may take as long, and a second for each `LEAST_RATE` bytes.

    Raises:
        BodyTooLargeError: declared or found; what was found is let go.
        ClientSilentError: the client stopped sending, or sends too slowly.
        ClientGoneError: the client left.
    """
    if declared_bytes is not None and declared_bytes > most_bytes:
        raise BodyTooLargeError
    pieces, size = [], 0
    async for piece in _pieces(receive, idle_seconds):
        size += len(piece)
        if size > most_bytes:
            raise BodyTooLargeError
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def _pieces(receive: Receive, idle_seconds: float) -> AsyncIterator[bytes]:
    """The pieces of a body as they come. Raises ClientSilentError and ClientGoneError.

    Only waiting counts: what is done with a piece may take as long as it likes.
    """
    loop = asyncio.get_running_loop()
    left_seconds = idle_seconds
    while True:
        began = loop.time()
        try:
            async with asyncio.timeout(min(idle_seconds, left_seconds)):
                message = await receive()
        except TimeoutError:
            is_slow = left_seconds < idle_seconds
            cause = f"less than {LEAST_RATE:g} bytes a second came" if is_slow else "nothing came"
            raise ClientSilentError(f"{cause} for {idle_seconds:g} s") from None
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        left_seconds += len(message.get("body", b"")) / LEAST_RATE - (loop.time() - began)
        if message.get("body"):
            yield message["body"]
        if not message.get("more_body"):
            return


class StreamedBody:
    """A body that is passed through as it comes; nothing of it is held.

    Args:
        receive: of ASGI; nobody else may call it until the body is read.
        idle_seconds: longest silence, and more as for `read_body`.
    """

    def __init__(self, receive: Receive, *, idle_seconds: float) -> None:
        self._receive = receive
        self._idle_seconds = idle_seconds
        self._is_read = asyncio.Event()
        self.fault: ClientGoneError | ClientSilentError | None = None
        """Why the body was not read to its end."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in _pieces(self._receive, self._idle_seconds):
                yield piece
        except (ClientGoneError, ClientSilentError) as fault:
            self.fault = fault
            raise
        self._is_read.set()

    async def wait_until_read(self) -> None:
        """Wait for the body's last byte."""
        await self._is_read.wait()


class SentOnceBody(Payload):
    """A body for aiohttp that is let go while it is sent: an answer may last for minutes, its request need not."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content, content_type="application/json")
        self._size = len(content)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The body as text."""
        return str(self._value, encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send the body; there is none after that."""
        await self.write_with_length(writer, None)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Send the body; there is none after that."""
        content, self._value = memoryview(self._value)[:content_length], b""
        for start in range(0, len(content), _SLICE_BYTES):
            await writer.write(content[start : start + _SLICE_BYTES])
