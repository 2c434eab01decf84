"""Requests reach the upstream as they were sent, answers come back as they were given."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.entrypoints.gateway.running import (
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

PLANNED = ("/v1/messages", "/v1/messages/count_tokens", "/v1/chat/completions", "/v1/responses")
ODD_BODY = '{"b" :1,"a":  "\\u00e9é 你好🟢","a":2}\n'.encode()
EVENTS = [b'event: a\r\ndata: {"t":"', "你好🟢".encode(), b'"}\r\n\r\n', b": ping\n\n", b"data: [DONE]\n\n"]


async def answer(request: Received, side: UpstreamSide) -> None:
    """Answers by what the target asks for."""
    kind = request.header("x-want") or ""
    if kind == "stream":
        await side.send(chunked_head({"X-Request-Id": "r-7"}), *(chunk(event) for event in EVENTS), b"0\r\n\r\n")
    elif kind == "bytes":
        whole = b"".join(EVENTS)
        await side.send(chunked_head(), *(chunk(whole[i : i + 1]) for i in range(len(whole))), b"0\r\n\r\n")
    elif kind == "until closed":
        await side.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", *EVENTS)
        side.writer.close()
    elif kind.startswith("HTTP"):
        await side.send(kind.encode().decode("unicode_escape").encode("latin-1"))
    else:
        whole = plain_answer(b'{"ok": true}', headers={"X-A": "1", "x-b": "2"})
        await side.send(whole.partition(b"{")[0] if request.method == "HEAD" else whole)


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with scripted_upstream(answer) as running:
        yield running


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journal") / "journal.jsonl"


@pytest.fixture(scope="module")
def gateway(
    upstream: ScriptedUpstream, journal: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningGateway]:
    folder = tmp_path_factory.mktemp("gateway")
    with running_gateway(upstream.url, folder=folder, planner_settings={"journal": str(journal)}) as running:
        yield running


@pytest.mark.parametrize("path", PLANNED)
def test_a_request_that_needs_no_edit_is_forwarded_as_the_received_bytes(
    gateway: RunningGateway, upstream: ScriptedUpstream, path: str
) -> None:
    got = ask(gateway.port, path, ODD_BODY)
    assert (got.status, got.body, got.note) == (200, b'{"ok": true}', "unchanged")
    assert (upstream.received[-1].target, upstream.received[-1].body) == (path, ODD_BODY)


@pytest.mark.parametrize("path", PLANNED)
def test_a_planned_request_is_sent_with_its_own_length_and_nothing_else_changed(
    gateway: RunningGateway, upstream: ScriptedUpstream, path: str
) -> None:
    got = ask(gateway.port, path, b'{ "x":"long old text" }', {"Content-Type": "application/json"})
    assert got.note == "plan"
    sent = upstream.received[-1]
    assert sent.body == b'{ "x":"[page 1]" }'
    assert sent.header("content-length") == str(len(sent.body))
    assert sent.header("content-type") == "application/json"


@pytest.mark.parametrize("body", [b"", b"{", b"[1,2", b"\xff\xfe", b"null", b'"text"', b"[" * 50_000])
def test_what_is_no_request_is_forwarded_untouched(
    gateway: RunningGateway, upstream: ScriptedUpstream, body: bytes
) -> None:
    assert ask(gateway.port, "/v1/messages", body).status == 200
    assert upstream.received[-1].body == body


def test_headers_go_on_in_their_order_with_their_repetitions(
    gateway: RunningGateway, upstream: ScriptedUpstream
) -> None:
    given = [
        ("Authorization", "Bearer k"), ("anthropic-beta", "one"), ("X-Stainless-Retry-Count", "2"),
        ("anthropic-beta", "two"), ("User-Agent", "claude-cli/2.1 (external)"), ("Accept-Encoding", "gzip, br, zstd"),
        ("X-Unknown", "a=b; c"), ("Cookie", "a=1"),
    ]  # fmt: skip
    hop = [("Connection", "keep-alive, X-Hop"), ("X-Hop", "1"), ("TE", "trailers"), ("X-Gatekeeper", "shadow")]
    ask(gateway.port, "/v1/messages", b"{}", [*given, *hop])
    sent = upstream.received[-1].headers
    kept = [(name.lower(), value) for name, value in sent if name.lower() not in ("host", "content-length")]
    assert kept == [(name.lower(), value) for name, value in given]


def test_nothing_is_added_for_a_client_that_sends_almost_nothing(
    gateway: RunningGateway, upstream: ScriptedUpstream
) -> None:
    ask(gateway.port, "/v1/models", method="GET")
    assert [name.lower() for name, _ in upstream.received[-1].headers] == ["host"]
    assert upstream.received[-1].header("host") == upstream.url.removeprefix("http://")


def test_answers_keep_status_headers_and_order(gateway: RunningGateway) -> None:
    got = ask(gateway.port, "/v1/messages", b"{}")
    assert got.headers == [
        ("content-type", "application/json"),
        ("x-a", "1"),
        ("x-b", "2"),
        ("content-length", "12"),
        ("x-gatekeeper", "unchanged"),
    ]


@pytest.mark.parametrize("kind", ["stream", "bytes", "until closed"])
def test_a_stream_comes_through_byte_for_byte(gateway: RunningGateway, kind: str) -> None:
    """O41: characters cut between segments, CRLF, comments."""
    got = ask(gateway.port, "/v1/chat/completions", b"{}", {"X-Want": kind})
    assert (got.body, got.is_whole) == (b"".join(EVENTS), True)


def test_what_has_come_is_passed_on_before_the_rest_is_there(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def half(_request: Received, side: UpstreamSide) -> None:
        await side.send(chunked_head(), chunk(b"data: 1\n\n"))
        await gate.wait()
        await side.send(chunk(b"data: 2\n\n"), b"0\r\n\r\n")

    with (
        scripted_upstream(half) as upstream,
        running_gateway(upstream.url, folder=tmp_path) as gateway,
        RawClient(gateway.port) as client,
    ):
        client.request("POST", "/v1/messages", b"{}")
        client.read_head()
        assert client.read_pieces(9) == b"data: 1\n\n"
        upstream.loop.call_soon_threadsafe(gate.set)
        assert client.read_pieces(9) == b"data: 2\n\n"


@pytest.mark.parametrize(
    "status",
    [
        "429 Too Many Requests",
        "529 ",
        "503 Service Unavailable",
        "401 Unauthorized",
        "413 Content Too Large",
        "500 Oops",
    ],
)
def test_errors_of_the_provider_pass_identical(gateway: RunningGateway, status: str) -> None:
    """R13, O39."""
    body = json.dumps({"type": "error", "error": {"type": "x", "message": "no  spaces changed"}}).encode()
    headers = {"retry-after": "7", "x-ratelimit-remaining-tokens": "0", "request-id": "req_1", "x-should-retry": "true"}
    raw = plain_answer(body, status, headers).decode()
    got = ask(gateway.port, "/v1/messages", b"{}", {"X-Want": raw.encode("unicode_escape").decode()})
    assert (got.status, got.body, got.is_whole) == (int(status[:3]), body, True)
    assert {**headers, "content-length": str(len(body))}.items() <= dict(got.headers).items()


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("HEAD", "/"),
        ("GET", "/v1/models?limit=3&after=a%2Fb"),
        ("GET", "/v1/models/a%2Fb/../c"),
        ("POST", "/v1/responses/compact"),
        ("POST", "/v1/responses/input_tokens"),
        ("DELETE", "/v1/files/f1"),
        ("GET", "/v1/messages"),
        ("OPTIONS", "/v1/messages"),
        ("POST", "/v1beta/models/gemini:streamGenerateContent?alt=sse&key=k"),
        ("PUT", "/healthz/x"),
    ],
)
def test_every_other_route_is_passed_through_verbatim(
    gateway: RunningGateway, upstream: ScriptedUpstream, method: str, target: str
) -> None:
    body = b'{"x":"long old text"}' if method in ("POST", "PUT") else b""
    got = ask(gateway.port, target, body, method=method)
    assert (got.status, got.note) == (200, "unchanged")
    assert (upstream.received[-1].method, upstream.received[-1].target) == (method, target)
    assert upstream.received[-1].body == body


def test_a_body_in_chunks_is_passed_through_and_planned(gateway: RunningGateway, upstream: ScriptedUpstream) -> None:
    for target, expected in (("/v1/files", b'{"a":"long old text"}'), ("/v1/messages", b'{"a":"[page 1]"}')):
        wire = chunk(b'{"a":"long') + chunk(b' old text"}') + b"0\r\n\r\n"
        ask(gateway.port, target, wire, {"Transfer-Encoding": "chunked"})
        assert upstream.received[-1].body == expected


def test_a_client_that_waits_to_continue_is_told_to(gateway: RunningGateway, upstream: ScriptedUpstream) -> None:
    with RawClient(gateway.port) as client:
        client.request("POST", "/v1/messages", headers={"Content-Length": "2", "Expect": "100-continue"})
        assert client.read_head()[0] == 100
        client.send(b"{}")
        assert client.answer().status == 200
    assert upstream.received[-1].header("expect") is None


def test_one_connection_serves_many_requests(gateway: RunningGateway) -> None:
    with RawClient(gateway.port) as client:
        for path in PLANNED * 3:
            client.request("POST", path, b"{}")
            assert client.answer().status == 200


def test_answers_without_a_body_come_to_their_end(gateway: RunningGateway) -> None:
    for head in ("HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n"):
        with RawClient(gateway.port) as client:
            for _ in range(2):
                client.request("GET", "/v1/x", headers={"X-Want": head.encode("unicode_escape").decode()})
                assert client.answer("GET").status == int(head[9:12])


def test_redirects_are_not_followed(gateway: RunningGateway, upstream: ScriptedUpstream) -> None:
    before = len(upstream.received)
    raw = plain_answer(b"", "307 Temporary Redirect", {"location": "http://127.0.0.1:1/elsewhere"}).decode()
    got = ask(gateway.port, "/v1/messages", b"{}", {"X-Want": raw.encode("unicode_escape").decode()})
    assert (got.status, got.header("location")) == (307, "http://127.0.0.1:1/elsewhere")
    assert len(upstream.received) == before + 1


def test_a_compressed_answer_keeps_its_bytes_and_lengths(tmp_path: Path) -> None:
    """O40; the planner gets it decoded."""
    plain = b'{"text": "' + b"word " * 50 + b'"}'
    body = gzip.compress(plain)

    async def squeezed(_request: Received, side: UpstreamSide) -> None:
        await side.send(plain_answer(body, headers={"content-encoding": "gzip"}))

    settings = {"journal": str(tmp_path / "j")}
    with (
        scripted_upstream(squeezed) as upstream,
        running_gateway(upstream.url, folder=tmp_path, planner_settings=settings) as running,
    ):
        got = ask(running.port, "/v1/messages", b"{}", {"Accept-Encoding": "gzip"})
        assert (got.body, got.header("content-encoding"), got.header("content-length")) == (
            body,
            "gzip",
            str(len(body)),
        )
    heard = [entry for entry in read_journal(tmp_path / "j") if entry["kind"] == "observe"]
    assert [(entry["content"], entry["is_complete"]) for entry in heard] == [(plain.decode(), True)]


def test_the_planner_hears_the_call_and_its_answer(gateway: RunningGateway, journal: Path) -> None:
    headers = {"X-Claude-Code-Session-Id": "s-1", "X-Api-Key": "sk-TESTKEY-123", "X-Other": "1", "X-Want": "stream"}
    ask(gateway.port, "/v1/chat/completions", b'{"n":"heard"}', headers)
    gateway.run(gateway.gateway.planner.status(30))
    calls = [entry for entry in read_journal(journal) if entry.get("body") == '{"n":"heard"}']
    assert len(calls) == 1
    assert calls[0]["headers"] == {"x-claude-code-session-id": "s-1"}
    assert (calls[0]["route"], calls[0]["upstream"], calls[0]["shadow"]) == ("chat", "default", False)
    assert len(calls[0]["credential"]) == 64
    heard = [e for e in read_journal(journal) if e["kind"] == "observe" and e["call_id"] == calls[0]["call_id"]]
    assert [entry["content"] for entry in heard] == [b"".join(EVENTS).decode()]
    assert heard[0]["is_complete"]
    assert heard[0]["sent_as"] == "planned"
    assert heard[0]["content_type"].startswith("text/event-stream")


def test_an_unknown_upstream_is_named_in_the_error(gateway: RunningGateway) -> None:
    got = ask(gateway.port, "/u/nowhere/v1/messages", b"{}", {"anthropic-version": "2023-06-01"})
    assert got.status == 404
    assert json.loads(got.body)["type"] == "error"
    assert "nowhere" in json.loads(got.body)["error"]["message"]


def test_a_websocket_is_refused_with_what_to_do(gateway: RunningGateway) -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x", "Sec-WebSocket-Version": "13"}
    got = ask(gateway.port, "/v1/responses", headers=upgrade, method="GET")
    assert got.status == 426
    assert "supports_websockets = false" in json.loads(got.body)["error"]["message"]


def test_an_upstream_that_cannot_be_used_is_told_with_the_cause(gateway: RunningGateway, tmp_path: Path) -> None:
    unusable = {
        f"https://127.0.0.1:{gateway.port}": "no trusted connection can be made to it",
        f"http://{'a' * 70}.example": "its name cannot be resolved",
    }
    for address, cause in unusable.items():
        with running_gateway(address, folder=tmp_path) as other:
            got = ask(other.port, "/v1/messages", b"{}")
            assert got.status == 502
            assert cause in json.loads(got.body)["error"]["message"]


def test_a_fault_of_the_gateway_is_told_in_the_form_of_the_api(tmp_path: Path) -> None:
    with running_gateway("http://127.0.0.1:1", folder=tmp_path) as other:
        assert other.gateway.client is not None
        other.run(other.gateway.client.close())
        got = ask(other.port, "/v1/messages", b"{}")
        assert (got.status, json.loads(got.body)["error"]["type"]) == (500, "gatekeeper_error")


def test_a_dead_upstream_is_an_error_in_the_shape_of_the_api(tmp_path: Path) -> None:
    with running_gateway("http://127.0.0.1:1", folder=tmp_path) as gateway:
        for path, kind in (("/v1/messages", "anthropic"), ("/v1/responses", "openai"), ("/v1/models", "openai")):
            got = ask(gateway.port, path, b"{}" if path != "/v1/models" else b"")
            assert got.status == 502
            error = json.loads(got.body)
            assert (error.get("type") == "error") is (kind == "anthropic")
            assert error["error"]["type"] == "upstream_error"
            assert "upstream default: it cannot be connected to (Connection refused)" in error["error"]["message"]
            assert "check its address" in error["error"]["message"]
        assert gateway.count("cgk_upstream_errors_total", provider="default", cause="connect") == 3


@pytest.mark.parametrize(
    "value", [b"M\xfcller", b"\xff\xfe", b"caf\xc3\xa9", b"\xf4\x8f\xb9\xbc \xf4\x8f\xbb\xbf", b"\x80" * 300]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_header_values_go_on_as_the_received_bytes(
    gateway: RunningGateway, upstream: ScriptedUpstream, value: bytes, method: str
) -> None:
    lines = b"Host: localhost\r\nX-Title: %b\r\nX-Plain: caf\xc3\xa9\r\n" % value
    body = b'{"x":"long old text"}' if method == "POST" else b""
    with RawClient(gateway.port) as client:
        for _ in range(2):  # The connection to the upstream is used again.
            head = b"%b /v1/messages HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n" % (method.encode(), lines, len(body))
            client.send(head + body)
            assert client.answer(method).status == 200
            sent = upstream.received[-1]
            assert (sent.header("x-title"), sent.header("x-plain")) == (value.decode("latin-1"), "caf\u00c3\u00a9")
            assert sent.body == (b'{"x":"[page 1]"}' if body else b"")


@pytest.mark.parametrize("protocol", ["h2c", "TLS/1.0, h2c", "foo"])
def test_another_protocol_that_is_offered_is_not_taken(
    gateway: RunningGateway, upstream: ScriptedUpstream, protocol: str
) -> None:
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": protocol, "HTTP2-Settings": "AAMAAABk"}
    with RawClient(gateway.port) as client:
        client.request("POST", "/v1/messages", b'{"n":1}', offer)
        client.request("POST", "/v1/messages", b'{"n":2}', offer)  # Behind it at once, without waiting.
        assert [client.answer().status for _ in range(2)] == [200, 200]
        client.request("GET", "/v1/models", headers=offer)
        assert client.answer("GET").status == 200
    assert [request.body for request in upstream.received[-3:]] == [b'{"n":1}', b'{"n":2}', b""]
    assert {request.header("upgrade") for request in upstream.received[-3:]} == {None}


@pytest.mark.parametrize("protocols", ["WebSocket", "h2c, websocket", "websocket , h2c"])
def test_a_websocket_among_others_is_refused_too(gateway: RunningGateway, protocols: str) -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": protocols}
    assert ask(gateway.port, "/v1/responses", headers=upgrade, method="GET").status == 426
