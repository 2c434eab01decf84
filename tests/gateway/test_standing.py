"""Goals and pins, read beside the planner."""

from __future__ import annotations

from pathlib import Path

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.errors import StoreError
from context_gatekeeper.gateway.standing import Standing, StandingReader

WAIT = 20.0


def test_goals_are_read_from_the_pool(tmp_path: Path) -> None:
    with AgentPool(str(tmp_path / "p.db")) as pool:
        pool.set_goal("ship the export")
    reader = StandingReader(lambda: AgentPool(str(tmp_path / "p.db")))
    assert reader.first_read.wait(WAIT)
    assert [goal.text for goal in reader.newest.goals] == ["ship the export"]
    assert reader.newest.pins == ()
    reader.close()


def test_a_pool_that_cannot_be_read_leaves_what_was_known() -> None:
    def refuse() -> AgentPool:
        raise StoreError("the pool", "it is locked", "try again")

    reader = StandingReader(refuse)
    assert reader.first_read.wait(WAIT)
    assert reader.newest == Standing()
    reader.close()
