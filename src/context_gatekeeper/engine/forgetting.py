"""Deleting pages for good, with what was sealed of them, so that nothing that comes between leaves half of it done.

Store and sealed file are two files. What is to go is noted first, then deleted from both, then the note leaves; a
note that is found later is worked off again. How many blocks each deleted page held is kept, and nothing of
what they said: so that a log that went on is known to have gone on, and what was deleted stays away.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields

from context_gatekeeper.core.redact import PLACEHOLDER_START, sealed_name
from context_gatekeeper.engine.agent_pages import continued_page, page_blocks
from context_gatekeeper.engine.card_notes import carded_session
from context_gatekeeper.engine.ingest import HeldBlocks
from context_gatekeeper.ports import PageStore
from context_gatekeeper.types import Page, PageId, PageLabels

__all__ = ["FORGOTTEN_SESSION", "Forgetting", "Forgotten", "forgotten_pages", "read_forgotten"]

FORGOTTEN_SESSION = "cgk:forgotten"
"""Holds notes alone."""
_HELD, _WORK = "held", "work"
_WORK_BYTES = 8
_LABELS = tuple(one.name for one in fields(PageLabels) if one.name != "parts")


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What is known of the deleted pages of a session."""

    owner: str
    pages: Mapping[int, HeldBlocks] = field(default_factory=dict)
    """Ordinal -> what it held."""


def read_forgotten(store: PageStore, pool: str, session: str) -> Forgotten | None:
    """What is known of the session's deleted pages; None where none was deleted through `Forgetting`."""
    noted = store.settings(pool, FORGOTTEN_SESSION).get(f"{_HELD} {session}")
    if noted is None:
        return None
    owner, pages = json.loads(noted)
    return Forgotten(owner, {int(ordinal): HeldBlocks(*held) for ordinal, held in pages.items()})


def forgotten_pages(store: PageStore, pool: str, owner: str) -> int:
    """Pages that the owner deleted through `Forgetting`, of sessions that are gone too; cards are not counted.

    A page counts that held something; the pieces of one message are one.
    """
    noted = store.settings(pool, FORGOTTEN_SESSION)
    sessions = (key.removeprefix(f"{_HELD} ") for key in noted if key.startswith(f"{_HELD} "))
    known = (read_forgotten(store, pool, name) for name in sessions if carded_session(name) == name)
    return sum(
        held.blocks > 0 and held.continues is None
        for one in known
        if one is not None and one.owner == owner
        for held in one.pages.values()
    )


class Forgetting:
    """Deletes pages of one pool.

    Args:
        store: where the pages are.
        pool: the share of the store.
        forget_sealed: deletes what is sealed for redacted texts, by their names (`SealedSpans.forget`).
    """

    def __init__(self, store: PageStore, pool: str, forget_sealed: Callable[[Sequence[str]], None]) -> None:
        self._store = store
        self._pool = pool
        self._forget_sealed = forget_sealed

    def forget(self, owner: str, *, sessions: Sequence[str] = (), pages: Sequence[Page] = ()) -> None:
        """Delete whole sessions, settings too, and pages, all or in the end all.

        Args:
            owner: whose they are.
            sessions: names.
            pages: others.

        Raises:
            StoreError: the rest is done by the next call.
        """
        self.finish()
        gone = [page for name in sessions for page in self._store.scan(self._pool, name)]
        gone += pages
        for name in dict.fromkeys(page.session for page in gone):
            self._note_held(name, owner, [page for page in gone if page.session == name])
        texts = sorted({name for page in gone for name in _sealed_names(page)})
        page_ids = [page.page_id for page in pages]
        key = f"{_WORK} {os.urandom(_WORK_BYTES).hex()}"
        told = json.dumps([list(sessions), page_ids, texts])
        self._store.set_setting(self._pool, FORGOTTEN_SESSION, key, told)
        self._work(key, sessions, page_ids, texts)

    def finish(self) -> None:
        """Work off what an earlier call, of whatever process, left undone. Raises StoreError."""
        for key, noted in self._store.settings(self._pool, FORGOTTEN_SESSION).items():
            if key.startswith(f"{_WORK} "):
                sessions, page_ids, texts = json.loads(noted)
                self._work(key, sessions, page_ids, texts)

    # -- inside -----------------------------------------------------------------------------

    def _note_held(self, session: str, owner: str, pages: Iterable[Page]) -> None:
        known = read_forgotten(self._store, self._pool, session)
        held = dict(known.pages) if known is not None else {}
        held |= {
            page.ordinal: HeldBlocks(len(page_blocks(page)), continued_page(page))
            for page in pages
            if not page.labels.deleted
        }
        told = {ordinal: (one.blocks, one.continues) for ordinal, one in held.items()}
        self._store.set_setting(self._pool, FORGOTTEN_SESSION, f"{_HELD} {session}", json.dumps([owner, told]))

    def _work(self, key: str, sessions: Sequence[str], page_ids: Sequence[PageId], texts: Sequence[str]) -> None:
        for session in sessions:
            self._store.delete_session(self._pool, session)
        self._store.delete_pages(self._pool, page_ids)
        if texts:
            self._forget_sealed(sorted(set(texts) - set(self._kept_names())))
        self._store.set_setting(self._pool, FORGOTTEN_SESSION, key, None)

    def _kept_names(self) -> Iterator[str]:
        for session in self._store.sessions(self._pool):
            for page in self._store.scan(self._pool, session):
                yield from _sealed_names(page)


def _sealed_names(page: Page) -> Iterator[str]:
    """Names under which secrets of the page are sealed."""
    return (sealed_name(text, page.labels.owner) for text in _redacted_texts(page))


def _redacted_texts(page: Page) -> Iterator[str]:
    """Texts of a page, its labels' too, out of which a secret was taken."""
    labels = page.labels
    for value in (page.text, page.speaker, *(getattr(labels, name) for name in _LABELS), *_named(page)):
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and PLACEHOLDER_START in text:
                yield text


def _named(page: Page) -> Iterator[str]:
    for part in page.labels.parts:
        yield from (part.name, part.call_id)
