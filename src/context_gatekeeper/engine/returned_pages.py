"""Pages that a fault brought back: guests of one turn, unless the agent uses them.

Being in the window is no use, and neither is writing again what the text that called the page had said itself: or
a page would keep itself in the window.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from context_gatekeeper.core.heat import COLD, FaultHistory, Heat, HeatEvent, touched
from context_gatekeeper.engine.session_log import SessionLog, SliceKind, UnitKind, tool_kind
from context_gatekeeper.engine.tool_paths import path_argument
from context_gatekeeper.types import AgentMessage, BlockKind

__all__ = ["ReturnedPages"]


@dataclass(slots=True)
class _Guest:
    """A slice that may leave again."""

    since: int
    known: frozenset[int]
    """Units of it that stand in the text that called it."""
    heat: Heat = COLD


class ReturnedPages:
    """Slices that came back and whether they may leave again.

    Args:
        log: the session; only read.
        history: who thrashed, and so must stay for a while.
        used_heat: from this heat on, gained since it came back, a slice is used and no guest any more.
    """

    def __init__(self, log: SessionLog, history: FaultHistory[int], used_heat: float) -> None:
        self._log = log
        self._history = history
        self._used_heat = used_heat
        self._guests: dict[int, _Guest] = {}

    def came_back(self, piece: int, turn: int, told: Collection[int], *, is_named: bool) -> None:
        """A slice came back at ``turn``, called by its handle or by a text with the units ``told``."""
        self._guests[piece] = _Guest(turn, frozenset(unit for unit in self._log.slices[piece].units if unit in told))
        if is_named:
            self.named(piece, turn)

    def named(self, piece: int, turn: int) -> None:
        """A text wrote the handle of the slice's page."""
        self._touch(piece, HeatEvent.HANDLE_QUOTED, turn)

    def used(self, message: AgentMessage, turn: int) -> tuple[int, ...]:
        """Heat what ``message`` of the agent uses; the slices that are guests no more, ascending."""
        if not self._guests:
            return ()
        quoted = self._log.quoted_units(message)
        edited = _edited_files(message)
        for piece, guest in self._guests.items():
            event = self._use_of(piece, quoted - guest.known, edited)
            if event is not None:
                self._touch(piece, event, turn)
        params = self._history.params
        kept = [n for n, guest in self._guests.items() if guest.heat.at(turn, params) >= self._used_heat]
        for piece in kept:
            del self._guests[piece]
        return tuple(sorted(kept))

    def leaving(self, turn: int) -> tuple[int, ...]:
        """Guests from before ``turn`` that may leave, ascending."""
        return tuple(
            sorted(
                piece
                for piece, guest in self._guests.items()
                if guest.since < turn and not self._history.is_resident(piece, turn)
            )
        )

    def left(self, piece: int) -> None:
        """The slice is not in the window any more."""
        self._guests.pop(piece, None)

    # -- inside -----------------------------------------------------------------------------

    def _touch(self, piece: int, event: HeatEvent, turn: int) -> None:
        guest = self._guests.get(piece)
        if guest is not None:
            guest.heat = touched(guest.heat, event, turn, self._history.params)

    def _use_of(self, piece: int, quoted: Collection[int], edited: Collection[str]) -> HeatEvent | None:
        """A changed file and a quoted line are real uses, a name alone is half of one."""
        log = self._log
        if log.segments[log.slices[piece].segment].path in edited:
            return HeatEvent.FILE_EDITED
        kinds = {log.units[unit].kind for unit in log.slices[piece].units if unit in quoted}
        if UnitKind.LINE in kinds:
            return HeatEvent.HANDLE_QUOTED
        return HeatEvent.KEYWORD_HIT_USED if kinds else None


def _edited_files(message: AgentMessage) -> frozenset[str]:
    """Files that the message's calls change; no empty names."""
    changes = (SliceKind.EDIT_CALL, SliceKind.WRITE_CALL)
    calls = [block for block in message.blocks if block.kind is BlockKind.TOOL_CALL]
    paths = {path_argument(block.text) for block in calls if tool_kind(block.name, is_result=False) in changes}
    return frozenset(paths - {""})
