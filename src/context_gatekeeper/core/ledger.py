"""Net ledger of one session: its bill so far beside that of sending everything with a perfect cache."""

from __future__ import annotations

from dataclasses import dataclass, field

from context_gatekeeper.core.economics import (
    FAULT_CALL_TOKENS,
    FAULT_FRAME_TOKENS,
    PriceProfile,
    call_price,
)

__all__ = ["Bill", "NetLedger", "PromptCache"]


@dataclass(slots=True)
class Bill:
    """Sums over the calls of one session."""

    units: float = 0.0
    """Plain input tokens of the model (module ``economics``)."""
    calls: int = 0
    extra_calls: int = 0
    """Calls that only asked for missing pages."""
    prompt_tokens: int = 0
    """Of all calls, extra ones included."""
    read_tokens: int = 0
    output_tokens: int = 0


@dataclass(slots=True)
class PromptCache:
    """A provider's prompt cache as the bill sees it: the longest common prefix with the request before.

    A shorter prefix than the profile's minimum is not cached; neither is one that was not used for
    longer than its time to live (``is_cold``).
    """

    prices: PriceProfile
    bill: Bill = field(default_factory=Bill)

    def call(self, prompt_tokens: int, common_tokens: int, *, is_cold: bool, volatile_tokens: int = 0) -> float:
        """Bill one prompt; its output is billed by `answer`.

        Args:
            prompt_tokens: the whole prompt, resident part included.
            common_tokens: tokens of the prefix that the request before had too; 0 for the first.
            is_cold: the time to live ran out.
            volatile_tokens: of the prompt's tail, sent outside the cache at the plain price.
        """
        cached = 0 if is_cold or common_tokens < self.prices.min_prefix_tokens else common_tokens
        volatile = min(volatile_tokens, prompt_tokens - cached)
        written = prompt_tokens - cached - volatile
        units = call_price(self.prices, cached, written, volatile, 0)
        self.bill.units += units
        self.bill.calls += 1
        self.bill.prompt_tokens += prompt_tokens
        self.bill.read_tokens += cached
        return units

    def fault(self, prompt_tokens: int, page_tokens: int, pages: int) -> float:
        """Bill the extra call of a page fault: the prompt again, the asking call, the pages at the tail."""
        asked = FAULT_CALL_TOKENS * pages
        added = FAULT_FRAME_TOKENS * pages + page_tokens
        units = call_price(self.prices, prompt_tokens, added, 0, asked)
        self.bill.units += units
        self.bill.extra_calls += 1
        self.bill.prompt_tokens += prompt_tokens + added
        self.bill.read_tokens += prompt_tokens
        self.bill.output_tokens += asked
        return units

    def answer(self, output_tokens: int) -> None:
        """Bill what the model wrote."""
        self.bill.units += self.prices.output * output_tokens
        self.bill.output_tokens += output_tokens


@dataclass(slots=True)
class NetLedger:
    """What the session cost beside what append-only would have cost, in billed units, outputs left out."""

    spent: float = 0.0
    append_only: float = 0.0

    @property
    def saved(self) -> float:
        """Net savings so far; negative while rewrites and faults have not earned themselves back."""
        return self.append_only - self.spent

    def can_afford(self, price: float, overdraft: float) -> bool:
        """Whether paying ``price`` keeps the session's bill below append-only's, but for ``overdraft`` of it."""
        return price <= self.saved + overdraft * self.append_only
