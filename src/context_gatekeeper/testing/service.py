"""From a request to its answer: routes, keys, checks, cache, reply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

from context_gatekeeper.testing import anthropic_answers, chat_answers, responses_answers
from context_gatekeeper.testing.answers import CREATED, Answer
from context_gatekeeper.testing.checks import minimax_chat_fault, minimax_messages_fault, read_body, strict_fault
from context_gatekeeper.testing.context_editing import asks_for_edits, clear_context
from context_gatekeeper.testing.errors import error_event, minimax_error, service_error
from context_gatekeeper.testing.faults import Fault
from context_gatekeeper.testing.http_server import HttpAnswer, HttpCall
from context_gatekeeper.testing.journal import Journal
from context_gatekeeper.testing.prompt_cache import CacheCharge, MarkedCache, PrefixCache
from context_gatekeeper.testing.records import FakeReply, ReceivedRequest, RequestUsage
from context_gatekeeper.testing.rendering import RenderedBlock, render_request
from context_gatekeeper.testing.server_history import ServerHistory
from context_gatekeeper.testing.signatures import check_signatures
from context_gatekeeper.wire.pairing import PairingRules, rules_of_model
from context_gatekeeper.wire.records import WireApi

__all__ = ["Service", "ServiceSettings"]

_OK, _BAD_REQUEST, _UNAUTHORISED, _NOT_FOUND, _BAD_METHOD, _BROKEN = 200, 400, 401, 404, 405, 500
_FIRST_REFUSAL = 300
_ROUTES = {
    "/messages": (WireApi.MESSAGES, "answer"),
    "/messages/count_tokens": (WireApi.MESSAGES, "count"),
    "/chat/completions": (WireApi.CHAT, "answer"),
    "/responses": (WireApi.RESPONSES, "answer"),
    "/responses/input_tokens": (WireApi.RESPONSES, "count"),
    "/responses/compact": (WireApi.RESPONSES, "compact"),
}
_MINIMAX_PATHS = ("/v1/chat/completions", "/anthropic/v1/messages")
_BODIES = {
    WireApi.MESSAGES: anthropic_answers.messages_body,
    WireApi.CHAT: chat_answers.chat_body,
    WireApi.RESPONSES: responses_answers.responses_body,
}
_EVENTS: dict[WireApi, Callable[[Answer], Iterator[str]]] = {
    WireApi.MESSAGES: anthropic_answers.messages_events,
    WireApi.CHAT: chat_answers.chat_events,
    WireApi.RESPONSES: responses_answers.responses_events,
}
_SHOWS_THINKING = {
    WireApi.MESSAGES: anthropic_answers.has_thinking,
    WireApi.CHAT: chat_answers.has_thinking,
    WireApi.RESPONSES: responses_answers.has_thinking,
}
Script = Sequence[str | FakeReply] | Callable[[ReceivedRequest], str | FakeReply]
FaultScript = Sequence[Fault | None] | Callable[[ReceivedRequest], Fault | None]


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What a provider is told when it is made; see `FakeProvider`."""

    replies: Script
    fallback: Callable[[ReceivedRequest], str]
    api_key: str
    models: Sequence[str] | None
    clock: Callable[[], float]
    faults: FaultScript
    binds_prefix: Callable[[str], bool]
    speaks_minimax: Callable[[str], bool]
    checks_thinking: bool
    strict_roles: bool
    piece_chars: int
    interval: float


class _RefusedError(Exception):
    """The request is answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        self.message = message
        super().__init__(message)


class Service:
    """Answers requests, one at a time, on the server's event loop."""

    def __init__(self, settings: ServiceSettings, journal: Journal, executor: Executor) -> None:
        self._settings = settings
        self._journal = journal
        self._executor = executor
        self._marked_cache = MarkedCache(settings.clock)
        self._prefix_cache = PrefixCache(settings.clock)
        self._server_history = ServerHistory()
        self._arrived = 0
        self._answered = 0
        self._replied = 0

    async def answer(self, call: HttpCall) -> HttpAnswer:
        """The answer to one request; never raises."""
        self._arrived += 1
        number = self._arrived
        fault, request = _received(call)
        self._journal.note(lambda journal: journal.log.append(request))
        try:
            answer = await self._routed(request, fault)
        except _RefusedError as refused:
            answer = self._refusal(request, refused.status, refused.message, number)
        except Exception as error:  # noqa: BLE001 - a script may raise whatever it likes: the test must see it
            answer = self._refusal(request, _BROKEN, f"the script failed: {error!r}", number)
        request.status = answer.status
        names = {"request-id": f"req_{number:06d}", "x-request-id": f"req_{number:06d}"}
        return replace(answer, headers={**names, **answer.headers}, on_end=self._ended)

    def hung_up(self) -> None:
        """A client has left before the end of its answer."""
        self._journal.note(_count_hangup)

    def _ended(self) -> None:
        self._journal.note(_count_finished)

    # -- routes ---------------------------------------------------------------------------

    async def _routed(self, request: ReceivedRequest, fault: str | None) -> HttpAnswer:
        if request.method == "HEAD" and request.path == "/":
            return HttpAnswer(_OK, {"content-type": "text/plain"}, [])
        path = request.path.removeprefix("/anthropic").removeprefix("/v1")
        if path == "/models" or path.startswith("/models/"):
            self._check_key(request)
            return self._models(request, path.removeprefix("/models").removeprefix("/"))
        if path not in _ROUTES:
            raise _RefusedError(_NOT_FOUND, f"no route {request.path}")
        api, purpose = _ROUTES[path]
        request.api = api
        if request.method != "POST":
            raise _RefusedError(_BAD_METHOD, "send POST")
        self._check_key(request)
        if fault is not None:
            raise _RefusedError(_BAD_REQUEST, fault)
        if purpose == "count":
            return self._count(request)
        return await self._modelled(request, is_compaction=purpose == "compact")

    def _is_minimax(self, request: ReceivedRequest) -> bool:
        return request.path in _MINIMAX_PATHS and self._settings.speaks_minimax(request.model)

    def _check_key(self, request: ReceivedRequest) -> None:
        given = {request.headers.get("authorization", "").removeprefix("Bearer ")}
        if request.api is not WireApi.CHAT and request.api is not WireApi.RESPONSES:
            given.add(request.headers.get("x-api-key", ""))
        if self._settings.api_key not in given:
            if self._is_minimax(request):
                message = "login fail: please carry the API secret key in the request header (1004)"
            else:
                message = "invalid x-api-key" if request.api is WireApi.MESSAGES else "Incorrect API key provided"
            raise _RefusedError(_UNAUTHORISED, message)

    def _models(self, request: ReceivedRequest, name: str) -> HttpAnswer:
        rows = [_model_row(one, request) for one in self._settings.models or ("fake-model",)]
        if name:
            rows = [row for row in rows if row["id"] == name]
            if not rows:
                raise _RefusedError(_NOT_FOUND, f"The model `{name}` does not exist")
            return _json(rows[0])
        if "anthropic-version" in request.headers:
            return _json({"data": rows, "has_more": False, "first_id": rows[0]["id"], "last_id": rows[-1]["id"]})
        return _json({"object": "list", "data": rows})

    def _count(self, request: ReceivedRequest) -> HttpAnswer:
        self._check(request, is_count=True)
        self._journal.note(lambda journal: journal.counted.append(request))
        tokens = sum(block.tokens for block in request.blocks)
        named: dict[str, Any] = {} if request.api is WireApi.MESSAGES else {"object": "response.input_tokens"}
        if request.api is WireApi.MESSAGES and asks_for_edits(request.body):
            named["context_management"] = {"original_input_tokens": sum(block.tokens for block in request.sent_blocks)}
        return _json({**named, "input_tokens": tokens})

    # -- answers of a model ---------------------------------------------------------------

    async def _modelled(self, request: ReceivedRequest, *, is_compaction: bool) -> HttpAnswer:
        dropped = self._check(request)
        number, self._answered = self._answered, self._answered + 1
        self._journal.note(lambda journal: journal.requests.append(request))
        charge = self._charge(request)
        fault = await self._script_fault(request, number)
        if fault is not None and fault.status is not None:
            return self._faulty_refusal(request, fault)
        reply = await self._reply(request)
        fault = reply.fault or fault or Fault()
        if fault.status is not None:
            return self._faulty_refusal(request, fault)
        if reply.status >= _FIRST_REFUSAL:
            refused = self._refusal(request, reply.status, reply.text, self._arrived)
            retry = {"retry-after": reply.retry_after} if reply.retry_after else {}
            return replace(refused, headers={**refused.headers, **retry})
        if reply.base_resp_code:
            base_resp = {"status_code": reply.base_resp_code, "status_msg": reply.text}
            return _json({"id": "", "choices": None, "base_resp": base_resp})
        answer = Answer(
            request, reply, number, charge.usage, self._settings.piece_chars, self._is_minimax(request), dropped
        )
        return self._sent(answer, charge, fault, is_compaction=is_compaction)

    def _sent(self, answer: Answer, charge: CacheCharge, fault: Fault, *, is_compaction: bool) -> HttpAnswer:
        request = answer.request
        api = request.api or WireApi.MESSAGES
        shown = _SHOWS_THINKING[api](answer)
        usage = replace(charge.usage, output=answer.output_tokens(has_thinking=shown))
        if api is WireApi.RESPONSES and not is_compaction:
            items = responses_answers.output_items(answer)
            self._server_history.keep(request.body, answer.name("resp"), request.blocks, items)

        def begin() -> None:
            request.usage = usage
            cache = self._marked_cache if api is WireApi.MESSAGES else self._prefix_cache
            cache.commit(charge)

        if is_compaction:
            return replace(_json(responses_answers.compacted_body(answer)), fault=fault, on_begin=begin)
        if not request.is_stream:
            return replace(_json(_BODIES[api](answer)), fault=fault, on_begin=begin)
        pieces = [event.encode("utf-8", "surrogatepass") for event in _EVENTS[api](answer)]
        if answer.reply.breaks_off:
            pieces = pieces[: len(pieces) // 2]
            fault = replace(fault, end_after_bytes=sum(map(len, pieces)))
        if fault.error_event_after is not None:
            kept = pieces[: fault.error_event_after]
            pieces = [*kept, error_event(api, len(kept))]
        headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        return HttpAnswer(_OK, headers, pieces, True, fault, self._settings.interval, on_begin=begin)

    def _check(self, request: ReceivedRequest, *, is_count: bool = False) -> tuple[str, ...]:
        """Refuse what is wrong, render the prompt; the thinking blocks that are left out."""
        api = request.api or WireApi.MESSAGES
        settings = self._settings
        if self._is_minimax(request):
            if api is WireApi.CHAT:
                fault = minimax_chat_fault(request.body)
            else:
                fault = minimax_messages_fault(request.body, request.headers)
        else:
            rules = rules_of_model(request.model)
            rules = PairingRules(settings.strict_roles, rules.system_in_messages)
            fault = strict_fault(api, request.body, request.headers, is_count=is_count, rules=rules)
        if fault is not None:
            raise _RefusedError(_BAD_REQUEST, fault)
        self._check_model(request)
        request.blocks = (*self._history(request), *render_request(api, request.body))
        dropped = self._check_thinking(request) if api is WireApi.MESSAGES and settings.checks_thinking else ()
        request.sent_blocks = request.blocks
        if api is WireApi.MESSAGES and not self._is_minimax(request):
            cleared = clear_context(request.body, request.blocks)
            request.blocks, request.applied_edits = cleared.blocks, cleared.applied
        return dropped

    def _check_model(self, request: ReceivedRequest) -> None:
        if self._settings.models is None or request.model in self._settings.models:
            return
        if self._is_minimax(request):
            raise _RefusedError(_BAD_REQUEST, f"unknown model {request.model!r}")
        if request.api is WireApi.MESSAGES:
            raise _RefusedError(_NOT_FOUND, f"model: {request.model}")
        raise _RefusedError(_NOT_FOUND, f"The model `{request.model}` does not exist or you do not have access to it.")

    def _check_thinking(self, request: ReceivedRequest) -> tuple[str, ...]:
        asked = request.body.get("thinking")
        binding = asked.get("block_binding") if isinstance(asked, dict) else None
        drops = isinstance(binding, dict) and binding.get("prefix_mismatch_behavior") == "drop_block"
        verdict = check_signatures(
            request.items, request.blocks, is_bound=self._settings.binds_prefix(request.model), drops=drops
        )
        if verdict.fault:
            raise _RefusedError(_BAD_REQUEST, verdict.fault)
        request.blocks = verdict.blocks
        return verdict.dropped

    def _history(self, request: ReceivedRequest) -> tuple[RenderedBlock, ...]:
        """The blocks that the provider keeps for ``previous_response_id`` or ``conversation``."""
        if request.api is not WireApi.RESPONSES:
            return ()
        fault = self._server_history.fault(request.body, request.items)
        if fault is not None:
            raise _RefusedError(_BAD_REQUEST, fault)
        earlier = self._server_history.before(request.body)
        return () if earlier is None else earlier.blocks

    def _charge(self, request: ReceivedRequest) -> CacheCharge:
        if self._is_minimax(request):
            return CacheCharge(RequestUsage(plain=request.prompt_tokens))
        if request.api is WireApi.MESSAGES:
            return self._marked_cache.charge(request.body, request.blocks)
        return self._prefix_cache.charge(request.body, request.blocks)

    # -- scripts --------------------------------------------------------------------------

    async def _script_fault(self, request: ReceivedRequest, number: int) -> Fault | None:
        faults = self._settings.faults
        if callable(faults):
            return await asyncio.get_running_loop().run_in_executor(self._executor, faults, request)
        return faults[number] if number < len(faults) else None

    async def _reply(self, request: ReceivedRequest) -> FakeReply:
        replies = self._settings.replies
        place, self._replied = self._replied, self._replied + 1
        # A function may wait, and must not hold up other requests meanwhile.
        if callable(replies):
            chosen = await asyncio.get_running_loop().run_in_executor(self._executor, replies, request)
        else:
            chosen = replies[place] if place < len(replies) else self._settings.fallback(request)
        return FakeReply(chosen) if isinstance(chosen, str) else chosen

    # -- refusals -------------------------------------------------------------------------

    def _refusal(self, request: ReceivedRequest, status: int, message: str, number: int) -> HttpAnswer:
        is_minimax = self._is_minimax(request)
        if is_minimax and status == _BAD_REQUEST:
            message = f"invalid params, {message} (2013)"
        self._journal.note(lambda journal: journal.refusals.append(message))
        body = (
            minimax_error(status, message)
            if is_minimax
            else service_error(request.api, status, message, f"req_{number:06d}")
        )
        return HttpAnswer(status, {"content-type": "application/json"}, [body])

    def _faulty_refusal(self, request: ReceivedRequest, fault: Fault) -> HttpAnswer:
        answer = self._refusal(request, fault.status or _BROKEN, "a fault of the script's", self._arrived)
        if fault.body is None:
            return replace(answer, fault=fault)
        content = fault.body.encode() if isinstance(fault.body, str) else fault.body
        return replace(answer, fault=fault, pieces=[content])


def _received(call: HttpCall) -> tuple[str | None, ReceivedRequest]:
    """The request and what is wrong with its body."""
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in call.headers}
    fault, body = read_body(call.body, headers.get("content-encoding", ""))
    path = call.target.partition("?")[0]
    return fault, ReceivedRequest(path, headers, body, call.method, call.target, call.body, call.headers)


def _count_hangup(journal: Journal) -> None:
    journal.hangups += 1


def _count_finished(journal: Journal) -> None:
    journal.finished += 1


def _json(body: Mapping[str, Any]) -> HttpAnswer:
    content = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return HttpAnswer(_OK, {"content-type": "application/json"}, [content])


def _model_row(name: str, request: ReceivedRequest) -> dict[str, Any]:
    if "anthropic-version" in request.headers:
        return {"type": "model", "id": name, "display_name": name, "created_at": "2025-11-24T00:00:00Z"}
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "fake"}
