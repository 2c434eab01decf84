"""What must hold in every replay of ours: handles give the original bytes, card entries and kept lines are verbatim."""

from __future__ import annotations

from dataclasses import dataclass

from context_gatekeeper.engine.pager import Pager
from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.types import AgentSession

__all__ = ["SessionChecks", "check_session"]


@dataclass(slots=True)
class SessionChecks:
    """Counts over sessions."""

    handles: int = 0
    exact_handles: int = 0
    card_entries: int = 0
    unverifiable_card_entries: int = 0

    @property
    def expand_exact(self) -> float:
        """Share of the handles that gave the original bytes; 1.0 where there was none."""
        return self.exact_handles / self.handles if self.handles else 1.0

    def add(self, other: SessionChecks) -> None:
        """Take in another session's counts."""
        self.handles += other.handles
        self.exact_handles += other.exact_handles
        self.card_entries += other.card_entries
        self.unverifiable_card_entries += other.unverifiable_card_entries


def check_session(session: AgentSession, log: SessionLog, pager: Pager) -> SessionChecks:
    """Expand every slice that was swapped out, against the session as it was read."""
    originals = [block.text for message in session.messages for block in message.blocks]
    checks = SessionChecks()
    for number in pager.swapped_out_at:
        piece = log.slices[number]
        text = log.segments[piece.segment].text[piece.start : piece.end]
        checks.handles += 1
        checks.exact_handles += text == originals[piece.segment][piece.start : piece.end]
    return checks
