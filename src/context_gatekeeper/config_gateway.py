"""Settings of ``cgk serve``: the table ``[gateway]`` of the TOML file, ``CGK_GATEWAY...`` variables, flags.

Upstreams come from here alone; a request can choose among them by name and never bring its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from context_gatekeeper.config import (
    ENV_FILE,
    GATEWAY_TABLE,
    GATEWAY_URL_VARIABLE,
    GATEWAY_VARIABLE,
    read_env_file,
    read_toml_file,
    settings_folder,
    unknown_setting,
)
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.types import NativeMode

__all__ = ["BUILT_IN_UPSTREAMS", "GatewayConfig", "Upstream", "load_gateway_config"]

_MEBIBYTE = 1024 * 1024
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_UNNAMED = "default"


@dataclass(frozen=True, slots=True)
class Upstream:
    """A service that requests are forwarded to."""

    url: str = ""
    """Base address for clients of OpenAI's APIs, with the version in its path."""
    anthropic_url: str = ""
    """Base address for clients of Anthropic's API, without the version."""
    prices: str = ""
    """Price profile; "" lets the planner choose."""
    native: str = ""
    """Whether it takes what the setting ``native`` asks for, ``on`` or ``off``; "" for the providers' own addresses."""

    def base(self, *, is_anthropic: bool) -> str:
        """Base address for one of the two; "" when it does not speak it."""
        return self.anthropic_url if is_anthropic else self.url


BUILT_IN_UPSTREAMS: Mapping[str, Upstream] = {
    "anthropic": Upstream("https://api.anthropic.com/v1", "https://api.anthropic.com"),
    "openai": Upstream("https://api.openai.com/v1"),
    "deepseek": Upstream("https://api.deepseek.com/v1", "https://api.deepseek.com/anthropic"),
    "minimax": Upstream("https://api.minimax.io/v1", "https://api.minimax.io/anthropic"),
    "gemini": Upstream("https://generativelanguage.googleapis.com/v1beta/openai"),
}


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """Every setting of the gateway."""

    host: str = "127.0.0.1"
    port: int = 8787
    """0 takes a free one."""
    upstream: str = ""
    """Address that gets everything which names no upstream; "" chooses by API."""
    upstreams: Mapping[str, Upstream] = field(default_factory=lambda: BUILT_IN_UPSTREAMS)
    token: str = field(default="", repr=False)
    """What clients send as ``x-gatekeeper-token``; needed where others than this machine can connect."""
    shadow: bool = False
    """Plan and report, change nothing."""
    off: bool = False
    """Forward everything untouched."""
    allowed_hosts: tuple[str, ...] = ()
    """Names in ``Host`` beside those of this machine, without port."""
    allowed_origins: tuple[str, ...] = ()
    """Pages that may send requests, as ``https://example.org``."""
    trust_env: bool = False
    """Use the proxies that the environment names."""
    max_body_bytes: int = 64 * _MEBIBYTE
    max_decoded_bytes: int = 32 * _MEBIBYTE
    """Larger bodies, decoded, are forwarded without planning."""
    max_answer_bytes: int = 8 * _MEBIBYTE
    """Longer answers are relayed, and not read."""
    idle_seconds: float = 600.0
    """How long an upstream may be silent."""
    receive_seconds: float = 30.0
    """How long a client may be silent inside a request; its head must be whole within it."""
    connect_seconds: float = 10.0
    plan_seconds: float = 0.25
    """Deadline of all our work on a body of up to 1 MB."""
    plan_large_seconds: float = 1.0
    native: str = NativeMode.OFF.value
    """What is left to the provider's own means: ``off``, ``auto`` where ours cannot act, ``prefer`` where it can."""
    own_tool: bool = False
    """Whether models get a tool of ours for pages that were left out, which the client does not see."""
    repair_seconds: float = 10.0
    """How long a refusal is held back for another plan, where an edited conversation is refused."""
    answer_seconds: float = 20.0
    """A planner that says nothing for so long is started again."""
    restart_seconds: float = 0.1
    """Pause before the second start of a planner in a row; doubles with each, up to half a minute."""
    stop_seconds: float = 5.0
    """What running answers get at the end."""
    planner: str = "context_gatekeeper.gateway.planning:make_planner"
    """Factory of the planner, ``module:attribute``."""
    planner_settings: Mapping[str, Any] = field(default_factory=dict)
    """Passed on to the factory."""
    folder: Path = field(default_factory=settings_folder)
    """Holds the key of the credentials' hashes and the kill switch."""

    @property
    def key_file(self) -> Path:
        """Key of the credentials' hashes."""
        return self.folder / "gateway.key"

    @property
    def off_file(self) -> Path:
        """While it is there, everything is forwarded untouched."""
        return self.folder / "gateway.off"


_DEFAULTS = GatewayConfig()
_SIMPLE = tuple(
    entry.name for entry in fields(GatewayConfig) if entry.name not in ("upstreams", "planner_settings", "folder")
)
_UPSTREAM_FIELDS = tuple(entry.name for entry in fields(Upstream))
_OFF_WORDS = ("off", "0", "false", "no")


def load_gateway_config(
    flags: Mapping[str, Any] | None = None, *, environ: Mapping[str, str] | None = None, folder: Path | None = None
) -> GatewayConfig:
    """Put the gateway's settings together: defaults, TOML table, ``.env``, environment, flags, from weak to strong.

    Args:
        flags: setting -> value given on the command line; None means not given.
        environ: the environment; that of the process when None. ``CGK_GATEWAY=off`` is the kill switch,
            ``CGK_GATEWAY_<SETTING>`` gives a setting.
        folder: where ``.env`` and the TOML file are looked for; the working folder when None.

    Raises:
        ConfigError: an unknown setting, a value of the wrong kind, an address that is none, or an open address
            without a token.
    """
    variables = os.environ if environ is None else environ
    place = Path() if folder is None else folder
    path, table = read_toml_file(variables, place)
    section = table.get(GATEWAY_TABLE, {})
    if not isinstance(section, Mapping):
        raise ConfigError(f"{path}: {GATEWAY_TABLE}", "it is no table", f"write [{GATEWAY_TABLE}] above its settings")
    found = {
        name: _checked(name, value, f"{path}: {GATEWAY_TABLE}.{name}", (*_SIMPLE, "upstreams", "planner_settings"))
        for name, value in section.items()
        if name not in ("upstreams", "planner_settings")
    }
    for source, given in ((f"{ENV_FILE}: ", read_env_file(place / ENV_FILE)), ("", variables)):
        found.update(_from_variables(given, source))
    for name, value in (flags or {}).items():
        if value is not None:
            found[name] = _checked(name, value, f"--{name.replace('_', '-')}", _SIMPLE)
    config = GatewayConfig(
        **found,
        upstreams=_upstreams(section.get("upstreams", {}), f"{path}: {GATEWAY_TABLE}.upstreams"),
        planner_settings=_table(section.get("planner_settings", {}), f"{path}: {GATEWAY_TABLE}.planner_settings"),
    )
    return _finished(config)


def _finished(config: GatewayConfig) -> GatewayConfig:
    """With the unnamed upstream under its name. Raises ConfigError for an open address without a token."""
    if config.host not in _LOOPBACK and not config.token:
        raise ConfigError(
            f"--host {config.host}",
            "others than this machine could connect",
            "give a secret with --token or CGK_GATEWAY_TOKEN, or leave --host away",
        )
    if config.native not in tuple(NativeMode):
        raise ConfigError(f"native {config.native!r}", "there is no such mode", f"use one of {', '.join(NativeMode)}")
    if not config.upstream:
        return config
    url = _checked_address(config.upstream, "--upstream")
    return replace(config, upstreams={**config.upstreams, _UNNAMED: Upstream(url, url)})


def _checked_address(url: object, where: str) -> str:
    """``url`` when it is an http or https address without user, query and fragment. Raises ConfigError."""
    text = url if isinstance(url, str) else ""
    try:
        parts = urlsplit(text)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good or "@" in text or "?" in text or "#" in text or not text.isprintable() or " " in text:
        # The address may hold a password: it is not repeated.
        raise ConfigError(where, "it is no plain http or https address", "write it as https://api.example.org/v1")
    return text.rstrip("/")


def _upstreams(given: object, where: str) -> dict[str, Upstream]:
    found = dict(BUILT_IN_UPSTREAMS)
    for name, entry in _table(given, where).items():
        place = f"{where}.{name}"
        values = dict(_table(entry, place))
        for key, value in values.items():
            if key not in _UPSTREAM_FIELDS:
                raise unknown_setting(f"{place}.{key}", key, list(_UPSTREAM_FIELDS))
            if not isinstance(value, str):
                raise ConfigError(f"{place}.{key}", f"{value!r} is no text", "put it in quotes")
            if key == "native" and value not in ("", "on", "off"):
                raise ConfigError(f"{place}.{key}", f"{value!r} is neither on nor off", "correct it, or leave it away")
            if key.endswith("url"):
                values[key] = _checked_address(value, f"{place}.{key}")
        upstream = replace(found.get(name, Upstream()), **values)
        if "url" in values and "anthropic_url" not in values:
            # One address alone stands for the whole service.
            upstream = replace(upstream, anthropic_url=values["url"])
        if not upstream.url and not upstream.anthropic_url:
            raise ConfigError(place, "it has no address", 'give it url = "https://..."')
        found[name] = upstream
    return found


def _table(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(where, "it is no table", f"write it as a table, [{where.rpartition(': ')[2]}]")
    return value


def _from_variables(variables: Mapping[str, str], source: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for variable, value in variables.items():
        if variable == GATEWAY_VARIABLE:
            found["off"] = value.strip().lower() in _OFF_WORDS
        elif variable.startswith(f"{GATEWAY_VARIABLE}_") and value and variable != GATEWAY_URL_VARIABLE:
            name = variable.removeprefix(f"{GATEWAY_VARIABLE}_").lower()
            found[name] = _checked(name, value, f"{source}{variable}", _SIMPLE)
    return found


def _checked(name: str, value: Any, where: str, known: tuple[str, ...]) -> Any:
    if name not in known:
        raise unknown_setting(where, name, list(known))
    default = getattr(_DEFAULTS, name)
    reader = _READERS[type(default)]
    try:
        return reader(value)
    except (TypeError, ValueError):
        raise ConfigError(where, f"{str(value)[:40]!r} is not {_WANTED[type(default)]}", "correct it") from None


def _read_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in _OFF_WORDS:
        return False
    if word in ("on", "1", "true", "yes"):
        return True
    raise ValueError


def _read_int(value: Any) -> int:
    if isinstance(value, bool | float) or int(value) < 0:
        raise ValueError
    return int(value)


def _read_seconds(value: Any) -> float:
    if isinstance(value, bool) or not 0 < float(value) < float("inf"):
        raise ValueError
    return float(value)


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _read_names(value: Any) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value
    if not all(isinstance(name, str) for name in names):
        raise TypeError
    return tuple(name.strip() for name in names if name.strip())


_READERS: Mapping[type, Callable[[Any], Any]] = {
    bool: _read_bool,
    int: _read_int,
    float: _read_seconds,
    str: _read_text,
    tuple: _read_names,
}
_WANTED: Mapping[type, str] = {
    bool: "on or off",
    int: "a whole number from 0 on",
    float: "a number of seconds above 0",
    str: "text in quotes",
    tuple: "a list of names",
}
