"""Faults that users of other systems reported: the same input, and its neighbours, does right here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from context_gatekeeper import ContextGatekeeper
from context_gatekeeper.core.cuts import CUT_MARK
from tests.requirements.conversations import LOCK_EN, talk, turn_ids

PROFILES = pytest.mark.parametrize("profile", ["strict", "recall"])


def notes(*texts: str, profile: str = "strict") -> ContextGatekeeper:
    """A gatekeeper that holds the texts as turns without answers."""
    return talk([(text, "") for text in texts], profile=profile)


def found(gatekeeper: ContextGatekeeper, query: str, **settings: bool) -> list[int]:
    """Turn ids as `recall` ranks them, each once."""
    return list(dict.fromkeys(hit.turn_id for hit in gatekeeper.recall(query, **settings)))  # type: ignore[arg-type]


@PROFILES
@pytest.mark.requirement("R-I5-reports-recall")
@pytest.mark.parametrize(
    ("query", "turn_id"), [("静默", 0), ("部署", 0), ("しりとり", 1), ("끝말잇기", 2), ("끝말", 2), ("靜默", 0)]
)
def test_chinese_japanese_and_korean_queries_find_their_page(profile: str, query: str, turn_id: int) -> None:
    gatekeeper = notes(
        "今天讨论了部署方案和静默升级", "今日は成語しりとりをした", "오늘 끝말잇기 게임을 했다", profile=profile
    )
    assert found(gatekeeper, query)[0] == turn_id


@PROFILES
@pytest.mark.requirement("R-I5-reports-recall")
@pytest.mark.parametrize(
    ("long_word", "short_word"), [("quick", "ok"), ("修复", "ok"), ("quick", "go"), ("修复", "锁表"), ("quick", "db")]
)
def test_a_two_letter_term_counts_beside_a_longer_one(profile: str, long_word: str, short_word: str) -> None:
    query = f"{long_word} {short_word}"
    gatekeeper = notes(query, f"{long_word} fix", profile=profile)
    best, other = {hit.turn_id: hit.score for hit in gatekeeper.recall(query)}.items()
    assert (best[0], other[0]) == (0, 1)
    assert best[1] > other[1]
    assert found(gatekeeper, query, all_terms=True) == [0]
    assert found(gatekeeper, f"{query} zzzunknown", all_terms=True) == []


@PROFILES
@pytest.mark.requirement("R-I5-reports-recall")
@pytest.mark.parametrize("query", ["gen", "itgc", "gen-itgc", "悬空", "50"])
def test_names_glued_to_chinese_are_found(profile: str, query: str) -> None:
    gatekeeper = notes("步2 重跑gen-itgc后50条悬空引用清零", "别的内容，什么都没有", profile=profile)
    assert found(gatekeeper, query) == [0]


@PROFILES
@pytest.mark.requirement("R-I5-reports-recall")
@pytest.mark.parametrize(
    ("number", "decoy"),
    [
        ("14.2.1.0", "14 people, 2 rooms, 1 floor, 0 cats"),
        ("3.11.7", "3 eggs, 11 pans, 7 plates"),
        ("1,234.56", "1 and 234 and 56"),
        ("v2.0-rc1", "2 of 0, rc and 1"),
        ("10.0.0.1", "10, 0, 0 and 1"),
    ],
)
def test_versions_and_numbers_are_found_whole(profile: str, number: str, decoy: str) -> None:
    gatekeeper = notes(f"Nexion ERP {number} release", decoy, profile=profile)
    assert found(gatekeeper, number)[0] == 0


@PROFILES
@pytest.mark.requirement("R-I5-reports-recall")
@pytest.mark.parametrize(
    ("query", "turn_id"),
    [
        ("user", 0),
        ("get user", 0),
        ("getUser", 0),
        ("getUserById", 0),
        ("html response", 1),
        ("parseHTMLResponse", 1),
        ("snake", 2),
        ("snake_case_name", 2),
    ],
)
def test_identifiers_are_found_whole_and_by_their_parts(profile: str, query: str, turn_id: int) -> None:
    gatekeeper = notes(
        "def getUserById(id): pass", "def parseHTMLResponse(text): pass", "snake_case_name = 1", profile=profile
    )
    assert found(gatekeeper, query)[0] == turn_id


@PROFILES
@pytest.mark.requirement("R-I5-reports-recall")
def test_the_exact_name_ranks_before_its_parts(profile: str) -> None:
    gatekeeper = notes("def getUserById(id): pass", "get the user by the id", profile=profile)
    assert found(gatekeeper, "getUserById") == [0, 1]


@PROFILES
@pytest.mark.requirement("R-I5-reports-recall")
@pytest.mark.parametrize(
    ("query", "turn_ids_found"),
    [
        ("memory:safe", [0]),
        ('say "hi', [0]),
        ("foo AND bar", [0]),
        ("(python", [0]),
        ("GB/s", [1]),
        ("NEAR(", [1]),
        ("col:*", [1]),
        ("don't", []),
        ("a-b", [1]),
        ("*", []),
        ('"', []),
        ("%_\\", []),
    ],
)
def test_no_query_is_taken_for_query_grammar(profile: str, query: str, turn_ids_found: list[int]) -> None:
    gatekeeper = notes(
        "memory safe, say it in foo, bar and python", "GB/s of a-b near the col", "else", profile=profile
    )
    assert [turn for turn in found(gatekeeper, query) if turn in turn_ids_found] == turn_ids_found
    assert isinstance(gatekeeper.select(query), list)


@PROFILES
@pytest.mark.requirement("R-I5-reports-recall")
@pytest.mark.parametrize("query", ["anything", "", "?!", "静默"])
def test_a_session_without_turns_finds_nothing(profile: str, query: str) -> None:
    gatekeeper = ContextGatekeeper(1, profile=profile)
    assert gatekeeper.recall(query) == []
    assert gatekeeper.select(query) == []
    assert gatekeeper.build_messages(query) == [{"role": "user", "content": query}]


@PROFILES
@pytest.mark.requirement("R-I5-reports-recall")
@pytest.mark.parametrize("holders", [1, 2, 3, 4])
def test_a_term_of_most_pages_still_counts_for_them(profile: str, holders: int) -> None:
    texts = [f"zebra word{n}" if n < holders else f"other{n} word{n}" for n in range(4)]
    gatekeeper = notes(*texts, profile=profile)
    scores = {hit.turn_id: hit.score for hit in gatekeeper.recall("zebra")}
    assert set(scores) == set(range(holders))
    assert all(score > 0 for score in scores.values())
    with_another = {hit.turn_id: hit.score for hit in gatekeeper.recall("zebra word0")}
    assert max(with_another, key=with_another.__getitem__) == 0


@PROFILES
@pytest.mark.requirement("R-I5-reports-recall")
def test_a_limit_above_the_pool_and_an_unknown_word_are_no_errors(profile: str) -> None:
    gatekeeper = notes("alpha beta", "alpha gamma", profile=profile)
    assert len(gatekeeper.recall("alpha", limit=10)) == 2
    assert gatekeeper.recall("zzzunknown", limit=10) == []


@pytest.mark.requirement("R-I5-reports-recall")
def test_a_text_that_was_said_twice_comes_once_and_leaves_room_for_another() -> None:
    seal = (
        "How is the kestrel pump serviced?",
        "Replace the seal every 900 hours. The seal kit is K-77 and the torque is forty newton metres.",
    )
    gatekeeper = talk([seal, ("Do cats sleep?", "Yes.")], [seal, ("Kestrel pump wiring?", "It has three phases.")])
    query = "which torque for the kestrel pump seal, and how many phases has its wiring"
    assert turn_ids(gatekeeper, query) == [2, 3]


@pytest.mark.requirement("R-I5-reports-order")
def test_blocks_stand_in_the_order_of_the_talk_whatever_their_rank() -> None:
    gatekeeper = talk([(f"quaternion note {number}", f"tank {number}") for number in range(1, 21)], profile="recall")
    query = "quaternion note 3, tank 17, tank 9"
    ranked = found(gatekeeper, query)
    sent = turn_ids(gatekeeper, query)
    assert ranked != sorted(ranked)
    assert len(sent) > 2
    assert sent == sorted(sent)
    prompt = gatekeeper.build_prompt(query)
    places = [prompt.index(f"[turn {turn_id}]") for turn_id in sent]
    assert places == sorted(places)


@pytest.mark.requirement("R-I5-reports-order")
def test_turns_of_one_instant_keep_the_order_in_which_they_were_added(tmp_path: Path) -> None:
    texts = [f"page {number * 7919 % 200}" for number in range(200)]
    with ContextGatekeeper(store=tmp_path / "talk.db") as gatekeeper:
        for text in texts:
            gatekeeper.add_turn(text, "", time=1_700_000_000)
        assert [block.user_text for block in gatekeeper.blocks()] == texts
    with ContextGatekeeper(store=tmp_path / "talk.db") as gatekeeper:
        assert [block.user_text for block in gatekeeper.blocks()] == texts


@pytest.mark.requirement("R-I5-reports-order")
@pytest.mark.parametrize("token_budget", [30, 60, 4000])
def test_the_newest_message_is_last_and_word_for_word(token_budget: int) -> None:
    gatekeeper = talk([("delete tmp1", "Done, tmp1 is gone. " * 40)], LOCK_EN, token_budget=token_budget)
    query = "  now write README\n\tplease  "
    assert gatekeeper.build_messages(query)[-1] == {"role": "user", "content": query}
    prompt = gatekeeper.build_prompt(query)
    assert prompt.endswith(f"user: {query}")
    for block in gatekeeper.select(query):
        assert f"[turn {block['turn_id']}]\n" in prompt, "what is older says so"


@pytest.mark.requirement("R-I5-reports-cuts")
def test_json_of_one_line_is_never_a_prefix_that_looks_whole() -> None:
    rows = [{"id": number, "body": f"zebra {number} jumps over stone {number * 7}"} for number in range(500)]
    gatekeeper = talk([("list the zebras", json.dumps({"messages": rows}))], [("thanks", "welcome")])
    (answer,) = [block["assistant"] for block in gatekeeper.select("which stone for zebra 77") if not block["turn_id"]]
    assert len(answer) < 2100
    assert f"\n{CUT_MARK}\n" in answer


@pytest.mark.requirement("R-I5-reports-cuts")
def test_every_line_of_a_listing_that_is_shown_is_one_of_the_original() -> None:
    lines = [f"src/f{number}.py:{number}: token_{number}" for number in range(300)]
    gatekeeper = talk([("grep for the tokens", "\n".join(lines))], [("thanks", "welcome")])
    (answer,) = [block["assistant"] for block in gatekeeper.select("where is token_77") if not block["turn_id"]]
    shown = answer.split("\n")
    assert lines[77] in shown
    assert len(shown) < 10
    assert set(shown) <= set(lines)


@pytest.mark.requirement("R-I5-reports-cuts")
@pytest.mark.parametrize("token_budget", [40, 60, 90, 140, 220])
def test_a_block_cut_to_the_budget_keeps_fences_balanced_and_emoji_whole(token_budget: int) -> None:
    script = "A script:\n\n```bash\n#!/bin/bash\n" + "echo hello\n" * 60 + "```\n\ntail " + "👨‍👩‍👧‍👦🇩🇪e\u0301" * 60
    gatekeeper = talk([("show me the script", script)], token_budget=token_budget)
    (block,) = gatekeeper.select("go on")
    answer = block["assistant"]
    assert answer.count("```") % 2 == 0
    assert answer.replace("```", "").count("`") == 0
    answer.encode("utf-8")
    for piece in answer.split(f"\n{CUT_MARK}\n"):
        assert not piece.startswith(("\u200d", "\u0301"))
        assert not piece.endswith("\u200d")
