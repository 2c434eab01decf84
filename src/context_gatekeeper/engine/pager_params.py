"""Numbers of the planner, and its three settings."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["OURS", "OURS_CAREFUL", "OURS_FRUGAL", "PagerParams"]


@dataclass(frozen=True, slots=True)
class PagerParams:
    """Numbers of the planner. ``fault_price_factor`` is the one knob of the user."""

    fault_price_factor: float = 0.5
    """What a page fault is worth in units of its own bill; with a target, where the steering starts."""
    fault_target: float | None = 0.035
    """Share of calls that may fault; the factor is steered to it. None: the factor stays."""
    steering: float = 0.12
    """Step of the factor's logarithm a call: up by this much at a fault, down by the target's share of it."""
    fault_memory_calls: float = 40.0
    """Calls over which the running share of faults is taken."""
    patience_share: float = 2.0
    """Running share over target beyond which nothing more is left out until faults have become rarer."""
    factor_bounds: tuple[float, float] = (0.1, 8.0)
    name_weight: float = 0.2
    """Worth of a slice of which only a name may be quoted, beside one with a line."""
    keep_calls: float = 8.0
    """Calls whose rent a slice must be worth to stay at a rewrite."""
    patience: float = 2.0
    """Rent over price at which a rewrite is due."""
    tail_tokens: int = 1000
    """Newest part of the window, which always stays."""
    kept_exchanges: int = 2
    """Newest calls, with their results, that always stay whole."""
    short_user_tokens: int = 150
    """A person's text up to this size always stays."""
    short_call_tokens: int = 100
    """A call up to this size stays as long as its result does."""
    other_task_share: float = 0.1
    """Of a request that other tasks than the running one may fill."""
    every_calls: int = 2
    """Calls between two looks at the window."""
    overdraft: float = 0.01
    """Share of the append-only bill by which a session's own may stand above it."""
    reserve_faults: float = 8.0
    """Page faults that the ledger must be able to pay beside a rewrite, as far as what it saves a call does not."""
    reserve_page_tokens: int = 1500
    """Text that such a fault brings back: several slices at once, where a usual one brings one."""
    limit_share: float = 0.8
    """Of a model's window, or of a price step, that is left full when it forces a rewrite."""
    whole_blocks: bool = False
    """Whether the provider's cache holds whole blocks of a message: a change inside one writes all of it again."""
    digest: bool = True
    refers: bool = True


OURS = PagerParams()
"""The headline: recorded sessions end at one faulting call in twenty, or less."""
OURS_FRUGAL = replace(OURS, fault_price_factor=0.3, fault_target=0.09)
"""Cheaper, with about one fault in fourteen calls."""
OURS_CAREFUL = replace(OURS, fault_price_factor=1.0, fault_target=0.018)
"""About one fault in forty calls."""
