"""A small HTTP/1.1 server on the loopback interface: one event loop in a thread of its own, no thread per connection.

It can do what real servers do only when they break: reset a connection at byte k, stall, announce more than it sends.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from context_gatekeeper.testing.faults import Cut, Fault, cut_at, shape_pieces

__all__ = ["HttpAnswer", "HttpCall", "HttpServer"]

_HEAD_END = b"\r\n\r\n"
_MOST_HEAD_BYTES = 1 << 20
_BACKLOG = 4096
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: closing sends RST."""
_HALF_CHUNK_BYTES = 64
"""What a half chunk announces and does not send."""
_LAST_TURNS = 10
"""Of the event loop, when it ends."""
_NO_FAULT = Fault()


@dataclass(frozen=True, slots=True)
class HttpCall:
    """A request as it came over the wire."""

    method: str
    target: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    is_old: bool = False
    """Whether it is HTTP/1.0: no chunks, no second request."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What is sent back."""

    status: int
    headers: Mapping[str, str]
    pieces: Sequence[bytes]
    """The body; of a stream one piece an event."""
    is_stream: bool = False
    fault: Fault = _NO_FAULT
    interval: float = 0.0
    """Seconds between two events."""
    on_begin: Callable[[], None] = lambda: None
    """Called right before the first byte of the body goes out."""
    on_end: Callable[[], None] = lambda: None
    """Called when all is sent, or what the fault lets through."""


Answering = Callable[[HttpCall], Awaitable[HttpAnswer]]


class _ClientLeftError(Exception):
    """The other side has closed the connection."""


class HttpServer:
    """Runs between `start` and `stop`; every request is given to ``answering``, on the server's own event loop.

    ``on_hangup`` is called when a client leaves before the end of its answer, even while that is not begun.
    """

    def __init__(self, answering: Answering, on_hangup: Callable[[], None]) -> None:
        self.answering = answering
        self.on_hangup = on_hangup
        self.connections: set[_Connection] = set()
        self.port = 0
        self._thread = threading.Thread(target=self._run, daemon=True, name="fake-provider")
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._released = asyncio.Event()

    def start(self, port: int = 0) -> None:
        """Listen on ``port`` of 127.0.0.1, on a free one for 0."""
        listener = socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)
        self.port = listener.getsockname()[1]
        self._listener = listener
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        """Break every connection off and end the thread."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def release_stalls(self) -> None:
        """Let every answer go on that stalls now."""
        self._loop.call_soon_threadsafe(self._release)

    def _release(self) -> None:
        self._released.set()
        self._released = asyncio.Event()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()

    async def _serve(self) -> None:
        server = await self._loop.create_server(lambda: _Connection(self), sock=self._listener, backlog=_BACKLOG)
        self._ready.set()
        await self._stop.wait()
        server.close()
        # Connections that the loop has accepted and not yet made known come in the turns that follow.
        for _ in range(_LAST_TURNS):
            for one in list(self.connections):
                one.end()
            await asyncio.sleep(0)
        await server.wait_closed()

    async def stalled(self, gone: asyncio.Event, seconds: float | None) -> None:
        """Wait until the stall is over by time, by `release_stalls` or by the client's leaving."""
        waits = [asyncio.ensure_future(event.wait()) for event in (gone, self._released)]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()


class _Connection(asyncio.Protocol):
    """One client's connection: requests one behind the other."""

    def __init__(self, server: HttpServer) -> None:
        self.task: asyncio.Task[None] | None = None
        self.is_answering = False
        self._server = server
        self._buffer = bytearray()
        self._more = asyncio.Event()
        self._gone = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()

    # -- called by the event loop ---------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - for the type checker: this is TCP
        self._transport = transport
        transport.set_write_buffer_limits(high=0)
        self._server.connections.add(self)
        self.task = asyncio.get_running_loop().create_task(self._run())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._more.set()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self._gone.set()
        self._more.set()
        self._writable.set()
        self._server.connections.discard(self)
        if self.is_answering:
            self._server.on_hangup()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def end(self) -> None:
        """Break off at once; that is no leaving of the client's."""
        self.is_answering = False
        if self.task is not None:
            self.task.cancel()
        self._transport.abort()

    # -- reading --------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while True:
                call = await self._read_call()
                self.is_answering = True
                answer = await self._server.answering(call)
                is_closed = await self._send(call, answer)
                self.is_answering = False
                answer.on_end()
                if is_closed or call.is_old:
                    break
        except (_ClientLeftError, ValueError, asyncio.CancelledError):
            pass
        finally:
            self._transport.close()

    async def _read_call(self) -> HttpCall:
        """The next request; `ValueError` when it is no HTTP."""
        head = bytes(await self._read_until(_HEAD_END, _MOST_HEAD_BYTES))
        first, *lines = head[: -len(_HEAD_END)].split(b"\r\n")
        method, target, version = first.split(b" ")
        headers = tuple((name.strip(), value.strip()) for name, _, value in (line.partition(b":") for line in lines))
        known = {name.lower(): value for name, value in headers}
        if known.get(b"expect", b"").lower() == b"100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if b"chunked" in known.get(b"transfer-encoding", b"").lower():
            body = await self._read_chunks()
        else:
            body = await self._read_bytes(int(known.get(b"content-length", b"0")))
        return HttpCall(method.decode("latin-1"), target.decode("latin-1"), headers, body, version == b"HTTP/1.0")

    async def _read_chunks(self) -> bytes:
        body = bytearray()
        while True:
            line = await self._read_until(b"\r\n", _MOST_HEAD_BYTES)
            size = int(bytes(line).partition(b";")[0], 16)
            if size == 0:
                while bytes(await self._read_until(b"\r\n", _MOST_HEAD_BYTES)) != b"\r\n":
                    pass
                return bytes(body)
            body += await self._read_bytes(size)
            await self._read_bytes(2)

    async def _read_until(self, end: bytes, most_bytes: int) -> bytearray:
        seen = 0
        while (place := self._buffer.find(end, seen)) < 0:
            if len(self._buffer) > most_bytes:
                raise ValueError("the head is too long")
            seen = max(0, len(self._buffer) - len(end) + 1)
            await self._read_more()
        taken = self._buffer[: place + len(end)]
        del self._buffer[: place + len(end)]
        return taken

    async def _read_bytes(self, count: int) -> bytes:
        while len(self._buffer) < count:
            await self._read_more()
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    async def _read_more(self) -> None:
        self._more.clear()
        if self._gone.is_set():
            raise _ClientLeftError
        await self._more.wait()

    # -- writing --------------------------------------------------------------------------

    async def _send(self, call: HttpCall, answer: HttpAnswer) -> bool:
        """Send it; whether the connection ends with it."""
        fault = answer.fault
        pieces = shape_pieces(answer.pieces, fault)
        is_chunked = answer.is_stream and not fault.until_close and not call.is_old
        has_length = not answer.is_stream and not fault.until_close
        length = sum(map(len, pieces)) if has_length else None
        head = _head(answer, is_chunked=is_chunked, length=length, closes=fault.until_close or call.is_old)
        if call.method == "HEAD":
            await self._write(head, fault)
            return False
        cut = fault.cut
        before, behind = (pieces, []) if cut is None else cut_at(pieces, cut.place)
        frame = _chunk if is_chunked else bytes
        tail = b"0\r\n\r\n" if is_chunked else b""
        if cut is None and fault.half_chunk:
            cut, tail = Cut("end", 0), b"%x\r\nhalf" % _HALF_CHUNK_BYTES
        elif cut is not None:
            tail = b""
        answer.on_begin()
        await self._write_all(head, [frame(piece) for piece in before], tail, answer)
        if cut is None:
            return fault.until_close
        if cut.action != "stall":
            self._break_off(is_reset=cut.action == "reset")
            return True
        await self._server.stalled(self._gone, fault.seconds)
        await self._write_all(b"", [frame(piece) for piece in behind], b"0\r\n\r\n" if is_chunked else b"", answer)
        return fault.until_close

    async def _write_all(self, head: bytes, frames: Sequence[bytes], tail: bytes, answer: HttpAnswer) -> None:
        """Head with the first piece and tail with the last: whoever has read the last event has read the end."""
        writes = list(frames) or [b""]
        writes[0] = head + writes[0]
        writes[-1] += tail
        for number, content in enumerate(writes):
            if number:
                await asyncio.sleep(answer.interval)
            await self._write(content, answer.fault)

    async def _write(self, content: bytes, fault: Fault) -> None:
        steps = range(len(content)) if fault.one_byte_segments else (0,)
        for start in steps:
            if self._gone.is_set():
                raise _ClientLeftError
            self._transport.write(content[start : start + 1] if fault.one_byte_segments else content)
            await self._writable.wait()
            if fault.one_byte_segments:
                await asyncio.sleep(0)

    def _break_off(self, *, is_reset: bool) -> None:
        self.is_answering = False
        if is_reset:
            with contextlib.suppress(OSError):
                connection = self._transport.get_extra_info("socket")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self._transport.abort()
        else:
            self._transport.close()


def _chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def _head(answer: HttpAnswer, *, is_chunked: bool, length: int | None, closes: bool) -> bytes:
    try:
        reason = HTTPStatus(answer.status).phrase
    except ValueError:
        reason = "Unnamed"
    headers = {**answer.headers, **answer.fault.headers}
    if answer.fault.encoding:
        headers["content-encoding"] = answer.fault.encoding
    if is_chunked:
        headers["transfer-encoding"] = "chunked"
    elif length is not None:
        headers["content-length"] = str(length)
    if closes:
        headers["connection"] = "close"
    lines = [f"HTTP/1.1 {answer.status} {reason}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
