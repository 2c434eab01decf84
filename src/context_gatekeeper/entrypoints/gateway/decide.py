"""What becomes of one request: asks the planner in time, and falls back on the client's own bytes."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from context_gatekeeper.config_gateway import GatewayConfig
from context_gatekeeper.entrypoints.gateway.codings import CodingError, decode_body_aside, split_codings
from context_gatekeeper.entrypoints.gateway.headers import CredentialHash, CredentialMask, session_headers
from context_gatekeeper.entrypoints.gateway.metrics import GatewayMetrics
from context_gatekeeper.entrypoints.gateway.planner_process import PlannerFaultError, PlannerProcess
from context_gatekeeper.entrypoints.gateway.routes import Target
from context_gatekeeper.entrypoints.gateway.sent_before import SentBefore
from context_gatekeeper.gateway.port import GatewayCall, PlanReply, SentAs

__all__ = ["BYPASS", "OFF", "UNCHANGED", "Decider", "Decision"]

_LOGGER = logging.getLogger(__name__)
PLAN, UNCHANGED, SHADOW, BYPASS, OFF = "plan", "unchanged", "shadow", "bypass", "off"
_LARGE_BODY_BYTES = 1_000_000
_MOST_RATIO = 100.0
_MOST_SENT_BYTES = 64 * 1024 * 1024
_HIDDEN_FAULTS = (CodingError, PlannerFaultError)


@dataclass(slots=True)
class Decision:
    """What is sent for one request."""

    body: bytes
    """Whoever sends it takes it away (`take_body`)."""
    note: str
    """For the header ``x-gatekeeper``."""
    is_edited: bool = False
    call_id: int | None = None
    """Set when the planner was handed the call, and will hear of the answer."""
    sent_as: SentAs = SentAs.OWN
    betas: tuple[str, ...] = ()
    """What ``anthropic-beta`` has to hold when what was planned is sent."""
    call: GatewayCall | None = None
    """What the planner was asked, while the request may have to be sent once more."""
    mask: CredentialMask = field(default_factory=CredentialMask)
    """Hides the request's credentials in what the planner hears of its answer."""
    shown: CredentialMask = field(default_factory=CredentialMask)
    """Shows those again that were hidden in the request."""
    own_body: bytes = b""
    """The client's own bytes, for as long."""

    def take_body(self) -> bytes:
        """The body, which is not held here any longer."""
        body, self.body = self.body, b""
        return body

    def forget_own(self) -> None:
        """Let go what a second try would need."""
        self.call, self.own_body = None, b""


class Decider:
    """Turns requests into decisions. Never raises for anything that the planner or a body does.

    Args:
        config: deadlines and caps.
        planner: asked for plans.
        metrics: counts what happened.
        credentials: names who asks.
    """

    def __init__(
        self, config: GatewayConfig, planner: PlannerProcess, metrics: GatewayMetrics, credentials: CredentialHash
    ) -> None:
        self._config = config
        self._planner = planner
        self._metrics = metrics
        self._credentials = credentials
        self._call_ids = itertools.count(1)
        self._sent_before = SentBefore(_MOST_SENT_BYTES)

    async def decide(
        self, target: Target, headers: Mapping[bytes, bytes], query: bytes, body: bytes, *, wants_shadow: bool
    ) -> Decision:
        """Plan a whole body that has just come."""
        decision = Decision(body, BYPASS)
        began = time.monotonic()
        try:
            await self._plan(decision, target, headers, query, began, wants_shadow=wants_shadow)
        except _HIDDEN_FAULTS as fault:
            where = fault.where if isinstance(fault, PlannerFaultError) else "coding"
            self._fail_open(decision, where)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not become one of the client's
            _LOGGER.warning("planning failed with %s; the request is sent as it came", type(error).__name__)
            self._fail_open(decision, "gateway")
        self._metrics.observe_seconds("cgk_schedule_seconds", time.monotonic() - began)
        return decision

    async def repair(self, decision: Decision) -> bytes | None:
        """What may be sent in place of a request that was refused for its thinking; None for nothing else."""
        if decision.call is None:
            return None
        seconds = self._config.repair_seconds
        try:
            reply = await self._planner.repair(decision.call, seconds, was_edited=decision.is_edited)
        except PlannerFaultError as fault:
            self._metrics.count("cgk_fail_open_total", where=fault.where)
            return None
        self._metrics.add_figures(reply.figures)
        decision.betas = reply.betas
        return None if reply.body is None else decision.shown.show(reply.body)

    def _fail_open(self, decision: Decision, where: str) -> None:
        decision.note = BYPASS
        self._metrics.count("cgk_fail_open_total", where=where)

    async def _plan(
        self,
        decision: Decision,
        target: Target,
        headers: Mapping[bytes, bytes],
        query: bytes,
        began: float,
        *,
        wants_shadow: bool,
    ) -> None:
        is_large = len(decision.body) > _LARGE_BODY_BYTES
        seconds = self._config.plan_large_seconds if is_large else self._config.plan_seconds
        plain = await self._plain_body(decision.body, headers.get(b"content-encoding", b"").decode("latin-1"), seconds)
        decision.mask = self._credentials.mask(headers, query)
        plain, decision.shown = decision.mask.hide_request(plain)
        call = GatewayCall(
            call_id=next(self._call_ids),
            route=target.route,
            upstream=target.upstream,
            prices=target.prices,
            credential=self._credentials.of(headers, query),
            headers=session_headers(headers),
            now=time.time(),
            body=plain,
            shadow=wants_shadow or self._config.shadow,
            is_own_api=target.is_own_api,
        )
        if not call.shadow:
            decision.call, decision.own_body = call, decision.body
        try:
            reply = await self._planner.plan(call, max(seconds - (time.monotonic() - began), 0.0))
        except PlannerFaultError as fault:
            # Late or not, the planner may have taken the call: it must hear that its plan was not sent.
            decision.call_id = call.call_id if fault.where in ("late", "raised", "junk") else None
            if fault.where in ("late", "queue") and self._go_on(decision, call):
                return
            raise
        decision.call_id, decision.sent_as = call.call_id, SentAs.PLANNED
        self._take_reply(decision, call, reply)

    async def _plain_body(self, body: bytes, coding: str, seconds: float) -> bytes:
        """The body without codings. Raises CodingError and, when decoding takes too long, PlannerFaultError."""
        if not split_codings(coding):
            return body
        limits = {"most_bytes": self._config.max_decoded_bytes, "most_ratio": _MOST_RATIO}
        try:
            async with asyncio.timeout(seconds):
                return await decode_body_aside(body, coding, **limits)  # type: ignore[arg-type]
        except TimeoutError:
            raise PlannerFaultError("late") from None

    def _go_on(self, decision: Decision, call: GatewayCall) -> bool:
        """Send what is new behind what was sent before, where that is known; return whether it is."""
        body = None if call.shadow else self._sent_before.continued(_owner(call), call.body)
        if body is None:
            return False
        self._metrics.count("cgk_continued_total")
        decision.body, decision.note, decision.is_edited = decision.shown.show(body), PLAN, True
        decision.sent_as = SentAs.CONTINUED
        return True

    def _take_reply(self, decision: Decision, call: GatewayCall, reply: PlanReply) -> None:
        self._metrics.add_figures(reply.figures)
        self._sent_before.note(_owner(call), call.body, reply.body or b"", reply.cuts)
        if reply.note == BYPASS:
            self._fail_open(decision, "planner")
        elif call.shadow:
            decision.note = SHADOW
        elif reply.body is None or reply.body == call.body:
            decision.note = UNCHANGED
        else:
            decision.body, decision.note, decision.is_edited = decision.shown.show(reply.body), PLAN, True
            decision.betas = reply.betas


def _owner(call: GatewayCall) -> tuple[object, ...]:
    """Who asks what of whom, in which session."""
    return call.credential, call.upstream, call.route, tuple(sorted(call.headers.items()))
