"""DESIGN.md 4.2 and SPEC.md 3.2: continue or switch."""

from __future__ import annotations

import re

import pytest

from context_gatekeeper import ContextGatekeeper
from context_gatekeeper.core.background import simplify_han
from context_gatekeeper.core.topic_gate import (
    DEICTIC_PATTERNS,
    NEW_RATIO_SWITCH_THRESHOLD,
    OVERLAP_CONTINUE_THRESHOLD,
    OVERLAP_SWITCH_THRESHOLD,
)
from context_gatekeeper.types import TopicMove
from tests.requirements.conversations import LOCK_EN, REDIS_ZH, TOFU_ZH, stage, talk, turn_ids


@pytest.mark.requirement("R-D4.2-thresholds", "R-S3.2-rules")
def test_the_thresholds_are_those_of_the_documents() -> None:
    assert (OVERLAP_CONTINUE_THRESHOLD, OVERLAP_SWITCH_THRESHOLD, NEW_RATIO_SWITCH_THRESHOLD) == (0.45, 0.20, 0.70)


@pytest.mark.requirement("R-D4.2-overlap-formula", "R-D4.2-new-ratio-formula", "R-D2-ratio-names")
def test_the_two_ratios_share_the_querys_weight() -> None:
    verdict = talk(LOCK_EN).explain("What expiry has the lock of zebrafish?").verdict
    assert 0.0 < verdict.anchor_overlap_ratio < 1.0
    assert verdict.anchor_overlap_ratio + verdict.new_token_ratio == pytest.approx(1.0)


@pytest.mark.requirement("R-D4.2-overlap-formula")
def test_overlap_is_1_for_a_question_asked_before_and_0_for_one_of_new_words() -> None:
    gatekeeper = talk(LOCK_EN)
    assert gatekeeper.explain("the Redis lock").verdict.anchor_overlap_ratio == pytest.approx(1.0)
    assert gatekeeper.explain("quaternion zebrafish").verdict.anchor_overlap_ratio == 0.0
    assert gatekeeper.explain("quaternion zebrafish").verdict.new_token_ratio == pytest.approx(1.0)


@pytest.mark.requirement("R-D4.2-overlap-formula")
def test_overlap_weighs_anchors_by_idf_not_by_number() -> None:
    """One frequent word known of two: its share is under a half, since the unseen one is rarer."""
    gatekeeper = talk([(f"redis note {number}", "kept") for number in range(12)])
    assert 0.0 < gatekeeper.explain("redis zebrafish").verdict.anchor_overlap_ratio < 0.5


@pytest.mark.requirement("R-D4.2-continue", "R-S3.2-rules", "R-D8-gate-triples")
@pytest.mark.parametrize(
    ("history", "query"),
    [
        (REDIS_ZH, "Redis 分布式锁怎么释放？"),
        (LOCK_EN, "Which expiry should the lock have?"),
        (LOCK_EN, "release the Redis lock"),
    ],
)
def test_an_overlap_above_0_45_continues(history: tuple[tuple[str, str], ...], query: str) -> None:
    verdict = talk(history).explain(query).verdict
    assert verdict.anchor_overlap_ratio > 0.45
    assert verdict.move is TopicMove.CONTINUE


@pytest.mark.requirement("R-D4.2-continue", "R-S3.2-rules")
def test_an_overlap_above_0_45_continues_whatever_else_speaks_for_a_switch() -> None:
    """A good-bye before it, a new day and a greeting: together they would make a switch."""
    gatekeeper = ContextGatekeeper()
    for user_text, assistant_text in (*LOCK_EN, ("Thanks, that is all, bye!", "Bye.")):
        gatekeeper.add_turn(user_text, assistant_text, time=1_700_000_000)
    greeted, next_day = "Hello! Is there {} for the watchdog?", 1_700_100_000
    known = gatekeeper.explain(greeted.format("a random token"), time=next_day).verdict
    assert known.anchor_overlap_ratio > 0.45
    assert known.move is TopicMove.CONTINUE
    unknown = gatekeeper.explain(greeted.format("zebrafish, obsidian or marzipan"), time=next_day).verdict
    assert unknown.anchor_overlap_ratio < 0.45
    assert unknown.move is TopicMove.SWITCH


PLAIN_SWITCHES = [
    (REDIS_ZH, "川菜里的麻婆豆腐怎么做？"),
    (REDIS_ZH, "推荐几部科幻电影"),
    (REDIS_ZH, "量子纠缠是什么意思？"),
    (REDIS_ZH, "如何挑选一把小提琴？"),
    (REDIS_ZH, "How do I bake sourdough bread?"),
    (LOCK_EN, "How do I bake sourdough bread?"),
    (LOCK_EN, "What is the weather in Paris tomorrow?"),
    (LOCK_EN, "麻婆豆腐怎么做"),
    (REDIS_ZH, "小猫的疫苗应该怎么打？"),
]


@pytest.mark.requirement("R-D4.2-switch", "R-S3.2-rules", "R-S5.2-switched-topic-not-recalled", "R-D8-gate-triples")
@pytest.mark.parametrize(("history", "query"), PLAIN_SWITCHES)
def test_a_question_of_new_words_only_switches_and_gets_nothing_of_the_old_topic(
    history: tuple[tuple[str, str], ...], query: str
) -> None:
    decision = talk(history).explain(query)
    assert decision.verdict.anchor_overlap_ratio < 0.20
    assert decision.verdict.new_token_ratio > 0.70
    assert decision.verdict.move is TopicMove.SWITCH
    assert decision.blocks == ()


@pytest.mark.requirement("R-S5.2-switched-topic-not-recalled")
@pytest.mark.parametrize(
    ("history", "query"),
    [
        (LOCK_EN, "By the way, which watchdog barks least?"),
        (LOCK_EN, "Different question: a token for the tram?"),
        (REDIS_ZH, "换个话题，看门狗怎么训练？"),
    ],
)
def test_a_new_topic_gets_nothing_of_the_old_one_even_where_they_share_a_word(
    history: tuple[tuple[str, str], ...], query: str
) -> None:
    gatekeeper = talk(history)
    assert stage(gatekeeper, query, "recall")["kept"], "an older block holds one of the words"
    decision = gatekeeper.explain(query)
    assert (decision.verdict.move, decision.topic, decision.blocks) == (TopicMove.SWITCH, "new", ())


KNOWN_MISSES = [
    (REDIS_ZH, "明天上海的天气怎么样？"),
    (LOCK_EN, "Recommend a science fiction movie"),
]


@pytest.mark.xfail(reason="bare questions of everyday words continue (decision note 0003)", strict=True)
@pytest.mark.requirement("R-D4.2-switch")
@pytest.mark.parametrize(("history", "query"), KNOWN_MISSES)
def test_a_bare_question_of_everyday_words_switches_too(history: tuple[tuple[str, str], ...], query: str) -> None:
    assert talk(history).explain(query).verdict.move is TopicMove.SWITCH


DOCUMENTED_DEICTICS = ["这个怎么配", "那个呢", "它的原理", "这样行吗", "那怎么办", "继续", "然后呢", "还有呢"]
SPEC_DEICTICS = ["这个怎么配", "那个呢", "它的原理", "上面那条再讲讲", "请把刚才那段说完", "请继续", "再展开一下"]


@pytest.mark.requirement("R-D4.2-deictic-patterns")
@pytest.mark.parametrize("pattern", ["^这个", "^那个", "^它", "^这", "^那", "^继续", "^然后呢", "^还有呢"])
def test_every_documented_pattern_stands_in_the_one_list(pattern: str) -> None:
    assert pattern in DEICTIC_PATTERNS


@pytest.mark.requirement("R-S3.2-deictic-words")
@pytest.mark.parametrize("word", ["这个", "那个", "它", "上面", "刚才", "继续", "展开"])
def test_every_word_of_the_second_document_is_in_the_list_for_any_place(word: str) -> None:
    assert any(re.search(pattern, f"请问{word}") for pattern in DEICTIC_PATTERNS)


@pytest.mark.requirement(
    "R-D4.2-deictic-continue", "R-S3.2-deictic-words", "R-S5.3-deictic-inherits", "R-D8-gate-triples"
)
@pytest.mark.parametrize("query", [*DOCUMENTED_DEICTICS, *SPEC_DEICTICS])
def test_a_deictic_query_continues_and_inherits_the_last_one_or_two_blocks(query: str) -> None:
    gatekeeper = talk(REDIS_ZH, TOFU_ZH)
    verdict = gatekeeper.explain(query).verdict
    assert verdict.move is TopicMove.CONTINUE
    assert verdict.is_deictic
    assert turn_ids(gatekeeper, query) in ([4], [3, 4])


@pytest.mark.requirement("R-I2-deictic-languages")
@pytest.mark.parametrize(
    "query", ["why?", "go on", "繼續", "這個再詳細一點", "もっと詳しく", "계속해 주세요", "それはなぜですか"]
)
def test_deictic_queries_of_other_languages_continue_too(query: str) -> None:
    gatekeeper = talk(LOCK_EN)
    assert gatekeeper.explain(query).verdict.move is TopicMove.CONTINUE
    assert 2 in turn_ids(gatekeeper, query)


@pytest.mark.requirement("R-D6-patterns-with-detection")
@pytest.mark.parametrize(
    "query",
    ["why?", "繼續", "もっと詳しく", "계속해 주세요", "那它呢", "再讲讲第二点", "lock expiry", "锁的过期时间", "bread"],
)
def test_a_query_is_deictic_by_the_one_list_and_by_nothing_else(query: str) -> None:
    plain = simplify_han(query)
    verdict = talk(LOCK_EN).explain(query).verdict
    assert verdict.is_deictic == any(re.search(pattern, plain) for pattern in DEICTIC_PATTERNS)


@pytest.mark.requirement("R-D4.2-else-continue", "R-D8-gate-triples")
def test_the_middle_ground_continues() -> None:
    verdict = talk(LOCK_EN).explain("Should the watchdog of the payment gateway page an engineer at night?").verdict
    assert 0.20 <= verdict.anchor_overlap_ratio <= 0.45
    assert verdict.move is TopicMove.CONTINUE


@pytest.mark.requirement("R-S3.2-output")
def test_the_gate_knows_two_answers_and_says_why() -> None:
    assert {move.value for move in TopicMove} == {"continue", "switch"}
    for query in ("继续", "How do I bake bread?"):
        verdict = talk(REDIS_ZH).explain(query).to_dict()["verdict"]
        assert verdict["move"] in ("continue", "switch")
        assert verdict["reason"]


@pytest.mark.requirement("R-D4.2-no-history")
def test_without_history_there_is_nothing_to_leave() -> None:
    decision = ContextGatekeeper().explain("Redis 分布式锁怎么实现？")
    assert decision.verdict.move is TopicMove.CONTINUE
    assert decision.topic == "none"
    assert decision.blocks == ()


@pytest.mark.requirement("R-D4.2-gate-moves")
def test_select_never_moves_the_gate_and_add_turn_does() -> None:
    gatekeeper = talk(REDIS_ZH)
    before = gatekeeper.explain("麻婆豆腐用哪种豆瓣酱？").to_dict()
    for query in ("换个话题，麻婆豆腐怎么做？", "继续", "How do I bake bread?"):
        gatekeeper.select(query)
    assert gatekeeper.explain("麻婆豆腐用哪种豆瓣酱？").to_dict() == before
    gatekeeper.add_turn(*TOFU_ZH[0])
    after = gatekeeper.explain("麻婆豆腐用哪种豆瓣酱？")
    assert after.verdict.move is TopicMove.CONTINUE
    assert after.verdict.anchor_overlap_ratio > 0.45


@pytest.mark.requirement("R-I2-time")
def test_a_new_day_speaks_for_a_switch_the_same_day_against_it_and_neither_decides_alone() -> None:
    gatekeeper = ContextGatekeeper()
    for user_text, assistant_text in LOCK_EN:
        gatekeeper.add_turn(user_text, assistant_text, time=1_700_000_000)
    query = "Could zebrafish or obsidian help us there?"
    same_day, unknown, next_day = (
        gatekeeper.explain(query, time=time).verdict.points for time in (1_700_000_100, None, 1_700_100_000)
    )
    assert same_day < unknown < next_day
    assert gatekeeper.explain("the Redis lock", time=1_700_100_000).verdict.move is TopicMove.CONTINUE


@pytest.mark.requirement("R-I2-topic-table")
def test_the_talk_can_return_to_a_topic_it_left() -> None:
    gatekeeper = talk(REDIS_ZH, TOFU_ZH)
    decision = gatekeeper.explain("Redis 分布式锁的过期时间是多少？")
    assert decision.topic == "known"
    assert decision.verdict.move is TopicMove.SWITCH
    assert 1 in [block["turn_id"] for block in decision.blocks]
    assert not {3, 4} & {block["turn_id"] for block in decision.blocks}
