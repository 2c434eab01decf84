"""What a pool tells of itself and finds: records for programs and for the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from context_gatekeeper.engine.recalled_pages import RecalledPage
from context_gatekeeper.engine.session_view import SessionTotals

__all__ = ["PoolStats", "RecallResult", "SessionInfo"]


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One agent session of the pool."""

    name: str
    source: str
    """Format of the log that it came from."""
    log_id: str
    """The log's own name of it."""
    working_folder: str
    pages: int
    """With the empty sides between."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form with the same names."""
        return {name: getattr(self, name) for name in SessionInfo.__slots__}


@dataclass(frozen=True, slots=True)
class RecallResult:
    """What a recall found, and the block of data that an agent is given."""

    pages: tuple[RecalledPage, ...]
    """Best first."""
    text: str
    """One fenced block of the best five at most (`render_recalled`); "" when nothing was found."""


@dataclass(frozen=True, slots=True)
class PoolStats:
    """How the agent sessions of a pool add up."""

    sessions: int
    totals: SessionTotals
    goals: int
    """Active ones."""
    pins: int
    resident_tokens: int
    """Of active goals and pins together."""
    store_bytes: int | None
    """Of the store's file and its log; None where it is no file."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form with the same names."""
        told = {name: getattr(self, name) for name in PoolStats.__slots__}
        return told | {"totals": self.totals.to_dict()}
