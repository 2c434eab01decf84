"""SessionPlanner: the planner behind the gateway. It knows the conversations that are under way and plans each request.

Whatever it cannot read, or could only send in a form that its API refuses, goes on as it came.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from context_gatekeeper.core.economics import PRICES, PriceProfile
from context_gatekeeper.errors import WireFormatError
from context_gatekeeper.gateway.archive import STORE_SETTINGS, Archive, Archived, open_pool
from context_gatekeeper.gateway.conversations import Conversation, Conversations
from context_gatekeeper.gateway.cuts import find_cuts
from context_gatekeeper.gateway.identity import SessionKey, named_session, session_key, working_folder
from context_gatekeeper.gateway.live_session import NO_PAGE, LiveSession, PlannedRequest, resident_tokens
from context_gatekeeper.gateway.planner_settings import PlannerSettings
from context_gatekeeper.gateway.port import Answer, GatewayCall, PlanReply, SentAs
from context_gatekeeper.gateway.standing import Standing, StandingReader
from context_gatekeeper.gateway.warm_up import warm_up
from context_gatekeeper.wire import binds_whole_prefix, decode_request, encode_request
from context_gatekeeper.wire.answers import read_answer
from context_gatekeeper.wire.native import (
    NativePlan,
    holds_compaction,
    native_applied,
    native_edits,
    paying_clearance,
)
from context_gatekeeper.wire.pairing import find_violations
from context_gatekeeper.wire.records import RequestEdits, WireApi, WireRequest

__all__ = ["SessionPlanner", "make_planner"]

_APIS = {
    "messages": WireApi.MESSAGES,
    "count_tokens": WireApi.MESSAGES,
    "chat": WireApi.CHAT,
    "responses": WireApi.RESPONSES,
}
_API_PRICES = {WireApi.MESSAGES: "anthropic-5m", WireApi.CHAT: "openai", WireApi.RESPONSES: "openai"}
_FINE, _NOT_FINE = 200, 300
_STEP_CHARS = 40_000
"""Read at a time while nobody waits: others may come meanwhile."""
_BYPASS, _UNCHANGED, _PLAN, _SHADOW = "bypass", "unchanged", "plan", "shadow"


@dataclass(slots=True)
class _OpenCall:
    """A request whose answer has not come."""

    conversation: Conversation
    request: WireRequest
    planned: PlannedRequest | None
    """None while the request is not read."""
    native: NativePlan
    has_fetched: bool = False
    """Whether the model fetched pages in its answer, which is made of several then."""
    is_sent: bool = False
    """Whether what was planned goes out, and not the client's own bytes in its place."""


@dataclass(frozen=True, slots=True)
class _Unread:
    """A request that went on as it came, and is read while nobody waits."""

    conversation: Conversation
    call: GatewayCall
    request: WireRequest


class SessionPlanner:
    """See `gateway.port.Planner`.

    Args:
        settings: see there.
        make_session: makes the session of each conversation.
    """

    def __init__(self, settings: PlannerSettings, make_session: Callable[..., LiveSession] = LiveSession) -> None:
        self._settings = settings
        self._make_session = make_session
        self._conversations = Conversations(
            most_sessions=settings.most_sessions, most_chars=settings.most_chars, most_branches=settings.most_branches
        )
        self._open: OrderedDict[int, _OpenCall] = OrderedDict()
        self._due: deque[Iterator[None]] = deque()
        """Decisions about next requests of conversations that were answered, one step at a time."""
        self._unread: deque[_Unread] = deque()
        self._newest: OrderedDict[tuple[str, str], WireRequest] = OrderedDict()
        """Of each credential and session that a header names."""
        self._counts: Counter[str] = Counter()
        """Requests that could not be read, and edits that would not have been valid."""
        self._archive: Archive | None = None
        self._standing: StandingReader | None = None
        if settings.store:
            stored = {name: getattr(settings, name) for name in STORE_SETTINGS}
            self._archive = Archive(stored)
            self._standing = StandingReader(lambda: open_pool(stored))

    def plan(self, call: GatewayCall) -> PlanReply:
        """See `gateway.port.Planner.plan`."""
        request = self._decoded(call)
        if request is None:
            self._counts["unreadable"] += 1
            return PlanReply(call.call_id, None, _BYPASS)
        if not self._can_be_planned(request):
            return PlanReply(call.call_id, None, _UNCHANGED)
        key = session_key(request, call.headers, call.credential)
        if call.route == "count_tokens":
            return self._preview(call, key, request)
        conversation = self._conversation(call, key, request)
        self._forget_unread(conversation)
        if self._is_left_unread(conversation, request):
            return self._read_later(conversation, call, request)
        planned = self._planned(conversation, call, key, request)
        native = self._native(call, conversation, request)
        body = None if self._is_left_alone(conversation, request, native) else conversation.reply
        is_sent = body is not None or not planned.edits
        self._note_sent(call, _OpenCall(conversation, request, planned, native, is_sent=is_sent), body)
        return self._reply(call, conversation, planned, native, body)

    def repair(self, call: GatewayCall, *, was_edited: bool) -> PlanReply:
        """See `gateway.port.Planner.repair`."""
        request = self._decoded(call)
        left = PlanReply(call.call_id, None, _UNCHANGED)
        if request is None or not self._can_be_planned(request):
            return left
        key = session_key(request, call.headers, call.credential)
        if call.route == "count_tokens":
            return left if was_edited else self._preview(call, key, request)
        conversation = self._conversation(call, key, request)
        self._forget_unread(conversation)
        planned = self._planned(conversation, call, key, request)
        native = self._native(call, conversation, request)
        if conversation.is_refused or native.delegates:
            return left
        if was_edited or conversation.reply is None:
            planned = conversation.session.without_thinking(request)
            conversation.reply = self._encoded(request, planned.edits)
        opened = _OpenCall(conversation, request, planned, native, is_sent=True)
        self._note_sent(call, opened, conversation.reply)
        return self._reply(call, conversation, planned, native, conversation.reply)

    def fetch(self, call_id: int, handles: Sequence[str]) -> Sequence[str]:
        """See `gateway.port.Planner.fetch`."""
        opened = self._open.get(call_id)
        if opened is None or opened.planned is None:
            return [NO_PAGE for _ in handles]
        opened.has_fetched = True
        return [opened.conversation.session.fetch(handle) for handle in handles]

    def observe(self, answer: Answer) -> None:
        """See `gateway.port.Planner.observe`."""
        found = self._open.pop(answer.call_id, None)
        if found is None or not _FINE <= answer.status < _NOT_FINE:
            return
        conversation, planned = found.conversation, found.planned
        session = conversation.session
        read = read_answer(found.request.api, answer.content_type, answer.content)
        self._store(found, answer, is_complete=answer.is_complete and read.is_complete)
        if answer.sent_as is SentAs.REFUSED and found.native.asked:
            conversation.refuses_native = True
        elif answer.sent_as is SentAs.REFUSED:
            conversation.is_refused = True
        if planned is None:
            return
        conversation.note_time(was_late=answer.sent_as in (SentAs.OWN, SentAs.REFUSED))
        if answer.sent_as is SentAs.CONTINUED:
            session.continued(found.request, planned)
        elif not found.is_sent or answer.sent_as is not SentAs.PLANNED:
            session.bypassed(found.request, planned)
        elif read.message.usage is not None and not self._is_counted_apart(found, answer):
            session.heard(read.message.usage, planned)
        self._due.append(session.look_ahead_steps())

    @property
    def has_idle_work(self) -> bool:
        """See `gateway.port.Planner.has_idle_work`."""
        return bool(self._due or self._unread)

    def idle(self) -> None:
        """See `gateway.port.Planner.idle`: a step towards a rewrite for a next request, or some reading."""
        if not self._due:
            self._read_on(self._unread.popleft())
            return
        steps = self._due.popleft()
        if next(steps, self) is None:
            self._due.appendleft(steps)

    def status(self) -> Mapping[str, Any]:
        """See `gateway.port.Planner.status`."""
        sessions = [
            {
                "session": conversation.session.name,
                "calls": conversation.session.calls,
                "rewrites": conversation.session.rewrites,
                "epochs": len(conversation.session.schedule.pager.rewrites),
                "prompt_tokens": conversation.session.schedule.pager.prompt_tokens,
                "saved_units": (
                    round(conversation.session.schedule.pager.ledger.saved) if conversation.is_edited else 0
                ),
                "would_save_units": round(conversation.session.schedule.pager.ledger.saved),
                "append_only_units": round(conversation.session.schedule.pager.ledger.append_only),
            }
            for conversation in self._conversations
        ]
        told: dict[str, Any] = {"sessions": sessions, "is_idle": not self.has_idle_work, "counts": dict(self._counts)}
        if self._archive is not None:
            archive = self._archive
            told["archive"] = {"dropped": archive.dropped, "faults": archive.faults, "last_fault": archive.last_fault}
            told["metrics"] = archive.figures()
        return told

    def close(self) -> None:
        """See `gateway.port.Planner.close`."""
        if self._standing is not None:
            self._standing.close()
        if self._archive is not None:
            self._archive.close()

    # -- which conversation -----------------------------------------------------------------

    def _decoded(self, call: GatewayCall) -> WireRequest | None:
        """The request; of what stands in the newest of its session too nothing is read again."""
        try:
            return decode_request(_APIS[call.route], call.body, self._newest.get(_named(call)))
        except WireFormatError:
            return None

    def _can_be_planned(self, request: WireRequest) -> bool:
        return not request.has_server_history and bool(request.turns) and not self._has_giant(request)

    def _has_giant(self, request: WireRequest) -> bool:
        """Whether one text is so long that reading it would hold up every other conversation."""
        most = self._settings.most_block_chars
        return any(len(part.block.text) > most for message in request.messages for part in message.parts)

    def _conversation(self, call: GatewayCall, key: SessionKey, request: WireRequest) -> Conversation:
        return self._conversations.take(key, request, lambda name: self._new_session(name, request, call))

    def _new_session(self, name: str, request: WireRequest, call: GatewayCall) -> LiveSession:
        settings = self._settings
        return self._make_session(
            name,
            _prices(request, call),
            resident_tokens=resident_tokens(request),
            secret=settings.secret,
            params=replace(settings.numbers, whole_blocks=request.api is WireApi.MESSAGES),
            working_folder=working_folder(request),
            expand_command=f"{settings.expand_command} {shlex.quote(name)}" if settings.expand_command else "",
            has_own_tool=settings.own_tool,
        )

    # -- what is sent -----------------------------------------------------------------------

    def _planned(
        self, conversation: Conversation, call: GatewayCall, key: SessionKey, request: WireRequest
    ) -> PlannedRequest:
        """Plan a request, or find what was planned for the same bytes."""
        digest = blake2b(call.body, digest_size=16).digest()
        is_new = digest != conversation.digest
        with self._kept_whole(key, conversation):
            if is_new:
                self._tell_standing(conversation, request)
            planned = conversation.session.plan(request, now=call.now)
        if is_new:
            conversation.request, conversation.digest = request, digest
            conversation.reply = self._encoded(request, planned.edits)
            self._note_newest(call, request)
        return planned

    @contextmanager
    def _kept_whole(self, key: SessionKey, conversation: Conversation) -> Iterator[None]:
        """Forget the conversation when something is raised: with half of a request taken in nothing goes on."""
        try:
            yield
        except BaseException:
            self._conversations.remove(key, conversation)
            raise

    def _is_left_alone(self, conversation: Conversation, request: WireRequest, native: NativePlan) -> bool:
        """Whether nothing is edited whatever was planned."""
        is_bound = binds_whole_prefix(request.model)
        if native.delegates or (is_bound and not self._settings.edits_bound_thinking):
            return True
        # Of bound thinking that answered edited requests the client's own bytes are refused: there is no rest there.
        rests = conversation.rests and not (is_bound and conversation.is_edited)
        return rests or conversation.is_refused

    def _tell_standing(self, conversation: Conversation, request: WireRequest) -> None:
        """Goals, pins and cards, for agents: a side question for a title needs none."""
        is_told = self._standing is not None and self._settings.tells_standing
        standing = self._standing.newest if self._standing is not None and is_told else Standing()
        if request.tools_text and conversation.standing != standing:
            conversation.standing = standing
            conversation.session.set_resident(standing.goals, standing.pins, cards=self._settings.cards)

    def _preview(self, call: GatewayCall, key: SessionKey, request: WireRequest) -> PlanReply:
        conversation = self._conversations.find(key, request)
        if conversation is None:
            return PlanReply(call.call_id, None, _UNCHANGED)
        native = self._native(call, conversation, request)
        is_edited = not self._is_left_alone(conversation, request, native)
        body = self._encoded(request, conversation.session.preview()) if is_edited else None
        return self._told(call, native, body, {})

    def _encoded(self, request: WireRequest, edits: RequestEdits) -> bytes | None:
        """The edited request; None where nothing changes, or where its API would refuse it and not the client's own."""
        if not edits:
            return None
        try:
            body = encode_request(request, edits)
        except WireFormatError:
            self._counts["invalid"] += 1
            return None
        faults = find_violations(request.api, json.loads(body))
        if faults and set(faults) - set(find_violations(request.api, json.loads(request.source))):
            self._counts["invalid"] += 1
            return None
        return body

    def _reply(
        self,
        call: GatewayCall,
        conversation: Conversation,
        planned: PlannedRequest,
        native: NativePlan,
        body: bytes | None,
    ) -> PlanReply:
        session = conversation.session
        figures = {
            "session": session.name,
            "prompt_tokens": planned.plan.prompt_tokens,
            "epoch": planned.plan.epoch,
            "rewrite": planned.plan.rewrite,
            "is_rewrite": planned.is_rewrite,
            "saved_units": conversation.newly_saved(),
            "append_only_units": round(session.schedule.pager.ledger.append_only),
        }
        told = self._told(call, native, body, figures)
        if told.body is None or native.asked:
            return told
        return replace(told, cuts=find_cuts(conversation.request, told.body.decode("utf-8", "surrogatepass")))

    # -- what the provider does itself ------------------------------------------------------

    def _native(self, call: GatewayCall, conversation: Conversation, request: WireRequest) -> NativePlan:
        """What is asked of the provider: the same for all requests of a conversation, so that its cache holds."""
        if conversation.refuses_native:
            return NativePlan()
        return native_edits(
            request,
            self._settings.native,
            is_own_api=call.is_own_api,
            clear_at_least=paying_clearance(conversation.session.prices),
            # How long a window is no request says, and no client is known to send back a summary it did not ask for.
            window_tokens=None,
            takes_compaction=False,
        )

    def _told(self, call: GatewayCall, native: NativePlan, body: bytes | None, figures: Mapping[str, Any]) -> PlanReply:
        """The reply that sends the edited body, or the client's own, with what is asked of the provider."""
        if self._archive is not None:
            figures = {**figures, "archive_fault": self._archive.fault}
        if native.asked:
            body = native.added_to(call.body if body is None else body)
            figures = {**figures, "native": list(native.asked)}
        if call.shadow:
            return PlanReply(call.call_id, None, _SHADOW, figures)
        note = _UNCHANGED if body is None else _PLAN
        return PlanReply(call.call_id, body, note, figures, betas=native.betas)

    def _is_counted_apart(self, opened: _OpenCall, answer: Answer) -> bool:
        """Whether usage does not fit the text that was sent: the provider left something out, or it was asked again."""
        is_native = bool(native_applied(answer.content)) or holds_compaction(opened.request)
        return is_native or opened.has_fetched

    # -- what is read while nobody waits ----------------------------------------------------

    def _is_left_unread(self, conversation: Conversation, request: WireRequest) -> bool:
        """Whether a request brings more than can be read while it waits.

        Of an edited conversation the client's own bytes are dearer than a plan that may be late.
        """
        unread = conversation.session.unread_chars(request)
        return unread > self._settings.most_unread_chars and not conversation.is_edited

    def _read_later(self, conversation: Conversation, call: GatewayCall, request: WireRequest) -> PlanReply:
        conversation.session.begin_reading(request)
        self._unread.append(_Unread(conversation, call, request))
        self._note_newest(call, request)
        native = self._native(call, conversation, request)
        self._note_sent(call, _OpenCall(conversation, request, None, native), None)
        return self._told(call, native, None, {"session": conversation.session.name})

    def _read_on(self, unread: _Unread) -> None:
        conversation, request = unread.conversation, unread.request
        key = session_key(request, unread.call.headers, unread.call.credential)
        with self._kept_whole(key, conversation):
            if not conversation.session.read(request, _STEP_CHARS):
                self._unread.appendleft(unread)
                return
        planned = self._planned(conversation, unread.call, key, request)
        conversation.session.bypassed(request, planned)
        conversation.reply = None
        self._due.append(conversation.session.look_ahead_steps())

    def _forget_unread(self, conversation: Conversation) -> None:
        """A newer request holds all that waits to be read."""
        if self._unread:
            self._unread = deque(one for one in self._unread if one.conversation is not conversation)

    # -- what is known of calls -------------------------------------------------------------

    def _note_newest(self, call: GatewayCall, request: WireRequest) -> None:
        named = _named(call)
        self._newest[named] = request
        self._newest.move_to_end(named)
        while len(self._newest) > self._settings.most_sessions:
            self._newest.popitem(last=False)

    def _note_sent(self, call: GatewayCall, opened: _OpenCall, body: bytes | None) -> None:
        if call.shadow:
            opened.is_sent = False
        conversation = opened.conversation
        conversation.is_edited = conversation.is_edited or (opened.is_sent and body is not None)
        self._open[call.call_id] = opened
        while len(self._open) > self._settings.most_open_calls:
            self._open.popitem(last=False)

    def _store(self, opened: _OpenCall, answer: Answer, *, is_complete: bool) -> None:
        if self._archive is not None:
            request = opened.request
            body = request.source.encode("utf-8", "surrogatepass")
            name = opened.conversation.session.name
            self._archive.put(
                Archived(name, request.api, body, answer.content_type, answer.content, is_complete=is_complete)
            )


def make_planner(settings: Mapping[str, Any]) -> SessionPlanner:
    """The gateway's planner, in the process that is its own.

    Args:
        settings: of the gateway's first frame (`PlannerSettings.from_json`).

    Raises:
        ConfigError: a setting cannot be used.
    """
    chosen = PlannerSettings.from_json(settings)
    warm_up(SessionPlanner(replace(chosen, store="")))
    return SessionPlanner(chosen)


def _named(call: GatewayCall) -> tuple[str, str]:
    """Credential, and the session that a header names."""
    return call.credential, named_session(call.headers)


def _prices(request: WireRequest, call: GatewayCall) -> PriceProfile:
    """The upstream's; else what the API's own provider charges, for an hour where the client caches for one."""
    if call.prices in PRICES:
        return PRICES[call.prices]
    name = _API_PRICES[request.api]
    if name == "anthropic-5m":
        if not request.marks:
            name = "none"
        elif any(mark.ttl == "1h" for mark in request.marks if mark.where in ("messages", "request")):
            name = "anthropic-1h"
    return PRICES[name]
