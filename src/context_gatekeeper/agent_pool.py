"""AgentPool: the object that holds agent sessions, for programs and for the command line.

Sessions of agents lie in the same stores as conversations, as pages of the same kind, and are found by the same
recall. What comes in is redacted first; what goes out by a handle is the original again, for its owner.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Self

from context_gatekeeper.arguments import (
    check_limit,
    check_piece,
    check_session,
    check_text,
    check_texts,
    check_tokens,
    checked_prices,
    checked_store,
    seconds_of,
)
from context_gatekeeper.config import default_sealed_folder
from context_gatekeeper.core.handles import parse_handle
from context_gatekeeper.core.recalled_text import RecalledItem, render_recalled
from context_gatekeeper.core.redact import RedactionMode, redact
from context_gatekeeper.engine.agent_pages import is_empty_side, swap_group
from context_gatekeeper.engine.agent_schedule import AgentSchedule
from context_gatekeeper.engine.card_notes import cards_session
from context_gatekeeper.engine.card_pages import CardBook
from context_gatekeeper.engine.events import EventFeed
from context_gatekeeper.engine.expanding import Expander, Expansion, Wanted
from context_gatekeeper.engine.forgetting import Forgetting, forgotten_pages
from context_gatekeeper.engine.goals import Goal, GoalBook, Pin
from context_gatekeeper.engine.importing import ImportResult, SessionImporter, owned_name
from context_gatekeeper.engine.memory_files import MemoryBook, MemoryChange
from context_gatekeeper.engine.owner_view import OwnerView, SessionFacts
from context_gatekeeper.engine.plan import ContextPlan
from context_gatekeeper.engine.pool_answers import PoolStats, RecallResult, SessionInfo
from context_gatekeeper.engine.recalled_pages import RecalledPage, recalled_pages
from context_gatekeeper.engine.resident import RESIDENT_TOKENS
from context_gatekeeper.engine.session_cards import TaskCard, session_card, task_cards
from context_gatekeeper.engine.session_recall import SessionRecall
from context_gatekeeper.engine.session_view import PageView, SessionTotals, session_of, view_pages
from context_gatekeeper.errors import AccessDeniedError, ConfigError
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores import open_store
from context_gatekeeper.stores.names import check_place
from context_gatekeeper.stores.sealed import Redactor, SealedSpans, SpansInMemory
from context_gatekeeper.types import AgentSession, Page, PageDraft, PageId, PageKind

__all__ = [
    "RESIDENT_TOKENS",
    "AgentPool",
    "ContextPlan",
    "EventFeed",
    "Expansion",
    "Goal",
    "ImportResult",
    "MemoryChange",
    "PageView",
    "Pin",
    "PoolStats",
    "RecallResult",
    "RecalledPage",
    "SessionInfo",
    "SessionTotals",
    "TaskCard",
]

MOST_RECALLED_PAGES = 5
"""A turn takes no more."""
_RANKED_SHARE = 4
"""Pages ranked for each that is wanted: copies and further versions of a file leave."""
_FENCE_BYTES = 8
_FILE_PREFIX = "cgk-page-"


class AgentPool:
    """Agent sessions in one pool of a store.

    Args:
        store: None keeps them in memory; a path names a SQLite file, made when it does not exist; or any `PageStore`.
        pool: name of the share of the store; conversations have the same default.
        owner: whose pages come in and who asks. Pages of others are not there, unless they are shared with him.
        redaction: what becomes of well-known secrets: ``"keep"`` (a placeholder is stored and the original sealed in
            a file apart), ``"drop"`` (a placeholder alone), ``"off"``.
        sealed_folder: where originals are sealed; the user's folder for settings by default. A store in memory, or
            one of the caller's own without a folder, keeps them in memory.

    Raises:
        ConfigError: an argument cannot be used. StoreError: the store cannot be opened.

    Several threads may share one object: calls wait for each other.
    """

    def __init__(
        self,
        store: PageStore | str | os.PathLike[str] | None = None,
        *,
        pool: str = "default",
        owner: str = "",
        redaction: str = "keep",
        sealed_folder: str | os.PathLike[str] | None = None,
    ) -> None:
        check_text("owner", owner)
        check_place(pool, "default")
        mode = _checked_mode(redaction)
        self._lock = threading.RLock()
        self._pool = pool
        self._owner = owner
        self._owns_store = store is None or isinstance(store, str | os.PathLike)
        self._store: PageStore = open_store(store) if self._owns_store else checked_store(store)  # type: ignore[arg-type]
        self._path: str | None = getattr(self._store, "path", None)
        self._sealed = _sealed_spans(self._path, sealed_folder)
        self._mode = mode
        self._forgetting = Forgetting(self._store, pool, self._sealed.forget)
        self._view = OwnerView(self._store, pool, owner)
        spans_of = partial(self._sealed.spans_of, owner=owner)
        self._expander = Expander(self._view, spans_of)
        self._goals = GoalBook(self._view, self._expander, self._redact_draft)
        self._cards = CardBook(self._view, self._redact_draft, self._goals.active)
        self._memory = MemoryBook(self._view, spans_of, self._redact_draft, self._redact_text)
        self._importer = SessionImporter(
            self._store, pool, self._redact_draft, self._redact_text, owner, self._goals.active
        )
        self._recall = SessionRecall(self._store, pool)
        self._forgetting.finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close a store that this object opened itself; a second call does nothing."""
        with self._lock:
            if self._owns_store:
                self._store.close()

    # -- in ---------------------------------------------------------------------------------

    def import_session(self, session: AgentSession, *, dry_run: bool = False) -> ImportResult:
        """Take a recorded session in. What the pool holds of it already is not stored again.

        A session that went on adds what is new. One that differs from what is stored by its name becomes a session
        of its own, named in the result. Killed in the middle, the next import adds the rest. At the end the memory
        cards of its tasks are kept as pages beside it, in the place of older ones.

        Args:
            session: of `transcripts.agent_sessions.read_sessions`.
            dry_run: only say what would come in.

        Raises:
            StoreError: it could not be stored whole.
        """
        check_session(session)
        with self._lock:
            if not dry_run:
                self._forgetting.finish()
            result = self._importer.run(session, dry_run=dry_run)
            if not dry_run:
                self._cards.refresh(result.session)
            return result

    # -- what there is ----------------------------------------------------------------------

    def sessions(self) -> tuple[SessionInfo, ...]:
        """The agent sessions that the owner may see, in the order in which they came in."""
        with self._lock:
            return tuple(
                SessionInfo(name, facts.source, facts.log_id, facts.working_folder, self._page_count(name))
                for name, facts in self._view.sessions()
            )

    def pages(self, session: str) -> tuple[PageView, ...]:
        """The session's pages that hold something, in order. Raises PageNotFoundError for an unknown session."""
        with self._lock:
            facts, pages = self._session(session)
            return view_pages(pages, facts.working_folder, self._view.handle_of)

    def session(self, name: str) -> AgentSession:
        """The session as its pages hold it. Raises PageNotFoundError for an unknown one."""
        with self._lock:
            facts, pages = self._session(name)
            return session_of(self._known(name), facts, pages)

    def swap_group(self, session: str, call_id: str) -> tuple[str, ...]:
        """Handles of the pages that enter and leave with a call: its own and all results, in order."""
        check_text("call_id", call_id)
        with self._lock:
            _, pages = self._session(session)
            return tuple(map(self._view.handle_of, swap_group(pages, call_id)))

    def cards(self, session: str) -> tuple[TaskCard, ...]:
        """The memory cards of the session's tasks, with the handles of the pages that keep them.

        They are made of the session's pages each time. Raises PageNotFoundError for an unknown session.
        """
        with self._lock:
            facts, pages = self._session(session)
            known = self._known(session)
            cards = task_cards(pages, facts.working_folder, self._goals.active())
            return tuple(replace(card, handle=self._cards.handle_of(known, card)) for card in cards)

    def session_card(self, session: str) -> TaskCard | None:
        """One card over all tasks of the session, made of its pages and not of the tasks' cards; None without pages.

        Raises PageNotFoundError for an unknown session.
        """
        with self._lock:
            facts, pages = self._session(session)
            return session_card(pages, facts.working_folder, self._goals.active())

    def card_pages(self, session: str) -> tuple[PageView, ...]:
        """The pages that keep the cards of the session's tasks. Raises PageNotFoundError for an unknown session."""
        with self._lock:
            pages = list(self._cards.pages(self._known(session)).values())
            return view_pages(pages, "", self._view.handle_of)

    def plan(
        self,
        session: str,
        *,
        prices: str = "anthropic-5m",
        resident_tokens: int = 8000,
        feed: EventFeed | None = None,
        cards: bool = True,
    ) -> ContextPlan:
        """What the next request of the session would hold, and why; with a cache that is alive.

        Active goals and pins stand in it, and once something has left, the running task's constraints and card.

        Args:
            session: name of the session in the pool.
            prices: a price profile of `core.economics.PRICES`.
            resident_tokens: system text and tools in front of the window.
            feed: is told what happens to the session's pages from its first call on.
            cards: whether constraints and card are wanted.

        Raises:
            PageNotFoundError: an unknown session. ConfigError: an unknown price profile.
        """
        profile = checked_prices(prices)
        check_tokens("resident_tokens", resident_tokens)
        recorded = self.session(session)
        schedule = AgentSchedule(
            profile,
            resident_tokens=resident_tokens,
            session=session,
            feed=feed,
            working_folder=recorded.working_folder,
        )
        schedule.set_resident(fence=self._fence(session), goals=self.goals(), pins=self.pins(), cards=cards)
        for message in recorded.messages:
            if message.is_call:
                schedule.plan()
            schedule.add(message)
        return schedule.plan()

    def explain(
        self,
        session: str,
        *,
        prices: str = "anthropic-5m",
        resident_tokens: int = 8000,
        feed: EventFeed | None = None,
        cards: bool = True,
    ) -> list[str]:
        """The same plan in words, one line for each thing that is in or out; arguments and errors as of `plan`."""
        plan = self.plan(session, prices=prices, resident_tokens=resident_tokens, feed=feed, cards=cards)
        return plan.lines()

    def totals(self, session: str) -> SessionTotals:
        """How the session's pages add up. Raises PageNotFoundError for an unknown session."""
        with self._lock:
            facts, pages = self._session(session)
            totals = SessionTotals()
            totals.add(pages, facts.working_folder)
            return totals

    def stats(self) -> PoolStats:
        """How all sessions add up. O(the pool's text)."""
        with self._lock:
            totals = SessionTotals()
            sessions = self.sessions()
            for info in sessions:
                facts, pages = self._session(info.name)
                totals.add(pages, facts.working_folder)
            totals.deleted = forgotten_pages(self._store, self._pool, self._owner)  # of sessions that are gone too
            goals = [goal for goal in self._goals.goals() if not goal.is_done]
            pins = self._goals.pins()
            resident = sum(goal.tokens for goal in goals) + sum(pin.tokens for pin in pins)
            return PoolStats(len(sessions), totals, len(goals), len(pins), resident, _file_bytes(self._path))

    # -- out --------------------------------------------------------------------------------

    def expand(
        self,
        handle: str,
        *,
        session: str | None = None,
        lines: tuple[int, int | None] | None = None,
        characters: tuple[int, int | None] | None = None,
        pattern: str | None = None,
        regex: bool = False,
        joins_secrets: bool = True,
        as_file: bool = False,
    ) -> Expansion:
        """What a handle stands for, byte for byte.

        Args:
            handle: ``page:...``, or ``p12`` / ``p12-p20`` inside a session, each with a range (``#L10-20``,
                ``#C0-99``) or not.
            session: whose blocks short handles name; not needed while there is one session alone.
            lines: first and last line, from 1, both included.
            characters: from 0, the last one left out.
            pattern: the lines around each place where this text stands.
            regex: the pattern is a regular expression.
            joins_secrets: put sealed secrets back, on pages of the owner's own.
            as_file: also write the text to a new temporary file that the owner alone can read, and name it.

        Raises:
            ConfigError: it is no handle, or the piece is out of range. PageNotFoundError: there is no such page, it
            was deleted, or it is somebody else's.
        """
        check_piece("lines", lines)
        check_piece("characters", characters)
        if pattern is not None:
            check_text("pattern", pattern)
        with self._lock:
            wanted = Wanted(lines, characters, pattern, regex)
            named = self._named(handle, session)
            expansion = self._expander.expand(handle, wanted, session=named, joins_secrets=joins_secrets)
            return replace(expansion, file=_private_file(expansion.text)) if as_file else expansion

    def recall(
        self,
        query: str,
        *,
        session: str | None = None,
        limit: int = MOST_RECALLED_PAGES,
        fence: str | None = None,
        now: float | None = None,
    ) -> RecallResult:
        """The pages that tell most of a query, and the one block of quoted data that an agent is given.

        Equal texts come once, the newest, with their number; of one file two versions at most. Secrets stay
        placeholders. The block holds the best five pages: what is found beyond is listed for a person alone.

        Args:
            query: any text.
            session: look in this one; in all that the owner may see when None.
            limit: most pages that are listed.
            fence: a random word of this call, 8 to 64 small letters and digits; drawn when None.
            now: seconds since the epoch, for the pages' age; not told when None.

        Raises:
            ConfigError: an argument cannot be used. PageNotFoundError: there is no such session.
        """
        check_text("query", query)
        check_limit(limit)
        if fence is not None:
            check_text("fence", fence)
        now = seconds_of(now)
        with self._lock:
            names = [name for name, _ in self._view.sessions()] if session is None else [self._known(session)]
            places = [place for name in names for place in (name, cards_session(name))]
            hits = self._recall.find(query, places, limit=limit * _RANKED_SHARE)
            cards = {page_id for name in names for page_id in self._cards.page_ids(name)}
            found = recalled_pages(query, hits, self._view, limit=limit, now=now, cards=cards)
            drawn = secrets.token_hex(_FENCE_BYTES) if fence is None else fence
            given = [one.item for one in found[:MOST_RECALLED_PAGES]]
            return RecallResult(found, render_recalled(given, drawn))

    # -- goals and pins ---------------------------------------------------------------------

    def goals(self) -> tuple[Goal, ...]:
        """Every goal, done ones too, in the order of setting."""
        with self._lock:
            return self._goals.goals()

    def set_goal(self, text: str) -> Goal:
        """Set a goal, which is always sent. Raises BudgetError when there is no room for it in 8,000 tokens."""
        check_text("goal", text)
        with self._lock:
            return self._goals.set_goal(text)

    def finish_goal(self, goal_id: str) -> Goal:
        """Call a goal done: it stays as a page and is sent no longer. Raises ConfigError for an unknown one."""
        check_text("goal_id", goal_id)
        with self._lock:
            return self._goals.finish_goal(goal_id)

    def pins(self) -> tuple[Pin, ...]:
        """The pages, and pieces of pages, that are always sent, in the order of pinning."""
        with self._lock:
            return self._goals.pins()

    def pin(self, handle: str, *, session: str | None = None) -> Pin:
        """Pin a page or some lines of it. Raises BudgetError when there is no room for it in 8,000 tokens."""
        with self._lock:
            return self._goals.pin(handle, self._named(handle, session))

    def unpin(self, handle: str, *, session: str | None = None) -> None:
        """Take a pin away. Raises ConfigError when nothing is pinned by this handle."""
        with self._lock:
            self._goals.unpin(handle, self._named(handle, session))

    # -- the agent's own files --------------------------------------------------------------

    def memory_files(self) -> dict[str, str]:
        """Path -> text of the files that the owner's agents keep for themselves, secrets joined."""
        with self._lock:
            return self._memory.files()

    def change_memory(self, edit: Callable[[Mapping[str, str]], Sequence[MemoryChange]]) -> None:
        """Change such files, all or none, whoever else does at the same time; see `MemoryBook.change`."""
        with self._lock:
            self._memory.change(edit)

    def quoted_cards(self, session: str) -> str:
        """The kept cards of the session as one block of quoted data; "" without one. Errors as of `card_pages`."""
        with self._lock:
            known = self._known(session)
            items = [
                RecalledItem(self._view.handle_of(page), page.kind, page.labels.provenance, known, page.text)
                for page in self._cards.pages(known).values()
            ]
            return render_recalled(items, self._fence(known))

    # -- deleting ---------------------------------------------------------------------------

    def forget_session(self, session: str) -> int:
        """Delete all pages of a session for good, with what was sealed of them; how many held something.

        Its name stays, so that importing the same log again brings nothing back. Raises PageNotFoundError for an
        unknown session, AccessDeniedError for one of somebody else, StoreError.
        """
        with self._lock:
            known = self._known(session)
            facts, pages = self._session(known)
            if facts.owner != self._owner:
                raise AccessDeniedError(
                    f"session {session[:80]!a}", "it is shared, and somebody else's", "ask its owner to delete it"
                )
            count = sum(not (page.labels.deleted or is_empty_side(page)) for page in pages)
            self._forgetting.forget(self._owner, sessions=(known, cards_session(known)))
            self._recall.forget()
            return count

    def forget_pages(self, handles: Sequence[str]) -> int:
        """Delete pages by their handles for good; how many there were.

        Raises ConfigError for what is no page's handle, PageNotFoundError for an unknown one, AccessDeniedError for
        one of somebody else; nothing is deleted then.
        """
        check_texts("handles", handles)
        with self._lock:
            found: dict[PageId, Page] = {}
            for handle in handles:
                mention = parse_handle(handle)
                if mention is None or mention.unit is not None:
                    raise ConfigError(
                        f"handle {handle[:80]!a}", "it is no whole page's", "name pages as `cgk pages SESSION` does"
                    )
                page = self._view.page_of(mention.handle)
                if page.labels.owner != self._owner:
                    raise AccessDeniedError(handle, "it is shared, and somebody else's", "ask its owner to delete it")
                found[page.page_id] = page
            pieces = {piece.page_id: piece for page in found.values() for piece in self._expander.pieces(page)}
            quoted = dict.fromkeys(page.session for page in found.values() if page.kind is not PageKind.CARD)
            carded = [name for name in quoted if self._page_count(cards_session(name))]
            gone = list(pieces.values())
            self._forgetting.forget(self._owner, sessions=[*map(cards_session, carded)], pages=gone)
            for name in carded:
                self._cards.refresh(name)
            self._recall.forget()
            return len(found)

    def forget_memory(self, path: str) -> int:
        """Delete a file of the agent's, or a folder of them, with all older versions for good; how many pages."""
        check_text("path", path)
        with self._lock:
            pages = self._memory.versions(path)
            if pages:
                self._forgetting.forget(self._owner, pages=pages)
            return len(pages)

    # -- inside -----------------------------------------------------------------------------

    def _fence(self, session: str) -> str:
        """The word of a session's resident text: always the same, and known to nobody without the pool's key."""
        told = session.encode("utf-8", "surrogatepass")
        return blake2b(told, digest_size=_FENCE_BYTES, key=self._store.handle_key(self._pool)).hexdigest()

    def _redactor(self) -> Redactor:
        """Made when something comes in: reading writes nothing, not even the pool's key."""
        return Redactor(self._store.handle_key(self._pool), self._mode, self._sealed)

    def _redact_draft(self, draft: PageDraft) -> PageDraft:
        return self._redactor().redact_draft(draft)

    def _redact_text(self, text: str) -> str:
        """A name or setting, of which nobody asks for the original: it is not sealed."""
        return text if self._mode is RedactionMode.OFF else redact(text, self._store.handle_key(self._pool)).text

    def _page_count(self, name: str) -> int:
        return self._store.page_count(self._pool, name)

    def _session(self, name: str) -> tuple[SessionFacts, list[Page]]:
        """Facts and pages of a session, as far as the owner may see them."""
        known = self._known(name)
        return self._view.facts(known), self._view.pages(known)

    def _known(self, name: str) -> str:
        """Name in the pool of an agent's session that the owner may see; of his own the log's name is enough."""
        check_text("session", name)
        check_place(self._pool, name)
        own = owned_name(name, self._owner)
        if own != name and own in self._store.sessions(self._pool):
            name = own
        self._view.facts(name)
        return name

    def _named(self, handle: str, session: str | None) -> str | None:
        """The session that a handle needs: the one given, or the only one."""
        check_text("handle", handle)
        if parse_handle(handle) is not None:
            return None
        if session is not None:
            return self._known(session)
        names = [name for name, _ in self._view.sessions()]
        return names[0] if len(names) == 1 else None


def _checked_mode(redaction: str) -> RedactionMode:
    try:
        return RedactionMode(redaction)
    except ValueError:
        raise ConfigError(
            f"redaction {redaction!a}", "there is no such setting", f"use one of {', '.join(RedactionMode)}"
        ) from None


def _sealed_spans(path: str | None, folder: str | os.PathLike[str] | None) -> SealedSpans | SpansInMemory:
    """Where what is redacted of a store goes; a store is told from others by where its file is."""
    if path is None:
        return SpansInMemory() if folder is None else SealedSpans(folder, "memory")
    return SealedSpans(default_sealed_folder() if folder is None else folder, str(Path(path).resolve()))


def _file_bytes(path: str | None) -> int | None:
    if path is None:
        return None
    files = (Path(f"{path}{suffix}") for suffix in ("", "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _private_file(text: str) -> str:
    """A new file in the folder for temporary ones that its owner alone can read."""
    descriptor, name = tempfile.mkstemp(prefix=_FILE_PREFIX, suffix=".txt")
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode("utf-8", "surrogatepass"))
    return name
