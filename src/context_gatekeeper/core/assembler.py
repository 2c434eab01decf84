"""Laying blocks out as a prompt: constraints, blocks in turn order, query (SPEC.md 3.6, DESIGN.md 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["lay_out_block", "lay_out_messages", "lay_out_prompt"]


def lay_out_block(turn_id: int, user: str, assistant: str) -> str:
    """One block as it stands in the prompt, with the blank line behind it."""
    sides = [f"{side}: {text}" for side, text in (("user", user), ("assistant", assistant)) if text.strip()]
    return "\n".join([f"[turn {turn_id}]", *sides]) + "\n\n"


def lay_out_prompt(constraints: Mapping[str, str], blocks: Sequence[Mapping[str, Any]], query: str) -> str:
    """The whole prompt as one text; parts are separated by blank lines and empty sides are left out."""
    parts = []
    if constraints:
        lines = [f"{key}: {value}" for key, value in constraints.items()]
        parts.append("\n".join(["[constraints]", *lines]) + "\n\n")
    parts.extend(lay_out_block(block["turn_id"], block["user"], block["assistant"]) for block in blocks)
    parts.append(f"user: {query}")
    return "".join(parts)


def lay_out_messages(
    constraints: Mapping[str, str], blocks: Sequence[Mapping[str, Any]], query: str
) -> list[dict[str, str]]:
    """The same as chat messages: one system message for the constraints, then the turns, then the query.

    A turn without a user side gets none invented; empty sides are left out.
    """
    messages = []
    if constraints:
        messages.append(
            {"role": "system", "content": "\n".join(f"{key}: {value}" for key, value in constraints.items())}
        )
    for block in blocks:
        messages.extend({"role": role, "content": block[role]} for role in ("user", "assistant") if block[role].strip())
    messages.append({"role": "user", "content": query})
    return messages
