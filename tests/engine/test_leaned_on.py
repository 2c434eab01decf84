"""What a query leans on comes whatever the ranking says: the run, the same question, the turn that is meant."""

from __future__ import annotations

import pytest

from context_gatekeeper import ContextGatekeeper
from context_gatekeeper.engine.leaned_on import leaned_on
from context_gatekeeper.engine.query import read_query
from context_gatekeeper.engine.topic_finder import find_topic
from context_gatekeeper.stores import open_store
from context_gatekeeper.types import TopicMove
from tests.engine.talks import APPLES, TRIP, Talk

KINGFISHERS = ("Kingfishers dive", "Indeed.")
SIX = (*APPLES, *APPLES)
APPLE = [
    ("Which saw suits thick apple branches?", "A pruning saw with a curved blade cuts thick apple wood cleanly."),
    ("When should I prune an apple tree?", "Prune the apple tree in late winter, before the buds swell."),
]
NGINX = [
    ("How do I reload nginx without downtime?", "Run nginx -s reload: the old workers finish their requests."),
    ("Where does nginx write its error log?", "The nginx error log is /var/log/nginx/error.log by default."),
]


def talk(*turns: tuple[str, str]) -> ContextGatekeeper:
    gatekeeper = ContextGatekeeper()
    for user_text, assistant_text in turns:
        gatekeeper.add_turn(user_text, assistant_text)
    return gatekeeper


def reasons(gatekeeper: ContextGatekeeper, query: str) -> dict[int, str]:
    return {block["turn_id"]: block["reason"] for block in gatekeeper.select(query)}


@pytest.mark.parametrize(
    "history",
    [[*APPLE, *NGINX], [*NGINX, *APPLE, *NGINX], [*APPLE, *NGINX, *APPLE, *NGINX]],
    ids=["one topic later", "between two", "long ago"],
)
def test_a_question_repeated_word_for_word_brings_the_newest_turn_that_asked_it(history: list[tuple[str, str]]) -> None:
    query = APPLE[0][0]
    newest = max(turn_id for turn_id, (user_text, _) in enumerate(history) if user_text == query)
    assert newest in reasons(talk(*history), query)


def test_a_follow_up_that_only_points_leans_on_the_last_two_turns() -> None:
    assert reasons(talk(*APPLE, *NGINX), "Why is that?") == {2: "the run goes on", 3: "the run goes on"}


@pytest.mark.parametrize("query", ["Which one would you use at night?", "什么区别？两者哪个更好"])
def test_a_choice_leans_on_the_last_two_turns(query: str) -> None:
    gatekeeper = talk(
        ("what is a mutex", "A mutex lets one thread at a time enter."),
        ("and a semaphore?", "A semaphore counts permits."),
    )
    assert set(reasons(gatekeeper, query)) == {0, 1}


@pytest.mark.parametrize(
    ("turns", "query", "meant"),
    [
        (APPLE, "Remind me: which saw did you suggest for thick apple branches?", 0),
        (
            [("古筝怎么调弦？", "先定标准音，再逐根调。"), ("古筝的琴弦型号怎么选？", "按音区选钢弦或尼龙弦。")],
            "之前说过古筝怎么调弦，再提醒我一下",
            0,
        ),
    ],
)
def test_a_question_about_something_said_brings_the_turn_that_said_it(
    turns: list[tuple[str, str]], query: str, meant: int
) -> None:
    assert meant in reasons(talk(*turns, *NGINX), query)


def test_a_turn_that_recalled_the_subject_is_not_the_one_that_is_meant() -> None:
    recalled = ("Remind me: which saw did you suggest for apple branches?", "The pruning saw.")
    got = reasons(talk(*APPLE, *NGINX, recalled, *NGINX), "What did you say about the saw for thick apple branches?")
    assert got[0] == "asked about"


def test_the_newest_of_two_turns_that_asked_is_meant() -> None:
    again = ("And which saw for thin apple branches?", "Secateurs do for thin apple branches.")
    got = reasons(talk(*APPLE, again, *NGINX), "Earlier you told me about a saw for apple branches, which was it?")
    assert got[2] == "asked about"


def test_turns_with_equal_texts_come_once_and_say_how_many_they_are() -> None:
    gatekeeper = talk(APPLE[0], APPLE[0], APPLE[1])
    blocks = gatekeeper.select("Remind me: which saw did you suggest for thick apple branches?")
    assert [block["copies"] for block in blocks if block["user"] == APPLE[0][0]] == [2]
    stages = {stage.stage: stage for stage in gatekeeper.explain("Remind me: which saw for apple branches?").stages}
    assert stages["copies"].dropped == (0,)


def test_copies_are_counted_when_a_follow_up_points_at_them() -> None:
    blocks = talk(APPLE[0], APPLE[0]).select("Why is that?")
    assert [(block["turn_id"], block["copies"]) for block in blocks] == [(1, 2)]


def test_a_kept_block_has_the_score_that_recall_gives_it() -> None:
    gatekeeper = talk(*APPLE)
    query = "And how often should I prune that apple tree?"
    scores = {hit.turn_id: hit.score for hit in gatekeeper.recall(query)}
    block = next(block for block in gatekeeper.select(query) if block["reason"] == "the run goes on")
    assert block["score"] == pytest.approx(scores[block["turn_id"]])


def test_an_anchor_is_covered_by_one_block_only() -> None:
    gatekeeper = talk(("Redis lock", "Set a value with an expiry."), ("Redis lock again", "Delete it by script."))
    covered = [anchor for block in gatekeeper.select("that Redis lock") for anchor in block["covered_anchors"]]
    assert sorted(covered) == sorted(set(covered))
    assert covered


@pytest.mark.parametrize("profile", ["strict", "recall"])
def test_every_block_names_its_profile(profile: str) -> None:
    gatekeeper = ContextGatekeeper(profile=profile)
    for turn in APPLE:
        gatekeeper.add_turn(*turn)
    blocks = gatekeeper.select("Which saw for the apple tree?")
    assert blocks
    assert {block["profile"] for block in blocks} == {profile}


@pytest.mark.parametrize("profile", ["strict", "recall"])
def test_a_query_without_anchors_is_recalled_by_its_first_characters(profile: str) -> None:
    gatekeeper = ContextGatekeeper(profile=profile)
    gatekeeper.add_turn("plain words", "nothing here")
    gatekeeper.add_turn("what does ?!?!?! mean", "surprise")
    for query in ("?!?!?!", "？！？！？！"):
        assert [(hit.turn_id, hit.role.value) for hit in gatekeeper.recall(query)] == [(1, "user")]
        assert [block["turn_id"] for block in gatekeeper.select(query)][-1] == 1


# -- soft switches and seams --------------------------------------------------------------------


def leaned(talk: Talk, query: str) -> dict[int, str]:
    reading = read_query(query, talk.pool.postings, talk.session.tracker)
    finding = find_topic(reading, talk.pool, talk.session.tracker, None)
    return leaned_on(reading, finding, talk.pool, talk.session.tracker, reading.weights)


def test_at_a_soft_switch_only_the_last_block_is_kept_and_at_a_hard_one_none() -> None:
    """Which switch is soft depends on the fitted tables, so several queries are tried."""
    heard = Talk(open_store()).hear(TRIP)
    kinds = set()
    for lead in ("", "好的，谢谢，", "换个话题，"):
        for wish in (
            "",
            "，价格在五百元以内，最好有24小时热水",
            "，价格在五百元以内，最好有24小时热水和暖气，评分要高",
        ):
            query = f"{lead}帮我找一家经济型的酒店{wish}。"
            verdict = heard.find(query).verdict
            if verdict.move is TopicMove.SWITCH:
                kinds.add(verdict.is_soft)
                assert leaned(heard, query) == ({1: "the run goes on"} if verdict.is_soft else {}), query
    assert kinds == {True, False}


@pytest.mark.parametrize(
    ("before", "turns"), [(4, {4, 5}), (6, {6, 7})], ids=["short conversation", "long conversation"]
)
def test_a_follow_up_leans_on_two_blocks_where_the_second_is_tied_to_the_last(before: int, turns: set[int]) -> None:
    heard = Talk(open_store()).hear((*SIX[:before], KINGFISHERS, ("And then?", "They eat.")))
    assert heard.session.tracker.seam == before
    assert leaned(heard, "Why is that?") == dict.fromkeys(turns, "the run goes on")


@pytest.mark.parametrize(("before", "turns"), [(5, {4, 5}), (6, {6})], ids=["short conversation", "long conversation"])
def test_behind_a_seam_of_a_long_conversation_a_follow_up_leans_on_the_last_block_alone(
    before: int, turns: set[int]
) -> None:
    heard = Talk(open_store()).hear((*SIX[:before], KINGFISHERS))
    assert heard.session.tracker.seam == before
    assert leaned(heard, "Why is that?") == dict.fromkeys(turns, "the run goes on")
