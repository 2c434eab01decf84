"""Conversations whose ``turns`` are lines: user_text/assistant_text, or a speaker and a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from context_gatekeeper.transcripts.times import parse_time
from context_gatekeeper.types import ConversationTurn

__all__ = ["is_qa_conversation", "turns_of_lines"]

_NAMELESS = frozenset({"user", "assistant", "memory", "a", "b", "system"})


def is_qa_conversation(entry: Any) -> bool:
    """Whether ``entry`` holds a list of turns."""
    return isinstance(entry, Mapping) and isinstance(entry.get("turns"), list)


def turns_of_lines(lines: Sequence[Mapping[str, Any]]) -> tuple[ConversationTurn, ...]:
    """Lines as turns: user and assistant by role, persons two by two within a session, memories one by one."""
    turns: list[ConversationTurn] = []
    waiting: Mapping[str, Any] | None = None
    for line in lines:
        if "user_text" in line:
            turns.append(_turn(line, None, str(line["user_text"]), str(line.get("assistant_text") or "")))
            continue
        speaker = str(line["speaker"]).casefold()
        if speaker == "memory":
            turns.append(_turn(line, None, str(line["text"]), ""))
        elif speaker == "assistant" and waiting is None:
            turns.append(_turn(line, line, "", str(line["text"])))
        elif waiting is not None and (speaker == "user" or waiting.get("session") != line.get("session")):
            turns.append(_turn(waiting, None, str(waiting["text"]), ""))
            waiting = line
        elif waiting is not None:
            turns.append(_turn(waiting, line, str(waiting["text"]), str(line["text"])))
            waiting = None
        else:
            waiting = line
    if waiting is not None:
        turns.append(_turn(waiting, None, str(waiting["text"]), ""))
    return tuple(turns)


def _turn(
    first: Mapping[str, Any], second: Mapping[str, Any] | None, user_text: str, assistant_text: str
) -> ConversationTurn:
    first_id = first.get("turn_id")
    second_id = first_id if second is None else second.get("turn_id")
    return ConversationTurn(
        user_text,
        assistant_text,
        parse_time(first.get("time")),
        (_name(first), _name(second) if second is not None else None),
        (str(first_id) if first_id is not None else None, str(second_id) if second_id is not None else None),
        str(first["session"]) if first.get("session") is not None else None,
        str(first["topic"]) if first.get("topic") is not None else None,
    )


def _name(line: Mapping[str, Any]) -> str | None:
    speaker = str(line.get("speaker", ""))
    return speaker if speaker and speaker.casefold() not in _NAMELESS else None
