"""Explicit cues: what says that the task changes, and what only looks like it."""

from __future__ import annotations

import pytest
from hypothesis import given

from context_gatekeeper.core.task_cues import CueKind, TaskCue, read_task_cue
from tests.core.texts import ANY_TEXT, STORMS

LOG = "\n".join(f"step {number} done in 12 ms" for number in range(40))


@pytest.mark.parametrize(
    ("text", "kind", "target"),
    [
        ("换个任务：写一个导出脚本", CueKind.LEAVE, "写一个导出脚本"),
        ("換個話題吧，聊聊支付", CueKind.LEAVE, "聊聊支付"),
        ("这个先放一放，看看支付", CueKind.LEAVE, "看看支付"),
        ("switch topics: the invoice layout", CueKind.LEAVE, "the invoice layout"),
        ("Let's put this aside. The build is broken", CueKind.LEAVE, ""),
        ("Something else: the README is stale", CueKind.LEAVE, "the readme is stale"),
        ("新任务：加一个导出按钮", CueKind.NEW, "加一个导出按钮"),
        ("好的，下一个任务是清理日志", CueKind.NEW, "是清理日志"),
        ("New task: add a CSV export", CueKind.NEW, "add a csv export"),
        ("thanks. now, another task: docs", CueKind.NEW, "docs"),
        ("Switch to a new task", CueKind.NEW, ""),
        ("回到登录页面的问题，刚才那个修好了吗", CueKind.BACK, "登录页面的问题"),
        ("好的，回到「支付回调」", CueKind.BACK, "「支付回调」"),
        ("言归正传，登录怎么样了", CueKind.BACK, "登录怎么样了"),
        ("ok, let's get back to the login test", CueKind.BACK, "the login test"),
        ("Can we return to the parser and finish it?", CueKind.BACK, "the parser"),
        ("resume the export work", CueKind.BACK, "the export work"),
        ("切換到支付模塊", CueKind.SWITCH, "支付模块"),
        ("please switch to the invoice thing", CueKind.SWITCH, "the invoice thing"),
        ("先回到 `login.py` 的测试", CueKind.BACK, "`login.py` 的测试"),
    ],
)
def test_a_cue_and_what_it_names_are_read(text: str, kind: CueKind, target: str) -> None:
    cue = read_task_cue(text)
    assert cue is not None
    assert (cue.kind, cue.target, cue.names_previous) == (kind, target, False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("回到上一个任务", "回到上一个任务"),
        ("回到正題吧", "回到正题吧"),
        ("继续之前的任务", "继续之前的任务"),
        ("go back to the previous task", "back to the previous task"),
        ("Let's go back to what we were doing", "back to what we were doing"),
        ("back to work", "back to work"),
        ("言归正传。", "言归正传"),
    ],
)
def test_the_task_before_may_be_meant_without_its_name(text: str, words: str) -> None:
    assert read_task_cue(text) == TaskCue(CueKind.BACK, words, "", names_previous=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fix the login test",
        "```\nback to the parser\n```\nwhy does this fail?",
        "> back to the parser\nwhy?",
        "| new task: x |",
        'he said "back to the parser"',
        "“回到登录页面”翻译成英文",
        "`switch to main` fails",
        "the docs say: switch to manual mode",
        "if we go back to polling, does it scale?",
        "don't switch to the new task yet",
        "不要换个话题",
        "a new task queue is needed",
        "新的任务列表组件怎么写",
        "I moved back to Berlin",
        "what happens when the user returns to the form?",
    ],
)
def test_code_quotes_and_ordinary_sentences_are_no_cue(text: str) -> None:
    assert read_task_cue(text) is None


def test_a_cue_inside_pasted_text_is_none_but_the_last_line_counts() -> None:
    assert read_task_cue(f"look at this\n{LOG}\nback to the parser\n{LOG}") is None
    cue = read_task_cue(f"look at this\n{LOG}\nback to the parser")
    assert cue is not None
    assert cue.target == "the parser"


@given(ANY_TEXT)
def test_any_text_can_be_read(text: str) -> None:
    cue = read_task_cue(text)
    assert cue is None or cue.words


@pytest.mark.parametrize("text", STORMS.values(), ids=STORMS)
def test_storms_of_one_character_hold_no_cue(text: str) -> None:
    assert read_task_cue(text) is None


@pytest.mark.parametrize("piece", ["ok ", "好的，", "now, then ", "继续", "回", "the new "])
def test_storms_of_lead_ins_are_read_in_linear_time(piece: str) -> None:
    assert read_task_cue(piece * 20_000) is None
