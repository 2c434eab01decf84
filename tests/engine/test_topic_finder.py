"""Where a query belongs: the run, a topic named before, a stretch resumed, nothing known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from context_gatekeeper.core.topic_gate import NamedRoot
from context_gatekeeper.core.weights import is_content
from context_gatekeeper.engine import topic_finder
from context_gatekeeper.engine.query import read_query
from context_gatekeeper.engine.topic_finder import CLEAR_POINTS
from context_gatekeeper.stores import open_store
from context_gatekeeper.types import TopicMove
from tests.engine.talks import (
    APPLES,
    DAY,
    NGINX,
    TRIP,
    Stretch,
    Talk,
    allowed_turns,
    crossed_talk,
    listed,
    rides,
    sights,
)


@pytest.fixture(params=["memory", "sqlite"])
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    opened = open_store(None if request.param == "memory" else tmp_path / "pool.sqlite")
    yield Talk(opened)
    opened.close()


def test_without_history_there_is_no_topic(talk: Talk) -> None:
    finding = talk.find("How do I prune an apple tree?")
    assert (finding.place.topic, finding.place.reason, listed(finding)) == ("none", "no history", [])
    assert finding.evidence.turn_count == 0


def test_a_query_that_points_back_belongs_to_the_run(talk: Talk) -> None:
    finding = talk.fill().find("Explain that again")
    assert (finding.place.topic, finding.verdict.move, finding.verdict.is_deictic) == (
        "running",
        TopicMove.CONTINUE,
        True,
    )
    assert listed(finding) == [3, 4]
    assert finding.place.names == finding.place.roots == frozenset()


def test_a_query_that_names_the_running_topic_goes_on_with_it(talk: Talk) -> None:
    finding = talk.fill().find("Which nginx directive sets the timeout?")
    assert (finding.place.topic, finding.verdict.move) == ("running", TopicMove.CONTINUE)
    assert finding.place.roots == {"nginx"}
    assert "nginx" in finding.place.names
    assert listed(finding) == [3, 4]
    assert 2 not in finding.place.allowed


def test_a_query_that_names_an_older_topic_returns_to_its_turns(talk: Talk) -> None:
    finding = talk.fill().find("How do I prune an apple tree?")
    assert (finding.place.topic, finding.verdict.move) == ("known", TopicMove.SWITCH)
    assert finding.place.roots == {"appl"}
    assert listed(finding) == [0, 1, 2]
    for no_turn in (3, "0", None):
        assert no_turn not in finding.place.allowed


def test_a_query_about_something_said_returns_to_the_stretch_that_holds_it(talk: Talk) -> None:
    finding = talk.fill().find("What did you say about frost earlier?")
    assert (finding.place.topic, finding.place.reason) == ("known", "returns to turns 0-2")
    assert listed(finding) == [0, 1, 2]


def test_a_query_of_which_nothing_was_seen_is_new(talk: Talk) -> None:
    finding = talk.fill().find("By the way, how long does sourdough ferment?")
    assert (finding.place.topic, finding.verdict.move) == ("new", TopicMove.SWITCH)
    assert listed(finding) == []


def test_the_two_ratios_share_out_the_weight_of_the_query(talk: Talk) -> None:
    talk.fill()
    for query in ("Which nginx header?", "nginx sourdough", "How does sourdough ferment?"):
        evidence = talk.find(query).evidence
        assert evidence.anchor_overlap_ratio + evidence.new_token_ratio == pytest.approx(1.0)
    assert talk.find("nginx header").evidence.anchor_overlap_ratio == pytest.approx(1.0)
    assert talk.find("sourdough").evidence.anchor_overlap_ratio == 0.0
    blank = talk.find("").evidence
    assert (blank.anchor_overlap_ratio, blank.new_token_ratio, blank.anchor_count) == (0.0, 0.0, 0)


def test_what_was_said_before_the_run_is_no_active_anchor(talk: Talk) -> None:
    evidence = talk.fill().find("apple branches").evidence
    assert (evidence.anchor_overlap_ratio, evidence.run_overlap_ratio, evidence.shares_content) == (0.0, 0.0, False)
    assert evidence.older_match > 0.9


def test_only_the_last_three_turns_of_the_run_are_active(talk: Talk) -> None:
    talk.session.add_turn("Tell me about kingfishers", "They dive.", None, (None, None))
    for _ in range(3):
        talk.session.add_turn("And?", "Well.", None, (None, None), known_move=TopicMove.CONTINUE)
    evidence = talk.find("kingfishers").evidence
    assert evidence.anchor_overlap_ratio == 0.0
    assert evidence.run_overlap_ratio == pytest.approx(1.0)


def test_the_evidence_knows_the_day_the_script_and_the_last_answer(talk: Talk) -> None:
    talk.fill()
    assert talk.find("nginx", 2 * DAY).evidence.is_new_day is True
    assert talk.find("nginx", DAY + 1).evidence.is_new_day is False
    assert talk.find("nginx").evidence.is_new_day is None
    assert talk.find("反向代理怎么配置？").evidence.changes_script
    assert not talk.find("nginx").evidence.changes_script
    assert talk.find("nginx").evidence.is_answered
    talk.session.add_turn("nginx again?", "", None, (None, None))
    assert not talk.find("nginx").evidence.is_answered


def test_finding_a_topic_changes_nothing(talk: Talk) -> None:
    talk.fill()
    for query in ("Explain that again", "How do I prune an apple tree?", "sourdough"):
        first, second = talk.find(query), talk.find(query)
        assert (first.verdict, first.evidence, listed(first)) == (
            second.verdict,
            second.evidence,
            listed(second),
        )
    assert (talk.session.tracker.turn_count, list(talk.session.tracker.segment_starts)) == (5, [0, 3])


# -- topics that were touched, stretches that are resumed ------------------------------------

SOURDOUGH: Stretch = (("Which sourdough flour is best?", "Strong wheat, sold by mills."),)
MARZIPAN: Stretch = (("Which marzipan is best?", "One of almonds."),)
APPLES_ZH: Stretch = (
    ("苹果树怎么修剪？", "冬末修剪苹果树，先去掉枯枝。"),
    ("苹果树什么时候开花？", "四月下旬开花，霜冻会伤花。"),
)
NGINX_ZH: Stretch = (
    ("nginx 反向代理怎么配置？", "在 location 里写 proxy_pass。"),
    ("nginx 超时怎么设？", "用 proxy_read_timeout。"),
)
BREAD_ZH: Stretch = (("酸面包用什么面粉？", "高筋小麦粉，磨坊有卖。"),)
KEEPING = "By the way, how long does a loaf of sourdough keep in a linen bag on the kitchen shelf?"
RARE = ("kingfisher", "obsidian", "trombone", "lighthouse", "saffron", "walrus", "tamarind", "bobsled", "quartz")


def answered(words: tuple[str, ...]) -> Stretch:
    """A stretch in which only the answer holds ``words``."""
    return (("And what else?", f"The {' and the '.join(words)}."),)


@pytest.mark.parametrize(
    ("stretches", "query", "turns", "name"),
    [
        ((APPLES, SOURDOUGH, NGINX), KEEPING, [3], "sourdough"),
        ((APPLES_ZH, BREAD_ZH, NGINX_ZH), "对了，酸面包放在亚麻布袋里在厨房架子上能保存多久？", [2], "酸面包"),
    ],
    ids=["en", "zh"],
)
def test_a_topic_touched_once_is_found_at_its_second_mention(
    talk: Talk, stretches: tuple[Stretch, ...], query: str, turns: list[int], name: str
) -> None:
    finding = talk.hear(*stretches).find(query)
    assert finding.evidence.older_match < 0.4
    assert (finding.place.topic, finding.place.roots) == ("known", frozenset())
    assert finding.place.reason.startswith("asked about ")
    assert name in finding.place.names
    assert allowed_turns(talk, finding) == turns


@pytest.mark.parametrize(
    ("stretches", "query"),
    [
        ((APPLES, SOURDOUGH, NGINX), "By the way, do mills deliver linen bags to kitchen shelves?"),
        ((APPLES_ZH, BREAD_ZH, NGINX_ZH), "对了，磨坊送亚麻布袋到厨房架子吗？"),
    ],
    ids=["en", "zh"],
)
def test_a_word_of_the_answer_alone_was_not_asked_about(talk: Talk, stretches: tuple[Stretch, ...], query: str) -> None:
    finding = talk.hear(*stretches).find(query)
    assert finding.evidence.older_match > 0.0
    assert (finding.place.topic, allowed_turns(talk, finding)) == ("new", [])


def test_stretches_that_hold_alike_of_what_was_asked_are_united(talk: Talk) -> None:
    talk.hear(APPLES, SOURDOUGH, NGINX, MARZIPAN, NGINX)
    finding = talk.find("By the way, how do bakers pair sourdough with marzipan on a kitchen shelf in linen bags?")
    assert finding.place.reason == "asked about marzipan, sourdough"
    assert finding.place.names == {"marzipan", "sourdough"}
    assert allowed_turns(talk, finding) == [3, 6]


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (0, "asked about sourdough"),
        (1, "nothing older is like it"),
    ],
    ids=["short", "long"],
)
def test_a_touched_topic_is_found_again_in_a_short_stretch_only(talk: Talk, extra: int, reason: str) -> None:
    details = ("hydration", "salt", "ovens", "steam", "crusts", "crumbs", "scoring", "shaping", "baskets", "malt")
    asides = tuple((f"And what of {word}?", f"Mind the {word}.") for word in details)
    stretch = (*SOURDOUGH, *asides[: topic_finder.TOUCHED_TURNS - 1 + extra])
    assert len(stretch) == topic_finder.TOUCHED_TURNS + extra
    assert talk.hear(APPLES, stretch, NGINX).find(KEEPING).place.reason == reason


@pytest.mark.parametrize(
    ("word", "beside", "weight", "is_found"),
    [
        ("garden", 2, 0.264, False),
        ("weather", 2, 0.319, True),
        ("weather", 7, 0.319, True),
        ("weather", 8, 0.319, False),
    ],
    ids=["light", "heavy enough", "a good part", "a small part"],
)
def test_a_touched_word_must_be_telling_itself_and_beside_the_rest_of_the_query(
    talk: Talk, word: str, beside: int, weight: float, is_found: bool
) -> None:
    """At least 0.3 of base weight, and a twenty-fifth of the query's; each rare word beside it weighs 1."""
    talk.hear(APPLES, ((f"And the {word}?", "Fine."),), NGINX)
    query = f"By the way, {word} {' '.join(RARE[:beside])}"
    base = read_query(query, talk.pool.postings, talk.session.tracker).base
    content = sum(own for term, own in base.items() if is_content(term))
    assert (base[word], content) == pytest.approx((weight, weight + beside), abs=0.01)
    place = talk.find(query).place
    assert place.reason == (f"asked about {word}" if is_found else "nothing older is like it")


def test_a_word_that_the_run_was_asked_about_too_does_not_stand_out(talk: Talk) -> None:
    talk.hear(APPLES, SOURDOUGH, (*NGINX, ("Does sourdough matter?", "No."), *NGINX, *NGINX))
    finding = talk.find(KEEPING)
    assert (finding.place.topic, finding.evidence.shares_content) == ("new", False)


def test_a_switch_that_is_not_clear_is_no_return_to_a_touched_word(talk: Talk) -> None:
    """Clear or not depends on the fitted table, so many queries are tried; with a cue each of them is clear."""
    talk.hear(APPLES, SOURDOUGH, NGINX)
    known, new = "header forwards the client address".split(), "linen bag on the kitchen shelf of grandmother".split()
    clear, unclear = 0, 0
    for asked, time in (
        (f"{lead} {' '.join(known[:most])} keep sourdough {' '.join(new[:more])}?", time)
        for lead in ("Does the", "And the", "Hello! Is the")
        for most in range(6)
        for more in range(1, 9)
        for time in (None, DAY, 2 * DAY)
    ):
        finding = talk.find(asked, time)
        is_touched = finding.place.reason.startswith("asked about ")
        if finding.verdict.move is not TopicMove.SWITCH or finding.place.reason.startswith("returns to"):
            assert not is_touched
        elif finding.verdict.points >= CLEAR_POINTS:
            clear += 1
            assert is_touched, asked
        else:
            unclear += 1
            assert (is_touched, finding.place.topic) == (False, "new"), asked
            assert talk.find(f"By the way, {asked}", time).place.reason.startswith("asked about "), asked
    assert clear
    assert unclear


def test_an_older_name_said_in_passing_leaves_the_run_whole_where_the_gate_clearly_goes_on(talk: Talk) -> None:
    """Where it is not clear, turns of the run that name another topic are left out."""
    talk.hear(APPLES, NGINX)
    known, new = "address client header forwards".split(), "linen bag on the kitchen shelf of grandmother".split()
    clear, unclear = 0, 0
    for asked, time in (
        (f"{lead} {' '.join(known[:most])} on the apple tree {' '.join(new[:more])}{end}", time)
        for lead in ("Does the", "The", "Hello! Is the")
        for most in range(5)
        for more in range(9)
        for end in ("?", ".")
        for time in (None, DAY, 2 * DAY)
    ):
        finding = talk.find(asked, time)
        evidence = finding.evidence
        if finding.verdict.move is TopicMove.SWITCH or evidence.named_root is not NamedRoot.OLDER:
            continue
        assert finding.place.topic == "running"
        if finding.verdict.points <= -CLEAR_POINTS:
            clear += 1
            assert (finding.place.roots, allowed_turns(talk, finding)) == (frozenset(), [3, 4]), asked
        else:
            unclear += 1
            assert (set(finding.place.roots), allowed_turns(talk, finding)) == ({"appl"}, []), asked
    assert clear
    assert unclear


@pytest.mark.parametrize(
    ("second", "topic", "turns"), [(3, "known", [3]), (4, "new", [])], ids=["alone", "beside another"]
)
def test_a_stretch_that_alone_holds_a_good_part_is_resumed(
    talk: Talk, second: int, topic: str, turns: list[int]
) -> None:
    talk.hear(APPLES, answered(RARE[:4]), NGINX, answered(RARE[4 : 4 + second]), NGINX)
    finding = talk.find(f"By the way, {' '.join(RARE)}")
    assert finding.evidence.older_match == pytest.approx(4 / 9)
    assert (finding.place.topic, allowed_turns(talk, finding)) == (topic, turns)
    assert finding.place.reason == ("returns to turns 3-3" if turns else "nothing older is like it")


def test_a_stretch_that_alone_holds_little_is_not_resumed(talk: Talk) -> None:
    finding = talk.hear(APPLES, answered(RARE[:3]), NGINX).find(f"By the way, {' '.join(RARE)}")
    assert finding.evidence.older_match == pytest.approx(3 / 9)
    assert finding.place.topic == "new"


def test_a_question_about_something_said_looks_into_the_stretches_that_hold_as_much_as_the_best(talk: Talk) -> None:
    talk.hear(APPLES, answered(RARE[:2]), NGINX, answered(RARE[2:4]), answered(RARE[:1]), NGINX)
    recap = talk.find(f"By the way, what did we say before: {' '.join(RARE)}")
    assert (recap.place.topic, recap.place.reason) == ("known", "asks about something said")
    assert allowed_turns(talk, recap) == [3, 6]
    assert talk.find(f"By the way, what of these: {' '.join(RARE)}").place.topic == "new"


def test_a_recap_of_the_running_topic_looks_into_its_older_turns_too(talk: Talk) -> None:
    talk.hear(NGINX, APPLES, NGINX, APPLES)
    recap = talk.find("Remind me what you said about the apple tree earlier")
    assert (recap.place.topic, recap.place.roots) == ("running", frozenset({"appl"}))
    assert allowed_turns(talk, recap) == [2, 3, 4, 7, 8, 9]
    assert allowed_turns(talk, talk.find("How tall does an apple tree grow?")) == [7, 8, 9]


@pytest.mark.parametrize(("times", "named"), [(1, NamedRoot.OLDER), (8, NamedRoot.NONE)])
def test_a_name_that_is_minor_beside_the_running_topic_names_none(talk: Talk, times: int, named: NamedRoot) -> None:
    finding = talk.hear(APPLES, NGINX * times).find("By the way, where does the apple come from?")
    assert finding.evidence.named_root is named
    assert finding.place.roots == ({"appl"} if named is NamedRoot.OLDER else frozenset())


def test_the_evidence_tells_how_telling_new_words_are(talk: Talk) -> None:
    talk.fill()
    new = talk.find("sourdough").evidence
    assert talk.find("nginx").evidence.new_background == 0.0 < new.new_background
    assert talk.find("nginx sourdough").evidence.new_background == new.new_background


def test_the_evidence_tells_how_much_of_the_query_the_last_turn_holds(talk: Talk) -> None:
    assert talk.find("reverse").evidence.last_overlap_ratio == 0.0
    talk.fill()
    evidence = talk.find("reverse").evidence
    assert (evidence.anchor_overlap_ratio, evidence.last_overlap_ratio) == (1.0, 0.0), "asked two turns ago"
    evidence = talk.find("forwards reverse").evidence
    assert 0.0 < evidence.last_overlap_ratio < evidence.anchor_overlap_ratio == 1.0
    for said in ("forwards", "X-Forwarded-For"):
        assert talk.find(said).evidence.last_overlap_ratio == pytest.approx(1.0), said


def test_the_evidence_compares_the_length_with_the_last_user_message(talk: Talk) -> None:
    assert talk.find("nginx").evidence.length_ratio == 1.0
    last = talk.fill().session.tracker.turn_count - 1
    size = len(talk.pool.turn(last).user.text)
    assert talk.find("x" * size).evidence.length_ratio == pytest.approx(1.0)
    assert talk.find("x" * (2 * size + 1)).evidence.length_ratio == pytest.approx(2.0)


# -- names that cross topics -------------------------------------------------------------------


def test_a_crossed_name_brings_back_no_topic_unless_the_query_asks_about_something_said(talk: Talk) -> None:
    talk.hear(*crossed_talk(), NGINX)
    place = talk.find("By the way, which rickshaw is for six?").place
    assert (place.reason, place.names, place.roots) == ("returns to turns 13-14", frozenset(), frozenset())
    recap = talk.find("By the way, what did you say about the rickshaw for six earlier?")
    assert (recap.place.reason, recap.place.roots) == ("names 'rickshaw'", {"rickshaw"})
    assert listed(recap) == [3, 4, 8, 9, 13, 14]


def test_a_name_that_crosses_no_topic_is_returned_to(talk: Talk) -> None:
    talk.hear(*(sights(town) + rides(town, town) for town in ("Granada", "Lisbon", "Utrecht")), NGINX)
    finding = talk.find("By the way, which rickshaw is for six?")
    assert finding.place.reason == "names 'rickshaw'"
    assert listed(finding) == [3, 4, 8, 9, 13, 14]


# -- soft switches -----------------------------------------------------------------------------


def asked_on_a_trip(subjects: tuple[str, ...], leads: tuple[str, ...] = ("", "好的，", "好的，谢谢，")) -> list[str]:
    """Many queries, since which switch is soft depends on the fitted tables."""
    tails = ("，价格在五百元以内", "，最好有24小时热水和暖气", "，评分要在4.5分以上", "，有免费停车场", "，早餐丰富")
    return [
        f"{lead}{subject}{''.join(tails[:count])}{end}"
        for lead in leads
        for subject in subjects
        for count in range(len(tails) + 1)
        for end in "。？"
    ]


NEW_SUBJECTS = ("我想找一家酒店住下", "帮我找一家经济型的酒店", "想吃烤肉了，推荐一家餐厅", "我要去蜂巢剧场看话剧")


def test_a_soft_switch_goes_on_with_the_running_talk_and_a_hard_one_leaves_it(talk: Talk) -> None:
    talk.hear(NGINX_ZH, TRIP)
    found = [talk.find(query) for query in asked_on_a_trip(NEW_SUBJECTS)]
    switches = [finding for finding in found if finding.verdict.move is TopicMove.SWITCH]
    for finding in switches:
        if finding.verdict.is_soft:
            assert (finding.place.topic, finding.place.reason) == ("running", "a new subject of the running talk")
            assert allowed_turns(talk, finding) == []
        else:
            assert finding.place.topic == "new"
    assert {finding.verdict.is_soft for finding in switches} == {True, False}
    assert not any(finding.verdict.is_soft for finding in found if finding not in switches)


def test_a_cue_makes_a_soft_switch_hard(talk: Talk) -> None:
    talk.hear(NGINX_ZH, TRIP)
    soft = [query for query in asked_on_a_trip(NEW_SUBJECTS) if talk.find(query).verdict.is_soft]
    assert soft
    for query in soft:
        finding = talk.find(f"换个话题，{query}")
        assert (finding.verdict.is_soft, finding.place.topic) == (False, "new"), query


def test_a_soft_switch_that_names_an_older_topic_returns_to_it(talk: Talk) -> None:
    talk.hear(NGINX_ZH, TRIP)
    found = [talk.find(query) for query in asked_on_a_trip(("nginx 的日志在哪个目录",))]
    soft = [finding for finding in found if finding.verdict.is_soft]
    assert soft
    for finding in soft:
        assert (finding.place.topic, finding.place.roots, listed(finding)) == ("known", {"nginx"}, [0, 1])


def test_a_soft_switch_that_names_the_running_topic_goes_on(talk: Talk) -> None:
    birds = (("Tell me about the kingfisher.", "It dives."), ("Which kingfisher is blue?", "The common one."))
    questions = "周边有哪些餐馆？", "人均消费多少？", "几点开门？"
    talk.hear(NGINX_ZH, (*birds, *((question, "不清楚。") for question in questions)))
    found = [talk.find(query) for query in asked_on_a_trip(("逛完 kingfisher 我想找一家酒店住下",))]
    soft = [finding for finding in found if finding.verdict.is_soft]
    assert {finding.evidence.named_root for finding in soft} == {NamedRoot.RUNNING}
    for finding in soft:
        assert (finding.place.topic, finding.place.roots) == ("running", {"kingfish"})
        assert listed(finding) == [2, 3, 4, 5, 6]


def test_a_soft_switch_that_names_a_crossed_word_goes_on(talk: Talk) -> None:
    talk.hear(*crossed_talk(), TRIP)
    found = [talk.find(query) for query in asked_on_a_trip(("rickshaw 在哪里租", "我想租一辆 rickshaw 游玩"))]
    soft = [finding for finding in found if finding.verdict.is_soft]
    assert {finding.evidence.named_root for finding in soft} == {NamedRoot.OLDER}
    for finding in soft:
        assert (finding.place.topic, finding.place.reason) == ("running", "a new subject of the running talk")


def test_a_question_about_something_said_looks_for_it_also_at_a_soft_switch(talk: Talk) -> None:
    talk.hear((("推荐一家经济型的酒店。", "推荐格林豪泰酒店，价格在五百元以内。"),), NGINX_ZH, TRIP)
    recalled = asked_on_a_trip(NEW_SUBJECTS[:2], ("之前说过，", "你之前说过，好的，", "上次聊到，"))
    found = [finding for query in recalled if (finding := talk.find(query)).verdict.is_soft]
    assert found
    for finding in found:
        assert finding.place.topic == "known"
        assert 0 in finding.place.allowed


# -- seams -------------------------------------------------------------------------------------

UNTIED: Stretch = (("Kingfishers dive", "Indeed."), ("And then?", "They eat."))


@pytest.mark.parametrize(("before", "turns"), [(4, [0, 1, 2, 3, 4, 5]), (5, [5, 6])], ids=["short", "long"])
def test_a_long_run_that_names_no_topic_counts_from_its_last_seam(talk: Talk, before: int, turns: list[int]) -> None:
    talk.hear((*APPLES, APPLES[0], APPLES[1])[:before] + UNTIED)
    assert talk.session.tracker.seam == before
    assert (before + 2 > topic_finder.SEAMLESS_TURNS) is (turns[0] > 0)
    finding = talk.find("Explain that again")
    assert (finding.place.topic, finding.place.reason) == ("running", "the run")
    assert listed(finding) == turns


def test_a_seam_cuts_off_nothing_where_a_topic_is_named_or_something_said_is_asked_about(talk: Talk) -> None:
    talk.hear((*APPLES, APPLES[0], APPLES[1], *UNTIED))
    assert talk.session.tracker.seam == 5
    for query, reason in (
        ("How tall is an apple tree?", "names 'appl'"),
        ("Explain again what you said earlier", "the run"),
    ):
        finding = talk.find(query)
        assert (finding.place.topic, finding.place.reason) == ("running", reason), query
        assert 0 in finding.place.allowed, query
