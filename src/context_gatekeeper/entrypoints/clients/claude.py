"""Claude Code: ``settings.json`` holds hooks, the gateway's address and leave to read kept pages.

MCP servers lie apart: in ``.mcp.json`` of a project, in ``~/.claude.json`` for all of a user's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from context_gatekeeper.entrypoints.clients.json_settings import JsonSettings, change_of, removal_of
from context_gatekeeper.entrypoints.clients.json_text import member, parse_object
from context_gatekeeper.entrypoints.clients.setup_files import FileChange, read_text
from context_gatekeeper.entrypoints.clients.wanted import SERVER_NAME, Wanted, hook_entries, installed_command
from context_gatekeeper.entrypoints.hooks.page_files import data_folder, pages_folder

__all__ = ["ADDRESS_VARIABLE", "HOOK_EVENTS", "own_address", "planned_changes", "planned_removals", "run_settings"]

ADDRESS_VARIABLE = "ANTHROPIC_BASE_URL"
HOOK_EVENTS = {
    "SessionStart": "",
    "UserPromptSubmit": "",
    "PostToolUse": "Bash|Grep|WebFetch|mcp__.*",
    "PreCompact": "",
    "SessionEnd": "",
}
_ALLOW = ("permissions", "allow")
_SERVER = ("mcpServers", SERVER_NAME)


def planned_changes(wanted: Wanted, home: Path, folder: Path) -> list[FileChange]:
    """What setting up would change.

    Args:
        wanted: what is set up.
        home: the user's home.
        folder: the project's.

    Raises:
        ConfigError: a file cannot be changed.
    """
    settings = JsonSettings()
    if wanted.hooks:
        settings.hooks = hook_entries(HOOK_EVENTS, installed_command("hook"))
        settings.items.append((_ALLOW, _read_rule()))
    if wanted.gateway:
        settings.addresses.append((("env", ADDRESS_VARIABLE), wanted.gateway))
    changes = [change_of(_settings_file(wanted.is_project, home, folder), settings)]
    if wanted.mcp:
        command = installed_command("mcp")
        server = {"type": "stdio", "command": command[0], "args": command[1:]}
        changes.append(
            change_of(_servers_file(wanted.is_project, home, folder), JsonSettings(members=[(_SERVER, server)]))
        )
    return changes


def planned_removals(home: Path, folder: Path, *, is_project: bool) -> list[FileChange]:
    """What taking ours out would change; arguments and errors as of `planned_changes`."""
    own = JsonSettings(items=[(_ALLOW, _read_rule())])
    server = JsonSettings(members=[(_SERVER, {})])
    return [
        removal_of(_settings_file(is_project, home, folder), own),
        removal_of(_servers_file(is_project, home, folder), server),
    ]


def run_settings(command: Sequence[str], gateway: str, *, hooks: bool) -> dict[str, object]:
    """Settings of one run, for ``--settings``; {} when it needs none.

    Args:
        command: the hook's.
        gateway: its address; "" for none.
        hooks: whether hooks are wanted.
    """
    settings: dict[str, object] = {}
    if gateway:
        settings["env"] = {ADDRESS_VARIABLE: gateway}  # stronger than one in the user's settings
    if hooks:
        settings["hooks"] = hook_entries(HOOK_EVENTS, command)
        settings["permissions"] = {"allow": [_read_rule()]}
    return settings


def own_address(environ: Mapping[str, str], home: Path) -> str:
    """The address that the user's settings or environment give the client; "" for its usual service.

    Raises ConfigError: the settings cannot be read.
    """
    path = _settings_file(False, home, home)
    told = member(parse_object(read_text(path) or "", str(path)), ("env", ADDRESS_VARIABLE))
    return told if isinstance(told, str) else environ.get(ADDRESS_VARIABLE, "")


def _read_rule() -> str:
    """Leave to read the originals of slimmed results, which lie outside of the project; ``//`` begins a whole path."""
    return f"Read(/{pages_folder(data_folder())}/**)"


def _settings_file(is_project: bool, home: Path, folder: Path) -> Path:
    """Of a project the file that is not shared with others: paths and addresses are this machine's."""
    if is_project:
        return folder / ".claude" / "settings.local.json"
    named = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(named) if named else home / ".claude") / "settings.json"


def _servers_file(is_project: bool, home: Path, folder: Path) -> Path:
    if is_project:
        return folder / ".mcp.json"
    named = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(named) if named else home) / ".claude.json"
