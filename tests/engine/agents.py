"""Sessions of agents of our own writing, message by message."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from context_gatekeeper.core.redact import RedactionMode
from context_gatekeeper.engine.importing import ImportResult, SessionImporter
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores.sealed import Redactor, SpansInMemory
from context_gatekeeper.types import AgentMessage, AgentSession, BlockKind, ContentBlock, MessageRole, Page

SAMPLES = Path(__file__).parents[1] / "data" / "agents"
POOL = "default"


def text(words: str) -> ContentBlock:
    return ContentBlock(BlockKind.TEXT, words)


def thinking(words: str = "", hidden_chars: int = 0) -> ContentBlock:
    return ContentBlock(BlockKind.THINKING, words, hidden_chars=hidden_chars)


def call(call_id: str, name: str, arguments: str | None = None, **members: object) -> ContentBlock:
    """A tool call; its arguments are the JSON of ``members`` unless they are given as a text."""
    told = json.dumps(members, ensure_ascii=False) if arguments is None else arguments
    return ContentBlock(BlockKind.TOOL_CALL, told, call_id, name)


def gave(call_id: str, output: str, name: str = "", *, is_error: bool = False) -> ContentBlock:
    return ContentBlock(BlockKind.TOOL_RESULT, output, call_id, name, is_error)


def said(words: str, *, origin: str = "", time: float | None = None) -> AgentMessage:
    return AgentMessage(MessageRole.USER, (text(words),), time=time, origin=origin)


def system(words: str) -> AgentMessage:
    return AgentMessage(MessageRole.SYSTEM, (text(words),))


def answered(*blocks: ContentBlock | str, is_call: bool = True, time: float | None = None) -> AgentMessage:
    made = tuple(text(block) if isinstance(block, str) else block for block in blocks)
    return AgentMessage(MessageRole.ASSISTANT, made, time=time, is_call=is_call)


def returned(*blocks: ContentBlock, time: float | None = None) -> AgentMessage:
    return AgentMessage(MessageRole.TOOL, blocks, time=time)


def session(*messages: AgentMessage, name: str = "s", folder: str = "") -> AgentSession:
    return AgentSession(name, "test", messages, working_folder=folder)


def two_tasks(finding: str = "", rule: str = "", *more: AgentMessage, name: str = "s") -> AgentSession:
    """One task in English and one in Chinese; ``finding`` and ``rule`` end their texts, ``more`` is of the first."""
    return session(
        said("Fix the order export of the bookshop in export.py please, it drops the last invoice row."),
        answered(call("a", "Read", file_path="/srv/shop/export.py")),
        returned(gave("a", "def export(): ...")),
        *more,
        answered(f"The loop stops one row early.{finding}"),
        said(f"换个任务：给猫咪诊所写一份疫苗提醒邮件的模板。{rule}"),
        answered(call("b", "Write", file_path="/srv/clinic/mail.txt", content="亲爱的主人")),
        returned(gave("b", "written")),
        answered("写好了。"),
        name=name,
    )


def grown(first: AgentSession, *more: AgentMessage) -> AgentSession:
    return AgentSession(
        first.session_id, first.source, (*first.messages, *more), first.events, first.working_folder, first.warnings
    )


def blocks_of(one: AgentSession) -> list[ContentBlock]:
    return [block for message in one.messages for block in message.blocks]


def importer(store: PageStore, *, mode: RedactionMode = RedactionMode.KEEP, owner: str = "") -> SessionImporter:
    redactor = Redactor(store.handle_key(POOL), mode, SpansInMemory())
    return SessionImporter(store, POOL, redactor.redact_draft, redactor.redact_text, owner)


def take_in(store: PageStore, one: AgentSession, *, owner: str = "") -> ImportResult:
    return importer(store, owner=owner).run(one)


def stored(store: PageStore, name: str = "s") -> list[Page]:
    return list(store.scan(POOL, name))


def shown(pages: Iterable[Page]) -> list[tuple[str, str]]:
    """(kind or side, text) of pages, "" for both where nothing was said."""
    return [
        (page.kind.value if page.kind != "turn" else page.role.value, page.text) if page.text else ("", "")
        for page in pages
    ]


FIXING = session(
    system("You mend shops."),
    said("The order export is too slow, please fix it."),
    answered(
        thinking("first look at the query"),
        "I look at the query and the tests.",
        call("c1", "Read", file_path="/srv/shop/export.py"),
        call("c2", "Grep", pattern="def export", path="/srv/shop"),
    ),
    returned(gave("c1", "     1\tdef export(orders):\n     2\t    return [row(o) for o in orders]\n", "Read")),
    returned(gave("c2", "/srv/shop/export.py:1:def export(orders):", "Grep")),
    answered(
        call(
            "c3",
            "Edit",
            file_path="/srv/shop/export.py",
            old_string="return [row(o) for o in orders]",
            new_string="yield from map(row, orders)",
        )
    ),
    returned(gave("c3", "The file was edited.", "Edit")),
    answered(call("c4", "Bash", command="pytest -q tests/test_export.py")),
    returned(
        gave(
            "c4", "Exit code 1\nE   TypeError: 'generator' object is not subscriptable\n1 failed", "Bash", is_error=True
        )
    ),
    answered("The caller indexes the result. Use a list again, but load the rows in one query."),
    said("Then do that. Never touch the schema."),
    answered(
        call("c5", "Write", file_path="/srv/shop/export.py", content="def export(orders):\n    return rows(orders)\n")
    ),
    returned(gave("c5", "File written.", "Write")),
    answered("Done: one query now."),
    name="shop/fixing",
    folder="/srv/shop",
)
"""Reads, searches, edits, fails and writes; two turns of a person."""
