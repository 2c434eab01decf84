"""What a reader gives: a conversation, and lines put together as turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.types import ConversationTurn

__all__ = ["Conversation", "Place", "Utterance", "as_text", "exchange_turns", "optional_text"]


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation of a file, whole."""

    conversation_id: str
    """The file's own name of it; its place in the file ("1", "2", ...) where it has none."""
    lang: str | None
    """Language code where the file says it."""
    turns: tuple[ConversationTurn, ...]
    questions: tuple[str, ...] = ()
    """Questions that the file asks about it."""
    system_messages: int = 0
    """System and developer messages, which are no turns and are left out."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands, for errors: the file with its line or conversation."""

    path: str
    where: str = ""

    def error(self, cause: str, next_step: str) -> TranscriptError:
        """An error about this place."""
        return TranscriptError(f"{self.path}, {self.where}" if self.where else self.path, cause, next_step)

    def inside(self, where: str) -> Place:
        """A place inside this one."""
        return Place(self.path, f"{self.where}, {where}" if self.where else where)


@dataclass(frozen=True, slots=True)
class Utterance:
    """One text of a chat between a user and an assistant."""

    is_user: bool
    text: str
    time: float | None = None
    source_id: str | None = None


def as_text(value: object, what: str, place: Place) -> str:
    """``value`` when it is a text. Raises TranscriptError otherwise."""
    if not isinstance(value, str):
        raise place.error(f"{what} is {_kind(value)}, not a text", "mend it, or remove the message or conversation")
    return value


def exchange_turns(utterances: Iterable[Utterance]) -> Iterator[ConversationTurn]:
    """Turns of a user/assistant chat: a user's text with everything the assistant's side says before the next one.

    Empty utterances are passed over; a user's text without an answer, or an answer that nobody
    asked for, is a turn with one empty side.
    """
    asked: Utterance | None = None
    answers: list[Utterance] = []
    for utterance in utterances:
        if not utterance.text.strip():
            continue
        if utterance.is_user:
            if asked is not None or answers:
                yield _exchange(asked, answers)
            asked, answers = utterance, []
        else:
            answers.append(utterance)
    if asked is not None or answers:
        yield _exchange(asked, answers)


def _exchange(asked: Utterance | None, answers: list[Utterance]) -> ConversationTurn:
    first = asked if asked is not None else answers[0]
    return ConversationTurn(
        asked.text if asked is not None else "",
        "\n\n".join(answer.text for answer in answers),
        time=first.time,
        source_ids=(asked.source_id if asked is not None else None, answers[0].source_id if answers else None),
    )


def _kind(value: object) -> str:
    if value is None:
        return "missing"
    if isinstance(value, Mapping):
        return "an object"
    return {list: "a list", bool: "a boolean", int: "a number", float: "a number"}.get(type(value), "something else")


def optional_text(entry: Mapping[str, Any], *names: str) -> str | None:
    """The first of the named values that is there, as text; None when none is."""
    for name in names:
        value = entry.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value):
            return str(value)
    return None
