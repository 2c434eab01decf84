"""What a pool tells of itself goes out as JSON."""

from __future__ import annotations

import json

from context_gatekeeper.engine.pool_answers import PoolStats, RecallResult, SessionInfo
from context_gatekeeper.engine.session_view import SessionTotals


def test_records_are_told_by_the_names_of_their_fields() -> None:
    info = SessionInfo("shop/fixing", "claude-code", "fixing", "/srv/shop", 16)
    stats = PoolStats(1, SessionTotals(pages=16), 2, 3, 40, None)
    told = json.loads(json.dumps([info.to_dict(), stats.to_dict()]))
    assert told[0]["working_folder"] == "/srv/shop"
    assert (told[1]["goals"], told[1]["totals"]["pages"], told[1]["store_bytes"]) == (2, 16, None)
    assert RecallResult((), "").text == ""
