"""A hundred rounds over four topics, and four hundred: nothing foreign comes, nothing needed is missing.

SPEC.md section 5 and DESIGN.md section 8. Floors and ceilings stand together, for a selector
that returns nothing is pure. Topics and wordings are the seed fixture of ``evals contamination``;
see there for the orders, the kinds of questions and the shares.
"""

from __future__ import annotations

from typing import Any

import pytest

from context_gatekeeper import ContextGatekeeper
from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.content_words import content_words
from context_gatekeeper.evals.contamination import measure_contamination
from context_gatekeeper.evals.fixtures import TopicScript, seed_topics, seed_wordings
from context_gatekeeper.types import Stage, TopicMove

BUDGET = 4000
"""Tokens of each prompt."""
ORDERS = ("burst", "robin", "block", "random")
SEEDS = 3


@pytest.fixture(scope="module", params=ORDERS)
def hundred(request: pytest.FixtureRequest) -> dict[str, Any]:
    return shares(request.param, rounds=100, seeds=SEEDS)


@pytest.fixture(scope="module", params=ORDERS)
def four_hundred(request: pytest.FixtureRequest) -> dict[str, Any]:
    return shares(request.param, rounds=400, seeds=1)


def shares(order: str, rounds: int, seeds: int) -> dict[str, Any]:
    figures = measure_contamination([order], rounds=rounds, seeds=seeds, token_budget=BUDGET, error_limit=5)
    return {**figures["orders"][order], "examples": figures["by_topic_errors"]}


def test_100_rounds_are_asked_and_judged(hundred: dict[str, Any]) -> None:
    assert (hundred["queries"], hundred["recap_queries"]) == (SEEDS * 96, SEEDS * 16)


def test_100_rounds_return_no_block_of_another_topic(hundred: dict[str, Any]) -> None:
    assert hundred["contamination"] == 0.0, hundred["examples"]


def test_100_rounds_return_a_block_of_the_right_topic(hundred: dict[str, Any]) -> None:
    assert hundred["same_topic_hit"] >= 0.95, hundred["examples"]
    assert hundred["empty"] <= 0.05, hundred["examples"]


def test_100_rounds_find_the_very_turn_that_is_asked_about_again(hundred: dict[str, Any]) -> None:
    assert hundred["recap_hit"] >= 0.95, hundred["examples"]


def test_400_rounds_do_not_drift(four_hundred: dict[str, Any]) -> None:
    assert four_hundred["queries"] == 396
    assert four_hundred["contamination"] <= 0.03, four_hundred["examples"]
    assert four_hundred["same_topic_hit"] >= 0.95, four_hundred["examples"]
    assert four_hundred["empty"] <= 0.06, four_hundred["examples"]
    assert four_hundred["recap_hit"] >= 0.92, four_hundred["examples"]


def test_400_rounds_in_blocks_find_every_turn_although_its_subject_became_repeated_wording() -> None:
    """A topic and its sub, asked for together a dozen times, are a run of words as a frame of questions is."""
    figures = shares("block", rounds=400, seeds=1)
    assert figures["recap_hit"] == 1.0, figures["examples"]


def ask(topic: TopicScript, sub: int, kind: str = "explicit", frame: int = 0) -> str:
    wordings = seed_wordings()[kind][topic.lang]
    return wordings[frame % len(wordings)].replace("{n}", topic.name).replace("{s}", topic.subs[sub][0])


def talk(rounds_per_topic: int = 8, *, token_budget: int = BUDGET) -> tuple[ContextGatekeeper, list[TopicScript]]:
    """The four topics one after the other, each asked explicitly; with the topic of each turn."""
    gatekeeper = ContextGatekeeper(token_budget)
    owners = []
    for topic in seed_topics():
        for sub in range(rounds_per_topic):
            gatekeeper.add_turn(ask(topic, sub, frame=sub), topic.subs[sub][1])
            owners.append(topic)
    return gatekeeper, owners


def stage_named(stages: tuple[Stage, ...], name: str) -> Stage:
    return next(stage for stage in stages if stage.stage == name)


@pytest.mark.parametrize("place", range(3))
def test_going_back_to_an_older_topic_is_a_switch_to_its_blocks(place: int) -> None:
    gatekeeper, owners = talk()
    topic = seed_topics()[place]
    decision = gatekeeper.explain(ask(topic, 2, "recap"))
    assert decision.verdict.move is TopicMove.SWITCH
    assert decision.topic == "known"
    returned = [block["turn_id"] for block in decision.blocks]
    assert 8 * place + 2 in returned
    assert {owners[turn_id].name for turn_id in returned} == {topic.name}


@pytest.mark.parametrize(
    "query", ["换个话题，怎么给护照续期？", "Changing the subject: how does a heat pump defrost itself?"]
)
def test_a_subject_never_talked_about_is_a_switch_that_brings_nothing(query: str) -> None:
    gatekeeper, _ = talk()
    decision = gatekeeper.explain(query)
    assert decision.verdict.move is TopicMove.SWITCH
    assert decision.blocks == ()


def test_the_running_topic_goes_on() -> None:
    gatekeeper, owners = talk()
    topic = seed_topics()[-1]
    decision = gatekeeper.explain(ask(topic, 3, "explicit", 1))
    assert decision.verdict.move is TopicMove.CONTINUE
    assert {owners[block["turn_id"]].name for block in decision.blocks} == {topic.name}


@pytest.mark.parametrize("place", range(3))
def test_after_a_switch_only_blocks_with_a_content_word_of_the_query_come_through(place: int) -> None:
    gatekeeper, _ = talk()
    query = ask(seed_topics()[place], 4, "recap")
    decision = gatekeeper.explain(query)
    kept = stage_named(decision.stages, "content_word").kept
    words = content_words(scan_anchors(query))
    texts = {block.turn_id: f"{block.user_text}\n{block.assistant_text}".casefold() for block in gatekeeper.blocks()}
    assert kept
    assert all(any(word in texts[turn_id] for word in words) for turn_id in kept)
    assert {block["turn_id"] for block in decision.blocks} <= set(kept)


def test_after_a_switch_a_block_that_shares_other_words_only_is_dropped_by_the_content_word_filter() -> None:
    gatekeeper, _ = talk()
    query = f"Different topic: {ask(seed_topics()[2], 5, 'elliptic')}"
    decision = gatekeeper.explain(query)
    assert decision.verdict.move is TopicMove.SWITCH
    filtered = stage_named(decision.stages, "content_word")
    words = content_words(scan_anchors(query))
    texts = {block.turn_id: f"{block.user_text}\n{block.assistant_text}".casefold() for block in gatekeeper.blocks()}
    assert filtered.dropped
    assert not any(word in texts[turn_id] for turn_id in filtered.dropped for word in words)
    assert [block["turn_id"] for block in decision.blocks] == [21]


def test_the_content_word_filter_does_not_run_while_a_topic_goes_on() -> None:
    gatekeeper, _ = talk()
    stages = gatekeeper.explain(ask(seed_topics()[-1], 3)).stages
    assert "content_word" not in [stage.stage for stage in stages]


@pytest.mark.parametrize("token_budget", [BUDGET, 400, 120, 40])
def test_no_prompt_is_longer_than_the_budget(token_budget: int) -> None:
    gatekeeper, _ = talk(25)
    gatekeeper.token_budget = token_budget
    for topic in seed_topics():
        for kind in ("explicit", "recap"):
            decision = gatekeeper.explain(ask(topic, 6, kind))
            assert sum(block["tokens"] for block in decision.blocks) <= decision.budget_tokens <= token_budget
            assert decision.tokens_fitted <= decision.budget_tokens


def test_an_exhausted_budget_shortens_the_block_and_then_leaves_it_out() -> None:
    gatekeeper, _ = talk()
    topic = seed_topics()[-1]
    query = ask(topic, 7, "explicit", 1)
    whole = gatekeeper.explain(query)
    needed = sum(block["tokens"] for block in whole.blocks)
    assert whole.blocks
    query_tokens = BUDGET - whole.budget_tokens
    gatekeeper.token_budget = query_tokens + needed // 2
    half = gatekeeper.explain(query)
    assert 0 < sum(block["tokens"] for block in half.blocks) <= needed // 2
    gatekeeper.token_budget = query_tokens
    assert gatekeeper.explain(query).blocks == ()
    assert "leave nothing of the budget" in gatekeeper.warnings[-1]


@pytest.mark.parametrize("query", ["继续", "这个再详细点", "go on", "can you say more about it?"])
def test_a_deictic_query_continues_and_inherits_the_last_one_or_two_blocks(query: str) -> None:
    gatekeeper, owners = talk()
    decision = gatekeeper.explain(query)
    last = len(owners) - 1
    assert decision.verdict.move is TopicMove.CONTINUE
    assert [block["turn_id"] for block in decision.blocks] in ([last], [last - 1, last])


def test_a_deictic_query_right_after_a_switch_does_not_reach_back_across_it() -> None:
    gatekeeper, _ = talk(3)
    topic = seed_topics()[0]
    assert gatekeeper.explain(ask(topic, 1, "recap")).verdict.move is TopicMove.SWITCH
    turn_id = gatekeeper.add_turn(ask(topic, 1, "recap"), topic.subs[1][1])
    assert [block["turn_id"] for block in gatekeeper.select("继续")] == [turn_id]


def test_a_deictic_opening_does_not_hold_a_query_that_names_another_topic() -> None:
    gatekeeper, owners = talk()
    topic = seed_topics()[0]
    decision = gatekeeper.explain(f"那{topic.name}的{topic.subs[1][0]}呢")
    assert decision.verdict.move is TopicMove.SWITCH
    assert {owners[block["turn_id"]].name for block in decision.blocks} == {topic.name}
