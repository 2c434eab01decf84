"""PagePool: the one way in and out of a session's pages."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from context_gatekeeper.errors import ConfigError, StoreError
from context_gatekeeper.ports import PageStore, Postings
from context_gatekeeper.types import Page, PageDraft, Role

__all__ = ["PagePool", "StoredTurn", "TurnDraft"]

_CACHED_TURNS = 4096
"""Turns kept in memory with their texts; older ones are read from the store again."""


@dataclass(frozen=True, slots=True)
class TurnDraft:
    """A turn as it comes in."""

    user_text: str
    assistant_text: str
    user_terms: Mapping[str, int]
    assistant_terms: Mapping[str, int]
    derived: Mapping[str, Any]
    """What the engine worked out about the turn; JSON-ready."""
    time: float | None = None
    speakers: tuple[str | None, str | None] = (None, None)


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """The two pages of one turn."""

    user: Page
    assistant: Page

    @property
    def turn_id(self) -> int:
        """Place in the session, from 0."""
        return self.user.turn_id

    @property
    def derived(self) -> dict[str, Any]:
        """What the engine worked out about the turn when it came in."""
        return dict(json.loads(self.user.derived)) if self.user.derived else {}


class PagePool:
    """Pages of one session in one pool of a store."""

    def __init__(self, store: PageStore, pool: str, session: str) -> None:
        self._store = store
        self._pool = pool
        self._session = session
        self._turns: OrderedDict[int, StoredTurn] = OrderedDict()
        self._postings: Postings | None = None

    @property
    def session(self) -> str:
        """Name of the session."""
        return self._session

    @property
    def turn_count(self) -> int:
        """Turns stored so far, by this process or another."""
        return self._store.page_count(self._pool, self._session) // 2

    @property
    def postings(self) -> Postings:
        """The session's index as of the last `refresh` and the appends of this pool since.

        It must not know turns that the topics do not know yet, so that others' turns come in by `refresh` alone.
        """
        return self._caught_up() if self._postings is None else self._postings

    def refresh(self) -> int:
        """Let the index take in what was stored meanwhile, by whomever; the turns it knows then."""
        return self._caught_up().block_count

    def append_turn(self, turn_id: int, draft: TurnDraft) -> StoredTurn:
        """Store a turn's two pages, all or nothing. Raises ConfigError when ``turn_id`` is taken."""
        derived = json.dumps(draft.derived, ensure_ascii=False, separators=(",", ":"))
        sides = (
            PageDraft(turn_id, Role.USER, draft.user_text, draft.user_terms, derived, draft.time, draft.speakers[0]),
            PageDraft(
                turn_id, Role.ASSISTANT, draft.assistant_text, draft.assistant_terms, "", draft.time, draft.speakers[1]
            ),
        )
        user, assistant = self._store.append(self._pool, self._session, sides)
        turn = StoredTurn(user, assistant)
        self._remember(turn)
        if turn_id == 0:
            # The index of a session without pages is nobody's: no append reaches it.
            self.refresh()
        return turn

    def turn(self, turn_id: int) -> StoredTurn:
        """One turn. Raises ConfigError for an id outside of the session."""
        known = self._turns.get(turn_id)
        if known is not None:
            return known
        for turn in self.turns(turn_id):
            self._remember(turn)
            return turn
        raise ConfigError(
            f"turn {turn_id}", f"session {self._session!r} has no such turn", "use an id that add_turn returned"
        )

    def turns(self, from_turn: int = 0) -> Iterator[StoredTurn]:
        """The turns from ``from_turn`` on, in order. Raises StoreError for a turn of one page, put there by hand."""
        pages = iter(self._store.scan(self._pool, self._session, from_ordinal=2 * from_turn))
        for user in pages:
            assistant = next(pages, None)
            if assistant is None:
                raise StoreError(
                    f"turn {user.turn_id} of session {self._session!a}",
                    "it has no assistant page",
                    "append that page to the store, with the text '' when there is no answer",
                )
            yield StoredTurn(user, assistant)

    def set_setting(self, key: str, value: str | None) -> None:
        """Keep one named text with the session; None removes it."""
        self._store.set_setting(self._pool, self._session, key, value)

    def settings(self) -> Mapping[str, str]:
        """The session's named texts, in the order in which they were set."""
        return self._store.settings(self._pool, self._session)

    def _caught_up(self) -> Postings:
        self._postings = self._store.postings(self._pool, self._session)
        return self._postings

    def _remember(self, turn: StoredTurn) -> None:
        self._turns[turn.turn_id] = turn
        if len(self._turns) > _CACHED_TURNS:
            self._turns.popitem(last=False)
