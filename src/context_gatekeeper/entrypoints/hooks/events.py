"""One event of a client's hook, read from its JSON object. Claude Code and Codex send the same names.

Codex sends ``turn_id`` with each event of a turn, Claude Code never.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["AGENT_MARK", "HookEvent", "is_same_folder", "read_event"]

AGENT_MARK = "/agent-"
"""Between the names of a session and of its sub-agent."""
Json = Mapping[str, object]


class HookEvent(NamedTuple):
    """What all events tell, and the object itself."""

    name: str
    """``PostToolUse``, ``UserPromptSubmit`` ...; "" when it tells none."""
    session: str
    """The client's own name of its session."""
    folder: str
    """Where the client works."""
    transcript: str
    """The session's log; "" when there is none."""
    is_codex: bool
    fields: Json
    """The object as it came."""

    @property
    def log_name(self) -> str:
        """Name of the session whose log gets what the event tells: a sub-agent's own, as readers of logs name it."""
        agent = self.text("agent_id")
        return f"{self.session}{AGENT_MARK}{agent}" if agent else self.session

    def text(self, name: str) -> str:
        """A field that is text; "" for another kind or none."""
        return _text(self.fields, name)


def read_event(fields: Json) -> HookEvent:
    """The event of one JSON object; what is missing or of another kind is ""."""
    return HookEvent(
        _text(fields, "hook_event_name"),
        _text(fields, "session_id"),
        _text(fields, "cwd"),
        _text(fields, "transcript_path"),
        "turn_id" in fields,
        fields,
    )


def is_same_folder(one: str, other: str) -> bool:
    """Whether two paths lead to one folder; an empty one leads nowhere."""
    return bool(one and other) and os.path.realpath(one) == os.path.realpath(other)


def _text(fields: Json, name: str) -> str:
    told = fields.get(name)
    return told if isinstance(told, str) else ""
