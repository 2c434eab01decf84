"""Conversations with questions: ``{"id", "lang", "turns": [...], "questions": [...]}``."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from context_gatekeeper.transcripts.conversation import Conversation, Place, as_text, optional_text
from context_gatekeeper.transcripts.times import parse_time
from context_gatekeeper.types import ConversationTurn

__all__ = ["read_labelled"]

_LOGGER = logging.getLogger("context_gatekeeper")
_ROLES = frozenset({"user", "assistant"})
_MEMORY = "memory"
_NO_PERSONS = _ROLES | {_MEMORY, "system", "a", "b"}
_COMPARE = "compare it with the other lines, mend or remove it; nothing of the file was taken"


@dataclass(frozen=True, slots=True)
class _Line:
    speaker: str
    text: str
    source_id: str | None
    session: str | None
    topic: str | None
    time: float | None

    @property
    def role(self) -> str:
        return self.speaker.casefold()

    @property
    def person(self) -> str | None:
        """The name on one line; None when it is a role's."""
        return None if self.role in _NO_PERSONS else self.speaker.replace("\n", " ")


def read_labelled(entry: Mapping[str, Any], name: str, place: Place) -> Conversation:
    """A conversation from its JSON object.

    Turns are ``{"user_text", "assistant_text"}`` or lines ``{"speaker", "text"}``. Lines of user
    and assistant make a turn of a user line and the answer behind it; lines of persons are paired
    two by two inside a session, the first as user; lines of the speaker "memory" stand alone.

    Args:
        entry: the object; ``turns`` is there.
        name: the conversation's id where it has none of its own.
        place: for errors.

    Raises:
        TranscriptError: a turn or question is not of this form.
    """
    listed = entry["turns"]
    if not isinstance(listed, list):
        raise place.error("'turns' is no list", _COMPARE)
    turns: list[ConversationTurn] = []
    lines: list[_Line] = []
    for number, turn in enumerate(listed, 1):
        where = place.inside(f"turn {number}")
        if not isinstance(turn, dict) or not ("user_text" in turn or "speaker" in turn):
            raise where.error("it has neither 'user_text' nor 'speaker'", _COMPARE)
        if "user_text" in turn:
            turns.append(_whole_turn(turn, where))
        else:
            lines.append(_line(turn, where))
    if turns and lines:
        raise place.error("it mixes turns with 'user_text' and lines with 'speaker'", "keep one form in a conversation")
    _report_times(listed, (*turns, *lines), place)
    return Conversation(
        optional_text(entry, "id") or name,
        optional_text(entry, "lang"),
        tuple(turns or _pair(lines)),
        _questions(entry.get("questions"), place),
    )


def _whole_turn(turn: Mapping[str, Any], place: Place) -> ConversationTurn:
    answer = turn.get("assistant_text")
    source_id = optional_text(turn, "turn_id")
    return ConversationTurn(
        as_text(turn["user_text"], "'user_text'", place),
        "" if answer is None else as_text(answer, "'assistant_text'", place),
        time=parse_time(turn.get("time")),
        source_ids=(source_id, source_id),
        session=optional_text(turn, "session"),
        topic=optional_text(turn, "topic"),
    )


def _line(turn: Mapping[str, Any], place: Place) -> _Line:
    return _Line(
        as_text(turn["speaker"], "'speaker'", place),
        as_text(turn.get("text"), "'text'", place),
        optional_text(turn, "turn_id"),
        optional_text(turn, "session"),
        optional_text(turn, "topic"),
        parse_time(turn.get("time")),
    )


def _report_times(listed: Sequence[Mapping[str, Any]], read: Sequence[ConversationTurn | _Line], place: Place) -> None:
    unread = sum(
        turn.get("time") not in (None, "") and got.time is None for turn, got in zip(listed, read, strict=True)
    )
    if unread:
        _LOGGER.warning("%s, %s: %d times are in no known form and are left out", place.path, place.where, unread)


def _pair(lines: Sequence[_Line]) -> list[ConversationTurn]:
    by_role = all(line.role in _ROLES for line in lines)
    turns: list[ConversationTurn] = []
    waiting: _Line | None = None
    for line in lines:
        if line.role == _MEMORY:
            if waiting is not None:
                turns.append(_turn(waiting, None, waiting))
            turns.append(_turn(line, None, line))
            waiting = None
        elif by_role and line.role == "assistant":
            turns.append(_turn(waiting, line, waiting or line))
            waiting = None
        elif waiting is None:
            waiting = line
        elif by_role or waiting.session != line.session:
            turns.append(_turn(waiting, None, waiting))
            waiting = line
        else:
            turns.append(_turn(waiting, line, waiting))
            waiting = None
    if waiting is not None:
        turns.append(_turn(waiting, None, waiting))
    return turns


def _turn(first: _Line | None, second: _Line | None, known: _Line) -> ConversationTurn:
    """A turn of two lines, one of which may be missing; ``known`` is one that is there."""
    return ConversationTurn(
        first.text if first is not None else "",
        second.text if second is not None else "",
        time=known.time,
        speakers=(first.person if first is not None else None, second.person if second is not None else None),
        source_ids=(first.source_id if first is not None else None, second.source_id if second is not None else None),
        session=known.session,
        topic=known.topic,
    )


def _questions(listed: object, place: Place) -> tuple[str, ...]:
    if listed is None:
        return ()
    if not isinstance(listed, list):
        raise place.error("'questions' is no list", _COMPARE)
    texts = []
    for number, question in enumerate(listed, 1):
        where = place.inside(f"question {number}")
        if not isinstance(question, dict):
            raise where.error("it is no object", _COMPARE)
        texts.append(as_text(question.get("q"), "'q'", where))
    return tuple(texts)
