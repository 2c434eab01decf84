"""Both stores answer any program of calls alike: page for page, refusal for refusal."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from context_gatekeeper.core.handles import handle_of
from context_gatekeeper.errors import ConfigError, PageNotFoundError
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores import open_store
from context_gatekeeper.stores.drafts import first_page_id
from context_gatekeeper.types import (
    BlockKind,
    PageDraft,
    PageId,
    PageKind,
    PageLabels,
    PagePart,
    PageScope,
    Provenance,
    Role,
)

POOLS = st.sampled_from(["p", "q"])
SESSIONS = st.sampled_from(["s", "t", "会话"])
KEYS = st.none() | st.sampled_from(["k1", "k2", "k3"])
TEXTS = st.text(st.characters(exclude_categories=()), max_size=20)
PAGE_TEXTS = TEXTS | st.sampled_from(["a long text " * 100, "\ud83d缓" * 400])
LABELS = st.just(PageLabels()) | st.builds(
    PageLabels,
    namespace=TEXTS,
    scope=st.sampled_from(PageScope),
    acl=st.lists(TEXTS, max_size=2).map(tuple),
    path=TEXTS,
    supersedes=st.none() | st.integers(1, 2**63 - 1).map(PageId),
    provenance=st.none() | st.sampled_from(Provenance),
    parts=st.just(()) | TEXTS.map(lambda text: (PagePart(BlockKind.TOOL_CALL, 0, 0, text, text),)),
)
TERMS = st.dictionaries(TEXTS.filter(lambda term: "\n" not in term), st.integers(1, 300), max_size=6)
TIMES = st.none() | st.floats(allow_nan=False, allow_infinity=False)


PLACES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=4)
"""Numbers of sessions and ordinals."""


def ids_of(places: list[tuple[int, int]]) -> list[PageId]:
    return [PageId(first_page_id(session_id) + ordinal) for session_id, ordinal in places]


def answer(call: Callable[[], Any]) -> Any:
    """What a call returns, or the kind of its refusal."""
    try:
        return call()
    except (ConfigError, PageNotFoundError) as error:
        return str(error)


class TwoStores(RuleBasedStateMachine):
    """Runs each call on both stores; the file is opened anew now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.memory = open_store()
        self.file = open_store(self.folder / "pages.db")

    def both(self, call: Callable[[PageStore], Any]) -> Any:
        expected = answer(lambda: call(self.memory))
        assert answer(lambda: call(self.file)) == expected
        return expected

    @rule(
        pool=POOLS,
        session=SESSIONS,
        key=KEYS,
        turns=st.lists(
            st.tuples(PAGE_TEXTS, TERMS, TIMES, st.none() | TEXTS, st.sampled_from(PageKind), LABELS), max_size=3
        ),
        shift=st.sampled_from([0, 0, 0, 0, 1, -1]),
    )
    def append(self, pool: str, session: str, key: str | None, turns: list[tuple[Any, ...]], shift: int) -> None:
        first = max(0, self.memory.page_count(pool, session) + shift)
        drafts = [
            PageDraft(
                ordinal >> 1,
                Role.ASSISTANT if ordinal & 1 else Role.USER,
                text,
                terms,
                text,
                time,
                speaker,
                kind,
                labels,
            )
            for ordinal, (text, terms, time, speaker, kind, labels) in enumerate(turns, first)
        ]
        self.both(lambda store: store.append(pool, session, drafts, idempotency_key=key))

    @rule(pool=POOLS, places=PLACES)
    def get(self, pool: str, places: list[tuple[int, int]]) -> None:
        self.both(lambda store: store.get(pool, ids_of(places)))

    @rule(pool=POOLS, places=PLACES)
    def delete_pages(self, pool: str, places: list[tuple[int, int]]) -> None:
        self.both(lambda store: store.delete_pages(pool, ids_of(places)))

    @rule(pool=POOLS, session=SESSIONS)
    def delete_session(self, pool: str, session: str) -> None:
        self.both(lambda store: store.delete_session(pool, session))

    @rule(pool=POOLS, places=PLACES)
    def look_up(self, pool: str, places: list[tuple[int, int]]) -> None:
        for page_id in ids_of(places):
            self.both(
                lambda store, page_id=page_id: store.page_of_handle(pool, handle_of(page_id, store.handle_key(pool)))
            )

    @rule(pool=POOLS, session=SESSIONS, start=st.integers(-1, 9))
    def scan(self, pool: str, session: str, start: int) -> None:
        self.both(lambda store: list(store.scan(pool, session, from_ordinal=start)))

    @rule(pool=POOLS, session=SESSIONS, key=TEXTS, value=st.none() | TEXTS)
    def set_setting(self, pool: str, session: str, key: str, value: str | None) -> None:
        self.both(lambda store: store.set_setting(pool, session, key, value))

    @rule()
    def reopen_the_file(self) -> None:
        self.file.close()
        self.file = open_store(self.folder / "pages.db")

    @invariant()
    def both_tell_the_same(self) -> None:
        for pool in ("p", "q"):
            for session in self.both(lambda store, pool=pool: store.sessions(pool)):
                self.both(lambda store, place=(pool, session): store.page_count(*place))
                self.both(lambda store, place=(pool, session): list(store.settings(*place).items()))
                terms = {term for page in self.memory.scan(pool, session) for term in page.terms}
                for term in terms:
                    self.both(
                        lambda store, place=(pool, session), term=term: (
                            list(store.postings(*place).ordinals(term)),
                            list(store.postings(*place).frequencies(term)),
                            store.postings(*place).document_frequency(term),
                        )
                    )

    def teardown(self) -> None:
        self.file.close()
        shutil.rmtree(self.folder)


TestTwoStores = TwoStores.TestCase
TestTwoStores.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
