"""``python -m benchmarks gateway``: what the gateway adds to the first byte of an answer while many streams run.

Three processes beside this one: an upstream that streams small events, the gateway as ``cgk serve`` runs it, and its
planner's process. Streams begin evenly spread in time and last for a fixed time, so that after a first phase as many
are open as asked for; the first bytes of a second phase are measured, once past the gateway and once through it.
The planner answers at once that nothing changes: its own time is the figure of ``python -m benchmarks plan``.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.timing import percentile
from context_gatekeeper.gateway.port import Answer, GatewayCall, PlanReply

__all__ = ["GatewaySettings", "make_quick_planner", "measure_gateway"]

_EVENT = (
    b'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"' + b"word " * 20 + b'"}}\n\n'
)
_LAST_EVENT = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_KIBIBYTE = 1024
_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """One measurement."""

    streams: int = 1000
    """Open at once."""
    body_kb: int = 400
    """Of each request."""
    stream_seconds: float = 20.0
    """How long an answer lasts."""
    events_per_second: float = 1.0
    """Of each answer."""


class _QuickPlanner:
    """Answers at once that nothing changes."""

    has_idle_work = False

    def idle(self) -> None:
        """There is no such work."""

    def plan(self, call: GatewayCall) -> PlanReply:
        return PlanReply(call.call_id, None, "unchanged")

    def observe(self, answer: Answer) -> None:
        """Nothing is kept."""

    def status(self) -> Mapping[str, Any]:
        return {}

    def close(self) -> None:
        """Nothing is open."""


def make_quick_planner(_settings: Mapping[str, Any]) -> _QuickPlanner:
    """The planner of this measurement (called in the planner's process)."""
    return _QuickPlanner()


def measure_gateway(settings: GatewaySettings) -> dict[str, float]:
    """Run both ways and compare.

    Returns:
        ``added_first_byte_p50_ms`` and ``..._p99_ms`` (difference of the two ways' quantiles), the quantiles of each
        way, ``errors`` (answers that failed or were cut, both ways), ``bypassed`` (requests that the planner did not
        answer in time), ``rss_kb_per_stream`` (growth of the gateway's process).
    """
    with _upstream(settings) as upstream_port, _gateway(upstream_port) as (gateway_port, process_id):
        direct = asyncio.run(_run_load(settings, upstream_port, None))
        through = asyncio.run(_run_load(settings, gateway_port, process_id))
    result: dict[str, float] = {"streams": settings.streams, "body_kb": settings.body_kb}
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        at = {"direct": percentile(direct.first_bytes, share), "gateway": percentile(through.first_bytes, share)}
        result[f"added_first_byte_{name}_ms"] = (at["gateway"] - at["direct"]) * 1e3
        result |= {f"{way}_first_byte_{name}_ms": seconds * 1e3 for way, seconds in at.items()}
    result["errors"] = direct.errors + through.errors
    result["bypassed"] = through.bypassed
    result["rss_kb_per_stream"] = (through.most_rss_kb - through.idle_rss_kb) / settings.streams
    return result


@dataclass(slots=True)
class _Load:
    """What one way gave."""

    first_bytes: list[float] = field(default_factory=list)
    """Seconds from a request's first byte to its answer's first, in the measured phase."""
    errors: int = 0
    bypassed: int = 0
    idle_rss_kb: float = 0.0
    most_rss_kb: float = 0.0


class _Stream(asyncio.Protocol):
    """One request and its answer."""

    def __init__(self, load: _Load, request: bytes, done: asyncio.Future[None], *, is_measured: bool) -> None:
        self._load = load
        self._request = request
        self._done = done
        self._is_measured = is_measured
        self._began = 0.0
        self._head = b""
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._began = time.perf_counter()
        transport.write(self._request)  # type: ignore[attr-defined]
        self._request = b""

    def data_received(self, data: bytes) -> None:
        if not self._head:
            if self._is_measured:
                self._load.first_bytes.append(time.perf_counter() - self._began)
            self._head = data
            self._load.bypassed += b"x-gatekeeper: bypass" in data
        self._tail = (self._tail + data)[-len(_LAST_EVENT) - 16 :]
        if self._tail.endswith(b"0\r\n\r\n"):
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        is_good = self._head.startswith(b"HTTP/1.1 200") and _LAST_EVENT in self._tail and error is None
        self._load.errors += not is_good
        if not self._done.done():
            self._done.set_result(None)


async def _run_load(settings: GatewaySettings, port: int, process_id: int | None) -> _Load:
    """Open streams evenly over twice their length; those of the second half are measured."""
    load = _Load(idle_rss_kb=_rss_kb(process_id))
    body = json.dumps(
        {"model": "claude-opus-4-5", "stream": True, "messages": [{"role": "user", "content": "x"}], "pad": ""}
    ).encode()
    body = body[:-2] + b"word " * (settings.body_kb * _KIBIBYTE // 5) + body[-2:]
    head = f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: k\r\ncontent-length: {len(body)}\r\n\r\n"
    request = head.encode() + body
    loop = asyncio.get_running_loop()
    began = loop.time()
    waiting: list[asyncio.Future[None]] = []
    openings: set[asyncio.Task[None]] = set()

    async def open_one(done: asyncio.Future[None], is_measured: bool) -> None:
        try:
            await loop.create_connection(
                lambda: _Stream(load, request, done, is_measured=is_measured), "127.0.0.1", port
            )
        except OSError:
            load.errors += 1
            done.set_result(None)

    for number in range(settings.streams * 2):
        await asyncio.sleep(began + number * settings.stream_seconds / settings.streams - loop.time())
        done: asyncio.Future[None] = loop.create_future()
        waiting.append(done)
        opening = loop.create_task(open_one(done, number >= settings.streams))
        openings.add(opening)
        opening.add_done_callback(openings.discard)
        if number % 50 == 0:
            load.most_rss_kb = max(load.most_rss_kb, _rss_kb(process_id))
    load.most_rss_kb = max(load.most_rss_kb, _rss_kb(process_id))
    await asyncio.gather(*waiting)
    return load


class _UpstreamConnection(asyncio.Protocol):
    """Answers every request with a stream of events."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._left = -1
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self._left < 0:
            self._head += data
            head, found, data = self._head.partition(b"\r\n\r\n")
            if not found:
                return
            self._head = b""
            self._left = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        self._left -= len(data)
        if self._left == 0:
            self._left = -1
            self._transport.write(_HEAD + _chunk(_EVENT))
            events = round(self._settings.stream_seconds * self._settings.events_per_second)
            self._continue(events)

    def _continue(self, events: int) -> None:
        loop = asyncio.get_running_loop()
        if self._transport.is_closing():
            return
        if events <= 0:
            self._transport.write(_chunk(_LAST_EVENT) + b"0\r\n\r\n")
            return
        loop.call_later(1 / self._settings.events_per_second, self._continue, events - 1)
        self._transport.write(_chunk(_EVENT))


def _chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


def _serve_upstream(settings: GatewaySettings, told: Connection) -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _UpstreamConnection(settings), "127.0.0.1", 0, backlog=4096)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


@contextmanager
def _upstream(settings: GatewaySettings) -> Iterator[int]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve_upstream, args=(settings, there), daemon=True)
    process.start()
    try:
        if not here.poll(_START_SECONDS):
            raise RuntimeError("the upstream does not start")
        yield here.recv()
    finally:
        process.terminate()
        process.join()


@contextmanager
def _gateway(upstream_port: int) -> Iterator[tuple[int, int]]:
    """Port and process id of a running gateway."""
    with TemporaryDirectory() as folder:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("CGK_")},
            "HOME": folder,
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "CGK_GATEWAY_PLANNER": f"{__name__}:{make_quick_planner.__name__}",
        }
        command = [sys.executable, "-m", "context_gatekeeper.entrypoints.cli", "serve", "--port", "0", "--json"]
        process = subprocess.Popen(  # noqa: S603 - our own code
            [*command, "--upstream", f"http://127.0.0.1:{upstream_port}"],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
        )
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["port"], process.pid
        finally:
            process.terminate()
            process.communicate()


def _rss_kb(process_id: int | None) -> float:
    """Resident memory of a process; 0 where the system does not tell it."""
    path = Path(f"/proc/{process_id}/status")
    if process_id is None or not path.exists():
        return 0.0
    lines = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
    return float(lines["VmRSS"].split()[0])
