"""Bringing transcripts of agents into a pool: each once, whole, and never over another.

A transcript goes behind what the store holds of it. One that differs from it (a rewind, an edited history, another
session of the same name) becomes a session of its own, ``NAME~2`` and on; whichever session already
holds its beginning takes it the next time. Pages go in by batches, each all or none, so that an import
that was killed is made whole by making it again.

Of a session whose pages were all deleted nothing is left to compare with but the idempotency key of its first
batch, a hash of its opening under the pool's key: it tells the session that was deleted from another of its name.
Sessions of two owners never meet: a named owner's carry his name, so that no name tells what others have.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from context_gatekeeper.engine.agent_pages import finish_draft
from context_gatekeeper.engine.forgetting import Forgotten, read_forgotten
from context_gatekeeper.engine.ingest import HeldBlocks, Ingest, RawPage
from context_gatekeeper.engine.owner_view import AGENT_SETTING, SessionFacts, read_facts
from context_gatekeeper.errors import ConfigError, StoreBusyError
from context_gatekeeper.ports import PageStore
from context_gatekeeper.types import AgentSession, Page, PageDraft, PageId

__all__ = ["ImportResult", "SessionImporter", "fork_name", "owned_name", "session_name"]

_FORK_MARK, _OWNER_MARK = "~", "@"
_RESERVED_START = "cgk:"
_MOST_NAME_CHARS = 460
"""Leaves room for the owner and the number of a fork."""
_MOST_OWNER_CHARS = 24
_KEY_BYTES = 16
_BATCH_PAGES = 64
_BATCH_CHARS = 4_000_000
_ATTEMPTS = 200
"""How often an import goes on behind another writer's pages."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import did, or would do."""

    session: str
    """Name of the session in the pool."""
    log_id: str
    """The log's own name of it."""
    source: str
    """Format of the log."""
    known_pages: int
    """Pages that the store held of it before, deleted ones too."""
    added_pages: int
    blocks: int
    """Of the transcript."""
    added_kinds: Mapping[str, int] = field(default_factory=dict)
    """Kind -> added pages of it; pages of a side on which nothing was said are counted as ``empty``."""
    deleted_pages: int = 0
    """Of the known ones, those that their owner deleted: they do not come back."""
    redacted_pages: int = 0
    """Added pages with a placeholder in the place of a secret; not known of a dry run."""
    diverged_from: str = ""
    """Session that holds the same beginning and goes on differently; "" when there is none."""
    diverged_at: int = 0
    """Number of the first block that differs."""
    is_dry_run: bool = False
    warnings: tuple[str, ...] = ()
    """Of the reader."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form with the same names."""
        return {
            "session": self.session,
            "log_id": self.log_id,
            "source": self.source,
            "known_pages": self.known_pages,
            "added_pages": self.added_pages,
            "blocks": self.blocks,
            "added_kinds": dict(self.added_kinds),
            "deleted_pages": self.deleted_pages,
            "redacted_pages": self.redacted_pages,
            "diverged_from": self.diverged_from,
            "diverged_at": self.diverged_at,
            "is_dry_run": self.is_dry_run,
            "warnings": list(self.warnings),
        }


def session_name(log_id: str, owner: str = "") -> str:
    """Name in the pool of a session of a log: its own, or a digest where that can be no name, and its owner's.

    Names that begin with ``cgk:`` are the pool's own.
    """
    can_be = log_id.strip() and "\0" not in log_id and len(log_id) <= _MOST_NAME_CHARS
    if not can_be or log_id.startswith(_RESERVED_START):
        log_id = f"session-{_digest(log_id, 16)}"
    return owned_name(log_id, owner)


def owned_name(name: str, owner: str) -> str:
    """Name of an owner's session: behind a mark stands his own, or a digest where that is long."""
    if not owner:
        return name
    shown = owner if len(owner) <= _MOST_OWNER_CHARS and "\0" not in owner else _digest(owner, 8)
    return f"{name}{_OWNER_MARK}{shown}"


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def fork_name(name: str, number: int) -> str:
    """Name of the ``number``-th session that goes by one name, from 1."""
    return name if number == 1 else f"{name}{_FORK_MARK}{number}"


@dataclass(slots=True)
class _Match:
    """How far a stored session and the transcript go together."""

    name: str
    walk: Ingest
    page_ids: dict[int, PageId] = field(default_factory=dict)
    """Ordinal -> page, of the pages in common."""
    pages: int = 0
    """The session's."""
    deleted: int = 0
    """Of the pages in common."""
    seen: int = 0
    """Of the pages in common, those whose text was compared."""
    is_whole: bool = True
    """Whether the stored session is the transcript's beginning, or holds all of it."""


class SessionImporter:
    """Takes transcripts into one pool of a store.

    Args:
        store: where pages go.
        pool: the share of the store.
        redact: makes a draft what may be stored (`Redactor.redact_draft`).
        redact_text: the same for a short text.
        owner: whose pages they are.
        goals: gives his active goals by their ids.
    """

    def __init__(
        self,
        store: PageStore,
        pool: str,
        redact: Callable[[PageDraft], PageDraft],
        redact_text: Callable[[str], str],
        owner: str = "",
        goals: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._store = store
        self._pool = pool
        self._redact = redact
        self._redact_text = redact_text
        self._owner = owner
        self._goals = goals

    def run(self, session: AgentSession, *, dry_run: bool = False) -> ImportResult:
        """Take a transcript in; with ``dry_run`` only say what would come in.

        Raises:
            StoreError: the pages could not be stored; those of whole batches are, and another import adds the rest.
        """
        match, other = self._find_place(session, stores=not dry_run)
        known, redacted = match.pages, 0
        kinds: Counter[str] = Counter()
        if dry_run:
            while not match.walk.is_done:
                kinds.update(_kind_names(match.walk.next_turn()))
        elif not match.walk.is_done:
            kinds, redacted, match = self._store_rest(session, match)
        return ImportResult(
            match.name,
            session.session_id,
            session.source,
            known,
            sum(kinds.values()),
            match.walk.number,
            dict(kinds),
            match.deleted,
            redacted,
            diverged_from=other.name if other is not None else "",
            diverged_at=other.walk.number if other is not None else 0,
            is_dry_run=dry_run,
            warnings=session.warnings,
        )

    # -- where it goes ----------------------------------------------------------------------

    def _find_place(self, session: AgentSession, *, stores: bool = True) -> tuple[_Match, _Match | None]:
        """The session that the transcript goes on, a new one at need, and the one that it left then."""
        known = set(self._store.sessions(self._pool))
        has_pool = stores or bool(known)
        # Without a pool there is nothing to compare with, and a name that is not stored tells nobody anything.
        key = self._store.handle_key(self._pool) if has_pool else b""
        base = session_name(self._redact_text(session.session_id) if has_pool else session.session_id, self._owner)
        best: _Match | None = None
        nearest: _Match | None = None
        number = 1
        while (name := fork_name(base, number)) in known:
            number += 1
            forgotten = read_forgotten(self._store, self._pool, name)
            if self._is_foreign(name, forgotten):
                continue
            match = self._match(session, name, key, forgotten.pages if forgotten is not None else {})
            if match.is_whole and (best is None or match.walk.ordinal > best.walk.ordinal):
                best = match
            if not match.is_whole and (nearest is None or match.walk.number > nearest.walk.number):
                nearest = match
        if best is not None:
            return best, None
        return _Match(name, self._walk(session, key)), nearest

    def _is_foreign(self, name: str, forgotten: Forgotten | None) -> bool:
        """Whether another owner has, or had, a session of this name."""
        known = read_facts(self._store.settings(self._pool, name)) or forgotten
        return known is not None and known.owner != self._owner

    def _match(self, session: AgentSession, name: str, key: bytes, held: Mapping[int, HeldBlocks]) -> _Match:
        match = _Match(name, self._walk(session, key), pages=self._store.page_count(self._pool, name))
        for page in self._store.scan(self._pool, name):
            if not match.walk.match(page, held.get(page.ordinal)):
                match.is_whole = match.walk.is_done
                break
            match.page_ids[page.ordinal] = page.page_id
            match.deleted += page.labels.deleted
            match.seen += page.labels.provenance is not None
        if match.is_whole and match.deleted and not match.seen:
            match.is_whole = bool(self._store.append(self._pool, name, (), idempotency_key=self._first_key(match)))
        return match

    def _walk(self, session: AgentSession, key: bytes) -> Ingest:
        return Ingest(session, key, self._owner, self._goals())

    def _first_key(self, match: _Match) -> str:
        """Idempotency key of the batch that begins the session."""
        told = f"{match.name}\0{self._owner}\0{match.walk.opening}".encode("utf-8", "surrogatepass")
        key = self._store.handle_key(self._pool)
        return f"import {blake2b(told, digest_size=_KEY_BYTES, key=key).hexdigest()}"

    # -- storing ----------------------------------------------------------------------------

    def _store_rest(self, session: AgentSession, match: _Match) -> tuple[Counter[str], int, _Match]:
        """Store what the match lacks, behind pages that another writer may store meanwhile."""
        kinds: Counter[str] = Counter()
        redacted = 0
        for _ in range(_ATTEMPTS):
            try:
                self._mark(session, match.name)
                for batch in self._batches(match):
                    pages = self._append(match, batch)
                    kinds.update(_kind_names(batch))
                    redacted += sum(page.text != raw.draft.text for page, raw in zip(pages, batch, strict=True))
            except ConfigError:
                count = self._store.page_count(self._pool, match.name)
                if count <= max(match.page_ids, default=-1) + 1:
                    raise  # nobody was first: the page itself is refused
                match, _ = self._find_place(session)
            else:
                return kinds, redacted, match
        raise StoreBusyError(
            f"session {match.name!a}",
            f"other writers stored pages first {_ATTEMPTS} times in a row",
            "import it again; nothing is lost",
        )

    def _mark(self, session: AgentSession, name: str) -> None:
        facts = SessionFacts(session.session_id, session.source, session.working_folder, self._owner, session.events)
        self._store.set_setting(self._pool, name, AGENT_SETTING, self._redact_text(facts.to_json()))

    def _batches(self, match: _Match) -> Iterator[list[RawPage]]:
        """Turns that follow, some at a time; a page that supersedes one comes in a later batch than that."""
        batch: list[RawPage] = []
        chars = 0
        while not match.walk.is_done:
            turn = match.walk.next_turn()
            waits = any(raw.supersedes is not None and raw.supersedes not in match.page_ids for raw in turn)
            if batch and (waits or len(batch) >= _BATCH_PAGES or chars > _BATCH_CHARS):
                yield batch
                batch, chars = [], 0
            batch += turn
            chars += sum(len(raw.draft.text) + sum(len(block.data) for block in raw.blocks) for raw in turn)
        if batch:
            yield batch

    def _append(self, match: _Match, batch: list[RawPage]) -> tuple[Page, ...]:
        drafts = []
        for raw in batch:
            older = None if raw.supersedes is None else match.page_ids[raw.supersedes]
            drafts.append(finish_draft(self._redact(raw.draft), raw.number, older, continues=raw.continues))
        # Behind the first batch a key of this run alone: it tells a second try from a second page, and nothing else.
        first = drafts[0].ordinal == 0
        key = self._first_key(match) if first else f"import {os.urandom(_KEY_BYTES).hex()} {drafts[0].ordinal}"
        pages = self._store.append(self._pool, match.name, drafts, idempotency_key=key)
        if [page.text for page in pages] != [draft.text for draft in drafts]:
            raise ConfigError(
                f"session {match.name!a}", "another one with the same opening was first", "import it again"
            )
        match.page_ids |= {page.ordinal: page.page_id for page in pages}
        return pages


def _kind_names(pages: list[RawPage] | tuple[RawPage, ...]) -> Iterator[str]:
    return (str(raw.draft.kind if raw.blocks else "empty") for raw in pages)
