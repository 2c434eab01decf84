"""PostingIndex holds what `ports.Postings` promises."""

from __future__ import annotations

import pytest

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.ports import Postings
from context_gatekeeper.stores.postings import PostingIndex


def index_of(*pages: dict[str, int]) -> PostingIndex:
    index = PostingIndex()
    for ordinal, terms in enumerate(pages):
        index.add_page(ordinal, terms)
    return index


def test_an_empty_index_knows_nothing() -> None:
    index: Postings = PostingIndex()
    assert index.block_count == 0
    assert index.document_frequency("redis") == 0
    assert index.user_frequency("redis") == 0
    assert list(index.ordinals("redis")) == []
    assert list(index.frequencies("redis")) == []
    assert index.page_length(0) == 0


def test_both_sides_of_a_turn_count_as_one_block() -> None:
    index = index_of({"redis": 1}, {"redis": 3}, {}, {"redis": 1}, {"redis": 2}, {})
    assert index.block_count == 3
    assert index.document_frequency("redis") == 3
    assert index.user_frequency("redis") == 2
    assert list(index.ordinals("redis")) == [0, 1, 3, 4]
    assert list(index.frequencies("redis")) == [1, 3, 1, 2]


def test_an_assistant_page_after_another_turns_user_page_is_its_own_block() -> None:
    index = PostingIndex()
    index.add_page(0, {"lock": 1})
    index.add_page(3, {"lock": 1})
    assert index.document_frequency("lock") == 2


def test_a_turn_counts_as_soon_as_its_user_page_is_in() -> None:
    index = index_of({"a": 1}, {"b": 1}, {"c": 1})
    assert index.block_count == 2
    assert index.page_count == 3


def test_empty_pages_count_as_turns() -> None:
    assert index_of({}, {}).block_count == 1


def test_gaps_are_empty_pages() -> None:
    index = PostingIndex()
    index.add_page(7, {"redis": 2, "cache": 1})
    assert index.block_count == 4
    assert [index.page_length(ordinal) for ordinal in range(9)] == [0, 0, 0, 0, 0, 0, 0, 3, 0]


def test_more_than_255_occurrences_count_as_255() -> None:
    index = index_of({"a": 1_000, "b": 255, "c": 254})
    assert list(index.frequencies("a")) == [255]
    assert list(index.frequencies("b")) == [255]
    assert list(index.frequencies("c")) == [254]
    assert index.page_length(0) == 764


def test_a_negative_ordinal_has_no_length() -> None:
    assert index_of({"a": 5}).page_length(-1) == 0


@pytest.mark.parametrize("ordinal", [0, 1])
def test_a_page_out_of_order_is_refused_and_changes_nothing(ordinal: int) -> None:
    index = index_of({"a": 1}, {"a": 1})
    with pytest.raises(ConfigError, match=r"ordinal 1 .*ascending"):
        index.add_page(ordinal, {"a": 1, "b": 1})
    assert list(index.ordinals("a")) == [0, 1]
    assert index.document_frequency("b") == 0
    assert index.page_count == 2


def numbers_in(members: int) -> list[int]:
    return [number for number in range(members.bit_length()) if members >> number & 1]


def test_sets_hold_the_turns_and_pages_of_a_term() -> None:
    index = index_of({"redis": 1}, {"redis": 3}, {"redis": 2}, {}, {}, {"redis": 1})
    assert [numbers_in(members) for members in index.block_sets("redis")] == [[0], [0, 1], [0, 2]]
    assert [numbers_in(members) for members in index.page_sets("redis")] == [[1, 2], [0, 1, 2, 5]]
    assert index.highest_frequency("redis") == 3


def test_sets_take_in_pages_that_come_after_the_first_question() -> None:
    index = PostingIndex()
    for ordinal in range(0, 200, 3):
        index.add_page(ordinal, {"redis": 1 + ordinal % 2})
        held = list(index.ordinals("redis"))
        _, users, assistants = index.block_sets("redis")
        assert numbers_in(users) == [number >> 1 for number in held if not number & 1]
        assert numbers_in(assistants) == [number >> 1 for number in held if number & 1]
        repeating, every = index.page_sets("redis")
        assert numbers_in(every) == held
        assert numbers_in(repeating) == [number for number in held if number & 1]


def test_a_term_never_seen_has_empty_sets() -> None:
    index = PostingIndex()
    assert index.block_sets("redis") == (0, 0, 0)
    assert index.page_sets("redis") == (0, 0)
    assert index.highest_frequency("redis") == 1
    assert list(index.length_classes()) == []


def test_forgotten_sets_are_made_again() -> None:
    small = PostingIndex(set_budget_bytes=40)
    large = PostingIndex()
    for ordinal in range(400):
        terms = {term: 1 + ordinal % 3 for number, term in enumerate("abcdef") if ordinal % (number + 2) == 0}
        small.add_page(ordinal, terms)
        large.add_page(ordinal, terms)
    for term in "abcdefabcdef":
        assert small.block_sets(term) == large.block_sets(term)
        assert small.page_sets(term) == large.page_sets(term)


def test_length_classes_split_the_filled_pages_by_length() -> None:
    lengths = [1, 0, 15, 16, 17, 18, 255, 1, 510]
    index = PostingIndex()
    for ordinal, length in enumerate(lengths):
        index.add_page(ordinal, {f"t{part}": min(255, length - part) for part in range(0, length, 255)})
        classes = list(index.length_classes())
        shortest = [first for first, _ in classes]
        assert shortest == sorted(set(shortest))
        for (first, members), following in zip(classes, [*shortest[1:], 1 << 30], strict=True):
            assert numbers_in(members) == [
                number for number in range(ordinal + 1) if first <= lengths[number] < following
            ]
    assert [first for first, _ in index.length_classes()] == [1, 15, 16, 18, 240, 480]
    assert list(index.page_lengths) == lengths
    assert index.average_length == pytest.approx(sum(lengths) / 8)
