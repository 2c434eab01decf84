"""What the three APIs have in common where the gateway hides its own calls: what is held back, what is counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

from context_gatekeeper.wire.answer_draft import as_count, as_object
from context_gatekeeper.wire.hidden_edits import JsonEdits, Path
from context_gatekeeper.wire.hidden_frames import Frame
from context_gatekeeper.wire.json_source import Shape

__all__ = ["HiddenDraft", "OwnCall", "edited"]

_MOST_REASON_CHARS = 60


class OwnCall(NamedTuple):
    """A call of the gateway's own tool."""

    id: str
    """By which its result names it."""
    arguments: str
    """JSON text, as far as it came."""


class HiddenDraft(ABC):
    """One answer for the client, made of one or more answers of the provider's."""

    output_key: ClassVar[str]
    """Of the usage: what the model put out."""
    details_key: ClassVar[str]
    """Of the usage: what that is made of."""
    going_on: ClassVar[frozenset[str]]
    """Reasons to stop of an answer whose calls wait for results."""

    def __init__(self) -> None:
        self.is_first = True
        """Whether the newest answer is the first."""
        self.is_hiding = False
        """Whether a call of our tool began in any answer."""
        self.has_cut_tools = False
        """Whether our tool was taken out of the tools that an answer repeats."""
        self.held: list[bytes] = []
        """The end of the newest answer, as the client would get it."""
        self.renamed_id: tuple[str, str] | None = None
        """The answer's id as the client knows it, and the one that its provider goes on from; None for the same."""
        self._earlier: dict[Path, int] = {}
        self.begin()

    def begin(self) -> None:
        """Forget what belongs to one answer of the provider's."""
        self.has_own_calls = False
        self.has_client_calls = False
        self.is_complete = False
        self.stop_reason = ""
        self.oddity = ""
        """Why the answer cannot be sent back as it was; "" when it can."""
        self._counted: dict[Path, int] = {}

    def next_answer(self) -> None:
        """Go on with the next answer of the provider's."""
        for path, count in self._counted.items():
            self._earlier[path] = self._earlier.get(path, 0) + count
        self.is_first = False
        self.begin()

    @abstractmethod
    def take_event(self, frame: Frame, event: Mapping[str, Any]) -> bytes:
        """Take one event of a stream; what the client gets for it now.

        Raises:
            WireFormatError: it should be changed, and cannot be understood.
        """

    @abstractmethod
    def take_body(self, text: str, body: Mapping[str, Any]) -> str:
        """Take a whole answer; what the client gets for it, unless it is asked to go on.

        Raises:
            WireFormatError: it cannot be understood.
        """

    @abstractmethod
    def calls(self) -> tuple[OwnCall, ...]:
        """Calls of our tool in the newest answer, in order."""

    @abstractmethod
    def blocks(self) -> tuple[str, ...]:
        """JSON texts of what the newest answer holds, as `own_tool.continued` takes them."""

    @property
    def is_touched(self) -> bool:
        """Whether the client gets anything else than what one answer of the provider's holds."""
        return self.is_shifted or self.has_cut_tools

    @property
    def is_shifted(self) -> bool:
        """Whether a call was left out or another answer joins on, so that places and numbers are our own."""
        return self.is_hiding or not self.is_first

    @property
    def is_own_only(self) -> bool:
        """Whether our tool is called and none of the client's."""
        return self.has_own_calls and not self.has_client_calls

    def cause(self) -> str:
        """Why the newest answer cannot be continued by us; "" when it can."""
        if not self.is_complete:
            return "it has no end"
        if not self.has_own_calls:
            return "it does not call the tool"
        if self.has_client_calls:
            return "it calls tools of the client's too"
        if self.stop_reason not in self.going_on:
            return f"it ended with {self.stop_reason[:_MOST_REASON_CHARS]!a}"
        return self.oddity

    def hold(self, content: bytes) -> bytes:
        """Hold a piece of the answer's end back where our tool alone was called; else it is what the client gets."""
        if not self.is_own_only:
            return content
        self.held.append(content)
        return b""

    # -- usage ---------------------------------------------------------------------------------

    def count(self, usage: object) -> None:
        """Note what the newest answer put out, by a usage object; counts are those of the whole answer so far."""
        told = as_object(usage)
        for path, value in ((self.output_key,), told.get(self.output_key)), *self._details(told):
            count = as_count(value)
            if count is not None:
                self._counted[path] = count

    def usage_changes(self, place: Path, usage: object) -> dict[Path, str]:
        """Paths below ``place`` -> counts of output with those of the earlier answers; counts of input stay."""
        told = as_object(usage)
        listed = [
            ((self.output_key,), told.get(self.output_key)),
            (("total_tokens",), told.get("total_tokens")),
            *self._details(told),
        ]
        changes: dict[Path, str] = {}
        for path, value in listed:
            earlier = self._earlier.get((self.output_key,) if path == ("total_tokens",) else path, 0)
            count = as_count(value)
            if earlier and count is not None:
                changes[(*place, *path)] = str(count + earlier)
        return changes

    def _details(self, usage: Mapping[str, Any]) -> list[tuple[Path, Any]]:
        return [((self.details_key, key), value) for key, value in as_object(usage.get(self.details_key)).items()]


def edited(frame: Frame, shape: Shape, changes: Mapping[Path, str], removed: Iterable[Path] = ()) -> bytes:
    """An event with some values changed and some taken out; without changes its bytes."""
    leaving = tuple(removed)
    if not changes and not leaving:
        return frame.raw
    edits = JsonEdits(frame.data or "", shape)
    for path, value in changes.items():
        edits.set(path, value)
    for path in leaving:
        edits.remove(path)
    return frame.with_data(edits.text())
