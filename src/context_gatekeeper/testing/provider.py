"""FakeProvider: a strict stand-in for a model's service, over real HTTP on the loopback interface.

It speaks MiniMax's two routes, OpenAI-compatible ``/v1/chat/completions`` and
Anthropic-compatible ``/anthropic/v1/messages``, streamed and whole, refuses what a strict service
refuses, and keeps every request::

    with FakeProvider(["The lock expires after 30 s."]) as provider:
        ...                      # send requests to provider.openai_url or provider.anthropic_url
        provider.requests[0].messages

Standard library only.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from context_gatekeeper.testing.answers import chat_body, chat_events, messages_body, messages_events
from context_gatekeeper.testing.checks import chat_fault, messages_fault, read_body
from context_gatekeeper.testing.records import FakeReply, ReceivedRequest

__all__ = ["FakeProvider", "echo_reply"]

CHAT_PATH = "/v1/chat/completions"
MESSAGES_PATH = "/anthropic/v1/messages"
_OK, _BAD_REQUEST, _UNAUTHORISED, _NOT_FOUND, _BAD_METHOD = 200, 400, 401, 404, 405
_ECHOED_CHARS = 60
Script = Sequence[str | FakeReply] | Callable[[ReceivedRequest], str | FakeReply]


def echo_reply(request: ReceivedRequest) -> str:
    """The default answer: quotes the query and the beginning of every context line that was seen."""
    lines = [text.splitlines()[0][:_ECHOED_CHARS] for text in request.context]
    return "\n".join(
        [f"You asked: {request.query}", f"Context lines seen: {len(lines)}", *(f"> {line}" for line in lines)]
    )


class FakeProvider:
    """A server that runs inside a ``with`` block.

    Args:
        replies: a sequence of answers, used one by one (then `echo_reply`), or a function of the request.
        api_key: the key that requests must carry.
        models: names that are known; any name when None.
    """

    def __init__(self, replies: Script = (), *, api_key: str = "test-key", models: Sequence[str] | None = None) -> None:
        self.requests: list[ReceivedRequest] = []
        """Every request that passed the checks, in order of arrival."""
        self.refusals: list[str] = []
        """Why requests were refused, in order."""
        self.api_key = api_key
        self.models = models
        self._replies = replies
        self._used = 0
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    @property
    def url(self) -> str:
        """Address of the server, without a path."""
        if self._server is None:
            raise RuntimeError("FakeProvider: it is not running; use it in a with statement")
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """Base address for OpenAI clients."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """Base address for Anthropic clients."""
        return f"{self.url}/anthropic"

    def take(self, request: ReceivedRequest) -> FakeReply:
        """Keep a good request and choose its answer (called by the server)."""
        with self._lock:
            self.requests.append(request)
            place = self._used
            self._used += 1
        # A function may wait, and must not hold up other requests meanwhile.
        if callable(self._replies):
            chosen = self._replies(request)
        else:
            chosen = self._replies[place] if place < len(self._replies) else echo_reply(request)
        return FakeReply(chosen) if isinstance(chosen, str) else chosen


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, provider: FakeProvider) -> None:
        self.provider = provider
        super().__init__(("127.0.0.1", 0), _Connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left is no error of the test."""


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Requests are kept, not printed."""

    def do_GET(self) -> None:
        self._refuse(_BAD_METHOD, "send POST")

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self.path not in (CHAT_PATH, MESSAGES_PATH):
            self._refuse(_NOT_FOUND, f"no route {self.path}")
            return
        provider = self.server.provider
        is_chat = self.path == CHAT_PATH
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if provider.api_key not in ({given} if is_chat else {given, headers.get("x-api-key")}):
            self._refuse(_UNAUTHORISED, "login fail: please carry the API secret key in the request header (1004)")
            return
        fault, body = read_body(content)
        fault = fault or (chat_fault(body) if is_chat else messages_fault(body, headers))
        if fault is None and provider.models is not None and body["model"] not in provider.models:
            fault = f"unknown model {body['model']!r}"
        if fault is not None:
            self._refuse(_BAD_REQUEST, f"invalid params, {fault} (2013)")
            return
        request = ReceivedRequest(self.path, headers, body)
        self._answer(request, provider.take(request))

    def _answer(self, request: ReceivedRequest, reply: FakeReply) -> None:
        if reply.status != _OK:
            self._refuse(reply.status, reply.text, retry_after=reply.retry_after)
        elif reply.base_resp_code:
            base_resp = {"status_code": reply.base_resp_code, "status_msg": reply.text}
            self._send_json(_OK, {"id": "", "choices": None, "base_resp": base_resp})
        elif request.is_stream:
            events = chat_events if request.path == CHAT_PATH else messages_events
            self._send_events(list(events(request, reply)), breaks_off=reply.breaks_off)
        else:
            whole = chat_body if request.path == CHAT_PATH else messages_body
            self._send_json(_OK, whole(request, reply))

    def _refuse(self, status: int, message: str, *, retry_after: str | None = None) -> None:
        self.server.provider.refusals.append(message)
        kinds = {_BAD_REQUEST: "bad_request_error", _UNAUTHORISED: "authorized_error"}
        error = {"type": kinds.get(status, "api_error"), "message": message, "http_code": str(status)}
        extra = {"retry-after": retry_after} if retry_after else {}
        self._send_json(status, {"type": "error", "error": error, "request_id": "fake"}, extra)

    def _send_json(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        content = json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _send_events(self, events: list[str], *, breaks_off: bool) -> None:
        self.send_response(_OK)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events[: len(events) // 2] if breaks_off else events:
            content = event.encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(content), content))
            self.wfile.flush()
        if breaks_off:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")
