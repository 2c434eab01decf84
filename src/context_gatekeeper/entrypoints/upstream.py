"""Client of a model's service: OpenAI's Chat Completions and Anthropic's Messages, streamed or whole.

Needs the extra ``chat`` (httpx); it is imported when a client is made.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from context_gatekeeper.entrypoints.endpoints import Endpoint, Route
from context_gatekeeper.entrypoints.faults import refusal
from context_gatekeeper.entrypoints.replies import ReplyReader, Usage, open_reader
from context_gatekeeper.entrypoints.thinking import ReplyPiece
from context_gatekeeper.errors import ConfigError, UpstreamError
from context_gatekeeper.wire.sse import read_events

if TYPE_CHECKING:
    import httpx

__all__ = ["ChatClient", "Reply"]

CONNECT_TIMEOUT_SECONDS = 10.0
CONNECT_ATTEMPTS = 3
"""Only connecting is tried again: a request that was sent may have been answered and billed."""
CONNECT_PAUSE_SECONDS = 0.2
_FIRST_REFUSAL = 300
_MOST_ANSWER_BYTES = 32 * 1024 * 1024
"""No model says so much in one answer; a service that goes on and on must not fill the memory."""
_READ_REFUSAL_BYTES = 64 * 1024
"""What is read of a refusal's text: its message is shortened anyway."""
_ANTHROPIC_VERSION = "2023-06-01"
_LEADING_ANSWER = "Said before by the assistant:"


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply."""

    text: str
    """The answer, without thinking."""
    thinking: str
    usage: Usage


class ChatClient:
    """Sends chat messages to one endpoint.

    Args:
        endpoint: the service.
        timeout_seconds: how long the service may stay silent.
        max_tokens: longest answer, where the route wants a limit.

    Raises:
        ConfigError: httpx is not installed, or the proxy or certificates that the environment names cannot be used.
    """

    def __init__(self, endpoint: Endpoint, *, timeout_seconds: float = 120.0, max_tokens: int = 4096) -> None:
        try:
            import httpx
        except ImportError as missing:
            raise ConfigError(
                "httpx", "it is not installed", 'run: pip install "context-gatekeeper[chat]"'
            ) from missing
        self._httpx = httpx
        self.endpoint = endpoint
        self._timeout_seconds = timeout_seconds
        self._max_tokens = max_tokens
        try:
            self._client = httpx.Client(timeout=httpx.Timeout(timeout_seconds, connect=CONNECT_TIMEOUT_SECONDS))
        except (ImportError, OSError, ValueError, httpx.InvalidURL) as error:
            # httpx reads both from the environment; SOCKS wants a package of its own.
            raise ConfigError(
                "proxy or certificates of the environment",
                f"they cannot be used ({error})",
                "correct or unset ALL_PROXY, HTTP_PROXY, HTTPS_PROXY, SSL_CERT_FILE and SSL_CERT_DIR",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        self._client.close()

    def ask(
        self, messages: Sequence[Mapping[str, str]], *, on_piece: Callable[[ReplyPiece], None] | None = None
    ) -> Reply:
        """Send ``messages`` and return the reply when it is whole.

        Args:
            messages: chat messages (``role`` system, user or assistant, ``content``); the last is the user's.
            on_piece: called with every piece as it arrives; without it the reply is not streamed.

        Raises:
            UpstreamError: the service cannot be reached, refused, broke off or gave no answer.
        """
        body = self._body(messages, is_stream=on_piece is not None)
        reader = open_reader(self.endpoint)
        pieces: list[ReplyPiece] = []
        with self._sent(body) as response:
            for piece in self._read(response, reader):
                pieces.append(piece)
                if on_piece is not None:
                    on_piece(piece)
        if not reader.is_finished:
            raise UpstreamError(self.endpoint.name, "the answer ended in the middle", "ask again")
        text = "".join(piece.text for piece in pieces if not piece.is_thinking).strip()
        if not text:
            raise UpstreamError(self.endpoint.name, "it gave no answer", "ask again or raise CGK_MAX_TOKENS")
        return Reply(text, "".join(piece.text for piece in pieces if piece.is_thinking), reader.usage)

    def _body(self, messages: Sequence[Mapping[str, str]], *, is_stream: bool) -> bytes:
        clean = [{"role": message["role"], "content": _encodable(message["content"])} for message in messages]
        body: dict[str, Any] = {"model": self.endpoint.model, "stream": is_stream}
        if self.endpoint.route is Route.MESSAGES:
            body["max_tokens"] = self._max_tokens
            body.update(_messages_form(clean))
        else:
            body["messages"] = clean
            if is_stream:
                body["stream_options"] = {"include_usage": True}
        return json.dumps(body, ensure_ascii=False).encode()

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json"}
        key = self.endpoint.api_key
        if self.endpoint.route is Route.MESSAGES:
            headers["anthropic-version"] = _ANTHROPIC_VERSION
            if key:
                headers["x-api-key"] = key
        elif key:
            headers["authorization"] = f"Bearer {key}"
        return headers

    @contextmanager
    def _sent(self, body: bytes) -> Iterator[httpx.Response]:
        """The response to ``body``, its content not read yet; transport errors become UpstreamError."""
        httpx, name = self._httpx, self.endpoint.name
        try:
            response = self._connected(body)
            try:
                yield response
            finally:
                response.close()
        except httpx.ConnectError as error:
            raise UpstreamError(
                name, f"it cannot be reached ({error})", f"check the address {self.endpoint.shown_url}"
            ) from error
        except httpx.TimeoutException as error:
            raise UpstreamError(
                name,
                f"it was silent for {self._timeout_seconds:g} s ({type(error).__name__})",
                "ask again or raise CGK_TIMEOUT",
            ) from error
        except httpx.InvalidURL as error:
            raise ConfigError(f"address {self.endpoint.shown_url}", str(error), "correct it") from error
        except httpx.HTTPError as error:
            raise UpstreamError(name, f"the connection broke ({error or type(error).__name__})", "ask again") from error

    def _connected(self, body: bytes) -> httpx.Response:
        httpx = self._httpx
        for attempt in range(1, CONNECT_ATTEMPTS + 1):
            request = self._client.build_request("POST", self.endpoint.url, content=body, headers=self._headers())
            try:
                return self._client.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if attempt == CONNECT_ATTEMPTS:
                    raise
                time.sleep(CONNECT_PAUSE_SECONDS * attempt)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _read(self, response: httpx.Response, reader: ReplyReader) -> Iterator[ReplyPiece]:
        if response.status_code >= _FIRST_REFUSAL:
            text = _beginning(response.iter_bytes(), _READ_REFUSAL_BYTES).decode("utf-8", "replace")
            raise refusal(self.endpoint, response.status_code, text, retry_after=response.headers.get("retry-after"))
        chunks = self._bounded(response.iter_bytes())
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            for event in read_events(chunks):
                yield from reader.read_event(event.data)
            yield from reader.close()
            return
        content = b"".join(chunks)
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise UpstreamError(
                self.endpoint.name,
                "it sent something else than a JSON object",
                f"check the address {self.endpoint.shown_url}",
            )
        yield from reader.read_body(body)

    def _bounded(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The chunks, as long as they are no more than an answer can be."""
        total_bytes = 0
        for chunk in chunks:
            total_bytes += len(chunk)
            if total_bytes > _MOST_ANSWER_BYTES:
                raise UpstreamError(
                    self.endpoint.name,
                    f"its answer is longer than {_MOST_ANSWER_BYTES // 2**20} MiB",
                    "ask again, or ask for less",
                )
            yield chunk


def _beginning(chunks: Iterator[bytes], most_bytes: int) -> bytes:
    """The first bytes of a stream; the rest is not read."""
    found = b""
    for chunk in chunks:
        found += chunk
        if len(found) >= most_bytes:
            break
    return found[:most_bytes]


def _messages_form(messages: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Messages as Anthropic's route wants them: system apart, the user first, roles in turn."""
    system = [message["content"] for message in messages if message["role"] == "system"]
    turns: list[dict[str, str]] = []
    for message in messages:
        if message["role"] == "system":
            continue
        if not turns and message["role"] == "assistant":
            system.append(f"{_LEADING_ANSWER} {message['content']}")
        elif turns and turns[-1]["role"] == message["role"]:
            turns[-1]["content"] += f"\n\n{message['content']}"
        else:
            turns.append({"role": message["role"], "content": message["content"]})
    return {"messages": turns, **({"system": "\n\n".join(system)} if system else {})}


def _encodable(text: str) -> str:
    """``text`` with halves of surrogate pairs, which no JSON body can carry, replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
