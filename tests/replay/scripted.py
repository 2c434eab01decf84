"""Scripted agent sessions with known sizes: a log that counts characters, so that bills can be worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence

from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.replay.policies import Policy, Request
from context_gatekeeper.types import AgentMessage, AgentSession, BlockKind, ContentBlock, MessageRole, Usage

SECRET_LINE = "    retry_budget = compute_backoff(attempt, ceiling=57)"
"""A line that counts as evidence, as do the names in it."""
PROMPT = "Make the importer retry."
FRAME = 4
"""Tokens around each block of text."""
CALL_FRAME = 8


def character_log() -> SessionLog:
    """A log in which a token is a character."""
    return SessionLog(count_tokens=len)


def user(text: str, *, time: float | None = None, origin: str = "") -> AgentMessage:
    """What a person typed."""
    return AgentMessage(MessageRole.USER, (ContentBlock(BlockKind.TEXT, text),), time=time, origin=origin)


def answer(
    text: str = "",
    *calls: tuple[str, str, dict[str, object]],
    time: float | None = None,
    usage: Usage | None = None,
    is_call: bool = True,
    thinking_chars: int = 0,
) -> AgentMessage:
    """A model call: its text, and (id, tool, arguments) of the tools it uses."""
    blocks = [ContentBlock(BlockKind.THINKING, hidden_chars=thinking_chars)] if thinking_chars else []
    blocks += [ContentBlock(BlockKind.TEXT, text)] if text else []
    blocks += [
        ContentBlock(BlockKind.TOOL_CALL, json.dumps(arguments), call_id=call_id, name=name)
        for call_id, name, arguments in calls
    ]
    return AgentMessage(MessageRole.ASSISTANT, tuple(blocks), time=time, usage=usage, is_call=is_call)


def result(call_id: str, text: str, *, name: str = "Read", is_error: bool = False) -> AgentMessage:
    """What a tool gave."""
    block = ContentBlock(BlockKind.TOOL_RESULT, text, call_id=call_id, name=name, is_error=is_error)
    return AgentMessage(MessageRole.TOOL, (block,))


def session_of(*messages: AgentMessage, name: str = "scripted") -> AgentSession:
    """A session of these messages."""
    return AgentSession(name, "made for the tests", messages)


def filler(chars: int) -> str:
    """Text of so many characters in which nothing counts as evidence."""
    return ("plain words only " * (chars // 17 + 1))[:chars]


def reading_session(reads: int, *, chars: int = 1000) -> AgentSession:
    """A question, calls that read a file each, and a last call that quotes a line of the first file."""
    messages = [user(PROMPT)]
    for number in range(reads):
        messages.append(answer("Reading on.", (f"r{number}", "Read", {"file_path": f"part {number}"})))
        content = f"{SECRET_LINE}\n{filler(chars - len(SECRET_LINE) - 1)}" if number == 0 else filler(chars)
        messages.append(result(f"r{number}", content))
    messages.append(answer(f"The line to change is:\n{SECRET_LINE}"))
    return session_of(*messages)


def play(policy: Policy, log: SessionLog, messages: Sequence[AgentMessage]) -> list[Request]:
    """Feed messages to a policy as a replay does; the request before each model call."""
    requests = []
    for message in messages:
        if message.is_call:
            requests.append(policy.request(is_cold=False))
        policy.add(log.add_message(message))
    return requests


def unit_of(log: SessionLog, text: str) -> int:
    """Number of an evidence unit that must be known."""
    number = log.unit_id(text)
    assert number is not None, text
    return number
