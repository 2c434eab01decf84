"""What a client may send and how slowly: sizes, silence, many idle connections."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from context_gatekeeper.config_gateway import GatewayConfig
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
