"""Small labelled conversations of our own for the tests of the evaluations."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from context_gatekeeper.evals.datasets import Conversation, read_conversations
from context_gatekeeper.types import Decision, GateVerdict, Stage, TopicMove

SAMPLES = Path(__file__).parent.parent / "data" / "evals"


def one_conversation(name: str) -> Conversation:
    """The first conversation of a sample file."""
    return next(read_conversations(SAMPLES / name))


def write_lines(folder: Path, *entries: object) -> Path:
    """A JSON Lines file with these entries."""
    path = folder / "entries.jsonl"
    path.write_text("".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in entries), "utf-8")
    return path


def decision(turn_ids: Iterable[int], *stages: Stage) -> Decision:
    """A decision that returns blocks of these turns, for what is worked out from decisions."""
    blocks = tuple({"turn_id": turn_id, "user": "", "assistant": ""} for turn_id in turn_ids)
    verdict = GateVerdict(TopicMove.CONTINUE, "made", 1.0, 0.0)
    return Decision("made", "strict", verdict, "running", "made", stages, blocks, 1.0, {}, 0, 0, 4000)
