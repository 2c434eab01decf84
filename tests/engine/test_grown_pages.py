"""Messages that came in by pieces are one again: whenever a log was imported, its session is the same."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.engine.agent_pages import block_places
from context_gatekeeper.engine.grown_pages import numbered_pieces, regrouped
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentMessage, AgentSession, BlockKind, MessageRole, Page
from tests.engine.agents import (
    POOL,
    SAMPLES,
    answered,
    blocks_of,
    call,
    gave,
    returned,
    said,
    session,
    stored,
    take_in,
    text,
    thinking,
)


def record(number: int, parent: int | None, message_id: str, *content: object) -> str:
    """A line of Claude Code's log: an answer with ``message_id``, or else results and words of the user."""
    kind = "assistant" if message_id else "user"
    told = {"id": message_id, "role": kind, "model": "m", "content": content, "stop_reason": None}
    value = {
        "sessionId": "live",
        "isSidechain": False,
        "type": kind,
        "uuid": str(number),
        "parentUuid": None if parent is None else str(parent),
        "requestId": message_id,
        "message": told if message_id else {"role": "user", "content": content},
    }
    return json.dumps(value)


def asks(call_id: str, file: str) -> dict[str, object]:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": {"file_path": file}}


def gives(call_id: str, output: str) -> dict[str, object]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": output}


WORDS = {"type": "text", "text": "read both"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
DONE = {"type": "text", "text": "done"}
TOGETHER = [
    record(1, None, "", WORDS),
    record(2, 1, "m1", THOUGHT),
    record(3, 2, "m1", asks("t1", "/w/a")),
    record(4, 3, "m1", asks("t2", "/w/b")),
    record(5, 4, "", gives("t2", "text of b")),
    record(6, 3, "", gives("t1", "text of a")),
    record(7, 6, "m2", DONE),
]
BETWEEN = [
    record(1, None, "", WORDS),
    record(2, 1, "m1", asks("t1", "/w/a")),
    record(3, 2, "", gives("t1", "text of a")),
    record(4, 2, "m1", asks("t2", "/w/b")),
    record(5, 4, "", gives("t2", "text of b")),
    record(6, 5, "m2", DONE),
    record(7, 6, "m2", asks("t3", "/w/c")),
    record(8, 7, "", gives("t3", "text of c")),
]
"""A result is logged before the answer's second call."""


def lines_of(file: Path) -> list[str]:
    data = file.read_bytes()
    return (gzip.decompress(data) if file.suffix == ".gz" else data).decode("utf-8").splitlines()


LOGS = {
    "calls together": TOGETHER,
    "a result between calls": BETWEEN,
    **{name: lines_of(SAMPLES / name) for name in ("claude_code.jsonl", "codex_rollout.jsonl", "codex_bare.jsonl")},
}


def sessions_of(lines: Sequence[str], folder: Path) -> list[AgentSession]:
    file = folder / "log.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return read_sessions(file)


def told(pool: AgentPool, name: str) -> dict[str, object]:
    """Everything that a session says of itself, handles aside, which are those of the pages that came in first."""
    one = pool.session(name)
    names = {page.handle: page.blocks for page in pool.pages(name)}
    calls = dict.fromkeys(block.call_id for block in blocks_of(one) if block.kind is BlockKind.TOOL_CALL)
    plan = pool.plan(name)
    return {
        "messages": [(message.role, message.blocks, message.is_call, message.origin) for message in one.messages],
        "pages": [
            (page.blocks, page.kind, page.tool, page.path, page.tokens, page.chars, page.head)
            for page in pool.pages(name)
        ],
        "groups": [[names[handle] for handle in pool.swap_group(name, call_id)] for call_id in calls],
        "plan": (plan.call, [(entry.handle, entry.tokens) for entry in plan.entries]),
        "blocks": [pool.expand(f"p{number}", session=name).text for number in range(len(blocks_of(one)))],
        "expanded": [pool.expand(page.handle).text for page in pool.pages(name)],
        "card": [card.render() for card in pool.cards(name)],
    }


@pytest.mark.parametrize("name", LOGS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_split_of_a_logs_lines_gives_the_session_of_the_whole(
    name: str, tmp_path: Path, data: st.DataObject
) -> None:
    lines = LOGS[name]
    ends = sorted(data.draw(st.sets(st.integers(1, len(lines) - 1), max_size=len(lines))))
    whole, live = AgentPool(), AgentPool()
    for end in (*ends, len(lines)):
        for one in _readable(lines[:end], tmp_path):
            live.import_session(one)
    for one in sessions_of(lines, tmp_path):
        known = whole.import_session(one)
        assert live.import_session(one).added_pages == 0
        assert told(live, live.import_session(one).session) == told(whole, known.session)


def _readable(lines: Sequence[str], folder: Path) -> list[AgentSession]:
    """Sessions of the first lines of a log, which may not say yet of what format it is."""
    return sessions_of(lines, folder) if any('"message"' in line for line in lines) else []


MESSAGES = st.lists(
    st.sampled_from(
        [
            said("go on"),
            answered(thinking("hm"), "I look.", call("c1", "Read", file_path="/a"), call("c2", "Bash", command="ls")),
            answered("done"),
            returned(gave("c1", "text of a")),
            returned(gave("c2", "a b"), text("[image]"), gave("c2", "c d")),
            AgentMessage(MessageRole.USER, (text("see"), thinking(hidden_chars=3), text("this"))),
        ]
    ),
    min_size=1,
    max_size=7,
)


@settings(max_examples=60, deadline=None)
@given(messages=MESSAGES, data=st.data())
def test_any_cut_inside_a_message_gives_the_session_of_the_whole(
    messages: list[AgentMessage], data: st.DataObject
) -> None:
    total = sum(len(message.blocks) for message in messages)
    ends = sorted(data.draw(st.sets(st.integers(1, total))))
    whole, live = MemoryStore(), MemoryStore()
    for end in ends:
        take_in(live, session(*cut(messages, end)))
    take_in(live, session(*messages))
    take_in(whole, session(*messages))
    assert live.sessions(POOL) == ("s",)
    assert shape(regrouped(stored(live))) == shape(stored(whole))
    pieces = numbered_pieces(stored(live))
    assert [first for first, _ in pieces] == sorted(first for first, _ in pieces)
    assert sum(len(block_places(piece)) for _, group in pieces for piece in group) == total
    older = session(*cut(messages, data.draw(st.integers(1, total))))
    assert take_in(live, older).added_pages == 0


def cut(messages: Sequence[AgentMessage], end: int) -> Iterable[AgentMessage]:
    """The first blocks of a session."""
    for message in messages:
        if end > 0:
            yield AgentMessage(message.role, message.blocks[:end], is_call=message.is_call)
        end -= len(message.blocks)


def shape(pages: Iterable[Page]) -> list[object]:
    """What pages are, but for ids, and for the task that was known when each came in."""
    return [
        (
            page.kind,
            page.role,
            page.text,
            replace(page.labels, supersedes=None, task_id="", goal_ids=()),
            page.sha256,
            block_places(page),
        )
        for page in pages
        if page.labels.provenance is not None
    ]
