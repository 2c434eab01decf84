"""AgentSchedule: the scheduler's policy for an append-only agent session, message by message.

A chat's prompt is built afresh for each query (module ``scheduler``); an agent's request is the one before with
something behind it. Both read the same pages. Messages go in; before each call `plan` decides what the request
holds; what happens to pages is told to the event feed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from context_gatekeeper.core.economics import PriceProfile, call_price
from context_gatekeeper.core.ledger import PromptCache
from context_gatekeeper.core.tokens import MESSAGE_TOKENS
from context_gatekeeper.engine.digest import handle_ranges, slice_text, units_in
from context_gatekeeper.engine.events import EventFeed, EventKind, PageEvent
from context_gatekeeper.engine.goals import Goal, Pin, pinned_items
from context_gatekeeper.engine.named_blocks import NamedBlocks
from context_gatekeeper.engine.page_faults import FaultTrigger, PageFault, PageFaults
from context_gatekeeper.engine.pager import Pager, Rewrite
from context_gatekeeper.engine.pager_params import OURS, PagerParams
from context_gatekeeper.engine.plan import ContextPlan
from context_gatekeeper.engine.resident import RESIDENT_PARAMS, KnowledgeEntry, ResidentParams, card_text, pinned_text
from context_gatekeeper.engine.schedule_checks import check_now, check_schedule
from context_gatekeeper.engine.session_cards import RunningCards, TaskCard
from context_gatekeeper.engine.session_log import SessionLog, written_texts
from context_gatekeeper.engine.window import EntryForm
from context_gatekeeper.types import AgentMessage, BlockKind, MessageRole, Usage

__all__ = ["AgentSchedule"]

_CARD_REASON = "the running task's constraints and card"
_OLD_CARD_REASON = "an older card: leaves with the next rewrite from here on"

_USERS_TRIGGERS = frozenset(FaultTrigger)
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
        working_folder: where relative paths of the session start.
        window_tokens: most that the model takes in one request, resident part included; None for no bound.
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
        working_folder: str = "",
        window_tokens: int | None = None,
    ) -> None:
        check_schedule(prices, resident_tokens, token_factor, window_tokens)
        self.log = SessionLog(token_factor=token_factor)
        self.pager = Pager(
            self.log, prices, resident_tokens=resident_tokens, params=params, window_tokens=window_tokens
        )
        self.feed = EventFeed() if feed is None else feed
        self._faults = PageFaults(self.log, self.pager.window, history=self.pager.faults)
        self._session = session
        self._prices = prices
        self._resident_tokens = resident_tokens
        self._window_tokens = window_tokens
        self._own_cache = PromptCache(prices)
        self._append_only_cache = PromptCache(prices)
        self._told_hits = 0
        self._all_tokens = 0
        self._all_sent = 0
        self._last_request: float | None = None
        self._was_looked_ahead = False
        self._changes = 0
        """Messages, plans and resident texts so far: a look ahead that one of them overtakes is given up."""
        self._expected = (0.0, 0)
        """Units and prompt tokens of the last request, while its bill has not been heard."""
        self._goals: dict[str, str] = {}
        self._pinned_text = ""
        self._cards = RunningCards(self.log.tasks, working_folder)
        self._card = _CardState()

    def set_resident(
        self,
        *,
        fence: str,
        goals: Sequence[Goal] = (),
        pins: Sequence[Pin] = (),
        knowledge: Sequence[KnowledgeEntry] = (),
        cards: bool = True,
        params: ResidentParams = RESIDENT_PARAMS,
    ) -> None:
        """Say what is always sent from now on; called again, it takes the place of what was said before.

        Before the first request goals, pins and knowledge stand in front of everything; a later change goes to the
        tail. Messages that serve a goal tie their tasks to it, and bring its pages back when it is taken up again.

        Args:
            fence: a word of 8 to 64 small letters and digits that no page can know, the same through the session.
            goals: in the order of setting; those that are done are left out.
            pins: of any session.
            knowledge: distilled entries, of which the best 20 within 1,500 tokens stand (`best_knowledge`).
            cards: once something has left the window, keep the running task's constraints and card at its tail.
                They are read anew at a rewrite and when the task changes.
            params: bounds.

        Raises:
            ConfigError: the fence is none.
        """
        self._changes += 1
        self._goals = {goal.goal_id: goal.text for goal in goals if not goal.is_done}
        self.log.tasks.set_goals(self._goals)
        items = pinned_items(goals, pins)
        text = pinned_text(items, knowledge, fence=fence, params=params, count_tokens=self.log.count)
        if text and text != self._pinned_text:
            # Whoever sent everything would send it too.
            self._all_tokens += self.log.count(text) + MESSAGE_TOKENS
        self._pinned_text = text
        self.pager.lay_resident(text)
        self._card.fence, self._card.params = (fence if cards else ""), params

    def add(
        self, message: AgentMessage, *, goals: Sequence[str] = (), is_served: bool = False
    ) -> tuple[PageFault, ...]:
        """Take in one message; the page faults that its text caused. Their pages stand at the window's tail.

        Args:
            message: the next one of the session.
            goals: titles of goals that it takes up again, beside those of `set_resident` that its words name.
            is_served: what it asks for reaches the agent another way, such as a tool's result: its faults count,
                and nothing is brought back.
        """
        self._changes += 1
        found = self._find_faults(message, goals)
        first_block = len(self.log.segments)
        pieces = self.log.add_message(message)
        self._cards.add(message, first_block)
        self.pager.add(pieces)
        self._all_tokens += sum(piece.tokens for piece in pieces)
        for fault in found:
            self._serve(fault, brings_back=not is_served)
        if message.role is MessageRole.ASSISTANT:
            self._faults.used(message, turn=self.log.calls)
        return found

    def fetch(self, handle: str) -> str | None:
        """The text of a page that the agent asks for by its handle, which counts as a fault; None for no such page.

        It stands at the window's tail from the next request on.
        """
        blocks = NamedBlocks(self.log)
        blocks.follow()
        pieces = sorted({piece for named in blocks.find(handle) for piece in named.pieces})
        if not pieces:
            return None
        for fault in self._faults.find(handle, turn=self.log.calls, by_user=False, triggers=_AGENTS_TRIGGERS):
            self._serve(fault, brings_back=True)
        slices = [self.log.slices[piece] for piece in pieces]
        blocks_of = groupby(slices, key=lambda piece: piece.segment)
        return "\n".join("".join(slice_text(self.log, piece) for piece in own) for _, own in blocks_of)

    def plan(
        self, *, now: float | None = None, is_cold: bool = False, postpones: bool = False, explains: bool = True
    ) -> ContextPlan:
        """Decide the next request, and the whole record of it.

        Args:
            now: when it is sent, in seconds since the epoch; None: the provider's cache is taken to be alive.
            is_cold: the provider's cache is known to hold nothing of the session, whatever the time.
            postpones: leave to `look_ahead` what can wait: a rewrite of which only rent says that it is due.
            explains: whether the record says of each entry why it is in, which takes longer than the decision.

        Raises:
            ConfigError: ``now`` is no finite number.
        """
        check_now(now)
        self._changes += 1
        is_cold = self._is_cold(now) or is_cold
        self.pager.release(self._faults.leaving(self.log.calls))
        self.pager.named = frozenset(self._faults.named_here)
        self._faults.named_here.clear()
        rewrite = self.pager.prepare(is_cold=is_cold, was_looked_ahead=self._was_looked_ahead or postpones)
        self._was_looked_ahead = False
        if rewrite is not None:
            self._tell(rewrite)
        self._lay_card()
        plan = self._with_cards(self.pager.plan(explains=explains))
        self._bill(plan, is_cold=is_cold)
        if self._faults.hits > self._told_hits:
            told = self._faults.hits - self._told_hits
            self._publish(EventKind.HIT, (), 0, f"{told} references to pages in the window")
            self._told_hits = self._faults.hits
        return plan

    def look_ahead(self) -> None:
        """Decide about the next request's window now, while nobody waits for it: a rewrite takes a while.

        What comes until then goes behind; `plan` rewrites only where the cache has run out or a limit is passed.
        """
        for _ in self.look_ahead_steps():
            pass

    def look_ahead_steps(self) -> Generator[None, None, bool]:
        """`look_ahead` in steps of some milliseconds, so that others can be served between two of them.

        Until the last one nothing is decided. Once something is added or planned meanwhile there are no more steps, and
        it is as if there had been none, but that what was read for them need not be read again.

        Returns:
            Whether it was decided.
        """
        began = self._changes
        for _ in self._look_ahead():
            yield
            if self._changes != began:
                return False
        return True

    def heard(self, usage: Usage) -> None:
        """Take what the provider billed for the request that was planned last into the net ledger.

        The provider's own count of tokens has no say in it: what counts is the cache, by how much the same tokens
        cost more or less than was expected of it.
        """
        expected, prompt_tokens = self._expected
        if not prompt_tokens or not usage.prompt_tokens:
            return
        prices = self._prices
        is_split = bool(usage.written_tokens)  # a provider that names no writes bills all that it did not read as such
        plain, written = (usage.plain_tokens, usage.written_tokens) if is_split else (0, usage.plain_tokens)
        billed = call_price(prices, usage.read_tokens, written, plain, 0)
        dearer = billed * prompt_tokens / usage.prompt_tokens - expected
        self.pager.ledger.spent += dearer
        if not self.pager.rewrites:
            # What was sent is what would have been sent without us, and costs the same: no debt comes of it.
            self.pager.ledger.append_only += dearer
        self._expected = (0.0, 0)

    # -- inside -----------------------------------------------------------------------------

    def _look_ahead(self) -> Iterator[None]:
        yield from self._faults.follow_steps()
        if self._card.fence:
            yield from self._cards.read_steps()
        self.pager.release(self._faults.leaving(self.log.calls))
        rewrite = yield from self.pager.look_ahead()
        self._was_looked_ahead = True
        if rewrite is not None:
            self._tell(rewrite)

    def _find_faults(self, message: AgentMessage, goals: Sequence[str]) -> tuple[PageFault, ...]:
        by_user = message.role is MessageRole.USER and not message.origin
        if not by_user and message.role is not MessageRole.ASSISTANT:
            return ()
        if by_user:
            text = "\n".join(block.text for block in message.blocks if block.kind is BlockKind.TEXT)
        else:
            text = "\n".join(written_texts(message))
        triggers = _USERS_TRIGGERS if by_user else _AGENTS_TRIGGERS
        resumed = [*goals, *(self.log.tasks.taken_up_again(text) if by_user else ())]
        return self._faults.find(text, turn=self.log.calls, by_user=by_user, goals=resumed, triggers=triggers)

    def _lay_card(self) -> None:
        """Put the running task's constraints and card at the tail, when they are due and there is room.

        Pages must have left since the last time, or another task must run: a text that changed is written to the
        cache again. Older cards leave with the next rewrite from their place on; until then they count.
        """
        state, task_id = self._card, self.log.tasks.running_task or ""
        rewrites = len(self.pager.rewrites)
        if not state.fence or not rewrites or (rewrites, task_id) == state.made_for:
            return
        state.made_for = (rewrites, task_id)
        card, window = self._cards.running(self._goals), self.pager.window
        standing = [entry for entry in window.entries if entry.form is EntryForm.RESIDENT]
        room = state.params.most_tokens - sum(entry.tokens for entry in standing)
        if self._window_tokens is not None:
            room = min(room, self._window_tokens - self.pager.prompt_tokens)
        text = "" if card is None else self._card_text(card, room - MESSAGE_TOKENS)
        if card is None or not text or any(entry.text == text for entry in standing):
            return
        units = dict.fromkeys(unit for line in text.split("\n") for unit in units_in(self.log, line))
        entry = window.make(EntryForm.RESIDENT, self.log.count(text) + MESSAGE_TOKENS, units=units, text=text)
        window.append(entry)
        state.handles[entry.number] = card.stretch

    def _card_text(self, card: TaskCard, room: int) -> str:
        return card_text(
            card.card,
            self._cards.constraints(),
            session=self._session,
            handle=card.stretch,
            fence=self._card.fence,
            room=room,
            params=self._card.params,
            count_tokens=self.log.count,
        )

    def _with_cards(self, plan: ContextPlan) -> ContextPlan:
        """The plan with its cards told apart from what is pinned, and with what they let the request share."""
        state, entries = self._card, self.pager.window.entries
        handles, before = state.handles, state.sent
        state.sent = [entry.number for entry in entries]
        if not handles:
            return plan
        common = 0
        for entry, number in zip(entries, before, strict=False):
            if entry.number != number:
                break
            common += entry.tokens
        written = plan.window_tokens - common
        units = call_price(self._prices, plan.resident_tokens + common, written, 0, 0)
        plan = replace(plan, written_tokens=written, expected_units=units)
        if not plan.entries:
            return plan
        newest = max(handles)
        reasons = {number: _CARD_REASON if number == newest else _OLD_CARD_REASON for number in handles}
        told = [
            replace(planned, handle=handles[entry.number], reason=reasons[entry.number])
            if entry.number in handles
            else planned
            for entry, planned in zip(entries, plan.entries, strict=True)
        ]
        return replace(plan, entries=tuple(told))

    def _serve(self, fault: PageFault, *, brings_back: bool) -> None:
        pages = (fault.handle,)
        told = f"{fault.kind.value}, {fault.trigger.value}: {fault.reason}"
        self._publish(EventKind.FAULT, pages, fault.tokens, told)
        if not fault.pieces:
            return
        if not brings_back:
            self.pager.note_faults(len(fault.pieces))
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
        billed = self._own_cache.call(plan.prompt_tokens, common, is_cold=is_cold)
        self._expected = (billed, plan.prompt_tokens)
        self.pager.ledger.spent += billed
        everything = resident + self._all_tokens
        known = 0 if first else resident + self._all_sent
        self.pager.ledger.append_only += self._append_only_cache.call(everything, known, is_cold=is_cold)
        self._all_sent = self._all_tokens

    def _is_cold(self, now: float | None) -> bool:
        last, self._last_request = self._last_request, now if now is not None else self._last_request
        return last is not None and now is not None and now - last > self._prices.ttl_seconds


@dataclass(slots=True)
class _CardState:
    """How the running task's card stands in the window."""

    fence: str = ""
    """"" while none is wanted."""
    params: ResidentParams = RESIDENT_PARAMS
    made_for: tuple[int, str] = (0, "")
    """Rewrites made, and the task that ran, when it was laid last."""
    handles: dict[int, str] = field(default_factory=dict)
    """Number of each entry that was laid -> short handle of its stretch."""
    sent: list[int] = field(default_factory=list)
    """Entries of the last request."""
