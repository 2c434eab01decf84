"""Codex: ``config.toml`` names the gateway as a provider and our server of tools, ``hooks.json`` holds the hooks.

The provider of the name ``openai`` talks over a websocket past any address, so the gateway is one of its own. Hooks
of a project, and new ones at all, are skipped until the user trusts them in Codex.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from context_gatekeeper.entrypoints.clients.json_settings import JsonSettings, change_of, removal_of
from context_gatekeeper.entrypoints.clients.marked_blocks import with_blocks, without_blocks
from context_gatekeeper.entrypoints.clients.setup_files import FileChange, original_of, read_text
from context_gatekeeper.entrypoints.clients.wanted import (
    GATEWAY_NAME,
    SERVER_NAME,
    Wanted,
    hook_entries,
    installed_command,
)
from context_gatekeeper.errors import ConfigError

__all__ = ["HOOK_EVENTS", "LIMIT_NOTE", "TRUST_NOTE", "planned_changes", "planned_removals", "run_arguments"]

HOOK_EVENTS = {  # no PostToolUse: Codex takes no other result from it, of its own tools or of a server's
    "SessionStart": "",
    "UserPromptSubmit": "",
    "PreCompact": "",
    "SessionEnd": "",
}
TRUST_NOTE = "Codex skips new hooks until you trust them: start codex, open /hooks, and trust those of cgk"
LIMIT_NOTE = (
    "Codex takes no shorter result of a tool from a hook: the gateway alone slims those (cgk wrap, or --gateway)"
)
_KEY_VARIABLE = "OPENAI_API_KEY"


def planned_changes(wanted: Wanted, home: Path, folder: Path) -> list[FileChange]:
    """What setting up would change.

    Args:
        wanted: what is set up.
        home: the user's home.
        folder: the project's.

    Raises:
        ConfigError: a file cannot be changed, or the user has a provider or server of his own in our place.
    """
    place = _folder(wanted.is_project, home, folder)
    changes = []
    if wanted.gateway or wanted.mcp:
        changes.append(_toml_change(place / "config.toml", wanted))
    if wanted.hooks:
        entries = hook_entries(HOOK_EVENTS, installed_command("hook"))
        changes.append(change_of(place / "hooks.json", JsonSettings(hooks=entries)))
    return changes


def planned_removals(home: Path, folder: Path, *, is_project: bool) -> list[FileChange]:
    """What taking ours out would change; arguments and errors as of `planned_changes`."""
    place = _folder(is_project, home, folder)
    path = place / "config.toml"
    before = read_text(path)
    after = before
    if before is not None and (left := without_blocks(before)) != before:
        after = original_of(path, left, without_blocks, is_empty=not left.strip())
    return [FileChange(path, before, after), removal_of(place / "hooks.json", JsonSettings())]


def run_arguments(gateway: str, environ: Mapping[str, str]) -> list[str]:
    """Options of one run that lead through the gateway.

    Args:
        gateway: its address.
        environ: the client's environment; a key in it is used in place of a login.
    """
    provider = _provider(gateway, has_key=bool(environ.get(_KEY_VARIABLE)))
    told = {"model_provider": SERVER_NAME, **{f"model_providers.{SERVER_NAME}.{name}": one for name, one in provider}}
    return [word for name, one in told.items() for word in ("-c", f"{name}={_toml(one)}")]


def _provider(gateway: str, *, has_key: bool) -> list[tuple[str, str | bool]]:
    login: tuple[str, str | bool] = ("env_key", _KEY_VARIABLE) if has_key else ("requires_openai_auth", True)
    return [
        ("name", GATEWAY_NAME),
        ("base_url", f"{gateway.rstrip('/')}/v1"),
        ("wire_api", "responses"),
        ("supports_websockets", False),
        login,
    ]


def _toml_change(path: Path, wanted: Wanted) -> FileChange:
    before = read_text(path)
    text = before or ""
    own = _parsed(without_blocks(text), path)
    head, tail = "", []
    if wanted.gateway:
        _refuse_own(own, path, "model_provider", "model_providers")
        head = f'model_provider = "{SERVER_NAME}"'
        lines = [f"{name} = {_toml(one)}" for name, one in _provider(wanted.gateway, has_key=False)]
        tail += [f"[model_providers.{SERVER_NAME}]", *lines]
    if wanted.mcp:
        _refuse_own(own, path, "", "mcp_servers")
        command = installed_command("mcp")
        tail += [f"[mcp_servers.{SERVER_NAME}]", f"command = {_toml(command[0])}", f"args = {json.dumps(command[1:])}"]
    after = with_blocks(text, head, "\n".join(tail))
    _parsed(after, path)
    return FileChange(path, before, after, is_first=without_blocks(text) == text)


def _refuse_own(own: Mapping[str, object], path: Path, key: str, table: str) -> None:
    """Raises ConfigError when the user has set what we would."""
    if key and key in own:
        raise ConfigError(
            f"{path}: {key}", f"it is set to {own[key]!a}", "take it out, and name it to the gateway as upstream"
        )
    tables = own.get(table)
    if isinstance(tables, dict) and SERVER_NAME in tables:
        raise ConfigError(
            f"{path}: {table}.{SERVER_NAME}", "there is one that cgk did not write", "rename or remove it"
        )


def _parsed(text: str, path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(path), f"it is no TOML ({error})", "mend the file, then try again") from error


def _toml(told: str | bool) -> str:
    """A value as TOML: JSON's escapes are TOML's."""
    return json.dumps(told)


def _folder(is_project: bool, home: Path, folder: Path) -> Path:
    if is_project:
        return folder / ".codex"
    named = os.environ.get("CODEX_HOME")
    return Path(named) if named else home / ".codex"
