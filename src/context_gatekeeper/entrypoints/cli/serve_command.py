"""``cgk serve``: runs the gateway in the foreground; ``--off`` and ``--on`` switch one that runs."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from context_gatekeeper.config import default_store
from context_gatekeeper.config_gateway import GatewayConfig, load_gateway_config
from context_gatekeeper.core.redact import RedactionMode
from context_gatekeeper.entrypoints.cli.face import Face, face_options, with_face
from context_gatekeeper.entrypoints.cli.terminal import Tint
from context_gatekeeper.entrypoints.hooks.running_gateway import GatewayState, remove_state, write_state
from context_gatekeeper.errors import ConfigError

if TYPE_CHECKING:
    from context_gatekeeper.entrypoints.gateway.server import Gateway

__all__ = ["serve"]

_HERE, _ALL_ADDRESSES = "127.0.0.1", ("0.0.0.0", "::")  # noqa: S104 - to leave them out
_PACKAGES = frozenset(("aiohttp", "brotli", "httptools", "multidict", "starlette", "uvicorn", "yarl", "zstandard"))


@click.command()
@click.option("--on", "turns_on", is_flag=True, help="Undo --off.")
@click.option("--off", "turns_off", is_flag=True, help="Make running gateways forward everything untouched, and end.")
@click.option("--redaction", help="What becomes of secrets in the pool: keep (sealed apart), drop or off.")
@click.option("--store", help="SQLite file that keeps the pages.  [default: pages.db in the user's data folder]")
@click.option("--token", help="Secret that clients send as x-gatekeeper-token; better in CGK_GATEWAY_TOKEN.")
@click.option(
    "--native",
    type=click.Choice(["off", "auto", "prefer"]),
    help="What is left to the provider's own context editing.  [default: off]",
)
@click.option(
    "--own-tool", is_flag=True, default=None, help="Give models a tool for pages left out, unseen by the client."
)
@click.option("--shadow", is_flag=True, default=None, help="Plan and report, but change nothing.")
@click.option("--upstream", help="Address that gets every request.  [default: by API, and by /u/NAME in the path]")
@click.option("--port", type=int, help="0 takes a free one.  [default: 8787]")
@click.option("--host", help="Address to listen on; others than this machine's need a token.  [default: 127.0.0.1]")
@face_options
@with_face
def serve(
    face: Face, /, store: str | None, redaction: str | None, *, turns_on: bool, turns_off: bool, **flags: Any
) -> int:
    """Relay the calls of unchanged agents to their models, with the context that each call needs.

    Point a client's base address at the gateway: ANTHROPIC_BASE_URL=http://127.0.0.1:8787 or
    OPENAI_BASE_URL=http://127.0.0.1:8787/v1; with /u/NAME before the path it goes to the upstream NAME of the
    settings. Keys stay in the client and are passed on.
    """
    config = load_gateway_config(flags)
    if turns_on or turns_off:
        return _switch(face, config, is_off=turns_off)
    settings = face.config(store=store, redaction=redaction)
    if settings.redaction not in tuple(RedactionMode):
        step = f"use one of {', '.join(RedactionMode)}"
        raise ConfigError(f"redaction {settings.redaction!a}", "there is no such setting", step)
    store = settings.store or str(default_store())
    for_planner = {
        "store": store,
        "redaction": settings.redaction,
        "sealed_folder": settings.sealed_folder,
        "native": config.native,
        # With a token others than this user may ask.
        "tells_standing": not config.token,
        "expand_command": _expand_command(store),
        "own_tool": config.own_tool,
        **config.planner_settings,
    }
    return _run_gateway(face, replace(config, planner_settings=for_planner))


def _expand_command(store: str) -> str:
    """With which an agent on this machine gets a page; "" where the command is not found by its name."""
    if shutil.which("cgk") is None:
        return ""
    place = "" if store == str(default_store()) else f" --store {shlex.quote(store)}"
    return f"cgk expand{place} --session"


def _switch(face: Face, config: GatewayConfig, *, is_off: bool) -> int:
    from context_gatekeeper.entrypoints.gateway.switch import turn_off, turn_on

    (turn_off if is_off else turn_on)(config.off_file)
    if face.as_json:
        face.print_json({"off": is_off, "file": str(config.off_file)})
    else:
        done = "forward everything untouched" if is_off else "plan again"
        face.print_lines([f"gateways of this user {done} ({config.off_file})"])
    return 0


def _run_gateway(face: Face, config: GatewayConfig) -> int:
    """Serve until SIGINT or SIGTERM.

    Raises:
        ConfigError: the extra is not installed, the port is in use, or the key file cannot be kept.
    """
    try:
        from context_gatekeeper.entrypoints.gateway.server import Gateway, open_socket, raise_file_limit
    except ModuleNotFoundError as missing:
        if missing.name not in _PACKAGES:
            raise
        step = 'run: pip install "context-gatekeeper[gateway]"'
        raise ConfigError(str(missing.name), "it is not installed", step) from missing
    listener = open_socket(config)
    raise_file_limit()
    port = listener.getsockname()[1]
    hooks = _HookDoor(face, config)

    async def run() -> None:
        gateway = Gateway(config)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(gateway.stop))
        loop = asyncio.get_running_loop()

        def announce(ready: Gateway) -> None:
            hooks.open(port, ready.recall.word)
            _announce(face, config, port, ready)

        await gateway.serve(listener, announce)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        asyncio.run(run())
    finally:
        hooks.close()
        listener.close()
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


class _HookDoor:
    """Tells hooks of this user where the gateway is, while it runs; without that they look things up themselves."""

    def __init__(self, face: Face, config: GatewayConfig) -> None:
        self._face = face
        self._host = _HERE if config.host in _ALL_ADDRESSES else config.host
        self._folder = str(config.folder)
        self._state: GatewayState | None = None

    def open(self, port: int, word: str) -> None:
        """Write the file; where that cannot be, a note says so."""
        state = GatewayState(self._host, port, os.getpid(), word)
        try:
            write_state(self._folder, state)
        except OSError as error:
            self._face.note(f"note: hooks do not find this gateway: {self._folder}: {error.strerror}")
        else:
            self._state = state

    def close(self) -> None:
        """Take the file away."""
        if self._state is not None:
            with suppress(OSError):
                remove_state(self._folder, self._state)


def _announce(face: Face, config: GatewayConfig, port: int, gateway: Gateway) -> None:
    """Say where the gateway is, when it takes requests."""
    host = f"[{config.host}]" if ":" in config.host else config.host
    url = f"http://{host}:{port}"
    if face.as_json:
        face.print_json({"url": url, "port": port, "shadow": config.shadow, "planner": gateway.planner.is_up})
    else:
        text = f"serving at {url}: set ANTHROPIC_BASE_URL={url} or OPENAI_BASE_URL={url}/v1 in the client"
        face.print_lines([face.paint(text, Tint.ACCENT)])
    for note in _notes(config, gateway):
        face.note(note)


def _notes(config: GatewayConfig, gateway: Gateway) -> list[str]:
    states: Mapping[str, bool] = {
        "note: switched off, everything is forwarded untouched; `cgk serve --on` switches it on": gateway.switch.is_off,
        "note: shadow mode, plans are reported and nothing is changed": config.shadow,
    }
    return [text for text, is_so in states.items() if is_so]
