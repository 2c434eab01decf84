"""What is no price, number or time is refused before anything is planned with it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.engine.agent_schedule import AgentSchedule
from context_gatekeeper.errors import ConfigError

PROFILE = PRICES["anthropic-5m"]
NO_COUNTS = (-1, True, 1.5, "5", None, math.nan)
NO_FACTORS = (0, -1.0, math.nan, math.inf, "1", None, True)


@pytest.mark.parametrize("prices", ["anthropic-5m", None, {}, 5])
def test_prices_are_a_profile(prices: Any) -> None:
    with pytest.raises(ConfigError, match=r"pass a PriceProfile"):
        AgentSchedule(prices)


@pytest.mark.parametrize("count", NO_COUNTS)
def test_resident_tokens_are_a_whole_number_from_0(count: Any) -> None:
    with pytest.raises(ConfigError, match=r"resident_tokens .*no whole number from 0"):
        AgentSchedule(PROFILE, resident_tokens=count)


@pytest.mark.parametrize("factor", NO_FACTORS)
def test_the_token_factor_is_above_0(factor: Any) -> None:
    with pytest.raises(ConfigError, match=r"token_factor .*no finite number above 0"):
        AgentSchedule(PROFILE, token_factor=factor)


@pytest.mark.parametrize("room", [0, -1, 4000, True, 1e6, "90000", math.nan])
def test_a_models_window_is_a_whole_number_above_the_resident_part(room: Any) -> None:
    with pytest.raises(ConfigError, match=r"window_tokens .*no whole number above the resident part"):
        AgentSchedule(PROFILE, resident_tokens=4000, window_tokens=room)
    assert AgentSchedule(PROFILE, resident_tokens=4000, window_tokens=4001).plan().prompt_tokens == 4000


@pytest.mark.parametrize("now", ["y", math.nan, math.inf, True, []])
def test_now_is_a_finite_number_or_none(now: Any) -> None:
    schedule = AgentSchedule(PROFILE)
    with pytest.raises(ConfigError, match=r"now .*no finite number"):
        schedule.plan(now=now)
    assert schedule.plan(now=None) == schedule.plan(now=5)
