"""What one owner may see of a pool: the second of two checks, beside the one that a store's key makes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from context_gatekeeper.core.handles import handle_of
from context_gatekeeper.engine.grown_pages import regrouped
from context_gatekeeper.errors import PageNotFoundError
from context_gatekeeper.ports import PageStore
from context_gatekeeper.types import Page, PageId, PageLabels, PageScope, SessionEvent

__all__ = [
    "AGENT_SETTING",
    "OwnerView",
    "SessionFacts",
    "may_see",
    "no_such_page",
    "read_facts",
]

AGENT_SETTING = "agent-session"
"""Setting that marks a session as an agent's; JSON of its `SessionFacts`."""


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What was noted of an agent's session when it came in."""

    log_id: str
    """The log's own name of it."""
    source: str
    """Format of the log."""
    working_folder: str = ""
    owner: str = ""
    events: tuple[SessionEvent, ...] = ()

    def to_json(self) -> str:
        """As `AGENT_SETTING` keeps it."""
        events = [[event.kind, event.time, event.prompt_tokens] for event in self.events]
        return json.dumps([self.log_id, self.source, self.working_folder, self.owner, events])


def read_facts(settings: Mapping[str, str]) -> SessionFacts | None:
    """The facts in a session's settings; None for a session that is no agent's."""
    noted = settings.get(AGENT_SETTING)
    if noted is None:
        return None
    log_id, source, folder, owner, events = json.loads(noted)
    return SessionFacts(log_id, source, folder, owner, tuple(SessionEvent(*event) for event in events))


def may_see(labels: PageLabels, owner: str) -> bool:
    """Whether ``owner`` may see a page: his own, one that names him, one that is shared."""
    return labels.owner == owner or owner in labels.acl or labels.scope is not PageScope.PRIVATE


def no_such_page(handle: str) -> PageNotFoundError:
    """The one error for a handle that leads to nothing that may be shown."""
    return PageNotFoundError(
        f"handle {handle[:80]!a}", "there is no such page here", "check it; `cgk pages SESSION` lists those there are"
    )


class OwnerView:
    """One pool as one owner sees it: pages of others are not there.

    Args:
        store: where the pages are.
        pool: the share of the store.
        owner: who looks.
    """

    def __init__(self, store: PageStore, pool: str, owner: str) -> None:
        self.store = store
        self.pool = pool
        self.owner = owner

    def sessions(self) -> Iterator[tuple[str, SessionFacts]]:
        """Names and facts of the agents' sessions, in the order in which they came in."""
        for name in self.store.sessions(self.pool):
            facts = self._facts(name)
            if facts is not None:
                yield name, facts

    def facts(self, name: str) -> SessionFacts:
        """Facts of an agent's session. Raises PageNotFoundError when there is none of this name."""
        facts = self._facts(name)
        if facts is None:
            raise PageNotFoundError(
                f"session {name[:80]!a}", "the pool has no such agent session", "take one that `cgk inspect` lists"
            )
        return facts

    def pages(self, name: str) -> list[Page]:
        """The session's pages, markers of deleted ones too, in order; each message on one, whenever it came in."""
        pages = self.store.scan(self.pool, name)
        return regrouped(page for page in pages if page.labels.deleted or may_see(page.labels, self.owner))

    def live(self, page_ids: Iterable[PageId]) -> Iterator[Page]:
        """Those of the pages that are there for him, in the order asked for."""
        pages = (self.store.get(self.pool, (page_id,))[0] for page_id in page_ids)
        return (page for page in pages if not page.labels.deleted and may_see(page.labels, self.owner))

    def page_of(self, handle: str) -> Page:
        """The page of a handle. Raises PageNotFoundError alike for one that is absent, deleted or somebody else's."""
        page_id = self.store.page_of_handle(self.pool, handle)
        page = None if page_id is None else next(self.live((page_id,)), None)
        if page is None:
            raise no_such_page(handle)
        return page

    def handle_of(self, page: Page) -> str:
        """The page's own handle."""
        return handle_of(page.page_id, self.store.handle_key(self.pool))

    def _facts(self, name: str) -> SessionFacts | None:
        facts = read_facts(self.store.settings(self.pool, name))
        if facts is None or not self.store.page_count(self.pool, name):
            return None  # the facts are noted first: a store that failed then holds no page
        if facts.owner == self.owner:
            return facts
        shared = (page for page in self.store.scan(self.pool, name) if page.labels.provenance is not None)
        return facts if any(may_see(page.labels, self.owner) for page in shared) else None
