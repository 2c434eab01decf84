"""DESIGN.md 5, SPEC.md 3.6 and 4: the object that library users hold."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

from context_gatekeeper import ContextGatekeeper, Decision
from context_gatekeeper.core.tokens import MESSAGE_TOKENS, documented_tokens, estimate_tokens
from context_gatekeeper.errors import ConfigError, GatekeeperError
from tests.requirements.conversations import LOCK_EN, REDIS_ZH, TOFU_ZH, talk


@pytest.mark.requirement("R-D5-constructor", "R-S4-constructor")
def test_the_budget_is_the_first_argument_and_4000_by_default() -> None:
    parameters = inspect.signature(ContextGatekeeper).parameters
    assert next(iter(parameters)) == "token_budget"
    assert ContextGatekeeper().token_budget == 4000
    assert ContextGatekeeper(token_budget=8000).token_budget == 8000
    assert ContextGatekeeper(123).token_budget == 123


@pytest.mark.requirement("R-D5-add-turn", "R-S4-add-turn")
def test_add_turn_counts_from_0() -> None:
    gatekeeper = ContextGatekeeper()
    assert [gatekeeper.add_turn(user_text=user, assistant_text=answer) for user, answer in LOCK_EN] == [0, 1, 2]
    assert gatekeeper.turn_count == 3


@pytest.mark.requirement("R-D5-select-keys", "R-S4-select")
def test_a_selected_block_has_every_key_of_both_documents() -> None:
    blocks = talk(LOCK_EN).select("What expiry should the Redis lock have?")
    assert blocks
    for block in blocks:
        kinds = {"turn_id": int, "user": str, "assistant": str, "score": float, "covered_ids": list}
        assert {name: type(block[name]) for name in kinds} == kinds
        assert all(type(turn_id) is int for turn_id in block["covered_ids"])
        assert isinstance(block["covered_anchors"], list)
        assert isinstance(block["tokens"], int)


@pytest.mark.requirement("R-D5-select-keys")
def test_covered_ids_name_the_turns_in_which_the_new_anchors_were_first_said() -> None:
    gatekeeper = talk(LOCK_EN)
    blocks = gatekeeper.select("so which expiry did we give to that Redis lock")
    covered = {turn_id for block in blocks for turn_id in block["covered_ids"]}
    assert covered == {0, 1}, "redis and lock were first said in turn 0, expiry in turn 1"
    assert "expiry" in [anchor for block in blocks for anchor in block["covered_anchors"]]


@pytest.mark.requirement("R-D5-select-keys")
def test_covered_ids_and_anchors_are_those_that_no_block_before_it_covered() -> None:
    notes = [("zebrafish and quaternion", "yes"), ("zebrafish and obsidian", "yes"), ("other talk", "of marzipan")]
    blocks = talk(notes, notes[2:]).select("now which zebrafish, which quaternion, which obsidian")
    told = {block["turn_id"]: (block["covered_anchors"], block["covered_ids"]) for block in blocks if block["score"]}
    assert set(told) == {0, 1}
    once = sorted(anchor for anchors, _ in told.values() for anchor in anchors)
    assert once == ["obsidian", "quaternion", "zebrafish"]
    assert sorted(told[0][1] + told[1][1]) in ([0, 0, 1], [0, 1])


@pytest.mark.requirement("R-S5.1-same-topic-recalled")
@pytest.mark.parametrize("conversation", [REDIS_ZH, LOCK_EN])
@pytest.mark.parametrize("turn_id", [0, 1, 2])
def test_a_question_asked_again_word_for_word_brings_its_own_turn(
    conversation: tuple[tuple[str, str], ...], turn_id: int
) -> None:
    gatekeeper = talk(conversation)
    assert turn_id in [block["turn_id"] for block in gatekeeper.select(conversation[turn_id][0])]


@pytest.mark.requirement("R-D5-select-keys", "R-S4-select")
def test_blocks_come_in_the_order_of_the_talk() -> None:
    gatekeeper = talk(REDIS_ZH, TOFU_ZH, REDIS_ZH)
    ids = [block["turn_id"] for block in gatekeeper.select("Redis 分布式锁用 Lua 脚本释放，过期时间和看门狗")]
    assert len(ids) > 1
    assert ids == sorted(set(ids))


@pytest.mark.requirement("R-D5-build-prompt", "R-S2-flow")
def test_the_prompt_holds_constraints_then_blocks_in_order_then_the_query() -> None:
    gatekeeper = talk(LOCK_EN)
    gatekeeper.set_constraint("language", "answer in German")
    query = "What expiry should the Redis lock have?"
    prompt = gatekeeper.build_prompt(query)
    places = [prompt.index("answer in German")]
    places += [prompt.index(block["user"]) for block in gatekeeper.select(query)]
    assert places == sorted(places)
    assert len(places) > 1
    assert prompt.endswith(query)


@pytest.mark.requirement("R-I4-build-messages")
def test_messages_say_the_same_as_the_prompt() -> None:
    gatekeeper = talk(LOCK_EN)
    gatekeeper.set_constraint("language", "answer in German")
    query = "What expiry should the Redis lock have?"
    messages = gatekeeper.build_messages(query)
    assert messages[0]["role"] == "system"
    assert "answer in German" in messages[0]["content"]
    assert messages[-1] == {"role": "user", "content": query}
    texts = [text for block in gatekeeper.select(query) for text in (block["user"], block["assistant"])]
    assert [message["content"] for message in messages[1:-1]] == texts


@pytest.mark.requirement("R-S2-flow")
def test_a_query_runs_through_the_stages_in_the_order_of_the_flow() -> None:
    gatekeeper = talk([("量子纠缠是什么？", "两个粒子的状态彼此相关。")], TOFU_ZH)
    decision = gatekeeper.explain("换个话题，量子纠缠能传多远？")
    assert decision.anchor_weights
    assert decision.verdict.reason
    assert [stage.stage for stage in decision.stages] == [
        "recall",
        "topic",
        "content_word",
        "top_20",
        "admission",
        "pruning",
        "coverage",
        "budget",
    ]
    left = {turn_id for stage in decision.stages[:1] for turn_id in stage.kept}
    for stage in decision.stages[1:-1]:
        assert set(stage.kept) | set(stage.dropped) == left, "a stage gets what the one before it kept"
        left = set(stage.kept)
    assert {block["turn_id"] for block in decision.blocks} <= left


@pytest.mark.requirement("R-D5-budget-without-system", "R-S5.4-budget-kept", "R-D6-budget-may-change")
@pytest.mark.parametrize("token_budget", [1, 5, 13, 14, 15, 20, 22, 40, 80, 200, 4000, 8000])
@pytest.mark.parametrize("counter", ["fitted", "documented"])
def test_no_prompt_is_larger_than_the_budget_unless_the_query_alone_is(token_budget: int, counter: str) -> None:
    count = {"fitted": estimate_tokens, "documented": documented_tokens}[counter]
    gatekeeper = talk(REDIS_ZH, TOFU_ZH, LOCK_EN, token_budget=token_budget, token_counter=counter)
    for query in ("What expiry should the Redis lock have?", "继续", "麻婆豆腐用哪种豆瓣酱？"):
        prompt = gatekeeper.build_prompt(query)
        assert count(prompt) <= max(token_budget, count(f"user: {query}"))
        messages = gatekeeper.build_messages(query)
        framed = sum(count(message["content"]) + MESSAGE_TOKENS for message in messages)
        assert framed <= max(token_budget, count(query) + MESSAGE_TOKENS)


@pytest.mark.requirement("R-I2-exact-and-calibrated-tokens")
def test_a_calibrated_gatekeeper_spends_the_budget_in_real_tokens() -> None:
    """A service that counts half as much again leaves two thirds of the budget by our count."""
    gatekeeper = talk([(f"zebrafish note {number}", "word " * 60) for number in range(8)], token_budget=300)
    query = "go on with the zebrafish"
    before = gatekeeper.explain(query)
    for _ in range(200):
        gatekeeper.calibration = gatekeeper.calibration.updated(1500, 1000)
    assert gatekeeper.calibration.factor == pytest.approx(1.5, abs=0.01)
    assert estimate_tokens(gatekeeper.build_prompt(query)) * gatekeeper.calibration.factor <= 300
    assert gatekeeper.explain(query).budget_tokens < before.budget_tokens


@pytest.mark.requirement("R-S3.6-constraints", "R-S4-constraints")
def test_constraints_are_a_small_fixed_table_in_every_prompt() -> None:
    gatekeeper = talk(LOCK_EN)
    gatekeeper.set_constraint("language", "German")
    gatekeeper.set_constraint("style", "terse")
    gatekeeper.set_constraint("avoid", "emoji")
    assert gatekeeper.get_constraints() == {"language": "German", "style": "terse", "avoid": "emoji"}
    for query in ("continue", "How do I bake bread?", "lock"):
        assert all(wish in gatekeeper.build_prompt(query) for wish in ("German", "terse", "emoji"))
    gatekeeper.set_constraint("style", "chatty")
    gatekeeper.remove_constraint("avoid")
    assert gatekeeper.get_constraints() == {"language": "German", "style": "chatty"}
    assert "terse" not in gatekeeper.build_prompt("continue")


@pytest.mark.requirement("R-S3.6-constraints")
def test_constraints_are_no_memory_they_are_never_recalled_as_talk() -> None:
    gatekeeper = talk(LOCK_EN)
    gatekeeper.set_constraint("zebrafish", "quaternion")
    assert gatekeeper.turn_count == 3
    assert gatekeeper.recall("zebrafish quaternion") == []


@pytest.mark.requirement("R-S4-constraints")
def test_changing_the_returned_constraints_changes_nothing() -> None:
    gatekeeper = ContextGatekeeper()
    gatekeeper.set_constraint("language", "German")
    gatekeeper.get_constraints().clear()
    assert gatekeeper.get_constraints() == {"language": "German"}


@pytest.mark.requirement("R-I4-explain", "R-D2-output-is-evidence")
def test_explain_tells_the_whole_decision_and_is_ready_for_json() -> None:
    gatekeeper = talk(REDIS_ZH, TOFU_ZH)
    query = "回到 Redis 分布式锁，过期时间是多少？"
    decision = gatekeeper.explain(query)
    assert isinstance(decision, Decision)
    told = json.loads(json.dumps(decision.to_dict(), ensure_ascii=False))
    assert told["blocks"] == json.loads(json.dumps(gatekeeper.select(query)))
    assert {"anchor_overlap_ratio", "new_token_ratio", "move", "reason"} <= set(told["verdict"])
    assert told["profile"] == "strict"
    assert 0.0 < told["coverage"] <= 1.0
    assert told["topic_reason"]
    for block in told["blocks"]:
        assert block["reason"]


@pytest.mark.requirement("R-I4-explain", "R-Q8-no-silent-loss")
def test_every_candidate_that_is_not_sent_was_dropped_at_one_stage() -> None:
    gatekeeper = talk([(f"zebrafish note {number}", f"tank {number}") for number in range(30)], TOFU_ZH)
    decision = gatekeeper.explain("back to the zebrafish notes")
    found = {turn for stage in decision.stages for turn in (*stage.kept, *stage.dropped)}
    sent = {block["turn_id"] for block in decision.blocks}
    dropped = [turn for stage in decision.stages for turn in stage.dropped]
    assert found
    assert found - sent <= set(dropped)
    assert len(dropped) == len(set(dropped)), "a turn is lost once"


@pytest.mark.requirement("R-I4-pure-select")
def test_asking_twice_gives_the_same() -> None:
    gatekeeper = talk(REDIS_ZH, TOFU_ZH)
    for query in ("继续", "Redis 分布式锁的过期时间", ""):
        assert gatekeeper.select(query) == gatekeeper.select(query)
    assert gatekeeper.turn_count == 5


@pytest.mark.requirement("R-I4-profiles")
def test_there_are_two_named_profiles_and_each_result_says_which() -> None:
    for profile in ("strict", "recall"):
        assert talk(LOCK_EN, profile=profile).explain("lock").profile == profile
    assert ContextGatekeeper().explain("lock").profile == "strict"


@pytest.mark.requirement("R-I3-survives", "R-I3-two-stores")
def test_a_conversation_goes_on_in_another_object_on_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "talk.db"
    with ContextGatekeeper(store=path, session="ann") as first:
        for turn in (*REDIS_ZH, *TOFU_ZH):
            first.add_turn(*turn)
        first.set_constraint("language", "German")
        expected = {query: first.explain(query).to_dict() for query in ("继续", "Redis 分布式锁的过期时间", "bread")}
    with ContextGatekeeper(store=str(path), session="ann") as second:
        assert second.turn_count == 5
        assert second.get_constraints() == {"language": "German"}
        assert {query: second.explain(query).to_dict() for query in expected} == expected
        assert second.add_turn("more", "words") == 5
    with ContextGatekeeper(store=path, session="bob") as other:
        assert other.turn_count == 0
        assert other.get_constraints() == {}


@pytest.mark.requirement("R-I3-two-stores")
def test_memory_and_file_give_the_same_decisions(tmp_path: Path) -> None:
    in_memory = talk(REDIS_ZH, TOFU_ZH, LOCK_EN)
    on_disk = talk(REDIS_ZH, TOFU_ZH, LOCK_EN, store=tmp_path / "talk.db")
    for query in ("继续", "Redis 分布式锁的过期时间", "What expiry should the lock have?", "bread"):
        assert on_disk.explain(query).to_dict() == in_memory.explain(query).to_dict()
    on_disk.close()


@pytest.mark.requirement("R-IB-bad-arguments")
@pytest.mark.parametrize(
    ("call", "thing"),
    [
        (lambda: ContextGatekeeper(0), "token_budget 0"),
        (lambda: ContextGatekeeper(-5), "token_budget -5"),
        (lambda: ContextGatekeeper(True), "token_budget True"),
        (lambda: ContextGatekeeper("4000"), "token_budget '4000'"),  # type: ignore[arg-type]
        (lambda: ContextGatekeeper(profile="loose"), "profile 'loose'"),
        (lambda: ContextGatekeeper(token_counter="guess"), "token_counter 'guess'"),  # type: ignore[arg-type]
        (lambda: ContextGatekeeper().add_turn(1, "x"), "user_text"),  # type: ignore[arg-type]
        (lambda: ContextGatekeeper().add_turn("x", None), "assistant_text"),  # type: ignore[arg-type]
        (lambda: ContextGatekeeper().select(b"bytes"), "query"),  # type: ignore[arg-type]
        (lambda: ContextGatekeeper().build_prompt(None), "query"),  # type: ignore[arg-type]
        (lambda: ContextGatekeeper().set_constraint("", "x"), "constraint key"),
        (lambda: ContextGatekeeper().set_constraint("x", 1), "constraint value"),  # type: ignore[arg-type]
        (lambda: ContextGatekeeper().recall("x", limit=0), "limit 0"),
        (lambda: ContextGatekeeper().add_turn("x", "y", time="now"), "time 'now'"),  # type: ignore[arg-type]
    ],
)
def test_a_bad_argument_is_named_with_its_cause_and_the_next_step(call: object, thing: str) -> None:
    with pytest.raises(ConfigError) as caught:
        call()  # type: ignore[operator]
    assert caught.value.thing == thing
    assert caught.value.cause
    assert caught.value.next_step
    assert isinstance(caught.value, GatekeeperError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.requirement("R-IB-bad-arguments")
def test_a_refused_turn_leaves_the_talk_as_it_was() -> None:
    gatekeeper = talk(LOCK_EN)
    before = gatekeeper.explain("continue").to_dict()
    with pytest.raises(ConfigError):
        gatekeeper.add_turn("fine", 7)  # type: ignore[arg-type]
    assert gatekeeper.turn_count == 3
    assert gatekeeper.explain("continue").to_dict() == before
