"""``evals gate``: does the topic gate see the labelled shifts? Positive class = switch.

User/assistant talk: a user line is the query and the reply feeds the topic. Else every line is a
query and is then added without an answer. A conversation's first turn is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.evals.datasets import (
    FILLER_TOPIC,
    Conversation,
    EvalTurn,
    Line,
    is_user_assistant,
    pair_lines,
    read_conversations,
    read_times,
    with_times,
)
from context_gatekeeper.evals.metrics import bootstrap_interval, f1_figures, rests_on_few, share
from context_gatekeeper.gatekeeper import ContextGatekeeper
from context_gatekeeper.types import TopicMove

__all__ = ["gate_figures", "measure_gate", "true_switches"]

Outcome = tuple[bool, bool]
"""Whether the gate called a switch, and whether it was one."""


@dataclass(slots=True)
class _Judged:
    outcomes: list[Outcome] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)


def measure_gate(
    path: Path, profile: str = "strict", times: Path | None = None, *, error_limit: int = 0
) -> dict[str, Any]:
    """Figures over all queries of a file but the first of each conversation.

    Args:
        path: a shift file, or logs whose lines carry topics.
        profile: selection profile.
        times: a file with the same turn ids, for times that ``path`` does not have.
        error_limit: examples under ``errors``; 0 leaves the key out.

    Raises:
        TranscriptError: a file cannot be read, or has no labels.
    """
    known_times = read_times(times) if times is not None else {}
    judged = _Judged()
    conversations = 0
    for conversation in read_conversations(path):
        conversations += 1
        _run(conversation, known_times, path, ContextGatekeeper(profile=profile), judged)
    if not judged.outcomes:
        raise TranscriptError(str(path), "no conversation has a second query", "pass labelled conversations")
    result = {**gate_figures(judged.outcomes), "conversations": conversations, "profile": profile}
    if rests_on_few(len(judged.outcomes), conversations):
        result["intervals"] = {
            name: bootstrap_interval(judged.outcomes, lambda sample, name=name: gate_figures(sample)[name])  # type: ignore[misc]
            for name in ("f1", "false_switch_rate")
        }
    return {**result, "errors": judged.errors[:error_limit]} if error_limit else result


def gate_figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """The contract's figures of (called a switch, was one) pairs; what rests on nothing is 0.0."""
    counts = Counter(outcomes)
    hits, false, missed = counts[True, True], counts[True, False], counts[False, True]
    turns, true = len(outcomes), hits + missed
    precision, recall, f1 = f1_figures(hits, false, missed)
    return {
        "turns": turns,
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "switch_rate": share(hits + false, turns),
        "true_switch_rate": share(true, turns),
        "false_switch_rate": share(false, turns - true),
        "always_switch_f1": f1_figures(true, turns - true, 0)[2],
    }


def _run(
    conversation: Conversation, times: Mapping[str, float], path: Path, gatekeeper: ContextGatekeeper, judged: _Judged
) -> None:
    lines = with_times(conversation.lines, times) if times else conversation.lines
    try:
        switches = true_switches(lines)
    except ValueError as error:
        raise TranscriptError(
            f"{path}, {conversation.conversation_id}", str(error), "label the turns with shift or topic"
        ) from error
    place = 0
    seen_query = False
    with gatekeeper:
        for turn in _turns(lines):
            if turn.user is not None and seen_query:
                verdict = gatekeeper.explain(turn.user_text, time=turn.time).verdict
                outcome = (verdict.move is TopicMove.SWITCH, switches[place])
                judged.outcomes.append(outcome)
                if outcome[0] != outcome[1]:
                    example = {
                        "conversation": conversation.conversation_id,
                        "turn": turn.user.line_id,
                        "query": turn.user_text,
                    }
                    judged.errors.append(
                        {**example, "called_switch": outcome[0], "gate": verdict.reason, "points": verdict.points}
                    )
            gatekeeper.add_turn(turn.user_text, turn.assistant_text, time=turn.time, speakers=turn.speakers)
            seen_query = seen_query or turn.user is not None
            place += len(turn.lines)


def _turns(lines: Sequence[Line]) -> Iterator[EvalTurn]:
    if is_user_assistant(lines):
        yield from pair_lines(lines)
    else:
        yield from (EvalTurn(line, None) for line in lines)


def true_switches(lines: Sequence[Line]) -> list[bool]:
    """Whether a topic begins at each line; False for the first.

    The ``shift`` label, or where a conversation has none, a change of ``topic``; the first line of a
    filler session always begins one. Raises ValueError when lines carry neither.
    """
    has_shifts = any(line.shift is not None for line in lines)
    if not has_shifts and not any(line.topic is not None for line in lines):
        raise ValueError("its turns carry neither shift nor topic")
    switches = [False] * len(lines)
    for place in range(1, len(lines)):
        line, before = lines[place], lines[place - 1]
        new_filler = line.topic == FILLER_TOPIC and line.topic_key != before.topic_key
        switches[place] = new_filler or (bool(line.shift) if has_shifts else line.topic_key != before.topic_key)
    return switches
