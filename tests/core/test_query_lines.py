"""A query that is a piece of talk: what the one who asks says himself counts whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.query_lines import asked_shares

TALK = "Ann: my kitten is ill\nBen: kittens need milk\nAnn: where is the vet?"


def halved(text: str) -> set[str]:
    """Terms of ``text`` that lose half of their share."""
    scan = scan_anchors(text)
    shares = asked_shares(scan, 0.5)
    assert set(shares) == set(scan.shares)
    for term, share in shares.items():
        assert share in (scan.shares[term], 0.5 * scan.shares[term])
    return {term for term, share in shares.items() if share != scan.shares[term]}


def test_what_only_the_other_says_counts_less() -> None:
    assert halved(TALK) == {"ben", "milk", "need"}


@pytest.mark.parametrize(
    "text",
    [
        "<Ann>: my kitten is ill\n<Ben>: kittens need milk\n<Ann>: where is the vet?",
        " <Ann>:my kitten is ill\n <Ben>:kittens need milk\n <Ann>:where is the vet?",
        "ANN : my kitten is ill\nBen: kittens need milk\nann: where is the vet?",
        "Ann\uff1a my kitten is ill\nBen\uff1a kittens need milk\nAnn\uff1a where is the vet?",
    ],
)
def test_heads_may_have_brackets_blanks_and_wide_colons(text: str) -> None:
    assert halved(text) == {"ben", "milk", "need"}


def test_a_line_without_a_head_belongs_to_the_speaker_before_it() -> None:
    assert halved("Ann: kitten\nBen: milk\nand bread\nAnn: vet\nand a basket") == {"ben", "milk", "bread"}


def test_what_stands_before_the_first_head_is_the_askers() -> None:
    assert halved("a zebra first\nAnn: kitten\nBen: milk\nAnn: vet") == {"ben", "milk"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "where is the vet?",
        "Question: where is the vet?\nPlace: Lisbon",
        "Ann: my kitten is ill\nAnn: where is the vet?",
        "at 10:30 the vet\nat 11:30 the milk\nat 10:30 the kitten",
        "https://one.example\nftp://two.example\nhttps://three.example",
        f"{'a' * 40}: kitten\nBen: milk\n{'a' * 40}: vet",
    ],
)
def test_what_is_no_talk_between_two_is_left_as_it_is(text: str) -> None:
    scan = scan_anchors(text)
    assert asked_shares(scan, 0.5) is scan.shares


def test_chinese_talk_is_read_alike() -> None:
    assert "咖啡" in halved("<小红>:我养了一只猫\n<助手>:喝杯咖啡吧\n<小红>:猫病了怎么办")


@given(st.text(alphabet="ab:<>\n \uff1a1"), st.sampled_from([0.25, 0.5, 1.0]))
def test_no_share_grows_and_no_term_is_lost(text: str, other_share: float) -> None:
    scan = scan_anchors(text)
    shares = asked_shares(scan, other_share)
    assert set(shares) == set(scan.shares)
    assert all(other_share * scan.shares[term] <= share <= scan.shares[term] for term, share in shares.items())
