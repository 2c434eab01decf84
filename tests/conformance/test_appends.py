"""What every store promises about appends."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.ports import PageStore
from context_gatekeeper.types import Page, PageDraft, PageKind, Role
from tests.conformance.samples import HOSTILE_TEXTS, turn


def is_untouched(store: PageStore) -> bool:
    """True while no call has stored anything in pool ``p``."""
    return store.sessions("p") == () and store.page_count("p", "s") == 0 and list(store.scan("p", "s")) == []


class TestAppending:
    def test_an_append_returns_its_drafts_as_pages(self, store: PageStore) -> None:
        drafts = turn(0, "ask", "tell", time=17.5, speakers=("Ann", None), derived='{"topic": 3}')
        user, assistant = store.append("p", "s", drafts)
        assert user == Page(
            page_id=user.page_id,
            pool="p",
            session="s",
            turn_id=0,
            role=Role.USER,
            text="ask",
            terms={"ask": 1},
            derived='{"topic": 3}',
            time=17.5,
            speaker="Ann",
            kind=PageKind.TURN,
            sha256=sha256(b"ask").hexdigest(),
        )
        assert (assistant.turn_id, assistant.role, assistant.text, assistant.speaker) == (
            0,
            Role.ASSISTANT,
            "tell",
            None,
        )

    def test_a_store_returns_later_what_it_returned_at_the_append(self, store: PageStore) -> None:
        appended = [page for number in range(5) for page in store.append("p", "s", turn(number, f"question {number}"))]
        assert list(store.scan("p", "s")) == appended
        assert list(store.get("p", [page.page_id for page in appended])) == appended

    @pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
    def test_any_text_comes_back_unchanged(self, store: PageStore, text: str) -> None:
        drafts = turn(0, text, text[::-1], speakers=(text[:500], text[-500:]), derived=text)
        pages = store.append("p", "s", drafts)
        stored = tuple(store.scan("p", "s"))
        assert stored == pages
        assert [page.text for page in stored] == [text, text[::-1]]
        assert [page.speaker for page in stored] == [text[:500], text[-500:]]
        assert stored[0].derived == text
        assert stored[0].sha256 == sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def test_ids_are_positive_and_never_given_twice_in_a_store(self, store: PageStore) -> None:
        pages = [
            page
            for number in range(3)
            for pool in ("p", "q")
            for session in ("s", "t")
            for page in store.append(pool, session, turn(number))
        ]
        ids = [page.page_id for page in pages]
        assert min(ids) > 0
        assert len(set(ids)) == len(ids)

    def test_one_side_of_a_turn_may_come_alone(self, store: PageStore) -> None:
        user, assistant = turn(0)
        store.append("p", "s", [user])
        store.append("p", "s", [assistant])
        assert [page.role for page in store.scan("p", "s")] == [Role.USER, Role.ASSISTANT]

    def test_many_turns_may_come_at_once(self, store: PageStore) -> None:
        pages = store.append("p", "s", [draft for number in range(30) for draft in turn(number)])
        assert [page.ordinal for page in pages] == list(range(60))
        assert store.page_count("p", "s") == 60

    def test_no_drafts_store_nothing(self, store: PageStore) -> None:
        assert store.append("p", "s", []) == ()
        assert store.append("p", "s", [], idempotency_key="k") == ()
        assert is_untouched(store)

    def test_a_page_does_not_follow_its_drafts_terms(self, store: PageStore) -> None:
        terms = {"redis": 1}
        (page, _) = store.append("p", "s", turn(0, user_terms=terms))
        terms["later"] = 9
        assert page.terms == {"redis": 1}
        assert next(store.scan("p", "s")).terms == {"redis": 1}

    def test_terms_keep_their_order_and_any_character_but_a_line_break(self, store: PageStore) -> None:
        terms = {"zoo": 1, "": 2, "a\0b": 3, "\ud83d": 4, "two words\tand a tab": 255, "设置": 7, "\r": 8, "\x1f": 9}
        store.append("p", "s", turn(0, user_terms=terms))
        assert list(next(store.scan("p", "s")).terms.items()) == list(terms.items())

    def test_more_than_255_occurrences_count_as_255(self, store: PageStore) -> None:
        (page, _) = store.append("p", "s", turn(0, user_terms={"redis": 256, "cache": 10**30}))
        assert page.terms == {"redis": 255, "cache": 255}
        assert list(store.postings("p", "s").frequencies("redis")) == [255]

    @pytest.mark.parametrize("time", [0, -1, 1_700_000_000, 1_700_000_000.123456, -0.0, 1e300, 5e-324])
    def test_a_time_comes_back_as_the_same_float(self, store: PageStore, time: float) -> None:
        (page, _) = store.append("p", "s", turn(0, time=time))
        assert page.time == time
        assert type(page.time) is float
        assert next(store.scan("p", "s")) == page


class TestRefusedAppends:
    def test_a_taken_place_is_refused_and_nothing_is_stored(self, store: PageStore) -> None:
        first = store.append("p", "s", turn(0, "mine"))
        with pytest.raises(ConfigError, match=r"turn 0 of session 's'.*another writer"):
            store.append("p", "s", [*turn(0, "yours"), *turn(1, "yours")])
        assert tuple(store.scan("p", "s")) == first
        assert store.postings("p", "s").document_frequency("yours") == 0

    def test_a_place_taken_halfway_stores_nothing(self, store: PageStore) -> None:
        with pytest.raises(ConfigError, match="another writer"):
            store.append("p", "s", [*turn(0), *turn(0)])
        assert is_untouched(store)

    def test_a_gap_is_refused_and_nothing_is_stored(self, store: PageStore) -> None:
        with pytest.raises(ConfigError, match="without gaps"):
            store.append("p", "s", turn(3))
        user, assistant = turn(0)
        with pytest.raises(ConfigError, match="without gaps"):
            store.append("p", "s", [assistant, user])
        assert is_untouched(store)

    def test_a_refused_append_does_not_use_up_its_key(self, store: PageStore) -> None:
        with pytest.raises(ConfigError, match="without gaps"):
            store.append("p", "s", turn(1), idempotency_key="k")
        assert len(store.append("p", "s", turn(0), idempotency_key="k")) == 2

    @pytest.mark.parametrize(
        "change",
        [
            {"turn_id": -1},
            {"turn_id": 2**31},
            {"turn_id": True},
            {"turn_id": "0"},
            {"text": b"bytes"},
            {"derived": None},
            {"speaker": 7},
            {"role": "narrator"},
            {"kind": "poem"},
            {"terms": {"redis": 0}},
            {"terms": {"redis": -1}},
            {"terms": {"redis": 1.5}},
            {"terms": {"redis": "1"}},
            {"terms": {7: 1}},
            {"terms": {"two\nlines": 1}},
            {"terms": ["redis"]},
            {"time": float("nan")},
            {"time": float("inf")},
            {"time": "noon"},
            {"time": True},
        ],
        ids=repr,
    )
    def test_a_draft_that_is_not_what_it_should_be_is_refused(self, store: PageStore, change: dict[str, Any]) -> None:
        user, assistant = turn(0)
        with pytest.raises(ConfigError, match="turn") as refusal:
            store.append("p", "s", [replace(user, **change), assistant])
        assert refusal.value.next_step
        assert is_untouched(store)

    def test_what_is_no_draft_is_refused(self, store: PageStore) -> None:
        drafts: list[Any] = [{"turn_id": 0, "text": "hello"}]
        with pytest.raises(ConfigError, match="dict"):
            store.append("p", "s", drafts)
        assert is_untouched(store)


class TestIdempotencyKeys:
    def test_a_repeated_key_stores_nothing_and_returns_the_first_pages(self, store: PageStore) -> None:
        first = store.append("p", "s", turn(0, "once"), idempotency_key="k")
        again = store.append("p", "s", turn(0, "twice"), idempotency_key="k")
        assert again == first
        assert tuple(store.scan("p", "s")) == first

    def test_a_repeated_key_returns_its_pages_after_others_came_in(self, store: PageStore) -> None:
        first = store.append("p", "s", turn(0), idempotency_key="k")
        store.append("p", "t", turn(0))
        store.append("p", "s", turn(1), idempotency_key="l")
        assert store.append("p", "s", turn(2), idempotency_key="k") == first
        assert store.append("p", "elsewhere", turn(0), idempotency_key="k") == first
        assert store.sessions("p") == ("s", "t")

    def test_a_key_belongs_to_its_pool(self, store: PageStore) -> None:
        first = store.append("p", "s", turn(0), idempotency_key="k")
        other = store.append("q", "s", turn(0), idempotency_key="k")
        assert {page.pool for page in other} == {"q"}
        assert {page.page_id for page in first}.isdisjoint(page.page_id for page in other)

    def test_without_a_key_equal_pages_are_stored_each_at_its_place(self, store: PageStore) -> None:
        for number in range(3):
            store.append("p", "s", turn(number, "(no output)", ""))
        assert [page.text for page in store.scan("p", "s")] == ["(no output)", ""] * 3

    def test_reading_a_transcript_again_and_again_keeps_its_rows(self, store: PageStore) -> None:
        transcript = [("(no output)" if number % 12 < 5 else f"line {number}") for number in range(60)]
        for _ in range(10):
            for number, text in enumerate(transcript):
                role = Role.ASSISTANT if number % 2 else Role.USER
                store.append("p", "s", [PageDraft(number // 2, role, text)], idempotency_key=f"message {number}")
            assert [page.text for page in store.scan("p", "s")] == transcript
