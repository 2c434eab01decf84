"""What waits to be stored: exchanges on a shelf of bounded size, and the frames in which they are handed over."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from context_gatekeeper.gateway.worker import pack_frame
from context_gatekeeper.wire.records import WireApi

__all__ = ["ArchiveLimits", "Archived", "Shelf", "WaitingExchange"]

_ENTRY_BYTES = 500
"""What an exchange takes beside its bodies."""
_QUICK = 1
"""Level of compression: a fifth of the size for a hundredth of a second per MB."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """How much of what waits is kept, and for how long."""

    most_bytes: int = 32 * 1024 * 1024
    """Of what waits on each side. The largest gives way: it is the likeliest to come again."""
    most_talks: int = 256
    """Conversations whose newest answer may wait for the next request."""
    close_seconds: float = 4.0
    """How long the planner's end waits for the storing, which goes on behind it."""
    end_seconds: float = 60.0
    """How long a store that cannot be used is tried after the planner's end."""
    retry_seconds: float = 5.0
    """Pause before a store that could not be used is tried again."""
    slow_seconds: float = 4.0
    """What waits may wait for while nothing is stored, before the store is said to fail."""
    pause_seconds: float = 0.1
    """Before a process that ended is started again; doubles each time, up to half a minute."""

    def to_json(self) -> dict[str, Any]:
        """Names -> values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Archived:
    """One exchange: a request, and what came back."""

    session: str
    api: WireApi
    request: bytes
    content_type: str = ""
    answer: bytes = b""
    """As the provider sent it; "" where none came."""
    is_complete: bool = False


@dataclass(slots=True, eq=False)
class WaitingExchange:
    """An exchange that waits."""

    number: int
    """Names it between the planner and the process that stores."""
    session: str
    facts: Mapping[str, Any]
    """The other fields of `Archived`, with the length of the request."""
    body: bytes
    """Request and answer."""
    is_packed: bool = False
    """Whether the body is compressed."""

    @classmethod
    def of(cls, exchange: Archived, number: int) -> WaitingExchange:
        """Not compressed yet."""
        facts = {
            "api": exchange.api.value,
            "content_type": exchange.content_type,
            "is_complete": exchange.is_complete,
            "request_bytes": len(exchange.request),
            "answer_bytes": len(exchange.answer),
        }
        return cls(number, exchange.session, facts, exchange.request + exchange.answer)

    @classmethod
    def of_frame(cls, header: Mapping[str, Any], body: bytes) -> WaitingExchange:
        """Of a frame of `frame`. Raises KeyError."""
        return cls(header["number"], header["session"], header["facts"], body, is_packed=True)

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return len(self.body) + _ENTRY_BYTES

    @property
    def packed(self) -> bytes:
        """The body, compressed."""
        return self.body if self.is_packed else zlib.compress(self.body, _QUICK)

    def frame(self) -> list[bytes]:
        """The pieces of the frame in which it is handed over."""
        return pack_frame({"number": self.number, "session": self.session, "facts": self.facts}, self.packed)

    def exchange(self) -> Archived:
        """What waits. Raises zlib.error, KeyError and ValueError for a frame that is none of ours."""
        facts, body = self.facts, zlib.decompress(self.body) if self.is_packed else self.body
        size = facts["request_bytes"]
        return Archived(
            self.session,
            WireApi(facts["api"]),
            body[:size],
            facts["content_type"],
            body[size:],
            facts["is_complete"],
        )

    def is_in(self, newer: WaitingExchange) -> bool:
        """Whether a newer exchange of its conversation holds all of it.

        An answer that broke off is in no later request; after a rewind the request is shorter.
        """
        is_whole = self.facts["is_complete"] or not self.facts["answer_bytes"]
        return is_whole and bool(self.facts["request_bytes"] <= newer.facts["request_bytes"])


class Shelf:
    """Exchanges that wait, in the order in which their conversations came, within a number of bytes.

    Args:
        most_bytes: of all of them together.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._places: OrderedDict[int, WaitingExchange] = OrderedDict()
        self._place_of: dict[int, int] = {}
        """Number of an exchange -> its place."""
        self._newest: dict[str, int] = {}
        """Conversation -> place of its newest exchange."""
        self._next_place = 0

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[WaitingExchange]:
        return iter(self._places.values())

    def put(self, exchange: WaitingExchange) -> list[WaitingExchange]:
        """Add an exchange, in the place of an older one that it holds; returns those that have no room any more."""
        place = self._newest.get(exchange.session)
        if place is not None and self._places[place].is_in(exchange):
            older = self._places[place]
            self._bytes -= older.size
            del self._place_of[older.number]
        else:
            place = self._next_place
            self._next_place += 1
        self._bytes += exchange.size
        self._places[place] = exchange
        self._place_of[exchange.number] = self._newest[exchange.session] = place
        dropped = []
        while self._bytes > self._most_bytes:
            largest = max(self._places.values(), key=lambda one: one.size)
            dropped.append(largest)
            self.remove(largest.number)
        return dropped

    def first(self) -> WaitingExchange | None:
        """The one that has waited longest."""
        return next(iter(self._places.values()), None)

    def get(self, number: int) -> WaitingExchange | None:
        """The one of this number, if it waits and no newer one in its place."""
        place = self._place_of.get(number)
        return None if place is None else self._places[place]

    def remove(self, number: int) -> None:
        """Take one away, if it is there."""
        place = self._place_of.pop(number, None)
        if place is not None:
            gone = self._places.pop(place)
            self._bytes -= gone.size
            if self._newest.get(gone.session) == place:
                del self._newest[gone.session]

    def to_back(self, number: int) -> None:
        """Let all others be before it, if it is there."""
        place = self._place_of.get(number)
        if place is not None:
            self._places.move_to_end(place)

    def pack(self, number: int, body: bytes) -> None:
        """Keep the compressed body in place of the other, if it is there."""
        exchange = self.get(number)
        if exchange is not None:
            self._bytes += len(body) - len(exchange.body)
            exchange.body, exchange.is_packed = body, True
