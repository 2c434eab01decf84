"""What the provider has seen, and figures of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from context_gatekeeper.core.economics import PriceProfile, call_price
from context_gatekeeper.testing.records import ReceivedRequest, RequestUsage
from context_gatekeeper.testing.rendering import RenderedBlock

__all__ = ["Journal", "PrefixBreak", "conversation_key", "request_price"]


@dataclass(frozen=True, slots=True)
class PrefixBreak:
    """A request that does not go on where the one before it in its conversation stopped."""

    request: int
    """Its place in ``FakeProvider.requests``."""
    block: int
    """Number of the first block that differs."""
    place: str
    """Where that is in the earlier request, such as ``messages[3].content[0]``."""
    tokens_behind: int
    """Tokens of the earlier request from there on: what a cache would have to write again."""


def conversation_key(request: ReceivedRequest) -> Hashable:
    """The session's name, else the first text of the user's; apart for each model."""
    return (request.model, request.session or next((text for role, text in request.messages if role == "user"), ""))


def request_price(usage: RequestUsage, prices: PriceProfile) -> float:
    """Billed units of one request."""
    factor = 1.0
    for step in prices.steps:
        if usage.prompt > step.above_tokens:
            factor = step.factor
    return factor * call_price(prices, usage.read, usage.written, usage.plain, usage.output)


class Journal:
    """Filled by the server's thread, read by the test's."""

    def __init__(self) -> None:
        self.log: list[ReceivedRequest] = []
        self.requests: list[ReceivedRequest] = []
        self.counted: list[ReceivedRequest] = []
        self.refusals: list[str] = []
        self.hangups = 0
        self.finished = 0
        self._changed = threading.Condition()

    def note(self, change: Callable[[Journal], None]) -> None:
        """Change it and wake up those who wait."""
        with self._changed:
            change(self)
            self._changed.notify_all()

    def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until ``condition`` holds; whether it does in time."""
        with self._changed:
            return self._changed.wait_for(condition, seconds)

    @property
    def totals(self) -> RequestUsage:
        """Sum over all requests."""
        return sum((request.usage for request in self.requests), RequestUsage())

    def bill(self, prices: PriceProfile) -> float:
        """Sum over all requests, in plain input tokens."""
        return sum(request_price(request.usage, prices) for request in self.requests)

    def prefix_breaks(self, key: Callable[[ReceivedRequest], Hashable]) -> list[PrefixBreak]:
        """Requests that do not extend the one before them in their conversation. O(blocks of all requests)."""
        latest: dict[Hashable, tuple[RenderedBlock, ...]] = {}
        found = []
        for number, request in enumerate(self.requests):
            name = key(request)
            earlier = latest.get(name, ())
            same = _shared_blocks(earlier, request.blocks)
            if same < len(earlier):
                behind = sum(block.tokens for block in earlier[same:])
                found.append(PrefixBreak(number, same, earlier[same].place, behind))
            latest[name] = request.blocks
        return found


def _shared_blocks(first: Sequence[RenderedBlock], second: Sequence[RenderedBlock]) -> int:
    pairs = zip(first, second, strict=False)
    return next(
        (place for place, (one, other) in enumerate(pairs) if one.digest != other.digest), min(len(first), len(second))
    )
