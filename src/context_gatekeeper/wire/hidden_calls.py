"""The gateway's own tool in answers: its calls are left out, and what comes behind them joins on.

A model may call the tool that `own_tool.with_own_tool` declared. The client knows nothing of it: the call is taken out
of what the client gets, the request goes on behind it (`own_tool.continued`), and the next answer joins the one before,
so that all of them are one message for the client.

What comes before the first call of our tool passes at once and byte for byte; an answer without such a call passes
unchanged to its last byte. One exception: the Responses API repeats the request's tools in its answers, and ours is
taken out of each such list, called or not; all else keeps its bytes, but for an event that breaks off at the end.

Behind a call events are changed by splices: indexes of blocks, items and calls, and numbers of events, go on;
beginnings of further answers are left out; counts of output are added up, while those of input are the last answer's,
by which clients measure how full their window is. Comments, pings, unknown events and blocks pass.

Where a model calls our tool and the client's in one answer ours are left out and the answer ends as it is: the client
sends its results in a request of its own, in which the page can be delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from context_gatekeeper.errors import WireFormatError
from context_gatekeeper.wire.answer_draft import loaded_object
from context_gatekeeper.wire.hidden_anthropic import HiddenMessages
from context_gatekeeper.wire.hidden_chat import HiddenChat
from context_gatekeeper.wire.hidden_draft import HiddenDraft, OwnCall
from context_gatekeeper.wire.hidden_frames import Frame, FrameReader
from context_gatekeeper.wire.hidden_responses import HiddenResponses
from context_gatekeeper.wire.records import WireApi
from context_gatekeeper.wire.sse import MOST_EVENT_BYTES

__all__ = ["FinishedAnswer", "HiddenCalls", "OwnCall"]

_END_MARK = "[DONE]"


@dataclass(frozen=True, slots=True)
class FinishedAnswer:
    """What an answer of the provider's comes to at its end."""

    rest: bytes
    """What the client gets now: of a whole answer all, of a stream what stood behind its last blank line."""
    calls: tuple[OwnCall, ...]
    """Calls of our tool, in order; an answer that broke off may hold the beginning of one."""
    has_client_calls: bool
    """Whether tools of the client's are called too."""
    is_complete: bool
    """Whether the answer ended the way its API ends one."""
    blocks: tuple[str, ...]
    """JSON texts of all that the answer holds, for `own_tool.continued`; none when it cannot go on."""
    cause: str
    """Why it cannot go on: not complete, no call of ours, others too, cut short, of a form that we do not know; ""
    when it can."""
    held: bytes
    """The end that the client has not got, as `HiddenCalls.released` would give it."""

    @property
    def is_continuable(self) -> bool:
        """Whether to answer the calls and go on; if not `HiddenCalls.released` gives the end."""
        return not self.cause


class HiddenCalls:
    """The way of one answer to the client, which may be made of several answers of the provider's.

    For each of the provider's answers: `feed` its bytes, `finish`, and then either send the request that goes on and
    call `next_answer`, or send what `released` gives.

    Args:
        api: whose form the request has.
        is_stream: whether the answers are server-sent events; all must be of the same kind.
        most_bytes: what one event or one whole answer may hold, from 1. Where it is more, the rest of the answer
            passes as it comes, and it cannot go on.
    """

    def __init__(self, api: WireApi, *, is_stream: bool, most_bytes: int = MOST_EVENT_BYTES) -> None:
        self._draft = _DRAFTS[api]()
        self._is_stream = is_stream
        self._most_bytes = most_bytes
        self._frames = FrameReader(most_bytes)
        self._body = bytearray()
        self._is_blind = False
        self._has_begun = False

    @property
    def is_touched(self) -> bool:
        """Whether the client gets anything else than the bytes of one answer (its length is another then)."""
        return self._draft.is_touched

    @property
    def renamed_id(self) -> tuple[str, str] | None:
        """The answer's id as the client knows it, and the one that the provider goes on from, where they differ.

        Of the Responses API: a ``previous_response_id`` that the client sends must be changed to the second.
        """
        return self._draft.renamed_id

    def feed(self, piece: bytes) -> bytes:
        """What the client gets for a piece of the answer now. How the bytes are cut makes no difference to the sum.

        A stream is held for no longer than one event takes to end; of a whole answer everything comes with `finish`.
        """
        if self._is_blind:
            return piece
        if not self._is_stream:
            self._body += piece
            return self._go_blind(bytes(self._body)) if len(self._body) > self._most_bytes else b""
        given = b"".join([self._take(frame) for frame in self._frames.feed(piece)])
        return given + self._go_blind(self._frames.take_rest()) if self._frames.is_too_large else given

    def finish(self) -> FinishedAnswer:
        """The answer's end was reached, or will not come."""
        rest = b""
        if not self._is_blind:
            rest = self._last_frame() if self._is_stream else self._whole_body()
        draft = self._draft
        cause = draft.cause() or ("it is too large" if self._is_blind else "")
        return FinishedAnswer(
            rest,
            draft.calls(),
            draft.has_client_calls,
            draft.is_complete,
            () if cause else draft.blocks(),
            cause,
            b"".join(draft.held),
        )

    def next_answer(self) -> None:
        """The request goes on, and what is fed now is its answer.

        The end that was held back is forgotten as soon as the first event comes; until then `released` gives it, so
        that the client gets a valid end when the provider cannot be reached or refuses.
        """
        self._draft.next_answer()
        self._frames.take_rest()
        self._body.clear()
        self._is_blind = self._has_begun = False

    def released(self) -> bytes:
        """The end that was held back, once; b"" when there is none.

        Nothing of the client's waits behind it, so that the reason to stop is that of an answer without calls. Of an
        answer that broke off it is what came, and nothing is made up.
        """
        held = b"".join(self._draft.held)
        self._draft.held.clear()
        return held

    def _go_blind(self, content: bytes) -> bytes:
        self._is_blind = True
        self._body.clear()
        self._begin()
        return content

    def _begin(self) -> None:
        """Forget the end of the answer before."""
        if not self._has_begun:
            self._has_begun = True
            self._draft.held.clear()

    def _take(self, frame: Frame) -> bytes:
        if frame.data is None:
            return frame.raw
        self._begin()
        if frame.data.strip() == _END_MARK:
            return self._draft.hold(frame.raw)
        event = loaded_object(frame.data)
        try:
            if event is not None:
                return self._draft.take_event(frame, event)
        except WireFormatError:
            pass  # it passes as it is, and the answer cannot go on
        self._draft.oddity = "an event cannot be read"
        return frame.raw

    def _last_frame(self) -> bytes:
        """Take what stands behind the last blank line: an event when it is one, else the beginning of one."""
        frame = self._frames.close()
        if frame is None:
            return b""
        if frame.data is not None and (frame.data.strip() == _END_MARK or loaded_object(frame.data) is not None):
            return self._take(frame)
        return b"" if self._draft.is_touched else frame.raw

    def _whole_body(self) -> bytes:
        raw = bytes(self._body)
        self._begin()
        try:
            text = raw.decode("utf-8")
            body = loaded_object(text)
            given = self._draft.take_body(text, body) if body is not None else text
        except (UnicodeDecodeError, WireFormatError):
            return raw
        return self._draft.hold(given.encode("utf-8", "surrogatepass"))


_DRAFTS: Mapping[WireApi, Callable[[], HiddenDraft]] = {
    WireApi.MESSAGES: HiddenMessages,
    WireApi.CHAT: HiddenChat,
    WireApi.RESPONSES: HiddenResponses,
}
