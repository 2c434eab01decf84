"""Sentences that decide, and sentences that lay down a rule."""

from __future__ import annotations

import pytest
from hypothesis import given

from context_gatekeeper.core.card_marks import constraint_mark, decision_mark, find_decisions, says_fixed
from context_gatekeeper.core.card_prose import read_prose
from tests.core.texts import ANY_TEXT


def decisions(text: str, *, by_user: bool = False) -> list[str]:
    return [text[start:end] for start, end, _ in find_decisions(read_prose(text, by_user=by_user), by_user=by_user)]


def rules(text: str) -> list[str]:
    prose = read_prose(text, by_user=True)
    return [text[start:end] for start, end in prose.spans if constraint_mark(prose.quiet[start:end]) is not None]


@pytest.mark.parametrize(
    "sentence",
    [
        "We decided to keep the old table.",
        "I've chosen nothing, we agreed on SQLite.",
        "We chose Redis for the queue.",
        "Use tabs instead of spaces in the Makefile.",
        "Use rg rather than grep.",
        "Instead of a thread pool we use a process.",
        "We won't support Windows.",
        "I am not going to touch the parser.",
        "Root cause: the lock was never released.",
        "The root cause is a stale index.",
        "The problem is that the cache is shared.",
        "Conclusion: the fix holds.",
        "**Decision:** SQLite it is.",
        "我们决定把缓存放到 Redis。",
        "最終決定採用 SQLite。",
        "改用异步写入。",
        "以后不再使用旧接口。",
        "结论：索引太旧。",
        "我们选择 PostgreSQL。",
        "因为锁没有释放，所以请求会卡住。",
        "根本原因是连接没有关闭。",
    ],
)
def test_decisions_are_found_in_both_languages(sentence: str) -> None:
    assert decisions(sentence) == [sentence]


@pytest.mark.parametrize(
    "sentence",
    [
        "If we chose Redis we would need a server.",
        "We might have decided too early.",
        "Have we decided on SQLite?",
        "He said “we decided to stop”.",
        "> We decided to stop.",
        "```\nwe decided to stop\n```",
        "I recommend that we use Redis instead of files.",
        "Let me find the root cause: it is somewhere.",
        "We won't be able to see it.",
        "The tests won't compile.",
        "They use os.environ instead of the settings.",
        "如果采用 Redis，就要多一台机器。",
        "假如我們決定改用 SQLite 呢？",
        "是否采用 Redis？",
        "建议采用 Redis。",
        "由你决定用什么。",
        "请选择一个方案。",
        "现在不再报错。",
        "这是决定性的一步。",
        "| 问题 | 决定 |",
        "no",
    ],
)
def test_hypotheticals_quotes_code_questions_and_proposals_decide_nothing(sentence: str) -> None:
    assert decisions(sentence) == []


@pytest.mark.parametrize(
    ("sentence", "by_user", "by_agent"),
    [
        ("let's use two spaces", True, False),
        ("Let's go with option 2.", True, False),
        ("it should be blue", True, False),
        ("I'd rather keep both", True, False),
        ("let's look at the log", False, False),
        ("let's test it", False, False),
        ("let's do it", False, False),
        ("let's do a review", False, False),
        ("I need to use a set instead", True, False),
        ("this double read should be avoided", False, False),
        ("We decided to stop.", True, True),
    ],
)
def test_a_user_decides_by_wishing_too(sentence: str, by_user: bool, by_agent: bool) -> None:
    assert (decision_mark(sentence, by_user=True) is not None) is by_user
    assert (decision_mark(sentence, by_user=False) is not None) is by_agent


def test_a_rule_is_no_decision() -> None:
    assert decisions("We decided that you must never push to main.", by_user=True) == []


def test_a_heading_hands_its_decision_to_the_list_below() -> None:
    text = "我的决定：\n- 存储用 SQLite\n- 缓存两小时\n\n其他照旧。"
    assert decisions(text) == ["- 存储用 SQLite", "- 缓存两小时"]
    assert decisions("Root cause found, the root cause is this:\n- a lock\n") == []


def test_a_heading_hands_its_decision_to_a_table_or_a_sentence() -> None:
    rows = ["| 问题 | 决定 |", "|---|---|", "| 存储 | SQLite |", "| 3. Wait | we decided. Two |", "| 超时 | 两分钟 |"]
    table = "其他问题我的决定：\n\n{}\n完。".format("\n".join(rows))
    assert decisions(table) == rows[2:]
    assert decisions("**Decision:**\n\nThe queue stays in memory. It is small.") == ["The queue stays in memory."]
    assert decisions("Our decisions:\n\nWhich ones?") == []
    assert decisions("Our decisions:") == []


def test_a_listed_question_or_blank_item_ends_the_list() -> None:
    assert decisions("We decided on these:\n- SQLite store\n- 1\n- and Redis\n") == ["- SQLite store"]


@pytest.mark.parametrize(
    "sentence",
    [
        "You must keep the API.",
        "Never push to main.",
        "Please always run the linter.",
        "don't touch the tests",
        "Do not rename anything.",
        "keep it simple, don’t add options",
        "From now on write the notes in English.",
        "make sure it runs on Windows",
        "we don't need the second test",
        "I don't want a new dependency",
        "no need to commit",
        "The file must not be wider than the screen.",
        "only change the header file",
        "Can you please never commit for me?",
        "不要改测试。",
        "必须兼容旧版本。",
        "這裡只能用標準庫。",
        "以后都用中文回答。",
        "別用第三方庫。",
        "不用写测试代码。",
        "禁止直接提交。",
        "务必先备份。",
    ],
)
def test_constraints_are_found_in_both_languages(sentence: str) -> None:
    assert rules(sentence) == [sentence]


@pytest.mark.parametrize(
    "sentence",
    [
        "I don't know.",
        "I don't think it works.",
        "It must have been the cache.",
        "I must say it looks fine.",
        "Never mind.",
        "It never works.",
        "this always fails",
        "That should not be too hard.",
        "why must it be so?",
        "can you add a test so we don't break this?",
        "Maybe we must wait.",
        "This ensures that we stop and never retry.",
        "No problem!",
        "I just want to make sure.",
        "要不要重写？",
        "必须改吗？",
        "不要紧。",
        "可能不准确；",
        "不用谢。",
        "特别的人",
        "ok",
    ],
)
def test_statements_and_questions_are_no_constraints(sentence: str) -> None:
    assert rules(sentence) == []


@pytest.mark.parametrize("sentence", ["it works now", "that fixed it, thanks", "修好了", "已經解決了", "现在正常了"])
def test_a_user_can_say_that_it_is_fixed(sentence: str) -> None:
    assert says_fixed(read_prose(sentence, by_user=True).quiet)


@pytest.mark.parametrize(
    "sentence", ["is it fixed?", "it is still not fixed", "please get this fixed", "修好了吗", "还没有修好了", "go on"]
)
def test_a_wish_or_a_doubt_is_no_fix(sentence: str) -> None:
    assert not says_fixed(read_prose(sentence, by_user=True).quiet)


@given(ANY_TEXT)
def test_marks_stand_inside_their_sentence(text: str) -> None:
    for by_user in (True, False):
        for start, end, mark in find_decisions(read_prose(text, by_user=by_user), by_user=by_user):
            assert start <= mark < end
