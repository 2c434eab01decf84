"""Requests to a fake provider over real sockets."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any
from urllib.parse import urlsplit

from context_gatekeeper.testing import FakeProvider

OPUS = "claude-opus-4-8"
BOUND = "claude-opus-5-5"
GPT = "gpt-5.6"
KEYS = {"authorization": "Bearer test-key", "x-api-key": "test-key", "anthropic-version": "2023-06-01"}
MESSAGES, CHAT, RESPONSES = "/v1/messages", "/v1/chat/completions", "/v1/responses"


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def ask(text: str = "hi", **more: Any) -> dict[str, Any]:
    """A request to the Messages API."""
    return {"model": OPUS, "max_tokens": 9, "messages": [said(text)], **more}


def chat(text: str = "hi", **more: Any) -> dict[str, Any]:
    return {"model": GPT, "messages": [said(text)], **more}


def responses(given: Any = "hi", **more: Any) -> dict[str, Any]:
    return {"model": GPT, "input": given, **more}


def bodies() -> list[tuple[str, dict[str, Any]]]:
    """A route and a request of each API."""
    return [(MESSAGES, ask()), (CHAT, chat()), (RESPONSES, responses())]


class Received:
    """An answer as it came."""

    def __init__(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.status = status
        self.headers = headers
        self.content = content

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of a stream, without ``[DONE]``."""
        lines = [line for line in self.content.decode().splitlines() if line.startswith("data: {")]
        return [json.loads(line[len("data: ") :]) for line in lines]

    @property
    def kinds(self) -> list[str]:
        """Types of the events, those that repeat only once."""
        kinds = [event["type"] for event in self.events]
        return [kind for place, kind in enumerate(kinds) if place == 0 or kinds[place - 1] != kind]


def send(
    provider: FakeProvider, path: str, body: Any = None, *, method: str = "POST", headers: Any = None, **more: str
) -> Received:
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection(urlsplit(provider.url).netloc, timeout=30)
    content = body if body is None or isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    try:
        connection.request(method, path, content, {**(KEYS if headers is None else headers), **more})
        response = connection.getresponse()
        answer = response.read()
        return Received(response.status, {name.lower(): value for name, value in response.getheaders()}, answer)
    finally:
        connection.close()


def connect(provider: FakeProvider) -> socket.socket:
    """A raw connection."""
    address = urlsplit(provider.url)
    return socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=30)


def request_bytes(path: str, body: Any, version: str = "HTTP/1.1") -> bytes:
    """A request as it goes over the wire."""
    content = json.dumps(body).encode()
    lines = [f"POST {path} {version}", "host: x", f"content-length: {len(content)}"]
    lines += [f"{name}: {value}" for name, value in KEYS.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def read_to_end(connection: socket.socket) -> tuple[bytes, bool]:
    """(everything that came, whether the end was a reset)."""
    content = b""
    try:
        while piece := connection.recv(65536):
            content += piece
    except ConnectionResetError:
        return content, True
    return content, False


def unchunked(answer: bytes) -> bytes:
    """The body of an answer in chunks, as far as it came."""
    _, _, rest = answer.partition(b"\r\n\r\n")
    body = b""
    while rest:
        line, _, rest = rest.partition(b"\r\n")
        size = int(line, 16) if line else 0
        body += rest[:size]
        rest = rest[size + 2 :]
    return body
