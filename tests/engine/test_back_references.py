"""What a text points back at: handles that are meant as such, and the past."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.block_handles import BlockMention
from context_gatekeeper.core.handles import HandleMention, RangeUnit
from context_gatekeeper.engine.back_references import named_pages, own_words, past_sentences

HANDLE = "page:" + "b3" * 8


def written(text: str) -> list[str]:
    return [one.written for one in named_pages(text)]


# -- our own text -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("before <recalled-abcd1234>x p9</recalled-abcd1234> after", "before  after"),
        ("a<recalled-aaaaaaaa>1</recalled-aaaaaaaa>b<recalled-bbbbbbbb>2</recalled-bbbbbbbb>c", "abc"),
        ("<recalled-aaaaaaaa>1</recalled-bbbbbbbb>2<recalled-cccccccc></recalled-aaaaaaaa>c", "c"),
        ("one\n[out: p1 p4-p9]\ntwo", "one\n\ntwo"),
        ("  [= p45#L12-60]", ""),
        ("head [Bash, 900 lines; whole text: page:abc] tail", "head  tail"),
        ("[lines 3 to 9 left out: p4#L3-9]", ""),
    ],
)
def test_what_we_put_into_a_window_is_left_out(text: str, own: str) -> None:
    assert own_words(text) == own


@pytest.mark.parametrize(
    "text", ["<recalled-abcd1234> never closed", "</recalled-abcd1234> never opened", "[outer: x]", "[note: p4]"]
)
def test_what_only_looks_like_ours_stays(text: str) -> None:
    assert own_words(text) == text


@given(st.lists(st.sampled_from(["<recalled-aaaaaaaa>", "</recalled-aaaaaaaa>", "[out: p1]", "\n", "x", "[= p2]"])))
def test_own_words_are_part_of_the_text(parts: list[str]) -> None:
    assert len(own_words("".join(parts))) <= len("".join(parts))


# -- handles ----------------------------------------------------------------------------------------


def test_handles_stand_in_the_order_of_the_text_each_once() -> None:
    text = f"p12-p20, then {HANDLE}#L1-3, p40#C5-9, then p12-p20 and {HANDLE}"
    assert written(text) == ["p12-p20", f"{HANDLE}#L1-3", "p40#C5-9", HANDLE]
    first, second, third, _ = named_pages(text)
    assert first.mention == BlockMention(12, 20)
    assert isinstance(second.mention, HandleMention)
    assert third.mention == BlockMention(40, 40, RangeUnit.CHARACTERS, 5, 9)


@pytest.mark.parametrize(
    "text",
    [
        "what was in p12?",
        "p12 里的报错是什么",
        "展开p12",
        "p12",
        "`p12`",
        "look at [p12] again",
        "expand p12, please",
        "x = 3; see p12",
        '{"handle": "p12"}\nopen "p12"',
    ],
)
def test_a_short_handle_in_prose_counts(text: str) -> None:
    assert written(text) == ["p12"]


@pytest.mark.parametrize(
    ("text", "handles"),
    [
        ("expand p1, p2 and p3", ["p1", "p2", "p3"]),
        ("打开 p1、p2", ["p1", "p2"]),
        ("read p95", ["p95"]),
        ("[p0]", ["p0"]),
        ("页 p3", ["p3"]),
    ],
)
def test_a_usual_number_counts_where_a_page_is_meant(text: str, handles: list[str]) -> None:
    assert written(text) == handles


@pytest.mark.parametrize(
    "text",
    [
        "p95 latency is 20 ms, p99 is 80",
        "a p0 bug and two p1 issues",
        "regression in p50",
        "p12 = p13 + 1",
        "result = join(p12, p13)",
        "    return p12",
        "```\np12 p13\n```",
        "http2, mp3, p2p, p12x, op12, path/p12, a.p12, p12.x, --p12",
        "p20-p12",
        "p12#L9-3",
        "p1234567890",
    ],
)
def test_a_word_that_only_looks_like_a_handle_is_none(text: str) -> None:
    assert written(text) == []


def test_one_in_a_fence_counts_only_beside_a_word_for_it() -> None:
    assert written("```\nsome p12 here\n```\nsome p13 here") == ["p13"]


# -- the past ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sentence",
    [
        "之前的方案用的是哪个库？",
        "刚才那个报错再看一下。",
        "剛剛說的那個函數",
        "上次跑测试失败了",
        "前面提到的配置",
        "回到登录超时的问题",
        "上一轮的结果",
        "What did we decide earlier about retries?",
        "Use the same flags as last time.",
        "The previous run failed.",
        "As you said before, it leaks.",
        "We already fixed this.",
        "さっきのエラーは？",
    ],
)
def test_a_sentence_on_the_past_is_found(sentence: str) -> None:
    assert past_sentences(sentence) == (sentence,)


@pytest.mark.parametrize(
    "sentence",
    [
        "继续",
        "它为什么会失败？",
        "Write a test for the parser.",
        "Why does it fail?",
        "before = time(); after = time()",
        "> we said so earlier",
        "```\n# as before\n```",
        f"we said earlier that {'it is long and ' * 40}",
    ],
)
def test_other_sentences_code_and_quotes_are_not(sentence: str) -> None:
    assert past_sentences(sentence) == ()


def test_of_several_sentences_only_those_on_the_past_are_told() -> None:
    assert past_sentences("Run the tests. Use the flags from last time. Then push.") == (
        "Use the flags from last time.",
    )


def test_of_a_long_text_the_ends_are_read() -> None:
    middle = "A plain sentence. " * 500
    text = f"Like last time. {middle} Like before, in the middle. {middle} 和上次一样。"
    assert past_sentences(text) == ("Like last time.", "和上次一样。")
