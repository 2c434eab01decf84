"""FakeProvider: a strict stand-in for a model's service, over real HTTP on the loopback interface.

It speaks Anthropic Messages, OpenAI Chat Completions and OpenAI Responses, streamed and whole, scripts text, thinking
and tool calls, refuses what the real service refuses, simulates its prompt cache, and keeps every request::

    with FakeProvider(["The lock expires after 30 s."]) as provider:
        ...                      # send requests to provider.openai_url or provider.anthropic_url
        provider.requests[0].messages
        provider.totals.read     # prompt tokens that came from the cache

Standard library only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from context_gatekeeper.core.economics import PriceProfile
from context_gatekeeper.testing.http_server import HttpServer
from context_gatekeeper.testing.journal import Journal, PrefixBreak, conversation_key
from context_gatekeeper.testing.records import ReceivedRequest, RequestUsage
from context_gatekeeper.testing.service import FaultScript, Script, Service, ServiceSettings
from context_gatekeeper.testing.signatures import binds_whole_prefix

__all__ = ["FakeProvider", "echo_reply", "speaks_minimax"]

_ECHOED_CHARS = 60
_SCRIPT_THREADS = 64
_OTHER_SERVICES = ("claude", "gpt", "o1", "o3", "o4", "codex", "chatgpt", "deepseek", "gemini")


def echo_reply(request: ReceivedRequest) -> str:
    """The default answer: quotes the query and the beginning of every context line that was seen."""
    lines = [text.splitlines()[0][:_ECHOED_CHARS] for text in request.context if text]
    return "\n".join(
        [f"You asked: {request.query}", f"Context lines seen: {len(lines)}", *(f"> {line}" for line in lines)]
    )


def speaks_minimax(model: str) -> bool:
    """Whether a model is answered in MiniMax's form: every one that has no name of another service's."""
    return bool(model) and not model.startswith(_OTHER_SERVICES)


class FakeProvider:
    """A server that runs inside a ``with`` block.

    Routes: ``/v1/messages`` (also ``/count_tokens``), ``/v1/chat/completions``, ``/v1/responses`` (also ``/compact``,
    ``/input_tokens``), ``/v1/models``, all of them below ``/anthropic`` too. On ``/v1/chat/completions`` and
    ``/anthropic/v1/messages`` models of no other service's name are MiniMax's: its checks, errors and forms of answer,
    and no cache. ``context_management`` is checked everywhere else, and old tool results are cleared.

    Args:
        replies: a sequence of answers, used one by one (then `echo_reply`), or a function of the request.
        api_key: the key that requests must carry.
        models: names that are known; any name when None.
        clock: seconds, for what the caches keep.
        faults: what goes wrong: one for each answered request in order, or a function of the request. A fault with
            a status uses up no reply. `FakeReply.fault` goes before it.
        binds_prefix: whether a model's thinking is bound to everything before it.
        speaks_minimax: whether a model is MiniMax's.
        checks_thinking: whether signatures of thinking are checked; off for histories that others have made.
        strict_roles: refuse two messages of one role one behind the other, which the Messages API joins.
        piece_chars: streamed texts are cut after so many characters.
        interval: seconds between two events of a stream.
        port: to listen on; a free one for 0.
    """

    def __init__(
        self,
        replies: Script = (),
        *,
        api_key: str = "test-key",
        models: Sequence[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        faults: FaultScript = (),
        binds_prefix: Callable[[str], bool] = binds_whole_prefix,
        speaks_minimax: Callable[[str], bool] = speaks_minimax,
        checks_thinking: bool = True,
        strict_roles: bool = False,
        piece_chars: int = 7,
        interval: float = 0.0,
        port: int = 0,
    ) -> None:
        self.api_key = api_key
        self.models = models
        self._settings = ServiceSettings(
            replies, echo_reply, api_key, models, clock, faults, binds_prefix, speaks_minimax, checks_thinking,
            strict_roles, piece_chars, interval,
        )  # fmt: skip
        self._port = port
        self._journal = Journal()
        self._server: HttpServer | None = None
        self._executor: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        self._executor = ThreadPoolExecutor(_SCRIPT_THREADS, "fake-provider-script")
        service = Service(self._settings, self._journal, self._executor)
        self._server = HttpServer(service.answer, service.hung_up)
        self._server.start(self._port)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None and self._executor is not None:
            self._server.stop()
            self._executor.shutdown(wait=False, cancel_futures=True)

    @property
    def url(self) -> str:
        """Address of the server, without a path."""
        if self._server is None:
            raise RuntimeError("FakeProvider: it is not running; use it in a with statement")
        return f"http://127.0.0.1:{self._server.port}"

    @property
    def openai_url(self) -> str:
        """Base address for OpenAI clients."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """Base address for Anthropic clients; `url` serves as well."""
        return f"{self.url}/anthropic"

    # -- the log --------------------------------------------------------------------------

    @property
    def requests(self) -> list[ReceivedRequest]:
        """Every request to a model that passed the checks, in order of arrival."""
        return self._journal.requests

    @property
    def counted(self) -> list[ReceivedRequest]:
        """The same of the routes that count tokens."""
        return self._journal.counted

    @property
    def log(self) -> list[ReceivedRequest]:
        """Everything that arrived, refused or not."""
        return self._journal.log

    @property
    def refusals(self) -> list[str]:
        """Why requests were refused, in order."""
        return self._journal.refusals

    @property
    def hangups(self) -> int:
        """Answers whose client left before their end."""
        return self._journal.hangups

    @property
    def finished(self) -> int:
        """Answers that were sent to their end, or to where their fault broke them off."""
        return self._journal.finished

    def wait_until(self, condition: Callable[[FakeProvider], bool], seconds: float = 10.0) -> bool:
        """Wait until ``condition`` of this provider holds; whether it does within ``seconds``."""
        return self._journal.wait_until(lambda: condition(self), seconds)

    def release_stalls(self) -> None:
        """Let every answer go on that stalls now."""
        if self._server is not None:
            self._server.release_stalls()

    # -- figures --------------------------------------------------------------------------

    @property
    def totals(self) -> RequestUsage:
        """Tokens of all requests."""
        return self._journal.totals

    def bill(self, prices: PriceProfile) -> float:
        """Price of all requests, in plain input tokens."""
        return self._journal.bill(prices)

    def prefix_breaks(self, key: Callable[[ReceivedRequest], Hashable] = conversation_key) -> list[PrefixBreak]:
        """Requests that do not extend the one before them in their conversation, which ``key`` names."""
        return self._journal.prefix_breaks(key)
