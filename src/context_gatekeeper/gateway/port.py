"""The seam between the gateway's two processes: what the one that relays asks of the one that plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from context_gatekeeper.gateway.cuts import Cut

__all__ = ["Answer", "GatewayCall", "PlanReply", "Planner", "SentAs"]


@dataclass(frozen=True, slots=True)
class GatewayCall:
    """One request of a client, as the gateway hands it to the planner."""

    call_id: int
    """Unique in the life of the gateway."""
    route: str
    """``messages``, ``count_tokens``, ``chat`` or ``responses``."""
    upstream: str
    """Name of the upstream in the configuration."""
    prices: str
    """Price profile of the upstream; "" lets the planner choose by route and request."""
    credential: str
    """Keyed hash of the client's credential, in hex; "" when it sent none. Never the credential itself."""
    headers: Mapping[str, str]
    """Lower-case names that tell the session (`identity.SESSION_HEADERS`), nothing else."""
    now: float
    """Seconds since the epoch."""
    body: bytes
    """Decoded (no gzip, br, zstd)."""
    shadow: bool = False
    """Plan and report, but the client's bytes are sent."""
    is_own_api: bool = False
    """Whether it goes to the API's own provider: services that only speak its API refuse fields they do not know."""


@dataclass(frozen=True, slots=True)
class PlanReply:
    """What the planner decided for one call."""

    call_id: int
    body: bytes | None
    """What to send; None: the client's own bytes."""
    note: str = ""
    """Why, one word for the header ``x-gatekeeper``: ``plan``, ``unchanged``, ``shadow``, ``bypass``."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """For metrics and logs: ``session``, ``prompt_tokens``, ``epoch``, ``rewrite``, ``saved_units`` ..."""
    cuts: tuple[Cut, ...] = ()
    """Where a longer request may go on behind ``body``, should its own plan come too late."""
    betas: tuple[str, ...] = ()
    """Names that the header ``anthropic-beta`` has to hold beside the client's."""


class SentAs(StrEnum):
    """What the provider got for a call."""

    PLANNED = "planned"
    """What the planner replied; where that was no body, the client's own bytes."""
    CONTINUED = "continued"
    """What was sent for the call before, and behind it what is new in the client's bytes: the plan came too late."""
    OWN = "own"
    """The client's own bytes: the plan came too late."""
    REFUSED = "refused"
    """The client's own bytes, after the provider had refused what was planned."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one call; the planner reads usage and the model's message out of it."""

    call_id: int
    status: int
    content_type: str
    content: bytes
    """As the provider sent it, decoded; at most a few MiB."""
    is_complete: bool
    """Whether the stream ended the way its API ends it; False when it broke off or the client left."""
    sent_as: SentAs = SentAs.PLANNED


class Planner(Protocol):
    """Plans calls. One thread calls it, calls in the order in which they came, answers when no call waits."""

    def plan(self, call: GatewayCall) -> PlanReply:
        """Decide one call. May raise: the client's bytes are sent then."""
        ...

    def repair(self, call: GatewayCall, *, was_edited: bool) -> PlanReply:
        """Say what may be sent in place of a request whose thinking the provider found to be another's. May raise.

        Args:
            call: the request as the client sent it; perhaps its plan came too late, or it was never planned.
            was_edited: whether what was planned was refused, and not the client's own bytes.

        Returns:
            A reply whose body is sent once; None there leaves the client's own bytes.
        """
        ...

    def fetch(self, call_id: int, handles: Sequence[str]) -> Sequence[str]:
        """What the gateway's own tool gives the model that asks in its answer to a call. May raise.

        Args:
            call_id: of a call whose answer was not observed yet.
            handles: as the model wrote them.

        Returns:
            A text for each.
        """
        ...

    def observe(self, answer: Answer) -> None:
        """Hear what came back. Failures are counted and change nothing."""
        ...

    @property
    def has_idle_work(self) -> bool:
        """Whether `idle` would do something."""
        ...

    def idle(self) -> None:
        """Do one piece of the work that nobody waits for; called while no call waits."""
        ...

    def status(self) -> Mapping[str, Any]:
        """Sessions and figures so far, JSON-ready."""
        ...

    def close(self) -> None:
        """Finish what is under way."""
        ...
