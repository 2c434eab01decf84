"""Content words: what a block must hold after a switch of topic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.content_words import CONTENT_WORD_MIN_LEN, content_words, holds_content_word


def words(text: str) -> frozenset[str]:
    return content_words(scan_anchors(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Kubernetes", {"kubernetes"}),
        ("the lock with a key", {"lock"}),
        ("api", set()),
        ("k8s and s3", {"k8s", "s3"}),
        ("lock_2 x", {"lock_2"}),
        ("user_id", {"user_id"}),
        ("a_b _init_", {"a_b", "_init_"}),
        ("Is C++ or C# or F better?", {"c++", "c#", "better"}),
        ("x_ _y _", set()),
        ("v1.2.3", {"v1.2.3"}),
        ("10.20.30", {"10.20.30"}),
        ("1.2.3.4", set()),
        ("升级到v1.2.3版本", {"v1.2.3", "升级", "版本"}),
        ("Is it 1.2.3.", {"1.2.3"}),
        ("x1.2.3", {"x1"}),
        ("Ein Kühlschrank, né résumé", {"kühlschrank", "résumé"}),
        ("1.2", set()),
        ("6379", set()),
        ("Кэш я", {"кэш"}),
        ("데이터", {"데이터"}),
        ("", set()),
        ("?!…", set()),
        ("的", set()),
        ("锁", set()),
    ],
)
def test_the_content_words_of_a_query(text: str, expected: set[str]) -> None:
    assert words(text) == expected


def test_a_long_chinese_piece_gives_all_its_windows_of_four() -> None:
    windows = {word for word in words("分布式锁续租") if len(word) == CONTENT_WORD_MIN_LEN}
    assert windows == {"分布式锁", "布式锁续", "式锁续租"}


@pytest.mark.parametrize("piece", ["缓存", "数据库", "消息队列", "カフェ"])
def test_a_chinese_piece_of_at_most_four_characters_counts_whole(piece: str) -> None:
    assert piece in words(piece)


def test_function_words_part_chinese_pieces() -> None:
    found = words("缓存的队列")
    assert {"缓存", "队列"} <= found
    assert not any("的" in word for word in found)


def test_traditional_text_has_the_words_of_simplified_text() -> None:
    assert words("資料庫") == words("资料库") != frozenset()


def test_only_the_first_4000_characters_are_read() -> None:
    assert words(" " * 4000 + "kubernetes") == frozenset()
    assert words(" " * 3990 + "kubernetes") == {"kubernetes"}


@pytest.mark.parametrize(
    ("held", "text", "expected"),
    [
        (set(), "", True),
        (set(), "anything", True),
        ({"lock"}, "the lock is held", True),
        ({"lock", "缓存"}, "清理缓存吧", True),
        ({"lock"}, "", False),
        ({"lock"}, "the cache is cold", False),
        ({"lock"}, "The LOCK", True),
        ({"lock"}, "\uff2c\uff2f\uff23\uff2b", True),
        ({"资料库"}, "資料庫很慢", True),
    ],
)
def test_a_block_holds_one_of_the_words_or_there_are_none(held: set[str], text: str, expected: bool) -> None:
    assert holds_content_word(frozenset(held), text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\ud800 redis \udfff", {"redis"}),
        ("redis\0cache", {"redis", "cache"}),
        ("\u202eשלום\u202c", {"שלום"}),
        ("👨‍👩‍👧‍👦", set()),
        ("a" * 20_000, {"a" * 4000}),
        ("1" * 20_000, set()),
        ("_" * 20_000, set()),
        ("'" * 20_000, set()),
    ],
    ids=["surrogates", "NUL", "right to left", "emoji", "letters", "digits", "underscores", "quotes"],
)
def test_hostile_text_is_read(text: str, expected: set[str]) -> None:
    assert words(text) == expected


@given(st.text(st.characters(), max_size=200) | st.text(st.sampled_from("锁的缓存aB1._v \ud800\0"), max_size=200))
def test_every_content_word_stands_in_its_own_text(text: str) -> None:
    scan = scan_anchors(text)
    found = content_words(scan)
    assert all(len(word) >= 2 and word in scan.text.lower() for word in found)
    assert holds_content_word(found, scan.text.lower())
