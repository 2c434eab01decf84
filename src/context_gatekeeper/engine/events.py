"""The event feed: what happens to the pages of a session, as records that observers subscribe to.

A dashboard, a log or a counter of savings sees hits, faults, swaps and epochs here and nowhere else. Events carry
handles, counts and reasons, never the text of a page. An observer cannot disturb the planning: one that fails gets
no more events, and a warning says so once.

Source: the scheduling design, section 9 (problem 3: the scheduler must be observable).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

__all__ = ["EventFeed", "EventKind", "PageEvent", "Subscriber"]

_LOGGER = logging.getLogger("context_gatekeeper")


class EventKind(StrEnum):
    """What happened."""

    HIT = "hit"
    """A text referred to pages that are in the window."""
    FAULT = "fault"
    """A text referred to pages that are not, or to none that there is."""
    SWAPPED_IN = "swapped_in"
    SWAPPED_OUT = "swapped_out"
    EPOCH = "epoch"
    """The window was laid anew: the provider's cache starts over from the first change."""
    PINNED = "pinned"
    """Pages stay for a while because they kept coming back."""
    REFETCHED = "refetched"
    """Pages came back soon after they had left: the swap was a mistake."""


@dataclass(frozen=True, slots=True)
class PageEvent:
    """One thing that happened to pages of one session."""

    kind: EventKind
    session: str
    turn: int
    """As its owner counts: for an agent session, model calls made before."""
    pages: tuple[str, ...] = ()
    """Handles, in the order of the session; as it was written for a page that there is not."""
    tokens: int = 0
    """Of these pages; of an epoch, what the window shrank by."""
    reason: str = ""
    """In words, without any text of a page."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form with the same names."""
        return {**asdict(self), "kind": self.kind.value, "pages": list(self.pages)}


Subscriber = Callable[[PageEvent], object]


class EventFeed:
    """Passes events on, in the thread that publishes them. For one thread at a time."""

    def __init__(self) -> None:
        self._subscribers: dict[int, Subscriber] = {}
        self._subscriptions = 0

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Have ``subscriber`` called with every event from now on; call the result to end that.

        Subscribers are called in the order in which they came; one that subscribes twice is called twice.
        """
        self._subscriptions += 1
        number = self._subscriptions
        self._subscribers[number] = subscriber

        def end() -> None:
            self._subscribers.pop(number, None)

        return end

    def publish(self, event: PageEvent) -> None:
        """Pass ``event`` to every subscriber. Never raises for one that fails: it is dropped with one warning.

        Who subscribes while an event is passed on gets the next one. O(subscribers).
        """
        for number, subscriber in list(self._subscribers.items()):
            try:
                subscriber(event)
            except Exception as failure:  # noqa: BLE001 - whatever an observer does, planning goes on
                self._subscribers.pop(number, None)
                name = getattr(subscriber, "__qualname__", type(subscriber).__name__)
                # Its message may hold a page's text; its kind is enough to find it.
                _LOGGER.warning(
                    "%s failed with %s at an event (%s) and gets no more of them",
                    name,
                    type(failure).__name__,
                    event.kind.value,
                )
