"""A model with a fixed part: what it answers, call by call, in words that every client's own tools are put to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from context_gatekeeper.testing import FakeReply, ReceivedRequest
from context_gatekeeper.testing.records import FakeCall

REFUSED = "This workspace may not ask for that."
RETRY_AFTER = "1"
SIDE_ANSWER = "A short title"


@dataclass(frozen=True, slots=True)
class Shell:
    """The client runs a command in its folder."""

    command: str


@dataclass(frozen=True, slots=True)
class Read:
    """The client reads a file of its folder with the tool it has for that."""

    name: str


Step = Shell | Read


@dataclass(frozen=True, slots=True)
class Calls:
    """The model calls tools; several steps are calls in parallel."""

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Says:
    """The model answers the user."""

    text: str


@dataclass(frozen=True, slots=True)
class Refuses:
    """The provider refuses the call."""

    status: int
    text: str
    retry_after: str | None = None


Turn = Calls | Says | Refuses


class ScriptedModel:
    """The turns one by one; requests without tools, such as one for a title, take none."""

    def __init__(self, turns: Sequence[Turn], call: Callable[[Step, Path], FakeCall], folder: Path) -> None:
        self.turns = turns
        self.used = 0
        self._call = call
        self._folder = folder

    def __call__(self, request: ReceivedRequest) -> FakeReply:
        if not is_main(request):
            return FakeReply(SIDE_ANSWER)
        # A client may ask again after a refusal; the last turn stays.
        turn = self.turns[min(self.used, len(self.turns) - 1)]
        self.used += 1
        match turn:
            case Says(text):
                return FakeReply(text)
            case Refuses(status, text, retry_after):
                return FakeReply(text, status=status, retry_after=retry_after)
            case Calls(steps):
                return FakeReply("On it.", calls=tuple(self._call(step, self._folder) for step in steps))


def is_main(request: ReceivedRequest) -> bool:
    """Whether the request belongs to the agent's own conversation."""
    return bool(request.body.get("tools"))


def calls(*steps: Step) -> Calls:
    """Calls in parallel."""
    return Calls(steps)
