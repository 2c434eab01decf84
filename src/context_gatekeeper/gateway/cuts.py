"""Where a longer request of the same conversation may go on behind what was sent for this one.

A plan that comes too late would cost the whole conversation: the client's own bytes, which no cache has. But what was
sent before is known, and a request that begins as the one before did can be sent as that, with what is new behind it.
"""

from __future__ import annotations

from typing import NamedTuple

from context_gatekeeper.types import MessageRole
from context_gatekeeper.wire.records import WireRequest

__all__ = ["Cut", "find_cuts"]


class Cut(NamedTuple):
    """A place between two messages, in bytes."""

    own: int
    """In the client's own bytes."""
    sent: int
    """In what was sent for them."""


def find_cuts(request: WireRequest, sent: str) -> tuple[Cut, ...]:
    """The places, the latest first. At each one no call is parted from what answers it.

    Args:
        request: as the client sent it.
        sent: its edited text, in which nothing behind the messages is edited.

    Behind the last message; and where the model spoke last, since a client may send its newest message in another
    shape the next time (a breakpoint that moves). The second is none where that message is edited.
    """
    source, messages = request.source, request.messages
    end = messages[-1].span.end
    cuts = [_cut(source, end, sent, len(sent) - (len(source) - end))]
    first = _newest_turn(request)
    if first:
        span = messages[first].span
        place = sent.rfind(source[span.start : span.end])
        if place >= 0:
            cuts.append(_cut(source, span.start, sent, place))
    return tuple(cuts)


def _newest_turn(request: WireRequest) -> int:
    """The first of the model's messages that stand together before the newest of the other side; 0 for none."""
    messages = request.messages
    place = len(messages)
    while place and messages[place - 1].role is not MessageRole.ASSISTANT:
        place -= 1
    while place and messages[place - 1].role is MessageRole.ASSISTANT:
        place -= 1
    return place


def _cut(source: str, own: int, sent_text: str, sent: int) -> Cut:
    return Cut(_byte_count(source[:own]), _byte_count(sent_text[:sent]))


def _byte_count(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
