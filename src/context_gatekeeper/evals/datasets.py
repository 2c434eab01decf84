"""Readers of the labelled sets: questions, topic shifts, follow-ups, topics and frames."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.transcripts.times import parse_time

__all__ = [
    "EvalTurn",
    "FollowupCase",
    "Line",
    "QaConversation",
    "Question",
    "pair_lines",
    "read_frames",
    "read_followups",
    "read_json_lines",
    "read_qa",
    "read_shifts",
    "read_topics",
]

_ASSISTANT_SPEAKERS = frozenset({"user", "assistant"})
_NAMELESS = frozenset({"user", "assistant", "memory", "a", "b", "system"})


@dataclass(frozen=True, slots=True)
class Line:
    """One text of a conversation with its label."""

    line_id: str
    speaker: str
    text: str
    session: str = ""
    time: float | None = None
    topic: str = ""
    is_shift: bool = False


@dataclass(frozen=True, slots=True)
class EvalTurn:
    """A pair of lines as ``add_turn`` takes them; the second may be missing."""

    user: Line
    assistant: Line | None

    @property
    def assistant_text(self) -> str:
        """Text of the second line, empty when there is none."""
        return self.assistant.text if self.assistant is not None else ""

    @property
    def speakers(self) -> tuple[str | None, str | None]:
        """Names of persons; None for user, assistant and the like."""
        return _name(self.user), _name(self.assistant)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the lines that answer it."""

    text: str
    evidence: frozenset[str]
    category: str
    asked_at: str | None


@dataclass(frozen=True, slots=True)
class QaConversation:
    """A conversation with questions."""

    conversation_id: str
    lines: tuple[Line, ...]
    turns: tuple[EvalTurn, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class FollowupCase:
    """A short history, a query, and what the gate should say."""

    history: tuple[tuple[str, str], ...]
    query: str
    expect: str
    gold_turn: int | None


def _name(line: Line | None) -> str | None:
    if line is None or line.speaker.casefold() in _NAMELESS:
        return None
    return line.speaker or None


def read_json_lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """(line number, object) of a JSON Lines file, plain or gzipped. Raises TranscriptError naming the line."""
    try:
        opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")
        with opened as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    entry = json.loads(line)
                except json.JSONDecodeError as error:
                    raise TranscriptError(f"{path}, line {number}", f"it is no JSON ({error.msg})", "mend or remove the line") from None
                if not isinstance(entry, dict):
                    raise TranscriptError(f"{path}, line {number}", "it is no JSON object", "mend or remove the line")
                yield number, entry
    except (OSError, UnicodeDecodeError) as error:
        raise TranscriptError(str(path), f"it cannot be read ({error})", "pass a readable UTF-8 JSON Lines file") from error


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise TranscriptError(str(path), f"it cannot be read ({error})", "pass a readable UTF-8 JSON file") from error


def is_user_assistant(lines: Sequence[Line]) -> bool:
    """Whether every speaker is a user or an assistant."""
    return all(line.speaker.casefold() in _ASSISTANT_SPEAKERS for line in lines)


def pair_lines(lines: Sequence[Line]) -> list[EvalTurn]:
    """Lines as turns.

    User/assistant talk: a user line with the answer behind it; further lines of one side make
    turns of their own. Talk between persons: consecutive lines of a session, two by two. A list of
    memories: one by one.
    """
    turns: list[EvalTurn] = []
    waiting: Line | None = None
    by_role = is_user_assistant(lines)
    for line in lines:
        if line.speaker.casefold() == "memory":
            turns.append(EvalTurn(line, None))
        elif by_role and line.speaker.casefold() == "assistant":
            empty = Line(line.line_id, "user", "", line.session, line.time, line.topic)
            turns.append(EvalTurn(waiting if waiting is not None else empty, line))
            waiting = None
        elif waiting is not None and (by_role or waiting.session != line.session):
            turns.append(EvalTurn(waiting, None))
            waiting = line
        elif waiting is not None:
            turns.append(EvalTurn(waiting, line))
            waiting = None
        else:
            waiting = line
    if waiting is not None:
        turns.append(EvalTurn(waiting, None))
    return turns


def read_qa(path: Path) -> list[QaConversation]:
    """Conversations with questions (``data/qa``); questions without evidence and adversarial ones are left out."""
    conversations = []
    for number, entry in read_json_lines(path):
        try:
            lines: list[Line] = []
            turns: list[EvalTurn] = []
            for turn in entry["turns"]:
                if "user_text" in turn:
                    user = _line(turn, "user", str(turn["user_text"]))
                    assistant = _line(turn, "assistant", str(turn.get("assistant_text") or ""))
                    lines.append(user)
                    turns.append(EvalTurn(user, assistant))
                else:
                    lines.append(_line(turn, str(turn["speaker"]), str(turn["text"])))
            questions = tuple(
                Question(str(q["q"]), frozenset(map(str, q["evidence_turn_ids"])), str(q.get("category", "")), q.get("asked_at_turn_id"))
                for q in entry["questions"]
                if q.get("evidence_turn_ids") and q.get("category") != "adversarial"
            )
            paired = tuple(turns) if turns else tuple(pair_lines(lines))
            conversations.append(QaConversation(str(entry.get("id", number)), tuple(lines), paired, questions))
        except (KeyError, TypeError) as error:
            raise TranscriptError(f"{path}, line {number}", f"it is no conversation with questions ({error!r})", "compare it with the format") from error
    return conversations


def _line(turn: Mapping[str, Any], speaker: str, text: str) -> Line:
    return Line(
        str(turn.get("turn_id", "")),
        speaker,
        text,
        str(turn.get("session", "")),
        parse_time(turn.get("time")),
        str(turn.get("topic", "")),
        bool(turn.get("shift", 0)),
    )


def read_shifts(path: Path) -> list[tuple[str, tuple[Line, ...]]]:
    """(id, lines) of a set with topic shifts (``data/shift``), or of logs whose lines carry topics."""
    dialogues = []
    for number, entry in read_json_lines(path):
        try:
            lines = tuple(_line(turn, str(turn["speaker"]), str(turn["text"])) for turn in entry["turns"])
        except (KeyError, TypeError) as error:
            raise TranscriptError(f"{path}, line {number}", f"it is no dialogue ({error!r})", "compare it with the format") from error
        dialogues.append((str(entry.get("id", number)), lines))
    return dialogues


def read_followups(path: Path) -> list[FollowupCase]:
    """Follow-up cases (``data/frames/followups.jsonl``)."""
    cases = []
    for number, entry in read_json_lines(path):
        try:
            history = tuple((str(user), str(assistant)) for user, assistant in entry["history"])
            cases.append(FollowupCase(history, str(entry["query"]), str(entry["expect"]), entry.get("gold_turn")))
        except (KeyError, TypeError, ValueError) as error:
            raise TranscriptError(f"{path}, line {number}", f"it is no follow-up case ({error!r})", "compare it with the format") from error
    return cases


def read_topics(path: Path) -> list[dict[str, Any]]:
    """Topics with sub-questions and answers (``data/frames/topics.json``)."""
    topics = _read_json(path)
    found = topics.get("topics") if isinstance(topics, dict) else None
    if not isinstance(found, list) or not all(isinstance(t, dict) and {"name", "lang", "subs"} <= t.keys() for t in found):
        raise TranscriptError(str(path), "it holds no list of topics", 'pass {"topics": [{"name", "lang", "subs"}]}')
    return found


def read_frames(path: Path) -> dict[str, list[str]]:
    """Question frames by language (``data/frames/frames*.json``)."""
    frames = _read_json(path)
    if not isinstance(frames, dict) or not all(isinstance(texts, list) for texts in frames.values()):
        raise TranscriptError(str(path), "it holds no frames by language", 'pass {"zh": [...], "en": [...]}')
    return {str(lang): [str(text) for text in texts] for lang, texts in frames.items()}
