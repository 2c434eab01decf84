"""Agent sessions as JSON Lines: ``{"id", "source", "messages": [...], "events": [...]}``, a session a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from context_gatekeeper.transcripts.agent_openai import read_message
from context_gatekeeper.transcripts.session_assembly import assemble_session
from context_gatekeeper.transcripts.session_fields import as_count, as_name, read_time
from context_gatekeeper.transcripts.session_records import LogRecord, clip
from context_gatekeeper.types import AgentMessage, AgentSession, SessionEvent

__all__ = ["AGENTS_SOURCE", "read_agents"]

AGENTS_SOURCE = "agents"


def read_agents(records: Sequence[LogRecord], warnings: list[str]) -> list[AgentSession]:
    """The session of each record.

    Messages are OpenAI's, with ``time``, ``time_end``, ``call_id``, ``usage``, ``thinking_chars``,
    ``meta``, ``is_error`` and ``synthetic`` beside. An assistant message with a ``call_id`` is a
    model call; in a session without any, each one that is not ``synthetic``.

    Args:
        records: of the file.
        warnings: gets a line for each record that is no session, and for ids that several have.
    """
    sessions: list[AgentSession] = []
    ids: set[str] = set()
    for record in records:
        if not isinstance(record.value, dict) or not isinstance(record.value.get("messages"), list):
            warnings.append(f"{record.place}: it is no session with 'messages'; it is skipped")
            continue
        session_id = as_name(record.value.get("id")) or str(record.number)
        if session_id in ids:
            warnings.append(f"{record.place}: the session id {clip(session_id)} is used again; both are kept")
        ids.add(session_id)
        sessions.append(_session(session_id, record))
    return sessions


def _session(session_id: str, record: LogRecord) -> AgentSession:
    listed = record.value["messages"]
    has_call_ids = any(isinstance(message, dict) and _has_call_id(message) for message in listed)
    warnings: list[str] = []
    messages: list[AgentMessage] = []
    for number, message in enumerate(listed, 1):
        place = f"{record.place}, message {number}"
        is_call = _has_call_id if has_call_ids else _is_genuine
        messages += read_message(message, record.line, place, warnings, is_call=is_call)
    events = _events(record.value.get("events"), record.place, warnings)
    return assemble_session(session_id, AGENTS_SOURCE, messages, warnings, events=events)


def _has_call_id(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "assistant" and as_name(message.get("call_id")) != ""


def _is_genuine(message: Mapping[str, Any]) -> bool:
    return message.get("synthetic") is not True


def _events(listed: object, place: str, warnings: list[str]) -> list[SessionEvent]:
    events: list[SessionEvent] = []
    for number, event in enumerate(listed if isinstance(listed, list) else [listed] if listed is not None else [], 1):
        where = f"{place}, event {number}"
        if isinstance(event, dict) and isinstance(event.get("type"), str):
            time = read_time(event.get("time"), where, warnings)
            events.append(SessionEvent(event["type"], time, as_count(event.get("pre_tokens"))))
        else:
            warnings.append(f"{where}: it has no type; it is skipped")
    return events
