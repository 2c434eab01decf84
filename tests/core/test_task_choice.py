"""Which task a message means: goal, cue, link, and the rules of the zone between."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from context_gatekeeper.core.task_choice import FIRST_CHOICE, TaskChoice, TaskMessage, choose_task, linked_other
from context_gatekeeper.core.task_links import FileIndex, TaskEvidence
from context_gatekeeper.core.task_records import CLUSTER_PARAMS, OpenTask
from tests.core.scripted import anchors_of


def task(words: str, files: str = "", goal: str = "", last_turn: int = 0) -> OpenTask:
    known = TaskEvidence(goals={goal} if goal else set())
    known.add_words(anchors_of(words))
    for file in files.split():
        known.add_file(file)
    return OpenTask(known, 0, last_turn)


LOGIN = "login form password umlauts hashing 登录页面 密码校验"
EXPORT = "csv export monthly report button 月度报表 导出按钮"


def open_tasks(**changes: OpenTask) -> dict[str, OpenTask]:
    return {
        "t1": task(LOGIN, "app/auth/login.py", last_turn=1),
        "t2": task(EXPORT, "app/reports/export.py", last_turn=2),
        **changes,
    }


def choose(text: str, *goals: str, tasks: Mapping[str, OpenTask] | None = None, running: str = "t2") -> TaskChoice:
    known = tasks or open_tasks()
    index = FileIndex(one.evidence for one in known.values())
    return choose_task(known, running, index, TaskMessage(anchors_of(text), goals, text), CLUSTER_PARAMS)


def test_the_first_message_opens_a_task() -> None:
    assert (FIRST_CHOICE.task_id, FIRST_CHOICE.reason) == (None, "first message")


# -- goals ------------------------------------------------------------------------------------------


def test_a_single_goal_decides_against_words_and_cues() -> None:
    tasks = open_tasks(t3=task("docs", goal="write docs"))
    choice = choose("back to the login form password", "write docs", tasks=tasks)
    assert (choice.task_id, choice.is_explicit) == ("t3", True)
    assert choice.reason == "serves the goal 'write docs'"


def test_an_unknown_goal_opens_a_task() -> None:
    choice = choose("something about pictures", "crop pictures")
    assert (choice.task_id, choice.reason) == (None, "first message of the goal 'crop pictures'")


def test_a_goal_set_in_mid_task_is_given_to_the_task_that_runs() -> None:
    choice = choose("the csv export button", "finish the export")
    assert (choice.task_id, choice.reason) == ("t2", "the running task gets the goal 'finish the export'")


def test_a_second_goal_opens_a_task_even_where_words_are_shared() -> None:
    tasks = open_tasks(t2=task(EXPORT, goal="finish the export"))
    assert choose("the csv export button", "speed up the export", tasks=tasks).task_id is None


def test_several_goals_are_evidence_only() -> None:
    tasks = open_tasks(t1=task(LOGIN, goal="g1"), t2=task(EXPORT, goal="g2"))
    assert choose("the csv export button", "g1", "g2", tasks=tasks).task_id == "t2"
    assert choose("the password hashing", "g1", "g2", tasks=tasks).task_id == "t1"


# -- cues -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["New task: the csv export button blinks", "新任务：导出按钮的颜色"])
def test_a_new_task_is_one_whatever_it_shares(text: str) -> None:
    choice = choose(text)
    assert (choice.task_id, choice.is_explicit) == (None, True)


@pytest.mark.parametrize("text", ["back to the login form", "回到登录页面", "先切换到密码校验", "switch to login.py"])
def test_a_named_task_is_resumed(text: str) -> None:
    choice = choose(text)
    assert choice.task_id == "t1"
    assert choice.is_explicit
    assert choice.reason.startswith(
        ("says 'back to' and names t1", "says '回到' and names t1", "says '切换到'", "says 'sw")
    )


@pytest.mark.parametrize("text", ["back to the previous task", "回到刚才的任务"])
def test_the_task_before_is_the_one_visited_last(text: str) -> None:
    tasks = open_tasks(t3=task("docs", last_turn=3))
    assert choose(text, tasks=tasks, running="t3").task_id == "t2"
    assert choose(text, tasks=tasks, running="t2").task_id == "t3"


def test_without_a_task_before_nothing_is_resumed() -> None:
    tasks = {"t1": task(LOGIN)}
    choice = choose("back to the previous task", tasks=tasks, running="t1")
    assert (choice.task_id, choice.is_explicit) == ("t1", False)


@pytest.mark.parametrize("text", ["switch to main", "return to caller", "切换到主分支", "回到第一行"])
def test_a_cue_that_names_no_task_is_none(text: str) -> None:
    choice = choose(text)
    assert (choice.task_id, choice.is_explicit) == ("t2", False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("换个任务，登录页面的密码校验", "t1"),
        ("Switch topics: the password hashing of the login form", "t1"),
        ("换个话题：写一份发布说明", None),
        ("换个任务，导出按钮", None),
    ],
)
def test_leaving_goes_to_another_task_that_is_meant_or_to_a_new_one(text: str, expected: str | None) -> None:
    choice = choose(text)
    assert (choice.task_id, choice.is_explicit) == (expected, True)


def test_a_cue_says_nothing_of_the_task_it_names() -> None:
    assert choose("go back to the previous task").cue_words == "back to the previous task"
    assert choose("the csv export").cue_words == ""


# -- links ------------------------------------------------------------------------------------------


def test_a_message_joins_the_task_it_shares_words_with() -> None:
    choice = choose("are umlauts in a password hashed now?")
    assert choice.task_id == "t1"
    assert choice.reason == f"shares files or words with t1 ({choice.scores['t1']:.2f}; t2: 0.00)"


def test_a_message_about_what_runs_stays() -> None:
    choice = choose("make the export button green")
    assert choice.task_id == "t2"
    assert choice.reason.startswith("shares files or words with what runs")


def test_a_message_with_a_little_in_common_stays() -> None:
    choice = choose("the monthly report needs sorted columns for printing")
    assert CLUSTER_PARAMS.new_below <= choice.scores["t2"] <= CLUSTER_PARAMS.join_above
    assert (choice.task_id, choice.reason) == ("t2", "shares too little with any other task to leave this one")


def test_words_that_every_task_holds_open_none() -> None:
    tasks = {name: task("deploy staging rollback cluster", last_turn=turn) for turn, name in enumerate(("t1", "t2"))}
    choice = choose("deploy staging, rollback cluster", tasks=tasks)
    assert (choice.task_id, choice.reason) == ("t2", "says nothing that tells the open tasks apart")


@pytest.mark.parametrize("text", ["yes", "好的", "commit", "", "提交吧"])
def test_a_message_that_says_too_little_stays(text: str) -> None:
    choice = choose(text)
    assert (choice.task_id, choice.reason) == ("t2", "says too little to tell")


def test_a_short_message_that_points_back_stays() -> None:
    choice = choose("why does it flicker on old screens, and does that matter?")
    assert (choice.task_id, choice.reason) == ("t2", "is short and points back at what runs")


@pytest.mark.parametrize(
    "text",
    ["Upgrade the linter and fix whatever warnings appear in the pipeline", "升级构建流水线的镜像，清理过期的缓存目录"],
)
def test_a_message_with_something_new_to_say_opens_a_task(text: str) -> None:
    choice = choose(text)
    assert (choice.task_id, choice.reason, choice.is_explicit) == (None, "shares nothing with the open tasks", False)


@pytest.mark.parametrize(
    ("running", "other", "expected"),
    [
        (0.0, 0.46, "t1"),
        (0.50, 0.55, None),
        (0.50, 0.65, "t1"),
        (0.10, 0.31, "t1"),
        (0.15, 0.30, None),
        (0.0, 0.19, None),
        (0.40, 0.46, None),
        (0.0, 0.0, None),
    ],
)
def test_another_task_must_be_ahead(running: float, other: float, expected: str | None) -> None:
    assert linked_other(open_tasks(), "t2", {"t1": other, "t2": running}, CLUSTER_PARAMS) == expected


def test_ties_go_to_the_task_visited_last() -> None:
    tasks = open_tasks(t3=task("docs", last_turn=3))
    assert linked_other(tasks, "t3", {"t1": 0.6, "t2": 0.6, "t3": 0.0}, CLUSTER_PARAMS) == "t2"
