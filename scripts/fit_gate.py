"""Fit the table of the topic gate.

    pip install numpy
    python scripts/fit_gate.py NAME=FILE.jsonl[:WEIGHT] ... [--switch-cost 0.6]

Every FILE is a set of dialogues with labelled shifts (`evals.datasets.read_conversations`). Dialogues with even numbers
are fitted, odd ones reported; of a set with fewer than ten dialogues the first halves are fitted. The rows of
`gate_features` are taken along the true history (the labels move the topics), a set's turns share its weight, and a
missed switch costs ``--switch-cost`` of a false one: a false switch empties the context, a missed one only keeps a
block. Logistic regression with a small ridge, by Newton's method.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from context_gatekeeper.core.topic_gate import OVERLAP_CONTINUE_THRESHOLD, NamedRoot, gate_features
from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.query import read_query
from context_gatekeeper.engine.session import Session
from context_gatekeeper.engine.topic_finder import find_topic
from context_gatekeeper.evals.datasets import Line, pair_lines, read_conversations
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.types import TopicMove

RIDGE = 2.0
STEPS = 60
FEW_DIALOGUES = 10


@dataclass(frozen=True)
class Turn:
    """One judged turn: what the table sees, and what it should say."""

    features: dict[str, float]
    is_switch: bool
    is_decided: bool
    """A rule decides before the table does."""


def judged_turns(lines: tuple[Line, ...]) -> list[Turn]:
    """Rows of one dialogue along its true history."""
    pool = PagePool(MemoryStore(), "fit", "dialogue")
    session = Session(pool)
    rows = []
    turns = [(line, "") for line in lines]
    if all(line.speaker.casefold() in ("user", "assistant") for line in lines):
        pairs = pair_lines(lines)
        turns = [(pair.user, pair.assistant.text if pair.assistant else "") for pair in pairs if pair.user is not None]
    for place, (line, answer) in enumerate(turns):
        if place:
            reading = read_query(line.text, pool.postings, session.tracker)
            evidence = find_topic(reading, pool, session.tracker, line.time).evidence
            is_cue = evidence.form.has_change_cue and evidence.named_root is not NamedRoot.RUNNING
            is_overlap = (
                evidence.anchor_overlap_ratio > OVERLAP_CONTINUE_THRESHOLD
                and evidence.named_root is not NamedRoot.OLDER
            )
            rows.append(
                Turn(gate_features(evidence), bool(line.shift), is_cue or is_overlap or not evidence.anchor_count)
            )
        move = TopicMove.SWITCH if line.shift and place else TopicMove.CONTINUE
        session.add_turn(line.text, answer, line.time, (None, None), known_move=move)
    return rows


def halves(path: Path) -> tuple[list[Turn], list[Turn]]:
    """Rows of the building half and of the other."""
    dialogues = [conversation.lines for conversation in read_conversations(path)]
    if len(dialogues) < FEW_DIALOGUES:
        first = [row for lines in dialogues for row in judged_turns(lines[: len(lines) // 2])]
        return first, [row for lines in dialogues for row in judged_turns(lines[len(lines) // 2 :])]
    rows = [judged_turns(lines) for lines in dialogues]
    return [row for one in rows[::2] for row in one], [row for one in rows[1::2] for row in one]


def fit(rows: list[tuple[Turn, float]], names: list[str], switch_cost: float) -> np.ndarray:
    """Points for each name."""
    values = np.array([[row.features[name] for name in names] for row, _ in rows])
    wanted = np.array([float(row.is_switch) for row, _ in rows])
    weights = np.array([weight * (switch_cost if row.is_switch else 1.0) for row, weight in rows])
    ridge = np.array([0.0 if name == "constant" else RIDGE for name in names])
    points = np.zeros(len(names))
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-values @ points))
        slope = values.T @ (weights * (chance - wanted)) + ridge * points
        bend = (values * (weights * chance * (1 - chance))[:, None]).T @ values + np.diag(ridge + 1e-6)
        points -= np.linalg.solve(bend, slope)
    return points


def main() -> None:
    """Print the table and what it does to both halves of every set, the rules before it left out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--switch-cost", type=float, default=0.6)
    options = parser.parse_args()
    built: dict[str, tuple[list[Turn], list[Turn], float]] = {}
    for entry in options.sets:
        name, _, place = entry.partition("=")
        path, _, weight = place.partition(":")
        built[name] = (*halves(Path(path)), float(weight or 1.0))
    rows: list[tuple[Turn, float]] = []
    for fitted, _, weight in built.values():
        open_rows = [row for row in fitted if not row.is_decided]
        rows.extend((row, 1000 * weight / len(open_rows)) for row in open_rows)
    names = sorted(rows[0][0].features)
    points = fit(rows, names, options.switch_cost)
    for name, value in zip(names, points, strict=True):
        print(f"{name:18} {value:6.2f}")
    for name, (*parts, _) in built.items():
        for label, part in zip(("fitted", "other"), parts, strict=True):
            said = [sum(points[at] * row.features[one] for at, one in enumerate(names)) > 0 for row in part]
            hits = sum(a and row.is_switch for a, row in zip(said, part, strict=True))
            false = sum(a and not row.is_switch for a, row in zip(said, part, strict=True))
            switches = sum(row.is_switch for row in part)
            f1 = 2 * hits / max(1, hits + false + switches)
            print(f"{name} {label}: F1 {f1:.3f} false {false / max(1, len(part) - switches):.3f} n {len(part)}")


if __name__ == "__main__":
    main()
