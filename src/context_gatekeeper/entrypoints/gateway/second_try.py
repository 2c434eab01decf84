"""A request that the provider refused because of us is sent once more, before the client hears of the refusal.

Two things of ours can make a request invalid that was not. What was planned may break a rule that we do not know: the
client's own bytes go then. And thinking that answered an edited request is bound to it: where the client's own bytes
went in between (a plan came too late, the planner was started again, the model was changed), the planner is asked for
what fits, or for the request without that thinking.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp

from context_gatekeeper.entrypoints.gateway.codings import decode_beginning_aside
from context_gatekeeper.entrypoints.gateway.decide import BYPASS, PLAN, Decider, Decision
from context_gatekeeper.entrypoints.gateway.metrics import GatewayMetrics
from context_gatekeeper.entrypoints.gateway.upstream_client import UpstreamUnreachableError
from context_gatekeeper.gateway.port import SentAs
from context_gatekeeper.wire.models import is_about_thinking
from context_gatekeeper.wire.native import is_about_native

__all__ = ["Answered", "SecondTry"]

_REFUSED = 400
_MOST_REFUSAL_BYTES = 64 * 1024
_MOST_DECODED_BYTES = 1024 * 1024
Ask = Callable[[bytes, bool], Awaitable[aiohttp.ClientResponse]]


@dataclass(frozen=True, slots=True)
class Answered:
    """An upstream's answer."""

    response: aiohttp.ClientResponse
    """Whoever has it closes it."""
    beginning: bytes = b""
    """What was read of its body."""


class SecondTry:
    """Looks at the heads of answers.

    Args:
        decider: asks the planner.
        metrics: counts.
    """

    def __init__(self, decider: Decider, metrics: GatewayMetrics) -> None:
        self._decider = decider
        self._metrics = metrics

    async def answered(self, decision: Decision, response: aiohttp.ClientResponse, ask: Ask) -> Answered:
        """The answer that the client gets: this one, or that to another form of the request.

        Args:
            decision: about the request; says afterwards what was sent.
            response: to what was sent first; closed when it is not returned.
            ask: sends a body, edited or not, and returns the answer.
        """
        if response.status != _REFUSED or decision.call is None:
            return Answered(response)
        beginning = await _beginning(response)
        for body, is_edited in await self._other_forms(decision, response, beginning):
            try:
                other = await ask(body, is_edited)
            except UpstreamUnreachableError:
                break
            if is_edited and other.status == _REFUSED:
                other.close()
                continue
            response.close()
            self._note_sent(decision, is_edited=is_edited)
            return Answered(other)
        return Answered(response, beginning)

    async def _other_forms(
        self, decision: Decision, response: aiohttp.ClientResponse, beginning: bytes
    ) -> list[tuple[bytes, bool]]:
        """(body, whether it is edited) of what may be sent instead, in the order of trying."""
        forms: list[tuple[bytes, bool]] = []
        coding = response.headers.get("content-encoding", "")
        refusal = await decode_beginning_aside(beginning, coding, most_bytes=_MOST_DECODED_BYTES) or b""
        text = refusal.decode("utf-8", "replace")
        if is_about_thinking(text) and not (decision.betas and is_about_native(text)):
            repaired = await self._decider.repair(decision)
            if repaired is not None:
                forms.append((repaired, True))
        if decision.is_edited:
            forms.append((decision.own_body, False))
        return forms

    def _note_sent(self, decision: Decision, *, is_edited: bool) -> None:
        self._metrics.count("cgk_second_tries_total", sent="plan" if is_edited else "own")
        decision.is_edited = is_edited
        decision.sent_as = SentAs.PLANNED if is_edited else SentAs.REFUSED
        decision.note = PLAN if is_edited else BYPASS


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    """An error's body; of one that is longer than errors are, or breaks off, what came first."""
    pieces = b""
    try:
        while piece := await response.content.read(_MOST_REFUSAL_BYTES - len(pieces)):
            pieces += piece
    except (aiohttp.ClientError, OSError):
        pass  # Whoever reads on sees it too.
    return pieces
