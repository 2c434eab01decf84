"""AgentSchedule: the scheduler's policy for an append-only agent session, message by message.

A chat's prompt is built afresh for each query (module ``scheduler``); an agent's request is the one before with
something behind it. Both read the same pages. Messages go in; before each call `plan` decides what the request
holds; what happens to pages is told to the event feed.
"""

from __future__ import annotations

from collections.abc import Sequence

from context_gatekeeper.core.economics import PriceProfile
from context_gatekeeper.core.ledger import PromptCache
from context_gatekeeper.engine.digest import handle_ranges
from context_gatekeeper.engine.events import EventFeed, EventKind, PageEvent
from context_gatekeeper.engine.page_faults import FaultTrigger, PageFault, PageFaults
from context_gatekeeper.engine.pager import OURS, Pager, PagerParams, Rewrite
from context_gatekeeper.engine.plan import ContextPlan
from context_gatekeeper.engine.session_log import SessionLog, written_texts
from context_gatekeeper.types import AgentMessage, BlockKind, MessageRole

__all__ = ["AgentSchedule"]

_AGENTS_TRIGGERS = frozenset({FaultTrigger.HANDLE})
"""Of what an agent writes, only a handle brings a page back by itself: it asks for the rest when it needs it, and a
page that is not used costs more than the call it may save (section 2.3 of the paging notes, tail prefetch)."""


class AgentSchedule:
    """Plans one session's requests. Rules and statistics only: no model, no network, no clock.

    Args:
        prices: what the provider charges.
        resident_tokens: system text and tools, counted apart and never cut.
        params: the numbers; ``fault_price_factor`` is the user's knob.
        session: its name, for events.
        token_factor: real tokens over estimated ones.
        feed: where events go; one of its own by default.
    """

    def __init__(
        self,
        prices: PriceProfile,
        *,
        resident_tokens: int = 0,
        params: PagerParams = OURS,
        session: str = "",
        token_factor: float = 1.0,
        feed: EventFeed | None = None,
    ) -> None:
        self.log = SessionLog(token_factor=token_factor)
        self.pager = Pager(self.log, prices, resident_tokens=resident_tokens, params=params)
        self.feed = feed or EventFeed()
        self._faults = PageFaults(self.log, self.pager.window, history=self.pager.faults)
        self._session = session
        self._prices = prices
        self._resident_tokens = resident_tokens
        self._own_cache = PromptCache(prices)
        self._append_only_cache = PromptCache(prices)
        self._told_hits = 0
        self._all_tokens = 0
        self._all_sent = 0
        self._last_request: float | None = None

    def add(self, message: AgentMessage, *, goals: Sequence[str] = ()) -> tuple[PageFault, ...]:
        """Take in one message; the page faults that its text caused. Their pages stand at the window's tail.

        Args:
            message: the next one of the session.
            goals: titles of goals that it takes up again.
        """
        found = self._find_faults(message, goals)
        pieces = self.log.add_message(message)
        self.pager.add(pieces)
        self._all_tokens += sum(piece.tokens for piece in pieces)
        for fault in found:
            self._serve(fault)
        if message.role is MessageRole.ASSISTANT:
            self._faults.used(message, turn=self.log.calls)
        return found

    def plan(self, *, now: float | None = None) -> ContextPlan:
        """Decide the next request, and the whole record of it.

        Args:
            now: when it is sent, in seconds since the epoch; None: the provider's cache is taken to be alive.
        """
        is_cold = self._is_cold(now)
        rewrite = self.pager.prepare(is_cold=is_cold)
        if rewrite is not None:
            self._tell(rewrite)
        plan = self.pager.plan()
        self._bill(plan, is_cold=is_cold)
        if self._faults.hits > self._told_hits:
            told = self._faults.hits - self._told_hits
            self._publish(EventKind.HIT, (), 0, f"{told} references to pages in the window")
            self._told_hits = self._faults.hits
        return plan

    # -- inside -----------------------------------------------------------------------------

    def _find_faults(self, message: AgentMessage, goals: Sequence[str]) -> tuple[PageFault, ...]:
        by_user = message.role is MessageRole.USER and not message.origin
        if not by_user and message.role is not MessageRole.ASSISTANT:
            return ()
        if by_user:
            text = "\n".join(block.text for block in message.blocks if block.kind is BlockKind.TEXT)
        else:
            text = "\n".join(written_texts(message))
        found = self._faults.find(text, turn=self.log.calls, by_user=by_user, goals=goals)
        return tuple(fault for fault in found if by_user or fault.trigger in _AGENTS_TRIGGERS)

    def _serve(self, fault: PageFault) -> None:
        pages = (fault.handle,)
        told = f"{fault.kind.value}, {fault.trigger.value}: {fault.reason}"
        self._publish(EventKind.FAULT, pages, fault.tokens, told)
        if not fault.pieces:
            return
        self.pager.bring_back(fault.pieces)
        self._publish(EventKind.SWAPPED_IN, pages, fault.tokens, fault.reason)
        if fault.refetched:
            self._publish(EventKind.REFETCHED, pages, fault.tokens, "it had left a few calls before")
        if fault.pinned_for_run or fault.resident_until is not None:
            self._publish(EventKind.PINNED, pages, fault.tokens, "it came back again and again")

    def _tell(self, rewrite: Rewrite) -> None:
        self._faults.swapped_out(rewrite.swapped_out, self.log.calls)
        handles = tuple(handle_ranges(self.log, sorted(rewrite.swapped_out)))
        tokens = sum(self.log.slices[number].tokens for number in rewrite.swapped_out)
        self._publish(EventKind.EPOCH, (), rewrite.tokens_before - rewrite.tokens_after, rewrite.reason)
        self._publish(EventKind.SWAPPED_OUT, handles, tokens, "hardly quoted again")

    def _publish(self, kind: EventKind, pages: tuple[str, ...], tokens: int, reason: str) -> None:
        self.feed.publish(PageEvent(kind, self._session, self.log.calls, pages, tokens, reason))

    def _bill(self, plan: ContextPlan, *, is_cold: bool) -> None:
        """Keep the net ledger: this request, and what it would have been with everything in it."""
        resident = self._resident_tokens
        first = self._own_cache.bill.calls == 0
        common = 0 if first else resident + plan.window_tokens - plan.written_tokens
        self.pager.ledger.spent += self._own_cache.call(plan.prompt_tokens, common, is_cold=is_cold)
        everything = resident + self._all_tokens
        known = 0 if first else resident + self._all_sent
        self.pager.ledger.append_only += self._append_only_cache.call(everything, known, is_cold=is_cold)
        self._all_sent = self._all_tokens

    def _is_cold(self, now: float | None) -> bool:
        last, self._last_request = self._last_request, now if now is not None else self._last_request
        return last is not None and now is not None and now - last > self._prices.ttl_seconds
