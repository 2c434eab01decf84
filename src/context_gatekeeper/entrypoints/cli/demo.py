"""``cgk demo``: real conversations go in, the smallest relevant context comes out; then an agent session's bill."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.resources import as_file, files
from typing import Any

from context_gatekeeper.entrypoints.cli.decisions import block_lines, outcome_line, verdict_line
from context_gatekeeper.entrypoints.cli.demo_agents import show_agent_session
from context_gatekeeper.entrypoints.cli.face import Face
from context_gatekeeper.entrypoints.cli.terminal import Tint, clipped, columns_for, one_line, pipe_table, say
from context_gatekeeper.gatekeeper import ContextGatekeeper
from context_gatekeeper.transcripts import Conversation, read_conversations
from context_gatekeeper.types import Decision

__all__ = ["run_demo"]

_SAMPLES = "demo.jsonl"
_SHOWN_COLUMNS = 64
_OTHER_COLUMNS = 20
"""Of the row around a user's text."""


def run_demo(face: Face, *, pauses: bool) -> None:
    """Show every sample conversation and what its questions need, then the sample session; seconds, no network."""
    with as_file(files(__package__) / _SAMPLES) as path:
        conversations = read_conversations(path)
    results = [_show(face, conversation, pauses=pauses and sys.stdin.isatty()) for conversation in conversations]
    session = show_agent_session(face)
    if face.as_json:
        face.print_json({"conversations": results, "agent_session": session})


def _show(face: Face, conversation: Conversation, *, pauses: bool) -> dict[str, Any]:
    with ContextGatekeeper() as gatekeeper:
        for turn in conversation.turns:
            gatekeeper.add_turn(turn.user_text, turn.assistant_text, time=turn.time, speakers=turn.speakers)
        blocks = list(gatekeeper.blocks())
        history_tokens = sum(block.tokens_user + block.tokens_assistant for block in blocks)
        if not face.as_json:
            shown_columns = columns_for(_SHOWN_COLUMNS, beside=_OTHER_COLUMNS)
            title = f"{one_line(conversation.conversation_id)}: {len(blocks)} turns, {history_tokens} tokens go in"
            rows = [
                (block.turn_id, block.tokens_user + block.tokens_assistant, clipped(block.user_text, shown_columns))
                for block in blocks
            ]
            face.print_lines([face.paint(f"=== {title} ===", Tint.HIGHLIGHT), ""])
            face.print_lines([*pipe_table(("turn", "tokens", "user"), rows, right="rr"), ""])
        decisions: list[Decision] = []
        for question in conversation.questions:
            if pauses:
                input("Enter goes on ")
            decisions.append(gatekeeper.explain(question))
            if not face.as_json:
                _show_decision(face, decisions[-1], len(blocks), history_tokens)
        if not face.as_json:
            _show_sum(face, decisions, history_tokens)
    return {
        "conversation": conversation.conversation_id,
        "turns": len(blocks),
        "history_tokens": history_tokens,
        "queries": [decision.to_dict() for decision in decisions],
    }


def _show_decision(face: Face, decision: Decision, turn_count: int, history_tokens: int) -> None:
    face.print_lines(
        [
            face.paint(f"> {one_line(decision.query)}", Tint.HIGHLIGHT),
            f"  {verdict_line(decision, face.painter)}",
            "",
            *block_lines(decision, face.painter),
            "",
            face.paint(outcome_line(decision, turn_count, history_tokens), Tint.ACCENT),
            "",
        ]
    )


def _show_sum(face: Face, decisions: Sequence[Decision], history_tokens: int) -> None:
    sent = sum(decision.tokens_fitted for decision in decisions)
    whole = history_tokens * len(decisions)
    if whole:
        line = (
            f"{len(decisions)} queries: {sent} tokens of context instead of {whole} ({1 - sent / whole:.1%} left out)"
        )
        say(face.paint(line, Tint.ACCENT))
    say()
