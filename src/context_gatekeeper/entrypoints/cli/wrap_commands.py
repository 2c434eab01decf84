"""``cgk wrap``, ``cgk init``, ``cgk uninstall``, and what ``cgk hook --help`` says.

`wrap` sets what one run of a client needs, by its environment and temporary files; `init` changes the client's own
settings after showing how, and `uninstall` takes exactly that out again.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from context_gatekeeper.entrypoints.cli.face import Face, face_options, with_face
from context_gatekeeper.entrypoints.cli.terminal import Tint, printable, say
from context_gatekeeper.errors import ConfigError

if TYPE_CHECKING:
    from context_gatekeeper.entrypoints.clients.setup_files import FileChange
    from context_gatekeeper.entrypoints.clients.wanted import Wanted

__all__ = ["CLIENT_COMMANDS"]

_CLIENTS = click.Choice(("claude", "codex", "opencode"))
_LOOPBACK = "http://127.0.0.1"
_PATH_VARIABLES = ("CGK_CONFIG", "CGK_STORE", "CGK_SEALED_FOLDER")
_HAS_HOOKS = frozenset(("claude", "codex"))


@click.command("hook", context_settings={"ignore_unknown_options": True})
@click.option("--shadow", is_flag=True, help="Archive sessions and change nothing.")
def hook_command(shadow: bool) -> None:
    """Answer one event of a client's hook: JSON on standard input, JSON on standard output.

    For the settings of Claude Code and Codex, which `cgk init` writes. Prompts get pages of earlier sessions of the
    folder, sessions are archived. Large results of Claude Code's tools are slimmed before the model sees them; Codex
    takes no other result from a hook. The exit code is 0 always: on any failure the client goes on as it would without.
    """
    from context_gatekeeper.entrypoints.hook import run_hook

    run_hook(("--shadow",) if shadow else ())


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--shadow", is_flag=True, help="Plan and archive; change nothing that the model sees.")
@click.option("--no-hooks", is_flag=True, help="Leave the client's hooks out.")
@click.option("--no-gateway", is_flag=True, help="Leave the gateway out: hooks alone.")
@click.option("--upstream", help="Address that the gateway forwards to.  [default: the client's own]")
@click.option("--gateway", help="Address of a gateway that runs already.  [default: one for this run]")
@face_options
@click.argument("client", type=_CLIENTS)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@with_face
def wrap(
    face: Face,
    /,
    client: str,
    arguments: tuple[str, ...],
    gateway: str | None,
    upstream: str | None,
    no_gateway: bool,
    no_hooks: bool,
    shadow: bool,
) -> int:
    """Run a client with less in its window; nothing stays changed.

    ARGUMENTS are the client's own: cgk wrap claude -- -p "Why does the build fail?". A gateway is started for the run
    and stopped behind it, the client's settings are its environment and temporary files. The exit code is the
    client's.
    """
    from context_gatekeeper.entrypoints.clients.running import (
        ending_on_signals,
        find_client,
        is_gateway,
        run_client,
        running_gateway,
    )
    from context_gatekeeper.entrypoints.hooks.archive import cgk_command
    from context_gatekeeper.entrypoints.hooks.page_files import data_folder

    command = find_client(client)
    own = arguments[1:] if arguments[:1] == ("--",) else arguments
    if gateway is not None and no_gateway:
        raise ConfigError("--gateway", "it stands beside --no-gateway", "give one of them")
    if gateway is not None and not is_gateway(_checked_address(gateway)):
        raise ConfigError(
            f"gateway {gateway}", "nothing answers there", "start it with `cgk serve`, or leave --gateway out"
        )
    shadowed = ("--shadow",) if shadow else ()
    with ending_on_signals(), ExitStack() as held:
        address = gateway or ""
        if gateway is None and not no_gateway:
            told = upstream or _own_upstream(client)
            serve = cgk_command("serve", "--port", "0", *shadowed, *(("--upstream", told) if told else ()))
            address = held.enter_context(running_gateway(serve, _absolute(os.environ), Path(data_folder())))
        hook = [] if no_hooks else cgk_command("hook", *shadowed)
        run = _PREPARED[client](face, address, hook, own, held)
        return run_client([command, *run.arguments], run.environ)


def _own_upstream(client: str) -> str:
    """Where the client would send its requests without us; "" for its usual service."""
    from context_gatekeeper.entrypoints.clients.claude import own_address

    if client == "claude":
        return own_address(os.environ, Path.home())
    return os.environ.get("OPENAI_BASE_URL", "") if client == "codex" else ""


def _absolute(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for another working folder."""
    paths = {name: environ[name] for name in _PATH_VARIABLES if environ.get(name)}
    return {**environ, **{name: str(Path(path).expanduser().absolute()) for name, path in paths.items()}}


class _Run:
    """Arguments and environment of one run of a client."""

    def __init__(self, arguments: Sequence[str], **variables: str) -> None:
        self.arguments = list(arguments)
        self.environ = {**os.environ, **variables}


def _claude_run(face: Face, address: str, hook: list[str], arguments: Sequence[str], held: ExitStack) -> _Run:
    from context_gatekeeper.entrypoints.clients.claude import ADDRESS_VARIABLE, run_settings
    from context_gatekeeper.entrypoints.clients.running import private_file

    variables = {ADDRESS_VARIABLE: address} if address else {}
    if any(one == "--settings" or one.startswith("--settings=") for one in arguments):
        face.note("note: --settings of your own: hooks are left out of this run")
        return _Run(arguments, **variables)
    settings = run_settings(hook, address, hooks=bool(hook))
    if not settings:
        return _Run(arguments)
    file = held.enter_context(private_file("settings.json", json.dumps(settings)))
    return _Run(["--settings", str(file), *arguments], **variables)


def _codex_run(face: Face, address: str, hook: list[str], arguments: Sequence[str], _held: ExitStack) -> _Run:
    from context_gatekeeper.entrypoints.clients.codex import run_arguments

    if hook:
        face.note("note: Codex runs trusted hooks alone; set them up with `cgk init codex`", Tint.DEBUG)
    return _Run([*(run_arguments(address, os.environ) if address else ()), *arguments])


def _opencode_run(_face: Face, address: str, _hook: list[str], arguments: Sequence[str], _held: ExitStack) -> _Run:
    from context_gatekeeper.entrypoints.clients.opencode import CONFIG_VARIABLE, run_content

    return _Run(arguments, **({CONFIG_VARIABLE: run_content(address, os.environ)} if address else {}))


_PREPARED = {"claude": _claude_run, "codex": _codex_run, "opencode": _opencode_run}


# -- for good -----------------------------------------------------------------------------------


@click.command()
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@click.option("--project/--user", "is_project", help="This folder's settings, or all of yours.  [default: user]")
@click.option("--mcp/--no-mcp", default=False, help="Name `cgk mcp` as a server of tools.  [default: no-mcp]")
@click.option("--hooks/--no-hooks", default=None, help="Set the hooks up.  [default: hooks, where the client has any]")
@click.option("--gateway", help="Address of a gateway that always runs, as http://127.0.0.1:8787.")
@face_options
@click.argument("client", type=_CLIENTS)
@with_face
def init(
    face: Face,
    /,
    client: str,
    gateway: str | None,
    hooks: bool | None,
    mcp: bool,
    is_project: bool,
    is_sure: bool,
) -> None:
    """Set a client up for good, after showing what changes in its settings.

    Each file's old content stays beside it as NAME.cgk-backup; `cgk uninstall` takes exactly ours out again. Claude
    Code and Codex get hooks, of which only Claude Code's slim results of tools; opencode has none. The gateway works
    for all three.
    """
    from context_gatekeeper.entrypoints.clients.wanted import Wanted

    if hooks and client not in _HAS_HOOKS:
        raise ConfigError("--hooks", f"{client} runs no commands as hooks", "leave it out and give --gateway")
    wanted = Wanted(
        _checked_address(gateway) if gateway else "",
        hooks=client in _HAS_HOOKS if hooks is None else hooks,
        mcp=mcp,
        is_project=is_project,
    )
    if not (wanted.gateway or wanted.hooks or wanted.mcp):
        raise ConfigError(f"init {client}", "nothing is wanted", "give --gateway URL, --hooks or --mcp")
    changes = _setup_of(client).planned_changes(wanted, Path.home(), Path.cwd())
    is_written = _apply(face, changes, is_sure=is_sure, is_removal=False)
    if client == "codex" and wanted.hooks and is_written and not face.as_json:
        from context_gatekeeper.entrypoints.clients.codex import LIMIT_NOTE, TRUST_NOTE

        face.note(f"note: {TRUST_NOTE}")
        if not wanted.gateway:
            face.note(f"note: {LIMIT_NOTE}")


@click.command()
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@click.option("--project/--user", "is_project", help="This folder's settings, or all of yours.  [default: user]")
@face_options
@click.argument("client", type=_CLIENTS)
@with_face
def uninstall(face: Face, /, client: str, is_project: bool, is_sure: bool) -> None:
    """Take what `cgk init` set up out of a client's settings again, after showing how.

    What you changed there since stays. Archived sessions stay too: `cgk forget` deletes those.
    """
    changes = _setup_of(client).planned_removals(Path.home(), Path.cwd(), is_project=is_project)
    _apply(face, changes, is_sure=is_sure, is_removal=True)


class _Setup(Protocol):
    """What each client's module offers."""

    def planned_changes(self, wanted: Wanted, home: Path, folder: Path, /) -> list[FileChange]: ...

    def planned_removals(self, home: Path, folder: Path, /, *, is_project: bool) -> list[FileChange]: ...


def _setup_of(client: str) -> _Setup:
    from context_gatekeeper.entrypoints.clients import claude, codex, opencode

    setups: dict[str, _Setup] = {"claude": claude, "codex": codex, "opencode": opencode}
    return setups[client]


def _apply(face: Face, changes: Sequence[FileChange], *, is_sure: bool, is_removal: bool) -> bool:
    """Show, ask, write; whether there was anything to write."""
    due = [change for change in changes if change.is_change]
    if not face.as_json:
        for line in (line for change in due for line in change.diff()):
            say(face.paint(printable(line), Tint.ACCENT) if line[:1] in ("+", "-") else printable(line))
    if due and not is_sure:
        _ask(due)
    for change in due:
        change.write(is_removal=is_removal)
    if face.as_json:
        face.print_json({"files": [str(change.path) for change in due], "diff": [change.diff() for change in due]})
    elif not due:
        say("nothing to change")
    return bool(due)


def _ask(due: Sequence[FileChange]) -> None:
    """Raises ConfigError unless a person says yes."""
    if not sys.stdin.isatty():
        raise ConfigError("settings", "nobody is there to confirm the change", "add --yes")
    if not click.confirm(f"Change {', '.join(str(change.path) for change in due)}?", default=False, err=True):
        raise ConfigError("settings", "it was not confirmed", "nothing was changed")


def _checked_address(gateway: str) -> str:
    """An address without a path. Raises ConfigError for what is none, and for one in the clear beyond this machine."""
    from urllib.parse import urlsplit

    try:
        place = urlsplit(gateway)
        is_address = place.scheme in ("http", "https") and bool(place.hostname) and (place.port or 0) >= 0
    except ValueError:
        is_address = False
    if not is_address or place.query or place.fragment or place.username or place.path.strip("/"):
        raise ConfigError(f"--gateway {gateway!a}", "it is no address of a gateway", f"give one as {_LOOPBACK}:8787")
    if place.scheme == "http" and place.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise ConfigError(f"--gateway {gateway!a}", "keys would go over the network in the clear", "use https")
    return gateway.rstrip("/")


CLIENT_COMMANDS = (hook_command, wrap, init, uninstall)
