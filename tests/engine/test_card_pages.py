"""Memory cards as pages: one for each task, newer in the place of older, gone with what they quote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from context_gatekeeper.core.redact import RedactionMode
from context_gatekeeper.engine.card_notes import cards_session, cited_pages
from context_gatekeeper.engine.card_pages import CardBook
from context_gatekeeper.engine.owner_view import OwnerView
from context_gatekeeper.engine.session_cards import task_cards
from context_gatekeeper.errors import ConfigError, StoreBusyError
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.stores.sealed import Redactor, SpansInMemory
from context_gatekeeper.types import AgentSession, Page, PageDraft, PageId, PageKind, Provenance
from tests.engine.agents import FIXING, POOL, answered, grown, said, session, stored, take_in, two_tasks

TWO_TASKS = two_tasks(name="two")


def book_of(store: MemoryStore, goals: Mapping[str, str] | None = None) -> CardBook:
    redactor = Redactor(store.handle_key(POOL), RedactionMode.KEEP, SpansInMemory())
    return CardBook(OwnerView(store, POOL, ""), redactor.redact_draft, lambda: goals or {})


def holding(one: AgentSession, goals: Mapping[str, str] | None = None) -> tuple[MemoryStore, CardBook]:
    store = MemoryStore()
    take_in(store, one)
    return store, book_of(store, goals)


def kept(store: MemoryStore, name: str) -> list[Page]:
    return [page for page in store.scan(POOL, cards_session(name)) if page.kind is PageKind.CARD]


def test_each_task_has_one_card_page_that_names_the_pages_it_quotes() -> None:
    store, book = holding(TWO_TASKS)
    assert book.refresh("two") == 2
    first, second = kept(store, "two")
    assert [page.labels.task_id for page in (first, second)] == ["t1", "t2"]
    assert {page.labels.provenance for page in (first, second)} == {Provenance.DERIVED}
    texts = {page.page_id: page.text for page in stored(store, "two")}
    assert cited_pages(first) <= texts.keys()
    assert "it drops the last invoice row." in first.text
    assert any("it drops the last invoice row." in texts[page_id] for page_id in cited_pages(first))
    assert book.pages("two") == {"t1": first, "t2": second}
    assert book.page_ids("two") == {first.page_id, second.page_id}


def test_a_session_that_did_not_grow_has_its_cards_already() -> None:
    store, book = holding(FIXING)
    assert (book.refresh("shop/fixing"), book.refresh("shop/fixing")) == (1, 0)
    assert len(kept(store, "shop/fixing")) == 1


def test_a_newer_card_supersedes_the_older_and_one_that_says_the_same_stays() -> None:
    store, book = holding(TWO_TASKS)
    book.refresh("two")
    first, second = kept(store, "two")
    take_in(store, grown(TWO_TASKS, said("邮件里必须写上诊所的电话。"), answered("加上了。")))
    assert book.refresh("two") == 1
    newest = book.pages("two")
    assert newest["t1"] == first
    assert newest["t2"].labels.supersedes == second.page_id
    assert "必须写上诊所的电话" in newest["t2"].text
    assert len(kept(store, "two")) == 3


def test_a_session_of_which_nothing_is_left_or_that_says_nothing_has_no_card() -> None:
    store, book = holding(session(answered("Hello."), name="quiet"))
    assert book.refresh("quiet") == 0
    assert book.pages("quiet") == {}
    store.delete_session(POOL, "quiet")
    assert book.refresh("quiet") == 0


def test_a_task_that_serves_a_goal_has_it_on_its_card() -> None:
    goal = "The order export of the bookshop drops no invoice row."
    _, book = holding(TWO_TASKS, {"g4": goal})
    book.refresh("two")
    pages = book.pages("two")
    assert pages["t1"].labels.goal_ids == ("g4",)
    assert f"- {goal} [g4]" in pages["t1"].text
    assert pages["t2"].labels.goal_ids == ()


def test_a_card_is_known_by_its_page_while_that_says_the_same() -> None:
    store, book = holding(FIXING)
    view = OwnerView(store, POOL, "")
    (card,) = task_cards(view.pages("shop/fixing"), "/srv/shop")
    assert book.handle_of("shop/fixing", card) == ""
    book.refresh("shop/fixing")
    (page,) = kept(store, "shop/fixing")
    assert book.handle_of("shop/fixing", card) == view.handle_of(page)
    take_in(store, grown(FIXING, said("You must always log it.")))
    (newer,) = task_cards(view.pages("shop/fixing"), "/srv/shop")
    assert book.handle_of("shop/fixing", newer) == ""


class RacingStore(MemoryStore):
    """A store in which somebody else stores a card first."""

    races = 1

    def append(
        self, pool: str, session: str, drafts: Sequence[PageDraft], *, idempotency_key: str | None = None
    ) -> tuple[Page, ...]:
        if session == cards_session("shop/fixing") and self.races:
            self.races -= 1
            super().append(pool, session, drafts)
        return super().append(pool, session, drafts, idempotency_key=idempotency_key)


@pytest.mark.parametrize("races", [1, 10_000])
def test_another_writer_who_is_first_is_waited_for(races: int) -> None:
    store = RacingStore()
    store.races = races
    take_in(store, FIXING)
    book = book_of(store)
    if races == 1:
        assert book.refresh("shop/fixing") == 1
        assert len(kept(store, "shop/fixing")) == 2
    else:
        with pytest.raises(StoreBusyError, match="other writers were first"):
            book.refresh("shop/fixing")


class RefusingStore(MemoryStore):
    """A store that takes no cards."""

    def append(
        self, pool: str, session: str, drafts: Sequence[PageDraft], *, idempotency_key: str | None = None
    ) -> tuple[Page, ...]:
        if session == cards_session("shop/fixing"):
            raise ConfigError("page", "refused", "give up")
        return super().append(pool, session, drafts, idempotency_key=idempotency_key)


def test_an_error_of_the_store_that_is_no_race_is_told() -> None:
    store = RefusingStore()
    take_in(store, FIXING)
    with pytest.raises(ConfigError, match="refused"):
        book_of(store).refresh("shop/fixing")


def test_a_card_that_its_owner_deleted_is_shown_no_more() -> None:
    store, book = holding(FIXING)
    book.refresh("shop/fixing")
    (page,) = kept(store, "shop/fixing")
    store.delete_pages(POOL, [PageId(page.page_id)])
    assert book.pages("shop/fixing") == {}
