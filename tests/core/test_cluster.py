"""Task clustering on scripted sessions: tasks that take turns, hubs, refactorings, small talk, resumption, restarts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_gatekeeper.core.cluster import CLUSTER_PARAMS, TaskMove, TaskTracker
from tests.core.scripted import Session, anchors_of, two_chinese_tasks, two_english_tasks

START = Callable[[], tuple[Session, str, str]]
BOTH = pytest.mark.parametrize("start", [two_english_tasks, two_chinese_tasks], ids=["en", "zh"])


# -- tasks that take turns --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "messages"),
    [
        (
            two_english_tasks,
            [
                "Does the password hashing break for umlauts in user names too?",
                "Make the CSV export use semicolons",
                "Add a test for umlauts in passwords to the login form",
                "The monthly report should stream its CSV rows in order",
            ],
        ),
        (
            two_chinese_tasks,
            [
                "登录的密码哈希是不是也要改？",
                "导出的表格用分号分隔",
                "密码校验加一个测试",
                "月度报表的导出按钮换个颜色",
            ],
        ),
    ],
    ids=["en", "zh"],
)
def test_two_tasks_that_take_turns_are_kept_apart(start: START, messages: list[str]) -> None:
    session, login, export = start()
    decisions = [session.say(message) for message in messages]
    assert [decision.task_id for decision in decisions] == [login, export, login, export]
    assert {decision.move for decision in decisions} == {TaskMove.RESUME}
    assert len(session.tracker.tasks()) == 2


@pytest.mark.parametrize("text", ["yes", "commit this", "ok, go on", "好的", "继续", "提交吧", "why?", "为什么？"])
@BOTH
def test_a_message_that_tells_nothing_stays_with_what_runs(start: START, text: str) -> None:
    session, _, export = start()
    assert session.say(text).task_id == export
    assert session.last is not None
    assert session.last.move is TaskMove.STAY


def test_the_files_of_a_turn_correct_a_message_that_told_nothing() -> None:
    session, login, export = two_english_tasks()
    assert session.say("run the tests again").task_id == export
    moved = session.use("app/auth/password.py")
    assert moved is not None
    assert (moved.task_id, moved.move, moved.turn) == (login, TaskMove.RESUME, session.turn)
    assert moved.reason.startswith(f"works on files of {login}")
    assert session.tracker.running_task == login


def test_work_on_unknown_files_opens_a_task_where_the_words_tell_nothing() -> None:
    session, _, _ = two_english_tasks()
    session.say("now the other one")
    opened = session.use("infra/deploy/terraform.tf")
    assert opened is not None
    assert (opened.move, opened.reason) == (TaskMove.NEW, "works on files that no open task knows")
    assert opened.task_id == "t3"
    assert session.use("infra/deploy/variables.tf") is None


@pytest.mark.parametrize("text", ["look at password.py:12 once more", "列出 app/auth 下的文件"])
def test_a_named_file_or_folder_tells_the_task(text: str) -> None:
    session, login, _ = two_english_tasks()
    assert session.say(text).task_id == login


def test_what_a_cue_decided_no_file_moves() -> None:
    session, login, _ = two_english_tasks()
    session.say("back to the login form")
    assert session.use("app/reports/export.py") is None
    assert session.tracker.running_task == login
    assert session.tracker.tasks_of_file("app/reports/export.py") == ("t1", "t2")


def test_only_the_beginning_of_a_turn_may_move_it() -> None:
    session, _, _ = two_english_tasks()
    session.tracker.params = replace(CLUSTER_PARAMS, watched_uses=0)
    session.say("run the tests again")
    assert session.use("app/auth/password.py") is None


# -- resumption and cues ----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["回到登录页面的问题", "好的，先回到密码校验", "回到 login.py"])
def test_a_chinese_user_goes_back_by_name(text: str) -> None:
    session, login, _ = two_chinese_tasks()
    decision = session.say(text)
    assert (decision.task_id, decision.move) == (login, TaskMove.RESUME)
    assert decision.reason.startswith("says '回到'")


@pytest.mark.parametrize(
    "text", ["回到上一个任务", "繼續之前的任務", "back to the previous task", "let's go back to it"]
)
@BOTH
def test_the_task_before_is_resumed_without_a_name(start: START, text: str) -> None:
    session, login, _ = start()
    assert session.say(text).task_id == login


def test_going_back_and_forth_without_names_alternates() -> None:
    session, login, export = two_chinese_tasks()
    assert [session.say("回到上一个任务").task_id for _ in range(4)] == [login, export, login, export]


def test_cues_in_code_and_quotes_change_nothing() -> None:
    session, _, export = two_english_tasks()
    assert (
        session.say("```\nback to the login form\n```\nmake that CSV comment of the export shorter").task_id == export
    )
    assert session.say('the export button should say "new task"').task_id == export


# -- small talk -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "talk", "work"),
    [
        (
            two_english_tasks,
            "What a lovely sunny weekend, any plans for hiking?",
            "now stream the CSV rows of the report",
        ),
        (two_chinese_tasks, "今天天气真好，周末想去爬山看红叶", "月度报表的导出按钮再改一下"),
    ],
    ids=["en", "zh"],
)
def test_small_talk_is_folded_back(start: START, talk: str, work: str) -> None:
    session, _, export = start()
    chat = session.say(talk)
    assert (chat.move, chat.is_provisional) == (TaskMove.NEW, True)
    session.answer("Enjoy the mountains!")
    back = session.say(work)
    assert (back.task_id, back.move, back.folded) == (export, TaskMove.STAY, ((chat.task_id, export),))
    assert session.tracker.resolve(chat.task_id) == export
    assert [task.task_id for task in session.tracker.tasks()] == ["t1", "t2"]


def test_small_talk_leaves_no_words_behind() -> None:
    session, _, export = two_english_tasks()
    session.say("What a lovely sunny weekend, any plans for hiking?")
    session.say("now stream the CSV rows of the report")
    scores = session.say("hiking on a sunny weekend").scores
    assert scores[export] == 0.0


def test_small_talk_before_another_task_goes_to_the_task_before_it() -> None:
    session, login, export = two_english_tasks()
    chat = session.say("What a lovely sunny weekend, any plans for hiking?")
    decision = session.say("back to the login form")
    assert (decision.task_id, decision.folded) == (login, ((chat.task_id, export),))


def test_small_talk_before_a_new_task_is_folded_too() -> None:
    session, _, export = two_english_tasks()
    chat = session.say("What a lovely sunny weekend, any plans for hiking?")
    decision = session.say("New task: upgrade the linter")
    assert (decision.move, decision.folded) == (TaskMove.NEW, ((chat.task_id, export),))


def test_a_turn_behind_small_talk_that_works_on_known_files_folds_it() -> None:
    session, _, export = two_english_tasks()
    chat = session.say("What a lovely sunny weekend, any plans for hiking?")
    session.say("ok")
    moved = session.use("app/reports/monthly.py")
    assert moved is not None
    assert (moved.task_id, moved.folded) == (export, ((chat.task_id, export),))


def test_a_call_without_files_behind_small_talk_does_not_make_it_a_task() -> None:
    session, _, export = two_english_tasks()
    session.say("What a lovely sunny weekend, any plans for hiking?")
    session.say("ok")
    assert session.use(words="git status") is None
    assert session.say("now stream the CSV rows of the report").task_id == export


def test_a_tool_call_confirms_a_new_task() -> None:
    session, _, _ = two_english_tasks()
    opened = session.say("Upgrade the linter and fix whatever warnings appear in the pipeline")
    assert opened.is_provisional
    confirmed = session.use(words="ruff check")
    assert confirmed is not None
    assert (confirmed.task_id, confirmed.is_provisional) == (opened.task_id, False)
    assert confirmed.reason == "a new task, and work on it began"
    assert session.use(words="ruff format") is None
    assert session.tracker.tasks()[-1].is_provisional is False


def test_a_discussion_is_confirmed_by_the_work_that_follows() -> None:
    session, _, _ = two_english_tasks()
    opened = session.say("Should the pipeline cache its docker layers between runs, or is that brittle?")
    session.answer("Caching docker layers between pipeline runs is fine with a keyed cache.")
    assert session.say("yes, do it").task_id == opened.task_id
    confirmed = session.use("ci/pipeline.yaml")
    assert confirmed is not None
    assert (confirmed.task_id, confirmed.move, confirmed.folded) == (opened.task_id, TaskMove.NEW, ())


def test_a_new_task_that_turns_out_to_be_an_old_one_is_folded_into_it() -> None:
    session, login, _ = two_english_tasks()
    opened = session.say("Customers with accented nicknames complain about a grey banner")
    assert opened.move is TaskMove.NEW
    moved = session.use("app/auth/login.py")
    assert moved is not None
    assert (moved.task_id, moved.folded) == (login, ((opened.task_id, login),))
    assert session.tracker.resolve(opened.task_id) == login


# -- hubs and refactorings --------------------------------------------------------------------------


def test_a_shared_hub_file_glues_no_tasks() -> None:
    session, login, export = two_english_tasks()
    for _ in range(5):
        session.work("back to the login form", "package.json", "README.md")
        session.work("back to the monthly report", "package.json", "README.md")
    assert [task.task_id for task in session.tracker.tasks()] == [login, export]
    assert session.tracker.tasks_of_file("./package.json") == (login, export)
    before = session.tracker.running_task
    assert session.work("open it", "package.json") == before


def test_a_refactoring_that_touches_everything_swallows_no_task() -> None:
    session, login, export = two_english_tasks()
    everywhere = [f"app/m{number}/model.py" for number in range(20)]
    known = ["app/auth/login.py", "app/auth/password.py", "app/reports/export.py", "app/reports/monthly.py"]
    refactoring = session.work("New task: rename Account to Customer everywhere", *known, *everywhere)
    for _ in range(4):
        assert session.work("are umlauts in passwords fine now?", "app/auth/login.py") == login
        assert session.work("rename Account to Customer in the fixtures", "app/m3/model.py") == refactoring
        assert session.work("is the monthly CSV export still streaming?", "app/reports/export.py") == export
    assert len(session.tracker.tasks()) == 3


def test_a_refactoring_among_unknown_files_ends_as_a_task_of_its_own() -> None:
    session, login, export = two_english_tasks()
    files = ["app/auth/login.py", *(f"app/m{number}/model.py" for number in range(7))]
    task = session.work("Rename Account to Customer everywhere in the code base, models first", *files)
    assert task not in (login, export)


# -- goals ------------------------------------------------------------------------------------------


def test_goals_label_tasks_and_bring_them_back() -> None:
    session = Session()
    first = session.say("look into the slow start", ["fast start"])
    second = session.say("and the icons", ["new icons"])
    third = session.say("yes", ["fast start"])
    assert (first.task_id, second.task_id, third.task_id) == ("t1", "t2", "t1")
    assert [task.label for task in session.tracker.tasks()] == ["fast start", "new icons"]


def test_a_goals_words_name_its_task() -> None:
    session = Session()
    session.say("look into it", ["fast start"])
    session.say("crop them", ["new icons"])
    assert session.say("back to the fast start").task_id == "t1"


# -- merging ----------------------------------------------------------------------------------------


def alike() -> Session:
    """Two tasks that a cue kept apart though they work on the same files and words."""
    session = Session()
    session.work("The parser drops comments in nested blocks", "src/parser.py", "src/blocks.py")
    session.work("New task: the parser drops comments in nested blocks", "src/parser.py", "src/blocks.py")
    return session


def test_tasks_that_look_alike_on_three_visits_become_one() -> None:
    session = alike()
    folded = [session.work("parser comments", "src/parser.py") and session.last for _ in range(4)]
    merges = [decision.folded for decision in folded if decision is not None and decision.folded]
    assert merges == [(("t2", "t1"),)]
    assert [task.task_id for task in session.tracker.tasks()] == ["t1"]
    assert session.tracker.resolve("t2") == "t1"
    assert session.tracker.running_task == "t1"


def test_tasks_of_different_goals_are_never_merged() -> None:
    session = Session()
    for _ in range(5):
        for goal in ("g1", "g2"):
            session.say("The parser drops comments in nested blocks", [goal])
            session.use("src/parser.py", "src/blocks.py")
    assert len(session.tracker.tasks()) == 2


def test_visits_that_do_not_follow_each_other_merge_nothing() -> None:
    session = alike()
    session.work("parser comments", "src/parser.py")
    session.work("parser comments", *(f"docs/page{number}.md" for number in range(9)))
    for _ in range(4):
        session.work("parser comments", "src/parser.py")
    assert len(session.tracker.tasks()) == 2


# -- bounds, late results, restarts -----------------------------------------------------------------


def test_the_task_visited_longest_ago_is_closed_and_keeps_its_name() -> None:
    session = Session(TaskTracker(replace(CLUSTER_PARAMS, most_open=4)))
    for name in ("alpha", "beta", "gamma", "delta", "epsilon"):
        session.say(f"New task: {name} {name}ization", [name])
    assert [task.label for task in session.tracker.tasks()] == ["beta", "gamma", "delta", "epsilon"]
    assert session.tracker.resolve("t1") == "t1"
    assert session.say("back to alphaization").task_id == "t5"


def test_work_before_any_message_has_a_task() -> None:
    session = Session(turn=0)
    assert session.tracker.running_task is None
    assert session.use("src/a.py") is None
    assert session.tracker.running_task == "t1"
    assert session.tracker.tasks_of_file("src/a.py") == ("t1",)


def test_a_late_result_goes_to_the_task_of_its_turn() -> None:
    session, login, _ = two_english_tasks()
    assert session.tracker.add_tool_use(0, ["app/auth/session.py"], anchors_of("cookie")) is None
    session.tracker.add_answer(0, anchors_of("samesite"))
    assert session.tracker.tasks_of_file("app/auth/session.py") == (login,)
    assert session.say("back to the samesite cookie").task_id == login


def test_a_late_result_of_a_forgotten_turn_is_dropped() -> None:
    session, _, _ = two_english_tasks()
    for _ in range(CLUSTER_PARAMS.recent_turns):
        session.say("yes")
    session.tracker.add_tool_use(0, ["app/auth/session.py"])
    assert session.tracker.tasks_of_file("app/auth/session.py") == ()


def test_a_task_that_forgot_files_is_not_called_by_them() -> None:
    links = replace(CLUSTER_PARAMS.links, most_files=8)
    session = Session(TaskTracker(replace(CLUSTER_PARAMS, links=links)))
    session.say("fix the parser", ["docs"])
    session.use("src/parser.py")
    for number in range(10):
        session.say("go on", ["docs"])
        session.use(f"docs/page{number}.md")
    assert session.say("look at page8.md").task_id == "t1"
    assert session.tracker.tasks_of_file("src/parser.py") == ()


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("say"),
            st.sampled_from(
                [
                    "fix the login form password",
                    "export the csv report",
                    "yes",
                    "New task: docs",
                    "回到上一个任务",
                    "今天天气真好，周末想去爬山看红叶",
                    "the parser drops comments in nested blocks",
                    "back to the login form",
                    "",
                ],
            ),
        ),
        st.tuples(st.just("goal"), st.sampled_from(["g1", "g2"])),
        st.tuples(st.just("use"), st.sampled_from(["a/x.py", "a/y.py", "b/z.py", "README.md", ""])),
        st.tuples(st.just("answer"), st.sampled_from(["login password", "csv rows", "锁"])),
        st.tuples(st.just("late"), st.sampled_from(["a/x.py", "q.py"])),
    ),
    max_size=40,
)


def play(tracker: TaskTracker, number: int, step: tuple[str, str]) -> object:
    kind, what = step
    if kind == "say":
        return tracker.add_user_message(number, anchors_of(what), (), what)
    if kind == "goal":
        return tracker.add_user_message(number, anchors_of("some words here"), (what,))
    if kind == "use":
        return tracker.add_tool_use(number, [what], {"word": 1.0})
    if kind == "late":
        return tracker.add_tool_use(number - 3, [what])
    return tracker.add_answer(number, anchors_of(what))


@settings(max_examples=150)
@given(STEPS, st.integers(0, 40))
def test_a_tracker_goes_on_after_a_restart_as_if_there_had_been_none(
    steps: list[tuple[str, str]], restart: int
) -> None:
    params = replace(CLUSTER_PARAMS, most_open=4, links=replace(CLUSTER_PARAMS.links, most_files=6, most_anchors=12))
    whole, split = TaskTracker(params), TaskTracker(params)
    number = 0
    for place, step in enumerate(steps):
        number += step[0] in ("say", "goal")
        if place == restart:
            split = TaskTracker.from_dict(json.loads(json.dumps(split.to_dict())), params)
        assert play(whole, number, step) == play(split, number, step)
        assert whole.running_task is None or whole.running_task in {task.task_id for task in whole.tasks()}
        assert len(whole.tasks()) <= params.most_open
    assert whole.to_dict() == split.to_dict()


def test_the_state_stays_small_however_long_the_session() -> None:
    tracker = TaskTracker()
    for turn in range(400):
        tracker.add_user_message(turn, {f"word{turn}x{number}": 1.0 for number in range(20)}, (f"g{turn % 3}",))
        tracker.add_tool_use(turn, [f"src/p{turn}/f{number}.py" for number in range(4)])
    state = tracker.to_dict()
    assert len(state["tasks"]) == 3
    assert len(state["recent"]) == CLUSTER_PARAMS.recent_turns
    for task in state["tasks"].values():
        assert len(task["evidence"]["files"]) <= CLUSTER_PARAMS.links.most_files
        assert len(task["evidence"]["words"]) <= CLUSTER_PARAMS.links.most_anchors
