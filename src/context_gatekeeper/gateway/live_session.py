"""LiveSession: one conversation as it goes through the gateway, request after request.

A request holds the conversation from its beginning. What is new in it goes into the schedule, the schedule decides,
and the renderer says what changes on the wire. The same request gives the same bytes again; a longer one keeps the
bytes of what it sent before, but for the rewrites that the schedule declares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from context_gatekeeper.core.economics import PriceProfile
from context_gatekeeper.core.recalled_text import neutralise
from context_gatekeeper.core.tokens import Calibration, estimate_tokens
from context_gatekeeper.engine.agent_schedule import AgentSchedule
from context_gatekeeper.engine.goals import Goal, Pin
from context_gatekeeper.engine.pager_params import OURS, PagerParams
from context_gatekeeper.engine.plan import ContextPlan
from context_gatekeeper.gateway.breakpoints import Layout, layout_of, place_marks
from context_gatekeeper.gateway.rendering import WindowRenderer
from context_gatekeeper.types import AgentMessage, BlockKind, MessageRole, Usage
from context_gatekeeper.wire.models import binds_whole_prefix
from context_gatekeeper.wire.records import PartKey, RequestEdits, WireRequest

__all__ = ["LiveSession", "PlannedRequest", "resident_tokens"]

_EXPAND_TOOL = "cgk_expand"
_FENCE_BYTES = 8
_USERS_SIDE = frozenset({MessageRole.USER, MessageRole.TOOL})


class PlannedRequest(NamedTuple):
    """What was decided for one request."""

    edits: RequestEdits
    plan: ContextPlan
    is_rewrite: bool
    """Whether something that an earlier request held is changed or gone."""


@dataclass(slots=True)
class _Growth:
    """Prompt of the newest answered request: what the provider counted, and what we did."""

    real: int = 0
    counted: int = 0
    rewrites: int = -1
    """Made before it."""


@dataclass(slots=True)
class _Sent:
    """The newest request."""

    fingerprints: tuple[bytes, ...] = ()
    layout: Layout = field(default_factory=tuple)
    planned: PlannedRequest | None = None


class LiveSession:
    """Plans the requests of one conversation.

    Args:
        name: of the session in the pool.
        prices: what the provider charges.
        resident_tokens: of system texts and tools.
        secret: from which fences are drawn.
        params: the planner's numbers.
        working_folder: where relative paths start; "" when that is not known.
        window_tokens: most that the model takes in one request; None for no bound.
        expand_command: with which an agent gets a page itself; "" where there is none.
    """

    def __init__(
        self,
        name: str,
        prices: PriceProfile,
        *,
        resident_tokens: int,
        secret: bytes,
        params: PagerParams = OURS,
        working_folder: str = "",
        window_tokens: int | None = None,
        expand_command: str = "",
    ) -> None:
        self.name = name
        self.prices = prices
        self.schedule = AgentSchedule(
            prices,
            resident_tokens=resident_tokens,
            params=params,
            session=name,
            working_folder=working_folder,
            window_tokens=window_tokens,
        )
        self.calls = 0
        """Requests planned."""
        self.rewrites = 0
        """Requests in which something changed that an earlier one held."""
        self._secret = secret
        self._keys: list[PartKey] = []
        self._turns = 0
        self._renderer = WindowRenderer(
            self.schedule.log,
            self._keys,
            session=neutralise(name),
            secret=secret,
            expand_command=expand_command,
        )
        self._sent = _Sent()
        self._epoch = 0
        self._calibration = Calibration()
        self._growth = _Growth()

    def set_resident(self, goals: Sequence[Goal], pins: Sequence[Pin], *, cards: bool = True) -> None:
        """Say what the user wants to be always there, and whether the running task's card is; again when it changes."""
        told = self.name.encode("utf-8", "surrogatepass")
        fence = blake2b(told, key=self._secret, digest_size=_FENCE_BYTES).hexdigest()
        self.schedule.set_resident(fence=fence, goals=goals, pins=pins, cards=cards)

    def known_messages(self, request: WireRequest) -> int:
        """How many messages the request has in common with what is known, from the first on."""
        common = 0
        for message, known in zip(request.messages, self._sent.fingerprints, strict=False):
            if message.fingerprint != known:
                break
            common += 1
        return common

    def goes_on(self, request: WireRequest) -> bool:
        """Whether the request holds all that is known, and perhaps more."""
        return self.known_messages(request) == len(self._sent.fingerprints)

    def plan(self, request: WireRequest, *, now: float) -> PlannedRequest:
        """Take in what is new in a request that goes on, and decide what is sent.

        Args:
            request: one for which `goes_on` holds.
            now: when it is sent, in seconds since the epoch.
        """
        is_new = len(request.messages) > len(self._sent.fingerprints)
        if not is_new and self._sent.planned is not None:
            return self._sent.planned  # the same messages: the same edits, of the same parts
        is_resumed = not self.calls and any(turn.message.is_call for turn in request.turns)
        self._take_in(request)
        plan = self.schedule.plan(now=now, is_cold=is_resumed, explains=False)
        newest = max((m.number for m in request.messages if m.role in _USERS_SIDE), default=0)
        entries = self.schedule.pager.window.entries
        self._renderer.host_at(entries, newest)
        epoch = len(self.schedule.pager.rewrites)
        if epoch > self._epoch and binds_whole_prefix(request.model):
            self._renderer.thinking_floor = len(request.messages)
        self._epoch = epoch
        edits = self._renderer.render(request, entries)
        layout = layout_of(request, edits)
        common = _common(layout, self._sent.layout)
        is_rewrite = common < len(self._sent.layout)
        edits = place_marks(request, edits, layout, common)
        self.calls += 1
        self.rewrites += is_rewrite
        planned = PlannedRequest(edits, plan, is_rewrite)
        self._sent = _Sent(tuple(message.fingerprint for message in request.messages), layout, planned)
        return planned

    def preview(self, request: WireRequest) -> RequestEdits:
        """The edits that a request would get of what is known, without taking anything in: for counting tokens."""
        if self._sent.planned is None:
            return RequestEdits()
        return self._renderer.render(request, self.schedule.pager.window.entries)

    def look_ahead(self) -> None:
        """Decide about the next request's window while nobody waits for it."""
        self.schedule.look_ahead()

    def heard(self, usage: Usage) -> None:
        """Take what the provider counted for the newest request into the ledger and the calibration."""
        planned = self._sent.planned
        if planned is None or not usage.prompt_tokens:
            return
        log, growth = self.schedule.log, self._growth
        now = _Growth(usage.prompt_tokens, planned.plan.prompt_tokens, len(self.schedule.pager.rewrites))
        if growth.rewrites == now.rewrites:
            # Only what was added since counts: it was all counted with the factor of today.
            counted = round((now.counted - growth.counted) / log.token_factor)
            self._calibration = self._calibration.updated(now.real - growth.real, counted)
            log.token_factor = self._calibration.factor
        self._growth = now
        self.schedule.heard(usage)

    # -- inside -----------------------------------------------------------------------------

    def _take_in(self, request: WireRequest) -> None:
        for turn in request.turns[self._turns :]:
            self.schedule.add(turn.message, is_served=_asks_for_pages(turn.message))
            self._keys += turn.keys
        self._turns = len(request.turns)


def resident_tokens(request: WireRequest) -> int:
    """Tokens of system texts and tools by the estimate."""
    return estimate_tokens(request.system_text) + estimate_tokens(request.tools_text)


def _asks_for_pages(message: AgentMessage) -> bool:
    """Whether the model calls the tool that gives pages back: its result brings them."""
    return any(block.kind is BlockKind.TOOL_CALL and block.name.endswith(_EXPAND_TOOL) for block in message.blocks)


def _common(now: Layout, before: Layout) -> int:
    """Blocks that two layouts have in common, from the first on."""
    count = 0
    for one, other in zip(now, before, strict=False):
        if one.identity != other.identity:
            break
        count += 1
    return count
