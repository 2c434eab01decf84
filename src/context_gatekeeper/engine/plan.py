"""ContextPlan: the whole record of one decision about an agent session's window.

What is in, in which form and why; what left, when and why; tokens, the expected bill, faults since the last rewrite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["ContextPlan", "PlannedDeparture", "PlannedEntry"]


@dataclass(frozen=True, slots=True)
class PlannedEntry:
    """One stretch of the next request."""

    handle: str
    """Names what it stands for inside the session; "" for a note."""
    form: str
    """``raw``, ``recalled``, ``reference``, ``digest``, ``head`` or ``note``."""
    kind: str
    """What the slice is a piece of: ``read``, ``shell``, ``user`` ...; "" for a digest of several."""
    path: str
    """The file it is about; "" for none."""
    task: str
    tokens: int
    reason: str
    risk: float
    """Expected units of a fault if it left, before the factor; 0 where it was not asked."""
    rent: float
    """Units that keeping it costs over the calls it must be worth."""


@dataclass(frozen=True, slots=True)
class PlannedDeparture:
    """A slice that is in the pool only."""

    handle: str
    call: int
    """Calls made before it left."""
    reason: str
    tokens: int


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """One decision; money in plain input tokens of the model."""

    call: int
    """Calls made before the request."""
    epoch: int
    """Rewrites so far."""
    rewrite: str
    """Why the window was rewritten for this request; "" when it only grew."""
    resident_tokens: int
    window_tokens: int
    written_tokens: int
    """Of the window, what the request before did not have in its prefix."""
    expected_units: float
    """Bill of the request without its output, when the cache is alive."""
    fault_price_factor: float
    faults_since_rewrite: int
    saved_units: float
    """Net savings of the session so far against append-only."""
    running_task: str
    entries: tuple[PlannedEntry, ...]
    departures: tuple[PlannedDeparture, ...]
    """Newest first."""

    @property
    def prompt_tokens(self) -> int:
        """Of the request."""
        return self.resident_tokens + self.window_tokens

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form with the same names."""
        return {**asdict(self), "prompt_tokens": self.prompt_tokens}

    def lines(self, *, most_entries: int = 40, most_departures: int = 20) -> list[str]:
        """The plan in words, one line a finding; the least and the newest are cut with a count."""
        size = f"{self.prompt_tokens} tokens ({self.resident_tokens} resident), {self.written_tokens} of them new"
        state = f"epoch {self.epoch}, {self.faults_since_rewrite} faults in it"
        saved = f"saved so far {self.saved_units:.0f} units"
        told = [
            f"call {self.call}: {size}; expected bill {self.expected_units:.0f} units",
            f"{state}; {saved}; a fault is worth {self.fault_price_factor:.2f} of its bill",
        ]
        if self.rewrite:
            told.append(f"rewritten: {self.rewrite}")
        told += _some([_entry_line(entry) for entry in self.entries], most_entries, "entries in the window")
        left = [_departure_line(departure) for departure in reversed(self.departures)]
        return told + _some(left, most_departures, "slices out of the window")


def _entry_line(entry: PlannedEntry) -> str:
    about = " ".join(part for part in (entry.handle, entry.form, entry.kind, entry.path) if part)
    return f"in   {about}: {entry.tokens} tokens; {entry.reason}"


def _departure_line(left: PlannedDeparture) -> str:
    return f"out  {left.handle}: {left.tokens} tokens, left before call {left.call}; {left.reason}"


def _some(lines: Sequence[str], most: int, what: str) -> list[str]:
    """The last ``most`` lines, and how many there are."""
    if len(lines) <= most:
        return list(lines)
    return [f"... {len(lines) - most} more {what}", *lines[len(lines) - most :]]
