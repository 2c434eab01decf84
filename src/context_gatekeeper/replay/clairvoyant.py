"""Bounds that no policy can reach: they know what later text will quote (policy (h) of the paging notes).

A quoted line is priced at 12 tokens, another unit at what its name takes; leaving something out breaks no
prefix and nothing is ever missed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from context_gatekeeper.engine.session_log import SessionLog, Slice, UnitKind
from context_gatekeeper.replay.policies import Request
from context_gatekeeper.types import AgentSession, MessageRole

__all__ = ["Clairvoyant", "last_uses"]

_LINE_TOKENS = 12


def last_uses(session: AgentSession) -> dict[str, int]:
    """Unit that some call's output quotes -> the last such call."""
    log = SessionLog()
    uses: dict[str, int] = {}
    for message in session.messages:
        if message.role is MessageRole.ASSISTANT:
            for unit in log.quoted_units(message):
                uses[log.name_of(unit)] = log.calls
        log.add_message(message)
    return uses


class Clairvoyant:
    """Sends the units that will be quoted again; with ``seen`` also every new slice once, whole."""

    def __init__(self, log: SessionLog, uses: Mapping[str, int], *, seen: bool) -> None:
        self._log = log
        self._uses = uses
        self._seen = seen
        self._needed: dict[int, int] = {}
        self._new_tokens = 0
        self._new_needed = 0

    def add(self, pieces: Sequence[Slice]) -> None:
        """See `Policy.add`."""
        for piece in pieces:
            self._new_tokens += piece.tokens
            for unit in piece.units:
                if unit not in self._needed and self._last_use(unit) >= self._log.calls:
                    self._needed[unit] = self._price(unit)
                    self._new_needed += self._needed[unit]

    def request(self, *, is_cold: bool) -> Request:
        """See `Policy.request`."""
        now = self._log.calls
        for unit in [unit for unit in self._needed if self._last_use(unit) < now]:
            del self._needed[unit]
        kept = sum(self._needed.values())
        added = self._new_tokens if self._seen else self._new_needed
        common = max(0, kept - self._new_needed)
        self._new_tokens = self._new_needed = 0
        return Request(common + added, common)

    def holds(self, unit: int, *, by_words: bool) -> bool:
        """Everything that is quoted is there."""
        return True

    def hints_at(self, piece: int) -> bool:
        """Nothing is ever asked for."""
        return False

    def fault(self, pieces: Sequence[int]) -> int:
        """Never called."""
        return 0

    def billed(self, spent: float, append_only: float) -> None:
        """See `Policy.billed`."""

    def other_task_tokens(self) -> int | None:
        """What it sends are units, which belong to no task."""
        return None

    def left_at(self, piece: int) -> int | None:
        """Nothing that is needed has left."""
        return None

    def _last_use(self, unit: int) -> int:
        # By name: logs that cut slices elsewhere number units otherwise.
        return self._uses.get(self._log.name_of(unit), -1)

    def _price(self, unit: int) -> int:
        if self._log.units[unit].kind is UnitKind.LINE:
            return _LINE_TOKENS
        return min(_LINE_TOKENS, 1 + round(0.3 * len(self._log.name_of(unit))))
