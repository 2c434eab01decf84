"""Scripted agent sessions for the tests of task clustering: our own words, in English and Chinese."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.cluster import TaskDecision, TaskTracker
from context_gatekeeper.core.weights import base_weight


def anchors_of(text: str) -> dict[str, float]:
    """Anchors of a text by their background weight: a fresh session knows no IDF yet."""
    scan = scan_anchors(text)
    return {term: base_weight(term) * scan.shares[term] for term in scan.counts}


@dataclass
class Session:
    """Plays messages and tool calls into a tracker, one turn after the other."""

    tracker: TaskTracker = field(default_factory=TaskTracker)
    turn: int = -1
    last: TaskDecision | None = None

    def say(self, text: str, goals: Sequence[str] = ()) -> TaskDecision:
        """A user message."""
        self.turn += 1
        self.last = self.tracker.add_user_message(self.turn, anchors_of(text), goals, text)
        return self.last

    def use(self, *files: str, words: str = "") -> TaskDecision | None:
        """One tool call of the running turn."""
        return self.tracker.add_tool_use(self.turn, files, anchors_of(words))

    def answer(self, text: str) -> None:
        """What the agent says."""
        self.tracker.add_answer(self.turn, anchors_of(text))

    def work(self, text: str, *files: str, answer: str = "") -> str:
        """A message, a call for each file, an answer; gives the turn's task in the end."""
        self.say(text)
        for file in files:
            self.use(file)
        if answer:
            self.answer(answer)
        assert self.tracker.running_task is not None
        return self.tracker.running_task


def two_english_tasks() -> tuple[Session, str, str]:
    """A login fix and a report export, both begun; the export runs."""
    session = Session()
    login = session.work(
        "The login form rejects passwords with umlauts, find out why",
        "app/auth/login.py",
        "app/auth/password.py",
        answer="The password normalisation in login.py strips combining marks before hashing.",
    )
    export = session.work(
        "New task: add a CSV export to the monthly report page",
        "app/reports/export.py",
        "app/reports/monthly.py",
        answer="The monthly report gets an export button that streams CSV rows.",
    )
    return session, login, export


def two_chinese_tasks() -> tuple[Session, str, str]:
    """The same in Chinese; the export runs."""
    session = Session()
    login = session.work(
        "登录页面提示密码错误，帮我查一下密码校验的逻辑",
        "app/auth/login.py",
        "app/auth/password.py",
        answer="密码校验在哈希之前去掉了组合字符，所以登录失败。",
    )
    export = session.work(
        "换个任务：给月度报表加一个导出表格的按钮",
        "app/reports/export.py",
        "app/reports/monthly.py",
        answer="月度报表增加了导出按钮，按行写出表格。",
    )
    return session, login, export
