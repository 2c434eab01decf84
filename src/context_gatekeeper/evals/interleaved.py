"""``evals interleaved``: does a query of one real topic get blocks of another?

Logs whose lines carry a topic are taken as logged; dialogues of a shift file are chained: four
dialogues that follow each other in the file take turns in chunks of two to four exchanges.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from context_gatekeeper.evals.datasets import EvalTurn, pair_lines, read_json_lines, read_qa, read_shifts
from context_gatekeeper.evals.gate import FILLER_TOPIC
from context_gatekeeper.evals.metrics import bootstrap_interval, mean
from context_gatekeeper.gatekeeper import ContextGatekeeper

__all__ = ["measure_interleaved"]

CHAINED_DIALOGUES = 4
_CHUNK = (2, 4)
_SEED = 5
_EXAMPLES = 40


def measure_interleaved(path: Path, profile: str = "strict", *, show_errors: bool = False) -> dict[str, Any]:
    """Shares over the queries whose topic was talked about before."""
    foreign: list[float] = []
    right: list[float] = []
    empty: list[float] = []
    errors: list[dict[str, Any]] = []
    for chain in _chains(path):
        labels: list[str] = []
        with ContextGatekeeper(profile=profile) as gatekeeper:
            for turn, topic in chain:
                if topic in labels:
                    decision = gatekeeper.explain(turn.user.text, time=turn.user.time)
                    got = [labels[block["turn_id"]] for block in decision.blocks]
                    foreign.append(float(any(one != topic for one in got)))
                    right.append(float(topic in got))
                    empty.append(float(not got))
                    if show_errors and (foreign[-1] or not right[-1]) and len(errors) < _EXAMPLES:
                        errors.append({"query": turn.user.text, "right_topic": topic, "got": got, "reason": decision.topic_reason})
                gatekeeper.add_turn(turn.user.text, turn.assistant_text, time=turn.user.time, speakers=turn.speakers)
                labels.append(topic)
    figures: dict[str, Any] = {
        "contamination": mean(foreign),
        "same_topic_hit": mean(right),
        "empty": mean(empty),
        "recap_hit": None,
        "queries": len(foreign),
        "contamination_interval": bootstrap_interval(foreign),
    }
    result: dict[str, Any] = {"orders": {"as_logged": figures}, "profile": profile}
    if show_errors:
        result["errors"] = errors
    return result


def _chains(path: Path) -> Iterator[list[tuple[EvalTurn, str]]]:
    first = next(iter(read_json_lines(path)), (0, {}))[1]
    if any("topic" in turn for turn in first.get("turns", ())[:1]):
        turn_lists = (
            [conversation.turns for conversation in read_qa(path)]
            if "questions" in first
            else [tuple(pair_lines(lines)) for _, lines in read_shifts(path)]
        )
        for turns in turn_lists:
            yield [
                (turn, f"{FILLER_TOPIC} {turn.user.session}" if turn.user.topic == FILLER_TOPIC else turn.user.topic)
                for turn in turns
                if turn.user.text
            ]
        return
    dialogues = [(name, _exchanges(lines)) for name, lines in read_shifts(path)]
    rng = random.Random(_SEED)  # noqa: S311 - a fixed mixture
    for start in range(0, len(dialogues) - CHAINED_DIALOGUES + 1, CHAINED_DIALOGUES):
        group = dialogues[start : start + CHAINED_DIALOGUES]
        places = [0] * len(group)
        chain: list[tuple[EvalTurn, str]] = []
        while any(place < len(turns) for place, (_, turns) in zip(places, group, strict=True)):
            for number, (name, turns) in enumerate(group):
                size = rng.randint(*_CHUNK)
                chain.extend((turn, name) for turn in turns[places[number] : places[number] + size])
                places[number] += size
        yield chain


def _exchanges(lines: Any) -> list[EvalTurn]:
    return [EvalTurn(lines[at], lines[at + 1] if at + 1 < len(lines) else None) for at in range(0, len(lines), 2)]
