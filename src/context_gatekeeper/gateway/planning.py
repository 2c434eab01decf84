"""SessionPlanner: the planner behind the gateway. It knows the conversations that are under way and plans each request.

Whatever it cannot read, or could only send in a form that its API refuses, goes on as it came.
"""

from __future__ import annotations

import json
import secrets
import shlex
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from typing import Any

from context_gatekeeper.core.economics import PRICES, PriceProfile
from context_gatekeeper.engine.pager_params import OURS, OURS_CAREFUL, OURS_FRUGAL, PagerParams
from context_gatekeeper.errors import ConfigError, WireFormatError
from context_gatekeeper.gateway.archive import STORE_SETTINGS, Archive, Archived, open_pool
from context_gatekeeper.gateway.identity import (
    SessionKey,
    history_digest,
    named_session,
    opening_digest,
    session_key,
    working_folder,
)
from context_gatekeeper.gateway.live_session import LiveSession, PlannedRequest, resident_tokens
from context_gatekeeper.gateway.port import Answer, GatewayCall, PlanReply
from context_gatekeeper.gateway.standing import Standing, StandingReader
from context_gatekeeper.gateway.warm_up import warm_up
from context_gatekeeper.wire import binds_whole_prefix, decode_request, encode_request
from context_gatekeeper.wire.answers import read_answer
from context_gatekeeper.wire.pairing import find_violations
from context_gatekeeper.wire.records import RequestEdits, WireApi, WireRequest

__all__ = ["MOST_BLOCK_CHARS", "POLICIES", "PlannerSettings", "SessionPlanner", "make_planner"]

POLICIES: Mapping[str, PagerParams] = {"ours": OURS, "frugal": OURS_FRUGAL, "careful": OURS_CAREFUL}
"""Settings of the planner by the name in the configuration."""
_APIS = {
    "messages": WireApi.MESSAGES,
    "count_tokens": WireApi.MESSAGES,
    "chat": WireApi.CHAT,
    "responses": WireApi.RESPONSES,
}
_API_PRICES = {WireApi.MESSAGES: "anthropic-5m", WireApi.CHAT: "openai", WireApi.RESPONSES: "openai"}
MOST_BLOCK_CHARS = 300_000
"""Of one text. A conversation that holds a longer one goes on as it came: a second of planning would be spent on it."""
_MOST_BRANCHES = 8
"""Conversations with one key that are kept apart: sub-agents, rewinds, side questions."""
_MOST_OPEN_CALLS = 4096
_FINE, _NOT_FINE = 200, 300
_NEWEST_SHARE = 0.1
_RESTING_SHARE = (0.03, 0.15)
"""Share of late plans below which a conversation that rests is planned again, and above which it begins to rest. One
late plan costs what some ten edited requests save."""
_BYPASS, _UNCHANGED, _PLAN, _SHADOW = "bypass", "unchanged", "plan", "shadow"


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """What the gateway tells its planner at the start."""

    secret: bytes = field(default_factory=lambda: secrets.token_bytes(16), repr=False)
    """From which fences are drawn; another one for each start by default."""
    policy: str = "ours"
    """A name of `POLICIES`."""
    cards: bool = True
    """Whether agents get the running task's card once something has left their window."""
    most_sessions: int = 256
    """Kept in memory, the newest used; one that comes back later is planned from its request alone."""
    most_chars: int = 16_000_000
    """Of all their newest requests together: each character takes some 30 bytes."""
    edits_bound_thinking: bool = False
    """Whether conversations are edited whose model binds its thinking to everything before it. Of such a one the
    client's own bytes are refused once something was edited: a plan that comes too late would cost its thinking."""
    store: str = ""
    """Path of the pool's file; "" keeps no pages."""
    expand_command: str = ""
    """With which an agent on this machine gets a page of a session, the session's name put behind it."""
    pool: str | None = None
    owner: str | None = None
    redaction: str | None = None
    sealed_folder: str | None = None
    """These four as `AgentPool` takes them; None for its own."""

    @classmethod
    def from_json(cls, settings: Mapping[str, Any]) -> PlannerSettings:
        """Of the first frame; names of no field are another reader's.

        Raises:
            ConfigError: an unknown policy.
        """
        known = {one.name for one in fields(cls)} - {"secret"}
        given = {name: value for name, value in settings.items() if name in known and value is not None}
        policy = given.get("policy", "ours")
        if policy not in POLICIES:
            raise ConfigError(f"policy {policy!a}", "there is none of that name", f"use one of {', '.join(POLICIES)}")
        return cls(**given)


@dataclass(slots=True)
class _Branch:
    """One conversation."""

    session: LiveSession
    request: WireRequest
    """The newest."""
    digest: bytes = b""
    """Of its bytes."""
    reply: bytes | None = None
    standing: Standing | None = None
    """What its session was told last."""
    is_edited: bool = False
    """Whether a request of it was ever sent as planned, and not as the client's own bytes."""
    saved_told: float = 0.0
    """Net savings that its replies have reported so far."""
    late_share: float = 0.0
    """Of the newest answered requests, those whose plan came too late."""
    rests: bool = False
    """Whether the client's bytes are sent until plans are in time again: each late one sends, and writes to the cache,
    everything that the others leave out."""

    def note_time(self, *, was_late: bool) -> None:
        """Count a plan that was in time, or not."""
        self.late_share += _NEWEST_SHARE * (was_late - self.late_share)
        self.rests = self.late_share > (_RESTING_SHARE[0] if self.rests else _RESTING_SHARE[1])


@dataclass(slots=True)
class _OpenCall:
    """A request whose answer has not come."""

    branch: _Branch
    request: WireRequest
    planned: PlannedRequest
    is_sent: bool
    """Whether what was planned goes out, and not the client's own bytes in its place."""


class SessionPlanner:
    """See `gateway.port.Planner`."""

    def __init__(self, settings: PlannerSettings) -> None:
        self._settings = settings
        self._branches: OrderedDict[SessionKey, list[_Branch]] = OrderedDict()
        self._open: OrderedDict[int, _OpenCall] = OrderedDict()
        self._due: deque[LiveSession] = deque()
        """Conversations that were answered, and whose next request has not been thought of."""
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
        api = _APIS[call.route]
        try:
            request = decode_request(api, call.body, self._like(call))
        except WireFormatError:
            self._counts["unreadable"] += 1
            return PlanReply(call.call_id, None, _BYPASS)
        if request.has_server_history or not request.turns or _has_giant(request):
            return PlanReply(call.call_id, None, _UNCHANGED)
        key = session_key(request, call.headers, call.credential)
        if call.route == "count_tokens":
            return self._preview(call, key, request)
        return self._planned(call, key, request)

    def observe(self, answer: Answer) -> None:
        """See `gateway.port.Planner.observe`."""
        found = self._open.pop(answer.call_id, None)
        if found is None or not _FINE <= answer.status < _NOT_FINE:
            return
        session = found.branch.session
        api = found.request.api
        read = read_answer(api, answer.content_type, answer.content)
        if self._archive is not None:
            body = found.request.source.encode("utf-8", "surrogatepass")
            is_complete = answer.is_complete and read.is_complete
            self._archive.put(
                Archived(session.name, api, body, answer.content_type, answer.content, is_complete=is_complete)
            )
        found.branch.note_time(was_late=not answer.was_sent_as_planned)
        if not (found.is_sent and answer.was_sent_as_planned):
            session.bypassed(found.planned)
        elif read.message.usage is not None:
            session.heard(read.message.usage, found.planned)
        if session not in self._due:
            self._due.append(session)

    @property
    def has_idle_work(self) -> bool:
        """See `gateway.port.Planner.has_idle_work`."""
        return bool(self._due)

    def idle(self) -> None:
        """See `gateway.port.Planner.idle`: a rewrite for the next request of a conversation."""
        self._due.popleft().look_ahead()

    def status(self) -> Mapping[str, Any]:
        """See `gateway.port.Planner.status`."""
        sessions = [
            {
                "session": branch.session.name,
                "calls": branch.session.calls,
                "rewrites": branch.session.rewrites,
                "epochs": len(branch.session.schedule.pager.rewrites),
                "prompt_tokens": branch.session.schedule.pager.prompt_tokens,
                "saved_units": round(branch.session.schedule.pager.ledger.saved) if branch.is_edited else 0,
                "would_save_units": round(branch.session.schedule.pager.ledger.saved),
                "append_only_units": round(branch.session.schedule.pager.ledger.append_only),
            }
            for branches in self._branches.values()
            for branch in branches
        ]
        told: dict[str, Any] = {"sessions": sessions, "is_idle": not self._due, "counts": dict(self._counts)}
        if self._archive is not None:
            archive = self._archive
            told["archive"] = {"dropped": archive.dropped, "faults": archive.faults, "last_fault": archive.last_fault}
        return told

    def close(self) -> None:
        """See `gateway.port.Planner.close`."""
        if self._standing is not None:
            self._standing.close()
        if self._archive is not None:
            self._archive.close()

    # -- inside -----------------------------------------------------------------------------

    def _planned(self, call: GatewayCall, key: SessionKey, request: WireRequest) -> PlanReply:
        digest = blake2b(call.body, digest_size=16).digest()
        branch = self._branch_of(key, request, call)
        planned: PlannedRequest | None = None
        try:
            if digest != branch.digest:
                self._tell_standing(branch, request)
            planned = branch.session.plan(request, now=call.now)
        finally:
            if planned is None:
                # Half of the request is taken in: nothing can go on from that.
                self._branches[key].remove(branch)
        if digest != branch.digest:
            branch.request, branch.digest = request, digest
            branch.reply = self._encoded(request, planned.edits)
            self._note_newest(call, request)
        body = None if branch.rests or self._is_left_alone(request) else branch.reply
        is_sent = not call.shadow and (body is not None or not planned.edits)
        branch.is_edited = branch.is_edited or (is_sent and body is not None)
        self._remember(call.call_id, _OpenCall(branch, request, planned, is_sent))
        return self._reply(call, branch, planned, body)

    def _is_left_alone(self, request: WireRequest) -> bool:
        return binds_whole_prefix(request.model) and not self._settings.edits_bound_thinking

    def _note_newest(self, call: GatewayCall, request: WireRequest) -> None:
        named = (call.credential, named_session(call.headers))
        self._newest[named] = request
        self._newest.move_to_end(named)
        while len(self._newest) > self._settings.most_sessions:
            self._newest.popitem(last=False)

    def _like(self, call: GatewayCall) -> WireRequest | None:
        """A request that this one may go on: of what stands in both nothing is read again."""
        return self._newest.get((call.credential, named_session(call.headers)))

    def _preview(self, call: GatewayCall, key: SessionKey, request: WireRequest) -> PlanReply:
        branch = self._find(key, request)
        if branch is None:
            return PlanReply(call.call_id, None, _UNCHANGED)
        is_edited = not (branch.rests or self._is_left_alone(request))
        body = self._encoded(request, branch.session.preview()) if is_edited else None
        if call.shadow:
            return PlanReply(call.call_id, None, _SHADOW)
        return PlanReply(call.call_id, body, _UNCHANGED if body is None else _PLAN)

    def _branch_of(self, key: SessionKey, request: WireRequest, call: GatewayCall) -> _Branch:
        """The conversation that the request goes on, or a new one."""
        branch = self._find(key, request)
        if branch is None:
            name = self._free_name(key, request)
            branch = _Branch(self._new_session(name, request, call), request)
            self._branches.setdefault(key, []).append(branch)
            del self._branches[key][:-_MOST_BRANCHES]
        else:
            self._branches[key].remove(branch)
            self._branches[key].append(branch)
        self._branches.move_to_end(key)
        self._forget_oldest()
        return branch

    def _forget_oldest(self) -> None:
        chars = sum(len(one.request.source) for branches in self._branches.values() for one in branches)
        while len(self._branches) > 1 and (
            len(self._branches) > self._settings.most_sessions or chars > self._settings.most_chars
        ):
            _, branches = self._branches.popitem(last=False)
            chars -= sum(len(one.request.source) for one in branches)

    def _find(self, key: SessionKey, request: WireRequest) -> _Branch | None:
        """The conversation of which the request holds most, all that is known of it; ties go to the newest."""
        best: _Branch | None = None
        most = -1
        for branch in self._branches.get(key, ()):
            known = branch.session.known_messages(request)
            if branch.session.goes_on(request) and known >= most:
                best, most = branch, known
        return best

    def _free_name(self, key: SessionKey, request: WireRequest) -> str:
        """The conversation's name in the pool: another one for each branch, so that handles mean one thing in it."""
        name = f"{key.pool_name}/{opening_digest(request)}"
        taken = {branch.session.name for branch in self._branches.get(key, ())}
        return name if name not in taken else f"{name}-{history_digest(request)}"

    def _new_session(self, name: str, request: WireRequest, call: GatewayCall) -> LiveSession:
        settings = self._settings
        return LiveSession(
            name,
            _prices(request, call),
            resident_tokens=resident_tokens(request),
            secret=settings.secret,
            params=replace(POLICIES[settings.policy], whole_blocks=request.api is WireApi.MESSAGES),
            working_folder=working_folder(request),
            expand_command=f"{settings.expand_command} {shlex.quote(name)}" if settings.expand_command else "",
        )

    def _tell_standing(self, branch: _Branch, request: WireRequest) -> None:
        """Goals, pins and cards, for agents: a side question for a title needs none."""
        standing = Standing() if self._standing is None else self._standing.newest
        if request.tools_text and branch.standing != standing:
            branch.standing = standing
            branch.session.set_resident(standing.goals, standing.pins, cards=self._settings.cards)

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

    def _reply(self, call: GatewayCall, branch: _Branch, planned: PlannedRequest, body: bytes | None) -> PlanReply:
        session = branch.session
        ledger = session.schedule.pager.ledger
        figures = {
            "session": session.name,
            "prompt_tokens": planned.plan.prompt_tokens,
            "epoch": planned.plan.epoch,
            "rewrite": planned.plan.rewrite,
            "is_rewrite": planned.is_rewrite,
            "saved_units": self._newly_saved(branch),
            "append_only_units": round(ledger.append_only),
        }
        if call.shadow:
            return PlanReply(call.call_id, None, _SHADOW, figures)
        return PlanReply(call.call_id, body, _UNCHANGED if body is None else _PLAN, figures)

    def _newly_saved(self, branch: _Branch) -> float:
        """What the conversation has saved since its last reply; nothing where only the client's bytes were sent."""
        if not branch.is_edited:
            return 0.0
        saved = branch.session.schedule.pager.ledger.saved
        newly, branch.saved_told = saved - branch.saved_told, saved
        return round(newly)

    def _remember(self, call_id: int, opened: _OpenCall) -> None:
        self._open[call_id] = opened
        while len(self._open) > _MOST_OPEN_CALLS:
            self._open.popitem(last=False)


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


def _has_giant(request: WireRequest) -> bool:
    """Whether one text is so long that reading it would hold up every other conversation."""
    return any(len(part.block.text) > MOST_BLOCK_CHARS for message in request.messages for part in message.parts)


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
