"""LiveSession: one conversation as it goes through the gateway, request after request.

A request holds the conversation from its beginning. What is new in it goes into the schedule, the schedule decides,
and the renderer says what changes on the wire. The same request gives the same bytes again; a longer one keeps the
bytes of what it sent before, but for the rewrites that the schedule declares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import takewhile
from typing import NamedTuple, cast

from context_gatekeeper.core.economics import PriceProfile
from context_gatekeeper.core.recalled_text import neutralise
from context_gatekeeper.core.tokens import Calibration, estimate_tokens
from context_gatekeeper.engine.agent_schedule import AgentSchedule
from context_gatekeeper.engine.goals import Goal, Pin
from context_gatekeeper.engine.pager_params import OURS, PagerParams
from context_gatekeeper.engine.plan import ContextPlan
from context_gatekeeper.gateway.breakpoints import Layout, layout_of, next_changes, place_marks, tail_start
from context_gatekeeper.gateway.rendering import WindowRenderer
from context_gatekeeper.types import AgentMessage, BlockKind, MessageRole, Usage
from context_gatekeeper.wire.models import binds_whole_prefix
from context_gatekeeper.wire.records import PartKey, RequestEdits, WireApi, WireRequest, WireTurn

__all__ = ["NO_PAGE", "LiveSession", "PlannedRequest", "resident_tokens"]

_MOST_UNDECIDED = 3
"""Requests that may go out before a decision that nobody had time for is made while one waits."""
_EXPAND_TOOL = "cgk_expand"
NO_PAGE = "There is no such page in this conversation. Handles look like p12, or p12#L3-40 for some of its lines."
_CUT_SHORT = "[cut short here: ask for some of its lines, such as p12#L400-600]"
_MOST_FETCHED_CHARS = 60_000
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
    common: int = 0
    """Blocks that the request before had too."""
    changes: tuple[int, ...] = ()
    """Blocks at which rewrites may begin, that get breakpoints."""
    edits: RequestEdits = field(default_factory=RequestEdits)
    """Without breakpoints."""
    planned: PlannedRequest | None = None
    before: RequestEdits = field(default_factory=RequestEdits)
    """Those of what the provider got before this one."""
    got: tuple[RequestEdits, Layout] | None = None
    """What the provider got, where that is not what was planned."""

    @property
    def provider_layout(self) -> Layout:
        """Blocks that the provider got."""
        return self.layout if self.got is None else self.got[1]

    @property
    def provider_edits(self) -> RequestEdits:
        """Edits of what the provider got."""
        return self.edits if self.got is None else self.got[0]


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
        has_own_tool: whether the gateway gives the model a tool for it.
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
        has_own_tool: bool = False,
    ) -> None:
        self.name = name
        self.prices = prices
        self.schedule = AgentSchedule(
            prices,
            resident_tokens=resident_tokens,
            # What the user said last stays whatever the numbers say.
            params=replace(params, kept_exchanges=max(1, params.kept_exchanges)),
            session=name,
            working_folder=working_folder,
            window_tokens=window_tokens,
        )
        self.calls = 0
        """Requests planned."""
        self.rewrites = 0
        """Requests in which something changed that an earlier one held."""
        self._secret = secret
        self._expand_command = expand_command
        self._keys: list[PartKey] = []
        self._turns = 0
        self._renderer = WindowRenderer(
            self.schedule.log,
            self._keys,
            session=neutralise(name),
            secret=secret,
            expand_command=expand_command,
            has_own_tool=has_own_tool,
        )
        self._sent = _Sent()
        self._known: tuple[bytes, ...] = ()
        """Fingerprints of the newest request's messages; it may not be planned yet."""
        self._tail = (0, 0)
        """Where the untouched tail began at the newest rewrite, and requests since."""
        self._undecided = 0
        """Requests planned since `look_ahead` was called."""
        self._is_read_later = False
        self._has_fetched = False
        """Whether the model fetched pages in the answer to the newest request."""
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
        for message, known in zip(request.messages, self._known, strict=False):
            if message.fingerprint != known:
                break
            common += 1
        return common

    def goes_on(self, request: WireRequest) -> bool:
        """Whether the request holds all that is known, and perhaps more."""
        return self.known_messages(request) == len(self._known)

    def unread_chars(self, request: WireRequest) -> int:
        """Characters of a request that goes on which are not taken in."""
        return sum(len(block.text) for turn in request.turns[self._turns :] for block in turn.message.blocks)

    def begin_reading(self, request: WireRequest) -> None:
        """Say that the client's own bytes were sent for a request that goes on, and that it is read piece by piece."""
        self._known = _fingerprints(request)
        self._is_read_later = True

    def read(self, request: WireRequest, most_chars: int) -> bool:
        """Take in some turns of the request that is being read.

        Args:
            request: of `begin_reading`.
            most_chars: after so many characters it ends; one turn is always taken in.

        Returns:
            Whether all of it is taken in: it can be planned then, for the sake of what comes behind it.
        """
        chars = 0
        while self._turns < len(request.turns) and chars < most_chars:
            chars += self._take_in_turn(request.turns[self._turns])
        return self._turns == len(request.turns)

    def plan(self, request: WireRequest, *, now: float) -> PlannedRequest:
        """Take in what is new in a request that goes on, and decide what is sent.

        Args:
            request: one for which `goes_on` holds.
            now: when it is sent, in seconds since the epoch.
        """
        sent = self._sent
        if sent.planned is not None and len(request.messages) == len(sent.fingerprints):
            return self._planned_again(request, sent.planned)
        # What was sent as it came while it was read is in the provider's cache: nothing is cold then.
        is_resumed = not (self.calls or self._is_read_later) and any(turn.message.is_call for turn in request.turns)
        for turn in request.turns[self._turns :]:
            self._take_in_turn(turn)
        postpones = self._undecided < _MOST_UNDECIDED
        self._undecided += 1
        plan = self.schedule.plan(now=now, is_cold=is_resumed, postpones=postpones, explains=False)
        if self._has_fetched:
            self._renderer.unbound |= _apart(request, len(sent.fingerprints))
            self._has_fetched = False
        newest = max((m.number for m in request.messages if m.role in _USERS_SIDE), default=-1)
        entries = self.schedule.pager.window.entries
        if newest >= len(sent.fingerprints):  # nothing is added to what was sent before
            self._renderer.host_at(entries, newest)
        edits = self._renderer.render(request, entries)
        layout = layout_of(request, edits)
        if unbound := self._unbound(request, edits, layout):
            self._renderer.unbound |= unbound
            edits = self._renderer.render(request, entries)
            layout = layout_of(request, edits)
        common = _common(layout, sent.provider_layout)
        is_rewrite = common < len(sent.provider_layout)
        self._tail = (tail_start(layout), 0) if is_rewrite else (self._tail[0], self._tail[1] + 1)
        changes = next_changes(*self._tail)
        marked = place_marks(request, edits, layout, common, changes)
        planned = PlannedRequest(marked, plan, is_rewrite)
        self.calls += 1
        self.rewrites += is_rewrite
        self._known = _fingerprints(request)
        self._sent = _Sent(self._known, layout, common, changes, edits, planned, before=sent.provider_edits)
        return planned

    def without_thinking(self, request: WireRequest) -> PlannedRequest:
        """The newest request once more, without any thinking: the provider found that it belongs to another prefix.

        Args:
            request: planned before. What leaves here stays away from those that follow.
        """
        sent = self._sent
        planned = cast("PlannedRequest", sent.planned)
        self._renderer.unbound |= _thinking(request)
        edits = self._renderer.render(request, self.schedule.pager.window.entries)
        layout = layout_of(request, edits)
        common = _common(layout, sent.provider_layout)
        self._tail = tail_start(layout), 0
        changes = next_changes(*self._tail)
        marked = place_marks(request, edits, layout, common, changes)
        planned = PlannedRequest(marked, planned.plan, is_rewrite=True)
        self.rewrites += 1
        self._sent = _Sent(sent.fingerprints, layout, common, changes, edits, planned, before=sent.before)
        return planned

    def preview(self) -> RequestEdits:
        """The edits of what is known, without breakpoints: a longer request gets them too; for counting tokens."""
        return self._sent.edits

    def bypassed(self, request: WireRequest, planned: PlannedRequest) -> None:
        """Note that the client's own bytes were sent in place of what was planned, where that is the newest."""
        self._note_got(request, planned, RequestEdits())

    def continued(self, request: WireRequest, planned: PlannedRequest) -> None:
        """Note that the request was sent as the one before, with what is new behind it; the plan came too late."""
        self._note_got(request, planned, self._sent.before)

    def fetch(self, handle: str) -> str:
        """The text of a page that the model asks for while it answers; it stands in the next request too.

        Args:
            handle: as the model wrote it.

        Returns:
            A text for the model whatever it wrote.
        """
        self._has_fetched = True
        text = self.schedule.fetch(handle)
        if text is None:
            return NO_PAGE
        if len(text) > _MOST_FETCHED_CHARS:
            return f"{text[:_MOST_FETCHED_CHARS]}\n{_CUT_SHORT}"
        return text

    def look_ahead_steps(self) -> Iterator[None]:
        """Decide about the next request's window while nobody waits for it, in steps of some milliseconds.

        Until the last one nothing is decided; what comes meanwhile ends them.
        """
        if (yield from self.schedule.look_ahead_steps()):
            self._undecided = 0

    def look_ahead(self) -> None:
        """All steps of `look_ahead_steps`."""
        for _ in self.look_ahead_steps():
            pass

    def heard(self, usage: Usage, planned: PlannedRequest) -> None:
        """Take what the provider counted for a request into the ledger and the calibration.

        Args:
            usage: of its answer.
            planned: what was sent. What comes after the next request was planned is too late, and passed over.
        """
        if not self._is_newest(planned) or not usage.prompt_tokens:
            return
        log, growth = self.schedule.log, self._growth
        now = _Growth(usage.prompt_tokens, planned.plan.prompt_tokens, planned.plan.epoch)
        if growth.rewrites == now.rewrites:
            # Only what was added since counts: it was all counted with the factor of today.
            counted = round((now.counted - growth.counted) / log.token_factor)
            self._calibration = self._calibration.updated(now.real - growth.real, counted)
            log.token_factor = self._calibration.factor
        self._growth = now
        self.schedule.heard(usage)

    # -- inside -----------------------------------------------------------------------------

    def _note_got(self, request: WireRequest, planned: PlannedRequest, edits: RequestEdits) -> None:
        if self._is_newest(planned):
            self._sent.got = (edits, layout_of(request, edits))

    def _is_newest(self, planned: PlannedRequest) -> bool:
        sent = self._sent.planned
        return sent is not None and sent.plan is planned.plan

    def _planned_again(self, request: WireRequest, planned: PlannedRequest) -> PlannedRequest:
        """The same messages: the same edits of the same parts. Breakpoints of the client may stand elsewhere."""
        sent = self._sent
        edits = place_marks(request, sent.edits, sent.layout, sent.common, sent.changes)
        return planned if edits == planned.edits else planned._replace(edits=edits)

    def _unbound(self, request: WireRequest, edits: RequestEdits, layout: Layout) -> set[PartKey]:
        """Thinking whose signature binds a prefix that is not what is sent now: all behind the first change.

        Of a conversation that began elsewhere the client's own bytes are taken for what the provider got, and so they
        are for all that the client went on with beside us. Where that is wrong the provider says so.
        """
        if not binds_whole_prefix(request.model):
            return set()
        sent = self._sent
        before = layout_of(request, RequestEdits()) if sent.planned is None else sent.provider_layout
        common = _common(layout, before)
        changed = {block.key for block in layout[common:] if block.key is not None}
        if sent.planned is not None and common == len(before):
            # Thinking that answers what was sent last is right; what the client went on with beside us is not.
            new = [m.number for m in request.messages[len(sent.fingerprints) :] if m.role in _USERS_SIDE]
            first = new[0] if new else len(request.messages)
            changed = {key for key in changed if key.message >= first} if edits else set()
        return _thinking(request) & changed

    def _take_in_turn(self, turn: WireTurn) -> int:
        """Add a turn to the schedule; return its characters."""
        self.schedule.add(turn.message, is_served=_asks_for_pages(turn.message, self._expand_command))
        self._keys += turn.keys
        self._turns += 1
        return sum(len(block.text) for block in turn.message.blocks)


def resident_tokens(request: WireRequest) -> int:
    """Tokens of system texts and tools by the estimate."""
    return estimate_tokens(request.system_text) + estimate_tokens(request.tools_text)


def _fingerprints(request: WireRequest) -> tuple[bytes, ...]:
    return tuple(message.fingerprint for message in request.messages)


def _thinking(request: WireRequest) -> set[PartKey]:
    return {part.key for message in request.messages for part in message.parts if part.block.kind is BlockKind.THINKING}


def _apart(request: WireRequest, first: int) -> set[PartKey]:
    """Thinking of an answer that was made of several: the client does not send back what stood between them.

    A service that binds thinking, or keeps it together with what it led to, would refuse it.
    """
    if not (request.api is WireApi.RESPONSES or binds_whole_prefix(request.model)):
        return set()
    answer = takewhile(lambda message: message.role is MessageRole.ASSISTANT, request.messages[first:])
    numbers = {message.number for message in answer}
    return {key for key in _thinking(request) if key.message in numbers}


def _asks_for_pages(message: AgentMessage, command: str) -> bool:
    """Whether the model calls the tool, or runs the command, that gives pages back: its result brings them."""
    calls = [block for block in message.blocks if block.kind is BlockKind.TOOL_CALL]
    return any(block.name.endswith(_EXPAND_TOOL) or (bool(command) and command in block.text) for block in calls)


def _common(now: Layout, before: Layout) -> int:
    """Blocks that two layouts have in common, from the first on."""
    count = 0
    for one, other in zip(now, before, strict=False):
        if one.identity != other.identity:
            break
        count += 1
    return count
