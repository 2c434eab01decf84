"""Recall over the agent sessions of one pool: each ranked by the one `recall`, by what all of them know together.

How rare a word is, and how long a page, is counted over all sessions asked, so that their scores compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from context_gatekeeper.core.profiles import AGENT_PROFILE
from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.query import read_query
from context_gatekeeper.engine.recall import recall
from context_gatekeeper.engine.topic_tracker import TopicTracker
from context_gatekeeper.ports import PageStore, Postings
from context_gatekeeper.types import RecallHit

__all__ = ["SessionHit", "SessionRecall"]


@dataclass(frozen=True, slots=True)
class SessionHit:
    """A page found, and where."""

    session: str
    hit: RecallHit


@dataclass(slots=True)
class _Known:
    """What is kept of a session between two questions."""

    pages: PagePool
    postings: Postings
    page_count: int
    tracker: TopicTracker = field(default_factory=TopicTracker)


class SessionRecall:
    """Finds pages in the sessions of one pool, by their index alone. For one thread at a time."""

    def __init__(self, store: PageStore, pool: str) -> None:
        self._store = store
        self._pool = pool
        self._known: dict[str, _Known] = {}

    def forget(self) -> None:
        """Let go of all that is kept, because pages were deleted."""
        self._known.clear()

    def find(self, query: str, sessions: Sequence[str], *, limit: int) -> list[SessionHit]:
        """The best ``limit`` pages of these sessions, best first; ties go to the later session, then the older page.

        A session is read when it is asked for the first time: O(its pages).
        """
        known = {name: self._read(name) for name in sessions if self._store.page_count(self._pool, name)}
        if not known:
            return []
        every = [one.postings for one in known.values()]
        reading = read_query(query, _PooledPostings(every[0], every), TopicTracker())
        found: list[SessionHit] = []
        for name, one in known.items():
            if not reading.fallback and not any(map(one.postings.document_frequency, reading.scan.counts)):
                continue
            self._catch_up(one)
            view = _PooledPostings(one.postings, every)
            hits = recall(reading, one.pages, one.tracker, AGENT_PROFILE, limit=limit, postings=view)
            found += (SessionHit(name, hit) for hit in hits)
        places = {name: place for place, name in enumerate(known)}
        found.sort(key=lambda one: (-one.hit.score, -places[one.session], one.hit.turn_id, one.hit.role.value))
        return found[:limit]

    def _read(self, name: str) -> _Known:
        """The session's index as it is now; loaded again only when pages came in."""
        count = self._store.page_count(self._pool, name)
        one = self._known.get(name)
        if one is None:
            pages = PagePool(self._store, self._pool, name)
            one = self._known[name] = _Known(pages, pages.postings, count)
        elif one.page_count != count:
            one.pages.refresh()
            one.postings, one.page_count = one.pages.postings, count
        return one

    @staticmethod
    def _catch_up(one: _Known) -> None:
        """Let the tracker know how many turns there are: sessions of agents are one topic and one sitting here."""
        unknown = one.page_count // 2 - one.tracker.turn_count
        one.tracker.segment_of.extend([0] * unknown)
        one.tracker.sitting_of.extend([0] * unknown)


class _PooledPostings:
    """The index of one session with the statistics of several."""

    def __init__(self, own: Postings, every: Sequence[Postings]) -> None:
        self._own = own
        self._every = every
        self.block_count = sum(one.block_count for one in every)
        self.average_length = sum(one.block_count * one.average_length for one in every) / max(1, self.block_count)
        self.user_frequency = own.user_frequency
        self.page_lengths: Sequence[int] = own.page_lengths
        self.ordinals = own.ordinals
        self.frequencies = own.frequencies
        self.highest_frequency = own.highest_frequency
        self.page_length = own.page_length
        self.block_sets = own.block_sets
        self.page_sets = own.page_sets
        self.length_classes = own.length_classes
        self._frequencies: dict[str, int] = {}

    def document_frequency(self, term: str) -> int:
        """See `Postings`; over all sessions."""
        known = self._frequencies.get(term)
        if known is None:
            known = self._frequencies[term] = sum(one.document_frequency(term) for one in self._every)
        return known
