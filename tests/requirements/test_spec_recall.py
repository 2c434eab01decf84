"""DESIGN.md 4.3 and 4.4, SPEC.md 3.3: content words after a switch, the sparse score, the top 20."""

from __future__ import annotations

import re
from math import log

import pytest

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.content_words import CONTENT_WORD_MIN_LEN, CONTENT_WORD_PATTERNS
from context_gatekeeper.core.sparse import SCORE_PARAMS, lex
from tests.requirements.conversations import LOCK_EN, REDIS_ZH, TOFU_ZH, stage, talk, turn_ids

WORDS = ["zebrafish", "quaternion", "obsidian", "marzipan"]


def scores(gatekeeper: object, query: str) -> dict[int, float]:
    """Turn id -> score of its block, as `recall` ranks."""
    return {hit.turn_id: hit.score for hit in gatekeeper.recall(query)}  # type: ignore[attr-defined]


@pytest.mark.requirement("R-D4.3-min-len", "R-D4.3-patterns")
def test_the_numbers_and_patterns_of_content_words_are_the_documents() -> None:
    assert CONTENT_WORD_MIN_LEN == 4

    def is_content_word(text: str) -> bool:
        return any(re.fullmatch(pattern, text) for pattern in CONTENT_WORD_PATTERNS)

    assert is_content_word("redis")
    assert is_content_word("lock")
    assert not is_content_word("the")
    assert is_content_word("v1.2.3")
    assert is_content_word("10.20.30")
    assert not is_content_word("1.2")


SWITCHED_BACK = "Different topic: the zebrafish gpu?"
MIXED_RUN = [
    ("How do zebrafish breed?", "In cold water they do not; use a gpu."),
    ("Which gpu is good?", "Any gpu with 8 GB."),
    ("By the way, how do I feed a sourdough starter?", "Equal parts of rye flour and water."),
    ("How warm should the dough be?", "About 24 degrees."),
]
"""Turns 0 and 1 are one run; both share an anchor with the query, turn 1 no content word: ``gpu`` has three letters."""


@pytest.mark.requirement("R-D4.3-trigger", "R-D4.3-hard-filter", "R-D9-filter-place")
def test_after_a_switch_a_block_without_a_content_word_is_dropped() -> None:
    gatekeeper = talk(MIXED_RUN)
    assert gatekeeper.explain(SWITCHED_BACK).verdict.move == "switch"
    assert stage(gatekeeper, SWITCHED_BACK, "topic")["kept"] == [0, 1]
    assert stage(gatekeeper, SWITCHED_BACK, "content_word") == {"kept": [0], "dropped": [1]}
    assert turn_ids(gatekeeper, SWITCHED_BACK) == [0]


@pytest.mark.requirement("R-D4.3-hard-filter")
def test_a_content_word_is_found_however_it_is_spelt() -> None:
    """Full-width letters are the same word."""
    wide = [("ＲＥＤＩＳ　ｓｅｎｔｉｎｅｌ ｆａｉｌｏｖｅｒ？", "ｓｅｎｔｉｎｅｌ ｖｏｔｅｓ．"), *MIXED_RUN[2:]]
    assert turn_ids(talk(wide), "Different topic: redis sentinel failover?") == [0]


@pytest.mark.requirement("R-D4.3-trigger")
def test_the_filter_runs_after_a_switch_only() -> None:
    gatekeeper = talk(REDIS_ZH)
    continued = gatekeeper.explain("Redis 分布式锁的看门狗").to_dict()
    assert continued["verdict"]["move"] == "continue"
    assert "content_word" not in [one["stage"] for one in continued["stages"]]


@pytest.mark.requirement("R-D4.3-no-idf-floor")
def test_a_content_word_of_every_block_still_counts() -> None:
    """The filter looks at words, never at their IDF."""
    gatekeeper = talk([(f"postgresql question {word}", f"postgresql answer {word}") for word in WORDS * 2], TOFU_ZH)
    decision = gatekeeper.explain("back to postgresql, please")
    assert decision.verdict.move == "switch"
    kept = stage(gatekeeper, "back to postgresql, please", "content_word")
    assert kept["dropped"] == []


@pytest.mark.requirement("R-D4.4-weights", "R-S3.3-formula", "R-D9-side-weights", "R-D9-recall-place")
def test_the_weights_of_the_formula_are_the_documents() -> None:
    assert SCORE_PARAMS.user_weight == 1.5
    assert SCORE_PARAMS.assistant_weight == 0.7
    assert SCORE_PARAMS.exact_weight == 1.0
    assert SCORE_PARAMS.recency_weight == 0.2


@pytest.mark.requirement("R-D4.4-formula", "R-S3.3-formula")
def test_a_word_on_the_users_side_scores_1_5_and_on_the_assistants_0_7() -> None:
    gatekeeper = talk([("about zebrafish", "yes"), ("something else", "zebrafish"), ("nothing", "more")])
    found = scores(gatekeeper, "zebrafish")
    newest_last = {turn_id: 0.2 * (1 - (2 - turn_id) / 3) for turn_id in (0, 1)}
    assert found[0] == pytest.approx(1.5 + 1.0 + newest_last[0])
    assert found[1] == pytest.approx(0.7 + 1.0 + newest_last[1])
    assert 2 not in found


@pytest.mark.requirement("R-D4.4-formula", "R-S3.3-lex")
def test_lex_is_the_share_of_the_querys_idf_in_a_text() -> None:
    weights = {"redis": 3.0, "lock": 1.0}
    assert lex({"redis", "other"}, weights) == pytest.approx(0.75)
    assert lex({"redis", "lock"}, weights) == 1.0
    assert lex(set(), weights) == 0.0
    gatekeeper = talk([(f"zebrafish in tank {number}", "yes") for number in range(4)], [("one quaternion", "yes")])
    found = scores(gatekeeper, "zebrafish quaternion")
    common, rare = log(6 / 5) + 1, log(6 / 2) + 1
    exact, newest = 0.5, 0.2
    assert found[4] == pytest.approx(1.5 * rare / (common + rare) + exact + newest)
    assert found[3] == pytest.approx(1.5 * common / (common + rare) + exact + newest * 4 / 5)


@pytest.mark.requirement("R-D9-recall-place")
def test_the_ranking_is_the_formula_over_lex() -> None:
    """Whoever changes ``lex`` sees here that the ranking did not follow, or that it did."""
    turns = [("zebrafish and obsidian", "marzipan"), ("quaternion", "zebrafish"), ("obsidian", "")]
    gatekeeper = talk(turns)
    query = "zebrafish obsidian quaternion"
    weights = {word: log(4 / (sum(word in " ".join(turn) for turn in turns) + 1)) + 1 for word in query.split()}
    stems = {word: next(iter(scan_anchors(word).counts)) for word in weights}
    weights = {stems[word]: weight for word, weight in weights.items()}
    for turn_id, (user_text, assistant_text) in enumerate(turns):
        user, assistant = scan_anchors(user_text).counts, scan_anchors(assistant_text).counts
        exact = sum(term in user or term in assistant for term in weights) / len(weights)
        recency = 1 - (2 - turn_id) / 3
        expected = 1.5 * lex(user, weights) + 0.7 * lex(assistant, weights) + 1.0 * exact + 0.2 * recency
        assert scores(gatekeeper, query)[turn_id] == pytest.approx(expected)


@pytest.mark.requirement("R-D4.4-exact", "R-S3.3-exact")
def test_a_block_with_all_exact_terms_gets_the_whole_reward() -> None:
    gatekeeper = talk([("set MAX_RETRIES to 5", "done"), ("set retries to 6", "done"), ("unrelated", "talk")])
    found = scores(gatekeeper, "MAX_RETRIES")
    assert found[0] - found.get(1, 0.0) > SCORE_PARAMS.exact_weight


@pytest.mark.requirement("R-D4.4-exact", "R-S3.3-exact")
def test_all_exact_terms_together_are_rewarded_with_1_and_half_of_them_with_half() -> None:
    gatekeeper = talk([("a zebrafish", "and a quaternion"), ("a zebrafish", "yes"), ("unrelated", "talk")])
    found = scores(gatekeeper, "zebrafish quaternion")
    zebrafish, quaternion = log(4 / 3) + 1, log(4 / 2) + 1
    on_the_users_side = 1.5 * zebrafish / (zebrafish + quaternion)
    on_the_assistants = 0.7 * quaternion / (zebrafish + quaternion)
    assert found[0] == pytest.approx(on_the_users_side + on_the_assistants + 1.0 + 0.2 / 3)
    assert found[1] == pytest.approx(on_the_users_side + 0.5 + 0.2 * 2 / 3)


@pytest.mark.requirement("R-D4.4-recency", "R-S3.3-recency")
def test_of_two_equal_blocks_the_newer_one_wins_by_at_most_0_2() -> None:
    gatekeeper = talk([("about zebrafish", "yes")] * 5)
    found = scores(gatekeeper, "zebrafish")
    assert gatekeeper.recall("zebrafish")[0].turn_id == 4
    assert 0.0 < found[4] - found[0] <= 0.2


@pytest.mark.requirement("R-D4.4-recency", "R-S3.3-recency")
def test_recency_alone_makes_no_candidate() -> None:
    gatekeeper = talk([("about zebrafish", "yes")], [(f"about {word}", "yes") for word in WORDS[1:]])
    assert set(scores(gatekeeper, "zebrafish")) == {0}


@pytest.mark.requirement("R-D4.4-top-20", "R-S3.3-top-20", "R-D9-top-20")
def test_at_most_20_blocks_go_on_to_selection() -> None:
    assert SCORE_PARAMS.candidate_limit == 20
    gatekeeper = talk([(f"zebrafish note {number}", f"tank {number}") for number in range(30)])
    top = stage(gatekeeper, "zebrafish note", "top_20")
    assert (len(top["kept"]), len(top["dropped"])) == (20, 10)


@pytest.mark.requirement("R-D6-no-embedding", "R-S1-no-model")
def test_ranking_is_lexical_a_synonym_finds_nothing() -> None:
    """No embedding, no reranker: words that do not occur cannot be found."""
    gatekeeper = talk(LOCK_EN)
    assert gatekeeper.recall("mutex semaphore") == []
    assert gatekeeper.recall("lock")


@pytest.mark.requirement("R-D4.4-formula")
def test_the_score_in_a_block_is_the_ranking_score() -> None:
    gatekeeper = talk([("about zebrafish", "yes")], [(f"notes on {word}", "kept") for word in WORDS[1:]])
    blocks = {block["turn_id"]: block for block in gatekeeper.select("tell me of the zebrafish")}
    assert blocks[0]["score"] == pytest.approx(scores(gatekeeper, "tell me of the zebrafish")[0])
