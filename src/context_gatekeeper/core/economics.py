"""What a model call is billed, and when leaving text out pays (sections 2.2 and 2.3 of the paging notes).

Unit of money: one plain input token of the model in question. A call costs
``read * cached + write * written + plain + output * out``; every formula below is in that unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "FAULT_CALL_TOKENS",
    "FAULT_FRAME_TOKENS",
    "PRICES",
    "PRICES_AS_OF",
    "PriceProfile",
    "PriceStep",
    "call_price",
    "fault_price",
    "rewrite_price",
]

FAULT_CALL_TOKENS = 60
"""Output of the extra call that asks for a page that is not there."""
FAULT_FRAME_TOKENS = 75
"""That call and the frame of its answer, as they are written to the cache behind the prompt."""
PRICES_AS_OF = "2026-11"
"""When the profiles were written down. They are ratios, to be checked against the provider's own page."""


class PriceStep(NamedTuple):
    """A size of the prompt beyond which a request costs more as a whole."""

    above_tokens: int
    factor: float
    """Of the price of every token of the request."""


@dataclass(frozen=True, slots=True)
class PriceProfile:
    """Prices of one provider's prompt cache, in plain input tokens of the same model."""

    name: str
    read: float
    """A prompt token read from the cache."""
    write: float
    """A prompt token written to it."""
    output: float
    ttl_seconds: float
    """How long a cached prefix lives after its last use; infinite where nothing expires."""
    min_prefix_tokens: int = 1024
    """Shorter prefixes are not cached."""
    steps: tuple[PriceStep, ...] = ()
    """Ascending; none for a flat price."""
    source: str = ""

    @property
    def has_cache(self) -> bool:
        """Whether a repeated prefix is cheaper than a new one."""
        return self.read < self.write


PRICES: dict[str, PriceProfile] = {
    profile.name: profile
    for profile in (
        PriceProfile("anthropic-5m", 0.1, 1.25, 5, 300, source="Anthropic, prompt caching: five-minute cache"),
        PriceProfile("anthropic-1h", 0.1, 2, 5, 3600, source="Anthropic, prompt caching: one-hour cache"),
        PriceProfile("openai", 0.1, 1.25, 8, 600, source="OpenAI, newer models that charge for cache writes"),
        PriceProfile("openai-free-write", 0.1, 1, 8, 600, source="OpenAI, models without a charge for cache writes"),
        PriceProfile("cheap-read", 0.025, 1.25, 5, 300, source="third-party price tables, unverified"),
        PriceProfile("none", 1, 1, 5, 0, source="no prompt cache"),
        PriceProfile("local", 0, 1, 0, float("inf"), source="own model with a prefix cache: prefill work only"),
    )
}
"""Price profiles by name (definitions of the goals)."""


def call_price(prices: PriceProfile, cached: float, written: float, plain: float, output: float) -> float:
    """Billed units of one call."""
    return prices.read * cached + prices.write * written + plain + prices.output * output


def fault_price(prices: PriceProfile, prompt_tokens: float, page_tokens: float) -> float:
    """Units that one page fault costs: the whole prompt read again, the asking call, the page written at the tail."""
    return (
        prices.read * prompt_tokens
        + prices.output * FAULT_CALL_TOKENS
        + prices.write * (FAULT_FRAME_TOKENS + page_tokens)
    )


def rewrite_price(prices: PriceProfile, tokens_behind: float) -> float:
    """Extra units of writing again what stands behind the first change instead of reading it."""
    return (prices.write - prices.read) * tokens_behind
