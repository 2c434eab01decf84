"""A decision as lines for people and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from context_gatekeeper.core.topic_gate import (
    NEW_RATIO_SWITCH_THRESHOLD,
    OVERLAP_CONTINUE_THRESHOLD,
    OVERLAP_SWITCH_THRESHOLD,
)
from context_gatekeeper.entrypoints.cli.terminal import (
    Painter,
    Tint,
    clipped,
    columns_for,
    facts,
    one_line,
    pipe_table,
    printable,
)
from context_gatekeeper.types import Decision, TopicMove

__all__ = ["block_lines", "decision_json", "decision_lines", "outcome_line", "verdict_line"]

_SHOWN_ITEMS = 8
_COVERS_COLUMNS = 48
_OTHER_COLUMNS = 31
"""Of a block's row beside reason and covered anchors."""
_THRESHOLDS = {
    "overlap_continue": OVERLAP_CONTINUE_THRESHOLD,
    "overlap_switch": OVERLAP_SWITCH_THRESHOLD,
    "new_ratio_switch": NEW_RATIO_SWITCH_THRESHOLD,
}


def decision_json(decision: Decision) -> dict[str, Any]:
    """The whole decision with the gate's thresholds."""
    return {**decision.to_dict(), "thresholds": dict(_THRESHOLDS)}


def verdict_line(decision: Decision, painter: Painter) -> str:
    """Gate and topic in one line."""
    verdict = decision.verdict
    tint = Tint.HIGHLIGHT if verdict.move is TopicMove.SWITCH else Tint.NORMAL
    notes = (", points back" if verdict.is_deictic else "") + (", soft" if verdict.is_soft else "")
    return (
        f"{painter.paint(verdict.move.value, tint)} ({one_line(verdict.reason)}{notes}), "
        f"topic {decision.topic} ({one_line(decision.topic_reason)})"
    )


def outcome_line(decision: Decision, turn_count: int, history_tokens: int) -> str:
    """What is sent beside what there is."""
    saved = 1 - decision.tokens_fitted / history_tokens if history_tokens else 0.0
    return (
        f"{len(decision.blocks)} of {turn_count} turns, {decision.tokens_fitted} of {history_tokens} tokens "
        f"({saved:.1%} left out), coverage {decision.coverage:.2f}"
    )


def block_lines(decision: Decision, painter: Painter) -> list[str]:
    """The chosen blocks: a table with the reason for each, then their texts."""
    if not decision.blocks:
        return [f"no block: topic {decision.topic} ({one_line(decision.topic_reason)})"]
    reason_columns = max(len(block["reason"]) for block in decision.blocks)
    covers_columns = columns_for(_COVERS_COLUMNS, beside=_OTHER_COLUMNS + reason_columns)
    rows = [
        (
            block["turn_id"],
            block["tokens"],
            f"{block['score']:.3f}",
            block["reason"],
            clipped(", ".join(block["covered_anchors"]), covers_columns) or "-",
        )
        for block in decision.blocks
    ]
    lines = pipe_table(("turn", "tokens", "score", "reason", "covers"), rows, right="rrr")
    for block in decision.blocks:
        lines += ["", painter.paint(f"[turn {block['turn_id']}]", Tint.HIGHLIGHT)]
        lines += [printable(f"{side}: {block[side]}") for side in ("user", "assistant") if block[side].strip()]
    return lines


def decision_lines(decision: Decision, painter: Painter) -> list[str]:
    """The whole decision: gate with ratios and thresholds, topic, stages, anchors, coverage, tokens."""
    verdict = decision.verdict
    lines = facts(
        {
            "query": one_line(decision.query),
            "profile": decision.profile,
            "gate": verdict_line(decision, painter),
            "overlap": f"{verdict.anchor_overlap_ratio:.3f} "
            f"(continues above {OVERLAP_CONTINUE_THRESHOLD:.2f}, may switch below {OVERLAP_SWITCH_THRESHOLD:.2f})",
            "new": f"{verdict.new_token_ratio:.3f} (may switch above {NEW_RATIO_SWITCH_THRESHOLD:.2f})",
            "points": f"{verdict.points:+.3f} (switches above 0; 0 when a rule decided)",
            "coverage": f"{painter.paint(f'{decision.coverage:.3f}', Tint.ACCENT)} of the query's anchor weight",
            "tokens": f"{decision.tokens_fitted} fitted, {decision.tokens_documented} documented (len * 1.5), "
            f"{decision.budget_tokens} left for blocks",
        }
    )
    stages = [(stage.stage, len(stage.kept), len(stage.dropped), _some(stage.dropped)) for stage in decision.stages]
    lines += ["", *pipe_table(("stage", "kept", "dropped", "dropped turns"), stages, right=" rr")]
    lines += ["", *(painter.paint(row, Tint.DEBUG) for row in _anchor_table(decision.anchor_weights))]
    lines += [painter.paint(one_line(f"warning: {warning}"), Tint.WARN) for warning in decision.warnings]
    return lines


def _anchor_table(weights: Mapping[str, float]) -> list[str]:
    heaviest = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    table = pipe_table(
        ("anchor", "weight"), [(term, f"{weight:.3f}") for term, weight in heaviest[:_SHOWN_ITEMS]], right=" r"
    )
    more = len(heaviest) - _SHOWN_ITEMS
    return [*table, f"and {more} lighter anchors"] if more > 0 else table


def _some(turns: Sequence[int]) -> str:
    shown = ", ".join(str(turn) for turn in turns[:_SHOWN_ITEMS])
    return f"{shown} and {len(turns) - _SHOWN_ITEMS} more" if len(turns) > _SHOWN_ITEMS else shown or "-"
