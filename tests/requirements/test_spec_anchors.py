"""DESIGN.md 4.1 and SPEC.md 3.1: what counts as an anchor, and for how much."""

from __future__ import annotations

from math import log

import pytest

from context_gatekeeper import extract_anchors
from context_gatekeeper.core.anchor import ANCHOR_PARAMS, fallback_anchor
from tests.requirements.conversations import REDIS_ZH, stage, talk


@pytest.mark.requirement("R-D4.1-english-terms", "R-S3.1-english-words")
@pytest.mark.parametrize("word", ["redis", "asyncio", "postgresql"])
def test_an_english_term_is_a_whole_word_in_lower_case(word: str) -> None:
    assert word in extract_anchors(f"why does {word.upper()} block here")
    assert word in extract_anchors(f"用{word}做消息队列")
    assert word[:-1] not in extract_anchors(f"why does {word} block here")


@pytest.mark.requirement("R-D4.1-identifiers", "R-S3.1-code-versions-phrases")
@pytest.mark.parametrize(
    ("text", "anchor"),
    [
        ("call parseHttpHeader() twice", "parsehttpheader"),
        ("the field user_account_id is null", "user_account_id"),
        ("look at src/app/main.py", "src/app/main.py"),
        ("in os.path.join we trust", "os.path.join"),
        ("is C++ faster", "c++"),
    ],
)
def test_a_code_identifier_is_an_anchor_as_a_whole(text: str, anchor: str) -> None:
    assert anchor in extract_anchors(text)


@pytest.mark.requirement("R-D4.1-identifiers", "R-S3.1-code-versions-phrases")
def test_a_version_is_an_anchor_as_a_whole_and_by_its_major_part() -> None:
    anchors = extract_anchors("upgrade from v1.2.3 to 2.0.1")
    assert {"v1.2.3", "v1", "2.0.1"} <= set(anchors)


@pytest.mark.requirement("R-D4.1-chinese-ngrams", "R-S3.1-chinese-ngrams")
def test_chinese_gives_every_2_gram_and_3_gram_of_a_run() -> None:
    assert set(extract_anchors("分布式锁")) == {"分布", "布式", "式锁", "分布式", "布式锁"}


@pytest.mark.requirement("R-D4.1-chinese-ngrams")
@pytest.mark.parametrize("phrase", ["分布式锁", "跨进程通信"])
def test_the_documents_own_phrases_are_covered_by_their_parts(phrase: str) -> None:
    anchors = extract_anchors(f"请问{phrase}怎么做")
    assert all(phrase[at : at + 2] in anchors for at in range(len(phrase) - 1))


@pytest.mark.requirement("R-D4.1-quoted-phrases", "R-S3.1-code-versions-phrases")
@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ('what is "eventual consistency" good for', "eventual consistency"),
        ("what is 'eventual consistency' good for", "eventual consistency"),
        ("what is `SET NX` good for", "set nx"),
        ("“最终一致性模型”是什么", "最终一致性模型"),
        ('请问"最终一致性模型"是什么', "最终一致性模型"),
        ("请问'最终一致性模型'是什么", "最终一致性模型"),
        ('이것은 "최종 일관성 모델"입니다', "최종 일관성 모델"),
        ('比较"最终一致性模型"和"强一致性模型"吧', "强一致性模型"),
    ],
)
def test_a_quoted_phrase_is_an_anchor_as_a_whole(text: str, phrase: str) -> None:
    assert phrase in extract_anchors(text)


@pytest.mark.requirement("R-D4.1-quoted-phrases")
def test_an_apostrophe_opens_no_phrase() -> None:
    assert not [anchor for anchor in extract_anchors("it's what they don't tell you about locks") if " " in anchor]
    assert not [anchor for anchor in extract_anchors('a 5" disk in a 3" slot') if " " in anchor]


@pytest.mark.requirement("R-D4.1-idf-formula", "R-D8-anchor-ranges")
@pytest.mark.parametrize(("frequency", "count"), [(0, 0), (0, 10), (3, 10), (10, 10), (25, 100)])
def test_idf_is_the_smoothed_logarithm_of_the_document(frequency: int, count: int) -> None:
    anchors = extract_anchors("redis", lambda _: frequency, count)
    assert anchors["redis"] == pytest.approx(log((count + 1) / (frequency + 1)) + 1)


@pytest.mark.requirement("R-D4.1-idf-corpus", "R-S3.1-common-words-lose-weight")
def test_a_term_of_many_blocks_weighs_less_than_one_of_few() -> None:
    gatekeeper = talk([(f"redis note {number}", "kept") for number in range(9)], [("redis and zebrafish", "kept")])
    weights = gatekeeper.explain("redis zebrafish").anchor_weights
    assert weights["redis"] < weights["zebrafish"]


@pytest.mark.requirement("R-D4.1-idf-floor")
def test_ngrams_under_an_idf_of_1_5_are_no_anchors() -> None:
    assert ANCHOR_PARAMS.idf_floor == 1.5
    common = {"分布": 70, "布式": 60, "分布式": 59}
    anchors = extract_anchors("分布式", lambda term: common[term], 100)
    assert log(101 / 71) + 1 < 1.5 < log(101 / 61) + 1 < log(101 / 60) + 1
    assert set(anchors) == {"布式", "分布式"}


@pytest.mark.requirement("R-D4.1-idf-floor")
def test_the_floor_spares_words_and_identifiers() -> None:
    assert "redis" in extract_anchors("redis", lambda _: 100, 100)


@pytest.mark.requirement("R-D4.1-output-format")
def test_anchors_are_a_dict_of_text_to_idf() -> None:
    anchors = extract_anchors("redis 分布式锁 v1.2.3")
    assert isinstance(anchors, dict)
    assert anchors
    assert all(isinstance(name, str) and isinstance(idf, float) for name, idf in anchors.items())


@pytest.mark.requirement("R-S2-block-fields")
def test_a_block_has_the_fields_of_the_document() -> None:
    block = next(talk(REDIS_ZH).blocks())
    assert (block.turn_id, block.user_text, block.assistant_text) == (0, *REDIS_ZH[0])
    assert block.tokens_user > 0
    assert block.tokens_assistant > 0
    assert {"redis", "分布", "分布式"} <= set(block.anchors)


@pytest.mark.requirement("R-D7-fallback-anchor")
def test_a_query_without_anchors_is_looked_for_by_its_first_20_characters() -> None:
    query = "?!" * 20
    assert extract_anchors(query) == {}
    assert fallback_anchor(query) == query[:20]
    gatekeeper = talk([("he wrote " + "?!" * 10 + " to me", "odd"), ("nothing", "here"), ("or", "here")])
    assert stage(gatekeeper, query, "recall")["kept"] == [0]
    assert 0 in [block["turn_id"] for block in gatekeeper.select(query)]
