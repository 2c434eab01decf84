"""What every store promises about deleting: only by order, and then for good."""

from __future__ import annotations

from hashlib import sha256

import pytest

from context_gatekeeper.errors import ConfigError, PageNotFoundError, StoreError
from context_gatekeeper.ports import PageStore
from context_gatekeeper.types import Page, PageDraft, PageId, PageKind, PageLabels, Provenance, Role
from tests.conformance.samples import turn
from tests.conformance.test_threads import in_threads

LONG = "a long tool result\n" * 500


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def filled(store: PageStore, session: str = "s", turns: int = 4) -> list[Page]:
    """The pages of a session with texts of its own."""
    return [
        page
        for number in range(turns)
        for page in store.append(
            "p",
            session,
            turn(number, f"{session} ask {number}", f"{session} tell {number}", time=5.0, speakers=("Ann", None)),
            idempotency_key=f"{session} {number}",
        )
    ]


def marker(page: Page) -> Page:
    """What stands in the place of a deleted page."""
    return Page(
        page.page_id,
        page.pool,
        page.session,
        page.turn_id,
        page.role,
        text="",
        terms={},
        derived="",
        time=None,
        speaker=None,
        kind=page.kind,
        sha256=digest(""),
        labels=PageLabels(deleted=True),
    )


class TestDeletingPages:
    def test_a_marker_stands_in_the_place_of_a_deleted_page(self, store: PageStore) -> None:
        labels = PageLabels(path="secret.txt", owner="ann", provenance=Provenance.TOOL)
        draft = PageDraft(0, Role.USER, "words", {"words": 1}, "notes", 7.0, "Ann", PageKind.TOOL, labels)
        deleted, kept = store.append("p", "s", [draft, PageDraft(0, Role.ASSISTANT, "kept")])
        assert store.delete_pages("p", [deleted.page_id]) == (digest("words"),)
        assert list(store.scan("p", "s")) == [marker(deleted), kept]
        assert store.get("p", [deleted.page_id, kept.page_id]) == (marker(deleted), kept)
        assert marker(deleted).kind is PageKind.TOOL
        assert store.page_count("p", "s") == 2

    def test_all_other_pages_stay_as_they_were(self, store: PageStore) -> None:
        pages, others = filled(store), filled(store, "t")
        store.delete_pages("p", [pages[2].page_id, pages[5].page_id, pages[2].page_id])
        expected = [marker(page) if page.ordinal in (2, 5) else page for page in pages]
        assert list(store.scan("p", "s")) == expected
        assert list(store.scan("p", "t")) == others

    def test_pages_of_several_sessions_go_at_once(self, store: PageStore) -> None:
        pages, others = filled(store), filled(store, "t")
        gone = store.delete_pages("p", [others[1].page_id, pages[0].page_id])
        assert gone == tuple(sorted((pages[0].sha256, others[1].sha256)))
        assert [next(store.scan("p", "s")), list(store.scan("p", "t"))[1]] == [marker(pages[0]), marker(others[1])]

    def test_the_index_follows(self, store: PageStore) -> None:
        pages = filled(store)
        assert list(store.postings("p", "s").ordinals("ask")) == [0, 2, 4, 6]
        store.delete_pages("p", [pages[2].page_id])
        index = store.postings("p", "s")
        assert list(index.ordinals("ask")) == [0, 4, 6]
        assert (index.page_length(2), index.block_count) == (0, 4)
        store.append("p", "s", turn(4, "ask again"))
        assert list(store.postings("p", "s").ordinals("ask")) == [0, 4, 6, 8]
        assert store.postings("p", "s").document_frequency("2") == 1  # the answer's

    def test_appends_go_on_behind_and_no_id_is_given_again(self, store: PageStore) -> None:
        pages = filled(store)
        store.delete_pages("p", [page.page_id for page in pages])
        with pytest.raises(ConfigError, match="another writer"):
            store.append("p", "s", turn(3))
        more = store.append("p", "s", turn(4))
        assert {page.page_id for page in more}.isdisjoint(page.page_id for page in pages)
        assert list(store.scan("p", "s")) == [*map(marker, pages), *more]

    def test_a_key_of_a_deleted_page_answers_with_the_marker(self, store: PageStore) -> None:
        pages = filled(store)
        store.delete_pages("p", [pages[2].page_id])
        for _ in range(2):
            again = store.append("p", "s", turn(1, "s ask 1", "s tell 1"), idempotency_key="s 1")
            assert again == (marker(pages[2]), pages[3])

    def test_a_text_that_another_page_has_is_not_gone(self, store: PageStore) -> None:
        for text in ("(no output)", LONG):
            first, second = store.append("p", f"in {len(text)}", turn(0, text, text))
            assert store.delete_pages("p", [first.page_id]) == ()
            assert list(store.scan("p", f"in {len(text)}")) == [marker(first), second]
            store.append("q", "s", turn(store.page_count("q", "s") // 2, text))  # another pool's does not count
            assert store.delete_pages("p", [second.page_id]) == (digest(text),)
        assert [page.text for page in store.scan("q", "s")][::2] == ["(no output)", LONG]

    def test_a_deleted_text_may_come_again(self, store: PageStore) -> None:
        (page, _) = store.append("p", "s", turn(0, LONG))
        store.delete_pages("p", [page.page_id])
        (again, _) = store.append("p", "s", turn(1, LONG))
        assert list(store.scan("p", "s"))[2] == again
        assert again.text == LONG

    def test_deleting_again_is_no_error(self, store: PageStore) -> None:
        pages = filled(store)
        assert len(store.delete_pages("p", [pages[0].page_id, pages[0].page_id])) == 1
        assert store.delete_pages("p", [pages[0].page_id]) == ()
        assert next(store.scan("p", "s")) == marker(pages[0])

    def test_an_empty_page_can_be_deleted(self, store: PageStore) -> None:
        _, empty = store.append("p", "s", turn(0, "ask", ""))
        store.append("p", "s", turn(1, "ask", ""))
        assert store.delete_pages("p", [empty.page_id]) == ()
        assert list(store.scan("p", "s"))[1] == marker(empty)

    def test_no_ids_delete_nothing(self, store: PageStore) -> None:
        pages = filled(store)
        assert store.delete_pages("p", []) == ()
        assert store.delete_pages("nobody's", []) == ()
        assert list(store.scan("p", "s")) == pages

    @pytest.mark.parametrize("unknown", [0, -1, 999, 2**63, 8, None, "1"])
    def test_an_unknown_id_is_named_and_nothing_is_deleted(self, store: PageStore, unknown: object) -> None:
        pages = filled(store)
        page_id = pages[-1].page_id + 1 if unknown == 8 else unknown
        with pytest.raises(PageNotFoundError, match="page ") as refusal:
            store.delete_pages("p", [pages[0].page_id, page_id])  # type: ignore[list-item]
        assert str(page_id) in str(refusal.value)
        assert list(store.scan("p", "s")) == pages

    def test_a_page_of_another_pool_is_unknown(self, store: PageStore) -> None:
        pages = filled(store)
        store.append("q", "s", turn(0))
        for pool in ("q", "nobody's"):
            with pytest.raises(PageNotFoundError):
                store.delete_pages(pool, [pages[0].page_id])
        assert list(store.scan("p", "s")) == pages


class TestDeletingSessions:
    def test_its_pages_and_settings_are_gone_and_its_name_stays(self, store: PageStore) -> None:
        pages, others = filled(store), filled(store, "t")
        for session in ("s", "t"):
            store.set_setting("p", session, "language", "en")
        assert store.delete_session("p", "s") == tuple(sorted(page.sha256 for page in pages))
        assert list(store.scan("p", "s")) == [marker(page) for page in pages]
        assert (store.settings("p", "s"), store.settings("p", "t")) == ({}, {"language": "en"})
        assert list(store.scan("p", "t")) == others
        assert store.sessions("p") == ("s", "t")
        assert store.postings("p", "s").document_frequency("ask") == 0
        assert store.postings("p", "t").document_frequency("ask") == 4

    def test_reading_it_in_again_does_not_bring_it_back(self, store: PageStore) -> None:
        pages = filled(store)
        store.delete_session("p", "s")
        assert filled(store) == [marker(page) for page in pages]
        assert store.delete_session("p", "s") == ()

    def test_a_session_never_written_is_no_error(self, store: PageStore) -> None:
        pages = filled(store)
        assert store.delete_session("p", "t") == ()
        assert store.delete_session("q", "s") == ()
        assert (store.sessions("p"), store.sessions("q")) == (("s",), ())
        assert list(store.scan("p", "s")) == pages

    def test_a_session_of_settings_alone_loses_them(self, store: PageStore) -> None:
        store.set_setting("p", "s", "language", "en")
        assert store.delete_session("p", "s") == ()
        assert store.settings("p", "s") == {}


class TestRefusals:
    def test_wrong_names_are_refused(self, store: PageStore) -> None:
        for call in (
            lambda: store.delete_pages("", []),
            lambda: store.delete_session("p", ""),
            lambda: store.delete_session("", "s"),
        ):
            with pytest.raises(ConfigError, match="name"):
                call()

    def test_a_closed_store_says_so(self, store: PageStore) -> None:
        pages = filled(store)
        store.close()
        for call in (
            lambda: store.delete_pages("p", [pages[0].page_id]),
            lambda: store.delete_session("p", "s"),
        ):
            with pytest.raises(StoreError, match="closed"):
                call()


def test_deleting_and_appending_side_by_side_loses_nothing_else(store: PageStore) -> None:
    def work(number: int) -> list[PageId]:
        deleted = []
        for turn_id in range(6):
            user, _ = store.append("p", f"s{number}", turn(turn_id, f"keep {number} {turn_id}", f"drop {turn_id}"))
            if turn_id % 2:
                store.delete_pages("p", [PageId(user.page_id + 1)])
                deleted.append(PageId(user.page_id + 1))
        return deleted

    for number, deleted in enumerate(in_threads(work, threads=4)):
        pages = list(store.scan("p", f"s{number}"))
        assert [page.page_id for page in pages if page.labels.deleted] == deleted
        assert [page.text for page in pages[::2]] == [f"keep {number} {turn_id}" for turn_id in range(6)]
        assert list(store.postings("p", f"s{number}").ordinals("drop")) == [1, 5, 9]
