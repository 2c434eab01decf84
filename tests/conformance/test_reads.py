"""What every store promises about reading pages and the index."""

from __future__ import annotations

from typing import Any

import pytest

from context_gatekeeper.errors import ConfigError, PageNotFoundError, StoreError
from context_gatekeeper.ports import PageStore, Postings
from context_gatekeeper.types import PageId
from tests.conformance.samples import turn


def filled(store: PageStore, session: str = "s", turns: int = 10) -> list[PageId]:
    """Ids of the pages of a session with ``turns`` turns."""
    return [
        page.page_id
        for number in range(turns)
        for page in store.append("p", session, turn(number, f"ask {number}", f"tell {number}"))
    ]


def recounted(store: PageStore, pool: str, session: str) -> dict[str, list[tuple[int, int]]]:
    """Term -> (ordinal, occurrences), worked out from the pages."""
    postings: dict[str, list[tuple[int, int]]] = {}
    for page in store.scan(pool, session):
        for term, count in page.terms.items():
            postings.setdefault(term, []).append((page.ordinal, count))
    return postings


def indexed(index: Postings, terms: list[str]) -> dict[str, list[tuple[int, int]]]:
    """The same from the index."""
    return {term: list(zip(index.ordinals(term), index.frequencies(term), strict=True)) for term in terms}


class TestGetting:
    def test_pages_come_in_the_order_asked_for_and_as_often(self, store: PageStore) -> None:
        ids = filled(store)
        wanted = [ids[7], ids[0], ids[7]]
        assert [page.page_id for page in store.get("p", wanted)] == wanted

    def test_asking_for_none_gives_none(self, store: PageStore) -> None:
        assert store.get("p", []) == ()

    @pytest.mark.parametrize("unknown", [0, -1, 999, 2**63, 10**40, "1", 1.5, None])
    def test_an_unknown_id_is_named(self, store: PageStore, unknown: Any) -> None:
        known = filled(store, turns=1)
        with pytest.raises(PageNotFoundError, match="page ") as refusal:
            store.get("p", [*known, unknown])
        assert str(unknown) in str(refusal.value)

    def test_a_page_of_another_pool_is_unknown(self, store: PageStore) -> None:
        ids = filled(store)
        store.append("q", "s", turn(0))
        with pytest.raises(PageNotFoundError):
            store.get("q", ids[:1])
        with pytest.raises(PageNotFoundError):
            store.get("nobody's", ids[:1])


class TestScanning:
    def test_pages_come_in_the_order_of_the_session_whatever_the_clock_said(self, store: PageStore) -> None:
        for number, time in enumerate([30.0, 10.0, 20.0, None, 10.0]):
            store.append("p", "s", turn(number, time=time))
        assert [page.ordinal for page in store.scan("p", "s")] == list(range(10))
        assert [page.time for page in store.scan("p", "s")][::2] == [30.0, 10.0, 20.0, None, 10.0]

    def test_two_hundred_pages_of_one_instant_keep_their_order(self, store: PageStore) -> None:
        for number in range(100):
            store.append("p", "s", turn(number, f"ask {number}", f"tell {number}", time=1_700_000_000.0))
        texts = [text for number in range(100) for text in (f"ask {number}", f"tell {number}")]
        assert [page.text for page in store.scan("p", "s")] == texts

    def test_a_scan_starts_where_it_is_told(self, store: PageStore) -> None:
        filled(store)
        assert [page.ordinal for page in store.scan("p", "s", from_ordinal=15)] == [15, 16, 17, 18, 19]
        assert [page.ordinal for page in store.scan("p", "s", from_ordinal=-5)] == list(range(20))
        assert list(store.scan("p", "s", from_ordinal=20)) == []
        assert list(store.scan("p", "s", from_ordinal=10**30)) == []

    def test_a_long_session_is_scanned_whole(self, store: PageStore) -> None:
        store.append("p", "s", [draft for number in range(700) for draft in turn(number, f"ask {number}", "")])
        assert [page.ordinal for page in store.scan("p", "s", from_ordinal=3)] == list(range(3, 1400))

    def test_appends_are_allowed_while_a_scan_is_read(self, store: PageStore) -> None:
        filled(store, turns=2)
        seen = []
        for page in store.scan("p", "s"):
            seen.append(page.ordinal)
            if page.ordinal == 1:
                store.append("p", "s", turn(2))
        assert seen[:4] == [0, 1, 2, 3]
        assert len(list(store.scan("p", "s"))) == 6

    def test_sessions_and_pools_do_not_mix(self, store: PageStore) -> None:
        store.append("p", "s", turn(0, "first of p"))
        store.append("p", "t", turn(0, "other session"))
        store.append("q", "s", turn(0, "other pool"))
        assert [page.text for page in store.scan("p", "s")][::2] == ["first of p"]
        assert [page.text for page in store.scan("p", "t")][::2] == ["other session"]
        assert [page.text for page in store.scan("q", "s")][::2] == ["other pool"]
        assert list(store.scan("q", "t")) == []


class TestCounting:
    def test_a_session_never_written_has_no_pages(self, store: PageStore) -> None:
        assert store.page_count("p", "s") == 0
        assert store.sessions("p") == ()
        assert list(store.scan("p", "s")) == []

    def test_the_count_follows_every_append(self, store: PageStore) -> None:
        for number in range(5):
            store.append("p", "s", turn(number))
            assert store.page_count("p", "s") == 2 * (number + 1)
        assert store.page_count("q", "s") == 0


class TestIndexing:
    def test_a_session_never_written_has_an_empty_index(self, store: PageStore) -> None:
        index = store.postings("p", "s")
        assert index.block_count == 0
        assert list(index.ordinals("redis")) == []
        assert store.sessions("p") == ()

    def test_the_index_agrees_with_the_pages_after_every_append(self, store: PageStore) -> None:
        for number in range(12):
            store.append("p", "s", turn(number, f"even {number % 2} shared shared", f"own{number} shared"))
            expected = recounted(store, "p", "s")
            index = store.postings("p", "s")
            assert indexed(index, list(expected)) == expected
            assert index.block_count == number + 1
        assert index.document_frequency("shared") == 12
        assert index.user_frequency("own3") == 0
        assert index.page_length(0) == 4

    def test_an_index_asked_for_first_after_many_appends_agrees_too(self, store: PageStore) -> None:
        store.append("p", "s", [draft for number in range(400) for draft in turn(number, f"w{number % 7}", "x y")])
        expected = recounted(store, "p", "s")
        assert indexed(store.postings("p", "s"), list(expected)) == expected

    def test_every_session_has_its_own_index(self, store: PageStore) -> None:
        store.append("p", "s", turn(0, "redis", ""))
        store.append("p", "t", turn(0, "kafka", ""))
        store.append("q", "s", turn(0, "pandas", ""))
        assert store.postings("p", "s").document_frequency("redis") == 1
        assert store.postings("p", "s").document_frequency("kafka") == 0
        assert store.postings("p", "s").document_frequency("pandas") == 0

    def test_a_hundred_sessions_keep_right_indexes(self, store: PageStore) -> None:
        for number in range(100):
            store.append("p", f"s{number}", turn(0, f"word{number}", ""))
            assert store.postings("p", f"s{number}").document_frequency(f"word{number}") == 1
        for number in range(100):
            store.append("p", f"s{number}", turn(1, f"word{number}", ""))
            assert store.postings("p", f"s{number}").document_frequency(f"word{number}") == 2


class TestClosing:
    def test_a_second_close_does_nothing(self, store: PageStore) -> None:
        store.close()
        store.close()

    def test_a_closed_store_says_so(self, store: PageStore) -> None:
        ids = filled(store, turns=1)
        store.close()
        calls = [
            lambda: store.append("p", "s", turn(1)),
            lambda: store.get("p", ids),
            lambda: list(store.scan("p", "s")),
            lambda: store.page_count("p", "s"),
            lambda: store.postings("p", "s"),
            lambda: store.sessions("p"),
            lambda: store.settings("p", "s"),
            lambda: store.set_setting("p", "s", "k", "v"),
        ]
        for call in calls:
            with pytest.raises(StoreError, match="closed"):
                call()

    def test_a_wrong_name_is_no_store_error_even_when_closed(self, store: PageStore) -> None:
        store.close()
        with pytest.raises(ConfigError):
            store.page_count("", "s")
