"""DESIGN.md 4.5 and 4.6, SPEC.md 3.4 and 3.5: minimum coverage under a budget, pruning inside a block."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import pytest

from context_gatekeeper.core.pruner import PRUNE_PARAMS
from context_gatekeeper.core.selector import ALPHA, COVERAGE_TARGET, Candidate, select_blocks
from context_gatekeeper.core.tokens import DOCUMENTED_FACTOR, documented_tokens
from tests.requirements.conversations import LOCK_EN, REDIS_ZH, stage, talk, turn_ids


def candidate(turn_id: int, anchors: str, cost_tokens: int) -> Candidate:
    return Candidate(turn_id, frozenset(anchors), cost_tokens, relevance=1.0)


def chosen_ids(candidates: Sequence[Candidate], weights: dict[str, float], budget_tokens: int) -> list[int]:
    return [one.turn_id for one in select_blocks(candidates, weights, budget_tokens).chosen]


@pytest.mark.requirement("R-D4.5-alpha", "R-D6-alpha-fixed", "R-S3.4-gain", "R-D9-alpha")
def test_alpha_is_0_8() -> None:
    assert ALPHA == 0.8


@pytest.mark.requirement("R-D4.5-gain", "R-S3.4-gain")
def test_the_block_with_the_largest_gain_per_cost_comes_first() -> None:
    """2 / 10^0.8 = 0.32 beats 3 / 20^0.8 = 0.27; with alpha 0.5 it would be 0.63 against 0.67."""
    weights = {"a": 2.0, "b": 3.0}
    assert 2 / 10**0.5 < 3 / 20**0.5
    assert chosen_ids([candidate(1, "a", 10), candidate(2, "b", 20)], weights, 100)[0] == 1


@pytest.mark.requirement("R-D4.5-gain", "R-S3.4-gain")
def test_what_is_covered_already_adds_nothing() -> None:
    weights = {"a": 2.0, "b": 1.0}
    assert chosen_ids([candidate(1, "a", 10), candidate(2, "a", 11), candidate(3, "b", 50)], weights, 100) == [1, 3]


@pytest.mark.requirement("R-D4.5-stop-at-85", "R-S3.4-stop", "R-D9-coverage-target")
def test_selection_stops_at_85_per_cent_of_coverage() -> None:
    assert COVERAGE_TARGET == 0.85
    blocks = [candidate(1, "a", 10), candidate(2, "b", 10)]
    enough = select_blocks(blocks, {"a": 85.0, "b": 15.0}, 1000)
    assert ([one.turn_id for one in enough.chosen], enough.stopped_by) == ([1], "coverage")
    short = select_blocks(blocks, {"a": 84.0, "b": 16.0}, 1000)
    assert sorted(one.turn_id for one in short.chosen) == [1, 2]


@pytest.mark.requirement("R-D4.5-stop-at-budget", "R-S3.4-stop")
def test_selection_stops_when_the_budget_is_spent() -> None:
    blocks = [candidate(1, "a", 60), candidate(2, "b", 60)]
    stopped = select_blocks(blocks, {"a": 2.0, "b": 1.0}, 100)
    assert ([one.turn_id for one in stopped.chosen], stopped.stopped_by) == ([1], "budget")
    assert stopped.over_budget == (2,)


@pytest.mark.requirement("R-D4.5-minimum", "R-S1-smallest-relevant")
def test_one_block_that_covers_the_query_is_enough() -> None:
    gatekeeper = talk([("zebrafish in cold water", "They stop eating below 18 degrees.")] * 6, [("thanks", "bye")] * 2)
    coverage = stage(gatekeeper, "tell me of zebrafish in cold water", "coverage")
    assert len([turn for turn in coverage["kept"] if turn < 6]) == 1


@pytest.mark.requirement("R-D4.5-documented-tokens", "R-D9-token-factor")
def test_the_documented_estimate_is_one_and_a_half_tokens_a_character() -> None:
    assert DOCUMENTED_FACTOR == 1.5
    assert documented_tokens("分布式锁") == 6
    assert documented_tokens("lock") == 6
    assert documented_tokens("abc") == ceil(4.5)
    gatekeeper = talk(LOCK_EN, token_counter="documented")
    for block in gatekeeper.select("What expiry should the lock have?"):
        assert block["tokens"] == documented_tokens(block["user"]) + documented_tokens(block["assistant"])


@pytest.mark.requirement("R-D4.5-documented-tokens")
def test_every_decision_reports_both_estimates() -> None:
    decision = talk(LOCK_EN).explain("What expiry should the lock have?")
    texts = [block[side] for block in decision.blocks for side in ("user", "assistant")]
    assert decision.tokens_documented == sum(documented_tokens(text) for text in texts)
    assert 0 < decision.tokens_fitted < decision.tokens_documented


FILLER = " ".join(f"Filler number {number} says nothing at all." for number in range(12))
LONG_ANSWER = (
    f"It starts like this. {FILLER} Tomato plants need calcium. {FILLER} Tomato leaves curl in heat. "
    f"{FILLER} Tomato roots rot when wet. {FILLER} A tomato splits after rain."
)


def pruned_answer(query: str, answer: str = LONG_ANSWER) -> str:
    gatekeeper = talk([("Tell me about the tomato", answer)], [(f"note {word}", "kept") for word in ("a1", "b2", "c3")])
    blocks = {block["turn_id"]: block for block in gatekeeper.select(query)}
    return str(blocks[0]["assistant"])


@pytest.mark.requirement("R-D4.6-keep-three", "R-S3.5-anchor-sentences")
def test_of_a_long_side_at_most_three_sentences_with_anchors_stay() -> None:
    assert PRUNE_PARAMS.max_sentences == 3
    answer = pruned_answer("what does the tomato need")
    assert answer.count("omato") == 3
    assert "Filler" not in answer


@pytest.mark.requirement("R-D4.6-assistants-first", "R-D4.6-keep-three")
def test_the_assistants_first_sentence_stays_without_an_anchor() -> None:
    assert pruned_answer("what does the tomato need").startswith("It starts like this.")


@pytest.mark.requirement("R-D4.6-split")
@pytest.mark.parametrize("end", [". ", "\n", "。", "！", "？", "；", "……", "! ", "? "])
def test_sentences_end_where_they_end(end: str) -> None:
    sentences = [
        "the opening words",
        *(f"words number {number}" for number in range(9)),
        "all about quaternion",
        "closing",
    ]
    answer = pruned_answer("which quaternion", end.join(sentences))
    assert "all about quaternion" in answer
    assert "words number 4" not in answer


@pytest.mark.requirement("R-S3.5-exact-sentences")
def test_a_sentence_with_an_exact_term_stays() -> None:
    answer = pruned_answer(
        "where is MAX_RETRIES set", f"It starts. {FILLER} See MAX_RETRIES in settings. {FILLER} End."
    )
    assert "See MAX_RETRIES in settings." in answer


@pytest.mark.requirement("R-S3.5-user-question")
def test_the_users_question_stays_with_the_answer() -> None:
    question = f"Some background first. {FILLER} So how deep do I plant it?"
    gatekeeper = talk([(question, "Tomato roots need twenty centimetres.")], [("ok", "fine"), ("other", "things")])
    blocks = {block["turn_id"]: block for block in gatekeeper.select("what do tomato roots need")}
    assert blocks[0]["user"].endswith("So how deep do I plant it?")
    assert len(blocks[0]["user"]) < len(question)


@pytest.mark.requirement("R-D4.6-tokens-again")
def test_a_pruned_block_costs_what_is_left_of_it() -> None:
    gatekeeper = talk(
        [("Tell me about the tomato", LONG_ANSWER)], [("ok", "fine"), ("other", "things")], token_counter=len
    )
    blocks = {block["turn_id"]: block for block in gatekeeper.select("what does the tomato need")}
    assert blocks[0]["tokens"] == len(blocks[0]["user"]) + len(blocks[0]["assistant"])
    assert blocks[0]["tokens"] < len(LONG_ANSWER)


@pytest.mark.requirement("R-D4.6-tokens-again")
def test_a_turn_above_the_budget_is_chosen_for_what_is_left_of_it() -> None:
    gatekeeper = talk([("Tell me about the tomato", LONG_ANSWER)], [("ok", "fine"), ("other", "things")])
    gatekeeper.token_budget = 120
    assert gatekeeper.count_tokens(LONG_ANSWER) > 400
    decision = gatekeeper.explain("what does the tomato need")
    (block,) = [block for block in decision.blocks if block["turn_id"] == 0]
    assert block["reason"] == "covers anchors"
    assert block["tokens"] < 120


@pytest.mark.requirement("R-D7-empty-after-pruning")
def test_a_block_of_blanks_is_skipped_and_the_next_one_taken() -> None:
    gatekeeper = talk([("   ", " \n ")], REDIS_ZH, [("   ", "")])
    assert turn_ids(gatekeeper, "看门狗续期用在哪把 Redis 锁上？") == [2, 3]
    assert turn_ids(gatekeeper, "继续") == [2, 3]


@pytest.mark.requirement("R-I2-fences-whole")
def test_a_fenced_block_of_code_is_kept_or_left_as_a_whole() -> None:
    code = "```python\nimport redis\n\nr = redis.Redis()\nr.set('lock', token, nx=True, ex=30)\n```"
    answer = pruned_answer("show the redis lock", f"It starts like this.\n{FILLER}\n{code}\n{FILLER}")
    assert code in answer
