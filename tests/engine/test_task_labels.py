"""Which task each turn of a session belongs to."""

from __future__ import annotations

from context_gatekeeper.engine.task_labels import TaskLabels
from tests.engine.agents import answered, call, gave, returned, said

LOGIN = "Fix the login form: the password field of auth/login.py rejects umlauts"
REPORT = "Switch to another task: write the quarterly sales report generator in reports/sales.py"


def follow(labels: TaskLabels, words: str, path: str, name: str) -> None:
    labels.add(said(words))
    labels.add(answered("Reading it.", call(f"c{labels.turn}", "Read", file_path=path)))
    labels.add(returned(gave(f"c{labels.turn}", f"def {name}(): ...")))


def test_nothing_has_a_task_before_the_first_text_of_a_person() -> None:
    labels = TaskLabels()
    labels.add(said("context of the project", origin="meta"))
    assert (labels.turn, labels.running_task, labels.task_of(0)) == (-1, None, None)


def test_a_session_may_begin_with_a_tool_call() -> None:
    labels = TaskLabels()
    labels.add(answered(call("c", "Read", file_path="auth/login.py")))
    assert labels.running_task is not None


def test_another_task_is_told_apart_and_the_first_is_found_again() -> None:
    labels = TaskLabels()
    follow(labels, LOGIN, "auth/login.py", "login")
    first = labels.running_task
    follow(labels, REPORT, "reports/sales.py", "sales")
    second = labels.running_task
    follow(labels, "Back to the login form: the umlauts of the password field again", "auth/login.py", "login")
    assert first != second
    assert [labels.task_of(turn) for turn in range(3)] == [first, second, first]
    assert {decision.task_id for decision in labels.decisions} == {first, second}


def test_chinese_tasks_are_told_apart_too() -> None:
    labels = TaskLabels()
    follow(labels, "修复登录表单：auth/login.py 的密码字段不接受变音符号", "auth/login.py", "login")
    first = labels.running_task
    follow(labels, "换个任务：给 reports/sales.py 写季度销售报表生成器", "reports/sales.py", "sales")
    assert labels.running_task != first
    assert labels.task_of(0) == first
