"""``evals gate``: does the topic gate see the labelled shifts? Positive class = switch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from context_gatekeeper.evals.datasets import Line, is_user_assistant, pair_lines, read_qa, read_shifts
from context_gatekeeper.evals.metrics import f1_figures, share
from context_gatekeeper.gatekeeper import ContextGatekeeper
from context_gatekeeper.types import TopicMove

__all__ = ["FILLER_TOPIC", "labelled_queries", "measure_gate"]

FILLER_TOPIC = "Enhanced"
"""Label of unrelated filler sessions in RealMem logs: each is its own topic."""
_EXAMPLES = 40


def measure_gate(path: Path, profile: str = "strict", times_from: Path | None = None, *, show_errors: bool = False) -> dict[str, Any]:
    """Figures of one set of dialogues; see the contract in the goals."""
    extra = _extra_labels(times_from) if times_from is not None else {}
    hits = false = missed = turns = said = 0
    errors: list[dict[str, Any]] = []
    for _, lines in read_shifts(path):
        known = [replace(line, time=extra[line.line_id].time) if line.line_id in extra else line for line in lines]
        with ContextGatekeeper(profile=profile) as gatekeeper:
            for place, (user, answer, is_switch, time) in enumerate(labelled_queries(known, extra)):
                if place:
                    verdict = gatekeeper.explain(user, time=time).verdict
                    called = verdict.move is TopicMove.SWITCH
                    turns += 1
                    said += called
                    hits += called and is_switch
                    false += called and not is_switch
                    missed += is_switch and not called
                    if show_errors and called != is_switch and len(errors) < _EXAMPLES:
                        errors.append({"query": user, "called_switch": called, "reason": verdict.reason, "points": verdict.points})
                gatekeeper.add_turn(user, answer, time=time)
    precision, recall, f1 = f1_figures(hits, false, missed)
    true = hits + missed
    figures: dict[str, Any] = {
        "turns": turns,
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "switch_rate": share(said, turns),
        "true_switch_rate": share(true, turns),
        "false_switch_rate": share(false, turns - true),
        "always_switch_f1": share(2 * true, true + turns),
        "profile": profile,
    }
    if show_errors:
        figures["errors"] = errors
    return figures


def labelled_queries(lines: Sequence[Line], sessions: Mapping[str, Line]) -> Iterator[tuple[str, str, bool, float | None]]:
    """(query, answer, is a switch, time) of each turn.

    User/assistant talk: the user's lines are queries. Else every line is a query without an answer.
    The first turn of a filler session is a switch (``sessions`` tells where one begins).
    """
    if not is_user_assistant(lines):
        for line in lines:
            yield line.text, "", line.is_shift, line.time
        return
    last_session: str | None = None
    for turn in pair_lines(lines):
        user = turn.user
        session = user.session or (sessions[user.line_id].session if user.line_id in sessions else "")
        new_filler = user.topic == FILLER_TOPIC and bool(session) and session != last_session
        last_session = session
        yield user.text, turn.assistant_text, user.is_shift or new_filler, user.time


def _extra_labels(path: Path) -> dict[str, Line]:
    """Times and sessions of a question file by turn id."""
    return {line.line_id: line for conversation in read_qa(path) for line in conversation.lines}
