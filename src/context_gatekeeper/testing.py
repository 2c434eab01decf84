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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from context_gatekeeper.core.tokens import MESSAGE_TOKENS, estimate_tokens

__all__ = ["FakeProvider", "FakeReply", "ReceivedRequest", "echo_reply"]

CHAT_PATH = "/v1/chat/completions"
MESSAGES_PATH = "/anthropic/v1/messages"
_PIECE_CHARS = 7
"""Streamed texts are cut after so many characters, in the middle of marks and words."""
_OK, _BAD_REQUEST, _UNAUTHORISED, _NOT_FOUND, _BAD_METHOD = 200, 400, 401, 404, 405
_ECHOED_CHARS = 60


@dataclass(frozen=True, slots=True)
class FakeReply:
    """What the provider answers."""

    text: str = ""
    thinking: str = "Let me look at the context first."
    """Stands as ``<think>`` text on the OpenAI route and as a thinking block on the other; empty for none."""
    status: int = _OK
    """HTTP status; from 300 on ``text`` is the message of the error."""
    base_resp_code: int = 0
    """MiniMax's own error code, sent with status 200; ``text`` is its message."""
    retry_after: str | None = None
    breaks_off: bool = False
    """Close the connection in the middle of a streamed answer."""


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request as it arrived."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Mapping[str, Any]

    @property
    def is_stream(self) -> bool:
        """Whether a streamed answer was asked for."""
        return self.body.get("stream") is True

    @property
    def system(self) -> str:
        """Text of the system prompt, "" when there is none."""
        top = [_content_text(self.body["system"])] if "system" in self.body else []
        listed = [_content_text(m["content"]) for m in self.body["messages"] if m["role"] == "system"]
        return "\n".join(top + listed)

    @property
    def messages(self) -> list[tuple[str, str]]:
        """(role, text) of the messages without system messages."""
        return [(m["role"], _content_text(m["content"])) for m in self.body["messages"] if m["role"] != "system"]

    @property
    def context(self) -> list[str]:
        """Texts of the messages before the last."""
        return [text for _, text in self.messages[:-1]]

    @property
    def query(self) -> str:
        """Text of the last message."""
        return self.messages[-1][1]

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the whole prompt by the fitted estimate, framing of the messages included."""
        texts = [text for _, text in self.messages]
        framing = MESSAGE_TOKENS * len(self.body["messages"])
        return framing + sum(estimate_tokens(text) for text in [self.system, *texts])


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
        fault, body = _read_body(content)
        fault = fault or (_chat_fault(body) if is_chat else _messages_fault(body, headers))
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
            events = _chat_events if request.path == CHAT_PATH else _messages_events
            self._send_events(list(events(request, reply)), breaks_off=reply.breaks_off)
        else:
            whole = _chat_body if request.path == CHAT_PATH else _messages_body
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


# -- checks of requests -----------------------------------------------------------------------


def _read_body(content: bytes) -> tuple[str | None, dict[str, Any]]:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return "the body is no JSON", {}
    return (None, body) if isinstance(body, dict) else ("the body is no JSON object", {})


def _shared_fault(body: Mapping[str, Any]) -> str | None:
    if not isinstance(body.get("model"), str) or not body["model"]:
        return "model is missing"
    if not isinstance(body.get("stream", False), bool):
        return "stream is no boolean"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages is empty"
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return "a message has no role"
        if not _content_text(message.get("content")).strip():
            return f"{message['role']} message has empty content"
    return None


def _chat_fault(body: Mapping[str, Any]) -> str | None:
    fault = _shared_fault(body)
    if fault is not None:
        return fault
    roles = [message["role"] for message in body["messages"]]
    if not set(roles) <= {"system", "user", "assistant"}:
        return "role is not system, user or assistant"
    if "system" in roles[1:]:
        return "a system message is allowed at the start only"
    if roles[-1] != "user":
        return "the last message is not the user's"
    return None


def _messages_fault(body: Mapping[str, Any], headers: Mapping[str, str]) -> str | None:
    fault = _shared_fault(body)
    if fault is not None:
        return fault
    if "anthropic-version" not in headers:
        return "the header anthropic-version is missing"
    limit = body.get("max_tokens")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        return "max_tokens is missing or below 1"
    if "system" in body and not _content_text(body["system"]).strip():
        return "system is empty"
    roles = [message["role"] for message in body["messages"]]
    if roles != [("user", "assistant")[place % 2] for place in range(len(roles))]:
        return "roles must alternate between user and assistant, the user first"
    if roles[-1] != "user":
        return "the last message is not the user's"
    return None


def _content_text(content: object) -> str:
    """Text of a message's content; "" when it is of no allowed form."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        return ""
    texts = [part.get("text") for part in content if part.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str)) if len(texts) == len(content) else ""


# -- answers -----------------------------------------------------------------------------------


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE_CHARS):
        yield text[start : start + _PIECE_CHARS]


def _chat_content(reply: FakeReply) -> str:
    return f"<think>\n{reply.thinking}\n</think>\n\n{reply.text}" if reply.thinking else reply.text


def _chat_frame(request: ReceivedRequest, kind: str) -> dict[str, Any]:
    return {"id": "0fake", "object": kind, "created": 1_764_000_000, "model": request.body["model"]}


def _chat_usage(request: ReceivedRequest, reply: FakeReply) -> dict[str, Any]:
    completion = estimate_tokens(_chat_content(reply))
    return {
        "total_tokens": request.prompt_tokens + completion,
        "total_characters": 0,
        "prompt_tokens": request.prompt_tokens,
        "completion_tokens": completion,
        "completion_tokens_details": {"reasoning_tokens": estimate_tokens(reply.thinking)},
    }


def _chat_body(request: ReceivedRequest, reply: FakeReply) -> dict[str, Any]:
    message = {"role": "assistant", "content": _chat_content(reply), "name": "MiniMax AI", "audio_content": ""}
    return {
        **_chat_frame(request, "chat.completion"),
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": _chat_usage(request, reply),
        "input_sensitive": False,
        "output_sensitive": False,
        "base_resp": {"status_code": 0, "status_msg": ""},
    }


def _chat_events(request: ReceivedRequest, reply: FakeReply) -> Iterator[str]:
    frame = _chat_frame(request, "chat.completion.chunk")
    for piece in _pieces(_chat_content(reply)):
        yield _event({**frame, "choices": [{"index": 0, "delta": {"role": "assistant", "content": piece}}]})
    yield _event({**frame, "choices": [{"index": 0, "finish_reason": "stop", "delta": {"content": ""}}]})
    # The service closes with the whole message once more; a client that adds it up says everything twice.
    whole = _chat_body(request, reply)
    if not (request.body.get("stream_options") or {}).get("include_usage"):
        del whole["usage"]
    yield _event(whole)
    yield "data: [DONE]\n\n"


def _messages_blocks(reply: FakeReply) -> list[dict[str, str]]:
    thinking = {"type": "thinking", "thinking": reply.thinking, "signature": "c2ln"}
    return [*([thinking] if reply.thinking else []), {"type": "text", "text": reply.text}]


def _messages_body(request: ReceivedRequest, reply: FakeReply) -> dict[str, Any]:
    output_tokens = estimate_tokens(reply.thinking) + estimate_tokens(reply.text)
    return {
        "id": "msg_fake",
        "type": "message",
        "role": "assistant",
        "model": request.body["model"],
        "content": _messages_blocks(reply),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": request.prompt_tokens, "output_tokens": output_tokens},
        "base_resp": {"status_code": 0, "status_msg": ""},
    }


def _messages_events(request: ReceivedRequest, reply: FakeReply) -> Iterator[str]:
    whole = _messages_body(request, reply)
    usage = whole["usage"]
    start = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield _named_event({"type": "message_start", "message": start})
    yield _named_event({"type": "ping"})
    for index, block in enumerate(_messages_blocks(reply)):
        kind = block["type"]
        empty = {"type": kind, kind: ""}
        yield _named_event({"type": "content_block_start", "index": index, "content_block": empty})
        for piece in _pieces(block[kind]):
            delta = {"type": f"{kind}_delta", kind: piece}
            yield _named_event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _named_event({"type": "content_block_stop", "index": index})
    yield _named_event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})
    yield _named_event({"type": "message_stop"})


def _event(body: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"


def _named_event(body: Mapping[str, Any]) -> str:
    return f"event: {body['type']}\n{_event(body)}"
