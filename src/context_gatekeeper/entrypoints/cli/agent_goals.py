"""``cgk goal`` and ``cgk pin``: what is always sent."""

from __future__ import annotations

from context_gatekeeper.agent_pool import RESIDENT_TOKENS, AgentPool
from context_gatekeeper.entrypoints.cli.agent_store import open_pool, session_for
from context_gatekeeper.entrypoints.cli.face import Face
from context_gatekeeper.entrypoints.cli.terminal import (
    Tint,
    clipped,
    columns_for,
    fitted_table,
    one_line,
    pipe_table,
    say,
)

__all__ = ["run_finish_goal", "run_goals", "run_pin", "run_pins", "run_set_goal"]

_TEXT_COLUMNS, _BESIDE_TEXT = 64, 60


def run_goals(face: Face, store: str | None) -> None:
    """Every goal, a row each."""
    with open_pool(face, store, dry_run=True) as pool:
        goals, resident = pool.goals(), _resident(pool)
    if face.as_json:
        face.print_json({"goals": [goal.to_dict() for goal in goals], "resident_tokens": resident})
        return
    columns = columns_for(_TEXT_COLUMNS, beside=_BESIDE_TEXT)
    rows = [
        (goal.goal_id, "done" if goal.is_done else "active", goal.tokens, goal.handle, clipped(goal.text, columns))
        for goal in goals
    ]
    face.print_lines(
        [*pipe_table(("goal", "state", "tokens", "handle", "text"), rows, right="llrll"), "", _room(resident)]
    )


def run_set_goal(face: Face, text: str, store: str | None) -> None:
    """Set a goal."""
    with open_pool(face, store, makes=True) as pool:
        goal = pool.set_goal(text)
        resident = _resident(pool)
    if face.as_json:
        face.print_json({**goal.to_dict(), "resident_tokens": resident})
    else:
        say(face.paint(f"{goal.goal_id} set, {goal.tokens} tokens; {_room(resident)}", Tint.ACCENT))


def run_finish_goal(face: Face, goal_id: str, store: str | None) -> None:
    """Call a goal done."""
    with open_pool(face, store) as pool:
        goal = pool.finish_goal(goal_id)
    if face.as_json:
        face.print_json(goal.to_dict())
    else:
        say(face.paint(f"{goal.goal_id} is done; its page stays: {goal.handle}", Tint.ACCENT))


def run_pins(face: Face, store: str | None) -> None:
    """Every pin, a row each."""
    with open_pool(face, store, dry_run=True) as pool:
        pins, resident = pool.pins(), _resident(pool)
    if face.as_json:
        face.print_json({"pins": [pin.to_dict() for pin in pins], "resident_tokens": resident})
        return
    rows = [(pin.handle, pin.tokens, clipped(pin.text, _TEXT_COLUMNS)) for pin in pins]
    table = fitted_table(("pin", "tokens", "text"), rows, right="lrl", gives={"pin": 30, "text": 12}, ends=("pin",))
    face.print_lines([*table, "", _room(resident)])


def run_pin(face: Face, handle: str, store: str | None, session: str | None, *, removes: bool) -> None:
    """Pin a page or a piece of one, or take the pin away."""
    with open_pool(face, store) as pool:
        named = session_for(pool, handle, session)
        if removes:
            pool.unpin(handle, session=named)
            told, shown = {"removed": handle}, f"{one_line(handle)} is not pinned any more"
        else:
            pin = pool.pin(handle, session=named)
            told, shown = pin.to_dict(), f"{one_line(pin.handle)} pinned, {pin.tokens} tokens"
        resident = _resident(pool)
    if face.as_json:
        face.print_json({**told, "resident_tokens": resident})
    else:
        say(face.paint(f"{shown}; {_room(resident)}", Tint.ACCENT))


def _resident(pool: AgentPool) -> int:
    active = (goal.tokens for goal in pool.goals() if not goal.is_done)
    return sum(active) + sum(pin.tokens for pin in pool.pins())


def _room(resident: int) -> str:
    return f"{resident} of {RESIDENT_TOKENS} tokens are always sent"
