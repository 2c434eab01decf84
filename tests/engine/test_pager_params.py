"""The three settings of the planner."""

from __future__ import annotations

from dataclasses import fields

import pytest

from context_gatekeeper.engine.pager_params import OURS, OURS_CAREFUL, OURS_FRUGAL, PagerParams
from tests.engine.coding import coding_session
from tests.engine.test_pager import paged


def test_the_three_settings_differ_by_what_a_page_fault_is_worth_alone() -> None:
    differing = {
        field.name
        for setting in (OURS_FRUGAL, OURS_CAREFUL)
        for field in fields(PagerParams)
        if getattr(setting, field.name) != getattr(OURS, field.name)
    }
    assert differing == {"fault_price_factor", "fault_target"}
    assert OURS_FRUGAL.fault_price_factor < OURS.fault_price_factor < OURS_CAREFUL.fault_price_factor


@pytest.mark.parametrize("calls", [40, 80])
def test_the_careful_setting_keeps_at_least_what_the_frugal_one_keeps(calls: int) -> None:
    messages = list(coding_session(calls).messages)
    careful, frugal = (paged(messages, params)[1] for params in (OURS_CAREFUL, OURS_FRUGAL))
    assert careful.window.tokens >= frugal.window.tokens
