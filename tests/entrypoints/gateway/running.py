"""A gateway in a thread of its own, an upstream whose every byte a test chooses, and clients made of sockets."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self, TypeVar

from context_gatekeeper.config_gateway import GatewayConfig, Upstream
from context_gatekeeper.entrypoints.gateway.server import Gateway, open_socket

ROOT = Path(__file__).parents[3]
MARKING = "tests.gateway.planners:make_marking"
DEADLINE_SECONDS = 60
PATIENT_SECONDS = 30.0
"""A deadline that a busy machine does not pass, where a test is not about the deadline."""
T = TypeVar("T")


@contextmanager
def _loop_in_thread() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(DEADLINE_SECONDS)
        loop.close()


@contextmanager
def importable_tests() -> Iterator[None]:
    """The planner's process finds the planners of the tests."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *([before] if before else [])])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


@dataclass(slots=True)
class RunningGateway:
    """A gateway that serves."""

    gateway: Gateway
    port: int
    loop: asyncio.AbstractEventLoop

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the gateway's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(DEADLINE_SECONDS)

    def count(self, name: str, **labels: str) -> float:
        return self.gateway.metrics.value(name, **labels)


@contextmanager
def running_gateway(upstream: str = "", *, folder: Path, **fields: Any) -> Iterator[RunningGateway]:
    """A gateway on a free port of 127.0.0.1.

    Args:
        upstream: where everything goes; ``fields`` may give ``upstreams`` instead.
        folder: for its key and its switch.
        fields: of `GatewayConfig`; the planner is that of the tests and gets much time if nothing is said.
    """
    settings: dict[str, Any] = {
        "port": 0,
        "folder": folder,
        "planner": MARKING,
        "plan_seconds": PATIENT_SECONDS,
        "plan_large_seconds": PATIENT_SECONDS,
        "restart_seconds": 0.001,
        "stop_seconds": 1.0,
        **fields,
    }
    if upstream:
        settings.update(
            upstream=upstream, upstreams={"default": Upstream(upstream, upstream), **settings.get("upstreams", {})}
        )
    config = GatewayConfig(**settings)
    listener = open_socket(config)
    port = listener.getsockname()[1]
    ready: Future[Gateway] = Future()
    with importable_tests(), _loop_in_thread() as loop:
        gateway = Gateway(config)
        serving = asyncio.run_coroutine_threadsafe(gateway.serve(listener, ready.set_result), loop)
        serving.add_done_callback(
            lambda done: ready.done() or ready.set_exception(done.exception() or OSError("it ended"))
        )
        ready.result(DEADLINE_SECONDS)
        try:
            yield RunningGateway(gateway, port, loop)
        finally:
            loop.call_soon_threadsafe(gateway.stop)
            serving.result(DEADLINE_SECONDS)


@dataclass(frozen=True, slots=True)
class Received:
    """A request as the upstream got it."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    """As on the wire."""
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass(slots=True)
class UpstreamSide:
    """The upstream's side of one connection, for an answering function."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *pieces: bytes) -> None:
        """Send pieces, each as a segment of its own where the system does so."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    def reset(self) -> None:
        """Break the connection off with RST."""
        handle = self.writer.get_extra_info("socket")
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.writer.transport.abort()

    async def wait_until_left(self) -> None:
        """Wait until the other side closes."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass


Answering = Callable[[Received, UpstreamSide], Awaitable[None]]


@dataclass(slots=True)
class ScriptedUpstream:
    """What a test reads of its upstream."""

    url: str
    loop: asyncio.AbstractEventLoop
    received: list[Received] = field(default_factory=list)
    left: SimpleQueue[str] = field(default_factory=SimpleQueue)
    """Gets the target of each request whose connection was closed from the other side while it was answered."""


@contextmanager
def scripted_upstream(answer: Answering) -> Iterator[ScriptedUpstream]:
    """A server that answers each request by ``answer``, which writes raw bytes; returning keeps the connection."""
    with _loop_in_thread() as loop:
        found: ScriptedUpstream

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while (request := await _read_request(reader)) is not None:
                    found.received.append(request)
                    await answer(request, UpstreamSide(reader, writer))
            except ConnectionError:
                pass
            finally:
                writer.close()

        async def listen() -> asyncio.Server:
            return await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**26)

        server = asyncio.run_coroutine_threadsafe(listen(), loop).result(DEADLINE_SECONDS)
        found = ScriptedUpstream(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", loop)
        try:
            yield found
        finally:
            asyncio.run_coroutine_threadsafe(_end(server), loop).result(DEADLINE_SECONDS)


async def _end(server: asyncio.Server) -> None:
    server.close()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _read_request(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    method, target, _ = first.split(" ")
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    found = {name.lower(): value for name, value in headers}
    if found.get("transfer-encoding") == "chunked":
        body = b"".join([piece async for piece in _chunks(reader)])
    else:
        body = await reader.readexactly(int(found.get("content-length", 0)))
    return Received(method, target, headers, body)


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readline(), 16):
        yield await reader.readexactly(size)
        await reader.readline()
    await reader.readline()


def plain_answer(body: bytes, status: str = "200 OK", headers: Mapping[str, str] | None = None) -> bytes:
    """A whole answer with its length."""
    given = {"content-type": "application/json", **(headers or {}), "content-length": str(len(body))}
    return f"HTTP/1.1 {status}\r\n{_lines(given)}\r\n".encode() + body


def chunked_head(headers: Mapping[str, str] | None = None) -> bytes:
    """The head of a stream of events."""
    given = {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked", **(headers or {})}
    return f"HTTP/1.1 200 OK\r\n{_lines(given)}\r\n".encode()


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


def _lines(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer as a client's socket got it."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes
    """Without the chunks' frames."""
    is_whole: bool
    """Whether it came to its end by the rules of HTTP."""

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    @property
    def note(self) -> str | None:
        return self.header("x-gatekeeper")


class RawClient:
    """One connection to the gateway."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), DEADLINE_SECONDS)
        self._file = self._socket.makefile("rb")
        self.port = port

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def send(self, content: bytes) -> None:
        self._socket.sendall(content)

    def request(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | list[tuple[str, str]] = ()
    ) -> None:
        pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
        names = {name.lower() for name, _ in pairs}
        if "host" not in names:
            pairs.insert(0, ("Host", f"127.0.0.1:{self.port}"))
        if (body or method == "POST") and "content-length" not in names and "transfer-encoding" not in names:
            pairs.append(("Content-Length", str(len(body))))
        head = "".join(f"{name}: {value}\r\n" for name, value in pairs)
        self.send(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + body)

    def read_head(self) -> tuple[int, str, list[tuple[str, str]]]:
        first = self._file.readline().decode("latin-1").rstrip("\r\n")
        if not first:
            raise ConnectionError("closed without an answer")
        _, status, reason = (*first.split(" ", 2), "")[:3]
        headers = []
        while line := self._file.readline().decode("latin-1").rstrip("\r\n"):
            name, _, value = line.partition(":")
            headers.append((name, value.strip()))
        return int(status), reason, headers

    def read_some(self, size: int) -> bytes:
        """So many bytes of the body as on the wire."""
        return self._file.read(size)

    def read_pieces(self, size: int) -> bytes:
        """So many bytes of a body that comes in chunks, which may be as many as the upstream likes."""
        found = b""
        while len(found) < size:
            found += self._file.read(int(self._file.readline(), 16))
            self._file.readline()
        return found

    def answer(self, method: str = "POST") -> RawAnswer:
        """Read a whole answer."""
        status, reason, headers = self.read_head()
        while status == 100:
            status, reason, headers = self.read_head()
        found = {name.lower(): value for name, value in headers}
        try:
            body, is_whole = self.read_body(found, has_body=method != "HEAD" and status not in (204, 304))
        except ConnectionError:
            body, is_whole = b"", False
        return RawAnswer(status, reason, headers, body, is_whole)

    def read_body(self, headers: Mapping[str, str], *, has_body: bool = True) -> tuple[bytes, bool]:
        """What is left of a body, and whether it came to its end."""
        if not has_body:
            return b"", True
        if headers.get("transfer-encoding") != "chunked":
            length = int(headers["content-length"])
            body = self._file.read(length)
            return body, len(body) == length
        pieces = []
        while line := self._file.readline().strip():
            size = int(line, 16)
            piece = self._file.read(size)
            pieces.append(piece)
            if len(piece) < size or not self._file.readline():
                return b"".join(pieces), False
            if not size:
                return b"".join(pieces), True
        return b"".join(pieces), False


def ask(
    port: int,
    target: str,
    body: bytes = b"",
    headers: Mapping[str, str] | list[tuple[str, str]] = (),
    method: str = "POST",
) -> RawAnswer:
    """One request on a connection of its own."""
    with RawClient(port) as client:
        client.request(method, target, body, headers)
        return client.answer(method)


def read_journal(path: Path) -> list[dict[str, Any]]:
    """What the tests' planner wrote down."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
