"""The record of a plan, and how it reads."""

from __future__ import annotations

import json

from context_gatekeeper.engine.plan import ContextPlan, PlannedDeparture, PlannedEntry


def plan(entries: int = 3, departures: int = 2, rewrite: str = "rent") -> ContextPlan:
    return ContextPlan(
        call=9,
        epoch=2,
        rewrite=rewrite,
        resident_tokens=8000,
        window_tokens=1200,
        written_tokens=300,
        expected_units=1265.0,
        fault_price_factor=0.9,
        faults_since_rewrite=1,
        saved_units=-50.0,
        running_task="t1",
        entries=tuple(
            PlannedEntry(f"p{number}", "raw", "read", "a.py", "t1", 100, "likely to be quoted again", 2.0, 1.0)
            for number in range(entries)
        ),
        departures=tuple(
            PlannedDeparture(f"p{90 + number}", 8 - number, "hardly quoted again", 50) for number in range(departures)
        ),
    )


def test_a_plan_tells_what_is_in_what_left_and_why() -> None:
    lines = plan().lines()
    assert lines[0] == "call 9: 9200 tokens (8000 resident), 300 of them new; expected bill 1265 units"
    assert lines[1].startswith("epoch 2, 1 faults in it; saved so far -50 units")
    assert lines[2] == "rewritten: rent"
    assert lines[3] == "in   p0 raw read a.py: 100 tokens; likely to be quoted again"
    assert lines[-1] == "out  p90: 50 tokens, left before call 8; hardly quoted again"


def test_a_window_that_only_grew_says_nothing_of_a_rewrite() -> None:
    assert not any(line.startswith("rewritten") for line in plan(rewrite="").lines())


def test_long_lists_are_cut_to_the_newest_with_a_count() -> None:
    lines = plan(entries=50, departures=30).lines(most_entries=2, most_departures=1)
    assert "... 48 more entries in the window" in lines
    assert "... 29 more slices out of the window" in lines
    assert lines[-1].startswith("out  p90:")
    assert sum(line.startswith("in ") for line in lines) == 2


def test_the_record_is_json_with_the_same_names() -> None:
    told = json.loads(json.dumps(plan().to_dict()))
    assert told["prompt_tokens"] == 9200
    assert told["entries"][0]["handle"] == "p0"
    assert told["departures"][1]["call"] == 7
