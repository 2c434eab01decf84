"""Fit the citation tables: how likely a slice or a unit of an agent session is quoted again.

    python scripts/fit_citation.py SESSIONS... [--write] [--half 0|1]

Needs numpy (extra ``peers``). Prints the areas under the curve on the sessions of the other half (split by a
checksum of the session's name), then fits on the half that ``--half`` names (0) and prints or
writes ``core/tables/citation_rows.py``. The tables that ship are those of half 0 of real Claude Code
sessions (MIT, see NOTICE).
"""

from __future__ import annotations

import argparse
import random
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from context_gatekeeper.engine.citation import (
    LINE_HORIZON_CALLS,
    SLICE_TABLE_SIZE,
    UNIT_HORIZON_CALLS,
    UNIT_TABLE_SIZE,
    slice_features,
    unit_features,
)
from context_gatekeeper.engine.session_log import SessionLog, Slice, SliceKind, UnitKind
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentSession, MessageRole

TARGET = Path(__file__).parent.parent / "src/context_gatekeeper/core/tables/citation_rows.py"
SLICE_EVERY_CALLS = 3
UNIT_EVERY_CALLS = 6
UNITS_A_CALL = 400
QUIET_CALLS = 120
"""Slices untouched for longer are thinned out to 30 %."""
LEAST_CALLS = 30
L2 = 10.0
ROUNDS = 150
TOKEN_FACTOR = 1.25
HEAD = '''"""Weights of the citation tables, printed by ``scripts/fit_citation.py`` (engine module ``citation``)."""

# A table of numbers. ruff: noqa: E501
# fmt: off
from __future__ import annotations

__all__ = ["LINE_BASE", "LINE_WEIGHTS", "NAME_BASE", "NAME_WEIGHTS", "UNIT_BASE", "UNIT_WEIGHTS"]
'''

Rows = tuple[np.ndarray, list[np.ndarray]]


def slice_rows(sessions: Sequence[AgentSession]) -> Rows:
    """Features, and labels: a line of it is quoted soon; only a name of it is."""
    features, by_line, by_name = [], [], []
    for session in sessions:
        chance = random.Random(session.session_id)
        log = SessionLog(token_factor=TOKEN_FACTOR)
        quoted: dict[int, list[tuple[int, bool]]] = {}
        asked = []
        for message in session.messages:
            if message.role is MessageRole.ASSISTANT:
                if message.is_call and log.calls % SLICE_EVERY_CALLS == 0:
                    asked += [(piece.number, log.calls, slice_features(log, piece)) for piece in _asked(log, chance)]
                for number in log.quoted_units(message):
                    unit = log.units[number]
                    quoted.setdefault(unit.holders[-1], []).append((log.calls, unit.kind is UnitKind.LINE))
            log.add_message(message)
        for number, call, row in asked:
            soon = [is_line for when, is_line in quoted.get(number, ()) if call <= when < call + LINE_HORIZON_CALLS]
            features.append(row)
            by_line.append(any(soon))
            by_name.append(bool(soon) and not any(soon))
    return np.array(features, dtype=np.int32), [np.array(by_line, float), np.array(by_name, float)]


def _asked(log: SessionLog, chance: random.Random) -> list[Slice]:
    return [
        piece
        for piece in log.slices
        if piece.units
        and log.segments[piece.segment].kind is not SliceKind.THINKING
        and (log.calls - max(piece.born, piece.last_cited) <= QUIET_CALLS or chance.random() < 0.3)
    ]


def unit_rows(sessions: Sequence[AgentSession]) -> Rows:
    """Features, and the label: the unit is used soon."""
    features, used = [], []
    for session in sessions:
        chance = random.Random(session.session_id)
        log = SessionLog(token_factor=TOKEN_FACTOR)
        quoted: dict[int, list[int]] = {}
        asked = []
        for message in session.messages:
            if message.role is MessageRole.ASSISTANT:
                if message.is_call and log.calls % UNIT_EVERY_CALLS == 0:
                    for number in chance.sample(range(len(log.units)), min(UNITS_A_CALL, len(log.units))):
                        row = unit_features(log, log.units[number], log.name_of(number))
                        asked.append((number, log.calls, row))
                for number in log.quoted_units(message):
                    quoted.setdefault(number, []).append(log.calls)
            log.add_message(message)
        for number, call, row in asked:
            features.append(row)
            used.append(any(call <= when < call + UNIT_HORIZON_CALLS for when in quoted.get(number, ())))
    return np.array(features, dtype=np.int32), [np.array(used, float)]


def fit(features: np.ndarray, label: np.ndarray, size: int) -> tuple[np.ndarray, float]:
    """Weights and base of a logistic regression over one row of each part (Adam, L2)."""
    weights, base = np.zeros(size), float(np.log(label.mean() / (1 - label.mean())))
    mean, square, count = np.zeros(size), np.zeros(size), len(label)
    for step in range(1, ROUNDS + 1):
        error = 1 / (1 + np.exp(-(weights[features].sum(1) + base))) - label
        columns = [np.bincount(column, weights=error, minlength=size) for column in features.T]
        slope = (np.sum(columns, axis=0) + L2 * weights) / count
        mean = 0.9 * mean + 0.1 * slope
        square = 0.99 * square + 0.01 * slope * slope
        rate = 0.05 if step <= ROUNDS * 2 // 3 else 0.02
        weights -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
        base -= 5 * rate * float(error.mean())
    return weights, base


def area(score: np.ndarray, label: np.ndarray) -> float:
    """Area under the ROC curve."""
    ranks = np.empty(len(score))
    ranks[np.argsort(score, kind="stable")] = np.arange(len(score))
    hits = label.sum()
    return float((ranks[label > 0].sum() - hits * (hits - 1) / 2) / (hits * (len(label) - hits)))


def half_of(session: AgentSession) -> int:
    """Which half a session belongs to, by its name."""
    return zlib.crc32(session.session_id.encode("utf-8", "surrogatepass")) & 1


def main() -> None:
    """Fit, report, and print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--half", type=int, choices=(0, 1), default=0)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    sessions = [session for file in arguments.files for session in read_sessions(file)]
    sessions = [s for s in sessions if sum(message.is_call for message in s.messages) >= LEAST_CALLS]
    fitted = [session for session in sessions if half_of(session) == arguments.half]
    held_out = [session for session in sessions if half_of(session) != arguments.half]
    text = HEAD
    kinds: list[tuple[Callable[[Sequence[AgentSession]], Rows], int, tuple[str, ...]]] = [
        (slice_rows, SLICE_TABLE_SIZE, ("LINE", "NAME")),
        (unit_rows, UNIT_TABLE_SIZE, ("UNIT",)),
    ]
    for rows, size, names in kinds:
        features, labels = rows(fitted)
        others, other_labels = rows(held_out)
        for name, label, other in zip(names, labels, other_labels, strict=True):
            weights, base = fit(features, label, size)
            seen, unseen = area(weights[features].sum(1), label), area(weights[others].sum(1), other)
            print(f"{name}: {len(label)} rows, area {seen:.4f} on the half it is fitted to, {unseen:.4f} on the other")
            text += f"\n{name}_BASE = {base:.3f}\n{name}_WEIGHTS = ({', '.join(f'{w:.3f}' for w in weights)})\n"
    if arguments.write:
        TARGET.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
