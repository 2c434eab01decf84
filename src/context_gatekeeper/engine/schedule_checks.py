"""What may be passed to an agent's schedule: each error names the argument, the cause and the next step."""

from __future__ import annotations

import math

from context_gatekeeper.core.economics import PriceProfile
from context_gatekeeper.errors import ConfigError

__all__ = ["check_now", "check_schedule"]

_SHOWN_CHARS = 60


def check_schedule(prices: object, resident_tokens: object, token_factor: object, window_tokens: object) -> None:
    """Raise ConfigError unless they are what `AgentSchedule` takes.

    That is a price profile, a whole number from 0, a finite number above 0, and None or a whole number above the
    resident part.
    """
    if not isinstance(prices, PriceProfile):
        raise ConfigError(
            f"prices {_shown(prices)}", f"it is a {type(prices).__name__}", "pass a PriceProfile, such as one of PRICES"
        )
    if isinstance(resident_tokens, bool) or not isinstance(resident_tokens, int) or resident_tokens < 0:
        raise ConfigError(
            f"resident_tokens {_shown(resident_tokens)}",
            "it is no whole number from 0",
            "give the tokens of system text and tools",
        )
    if window_tokens is not None and (
        isinstance(window_tokens, bool) or not isinstance(window_tokens, int) or window_tokens <= resident_tokens
    ):
        raise ConfigError(
            f"window_tokens {_shown(window_tokens)}",
            "it is no whole number above the resident part",
            "give the most tokens that the model takes in one request, or None",
        )
    if not _is_finite(token_factor) or token_factor <= 0:  # type: ignore[operator]
        raise ConfigError(
            f"token_factor {_shown(token_factor)}", "it is no finite number above 0", "give real tokens over estimated"
        )


def check_now(now: object) -> None:
    """Raise ConfigError unless it is None or a finite number."""
    if now is not None and not _is_finite(now):
        raise ConfigError(
            f"now {_shown(now)}", "it is no finite number", "pass seconds since the epoch, or None for a live cache"
        )


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _shown(value: object) -> str:
    return ascii(value)[:_SHOWN_CHARS]
