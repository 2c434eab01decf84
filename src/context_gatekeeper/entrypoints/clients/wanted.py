"""What is set up in a client, and the parts that all clients share: the hook's entries and the server of tools."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from context_gatekeeper.entrypoints.clients.json_text import add_item, member, parse_object, remove_items
from context_gatekeeper.entrypoints.hooks.archive import cgk_command

__all__ = [
    "CLIENTS",
    "GATEWAY_NAME",
    "SERVER_NAME",
    "Wanted",
    "hook_entries",
    "installed_command",
    "is_our_hook",
    "with_hooks",
    "without_hooks",
]

CLIENTS = ("claude", "codex", "opencode")
GATEWAY_NAME = "context-gatekeeper"
SERVER_NAME = "cgk"
"""Of our server of tools, and of the gateway as a provider of Codex."""
_TIMEOUT_SECONDS = 10
_OUR_ENDS = (["cgk", "hook"], ["context_gatekeeper.entrypoints.cli", "hook"])


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a client shall have of us."""

    gateway: str = ""
    """Address of a running gateway, as ``http://127.0.0.1:8787``; "" for none."""
    hooks: bool = True
    mcp: bool = False
    is_project: bool = False
    """For the folder that is worked in alone, else for all of the user's."""


def installed_command(*arguments: str) -> list[str]:
    """The command line for settings that outlive this run: the installed script where there is one."""
    script = Path(sys.executable).with_name("cgk")
    found = str(script) if script.is_file() else shutil.which("cgk")
    return [found, *arguments] if found else cgk_command(*arguments)


def hook_entries(events: Mapping[str, str], command: Sequence[str]) -> dict[str, list[object]]:
    """``hooks`` of a client's settings.

    Args:
        events: name of the event -> pattern of tools; "" where an event has none.
        command: what is run, told to a shell.
    """
    run = {"type": "command", "command": shlex.join(command), "timeout": _TIMEOUT_SECONDS}
    return {
        event: [{"matcher": matcher, "hooks": [run]} if matcher else {"hooks": [run]}]
        for event, matcher in events.items()
    }


def is_our_hook(command: object) -> bool:
    """Whether a hook's command runs ``cgk hook``, of this installation or another."""
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return False
    plain = [word for word in words if not word.startswith("--")]
    end = [Path(word).name for word in plain[-2:]]
    return end in _OUR_ENDS


def with_hooks(text: str, file: str, entries: Mapping[str, Sequence[object]]) -> str:
    """The settings with the hook's entries behind others. Raises ConfigError: ``hooks`` is of another form."""
    text = without_hooks(text, file)
    for event, groups in entries.items():
        for group in groups:
            text = add_item(text, ("hooks", event), group)
    return text


def without_hooks(text: str, file: str) -> str:
    """The settings without any hook that runs ours. Raises ConfigError: they are no JSON object."""
    parsed = parse_object(text, file)
    hooks = member(parsed, ("hooks",))
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        if isinstance(groups, list):
            ours = [number for number, group in enumerate(groups) if _is_ours(group)]
            text = remove_items(text, ("hooks", str(event)), ours)
    return text


def _is_ours(group: object) -> bool:
    """Whether a group of hooks runs ours alone; beside others of the user's it stays, as he wrote it."""
    run = member(group, ("hooks",))
    if not isinstance(run, list) or not run:
        return False
    return all(isinstance(one, dict) and is_our_hook(one.get("command")) for one in run)
