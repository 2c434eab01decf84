"""read_sessions: the recorded sessions of an agent, in whatever known format its log is."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from context_gatekeeper.errors import NoSessionError
from context_gatekeeper.transcripts.agent_openai import is_message_list, read_openai
from context_gatekeeper.transcripts.agents_jsonl import read_agents
from context_gatekeeper.transcripts.claude_code import read_claude
from context_gatekeeper.transcripts.codex import is_bare_item, is_rollout_line, read_codex
from context_gatekeeper.transcripts.session_records import KNOWN_FORMATS, LogRecord, read_records
from context_gatekeeper.types import AgentSession

__all__ = ["read_sessions"]

_Reader = Callable[[Sequence[LogRecord], list[str]], list[AgentSession]]
_CLAUDE_KEYS = frozenset({"isSidechain", "leafUuid", "message", "parentUuid", "sessionId", "snapshot", "uuid"})


def read_sessions(path: str | os.PathLike[str]) -> list[AgentSession]:
    """Every session of a file, in the order of the file.

    Formats, told apart by the first record that says it and never by the file's name, plain or
    gzipped, UTF-8:

    - sessions of Claude Code; its sub-agents' are sessions of their own, ``<session>/agent-<id>``;
    - rollouts of Codex, the older form too;
    - JSON Lines, a session a line: ``{"id", "source", "messages": [...], "events": [...]}``;
    - OpenAI's or Anthropic's messages: a JSON list, ``{"messages": [...]}``, one of these a line,
      or one message a line.

    A tool result is a message of its own, with a ``TOOL_RESULT`` block for each text in it.
    What is broken or odd is kept where it can be, and told in `AgentSession.warnings`; what
    concerns the whole file stands with its first session.

    Raises:
        NoSessionError: the file is empty, or of none of these formats.
        ConfigError: it cannot be opened, holds more than 2 GiB inflated, or no JSON.
    """
    place = Path(path)
    records, warnings = read_records(place)
    read = next((read for record in records if (read := _reader(record.value)) is not None), None)
    if read is None:
        raise NoSessionError(str(place), "no record of it is one of an agent's session", KNOWN_FORMATS)
    first, *others = read(records, warnings)
    return [replace(first, warnings=(*warnings, *first.warnings)), *others]


def _reader(value: object) -> _Reader | None:
    """The reader for the format that a record belongs to; None where the record does not say."""
    if is_message_list(value):
        return read_openai
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("messages"), list):
        return read_agents if isinstance(value.get("source"), str) else read_openai
    if is_rollout_line(value) or is_bare_item(value):
        return read_codex
    if _is_claude(value):
        return read_claude
    return read_openai if "role" in value else None


def _is_claude(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("type"), str) and not _CLAUDE_KEYS.isdisjoint(value)
