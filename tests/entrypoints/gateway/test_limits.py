"""What a client may send and how slowly: sizes, silence, many idle connections."""

from __future__ import annotations

import asyncio
import json
import selectors
import socket
from collections.abc import Awaitable, Callable, Iterator

import pytest

from context_gatekeeper.config_gateway import GatewayConfig
from context_gatekeeper.entrypoints.gateway.request_body import ClientSilentError, StreamedBody, read_body
from context_gatekeeper.entrypoints.gateway.server import open_socket
from tests.entrypoints.gateway.running import (
    RawClient,
    Received,
    RunningGateway,
    ScriptedUpstream,
    UpstreamSide,
    ask,
    chunk,
    plain_answer,
    running_gateway,
    scripted_upstream,
)

LIMIT = 300_000


async def answer(_request: Received, side: UpstreamSide) -> None:
    await side.send(plain_answer(b"{}"))


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with scripted_upstream(answer) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    folder = tmp_path_factory.mktemp("gateway")
    with running_gateway(upstream.url, folder=folder, max_body_bytes=LIMIT) as running:
        yield running


@pytest.fixture(scope="module")
def hasty(upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """A gateway that waits for nobody."""
    with running_gateway(upstream.url, folder=tmp_path_factory.mktemp("hasty"), receive_seconds=0.2) as running:
        yield running


def test_a_body_up_to_the_limit_is_taken(gateway: RunningGateway, upstream: ScriptedUpstream) -> None:
    body = b"x" * LIMIT
    assert ask(gateway.port, "/v1/messages", body).status == 200
    assert upstream.received[-1].body == body


def test_a_larger_body_is_refused_and_not_sent(gateway: RunningGateway, upstream: ScriptedUpstream) -> None:
    """R16."""
    before = len(upstream.received)
    declared = ask(gateway.port, "/v1/messages", headers={"Content-Length": str(200 * 2**20)})
    assert (declared.status, declared.header("connection")) == (413, "close")
    error = json.loads(declared.body)
    assert (error["type"], error["error"]["type"]) == ("error", "request_too_large")
    assert "raise [gateway] max_body_bytes" in error["error"]["message"]
    pieces = b"".join(chunk(b"x" * 1000) for _ in range(LIMIT // 1000 + 1))
    assert ask(gateway.port, "/v1/chat/completions", pieces, {"Transfer-Encoding": "chunked"}).status == 413
    assert len(upstream.received) == before


def test_what_is_passed_through_has_no_limit(gateway: RunningGateway, upstream: ScriptedUpstream) -> None:
    body = b"x" * (LIMIT * 4)
    assert ask(gateway.port, "/v1/files", body).status == 200
    assert upstream.received[-1].body == body


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: " + b"a" * 70_000,
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"x-%d: 1\r\n" % n for n in range(8000)) + b"\r\n",
        b"GET /" + b"a" * 70_000,
    ],
)
def test_a_head_of_more_than_64_kb_is_refused(gateway: RunningGateway, head: bytes) -> None:
    with RawClient(gateway.port) as client:
        client.send(head)
        got = client.answer("GET")
    assert (got.status, got.header("connection")) == (431, "close")


def test_a_head_of_nearly_64_kb_is_forwarded(gateway: RunningGateway, upstream: ScriptedUpstream) -> None:
    long = {f"x-{number}": "v" * 6000 for number in range(10)}
    assert ask(gateway.port, "/v1/messages", b"{}", long).status == 200
    assert long.items() <= dict(upstream.received[-1].headers).items()


@pytest.mark.parametrize(
    "content", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01"]
)
def test_what_is_no_http_is_refused(gateway: RunningGateway, content: bytes) -> None:
    with RawClient(gateway.port) as client:
        client.send(content)
        assert client.answer("GET").status == 400


def test_a_target_that_is_no_path_is_refused(gateway: RunningGateway, upstream: ScriptedUpstream) -> None:
    before = len(upstream.received)
    for method, target in (("OPTIONS", "*"), ("CONNECT", "example.com:443"), ("POST", "%2Fv1/messages")):
        assert ask(gateway.port, target, method=method).status in (400, 404)
    assert len(upstream.received) == before


def test_a_target_with_an_authority_goes_to_the_configured_upstream_only(
    gateway: RunningGateway, upstream: ScriptedUpstream
) -> None:
    assert ask(gateway.port, "http://169.254.169.254/latest?x=1", method="GET").status == 200
    assert upstream.received[-1].target == "/latest?x=1"


def test_a_client_that_stops_in_its_body_is_let_go(hasty: RunningGateway, upstream: ScriptedUpstream) -> None:
    before = len(upstream.received)
    for target in ("/v1/messages", "/v1/files"):
        with RawClient(hasty.port) as client:
            client.request("POST", target, b"half", {"Content-Length": "100"})
            got = client.answer()
        assert (got.status, got.header("connection")) == (408, "close")
    assert len(upstream.received) == before


@pytest.mark.parametrize("beginning", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A"])
def test_a_client_that_does_not_finish_its_head_is_let_go(hasty: RunningGateway, beginning: bytes) -> None:
    with RawClient(hasty.port) as client:
        client.send(beginning)
        assert client.read_some(1) == b""


def test_a_second_request_has_its_own_time(hasty: RunningGateway) -> None:
    with RawClient(hasty.port) as client:
        client.request("POST", "/v1/messages", b"{}")
        assert client.answer().status == 200
        client.send(b"POST /v1/messages HTTP/1.1\r\n")
        assert client.read_some(1) == b""


def test_many_idle_connections_hurt_nobody(gateway: RunningGateway) -> None:
    """R16 in its short form."""
    idle = [RawClient(gateway.port) for _ in range(500)]
    try:
        for client in idle:
            client.send(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        for _ in range(20):
            assert ask(gateway.port, "/v1/messages", b"{}").status == 200
    finally:
        for client in idle:
            client.close()


def test_small_pieces_are_sent_at_once() -> None:
    """Without TCP_NODELAY each small piece of a stream would wait for the one before it to be acknowledged."""
    with open_socket(GatewayConfig(port=0)) as listener:
        assert listener.proto == socket.IPPROTO_TCP


TRAILED = b"POST %b HTTP/1.1\r\nHost: 127.0.0.1\r\n%bTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n%b\r\n"
BODY_IN_CHUNKS = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
TRAILERS = b"X-Api-Key: evil\r\nHost: evil\r\nOrigin: http://evil\r\nConnection: x-real\r\nX-Gatekeeper: off\r\n"


@pytest.mark.parametrize("target", [b"/v1/messages", b"/v1/files"])
@pytest.mark.parametrize("is_split", [False, True])
def test_trailers_never_become_headers(
    gateway: RunningGateway, upstream: ScriptedUpstream, target: bytes, is_split: bool
) -> None:
    content = TRAILED % (target, b"X-Real: 1\r\nX-Api-Key: mine\r\n", TRAILERS)
    with RawClient(gateway.port) as client:
        if is_split:
            client.send(content[:-150])
            client.send(content[-150:])
        else:
            client.send(content)
        assert client.answer().status == 200
        client.request("POST", "/v1/messages", b"{}")  # The connection goes on as if there had been none.
        assert client.answer().status == 200
    sent = upstream.received[-2]
    names = [name.lower() for name, _ in sent.headers]
    assert sent.body == b"hello"
    assert [name for name in names if name in ("origin", "x-gatekeeper", "connection")] == []
    assert (names.count("host"), sent.header("x-api-key"), sent.header("x-real")) == (1, "mine", "1")


@pytest.mark.parametrize(
    "trailers", [b"".join(b"x-%d: %b\r\n" % (n, b"v" * 5000) for n in range(20)), b"x: " + b"v" * 400_000]
)
def test_trailers_have_a_limit(gateway: RunningGateway, upstream: ScriptedUpstream, trailers: bytes) -> None:
    before = len(upstream.received)
    with RawClient(gateway.port) as client:
        client.send(BODY_IN_CHUNKS)
        try:
            client.send(b"0\r\n" + trailers)
        except ConnectionError:
            return
        got = client.answer()
    assert (got.status, got.header("connection")) == (431, "close")
    assert "trailers" in json.loads(got.body)["error"]["message"]
    assert len(upstream.received) == before


@pytest.mark.parametrize(
    "content",
    [
        b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nanthropic-version: 1\r\nbad header\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nX-A: " + b"a" * 70_000,
    ],
)
def test_what_the_parser_refuses_is_told_in_the_form_of_the_api(gateway: RunningGateway, content: bytes) -> None:
    with RawClient(gateway.port) as client:
        client.send(content)
        got = client.answer()
    assert (got.status in (400, 431), got.header("content-type")) == (True, "application/json")
    told = json.loads(got.body)
    assert (told.get("type") == "error") is (b"/v1/messages" in content)
    assert told["error"]["type"] == "gatekeeper_error"


class WaitingSelector(selectors.SelectSelector):
    """Waits for nothing: the time that would pass has passed."""

    passed_seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.passed_seconds += timeout or 0.0
        return super().select(0)


def in_virtual_time(work: Callable[[], Awaitable[object]]) -> float:
    """Run something in a loop whose time passes by itself; how long it took there."""
    selector = WaitingSelector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.passed_seconds  # type: ignore[method-assign]
    try:
        loop.run_until_complete(work())
    finally:
        loop.close()
    return selector.passed_seconds


def sender(pieces: int, size: int, pause_seconds: float) -> Callable[[], Awaitable[dict[str, object]]]:
    """A client that sends pieces with pauses."""
    left = iter(range(pieces - 1, -1, -1))

    async def receive() -> dict[str, object]:
        await asyncio.sleep(pause_seconds)
        return {"type": "http.request", "body": b"x" * size, "more_body": next(left) > 0}

    return receive


@pytest.mark.parametrize(
    ("pieces", "size", "pause_seconds"),
    [(20_000, 1000, 0.008), (320, 65_536, 0.5), (3, 10, 9.0), (40, 20_000, 18.0), (1, 5, 29.0)],
)
def test_a_slow_line_may_take_its_time(pieces: int, size: int, pause_seconds: float) -> None:
    """20 MB over a line of one megabit take nearly three minutes."""

    async def work() -> None:
        body = await read_body(sender(pieces, size, pause_seconds), None, most_bytes=10**8, idle_seconds=30.0)
        assert len(body) == pieces * size

    assert in_virtual_time(work) == pytest.approx(pieces * pause_seconds, rel=0.01)


@pytest.mark.parametrize(("size", "pause_seconds"), [(1, 2.0), (1, 0.01), (100, 1.0), (500, 1.0), (1, 29.0)])
@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_body_that_never_comes_to_its_end_is_cut(size: int, pause_seconds: float, is_streamed: bool) -> None:
    receive = sender(10**9, size, pause_seconds)

    async def work() -> None:
        if not is_streamed:
            await read_body(receive, None, most_bytes=10**8, idle_seconds=30.0)
        async for _ in StreamedBody(receive, idle_seconds=30.0):
            pass

    async def cut() -> None:
        with pytest.raises(ClientSilentError, match="bytes a second came"):
            await work()

    assert 29.0 < in_virtual_time(cut) < 70.0


def test_an_upstream_that_takes_its_time_is_not_the_clients_fault() -> None:
    async def work() -> None:
        async for _ in StreamedBody(sender(50, 100, 0.1), idle_seconds=30.0):
            await asyncio.sleep(100.0)

    assert in_virtual_time(work) > 5000.0
