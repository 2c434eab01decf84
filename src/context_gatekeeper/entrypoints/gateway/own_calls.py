"""The gateway's own tool between client and provider: declared in each request, answered before the client hears of it.

See `wire.own_tool` and `wire.hidden_calls`. What the tool gives also stands in the window from the next request on,
since the client, which knows nothing of the call, does not send it back.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import aiohttp

from context_gatekeeper.entrypoints.gateway.metrics import GatewayMetrics
from context_gatekeeper.entrypoints.gateway.planner_process import PlannerFaultError, PlannerProcess
from context_gatekeeper.entrypoints.gateway.second_try import Answered
from context_gatekeeper.entrypoints.gateway.upstream_client import UpstreamUnreachableError
from context_gatekeeper.errors import WireFormatError
from context_gatekeeper.wire.hidden_calls import HiddenCalls, OwnCall
from context_gatekeeper.wire.own_tool import continued, with_own_tool
from context_gatekeeper.wire.records import WireApi

__all__ = ["Declared", "OwnCalls", "is_hidden"]

_APIS: Mapping[str, WireApi] = {
    "messages": WireApi.MESSAGES,
    "count_tokens": WireApi.MESSAGES,
    "chat": WireApi.CHAT,
    "responses": WireApi.RESPONSES,
}
_MOST_ROUNDS = 8
"""Answers in a row that call nothing but the own tool."""
_FINE = 200
_STREAM = "text/event-stream"
_UNAVAILABLE = "This page cannot be fetched now. Go on without it, or read its source again."
Ask = Callable[[bytes], Awaitable[aiohttp.ClientResponse]]


@dataclass(slots=True)
class Declared:
    """A request in which the tool is declared."""

    api: WireApi
    text: str
    is_complete: bool = False
    """Whether the answer came to its end."""


class OwnCalls:
    """Declares the tool and answers its calls.

    Args:
        planner: knows the pages.
        metrics: counts.
        seconds: the longest wait for pages.
    """

    def __init__(self, planner: PlannerProcess, metrics: GatewayMetrics, *, seconds: float) -> None:
        self._planner = planner
        self._metrics = metrics
        self._seconds = seconds

    def declared(self, route: str, body: bytes) -> Declared | None:
        """A request with the tool; None where it can have none: no tools, or an answer that could not go on."""
        api = _APIS[route]
        try:
            source = body.decode("utf-8")
            text = with_own_tool(api, source)
        except (UnicodeDecodeError, WireFormatError):
            return None
        return Declared(api, text) if text is not source else None

    async def pieces(
        self, declared: Declared, call_id: int | None, answered: Answered, ask: Ask
    ) -> AsyncIterator[bytes]:
        """What the client gets, as it comes.

        Args:
            declared: the request.
            call_id: names the call to the planner; None where it knows nothing of it.
            answered: its answer, not compressed; closed by whoever has it.
            ask: sends a request that goes on.

        Raises:
            aiohttp.ClientError, OSError: the first answer broke off. Where a later one does the client gets what came.
        """
        response, text = answered.response, declared.text
        hidden = HiddenCalls(declared.api, is_stream=_is_stream(response))
        if answered.beginning:
            yield hidden.feed(answered.beginning)
        for round_number in range(_MOST_ROUNDS + 1):
            try:
                async for piece in response.content.iter_any():
                    if given := hidden.feed(piece):
                        yield given
            finally:
                if round_number:
                    response.close()
            finished = hidden.finish()
            declared.is_complete = finished.is_complete
            yield finished.rest
            results = await self._results(call_id, finished.calls)
            if not finished.is_continuable or round_number == _MOST_ROUNDS:
                break
            text = continued(declared.api, text, finished.blocks, results)
            later = await self._asked(ask, text, is_stream=_is_stream(answered.response))
            if later is None:
                break
            response = later
            hidden.next_answer()
        yield hidden.released()

    async def _asked(self, ask: Ask, text: str, *, is_stream: bool) -> aiohttp.ClientResponse | None:
        """The answer to a request that goes on; None where there is none to go on with."""
        try:
            response = await ask(text.encode("utf-8", "surrogatepass"))
        except UpstreamUnreachableError:
            return None
        if response.status != _FINE or _is_stream(response) != is_stream or _coding(response):
            response.close()
            return None
        return response

    async def _results(self, call_id: int | None, calls: Sequence[OwnCall]) -> dict[str, str]:
        """Id of each call -> what the model is told."""
        if not calls:
            return {}
        self._metrics.count("cgk_own_calls_total", len(calls))
        texts: Sequence[str] = [_UNAVAILABLE] * len(calls)
        if call_id is not None:
            try:
                texts = await self._planner.fetch(call_id, [_handle(call) for call in calls], self._seconds)
            except PlannerFaultError as fault:
                self._metrics.count("cgk_fail_open_total", where=fault.where)
        return {call.id: text for call, text in zip(calls, texts, strict=False)} | {
            call.id: _UNAVAILABLE for call in calls[len(texts) :]
        }


def is_hidden(response: aiohttp.ClientResponse) -> bool:
    """Whether calls can be taken out of an answer: it is one, and not compressed."""
    return response.status == _FINE and not _coding(response)


def _coding(response: aiohttp.ClientResponse) -> str:
    coding = response.headers.get("content-encoding", "").strip().lower()
    return "" if coding == "identity" else coding


def _is_stream(response: aiohttp.ClientResponse) -> bool:
    return response.headers.get("content-type", "").startswith(_STREAM)


def _handle(call: OwnCall) -> str:
    """The handle that a call asks for; what the model wrote otherwise is looked at as it is."""
    try:
        told = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call.arguments
    handle = told.get("handle") if isinstance(told, dict) else told
    return handle if isinstance(handle, str) else call.arguments
