"""Readers of labelled conversations: questions with evidence, topic shifts, topics, follow-ups.

Two layouts of a turn occur: ``speaker`` and ``text``, or ``user_text`` and ``assistant_text``;
the second becomes two lines with one id.
"""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.transcripts.times import parse_time

__all__ = [
    "FILLER_TOPIC",
    "Conversation",
    "EvalTurn",
    "FollowupCase",
    "Line",
    "Question",
    "is_user_assistant",
    "pair_lines",
    "read_bytes",
    "read_conversations",
    "read_followups",
    "read_json",
    "read_json_lines",
    "read_times",
    "with_times",
]

FILLER_TOPIC = "Enhanced"
"""Label of unrelated filler sessions in RealMem logs: each session is its own topic."""
_ROLES = frozenset({"user", "assistant"})
_MEMORY = "memory"
_NAMELESS = frozenset({*_ROLES, _MEMORY, "a", "b"})
_LOGGER = logging.getLogger("context_gatekeeper")


@dataclass(frozen=True, slots=True)
class Line:
    """One text of a conversation with its labels."""

    line_id: str
    """The file's ``turn_id``, else the place in the file."""
    speaker: str
    text: str
    session: str = ""
    time: float | None = None
    """Seconds since the epoch, UTC."""
    topic: str | None = None
    shift: bool | None = None
    """Whether a topic begins here; None where the file does not say."""

    @property
    def name(self) -> str | None:
        """The speaker's name when it is a person's."""
        return None if self.speaker.casefold() in _NAMELESS else self.speaker or None

    @property
    def topic_key(self) -> str | None:
        """The topic, with every filler session a topic of its own."""
        return f"{FILLER_TOPIC}/{self.session}" if self.topic == FILLER_TOPIC else self.topic


@dataclass(frozen=True, slots=True)
class EvalTurn:
    """One or two lines as ``add_turn`` takes them; at least one is there."""

    user: Line | None
    assistant: Line | None

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines in order."""
        return tuple(line for line in (self.user, self.assistant) if line is not None)

    @property
    def user_text(self) -> str:
        """Text of the first side, empty when there is none."""
        return self.user.text if self.user is not None else ""

    @property
    def assistant_text(self) -> str:
        """Text of the second side, empty when there is none."""
        return self.assistant.text if self.assistant is not None else ""

    @property
    def time(self) -> float | None:
        """When the turn began."""
        return self.lines[0].time

    @property
    def speakers(self) -> tuple[str | None, str | None]:
        """Names of persons; None for user, assistant and the like."""
        return (
            self.user.name if self.user is not None else None,
            self.assistant.name if self.assistant is not None else None,
        )


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the lines that answer it."""

    text: str
    evidence: tuple[str, ...]
    """Line ids, each once."""
    category: str
    asked_at: str | None
    """Line before which it is asked; None = after the whole log."""
    time: float | None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation with whatever labels its file has."""

    conversation_id: str
    lines: tuple[Line, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class FollowupCase:
    """A short history, a query, what the gate should say, and the turn that the query leans on."""

    history: tuple[tuple[str, str], ...]
    query: str
    expect: str
    gold_turn: int | None


def read_json_lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """(line number, object) of a JSON Lines file, plain or gzipped. Raises TranscriptError naming the line."""
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
            for number, raw in enumerate(lines, 1):
                if raw.strip():
                    yield number, _parse_object(raw, f"{path}, line {number}")
    except (OSError, EOFError, zlib.error) as error:
        raise TranscriptError(str(path), f"it cannot be read ({error})", "pass a readable JSON Lines file") from error


def _parse_object(raw: bytes, place: str) -> Mapping[str, Any]:
    try:
        entry = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise TranscriptError(
            place, f"it is not UTF-8 ({error.reason} at byte {error.start})", "save the file as UTF-8"
        ) from error
    except json.JSONDecodeError as error:
        raise TranscriptError(
            place, f"it is no JSON ({error.msg} at column {error.colno})", "mend or remove the line"
        ) from error
    if not isinstance(entry, dict):
        raise TranscriptError(place, "it is no JSON object", "mend or remove the line")
    return entry


def read_bytes(path: Path) -> bytes:
    """Content of a file, plain or gzipped. Raises TranscriptError."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            return stream.read()
    except (OSError, EOFError, zlib.error) as error:
        raise TranscriptError(str(path), f"it cannot be read ({error})", "pass a readable file") from error


def read_json(path: Path) -> Any:
    """The value of a JSON file, plain or gzipped. Raises TranscriptError."""
    content = read_bytes(path)
    try:
        return json.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise TranscriptError(
            str(path), f"it cannot be read as JSON ({error})", "pass a readable UTF-8 JSON file"
        ) from error


def read_conversations(path: Path) -> Iterator[Conversation]:
    """Conversations of a question, shift or log file, one after the other (``data/qa``, ``data/shift``).

    Questions of the category ``adversarial`` and questions without evidence are left out.
    Raises TranscriptError naming file, line and cause.
    """
    unreadable = 0
    for number, entry in read_json_lines(path):
        place = f"{path}, line {number}"
        try:
            lines = [line for position, turn in enumerate(entry["turns"]) for line in _lines_of(turn, position)]
            questions = tuple(_question(one) for one in entry.get("questions", ()) if _counts(one))
        except (KeyError, TypeError, AttributeError) as error:
            raise TranscriptError(
                place, f"it is no conversation ({_cause(error)})", 'compare it with {"turns": [...]}'
            ) from error
        _check_places(questions, {line.line_id for line in lines}, place)
        unreadable += sum("time" in turn and parse_time(turn["time"]) is None for turn in entry["turns"])
        yield Conversation(str(entry.get("id", number)), tuple(lines), questions)
    if unreadable:
        _LOGGER.warning("%s: %d times could not be read and count as unknown", path, unreadable)


def _cause(error: Exception) -> str:
    return f"the key {error} is missing" if isinstance(error, KeyError) else str(error)


def _lines_of(turn: Mapping[str, Any], position: int) -> Iterator[Line]:
    line_id = str(turn.get("turn_id", position))
    session = turn.get("session")
    if session is None and ":" in line_id:
        session = line_id.split(":", 1)[0]
    first = Line(
        line_id=line_id,
        speaker="user",
        text="",
        session="" if session is None else str(session),
        time=parse_time(turn.get("time")),
        topic=None if turn.get("topic") is None else str(turn["topic"]),
        shift=None if turn.get("shift") is None else bool(turn["shift"]),
    )
    if "user_text" in turn or "assistant_text" in turn:
        yield replace(first, text=_text(turn.get("user_text") or ""))
        yield replace(first, speaker="assistant", text=_text(turn.get("assistant_text") or ""), shift=None)
    else:
        yield replace(first, speaker=_text(turn["speaker"]), text=_text(turn["text"]))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text is a {type(value).__name__}")
    return value


def _counts(question: Mapping[str, Any]) -> bool:
    return bool(question.get("evidence_turn_ids")) and question.get("category") != "adversarial"


def _question(question: Mapping[str, Any]) -> Question:
    asked_at = question.get("asked_at_turn_id")
    return Question(
        text=_text(question["q"]),
        evidence=tuple(dict.fromkeys(str(one) for one in question["evidence_turn_ids"])),
        category=str(question.get("category", "")),
        asked_at=None if asked_at is None else str(asked_at),
        time=parse_time(question.get("time")),
    )


def _check_places(questions: Sequence[Question], known: Collection[str], place: str) -> None:
    for question in questions:
        if question.asked_at is not None and question.asked_at not in known:
            raise TranscriptError(
                place,
                f"a question is asked at turn {question.asked_at!r}, which is not in the log",
                "mend asked_at_turn_id",
            )


def is_user_assistant(lines: Sequence[Line]) -> bool:
    """Whether every speaker is a user or an assistant, in whatever case."""
    return all(line.speaker.casefold() in _ROLES for line in lines)


def pair_lines(lines: Sequence[Line], breaks: Collection[str] = ()) -> list[EvalTurn]:
    """Lines as turns; every line is in exactly one.

    User/assistant talk: a user line with the answer behind it in the same session; what has no
    counterpart stands alone. Talk between persons: consecutive lines of a session, two by two. A list
    of memories: one by one. No turn reaches across a line whose id is in ``breaks``, because a
    question is asked there.
    """
    by_role = is_user_assistant(lines)
    turns: list[EvalTurn] = []
    waiting: Line | None = None
    for line in lines:
        if waiting is not None and _belongs(waiting, line, breaks, by_role=by_role):
            turns.append(EvalTurn(waiting, line))
            waiting = None
            continue
        if waiting is not None:
            turns.append(EvalTurn(waiting, None))
            waiting = None
        if by_role and line.speaker.casefold() == "assistant":
            turns.append(EvalTurn(None, line))
        elif line.speaker.casefold() == _MEMORY:
            turns.append(EvalTurn(line, None))
        else:
            waiting = line
    if waiting is not None:
        turns.append(EvalTurn(waiting, None))
    return turns


def _belongs(first: Line, second: Line, breaks: Collection[str], *, by_role: bool) -> bool:
    if first.session != second.session or second.speaker.casefold() == _MEMORY:
        return False
    if second.line_id in breaks and first.line_id != second.line_id:
        return False
    return second.speaker.casefold() == "assistant" if by_role else True


def read_times(path: Path) -> dict[str, float]:
    """Times by line id, from a file that has them. Raises TranscriptError where one id has two times."""
    times: dict[str, float] = {}
    for conversation in read_conversations(path):
        for line in conversation.lines:
            if line.time is not None and times.setdefault(line.line_id, line.time) != line.time:
                raise TranscriptError(
                    f"{path}, {conversation.conversation_id}",
                    f"turn {line.line_id!r} has two times",
                    "pass one log, or ids that differ",
                )
    return times


def with_times(lines: Sequence[Line], times: Mapping[str, float]) -> list[Line]:
    """The lines with the times that ``times`` knows for them."""
    return [replace(line, time=times.get(line.line_id, line.time)) for line in lines]


def read_followups(path: Path) -> Iterator[FollowupCase]:
    """Follow-up cases. Raises TranscriptError naming file, line and cause."""
    for number, entry in read_json_lines(path):
        place = f"{path}, line {number}"
        try:
            history = tuple((_text(user), _text(assistant)) for user, assistant in entry["history"])
            case = FollowupCase(history, _text(entry["query"]), _text(entry["expect"]), entry.get("gold_turn"))
        except (KeyError, TypeError, ValueError) as error:
            raise TranscriptError(
                place, f"it is no follow-up case ({_cause(error)})", "compare it with the other lines"
            ) from error
        if case.expect not in ("continue", "switch"):
            raise TranscriptError(place, f"expect is {case.expect!r}", "write continue or switch")
        if case.gold_turn is not None and case.gold_turn not in range(len(history)):
            raise TranscriptError(
                place, f"gold_turn is {case.gold_turn!r}, not a turn of the history", "count the turns from 0"
            )
        yield case
