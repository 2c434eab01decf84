"""DESIGN.md 7: the error table; hostile text never breaks a call."""

from __future__ import annotations

import logging

import pytest

from context_gatekeeper import ContextGatekeeper
from tests.requirements.conversations import LOCK_EN, TOFU_ZH, talk

HOSTILE = {
    "empty": "",
    "blank": " \t\n ",
    "lone surrogates": "before \ud800 after \udfff",
    "NUL": "before\x00after",
    "right to left": "\u202eabc שלום עולם مرحبا بالعالم",
    "emoji family": "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f1e9\U0001f1ea",
    "combining storm": "e" + "\u0301" * 400,
    "quotes": "\"'`“‘「" * 200,
    "brackets": "([{<" * 500,
    "one long word": "a" * 100_000,
    "one long run of Han": "锁" * 100_000,
    "one long path": "a/" * 50_000,
    "dots": "." * 100_000,
}


@pytest.mark.requirement("R-D7-over-budget-warning")
def test_a_turn_over_the_budget_is_kept_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    gatekeeper = ContextGatekeeper(50)
    with caplog.at_level(logging.WARNING, logger="context_gatekeeper"):
        turn_id = gatekeeper.add_turn("Tell me about tomato plants", "Tomato plants need calcium. " * 60)
    assert turn_id == 0
    assert gatekeeper.turn_count == 1
    assert len(gatekeeper.warnings) == 1
    assert "turn 0" in gatekeeper.warnings[0]
    assert "50" in gatekeeper.warnings[0]
    assert [record.getMessage() for record in caplog.records] == gatekeeper.warnings


@pytest.mark.requirement("R-D7-over-budget-warning")
def test_a_turn_inside_the_budget_warns_of_nothing() -> None:
    assert talk(LOCK_EN).warnings == []


@pytest.mark.requirement("R-D7-over-budget-warning", "R-I2-oversized-newest")
def test_the_newest_turn_is_never_lost_for_its_size() -> None:
    gatekeeper = ContextGatekeeper(60)
    gatekeeper.add_turn("Tell me about tomato plants", "Tomato plants need calcium and light " * 60)
    blocks = gatekeeper.select("continue")
    assert [block["turn_id"] for block in blocks] == [0]
    assert 0 < blocks[0]["tokens"] <= 60


@pytest.mark.requirement("R-D7-no-candidates")
def test_without_candidates_the_list_is_empty() -> None:
    assert ContextGatekeeper().select("anything") == []
    assert talk(LOCK_EN).select("new topic: quaternion zebrafish marzipan?") == []


@pytest.mark.requirement("R-D7-fallback-anchor")
@pytest.mark.parametrize("blank", ["", "   ", "\n\t"])
def test_a_blank_query_selects_nothing(blank: str) -> None:
    assert talk(LOCK_EN).select(blank) == []


@pytest.mark.requirement("R-I5-hostile-text")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_kept_and_answered_within_the_budget(name: str) -> None:
    text = HOSTILE[name]
    gatekeeper = talk(TOFU_ZH, token_budget=300)
    gatekeeper.add_turn(text, text)
    blocks = list(gatekeeper.blocks())
    assert (blocks[2].user_text, blocks[2].assistant_text) == (text, text)
    for query in (text, "继续", "麻婆豆腐用哪种豆瓣酱？"):
        assert sum(block["tokens"] for block in gatekeeper.select(query)) <= 300


@pytest.mark.requirement("R-D2-no-silent-failure")
def test_a_query_that_eats_the_budget_is_warned_about() -> None:
    gatekeeper = talk(LOCK_EN, token_budget=30)
    assert gatekeeper.select("lock " * 200) == []
    assert len(gatekeeper.warnings) == 1
    assert "30" in gatekeeper.warnings[0]
    decision = gatekeeper.explain("lock " * 200).to_dict()
    assert decision["warnings"] == gatekeeper.warnings[-1:]
    assert gatekeeper.explain("lock").warnings == ()
