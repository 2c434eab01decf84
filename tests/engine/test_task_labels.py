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


# -- goals --------------------------------------------------------------------------------------

GOALS = {"g1": "The login form takes umlauts in its password field.", "g2": "季度销售报表自动生成"}


def test_a_text_serves_the_goal_of_whose_words_it_holds_most() -> None:
    labels = TaskLabels(GOALS)
    assert labels.served(LOGIN) == ("g1",)
    assert labels.served("写季度销售报表的生成器，让它自动生成") == ("g2",)
    assert labels.served("What about the weather in Lisbon?") == ()
    assert labels.served("the form") == ()
    assert TaskLabels().served(LOGIN) == ()


def test_a_goal_may_be_called_by_its_id() -> None:
    labels = TaskLabels(GOALS)
    assert labels.served("Now go on with goal G2 please.") == ("g2",)
    assert labels.served("先做目标 g1") == ("g1",)
    assert labels.served("goal g9 is unknown, and g1 is a garbage collector") == ()


def test_two_goals_with_the_same_words_tie() -> None:
    labels = TaskLabels({"g1": "Ship the order export.", "g2": "Ship the order export."})
    assert labels.served("ship the order export today") == ("g1", "g2")


def test_what_we_put_into_the_window_ourselves_serves_no_goal() -> None:
    quoted = f"<recalled-0123456789abcdef>\n{LOGIN}\n</recalled-0123456789abcdef>\nThanks."
    assert TaskLabels(GOALS).served(quoted) == ()


def test_a_goal_of_words_without_content_is_served_by_none() -> None:
    assert TaskLabels({"g1": "!!!"}).served("!!! anything") == ()


def test_all_turns_of_a_task_serve_the_goal_that_one_of_them_names() -> None:
    labels = TaskLabels(GOALS)
    follow(labels, LOGIN, "auth/login.py", "login")
    follow(labels, "go on", "auth/login.py", "login")
    follow(labels, REPORT, "reports/sales.py", "sales")
    assert [labels.goals_of(turn) for turn in range(4)] == [("g1",), ("g1",), (), ()]


def test_a_goal_is_taken_up_again_when_another_task_ran_meanwhile() -> None:
    labels = TaskLabels(GOALS)
    assert labels.taken_up_again(LOGIN) == ()
    follow(labels, LOGIN, "auth/login.py", "login")
    assert labels.taken_up_again(LOGIN) == ()
    follow(labels, REPORT, "reports/sales.py", "sales")
    assert labels.taken_up_again(LOGIN) == (GOALS["g1"],)
    follow(labels, "Now goal g1 again.", "auth/login.py", "login")
    assert labels.task_of(2) == labels.task_of(0)


def test_goals_may_be_told_and_set_later() -> None:
    labels = TaskLabels()
    labels.add(said(LOGIN), ["g7"])
    assert labels.goals_of(0) == ("g7",)
    labels.set_goals(GOALS)
    labels.add(said("Now goal g2."))
    assert labels.goals_of(1) == ("g2",)
