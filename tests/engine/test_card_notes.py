"""Names and notes of cards that are pages."""

from __future__ import annotations

from dataclasses import replace

from context_gatekeeper.engine.agent_pages import block_places, page_tokens
from context_gatekeeper.engine.card_notes import card_draft, carded_session, cards_session, cited_pages
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.types import PageDraft, PageId, PageKind, Provenance, Role
from context_gatekeeper.types import PageLabels as Labels
from tests.engine.agents import POOL, said, session, stored, take_in


def test_the_session_of_cards_leads_back_to_the_one_they_were_made_of() -> None:
    assert carded_session(cards_session("shop/fixing")) == "shop/fixing"
    assert carded_session("shop/fixing") == "shop/fixing"
    assert cards_session("shop/fixing") != "shop/fixing"


def test_a_card_notes_its_size_its_words_and_what_it_quotes_and_holds_no_block() -> None:
    store = MemoryStore()
    plain = PageDraft(0, Role.USER, "- zebra [p3]", kind=PageKind.CARD, labels=Labels(provenance=Provenance.DERIVED))
    empty = PageDraft(0, Role.ASSISTANT, "")
    page, _ = store.append(POOL, cards_session("s"), (card_draft(plain, [PageId(3), PageId(9)]), empty))
    assert cited_pages(page) == {3, 9}
    assert "zebra" in page.terms
    assert page_tokens(page) > 0
    assert block_places(page) == ()
    assert cited_pages(replace(page, derived="")) == frozenset()


def test_other_pages_quote_nothing() -> None:
    store = MemoryStore()
    take_in(store, session(said("hello")))
    assert [cited_pages(page) for page in stored(store)] == [frozenset(), frozenset()]
