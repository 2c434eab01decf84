"""What must hold in every replay of ours: handles give the original bytes, card entries and kept lines are verbatim."""

from __future__ import annotations

from dataclasses import dataclass

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.core.expansion import expand_lines, expand_range
from context_gatekeeper.engine.digest import handle_ranges, slice_text
from context_gatekeeper.engine.pager import Pager
from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.engine.window import EntryForm
from context_gatekeeper.errors import GatekeeperError
from context_gatekeeper.types import AgentSession

__all__ = ["SessionChecks", "SessionInPool", "check_session"]


@dataclass(slots=True)
class SessionChecks:
    """Counts over sessions."""

    handles: int = 0
    exact_handles: int = 0
    card_entries: int = 0
    """Entries of memory cards, and lines kept in digests."""
    unverifiable_card_entries: int = 0
    """Of those, the ones that do not stand in the pages that they cite."""

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


class SessionInPool:
    """A session imported into a pool of its own, to expand its handles as an agent would."""

    def __init__(self, session: AgentSession) -> None:
        self._pool = AgentPool()
        self._name = self._pool.import_session(session).session
        self._texts: dict[str, str] = {}

    def text_of(self, handle: str) -> str | None:
        """What the handle expands to; None when it does not."""
        block, _, span = handle.partition("#")
        if block not in self._texts:
            try:
                self._texts[block] = self._pool.expand(block, session=self._name).text
            except GatekeeperError:
                return None
        text = self._texts[block]
        if not span:
            return text
        first, last = (int(number) for number in span[1:].split("-"))
        return expand_range(text, first, last) if span[0] == "C" else expand_lines(text, first, last)

    def card_counts(self) -> tuple[int, int]:
        """Entries of the memory cards of the session's tasks, and those that their pages do not hold."""
        cards = self._pool.cards(self._name)
        return sum(len(card.card.entries) for card in cards), sum(card.unverifiable for card in cards)

    def close(self) -> None:
        """Forget the session."""
        self._pool.close()


def check_session(log: SessionLog, pager: Pager, in_pool: SessionInPool) -> SessionChecks:
    """Expand every slice that was swapped out, and look every kept line up in its page."""
    checks = SessionChecks()
    for number in pager.swapped_out_at:
        piece = log.slices[number]
        original = log.segments[piece.segment].text[piece.start : piece.end]
        (handle,) = handle_ranges(log, [number])
        checks.handles += 1
        checks.exact_handles += in_pool.text_of(handle) == original
    for entry in pager.window.entries:
        if entry.form is EntryForm.DIGEST:
            source = "\n".join(slice_text(log, log.slices[number]) for number in entry.pieces)
            kept = entry.text.split("\n")[1:]
            checks.card_entries += len(kept)
            checks.unverifiable_card_entries += sum(line not in source for line in kept)
    entries, unverifiable = in_pool.card_counts()
    checks.card_entries += entries
    checks.unverifiable_card_entries += unverifiable
    return checks
