"""What breaks off upstream breaks off for the client, at the same byte; a client that leaves is followed."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest

from tests.entrypoints.gateway.running import (
    DEADLINE_SECONDS,
    RawClient,
    Received,
    RunningGateway,
    ScriptedUpstream,
    UpstreamSide,
    ask,
    chunk,
    chunked_head,
    plain_answer,
    read_journal,
    running_gateway,
    scripted_upstream,
)

STREAM = (
    b"".join(f'data: {{"n": {n}, "text": "你好🟢 {n:04d}"}}\r\n\r\n'.encode() for n in range(90)) + b"data: [DONE]\n\n"
)
CUTS = (0, 1, 7, 31, 32, 33, 1023, 1024, 2047, 2048, 4095, len(STREAM) - 1, len(STREAM))
"""Of a 4 KB stream; short streams are cut at every byte."""


def events(*told: dict[str, object] | str, named: bool) -> bytes:
    """A stream of events, with their types in front where an API does so."""
    lines = []
    for one in told:
        data = one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)
        name = f"event: {one['type']}\n" if named and isinstance(one, dict) else ""
        lines.append(f"{name}data: {data}\n\n")
    return "".join(lines).encode()


SHORT = {
    "/v1/messages": events(
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "你好🟢"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
        named=True,
    ),
    "/v1/chat/completions": events(
        {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "你好🟢"}}]},
        {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"id": "c", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
        "[DONE]",
        named=False,
    ),
    "/v1/responses": events(
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "delta": "你好🟢"},
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [], "usage": {}}},
        named=True,
    ),
}
"""A whole answer of each API, its last event with it."""
FRAMINGS = ("chunked", "half chunk", "length")


class BreakingUpstream:
    """Sends a part of the stream, waits until the test has read it, and breaks off as the request asks."""

    def __init__(self) -> None:
        self.may_break = asyncio.Event()

    async def answer(self, request: Received, side: UpstreamSide) -> None:
        wanted = json.loads(request.body)
        stream = SHORT[request.target] if wanted.get("short") else STREAM
        coding = {"content-encoding": "gzip"} if wanted.get("coded") else {}
        stream = gzip.compress(stream, mtime=0) if coding else stream
        part = stream[: wanted["bytes"]]
        framing = wanted["framing"]
        if framing == "chunked":
            await side.send(chunked_head(coding), *([chunk(part)] if part else []))
        elif framing == "half chunk":
            await side.send(chunked_head(coding), b"%x\r\n" % (len(stream) + 1) + part)
        else:
            head = plain_answer(stream + b"!", headers=coding).partition(b"\r\n\r\n")[0]
            await side.send(head + b"\r\n\r\n" + part)
        await self.may_break.wait()
        self.may_break.clear()
        if wanted["end"] == "reset":
            side.reset()
        else:
            side.writer.close()


@pytest.fixture(scope="module")
def script() -> BreakingUpstream:
    return BreakingUpstream()


@pytest.fixture(scope="module")
def upstream(script: BreakingUpstream) -> Iterator[ScriptedUpstream]:
    with scripted_upstream(script.answer) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    folder = tmp_path_factory.mktemp("gateway")
    settings = {"journal": str(folder / "journal")}
    with running_gateway(upstream.url, folder=folder, planner_settings=settings) as running:
        yield running


@pytest.mark.parametrize("end", ["reset", "fin"])
@pytest.mark.parametrize("framing", FRAMINGS)
def test_the_client_gets_the_bytes_up_to_the_break_and_no_end(
    gateway: RunningGateway, upstream: ScriptedUpstream, script: BreakingUpstream, framing: str, end: str
) -> None:
    """R12, O38: nothing is invented, the turn is told to the planner as incomplete."""
    for size in CUTS:
        wanted = {"bytes": size, "framing": framing, "end": end}
        assert broken_off(gateway, upstream, script, "/v1/chat/completions", wanted) == (STREAM[:size], b"", False), (
            size
        )
    gateway.run(gateway.gateway.planner.status(DEADLINE_SECONDS))
    heard = [e for e in read_journal(Path(gateway.gateway.config.folder) / "journal") if e["kind"] == "observe"]
    last = heard[-len(CUTS) :]
    assert [entry["is_complete"] for entry in last] == [False] * len(CUTS)
    assert [entry["content"] for entry in last] == [STREAM[:size].decode("utf-8", "replace") for size in CUTS]


def broken_off(
    gateway: RunningGateway, upstream: ScriptedUpstream, script: BreakingUpstream, path: str, wanted: dict[str, object]
) -> tuple[bytes, bytes, bool]:
    """What a client reads before the break and behind it, and whether the answer came to its end."""
    size = int(str(wanted["bytes"]))
    with RawClient(gateway.port) as client:
        client.request("POST", path, json.dumps(wanted).encode())
        _, _, headers = client.read_head()
        found = {name.lower(): value for name, value in headers}
        is_chunked = found.get("transfer-encoding") == "chunked"
        read = client.read_pieces(size) if is_chunked else client.read_some(size)
        upstream.loop.call_soon_threadsafe(script.may_break.set)
        rest, is_whole = client.read_body(found) if is_chunked else (client.read_some(1), False)
    return read, rest, is_whole


@pytest.mark.parametrize("end", ["reset", "fin"])
@pytest.mark.parametrize("path", SHORT)
def test_a_short_answer_of_each_api_breaks_off_at_every_byte(
    gateway: RunningGateway, upstream: ScriptedUpstream, script: BreakingUpstream, path: str, end: str
) -> None:
    """R12 at every k, the framings taken in turn; even behind the last event there is no end that none sent."""
    stream, journal = SHORT[path], Path(gateway.gateway.config.folder) / "journal"
    assert len(stream) <= 2048
    for size in range(len(stream) + 1):
        wanted = {"short": True, "bytes": size, "framing": FRAMINGS[size % len(FRAMINGS)], "end": end}
        assert broken_off(gateway, upstream, script, path, wanted) == (stream[:size], b"", False), wanted
    gateway.run(gateway.gateway.planner.status(DEADLINE_SECONDS))
    heard = [entry for entry in read_journal(journal) if entry["kind"] == "observe"][-len(stream) - 1 :]
    assert [entry["content"] for entry in heard] == [
        stream[:size].decode("utf-8", "replace") for size in range(len(stream) + 1)
    ]
    assert not any(entry["is_complete"] for entry in heard)


@pytest.mark.parametrize("path", SHORT)
def test_a_coded_answer_breaks_off_at_every_byte_of_its_coding(
    gateway: RunningGateway, upstream: ScriptedUpstream, script: BreakingUpstream, path: str
) -> None:
    stream, journal = gzip.compress(SHORT[path], mtime=0), Path(gateway.gateway.config.folder) / "journal"
    for size in range(len(stream) + 1):
        wanted = {"short": True, "coded": True, "bytes": size, "framing": FRAMINGS[size % len(FRAMINGS)], "end": "fin"}
        assert broken_off(gateway, upstream, script, path, wanted) == (stream[:size], b"", False), wanted
    gateway.run(gateway.gateway.planner.status(DEADLINE_SECONDS))
    heard = [entry for entry in read_journal(journal) if entry["kind"] == "observe"][-len(stream) - 1 :]
    assert not any(entry["is_complete"] for entry in heard)
    text = SHORT[path].decode()
    assert all(text.startswith(entry["content"].rstrip("\ufffd")) for entry in heard)


def test_a_stream_that_ends_without_its_last_event_is_told_as_incomplete(tmp_path: Path) -> None:
    async def unfinished(_request: Received, side: UpstreamSide) -> None:
        await side.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", b"data: {}\n\n")
        side.writer.close()

    settings = {"journal": str(tmp_path / "journal")}
    with (
        scripted_upstream(unfinished) as upstream,
        running_gateway(upstream.url, folder=tmp_path, planner_settings=settings) as gateway,
    ):
        for path in ("/v1/messages", "/v1/chat/completions", "/v1/responses"):
            got = ask(gateway.port, path, b"{}")
            assert (got.body, got.is_whole) == (b"data: {}\n\n", True)
    heard = [entry for entry in read_journal(tmp_path / "journal") if entry["kind"] == "observe"]
    assert [entry["is_complete"] for entry in heard] == [False] * 3


def test_a_connection_that_breaks_before_the_answer_is_an_error(tmp_path: Path) -> None:
    async def hang_up(_request: Received, side: UpstreamSide) -> None:
        side.reset()

    with scripted_upstream(hang_up) as upstream, running_gateway(upstream.url, folder=tmp_path) as gateway:
        got = ask(gateway.port, "/v1/messages", b"{}")
        assert (got.status, json.loads(got.body)["error"]["type"]) == (502, "upstream_error")


@pytest.mark.parametrize("when", ["before the answer", "in the stream"])
@pytest.mark.parametrize("target", ["/v1/messages", "/v1/files"])
def test_when_the_client_leaves_the_upstream_is_left_too(tmp_path: Path, when: str, target: str) -> None:
    """R16: whoever pays per token must not pay for nobody."""
    arrived, was_left = Event(), Event()

    async def endless(_request: Received, side: UpstreamSide) -> None:
        if when == "in the stream":
            await side.send(chunked_head(), chunk(b"data: 1\n\n"))
        arrived.set()
        await side.wait_until_left()
        was_left.set()

    with scripted_upstream(endless) as upstream, running_gateway(upstream.url, folder=tmp_path) as gateway:
        client = RawClient(gateway.port)
        client.request("POST", target, b"{}")
        if when == "in the stream":
            client.read_head()
            client.read_pieces(9)
        assert arrived.wait(DEADLINE_SECONDS)
        client.close()
        assert was_left.wait(DEADLINE_SECONDS)


def test_a_client_that_leaves_inside_its_request_leaves_nothing_behind(tmp_path: Path) -> None:
    was_left = Event()

    async def never(_request: Received, _side: UpstreamSide) -> None:
        raise AssertionError("no whole request comes")

    def leave(gateway: RunningGateway, target: str) -> None:
        with RawClient(gateway.port) as client:
            client.request("POST", target, b"half", {"Content-Length": "1000"})

    with scripted_upstream(never) as upstream, running_gateway(upstream.url, folder=tmp_path) as gateway:
        for target in ("/v1/messages", "/v1/files"):
            leave(gateway, target)
        _wait_for(gateway, lambda: gateway.count("cgk_broken_answers_total", by="client") == 2)
        assert gateway.gateway.metrics.open_requests == 0
        assert upstream.received == []
    assert not was_left.is_set()


def _wait_for(gateway: RunningGateway, is_so: Callable[[], bool]) -> None:
    """Give the gateway's loop turns until something is so; a deadline ends it."""

    async def turns() -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not is_so():
                await asyncio.sleep(0)

    gateway.run(turns())


def test_a_silent_upstream_is_given_up_after_the_idle_time_only(tmp_path: Path) -> None:
    async def silent(request: Received, side: UpstreamSide) -> None:
        if request.header("x-want") == "stream":
            await side.send(chunked_head(), chunk(b"data: 1\n\n"))
        await side.wait_until_left()

    with (
        scripted_upstream(silent) as upstream,
        running_gateway(upstream.url, folder=tmp_path, idle_seconds=0.2) as gateway,
    ):
        got = ask(gateway.port, "/v1/messages", b"{}")
        assert got.status == 504
        assert "it was silent for 0.2 s" in json.loads(got.body)["error"]["message"]
        streamed = ask(gateway.port, "/v1/messages", b"{}", {"X-Want": "stream"})
        assert (streamed.body, streamed.is_whole) == (b"data: 1\n\n", False)
