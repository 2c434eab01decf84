"""The client of both routes, over real HTTP."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from contextlib import suppress
from threading import Thread

import pytest

from context_gatekeeper.entrypoints.endpoints import Endpoint, Route
from context_gatekeeper.entrypoints.faults import service_message
from context_gatekeeper.entrypoints.thinking import ReplyPiece
from context_gatekeeper.entrypoints.upstream import ChatClient, Reply
from context_gatekeeper.errors import ConfigError, UpstreamError
from context_gatekeeper.testing import FakeProvider, FakeReply

ROUTES = (Route.CHAT_COMPLETIONS, Route.MESSAGES)
MANY_BYTES = 33 * 1024 * 1024
ASK = [{"role": "user", "content": "你好 redis?"}]


def endpoint(provider: FakeProvider, route: Route, key: str | None = "test-key") -> Endpoint:
    base = provider.openai_url if route is Route.CHAT_COMPLETIONS else f"{provider.anthropic_url}/v1"
    return Endpoint("minimax", f"{base}{route}", route, "MiniMax-M2", key, "MINIMAX_API_KEY")


def ask(
    provider: FakeProvider,
    route: Route,
    messages: list[dict[str, str]],
    *,
    is_stream: bool,
    key: str | None = "test-key",
) -> tuple[Reply, list[ReplyPiece]]:
    pieces: list[ReplyPiece] = []
    with ChatClient(endpoint(provider, route, key)) as client:
        return client.ask(messages, on_piece=pieces.append if is_stream else None), pieces


@pytest.fixture(params=ROUTES, ids=["chat completions", "messages"])
def route(request: pytest.FixtureRequest) -> Route:
    chosen: Route = request.param
    return chosen


@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "whole"])
def test_the_answer_comes_without_thinking_and_with_usage(route: Route, is_stream: bool) -> None:
    answer = "The lock <think>er</think> 锁\u2028 expires.\n\nTwice."
    with FakeProvider([FakeReply(answer, thinking="hm, </th locks")]) as provider:
        reply, pieces = ask(provider, route, ASK, is_stream=is_stream)
        assert reply.text == answer
        assert reply.thinking.strip() == "hm, </th locks"
        assert reply.usage.prompt_tokens == provider.requests[0].prompt_tokens > 0
        assert reply.usage.completion_tokens > 0
    assert provider.requests[0].is_stream is is_stream
    if is_stream:
        assert len(pieces) > 4
        assert "".join(piece.text for piece in pieces if not piece.is_thinking) == answer


@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "whole"])
def test_an_answer_without_thinking_is_whole(route: Route, is_stream: bool) -> None:
    with FakeProvider([FakeReply("Yes.", thinking="")]) as provider:
        reply, _ = ask(provider, route, ASK, is_stream=is_stream)
    assert (reply.text, reply.thinking) == ("Yes.", "")


def test_any_history_is_sent_in_a_form_that_a_strict_service_takes(route: Route) -> None:
    messages = [
        {"role": "system", "content": "language: English"},
        {"role": "assistant", "content": "Welcome."},
        {"role": "user", "content": "one"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": "three"},
        {"role": "user", "content": "four"},
    ]
    with FakeProvider() as provider:
        ask(provider, route, messages, is_stream=True)
    (request,) = provider.requests
    sent = "\n".join([request.system, *(text for _, text in request.messages)])
    assert "language: English" in request.system
    assert all(message["content"] in sent for message in messages)
    assert request.query == "four"


def test_halves_of_surrogate_pairs_do_not_stop_the_request(route: Route) -> None:
    with FakeProvider() as provider:
        ask(provider, route, [{"role": "user", "content": "cut \ud83d off, whole \U0001f600"}], is_stream=True)
    assert provider.requests[0].query == "cut \ufffd off, whole \U0001f600"


@pytest.mark.parametrize(
    ("reply", "cause", "next_step"),
    [
        (FakeReply("no such key", status=401), "401 (no such key)", "check MINIMAX_API_KEY"),
        (FakeReply("model is gone", status=404), "404 (model is gone)", "and the model MiniMax-M2"),
        (FakeReply("slow down", status=429, retry_after="7"), "429 (slow down)", "wait 7 s"),
        (FakeReply("too long", status=413), "413 (too long)", "lower --budget"),
        (FakeReply("oops", status=503), "503 (oops)", "later"),
        (FakeReply("odd", status=422), "422 (odd)", "the request"),
        (FakeReply("over there", status=308), "308 (over there)", "check the address"),
        (FakeReply("login fail", base_resp_code=1004), "code 1004 (login fail)", "check MINIMAX_API_KEY"),
        (FakeReply("insufficient balance", base_resp_code=1008), "code 1008", "top up"),
        (FakeReply("unknown", base_resp_code=1000), "code 1000", "later"),
        (FakeReply("", thinking="only thoughts"), "it gave no answer", "ask again"),
        (FakeReply("x" * 100, breaks_off=True), "the connection broke", "ask again"),
    ],
)
def test_a_refusal_says_what_to_do(route: Route, reply: FakeReply, cause: str, next_step: str) -> None:
    with FakeProvider([reply]) as provider, pytest.raises(UpstreamError) as caught:
        ask(provider, route, ASK, is_stream=True)
    assert caught.value.thing == "minimax"
    assert cause in caught.value.cause
    assert next_step in caught.value.next_step


def test_a_wrong_key_is_refused_and_never_repeated_in_the_error(route: Route) -> None:
    with FakeProvider() as provider, pytest.raises(UpstreamError, match="check MINIMAX_API_KEY") as caught:
        ask(provider, route, ASK, is_stream=False, key="sk-very-secret")
    assert "sk-very-secret" not in str(caught.value)
    with (
        FakeProvider([FakeReply("bad key test-key given", status=400)]) as provider,
        pytest.raises(UpstreamError) as echoed,
    ):
        ask(provider, route, ASK, is_stream=False)
    assert "bad key <key> given" in str(echoed.value)


def test_a_long_message_of_the_service_is_one_short_line(route: Route) -> None:
    with FakeProvider([FakeReply("line\n" * 500, status=500)]) as provider, pytest.raises(UpstreamError) as caught:
        ask(provider, route, ASK, is_stream=True)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_thinking_in_a_field_of_its_own_is_thinking() -> None:
    content = (
        b'data: {"choices": [{"delta": {"reasoning_content": "hm"}}]}\n\n'
        b'data: {"choices": [{"delta": {"content": "ha"}}]}\n\ndata: [DONE]\n\n'
    )
    reply = ask_raw("text/event-stream", content)
    assert (reply.text, reply.thinking) == ("ha", "hm")


def test_a_refusal_that_is_no_json_is_quoted_as_it_is(route: Route) -> None:
    assert service_message("<h1>Bad\ngateway</h1>", Endpoint("x", "u", route, "m", "Bad")) == "<h1><key> gateway</h1>"


def test_an_address_that_is_none_is_an_error_of_the_settings() -> None:
    endpoint = Endpoint("x", "http://[::bad/v1", Route.CHAT_COMPLETIONS, "m")
    with ChatClient(endpoint) as client, pytest.raises(ConfigError, match="address http://"):
        client.ask(ASK)


class RawServer:
    """Accepts one connection and answers with fixed bytes."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1/chat/completions"

    def serve(self) -> None:
        connection, _ = self._socket.accept()
        with connection, self._socket:
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(65536)
            head, _, body = request.partition(b"\r\n\r\n")
            (length,) = re.findall(rb"content-length: (\d+)", head, re.IGNORECASE)
            missing = int(length) - len(body)
            while missing > 0:  # what is left unread would break the connection off
                missing -= len(connection.recv(65536))
            with suppress(ConnectionError):  # a client that has heard enough hangs up
                connection.sendall(self._answer)


def ask_raw(content_type: str, content: bytes) -> Reply:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {len(content)}\r\n\r\n"
    return ask_bytes(head.encode() + content)


def ask_bytes(answer: bytes) -> Reply:
    server = RawServer(answer)
    thread = Thread(target=server.serve)
    thread.start()
    try:
        with ChatClient(Endpoint("odd", server.url, Route.CHAT_COMPLETIONS, "m")) as client:
            return client.ask(ASK, on_piece=lambda _: None)
    finally:
        thread.join()


@pytest.mark.parametrize(
    ("content_type", "content", "cause"),
    [
        ("text/html", b"<html>not an API</html>", "something else than a JSON object"),
        ("application/json", b"[1]", "something else than a JSON object"),
        ("application/json", b"{}", "ended in the middle"),
        ("application/json", b'{"choices": [{"message": {"content": null}}]}', "gave no answer"),
        ("text/event-stream", b"", "ended in the middle"),
        ("text/event-stream", b'data: {"choices": [{"delta": {"content": "ha"}}]}\n\n', "ended in the middle"),
        ("text/event-stream", b"data: {broken\n\n", "no JSON object"),
        ("text/event-stream", b'data: {"error": {"message": "overloaded"}}\n\n', "broke off (overloaded)"),
    ],
)
def test_an_answer_of_unknown_form_is_an_error_and_never_half_a_turn(
    content_type: str, content: bytes, cause: str
) -> None:
    with pytest.raises(UpstreamError) as caught:
        ask_raw(content_type, content)
    assert cause in str(caught.value)


def test_a_stream_without_a_done_mark_counts_when_a_finish_reason_came() -> None:
    content = b'data: {"choices": [{"delta": {"content": "ha"}, "finish_reason": "length"}]}\n\n'
    assert ask_raw("text/event-stream", content).text == "ha"


def test_a_service_that_is_not_there_is_named_with_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1/chat/completions"
    client = ChatClient(Endpoint("nobody", url, Route.CHAT_COMPLETIONS, "m"))
    with client, pytest.raises(UpstreamError, match="cannot be reached") as caught:
        client.ask(ASK)
    assert caught.value.next_step == f"check the address {url}"


def test_a_silent_service_is_given_up_after_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1/chat/completions"
        endpoint = Endpoint("silent", url, Route.CHAT_COMPLETIONS, "m")
        with (
            ChatClient(endpoint, timeout_seconds=0.05) as client,
            pytest.raises(UpstreamError, match=r"silent for 0\.05 s"),
        ):
            client.ask(ASK)


def test_without_httpx_the_error_names_the_install_command() -> None:
    code = (
        "import sys; sys.modules['httpx'] = None\n"
        "from context_gatekeeper.entrypoints.upstream import ChatClient\n"
        "from context_gatekeeper.errors import ConfigError\n"
        "try: ChatClient(None)\n"
        "except ConfigError as error: print(error)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == 'httpx: it is not installed; run: pip install "context-gatekeeper[chat]"\n'


@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        ("text/event-stream", b"data: " + b"x" * MANY_BYTES),
        ("text/event-stream", (b'data: {"choices": [{"delta": {"content": "' + b"on " * 9999 + b'"}}]}\n\n') * 1200),
        ("text/event-stream", (b":" + b" " * 99_999 + b"\n") * (MANY_BYTES // 100_000)),
        ("application/json", b" " * MANY_BYTES),
    ],
    ids=["one line", "many pieces", "comments", "blanks"],
)
def test_an_answer_without_end_is_given_up_before_it_fills_the_memory(content_type: str, content: bytes) -> None:
    with pytest.raises(UpstreamError, match=r"odd: its answer is longer than 32 MiB; ask again"):
        ask_raw(content_type, content)


def test_blanks_before_an_answer_cost_their_length() -> None:
    blank = b'data: {"choices": [{"delta": {"content": "' + b" " * 1000 + b'"}}]}\n\n'
    said = b'data: {"choices": [{"delta": {"content": "ha"}, "finish_reason": "stop"}]}\n\n'
    assert ask_raw("text/event-stream", blank * 20_000 + said).text == "ha"


@pytest.mark.parametrize("count", ["9" * 400, "1e400", "-5", "true", '"7"', "[7]", "null"])
def test_a_count_that_no_call_can_have_is_no_count(count: str) -> None:
    said = '{"choices": [{"delta": {"content": "ha"}, "finish_reason": "stop"}]'
    event = f'data: {said}, "usage": {{"prompt_tokens": {count}}}}}\n\n'
    assert ask_raw("text/event-stream", event.encode()).usage.prompt_tokens == 0


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (b"", "the connection broke"),
        (b"\xff\xfe garbage\r\n\r\n", "the connection broke"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{", "the connection broke"),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nnope", "the connection broke"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "something else than a JSON object"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n\r\n" + b"[" * 200_000, "something else than a JSON object"),
        (b"HTTP/1.1 502 Bad\r\ncontent-length: 9000000\r\n\r\n" + b"x" * 9_000_000, "it answered 502 (xxx"),
        (b"HTTP/1.1 500 Oops\r\ncontent-type: text/plain; charset=no\r\ncontent-length: 1\r\n\r\n\xff", "500 (\ufffd)"),
    ],
)
def test_whatever_a_service_sends_is_an_error_that_names_it(answer: bytes, cause: str) -> None:
    with pytest.raises(UpstreamError) as caught:
        ask_bytes(answer)
    assert caught.value.thing == "odd"
    assert cause in caught.value.cause
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("name", "value"),
    [("ALL_PROXY", "socks5://127.0.0.1:9"), ("SSL_CERT_FILE", "gone.pem"), ("SSL_CERT_FILE", __file__)],
)
def test_a_proxy_or_certificate_that_cannot_be_used_is_named_with_its_variables(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=rf"proxy or certificates .*{name}"):
        ChatClient(Endpoint("odd", "http://127.0.0.1:9/v1/chat/completions", Route.CHAT_COMPLETIONS, "m"))
