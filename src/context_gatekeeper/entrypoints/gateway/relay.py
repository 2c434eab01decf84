"""The way of one request through the gateway and of its answer back, byte for byte."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, cast

import aiohttp
from multidict import CIMultiDict

from context_gatekeeper.config_gateway import GatewayConfig
from context_gatekeeper.entrypoints.gateway.codings import decode_beginning_aside
from context_gatekeeper.entrypoints.gateway.decide import OFF, UNCHANGED, Decider, Decision
from context_gatekeeper.entrypoints.gateway.guard import send_error
from context_gatekeeper.entrypoints.gateway.headers import (
    NOTE_HEADER,
    RawHeaders,
    answer_headers,
    forwarded_headers,
)
from context_gatekeeper.entrypoints.gateway.metrics import GatewayMetrics
from context_gatekeeper.entrypoints.gateway.own_calls import Declared, OwnCalls, is_hidden
from context_gatekeeper.entrypoints.gateway.planner_process import PlannerProcess
from context_gatekeeper.entrypoints.gateway.request_body import (
    BodyTooLargeError,
    ClientGoneError,
    ClientSilentError,
    SentOnceBody,
    StreamedBody,
    read_body,
)
from context_gatekeeper.entrypoints.gateway.routes import Target, UnknownUpstreamError, find_target, is_ended
from context_gatekeeper.entrypoints.gateway.second_try import Answered, SecondTry
from context_gatekeeper.entrypoints.gateway.switch import KillSwitch
from context_gatekeeper.entrypoints.gateway.tee import AnswerCopy, CopyBudget
from context_gatekeeper.entrypoints.gateway.upstream_client import (
    OutgoingRequest,
    UpstreamClient,
    UpstreamUnreachableError,
)
from context_gatekeeper.gateway.port import Answer
from context_gatekeeper.wire.native import with_betas

__all__ = ["Relay"]

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_BETA_HEADER = "anthropic-beta"
_STORE_HEADER = b"x-gatekeeper-store"
"""Says ``failing`` while conversations cannot be stored."""
_LOGGER = logging.getLogger(__name__)
_BAD_REQUEST, _NOT_FOUND, _TIMEOUT, _TOO_LARGE, _INTERNAL = 400, 404, 408, 413, 500
_NOT_MODIFIED = 304
_MOST_COPIED_BYTES = 256 * 1024 * 1024
_SHADOW_WORD, _OFF_WORD = b"shadow", b"off"


@dataclass(slots=True)
class _Exchange:
    """One request and what is known of its answer."""

    method: str
    headers: RawHeaders
    """Lower-case names, as received."""
    found: Mapping[bytes, bytes]
    query: bytes
    target: Target
    receive: Receive
    send: Send
    decision: Decision
    sent_at: float = 0.0
    has_begun: bool = False
    """Whether the client got the head of an answer."""
    status: int = 0
    """Of the upstream's answer; 0 while there is none."""
    content_type: str = ""
    content_coding: str = ""
    is_complete: bool = False
    answer_copy: AnswerCopy | None = None
    betas: tuple[str, ...] = ()
    """What ``anthropic-beta`` holds beside the client's own."""
    takes_own_tool: bool = False
    """Whether the gateway's own tool may be declared in it."""
    declared: Declared | None = None
    """What was sent, where the tool is declared in it."""
    held_bytes: int = 0
    """Of the client's own body, kept for a second try."""

    @property
    def url(self) -> str:
        """Where it goes, with the query as received."""
        return f"{self.target.url}?{self.query.decode('latin-1')}" if self.query else self.target.url


class Relay:
    """Everything that is not the gateway's own (an ASGI application).

    Args:
        config: limits.
        planner: hears of answers.
        decider: plans requests.
        client: asks the upstreams.
        metrics: counts.
        switch: turns planning off.
    """

    def __init__(
        self,
        config: GatewayConfig,
        planner: PlannerProcess,
        decider: Decider,
        client: UpstreamClient,
        metrics: GatewayMetrics,
        switch: KillSwitch,
    ) -> None:
        self._config = config
        self._planner = planner
        self._decider = decider
        self._client = client
        self._metrics = metrics
        self._switch = switch
        self._second_try = SecondTry(decider, metrics)
        self._own_calls = OwnCalls(planner, metrics, seconds=config.repair_seconds)
        self._copies = CopyBudget(_MOST_COPIED_BYTES)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Relay one request and its answer."""
        headers: RawHeaders = scope["headers"]
        found = dict(headers)
        raw_path = scope["raw_path"].decode("latin-1")
        is_anthropic = b"anthropic-version" in found
        if not raw_path.startswith("/"):
            await send_error(send, _BAD_REQUEST, "path: it does not begin with /", is_anthropic=is_anthropic)
            return
        try:
            target = find_target(self._config, scope["method"], raw_path, found)
        except UnknownUpstreamError as unknown:
            message = f"upstream {unknown}: it is not configured for this API; see [gateway.upstreams] in the settings"
            await send_error(send, _NOT_FOUND, message, is_anthropic=is_anthropic)
            return
        exchange = _Exchange(
            scope["method"], headers, found, scope["query_string"], target, receive, send, Decision(b"", UNCHANGED)
        )
        self._metrics.open_requests += 1
        try:
            await self._serve(exchange)
        finally:
            self._metrics.open_requests -= 1
            self._metrics.count(
                "cgk_requests_total",
                provider=target.upstream,
                route=target.route or "other",
                decision=exchange.decision.note,
            )

    async def _serve(self, exchange: _Exchange) -> None:
        try:
            request = await self._outgoing(exchange)
            await self._exchange_until_gone(exchange, request)
        except ClientGoneError:
            self._metrics.count("cgk_broken_answers_total", by="client")
        except BodyTooLargeError:
            limit = self._config.max_body_bytes
            message = f"body: more than {limit} bytes; send less, or raise [gateway] max_body_bytes"
            await self._refuse(exchange, _TOO_LARGE, message, "request_too_large")
        except ClientSilentError as fault:
            message = f"body: {fault}; send the request again"
            await self._refuse(exchange, _TIMEOUT, message, "request_timeout")
        except UpstreamUnreachableError as failure:
            self._metrics.count("cgk_upstream_errors_total", provider=exchange.target.upstream, cause=failure.kind)
            message = f"upstream {exchange.target.upstream}: {failure.cause}; {failure.next_step}"
            await self._refuse(exchange, failure.status, message, "upstream_error")
        except Exception as error:  # noqa: BLE001 - the client is told in its API's form, and the log nothing of it
            _LOGGER.warning("a request failed in the gateway with %s", type(error).__name__)
            if not exchange.has_begun:
                message = f"gateway: it failed ({type(error).__name__}); send the request again, or past the gateway"
                await self._refuse(exchange, _INTERNAL, message, "gatekeeper_error")
        finally:
            self._let_own_go(exchange)
            await self._observe(exchange)

    async def _refuse(self, exchange: _Exchange, status: int, message: str, kind: str) -> None:
        note = exchange.decision.note
        is_anthropic = exchange.target.is_anthropic
        await send_error(exchange.send, status, message, is_anthropic=is_anthropic, kind=kind, note=note)

    async def _outgoing(self, exchange: _Exchange) -> OutgoingRequest:
        """The request for the upstream. Raises BodyTooLargeError, ClientGoneError and ClientSilentError."""
        is_off = self._switch.is_off or exchange.found.get(NOTE_HEADER, b"").strip().lower() == _OFF_WORD
        if is_off:
            exchange.decision.note = OFF
        if not exchange.target.route:
            headers = forwarded_headers(exchange.headers, is_edited=False)
            return OutgoingRequest(exchange.method, exchange.url, headers, self._streamed_body(exchange, headers))
        body = await read_body(
            exchange.receive,
            _declared_bytes(exchange.found),
            most_bytes=self._config.max_body_bytes,
            idle_seconds=self._config.receive_seconds,
        )
        if is_off:
            exchange.decision.body = body
        else:
            wants_shadow = exchange.found.get(NOTE_HEADER, b"").strip().lower() == _SHADOW_WORD
            exchange.takes_own_tool = self._config.own_tool and not (wants_shadow or self._config.shadow)
            exchange.decision = await self._decider.decide(
                exchange.target, exchange.found, exchange.query, body, wants_shadow=wants_shadow
            )
        del body
        self._hold_own(exchange)
        return self._formed(exchange, exchange.decision.take_body(), is_edited=exchange.decision.is_edited)

    def _formed(self, exchange: _Exchange, body: bytes, *, is_edited: bool) -> OutgoingRequest:
        """A request with a whole body, the gateway's own tool declared in it where that is wanted and can be."""
        exchange.betas = exchange.decision.betas if is_edited else ()
        is_plain = is_edited or b"content-encoding" not in exchange.found
        exchange.declared = None
        if exchange.takes_own_tool and is_plain:
            exchange.declared = self._own_calls.declared(exchange.target.route, body)
        if exchange.declared is not None:
            body, is_edited = exchange.declared.text.encode("utf-8", "surrogatepass"), True
        return self._sent_with(exchange, body, is_edited=is_edited)

    def _sent_with(self, exchange: _Exchange, body: bytes, *, is_edited: bool) -> OutgoingRequest:
        """A request with a whole body and the headers that go with it."""
        headers = forwarded_headers(exchange.headers, is_edited=is_edited)
        if exchange.declared is not None:
            headers["accept-encoding"] = "identity"  # Calls are taken out of the answer.
        if exchange.betas:
            headers[_BETA_HEADER] = with_betas(",".join(headers.getall(_BETA_HEADER, ())), exchange.betas)
        return OutgoingRequest(exchange.method, exchange.url, headers, SentOnceBody(body))

    def _hold_own(self, exchange: _Exchange) -> None:
        """Keep the client's own bytes until an answer begins, where there is room for them."""
        decision = exchange.decision
        if decision.call is not None:
            size = len(decision.own_body)
            if self._copies.take(size):
                exchange.held_bytes = size
            else:
                decision.forget_own()

    def _let_own_go(self, exchange: _Exchange) -> None:
        self._copies.give_back(exchange.held_bytes)
        exchange.held_bytes = 0
        exchange.decision.forget_own()

    def _streamed_body(self, exchange: _Exchange, headers: CIMultiDict[str]) -> StreamedBody | None:
        """A body that is passed through as it comes, without limit: nothing of it is held."""
        declared_bytes = _declared_bytes(exchange.found)
        if declared_bytes:
            headers["content-length"] = str(declared_bytes)
        elif b"transfer-encoding" not in exchange.found:
            return None
        return StreamedBody(exchange.receive, idle_seconds=self._config.receive_seconds)

    async def _exchange_until_gone(self, exchange: _Exchange, request: OutgoingRequest) -> None:
        """Ask and relay; when the client leaves meanwhile, the upstream's connection is closed at once."""
        this = cast("asyncio.Task[None]", asyncio.current_task())
        is_gone = False

        def leave(_watch: asyncio.Task[None]) -> None:
            nonlocal is_gone
            if not _watch.cancelled():
                is_gone = True
                this.cancel()

        async def see_it_leave() -> None:
            if isinstance(request.body, StreamedBody):
                await request.body.wait_until_read()  # Only one may read, and it tells as well.
            while (await exchange.receive())["type"] != "http.disconnect":
                pass

        watch = asyncio.create_task(see_it_leave())
        watch.add_done_callback(leave)
        try:
            await self._ask_and_relay(exchange, request)
        except asyncio.CancelledError:
            if is_gone and this.uncancel() == 0:
                raise ClientGoneError from None
            raise
        finally:
            watch.remove_done_callback(leave)
            watch.cancel()

    async def _ask_and_relay(self, exchange: _Exchange, request: OutgoingRequest) -> None:
        async def ask(body: bytes, is_edited: bool) -> aiohttp.ClientResponse:
            return await self._client.open(self._formed(exchange, body, is_edited=is_edited))

        exchange.sent_at = time.monotonic()
        try:
            response = await self._client.open(request)
        except UpstreamUnreachableError:
            if isinstance(request.body, StreamedBody) and request.body.fault is not None:
                raise request.body.fault from None  # The upstream did nothing wrong.
            raise
        try:
            answered = await self._second_try.answered(exchange.decision, response, ask)
            response = answered.response
            self._let_own_go(exchange)
            await self._relay(exchange, answered, self._pieces(exchange, answered))
        finally:
            response.close()

    def _pieces(self, exchange: _Exchange, answered: Answered) -> AsyncIterator[bytes]:
        """The body for the client, as it comes. Raises what aiohttp raises when it breaks off."""
        declared = exchange.declared
        if declared is None or not is_hidden(answered.response):
            exchange.declared = None
            return _pieces(answered)

        async def go_on(body: bytes) -> aiohttp.ClientResponse:
            return await self._client.open(self._sent_with(exchange, body, is_edited=True))

        return self._own_calls.pieces(declared, exchange.decision.call_id, answered, go_on)

    async def _relay(self, exchange: _Exchange, answered: Answered, pieces: AsyncIterator[bytes]) -> None:
        response = answered.response
        exchange.status = response.status
        exchange.content_type = response.headers.get("content-type", "")
        exchange.content_coding = response.headers.get("content-encoding", "")
        if exchange.decision.call_id is not None:
            exchange.answer_copy = AnswerCopy(self._config.max_answer_bytes, self._copies)
        headers = answer_headers(response.raw_headers, exchange.decision.note)
        if self._metrics.archive_fault:
            headers.append((_STORE_HEADER, b"failing"))
        if response.status == _NOT_MODIFIED or exchange.declared is not None:
            # It tells the length of a body that is not sent, or may be another, and the server would wait for it.
            headers = [(name, value) for name, value in headers if name.lower() != b"content-length"]
        await exchange.send({"type": "http.response.start", "status": response.status, "headers": headers})
        exchange.has_begun = True
        self._metrics.observe_seconds("cgk_ttfb_seconds", time.monotonic() - exchange.sent_at)
        try:
            async for piece in pieces:
                await exchange.send({"type": "http.response.body", "body": piece, "more_body": True})
                if exchange.answer_copy is not None:
                    exchange.answer_copy.add(piece)
        except (aiohttp.ClientError, OSError):
            # The server closes the connection without an end when nothing more is sent here: the client sees what
            # the gateway saw.
            self._metrics.count("cgk_broken_answers_total", by="upstream")
            return
        if exchange.declared is not None and not exchange.declared.is_complete:
            self._metrics.count("cgk_broken_answers_total", by="upstream")
            return
        exchange.is_complete = True
        await exchange.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _observe(self, exchange: _Exchange) -> None:
        """Hand the answer to the planner, which is not waited for."""
        copied, exchange.answer_copy = exchange.answer_copy, None
        content = b""
        if copied is not None:
            content = copied.content()
            copied.release()
        if exchange.decision.call_id is None:
            return
        most_bytes = self._config.max_answer_bytes
        plain = await decode_beginning_aside(content, exchange.content_coding, most_bytes=most_bytes)
        is_read = plain is not None and not (copied is not None and copied.is_given_up)
        if not is_read:
            self._metrics.count("cgk_unread_answers_total")
        plain = plain or b""
        plain = exchange.decision.mask.hide(plain)
        answer = Answer(
            call_id=exchange.decision.call_id,
            status=exchange.status,
            content_type=exchange.content_type,
            content=plain,
            is_complete=is_read
            and exchange.is_complete
            and is_ended(exchange.target.route, exchange.content_type, plain),
            sent_as=exchange.decision.sent_as,
        )
        self._planner.observe(answer, lambda where: self._metrics.count("cgk_observe_faults_total", where=where))


async def _pieces(answered: Answered) -> AsyncIterator[bytes]:
    """The body as it comes. Raises what aiohttp raises when it breaks off."""
    if answered.beginning:
        yield answered.beginning
    async for piece in answered.response.content.iter_any():
        yield piece


def _declared_bytes(headers: Mapping[bytes, bytes]) -> int | None:
    """The request's ``content-length``, which the server's parser has checked."""
    declared = headers.get(b"content-length")
    return int(declared) if declared is not None else None
