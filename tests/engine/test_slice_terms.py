"""Postings of a session's slices: the anchors of a full scan, by a cheaper way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.engine.slice_terms import SliceTerms, text_terms, word_terms
from context_gatekeeper.types import AgentMessage, BlockKind, ContentBlock, MessageRole
from tests.engine.desks import Desk


@pytest.mark.parametrize(
    "text",
    [
        "fix src/app/main.py now",
        "E0425 in v1.2.3",
        "分布式锁的续期 lock_manager",
        "camelCase and snake_case",
        "réseau été",
    ],
)
def test_terms_are_those_of_a_full_scan(text: str) -> None:
    assert set(text_terms(text)) == set(scan_anchors(text).counts)


def test_both_ways_of_writing_chinese_share_their_terms() -> None:
    assert text_terms("分佈式鎖的續期") == text_terms("分布式锁的续期")


def test_the_whole_of_a_word_comes_first_and_its_parts_share_one_weight() -> None:
    assert word_terms("drain_queue") == (("drain_queue", 1.0), ("drain", 0.5), ("queue", 0.5))


def test_a_part_that_also_stands_alone_counts_whole_wherever_it_stands() -> None:
    assert text_terms("queue drain_queue")["queue"] == text_terms("drain_queue queue")["queue"] == 1.0


@given(st.text(max_size=300))
def test_any_text_has_terms_with_shares(text: str) -> None:
    assert all(0.0 < share <= 1.0 for share in text_terms(text).values())


def test_every_slice_that_holds_a_term_is_its_holder_and_thinking_holds_nothing() -> None:
    desk = Desk()
    terms = SliceTerms(desk.log)
    desk.answer("zeppelin one")
    terms.follow()
    desk.take(
        AgentMessage(
            MessageRole.ASSISTANT, (ContentBlock(BlockKind.THINKING, "zeppelin?"), ContentBlock(BlockKind.IMAGE))
        )
    )
    desk.answer("zeppelin two")
    terms.follow()
    assert list(terms.holders("zeppelin")) == [0, 3]
    assert list(terms.holders("balloon")) == []
    assert terms.idf("zeppelin") < terms.idf("two")


def test_shares_tell_how_much_of_a_text_each_slice_holds() -> None:
    desk = Desk()
    for text in ("zeppelin quota rules", "zeppelin", "nothing"):
        desk.answer(text)
    terms = SliceTerms(desk.log)
    terms.follow()
    found = {one.piece: one for one in terms.shares("zeppelin quota", 64)}
    assert sorted(found) == [0, 1]
    assert (found[0].share, found[0].whole_terms) == (1.0, 2)
    assert 0.0 < found[1].share < 0.5
    assert found[1].whole_terms == 1


def test_only_the_heaviest_terms_of_a_text_count() -> None:
    desk = Desk()
    desk.answer("zeppelin")
    desk.answer("people")
    terms = SliceTerms(desk.log)
    terms.follow()
    assert [one.piece for one in terms.shares("people zeppelin", 1)] == [0]


@pytest.mark.parametrize(("text", "words"), [("drain_queue", 1), ("续期", 1), ("分布式锁", 2), ("the people", 0)])
def test_parts_triples_and_everyday_words_are_no_words_of_their_own(text: str, words: int) -> None:
    desk = Desk()
    desk.answer(f"{text} drain queue" if text == "drain_queue" else text)
    terms = SliceTerms(desk.log)
    terms.follow()
    assert [one.whole_terms for one in terms.shares(text, 64)] == [words]


def test_a_text_without_terms_shares_nothing() -> None:
    desk = Desk()
    desk.answer("zeppelin")
    terms = SliceTerms(desk.log)
    terms.follow()
    assert terms.shares("?!", 64) == []


def test_slices_may_be_read_a_little_at_a_time() -> None:
    desk = Desk()
    desk.answer(" ".join(f"word{number}" for number in range(2000)))
    desk.answer("zeppelin")
    terms, at_once = SliceTerms(desk.log), SliceTerms(desk.log)
    steps = terms.follow_steps()
    next(steps)
    assert list(terms.holders("word1")) == []
    assert len(list(steps)) > 3
    at_once.follow()
    for term in ("word1", "word1999", "zeppelin"):
        assert list(terms.holders(term)) == list(at_once.holders(term)) != []


def test_what_another_reader_has_taken_in_meanwhile_is_not_taken_in_twice() -> None:
    desk = Desk()
    desk.answer(" ".join(f"word{number}" for number in range(2000)))
    terms = SliceTerms(desk.log)
    steps = terms.follow_steps()
    next(steps)
    terms.follow()
    for _ in steps:
        pass
    assert list(terms.holders("word1")) == [0]
