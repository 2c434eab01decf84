"""What every store promises about handles."""

from __future__ import annotations

import random

import pytest

from context_gatekeeper.core.handles import HANDLE_KEY_BYTES, handle_of
from context_gatekeeper.errors import ConfigError, StoreError
from context_gatekeeper.ports import PageStore
from context_gatekeeper.types import Page, PageId
from tests.conformance.samples import turn
from tests.conformance.test_threads import in_threads


def filled(store: PageStore, pool: str = "p", session: str = "s", turns: int = 4) -> list[Page]:
    first = store.page_count(pool, session) // 2
    return [page for number in range(first, first + turns) for page in store.append(pool, session, turn(number))]


class TestKeys:
    def test_a_pool_has_one_key_for_ever(self, store: PageStore) -> None:
        key = store.handle_key("p")
        assert len(key) == HANDLE_KEY_BYTES
        filled(store)
        store.delete_session("p", "s")
        assert store.handle_key("p") == key
        filled(store, "q")
        assert store.handle_key("q") not in (key, bytes(HANDLE_KEY_BYTES))

    def test_asking_for_a_key_makes_no_session(self, store: PageStore) -> None:
        store.handle_key("p")
        assert store.sessions("p") == ()

    def test_threads_get_one_key(self, store: PageStore) -> None:
        assert len(set(in_threads(lambda _: store.handle_key("p")))) == 1


class TestLookingUp:
    def test_every_page_is_found_by_its_handle(self, store: PageStore) -> None:
        pages = [*filled(store), *filled(store, session="t")]
        key = store.handle_key("p")
        for page in pages:
            handle = handle_of(page.page_id, key)
            assert store.page_of_handle("p", handle) == page.page_id
            assert store.page_of_handle("p", f"{handle}#L3-9") == page.page_id
            assert store.page_of_handle("p", f" {handle}\n") == page.page_id

    def test_pages_that_came_in_since_are_found_too(self, store: PageStore) -> None:
        key = store.handle_key("p")
        for _ in range(5):
            for page in filled(store, turns=2):
                assert store.page_of_handle("p", handle_of(page.page_id, key)) == page.page_id

    def test_a_deleted_page_keeps_its_handle(self, store: PageStore) -> None:
        (page, *_) = filled(store)
        handle = handle_of(page.page_id, store.handle_key("p"))
        store.delete_pages("p", [page.page_id])
        assert store.page_of_handle("p", handle) == page.page_id

    def test_a_handle_of_another_pool_is_none(self, store: PageStore) -> None:
        (page, *_) = filled(store)
        (other, *_) = filled(store, "q")
        assert store.page_of_handle("q", handle_of(page.page_id, store.handle_key("p"))) is None
        assert store.page_of_handle("q", handle_of(page.page_id, store.handle_key("q"))) is None
        assert store.page_of_handle("p", handle_of(other.page_id, store.handle_key("p"))) is None

    def test_a_page_that_is_not_there_yet_is_none(self, store: PageStore) -> None:
        pages = filled(store)
        key = store.handle_key("p")
        assert store.page_of_handle("p", handle_of(PageId(pages[-1].page_id + 1), key)) is None

    @pytest.mark.parametrize("text", ["", "page:", "page:abc", "call_0001", "page:" + "a" * 17, "page:" + "A" * 16])
    def test_what_is_no_handle_is_none(self, store: PageStore, text: str) -> None:
        filled(store)
        assert store.page_of_handle("p", text) is None
        assert store.page_of_handle("nobody's", text) is None

    def test_guesses_hit_nothing(self, store: PageStore) -> None:
        filled(store, turns=200)
        chance = random.Random(3)
        for _ in range(2000):
            guess = "page:" + "".join(chance.choices("abcdefghijklmnopqrstuvwxyz234567", k=16))
            assert store.page_of_handle("p", guess) is None

    def test_looking_for_a_handle_makes_no_pool(self, store: PageStore) -> None:
        handle = handle_of(PageId(1 << 32), bytes(32))
        assert store.page_of_handle("p", handle) is None
        filled(store)
        assert store.page_of_handle("p", handle) is None


def test_wrong_names_and_closed_stores_say_so(store: PageStore) -> None:
    for call in (lambda: store.handle_key(""), lambda: store.page_of_handle("", "x")):
        with pytest.raises(ConfigError, match="name"):
            call()
    store.close()
    for call in (lambda: store.handle_key("p"), lambda: store.page_of_handle("p", "x")):
        with pytest.raises(StoreError, match="closed"):
            call()
