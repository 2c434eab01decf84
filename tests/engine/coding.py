"""Scripted coding sessions of our own, long enough for windows to be rewritten."""

from __future__ import annotations

from collections.abc import Sequence

from context_gatekeeper.engine.session_log import SessionLog, Slice
from context_gatekeeper.types import AgentMessage, AgentSession
from tests.engine.agents import answered, call, gave, returned, said, session


def module_text(number: int, lines: int = 60) -> str:
    """Lines of a made-up module, all different."""
    return "\n".join(f"total_{number}_{line} = compute_the_total_of(module_{number}, {line})" for line in range(lines))


def read_module(number: int, *, lines: int = 60, shift: int = 0) -> list[AgentMessage]:
    """The agent reads a module; with ``shift`` the reading begins some lines later."""
    shown = module_text(number, lines).split("\n")[shift:]
    output = "\n".join(f"{place:5}→{line}" for place, line in enumerate(shown, shift + 1))
    return [
        answered(
            f"Reading module {number}.", call(f"r{number}.{shift}", "Read", file_path=f"/srv/shop/module_{number}.py")
        ),
        returned(gave(f"r{number}.{shift}", output, "Read")),
    ]


def edit_module(number: int, line: int) -> list[AgentMessage]:
    """The agent changes one line that it read."""
    old = f"total_{number}_{line} = compute_the_total_of(module_{number}, {line})"
    arguments = {"file_path": f"/srv/shop/module_{number}.py", "old_string": old, "new_string": f"{old} + 1"}
    return [
        answered(call(f"e{number}.{line}", "Edit", **arguments)),
        returned(gave(f"e{number}.{line}", "The file was updated.", "Edit")),
    ]


def coding_session(calls: int, name: str = "s") -> AgentSession:
    """A session that reads a module a call and edits a line of the one before now and then."""
    messages = [said("Add one to every total of the shop, module by module, and tell me when you are done.")]
    for number in range(calls // 2):
        messages += read_module(number)
        messages += edit_module(number, 7) if number % 2 else read_module(number, shift=20)
    return session(*messages, name=name)


def logged(messages: Sequence[AgentMessage], token_factor: float = 1.0) -> tuple[SessionLog, list[list[Slice]]]:
    """A log of the messages, and the slices that each brought."""
    log = SessionLog(token_factor=token_factor)
    return log, [log.add_message(message) for message in messages]
