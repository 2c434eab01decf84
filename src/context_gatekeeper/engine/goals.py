"""Pinned goals and pages: what is always sent (level 1), within a bound that never grows with the session.

A goal is a page of its own, so that it has a handle and stays when it is done; a pin is a note beside the page that
it names. Both are kept in one session of the pool that holds nothing else. What is pinned may have 8,000
tokens together: more is refused, and the error says which pins have how many.

Source: the scheduling design, section 2 (resident set).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from context_gatekeeper.core.recalled_text import RecalledItem
from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.engine.agent_pages import empty_page, finish_draft
from context_gatekeeper.engine.expanding import Expander, Wanted
from context_gatekeeper.engine.owner_view import OwnerView
from context_gatekeeper.engine.resident import RESIDENT_TOKENS, pinned_text
from context_gatekeeper.errors import BudgetError, ConfigError, PageNotFoundError, StoreBusyError
from context_gatekeeper.types import Page, PageDraft, PageKind, PageLabels, Provenance, Role

__all__ = ["GOALS_SESSION", "RESIDENT_TOKENS", "Goal", "GoalBook", "Pin", "append_apart", "pinned_items"]

GOALS_SESSION = "cgk:goals"
_GOAL, _PIN = "goal", "pin"
_ACTIVE, _DONE = "active", "done"
_ATTEMPTS = 200
_SHOWN = 5
_ANY_FENCE, _ANY_HANDLE = "0123456789abcdef", "page:0123456789abcdef"
"""As long as those that are sent."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal that somebody set."""

    goal_id: str
    """``g1``, ``g2`` ... in the order of setting."""
    text: str
    handle: str
    tokens: int
    is_done: bool = False

    def item(self) -> RecalledItem:
        """As it is sent."""
        return RecalledItem(self.handle, PageKind.GOAL, Provenance.USER, GOALS_SESSION, self.text, tool=self.goal_id)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form with the same names."""
        return {name: getattr(self, name) for name in Goal.__slots__}


@dataclass(frozen=True, slots=True)
class Pin:
    """A page, or a piece of one, that stays."""

    handle: str
    """Of the page, with the range that was pinned; of a block with its session in front."""
    text: str
    tokens: int
    session: str = ""
    """Where the page is."""
    kind: PageKind = PageKind.TURN
    provenance: Provenance | None = None
    subject: str = ""
    """The file or tool of its page."""

    def item(self) -> RecalledItem:
        """As it is sent."""
        return RecalledItem(self.handle, self.kind, self.provenance, self.session, self.text, path=self.subject)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form: what was pinned, and its size."""
        return {"handle": self.handle, "text": self.text, "tokens": self.tokens}


def pinned_items(goals: Sequence[Goal], pins: Sequence[Pin]) -> list[RecalledItem]:
    """What is sent of them: active goals, then pins."""
    return [*(goal.item() for goal in goals if not goal.is_done), *(pin.item() for pin in pins)]


def append_apart(view: OwnerView, session: str, sides: Callable[[int], Sequence[PageDraft]]) -> Page:
    """Store a page behind those of a session of the pool that holds nothing else; it is given back.

    Args:
        view: the pool.
        session: where it goes.
        sides: turn -> the page and the empty one on the other side of the turn.

    Raises StoreError.
    """
    store, pool = view.store, view.pool
    for _ in range(_ATTEMPTS):
        turn_id = store.page_count(pool, session) // 2
        try:
            return store.append(pool, session, sides(turn_id))[0]
        except ConfigError:
            if store.page_count(pool, session) // 2 == turn_id:
                raise
    raise StoreBusyError(f"session {session!a}", f"other writers were first {_ATTEMPTS} times in a row", "try it again")


class GoalBook:
    """Goals and pins of one owner in one pool.

    Args:
        view: the pool as he sees it.
        expander: leads from handles to texts.
        redact: makes a draft what may be stored.
    """

    def __init__(self, view: OwnerView, expander: Expander, redact: Callable[[PageDraft], PageDraft]) -> None:
        self._view = view
        self._store = view.store
        self._pool = view.pool
        self._owner = view.owner
        self._expander = expander
        self._redact = redact

    def goals(self) -> tuple[Goal, ...]:
        """Every goal of the owner that is there, done ones too, in the order of setting."""
        done = {key for key, state in self._settings().items() if state == _DONE}
        return tuple(
            Goal(
                f"g{page.turn_id + 1}",
                page.text,
                self._view.handle_of(page),
                estimate_tokens(page.text),
                f"{_GOAL} g{page.turn_id + 1}" in done,
            )
            for page in self._view.pages(GOALS_SESSION)
            if page.kind is PageKind.GOAL and not page.labels.deleted
        )

    def active(self) -> dict[str, str]:
        """Ids and texts of the goals that are not done, in the order of setting."""
        return {goal.goal_id: goal.text for goal in self.goals() if not goal.is_done}

    def set_goal(self, text: str) -> Goal:
        """Set a goal.

        Raises:
            ConfigError: the text is blank. BudgetError: there is no room for it. StoreError: it is not stored.
        """
        if not text.strip():
            raise ConfigError("goal", "it is blank", "say what is to be reached")
        labels = PageLabels(owner=self._owner, provenance=Provenance.USER)
        draft = self._redact(PageDraft(0, Role.USER, text.strip(), kind=PageKind.GOAL, labels=labels))
        self._check_room("this goal", Goal("g0", draft.text, _ANY_HANDLE, estimate_tokens(draft.text)))
        page = self._append(draft)
        self._store.set_setting(self._pool, GOALS_SESSION, f"{_GOAL} g{page.turn_id + 1}", _ACTIVE)
        return next(goal for goal in self.goals() if goal.goal_id == f"g{page.turn_id + 1}")

    def finish_goal(self, goal_id: str) -> Goal:
        """Call a goal done; a second time changes nothing. Raises ConfigError for an unknown one."""
        goal = next((one for one in self.goals() if one.goal_id == goal_id), None)
        if goal is None:
            raise ConfigError(f"goal {goal_id[:40]!a}", "there is no such goal", "take one that the list names")
        self._store.set_setting(self._pool, GOALS_SESSION, f"{_GOAL} {goal_id}", _DONE)
        return replace(goal, is_done=True)

    def pins(self) -> tuple[Pin, ...]:
        """The owner's pins in the order of pinning; those whose page was deleted are left out."""
        found = []
        for key, noted in self._settings().items():
            if key.startswith(f"{_PIN} ") and json.loads(noted)["owner"] == self._owner:
                try:
                    found.append(self._pin(json.loads(noted)["handle"]))
                except PageNotFoundError:
                    continue
        return tuple(found)

    def pin(self, handle: str, session: str | None = None) -> Pin:
        """Pin a page or a piece of one; a second time changes nothing.

        Args:
            handle: of a page, or a short one of ``session``.
            session: whose block a short handle names.

        Raises:
            ConfigError: it is no handle. PageNotFoundError: there is no such page. BudgetError: there is no room.
        """
        wanted = self._expander.expand(handle, Wanted(), session=session, joins_secrets=False)
        named = wanted.handle if wanted.handle.startswith(wanted.page) else f"{wanted.session}\n{wanted.handle}"
        pin = self._pin(named)
        if pin.handle not in {one.handle for one in self.pins()}:
            self._check_room(pin.handle, pin)
            noted = json.dumps({"owner": self._owner, "handle": named})
            self._store.set_setting(self._pool, GOALS_SESSION, self._pin_key(named), noted)
        return pin

    def unpin(self, handle: str, session: str | None = None) -> None:
        """Take a pin away, by its handle or as `pins` lists it, its session in front.

        Raises ConfigError when nothing is pinned by this handle.
        """
        written = handle.strip()
        listed = "\n".join(written.rsplit(" ", 1))
        named = [written, listed] if session is None else [f"{session}\n{written}", written, listed]
        settings = self._settings()
        for key in map(self._pin_key, named):
            if key in settings:
                self._store.set_setting(self._pool, GOALS_SESSION, key, None)
                return
        raise ConfigError(f"pin {handle[:80]!a}", "nothing is pinned by this handle", "take one that the list names")

    # -- inside -----------------------------------------------------------------------------

    def _settings(self) -> dict[str, str]:
        return dict(self._store.settings(self._pool, GOALS_SESSION))

    def _pin_key(self, named: str) -> str:
        return f"{_PIN} {self._owner}\n{named}"

    def _pin(self, named: str) -> Pin:
        session, _, handle = named.rpartition("\n")
        found = self._expander.expand(handle, Wanted(), session=session or None, joins_secrets=False)
        text, subject = found.text, found.path or found.tool
        shown = f"{session} {handle}".strip()
        return Pin(shown, text, estimate_tokens(text), found.session, found.kind, found.provenance, subject)

    def _append(self, draft: PageDraft) -> Page:
        def sides(turn_id: int) -> Sequence[PageDraft]:
            return (
                finish_draft(replace(draft, turn_id=turn_id), turn_id),
                finish_draft(empty_page(turn_id, Role.ASSISTANT, self._owner), turn_id + 1),
            )

        return append_apart(self._view, GOALS_SESSION, sides)

    def _check_room(self, what: str, new: Goal | Pin) -> None:
        """Raise BudgetError when what is pinned is over the bound together with ``new``, as it would be sent."""
        tokens = _sent_tokens([new.item()])
        if tokens > RESIDENT_TOKENS:
            advice = "say it in fewer words" if isinstance(new, Goal) else "pin some lines of it: #L10-40"
            raise BudgetError(what, f"it alone has {tokens} tokens of {RESIDENT_TOKENS} for all pins", advice)
        goals, pins = self.goals(), self.pins()
        held = [(f"goal {goal.goal_id}", goal.tokens) for goal in goals if not goal.is_done]
        held += [(pin.handle, pin.tokens) for pin in pins]
        total = _sent_tokens([*pinned_items(goals, pins), new.item()])
        if total > RESIDENT_TOKENS:
            largest = sorted(held, key=lambda one: -one[1])
            named = ", ".join(f"{name} {count}" for name, count in largest[:_SHOWN])
            raise BudgetError(
                what,
                f"with its {tokens} tokens the pins have {total} of {RESIDENT_TOKENS} ({named})",
                "finish a goal or take a pin away first",
            )


def _sent_tokens(items: Sequence[RecalledItem]) -> int:
    return estimate_tokens(pinned_text(items, fence=_ANY_FENCE))
