"""Worth of a page: what counts as an anchor, information gain, relevance, forms, hysteresis."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.page_value import (
    NewItems,
    PageForm,
    PageTies,
    PageValueParams,
    containment,
    information_gain,
    page_anchors,
    page_value,
    readable_text,
    relevance,
)
from tests.core.texts import ANY_TEXT, STORMS

SHA = hashlib.sha256(b"a page").hexdigest()
PICTURE = base64.b64encode(hashlib.sha512(b"a picture").digest()).decode()
SAFE = base64.urlsafe_b64encode(hashlib.sha512(b"a token").digest()).decode()
WEIGHTS = st.dictionaries(st.sampled_from(["redis", "lock", "锁", "v1.2", "ttl"]), st.floats(0.1, 5.0), max_size=5)


def even(term: str) -> float:
    return 1.0 if term else 0.0


# -- anchors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("garbage", [SHA, SHA[:16], f"0x{SHA[:20].upper()}", PICTURE, SAFE])
def test_hashes_and_encoded_bytes_give_no_anchors(garbage: str) -> None:
    assert page_anchors(f"lock {garbage} ttl", even).keys() == {"lock", "ttl"}


def test_a_uuid_gives_no_anchors() -> None:
    assert page_anchors("session 375d5d79-9c13-419d-a5fd-72421f2af713 ended", even).keys() == {"session", "end"}


@pytest.mark.parametrize(
    "name",
    [
        "deadbeef",
        "src/context_gatekeeper/core/page_value.py",
        "TestSessionResumeAfterMigrationV2KeepsOldFormat",
        "MAX_CONNECTION_POOL_SIZE_PER_WORKER_2",
        "internationalization",
        "--------------------------------",
        "2026-11-30T14:55:12",
    ],
)
def test_names_paths_and_times_are_kept(name: str) -> None:
    assert readable_text(f"see {name} there") == f"see {name} there"


def test_minified_lines_give_no_anchors() -> None:
    text = "function total(){}\n" + "var a=b;" * 80 + "\nretry budget"
    assert page_anchors(text, even).keys() == {"function", "total", "retri", "budget"}


def test_a_page_counts_its_64_most_telling_anchors() -> None:
    text = "\n".join(f"rare{number}x" for number in range(100)) + "\ncommon" * 50
    kept = page_anchors(text, lambda term: 0.1 if term == "common" else 1.0 + len(term) / 100)
    assert len(kept) == 64
    assert "common" not in kept


def test_a_term_that_comes_often_stands_before_an_equally_rare_one() -> None:
    assert list(page_anchors("alpha beta beta", even)) == ["beta", "alpha"]


def test_a_term_without_weight_is_left_out() -> None:
    assert page_anchors("alpha beta", lambda term: float(term == "beta")) == {"beta": 1.0}


def test_a_text_that_was_scanned_is_not_again_unless_some_of_it_is_unreadable() -> None:
    readable, other = "alpha beta\n", f"alpha {SHA}\n"
    for text in (readable, other):
        assert page_anchors(text, even, counts=scan_anchors(text).counts) == page_anchors(text, even)
    assert page_anchors(readable, even, counts={"gamma": 1}) == {"gamma": 1.0}


@given(ANY_TEXT)
def test_any_text_has_readable_parts(text: str) -> None:
    assert len(page_anchors(text, even)) <= 64


@pytest.mark.parametrize("text", STORMS.values(), ids=STORMS)
def test_storms_of_one_character_are_read_in_linear_time(text: str) -> None:
    assert len(readable_text(text)) <= len(text)


# -- information gain -------------------------------------------------------------------------------


def test_gain_is_the_share_of_idf_that_the_window_does_not_hold() -> None:
    page = {"redis": 3.0, "lock": 1.0}
    assert information_gain(page, ()) == 1.0
    assert information_gain(page, {"lock"}) == 0.75
    assert information_gain(page, {"lock", "redis"}) == 0.0


def test_each_kind_of_new_item_adds_a_fifth_however_many_there_are() -> None:
    page = {"redis": 1.0}
    held = {"redis"}
    assert information_gain(page, held, NewItems(numbers=1)) == pytest.approx(0.2)
    assert information_gain(page, held, NewItems(numbers=400)) == pytest.approx(0.2)
    assert information_gain(page, held, NewItems(1, 1, 1, 1)) == pytest.approx(0.8)
    assert information_gain(page, (), NewItems(handles=1)) == 1.0


def test_a_page_without_anchors_gains_by_its_new_items_only() -> None:
    assert information_gain({}, ()) == 0.0
    assert information_gain({}, (), NewItems(error_lines=1)) == pytest.approx(0.2)


def test_a_page_that_a_newer_one_contains_is_superseded() -> None:
    page = {"redis": 9.0, "lock": 1.0}
    assert information_gain(page, (), NewItems(handles=1), [{"redis"}]) == 0.0
    assert information_gain(page, (), newer_pages=[{"lock"}]) == 1.0


def test_unique_garbage_gains_nothing() -> None:
    page = page_anchors(f"{SHA}\n{PICTURE}\n" + "q" * 600, even)
    assert information_gain(page, ()) == 0.0


def test_a_paraphrase_counts_as_new() -> None:
    """A known limit: only words are compared."""
    page = page_anchors("the connection was refused", even)
    assert information_gain(page, page_anchors("nobody listens on that port", even)) == 1.0


@given(WEIGHTS, st.sets(st.sampled_from(["redis", "lock", "锁"])), st.integers(0, 3))
def test_gain_and_containment_are_shares(page: dict[str, float], window: set[str], numbers: int) -> None:
    assert 0.0 <= containment(page, window) <= 1.0 + 1e-9
    assert 0.0 <= information_gain(page, window, NewItems(numbers=numbers)) <= 1.0


@given(WEIGHTS, st.sets(st.sampled_from(["redis", "lock", "锁"])))
def test_a_fuller_window_never_raises_the_gain(page: dict[str, float], window: set[str]) -> None:
    assert information_gain(page, window | {"ttl"}) <= information_gain(page, window) + 1e-9


# -- relevance and worth ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        (PageTies(), 0.0),
        (PageTies(same_task=True), 0.3),
        (PageTies(same_file=True, same_task=True), 0.6),
        (PageTies(same_goal=True, same_file=True, same_task=True), 0.7),
        (PageTies(is_named=True), 1.0),
    ],
)
def test_the_strongest_tie_counts(ties: PageTies, expected: float) -> None:
    assert relevance(0.0, ties) == expected


@pytest.mark.parametrize(("score", "expected"), [(-1.0, 0.0), (1.7, 0.5), (3.4, 1.0), (40.0, 1.0)])
def test_the_ranking_score_is_scaled_and_capped(score: float, expected: float) -> None:
    assert relevance(score) == expected


def test_ranking_and_ties_do_not_add_up() -> None:
    assert relevance(1.7, PageTies(same_file=True)) == 0.6
    assert relevance(3.06, PageTies(same_file=True)) == pytest.approx(0.9)


def test_worth_is_relevance_times_gain_times_form() -> None:
    assert page_value(0.5, 0.4, PageForm.RAW).worth == pytest.approx(0.5 * 0.5 * 0.6)
    assert page_value(0.5, 0.4, PageForm.KNOWLEDGE).worth == pytest.approx(0.25)


def test_in_the_background_a_card_is_worth_more_than_the_page_and_a_handle_less() -> None:
    worths = [page_value(1.0, 1.0, form).worth for form in (PageForm.HANDLE, PageForm.RAW, PageForm.CARD)]
    assert worths == sorted(worths)


def test_a_page_that_was_asked_for_by_its_handle_comes_whole() -> None:
    assert page_value(1.0, 0.9, PageForm.RAW, is_named=True) > page_value(1.0, 0.9, PageForm.CARD)


def test_a_card_that_lacks_a_name_of_the_query_loses_to_the_page() -> None:
    card = page_value(1.0, 0.9, PageForm.CARD, lacks_exact_term=True)
    assert card.worth == 0.0
    assert page_value(0.1, 0.0, PageForm.RAW, lacks_exact_term=True) > card


def test_of_two_pages_that_say_the_opposite_the_newer_comes_first() -> None:
    older = page_value(0.8, 1.0, PageForm.RAW, turns_ago=9)
    newer = page_value(0.8, 1.0, PageForm.RAW, turns_ago=1)
    assert sorted([older, newer], reverse=True) == [newer, older]


def test_recency_only_breaks_ties() -> None:
    assert page_value(0.81, 1.0, PageForm.RAW, turns_ago=900) > page_value(0.8, 1.0, PageForm.RAW)
    assert page_value(0.8, 1.0, PageForm.RAW, turns_ago=-4).recency == 0.2


def test_the_numbers_can_be_set() -> None:
    params = PageValueParams(most_anchors=1, same_task=0.5)
    assert list(page_anchors("alpha beta", even, params)) == ["alpha"]
    assert relevance(0.0, PageTies(same_task=True), params) == 0.5
