"""opencode: ``opencode.json`` gives its own providers the gateway's address, and names our server of tools.

It runs no commands as hooks: what Claude Code's do, the gateway does for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from context_gatekeeper.entrypoints.clients.json_settings import JsonSettings, change_of, removal_of
from context_gatekeeper.entrypoints.clients.setup_files import FileChange
from context_gatekeeper.entrypoints.clients.wanted import SERVER_NAME, Wanted, installed_command
from context_gatekeeper.errors import ConfigError

__all__ = ["CONFIG_VARIABLE", "planned_changes", "planned_removals", "run_content"]

CONFIG_VARIABLE = "OPENCODE_CONFIG_CONTENT"
"""Settings of one run, as JSON; stronger than any file."""
_PROVIDERS = ("anthropic", "openai")
_SERVER = ("mcp", SERVER_NAME)
_FILE = "opencode.json"


def planned_changes(wanted: Wanted, home: Path, folder: Path) -> list[FileChange]:
    """What setting up would change.

    Args:
        wanted: what is set up; hooks are none of opencode's.
        home: the user's home.
        folder: the project's.

    Raises:
        ConfigError: the file cannot be changed.
    """
    settings = JsonSettings()
    if wanted.gateway:
        settings.addresses += [(_place(name), _address(wanted.gateway)) for name in _PROVIDERS]
    if wanted.mcp:
        settings.members.append((_SERVER, {"type": "local", "command": installed_command("mcp")}))
    return [change_of(_file(wanted.is_project, home, folder), settings)]


def planned_removals(home: Path, folder: Path, *, is_project: bool) -> list[FileChange]:
    """What taking ours out would change; arguments and errors as of `planned_changes`."""
    return [removal_of(_file(is_project, home, folder), JsonSettings(members=[(_SERVER, {})]))]


def run_content(gateway: str, environ: Mapping[str, str]) -> str:
    """Settings of one run that lead through the gateway, on top of those that the environment holds.

    Raises:
        ConfigError: the environment holds some that are no JSON object.
    """
    told = environ.get(CONFIG_VARIABLE, "")
    try:
        content = json.loads(told) if told else {}
    except ValueError as error:
        raise ConfigError(CONFIG_VARIABLE, f"it is no JSON ({error})", "correct or unset it") from error
    if not isinstance(content, dict):
        raise ConfigError(CONFIG_VARIABLE, "it holds no JSON object", "correct or unset it")
    for name in _PROVIDERS:
        _members(content, *_place(name)[:-1])["baseURL"] = _address(gateway)
    return json.dumps(content, ensure_ascii=False)


def _members(content: dict[str, object], *path: str) -> dict[str, object]:
    """The object at a path; made on the way, in the place of what is none."""
    for name in path:
        inner = content.get(name)
        if not isinstance(inner, dict):
            inner = content[name] = {}
        content = inner
    return content


def _place(provider: str) -> tuple[str, ...]:
    return ("provider", provider, "options", "baseURL")


def _address(gateway: str) -> str:
    return f"{gateway.rstrip('/')}/v1"


def _file(is_project: bool, home: Path, folder: Path) -> Path:
    """The settings file. Raises ConfigError where there is one with comments, whose JSON we cannot keep."""
    base = os.environ.get("XDG_CONFIG_HOME")
    place = folder if is_project else (Path(base) if base else home / ".config") / "opencode"
    other = place / f"{_FILE}c"
    if other.exists():
        raise ConfigError(str(other), "it may hold comments, which an edit would lose", f"rename it to {_FILE}")
    return place / _FILE
