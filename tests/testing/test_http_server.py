"""The provider's server: HTTP as clients and proxies send it, and many streams at a time."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any

import pytest

from context_gatekeeper.testing import FakeProvider, FakeReply, Fault
from tests.testing.asking import CHAT, KEYS, MESSAGES, ask, chat, connect, read_to_end, request_bytes, unchunked

STREAMS = 200


def read_answer(connection: socket.socket) -> tuple[bytes, bytes]:
    """(head, body) of one answer with a length."""
    content = b""
    while b"\r\n\r\n" not in content:
        content += connection.recv(65536)
    head, _, body = content.partition(b"\r\n\r\n")
    (length,) = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length")]
    while len(body) < length:
        body += connection.recv(65536)
    return head, body


def test_requests_follow_each_other_on_one_connection() -> None:
    with FakeProvider(["one", "two", "three"]) as provider, connect(provider) as connection:
        connection.sendall(request_bytes(CHAT, chat()) + request_bytes(CHAT, chat())[:50])
        assert b"one" in read_answer(connection)[1]
        connection.sendall(request_bytes(CHAT, chat())[50:])
        assert b"two" in read_answer(connection)[1]


def test_a_request_may_come_in_chunks_and_wait_for_a_word() -> None:
    content = json.dumps(chat("in chunks")).encode()
    lines = [f"POST {CHAT} HTTP/1.1", "transfer-encoding: chunked", "Expect: 100-continue"]
    lines += [f"{name}: {value}" for name, value in KEYS.items()]
    with FakeProvider() as provider, connect(provider) as connection:
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        for start in range(0, len(content), 9):
            piece = content[start : start + 9]
            connection.sendall(b"%x;note=1\r\n%b\r\n" % (len(piece), piece))
        connection.sendall(b"0\r\ntrailer: x\r\n\r\n")
        assert b"in chunks" in read_answer(connection)[1]
    assert provider.requests[0].raw == content


def test_a_client_of_the_old_version_gets_a_stream_without_chunks_and_the_end() -> None:
    with FakeProvider(["words"]) as provider, connect(provider) as connection:
        connection.sendall(request_bytes(MESSAGES, ask(stream=True), "HTTP/1.0"))
        content, _ = read_to_end(connection)
    head, _, body = content.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    assert b"chunked" not in head
    assert body.endswith(b'data: {"type": "message_stop"}\n\n')


@pytest.mark.parametrize(
    "junk", [b"no http\r\n\r\n", b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n", b"x" * (1 << 21)]
)
def test_what_is_no_http_closes_the_connection(junk: bytes) -> None:
    with FakeProvider() as provider, connect(provider) as connection:
        try:
            connection.sendall(junk)
        except ConnectionError:
            return
        assert read_to_end(connection)[0] == b""


def test_a_slow_stream_waits_between_its_events() -> None:
    with FakeProvider(["a"], interval=0.001) as provider, connect(provider) as connection:
        connection.sendall(request_bytes(MESSAGES, ask(stream=True)))
        content = b""
        while not content.endswith(b"0\r\n\r\n"):
            content += connection.recv(65536)
    assert b"message_stop" in unchunked(content)


def test_many_streams_run_at_a_time_without_a_thread_for_each() -> None:
    fault = Fault(stall_after_bytes=50)
    with FakeProvider([FakeReply("words " * 20, fault=fault)] * STREAMS) as provider:
        threads = threading.active_count()
        open_ones = [connect(provider) for _ in range(STREAMS)]
        for connection in open_ones:
            connection.sendall(request_bytes(MESSAGES, ask(stream=True)))
        for connection in open_ones:
            assert connection.recv(1)
        assert (len(provider.requests), provider.finished) == (STREAMS, 0)
        assert threading.active_count() <= threads
        provider.release_stalls()
        for connection in open_ones:
            content = b""
            while not content.endswith(b"0\r\n\r\n"):
                content += connection.recv(65536)
            connection.close()
        assert provider.wait_until(lambda p: p.finished == STREAMS)
    assert provider.hangups == 0


def test_leaving_the_block_ends_streams_that_stall() -> None:
    with FakeProvider([FakeReply("words", fault=Fault(stall_after_bytes=50))]) as provider:
        connection = connect(provider)
        connection.sendall(request_bytes(MESSAGES, ask(stream=True)))
        assert connection.recv(1)
    with connection:
        read_to_end(connection)
    threads: list[Any] = [one for one in threading.enumerate() if one.name == "fake-provider"]
    assert threads == []


def test_a_chosen_port_is_used() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with FakeProvider(port=port) as provider:
        assert provider.url.endswith(f":{port}")
        provider.release_stalls()
    FakeProvider().release_stalls()
