"""What the form of a message gives away, in Chinese and English."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.query_form import DEICTIC_PATTERNS, LONG_MESSAGE_CHARS, QueryForm, has_deictic, read_form

FLAGS = {
    "is_deictic": (
        ["这个怎么做", "继续", "刚才那段", "它的端口", "Why?", "explain that", "続けて", "그럼"],
        ["缓存穿透", "redis lock"],
    ),
    "points_back": (
        ["它的端口", "上面的代码", "is it slow", "use these"],
        ["缓存穿透", "redis lock", "when it comes to redis"],
    ),
    "leads_on": (
        ["那么端口", "然后部署", "端口呢？", "and the port", "what about redis", "redis then?"],
        ["缓存穿透", "redis and lock"],
    ),
    "recalls": (
        ["之前的端口", "你提过端口", "remind me of the port", "you said redis", "earlier port"],
        ["缓存穿透", "redis lock"],
    ),
    "has_change_cue": (
        ["换个话题", "顺便问端口", "回到缓存", "By the way, redis", "back to redis"],
        ["缓存穿透", "redis lock"],
    ),
    "asks": (["端口是多少", "缓存？", "帮我部署", "what port", "redis?", "please deploy"], ["缓存穿透", "redis lock"]),
    "greets": (["你好", "早上好，缓存", "Hello redis", "I'm back", "안녕"], ["缓存穿透", "redis hello", "high load"]),
    "closes": (["谢谢", "先这样", "thanks", "got it", "好的"], ["缓存穿透", "redis lock", "好的缓存"]),
    "is_han": (["缓存", "缓存a", "缓存 abcd"], ["redis", "缓存 abcde", "カフェ", ""]),
}
FURTHER = {
    "is_deictic": (
        ["这个月的会", "这周的会谁去", "那个星期的事", "那我改端口", "is it my fault?", "this is slow"],
        [
            "这周末成都天气怎么样",
            "这个月房租多少",
            "那年流行什么",
            "这学期的课表",
            "那阵子缺货",
            "这段时间股市如何",
            "那 PostgreSQL 的索引",
            "那么，redis 的锁",
            "It is my birthday",
            "it's raining in Paris",
            "it’s time for dinner",
            "it was our holiday",
            "that reminds me",
            "a film for this weekend",
            "prices this year",
        ],
    ),
    "points_back": (
        [
            "上海呢",
            "上海呢？",
            "那上海明天呢，热不热",
            "那么红茶呢",
            "老人也适合",
            "天又黑了",
            "I live in Paris too",
            "cats as well?",
            "not cats either.",
            "what do people eat here",
            "any different colours",
            "any better ideas",
            "any worse",
            "the same with cats",
            "in that case",
            "Likewise for cats",
            "similarly for cats",
        ],
        [
            "缓存，呢",
            "也许下雨",
            "老人也许适合",
            "缓存穿透，老人也适合",
            "too many cats",
            "cats as well as dogs",
            "either cats or dogs",
            "here's my code",
            "here is my code",
            "here are my notes",
            "where is Paris",
            "many different colours",
            "It is my birthday",
            "this weekend in Paris",
        ],
    ),
    "leads_on": (["那端口", "上海呢", "not cats either"], ["上海冷吗", "上海冷吗？", "那 PostgreSQL 的索引"]),
    "recalls": ([], ["that reminds me"]),
    "chooses": (
        [
            "哪个更好",
            "哪一款更轻",
            "哪家更近",
            "两者都行",
            "二者择一",
            "这两个怎么选",
            "这两种贵吗",
            "which one should I use",
            "which of them",
            "which of the two",
            "both of them",
            "either of those",
            "choose between the two",
            "どちらがいい",
            "둘 중 뭐가 좋아",
        ],
        [
            "哪个端口",
            "猫和狗的区别",
            "这个地区",
            "which port",
            "which of my cats",
            "both cats and dogs",
            "either way",
            "the difference between cats and dogs",
            "cats versus dogs",
        ],
    ),
    "has_change_cue": (
        [
            "另外问一个",
            "另外想请教端口",
            "先放一放",
            "先放一边",
            "先不谈缓存",
            "先不管端口",
            "that reminds me",
            "put that aside",
            "leaving this aside",
            "enough about this",
            "enough about that",
            "something else: cats",
            "something unrelated, cats",
            "Something different: taxes",
        ],
        [
            "另外一只猫",
            "先不要改",
            "it reminds me of cats",
            "put the cats aside",
            "enough of cats",
            "something else about cats",
            "something unrelatedly odd",
        ],
    ),
}
SHOWN = [(flag, text) for flag, (shown, _) in (*FLAGS.items(), *FURTHER.items()) for text in shown]
ABSENT = [(flag, text) for flag, (_, absent) in (*FLAGS.items(), *FURTHER.items()) for text in absent]


@pytest.mark.parametrize(("flag", "text"), SHOWN)
def test_the_form_shows(flag: str, text: str) -> None:
    assert getattr(read_form(text), flag) is True


@pytest.mark.parametrize(("flag", "text"), ABSENT)
def test_the_form_does_not_show(flag: str, text: str) -> None:
    assert getattr(read_form(text), flag) is False


@pytest.mark.parametrize(
    "query", ["这个方案", "那个方案", "它", "这", "那", "继续", "然后呢", "还有呢", "看上面", "刚才说", "请展开"]
)
def test_the_documented_words_are_deictic(query: str) -> None:
    assert has_deictic(query)
    assert has_deictic(f"  {query}\n")


@pytest.mark.parametrize("query", ["", "   ", "缓存穿透", "redis lock", "thistle", "bitten"])
def test_other_queries_are_not_deictic(query: str) -> None:
    assert not has_deictic(query)


@pytest.mark.parametrize("query", FURTHER["chooses"][0])
def test_a_choice_between_things_that_were_named_points_back(query: str) -> None:
    assert read_form(query).points_back


@pytest.mark.parametrize("query", ["这周末天气", "那 redis", "that reminds me", "this week", "it's my turn"])
def test_what_only_looks_like_pointing_stays_in_the_documented_list(query: str) -> None:
    assert has_deictic(query)
    assert not read_form(query).is_deictic


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("这周末它开吗", "它开吗"),
        ("那 redis 呢，继续", "继续"),
        ("it's raining, is that bad", "is that bad"),
        ("is it on this week", "it"),
    ],
)
def test_beside_a_date_a_pointing_word_still_points(query: str, rest: str) -> None:
    assert read_form(query).is_deictic
    assert read_form(rest).is_deictic


def test_the_patterns_of_the_documents_come_first() -> None:
    assert DEICTIC_PATTERNS[:8] == ("^这个", "^那个", "^它", "^这", "^那", "^继续", "^然后呢", "^还有呢")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("redis lock", 2),
        ("don't stop", 2),
        ("缓存", 2),
        ("缓存 redis", 3),
        ("カフェ", 3),
        ("!? …", 0),
        ("a_b", 2),
    ],
)
def test_words_and_cjk_characters_are_counted(text: str, count: int) -> None:
    assert read_form(text).word_count == count


@pytest.mark.parametrize(("length", "is_long"), [(160, False), (161, True)])
def test_a_message_is_long_above_160_characters(length: int, is_long: bool) -> None:
    assert LONG_MESSAGE_CHARS == 160
    assert read_form("x" * length).is_long is is_long


def test_only_the_first_2000_characters_count() -> None:
    assert read_form("x " * 1000 + "?").asks is False
    assert read_form("x " * 999 + "?").asks is True
    assert read_form("x " * 5000).word_count == 1000


def test_letter_case_does_not_matter() -> None:
    assert read_form("BY THE WAY, WHAT ABOUT IT") == read_form("by the way, what about it")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("\ud800 redis", 1),
        ("a\0b", 2),
        ("\u202eשלום\u202c", 1),
        ("👨‍👩‍👧‍👦", 0),
        ("a" * 20_000, 1),
        ("锁" * 20_000, 2000),
        ("?" * 20_000, 0),
        ("'" * 20_000, 0),
        ("h" + "m" * 20_000, 1),
    ],
    ids=["surrogate", "NUL", "right to left", "emoji", "letters", "han", "marks", "quotes", "hmm"],
)
def test_hostile_text_is_read(text: str, count: int) -> None:
    assert read_form(text).word_count == count


@given(st.text(st.characters(), max_size=300))
def test_any_text_has_a_form_that_points_back_only_by_the_deictic_list(text: str) -> None:
    form = read_form(text)
    assert isinstance(form, QueryForm)
    assert has_deictic(text) or not form.is_deictic
    assert 0 <= form.word_count <= len(text)
