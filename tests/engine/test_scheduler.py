"""The plan of one call: what comes in, what leaves at which stage, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_gatekeeper.core.assembler import lay_out_block
from context_gatekeeper.core.cuts import CUT_MARK
from context_gatekeeper.core.profiles import profile_named
from context_gatekeeper.core.tokens import documented_tokens, estimate_tokens
from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.scheduler import ContextScheduler
from context_gatekeeper.engine.session import Session
from context_gatekeeper.gatekeeper import ContextGatekeeper
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores import open_store
from context_gatekeeper.types import Decision
from tests.engine.talks import APPLES, NGINX

ORDER = ("recall", "topic", "content_word", "top_20", "admission", "pruning", "coverage", "budget")
QUERIES = (
    "How do I prune an apple tree?",
    "What did you say about frost earlier?",
    "nginx proxy_pass location",
    "Explain that again",
    "How do I bake sourdough bread?",
    "??!!",
)


class Talk:
    """A session with its scheduler."""

    def __init__(self, store: PageStore, profile: str = "strict") -> None:
        self.pool = PagePool(store, "share", "talk")
        self.session = Session(self.pool)
        self.scheduler = ContextScheduler(self.pool, self.session.tracker, profile_named(profile), estimate_tokens)

    def add(self, *turns: tuple[str, str]) -> Talk:
        for user, assistant in turns:
            self.session.add_turn(user, assistant, None, (None, None))
        return self

    def plan(self, query: str, budget_tokens: int = 1000) -> Decision:
        return self.scheduler.plan(query, budget_tokens)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PageStore]:
    opened = open_store(None if request.param == "memory" else tmp_path / "pool.sqlite")
    yield opened
    opened.close()


def turn_ids(decision: Decision) -> list[int]:
    return [block["turn_id"] for block in decision.blocks]


def spent(decision: Decision) -> int:
    return sum(
        estimate_tokens(lay_out_block(block["turn_id"], block["user"], block["assistant"])) for block in decision.blocks
    )


@pytest.mark.parametrize("query", ["", " ", "\n\t　"], ids=ascii)
def test_a_blank_query_gets_no_blocks(store: PageStore, query: str) -> None:
    decision = Talk(store).add(*APPLES).plan(query)
    assert decision.blocks == ()
    assert decision.stages == ()
    assert decision.coverage == 0.0


def test_without_history_there_is_nothing_to_send(store: PageStore) -> None:
    decision = Talk(store).plan("How do I prune an apple tree?")
    assert decision.topic == "none"
    assert decision.blocks == ()


@pytest.mark.parametrize("profile", ["strict", "recall"])
@pytest.mark.parametrize("budget_tokens", [0, 12, 30, 1000])
@pytest.mark.parametrize("query", QUERIES)
def test_every_turn_that_was_found_is_sent_or_dropped_at_exactly_one_stage(
    store: PageStore, query: str, budget_tokens: int, profile: str
) -> None:
    decision = Talk(store, profile).add(*APPLES, *NGINX).plan(query, budget_tokens)
    dropped = [turn for stage in decision.stages for turn in stage.dropped]
    seen = {turn for stage in decision.stages for turn in (*stage.kept, *stage.dropped)}
    assert sorted(dropped) == sorted(seen - set(turn_ids(decision)))
    assert set(turn_ids(decision)) <= seen


def test_stages_stand_in_the_order_in_which_they_run(store: PageStore) -> None:
    talk = Talk(store).add(*APPLES, *NGINX)
    switched = [stage.stage for stage in talk.plan("How do I prune an apple tree?").stages]
    assert "content_word" in switched
    for query in QUERIES:
        names = [stage.stage for stage in talk.plan(query).stages]
        assert sorted(names, key=ORDER.index) == names
        assert names[-1] == "budget"


def test_a_plan_changes_nothing(store: PageStore) -> None:
    asked, silent = Talk(store).add(*APPLES), Talk(open_store()).add(*APPLES)
    for query in QUERIES:
        assert asked.plan(query).to_dict() == asked.plan(query).to_dict()
    asked.add(*NGINX)
    silent.add(*NGINX)
    assert list(asked.session.tracker.segment_starts) == list(silent.session.tracker.segment_starts)
    assert [asked.plan(query).to_dict() for query in QUERIES] == [silent.plan(query).to_dict() for query in QUERIES]


@pytest.mark.parametrize("query", ["Why?", "Explain that again", "继续", "More"])
def test_a_short_query_that_points_back_takes_the_last_two_blocks_of_the_run(store: PageStore, query: str) -> None:
    decision = Talk(store).add(*APPLES).plan(query)
    assert turn_ids(decision) == [1, 2]
    assert {block["reason"] for block in decision.blocks} == {"the run goes on"}
    assert decision.blocks[1]["assistant"] == APPLES[2][1]


def test_a_run_of_one_turn_lends_that_turn_alone(store: PageStore) -> None:
    talk = Talk(store).add(*APPLES, NGINX[0])
    assert talk.session.tracker.run_start == 3
    assert turn_ids(talk.plan("Explain that again")) == [3]


def test_an_empty_turn_is_no_block_to_lean_on(store: PageStore) -> None:
    assert turn_ids(Talk(store).add(*APPLES[:2], ("", "")).plan("Explain that again")) == [0, 1]


def test_a_query_without_anchors_is_looked_for_by_its_first_twenty_characters(store: PageStore) -> None:
    signs = "=>=>=>=>=>=>=>=>=>=>"
    talk = Talk(store, "recall").add((f"Look at {signs} here", "A chain of arrows."), *APPLES)
    decision = talk.plan(signs + "!!!!")
    assert len(signs) == 20
    assert dict(decision.anchor_weights) == {signs: 1.0}
    assert next(stage for stage in decision.stages if stage.stage == "recall").kept == (0,)
    assert 0 in turn_ids(decision)
    assert decision.coverage == 1.0
    unknown = talk.plan(signs[:-1] + "<!!!!")
    assert next(stage for stage in unknown.stages if stage.stage == "recall").kept == ()


def test_a_block_too_large_for_the_budget_is_shortened_with_a_mark(store: PageStore) -> None:
    words = " ".join(f"word{number}" for number in range(400))
    talk = Talk(store).add(("Tell me the words", f"First {words} last."))
    whole = talk.plan("Explain that again", 5000).blocks[0]
    decision = talk.plan("Explain that again", 60)
    (block,) = decision.blocks
    assert len(block["assistant"]) < len(whole["assistant"])
    assert block["assistant"].startswith("First")
    assert block["assistant"].endswith("last.")
    assert f"\n{CUT_MARK}\n" in block["assistant"]
    assert spent(decision) <= 60


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 200), st.sampled_from(QUERIES), st.sampled_from(["strict", "recall"]))
def test_no_plan_exceeds_its_budget(budget_tokens: int, query: str, profile: str) -> None:
    decision = Talk(open_store(), profile).add(*APPLES, *NGINX).plan(query, budget_tokens)
    assert spent(decision) <= budget_tokens
    assert decision.budget_tokens == budget_tokens


def test_the_newest_block_has_the_budget_before_older_ones(store: PageStore) -> None:
    talk = Talk(store).add(*APPLES)
    newest = estimate_tokens(lay_out_block(2, *APPLES[2]))
    decision = talk.plan("Explain that again", newest)
    assert turn_ids(decision) == [2]
    assert next(stage for stage in decision.stages if stage.stage == "budget").dropped == (1,)


@pytest.mark.parametrize("turn_id", [0, 2, 3, 4])
def test_the_same_question_asked_again_brings_its_own_turn(store: PageStore, turn_id: int) -> None:
    question, answer = (*APPLES, *NGINX)[turn_id]
    blocks = {block["turn_id"]: block for block in Talk(store).add(*APPLES, *NGINX).plan(question).blocks}
    assert blocks[turn_id]["assistant"] == answer


def test_of_two_turns_with_the_same_question_the_newer_one_comes(store: PageStore) -> None:
    talk = Talk(store).add(APPLES[0], APPLES[1], (APPLES[0][0], "In February, on a dry day."), *NGINX)
    found = turn_ids(talk.plan(APPLES[0][0]))
    assert 2 in found
    assert 0 not in found


def test_blocks_come_in_turn_order_and_say_what_they_cover(store: PageStore) -> None:
    decision = Talk(store).add(*APPLES, *NGINX).plan("Which nginx header and which proxy_pass location?")
    assert turn_ids(decision) == [3, 4]
    texts = [text for block in decision.blocks for text in (block["user"], block["assistant"])]
    assert decision.tokens_fitted == sum(map(estimate_tokens, texts))
    assert decision.tokens_documented == sum(map(documented_tokens, texts))
    assert "proxy_pass" in {anchor for block in decision.blocks for anchor in block["covered_anchors"]}
    for block in decision.blocks:
        assert block["tokens"] == estimate_tokens(block["user"]) + estimate_tokens(block["assistant"])
        assert all(turn_id <= block["turn_id"] for turn_id in block["covered_ids"])


def test_a_budget_too_small_for_any_word_of_the_last_block_sends_none_of_it() -> None:
    with ContextGatekeeper(830, token_counter=lambda text: 40 * len(text)) as gatekeeper:
        gatekeeper.add_turn("Apple trees grow tall", "They need pruning every winter")
        assert gatekeeper.select("why?") == []


def test_a_blank_turn_beside_a_match_is_never_sent() -> None:
    with ContextGatekeeper(profile="recall") as gatekeeper:
        gatekeeper.add_turn("Apple trees grow tall", "They need pruning", speakers=("Ann", "Bob"))
        gatekeeper.add_turn("  ", " \n", speakers=("Ann", "Bob"))
        turn_ids = [block["turn_id"] for block in gatekeeper.select("apple trees pruning by Ann")]
    assert turn_ids == [0]
