from __future__ import annotations

from pathlib import Path

import pytest

from context_gatekeeper.errors import ConfigError, TranscriptError
from context_gatekeeper.evals.datasets import EvalTurn, Line, pair_lines
from context_gatekeeper.evals.qa import losing_stage, measure_qa
from context_gatekeeper.evals.qa_log import LoggedTurns
from context_gatekeeper.evals.qa_peers import Bm25Peer, RecencyPeer, peer_tokens
from context_gatekeeper.types import PageId, RecallHit, Role, Stage
from tests.evals.samples import SAMPLES, decision, one_conversation, write_lines

FILES = sorted(SAMPLES.glob("qa_*.jsonl"))


@pytest.mark.parametrize("profile", ["strict", "recall"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_kept_and_what_each_stage_lost_add_up_to_all(path: Path, profile: str) -> None:
    figures = measure_qa(path, profile, error_limit=99)
    for part in (figures, *figures["by_category"].values()):
        assert part["kept_at_budget"]["4000"] + sum(part["lost_by_stage"].values()) == pytest.approx(1.0)
    assert len(figures["errors"]) == figures["lost_gold_turns"]
    assert figures["kept_whole_at_budget"]["4000"] <= figures["kept_at_budget"]["4000"]


def test_gold_behind_the_question_or_outside_the_log_is_lost_by_name() -> None:
    roles = measure_qa(SAMPLES / "qa_roles.jsonl", "recall", error_limit=99)
    assert [one["gold_turn"] for one in roles["errors"] if one["stage"] == "not_there_yet"] == ["a:2", "c:2"]
    persons = measure_qa(SAMPLES / "qa_persons.jsonl", "recall", error_limit=99)
    assert [one["gold_turn"] for one in persons["errors"] if one["stage"] == "not_in_log"] == ["D9:9"]


def test_every_question_is_asked_at_its_place() -> None:
    figures = measure_qa(SAMPLES / "qa_roles.jsonl", "recall")
    assert figures["questions"] == 4
    # nothing was said before the first line, so nothing can be ranked
    assert figures["by_category"]["first"]["recall@20"] == 0.0
    # a question at an answer's line sees the user's line before it
    assert figures["by_category"]["answer line"]["gold_turns"] == 1
    # of the two golds one is the answer that comes later
    assert figures["by_category"]["early"]["recall@20"] == 0.5
    assert figures["by_category"]["early"]["hit@10"] == 1.0


def test_the_obvious_answer_is_found_in_every_layout() -> None:
    assert measure_qa(SAMPLES / "qa_persons.jsonl", "recall")["by_category"]["multi-hop"]["recall@5"] == 1.0
    assert measure_qa(SAMPLES / "qa_pairs.jsonl", "recall")["recall@1"] == 1.0
    memories = measure_qa(SAMPLES / "qa_memories.jsonl", "recall")
    assert (memories["recall@1"], memories["kept_whole_at_budget"]["4000"]) == (1.0, 1.0)


def test_a_block_holds_the_gold_of_both_its_lines() -> None:
    lines = measure_qa(SAMPLES / "qa_persons.jsonl", "recall", "turn")
    blocks = measure_qa(SAMPLES / "qa_persons.jsonl", "recall", "block")
    assert blocks["unit"] == "block"
    assert blocks["kept_at_budget"] == lines["kept_at_budget"]
    assert blocks["recall@1"] >= lines["recall@1"]


def logged(*pairs: tuple[str, str], unit: str = "turn") -> LoggedTurns:
    log = LoggedTurns(unit)
    for place, (user_text, assistant_text) in enumerate(pairs):
        log.add(EvalTurn(Line(f"u{place}", "user", user_text), Line(f"a{place}", "assistant", assistant_text)), place)
    return log


def hit(turn_id: int, role: Role) -> RecallHit:
    return RecallHit(PageId(1), turn_id, role, 1.0)


def test_pages_map_to_the_lines_of_the_file_and_to_blocks() -> None:
    hits = [hit(1, Role.ASSISTANT), hit(0, Role.USER), hit(1, Role.USER)]
    assert logged(("q", "a"), ("q", "a")).ranked_items(hits) == ["a1", "u0", "u1"]
    assert logged(("q", "a"), ("q", "a"), unit="block").ranked_items(hits) == ["1", "0"]


def test_both_pages_of_a_line_with_two_texts_are_one_item() -> None:
    log = LoggedTurns("turn")
    for turn_id, turn in enumerate(pair_lines(one_conversation("qa_pairs.jsonl").lines)):
        log.add(turn, turn_id)
    assert log.ranked_items([hit(1, Role.ASSISTANT), hit(0, Role.USER), hit(1, Role.USER)]) == ["t1", "t0"]
    assert log.count_tokens("t1") > 20


def test_gold_items_of_one_block_count_once_and_unknown_ones_stay() -> None:
    log = logged(("q", "a"), ("q", "a"), unit="block")
    assert log.gold_items(["u1", "a1", "u0", "later"]) == ("1", "0", "line later")


def test_a_gold_turn_is_kept_by_one_of_its_own_sentences() -> None:
    log = logged(("Where is the key?", "Under the  mat.\nThe lamp is on."))
    assert log.is_kept("a0", {(0, Role.ASSISTANT): "Under the mat."}) == (True, False)
    assert log.is_kept("a0", {(0, Role.ASSISTANT): "Under the mat. The lamp is on."}) == (True, True)
    assert log.is_kept("a0", {(0, Role.USER): "Under the mat."}) == (False, False), "the other side does not count"
    assert log.is_kept("a0", {(0, Role.ASSISTANT): "Under the"}) == (False, False)
    assert log.is_kept("a0", {}) == (False, False)


def test_a_line_with_two_texts_is_whole_with_both() -> None:
    log = LoggedTurns("turn")
    log.add(EvalTurn(Line("t", "user", "Hello."), Line("t", "assistant", "Good day.")), 0)
    assert log.is_kept("t", {(0, Role.USER): "Hello.", (0, Role.ASSISTANT): ""}) == (True, False)
    assert log.is_kept("t", {(0, Role.USER): "Hello.", (0, Role.ASSISTANT): "Good day."}) == (True, True)


def test_a_lost_block_is_charged_to_the_first_stage_that_dropped_it() -> None:
    stages = (Stage("recall", (1, 2, 3), ()), Stage("topic", (1, 2), (3,)), Stage("coverage", (1,), (2, 3)))
    assert losing_stage(decision([1], *stages), 3) == "topic"
    assert losing_stage(decision([1], *stages), 2) == "coverage"


def test_a_returned_block_without_the_sentence_is_pruned_and_an_unseen_one_was_not_ranked() -> None:
    stages = (Stage("recall", (1, 2), ()), Stage("topic", (2,), (1,)))
    assert losing_stage(decision([1], *stages), 1) == "pruning", "the run's last block comes back past the topic"
    assert losing_stage(decision([1], *stages), 2) == "pruning", "kept by every stage, yet not returned"
    assert losing_stage(decision([1], *stages), 7) == "ranking"


def test_peers_rank_the_same_lines() -> None:
    figures = measure_qa(SAMPLES / "qa_persons.jsonl", "recall", peers=["bm25", "recency"])
    assert set(figures["peers"]) == {"bm25", "recency"}
    keys = {"recall@1", "recall@5", "recall@10", "recall@20", "hit@10", "ndcg@10", "recall_in_tokens"}
    assert set(figures["peers"]["bm25"]) == keys
    assert figures["peers"]["recency"]["recall@10"] == pytest.approx((1 + 1 + 0.5) / 3), "seven lines, one gold unknown"


def test_bm25_ranks_the_line_that_shares_rare_words_first_and_follows_the_log() -> None:
    log = logged(("the heron waits", "a grey bird"), ("the mill turns", "flour and noise"))
    peer = Bm25Peer()
    assert peer.rank(log, "heron")[0] == "u0"
    log.add(EvalTurn(Line("u2", "user", "kestrel above"), Line("a2", "assistant", "it hovers")), 2)
    assert peer.rank(log, "kestrel") == ["u2"]
    assert RecencyPeer().rank(log, "kestrel")[:2] == ["a2", "u2"]
    assert Bm25Peer().rank(LoggedTurns("turn"), "kestrel") == []


def test_peer_tokens_are_words_and_chinese_characters_with_pairs() -> None:
    assert peer_tokens("Ein Falke 红隼飞") == ["ein", "falke", "红", "隼", "飞", "红隼", "隼飞"]


def test_an_unknown_peer_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(ConfigError, match="peer 'oracle': there is no such peer; use bm25, recency"):
        measure_qa(SAMPLES / "qa_persons.jsonl", peers=["oracle"])


def test_a_file_without_questions_is_refused() -> None:
    with pytest.raises(TranscriptError, match="holds no question with evidence"):
        measure_qa(SAMPLES / "shift_roles.jsonl")


def test_a_question_may_have_a_time_of_its_own(tmp_path: Path) -> None:
    question = {"q": "Who keeps bees?", "evidence_turn_ids": ["1"], "time": "2024-05-01"}
    turns = [{"turn_id": "1", "speaker": "Nora", "text": "I keep bees.", "time": "2024-01-01"}]
    path = write_lines(tmp_path, {"turns": turns, "questions": [question]})
    assert measure_qa(path, "recall")["kept_at_budget"]["4000"] == 1.0
