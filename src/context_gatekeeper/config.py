"""Settings of the command line: one frozen object, and where each value came from.

This module is the only reader of the environment, of ``.env`` and of TOML files. From weak to strong: defaults,
TOML file, ``.env`` of the working folder, environment, flags. Names are ``CGK_<SETTING>`` in the
environment and in ``.env``, the setting's own name in TOML; the providers' keys and addresses have
the names their own documentation uses.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any

from platformdirs import user_config_path, user_data_path

from context_gatekeeper.errors import ConfigError

__all__ = [
    "DEBUG_VARIABLE",
    "ENV_FILE",
    "GATEWAY_TABLE",
    "GATEWAY_URL_VARIABLE",
    "GATEWAY_VARIABLE",
    "PROVIDERS",
    "Config",
    "Origin",
    "Provider",
    "Setting",
    "default_sealed_folder",
    "default_store",
    "load_config",
    "read_env_file",
    "read_toml_file",
    "settings_folder",
    "unknown_setting",
]

_APPLICATION = "context-gatekeeper"

ENV_FILE = ".env"
TOML_FILE = "context-gatekeeper.toml"
_PREFIX = "CGK_"
_CONFIG_VARIABLE = "CGK_CONFIG"
DEBUG_VARIABLE = "CGK_DEBUG"
"""Makes `cgk hook` tell why it said nothing; no setting, and known everywhere."""
_NO_SETTINGS = frozenset((_CONFIG_VARIABLE, DEBUG_VARIABLE))
GATEWAY_TABLE = "gateway"
GATEWAY_VARIABLE = "CGK_GATEWAY"
"""Settings of the gateway begin with these two; `config_gateway` reads them."""
GATEWAY_URL_VARIABLE = "CGK_GATEWAY_URL"
"""Where hooks find a running gateway; no setting of the gateway's own."""
_ENV_LINE = re.compile(r"(?:export\s+)?([^\s=#'\"]+)\s*=\s*(.*)\Z", re.DOTALL)
"""Names of any kind: other programs keep theirs in the same file."""
_QUOTES = ('"', "'")


class Origin(StrEnum):
    """Where a value came from, weak to strong."""

    DEFAULT = "default"
    FILE = "file"
    ENV = "env"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Provider:
    """A service that the chat can talk to."""

    name: str
    base_url: str
    model: str
    """Model asked for when none is named."""

    @property
    def key_variable(self) -> str:
        """Name of the environment variable with the key."""
        return f"{self.name.upper()}_API_KEY"

    @property
    def url_variable(self) -> str:
        """Name of the environment variable with another address."""
        return f"{self.name.upper()}_BASE_URL"

    @property
    def model_variable(self) -> str:
        """Name of the environment variable with another model."""
        return f"{self.name.upper()}_MODEL"


PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider("minimax", "https://api.minimax.io/v1", "MiniMax-M2.7"),
        Provider("openai", "https://api.openai.com/v1", "gpt-4.1-mini"),
        Provider("anthropic", "https://api.anthropic.com", "claude-haiku-4-5"),
    )
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One value with its origin."""

    value: Any
    origin: Origin = Origin.DEFAULT
    source: str = ""
    """The file, variable or flag; empty for a default."""


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting of the command line."""

    budget: int = 4000
    """Tokens of one prompt without the system prompt, >= 1 (checked by the gatekeeper)."""
    profile: str = "strict"
    store: str | None = None
    """Path of the SQLite file; None keeps the conversation in memory."""
    session: str | None = None
    provider: str = "minimax"
    """A name of `PROVIDERS` or a URL."""
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    """Key for a provider that is a URL."""
    timeout: float = 120.0
    """Seconds that the service may stay silent, > 0."""
    max_tokens: int = 4096
    """Longest answer where the API wants a limit."""
    redaction: str = "keep"
    """What becomes of well-known secrets in pages of agents: ``keep`` (sealed apart), ``drop`` or ``off``."""
    sealed_folder: str | None = None
    """Where secrets are sealed; None for `default_sealed_folder`."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variable name -> value, of the providers' own variables."""
    origins: Mapping[str, Setting] = field(default_factory=dict, repr=False)
    """Setting -> value with its origin; keys are left out."""


_DEFAULTS = Config()
_NUMBERS: Mapping[str, type] = {"budget": int, "max_tokens": int, "timeout": float}
_TEXTS = ("profile", "store", "session", "provider", "model", "api_key", "redaction", "sealed_folder")
_PATHS = frozenset(("store", "sealed_folder"))
_SETTINGS = (*_NUMBERS, *_TEXTS)
_PROVIDER_VARIABLES = frozenset(
    name
    for provider in PROVIDERS.values()
    for name in (provider.key_variable, provider.url_variable, provider.model_variable)
)


def load_config(
    flags: Mapping[str, Any] | None = None, *, environ: Mapping[str, str] | None = None, folder: Path | None = None
) -> Config:
    """Put the settings together.

    Args:
        flags: setting -> value given on the command line; None means not given.
        environ: the environment; that of the process when None. ``CGK_CONFIG`` names a TOML file.
        folder: where ``.env`` and ``context-gatekeeper.toml`` are looked for; the working folder
            when None.

    Raises:
        ConfigError: an unknown setting, a value of the wrong kind, or a file that cannot be read.
    """
    variables = os.environ if environ is None else environ
    place = Path() if folder is None else folder
    found = {name: Setting(getattr(_DEFAULTS, name)) for name in _SETTINGS}
    found.update(_toml_settings(variables, place))
    env_file = place / ENV_FILE
    file_variables = read_env_file(env_file)
    found.update(_variable_settings(file_variables, Origin.FILE, str(env_file)))
    found.update(_variable_settings(variables, Origin.ENV, ""))
    for name, given in (flags or {}).items():
        if given is not None:
            flag = f"--{name.replace('_', '-')}"
            found[name] = Setting(_checked(name, given, flag), Origin.FLAG, flag)
    secrets = {
        name: value
        for source in (file_variables, variables)
        for name, value in source.items()
        if name in _PROVIDER_VARIABLES and value
    }
    values = {name: setting.value for name, setting in found.items()}
    shown = {name: setting for name, setting in found.items() if name != "api_key"}
    return Config(**values, secrets=secrets, origins=shown)


def default_store() -> Path:
    """The file that keeps the pages of agents where nobody names one: in the user's data folder."""
    return user_data_path(_APPLICATION, appauthor=False) / "pages.db"


def default_sealed_folder() -> Path:
    """Where secrets are sealed where nobody names a folder: in the user's folder for settings, away from the pages."""
    return settings_folder() / "sealed"


def settings_folder() -> Path:
    """The user's folder for settings of this package; it need not be there."""
    return user_config_path(_APPLICATION, appauthor=False)


def read_env_file(path: Path) -> dict[str, str]:
    """Variables of a ``.env`` file: ``NAME=value`` lines, ``#`` comments, optional quotes and ``export``.

    A value in quotes may go over several lines. A file that is not there holds none. Raises ConfigError
    naming the line.
    """
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            str(path), f"it cannot be read ({error})", "make it a readable UTF-8 file or remove it"
        ) from error
    variables: dict[str, str] = {}
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        stripped = lines[number].strip()
        number += 1
        if not stripped or stripped.startswith("#"):
            continue
        match = _ENV_LINE.match(stripped)
        if match is None:
            raise ConfigError(f"{path}, line {number}", "it is not NAME=value", "mend the line or start it with '#'")
        more = _lines_to_quote(match[2], lines[number:])
        variables[match[1]] = _unquoted("\n".join([match[2], *more]))
        number += len(more)
    return variables


def _lines_to_quote(value: str, following: Sequence[str]) -> Sequence[str]:
    """The lines over which a quoted value goes on; none when it ends on its own or never."""
    if not value.startswith(_QUOTES) or value.find(value[0], 1) > 0:
        return ()
    return next((following[: place + 1] for place, line in enumerate(following) if value[0] in line), ())


def _unquoted(value: str) -> str:
    if value.startswith(_QUOTES):
        closing = value.find(value[0], 1)
        return value[1:closing] if closing > 0 else value
    return re.split(r"\s#", f" {value}", maxsplit=1)[0].strip()


def _variable_settings(variables: Mapping[str, str], origin: Origin, source: str) -> Iterator[tuple[str, Setting]]:
    for variable, value in variables.items():
        if not variable.startswith(_PREFIX) or variable in _NO_SETTINGS or variable.startswith(GATEWAY_VARIABLE):
            continue
        name = variable.removeprefix(_PREFIX).lower()
        where = f"{source}: {variable}" if source else variable
        if name not in _SETTINGS:
            raise unknown_setting(where, variable, [f"{_PREFIX}{known.upper()}" for known in _SETTINGS])
        if value:
            yield name, Setting(_checked(name, value, where), origin, source or variable)


def read_toml_file(variables: Mapping[str, str], folder: Path) -> tuple[Path, dict[str, Any]]:
    """The TOML file that ``CGK_CONFIG`` names, or that of ``folder``, and what it holds: nothing when it is not there.

    Raises ConfigError for a named file that is not there and for one that cannot be read.
    """
    named = variables.get(_CONFIG_VARIABLE)
    path = Path(named) if named else folder / TOML_FILE
    try:
        return path, tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        if named:
            raise ConfigError(f"{_CONFIG_VARIABLE}={named}", "there is no such file", "correct or unset it") from None
        return path, {}
    except (OSError, ValueError) as error:
        raise ConfigError(str(path), f"it is no readable TOML ({error})", "mend the file") from error


def _toml_settings(variables: Mapping[str, str], folder: Path) -> Iterator[tuple[str, Setting]]:
    path, table = read_toml_file(variables, folder)
    for name, value in table.items():
        if name == GATEWAY_TABLE:
            continue
        if name not in _SETTINGS:
            raise unknown_setting(f"{path}: {name}", name, list(_SETTINGS))
        yield name, Setting(_checked(name, value, f"{path}: {name}"), Origin.FILE, str(path))


def unknown_setting(where: str, name: str, known: list[str]) -> ConfigError:
    """The error for a setting that there is not, with the one that was perhaps meant."""
    near = get_close_matches(name, known, n=1)
    return ConfigError(
        where, "there is no such setting", f"did you mean {near[0]}?" if near else f"use one of {', '.join(known)}"
    )


def _checked(name: str, value: Any, where: str) -> Any:
    kind = _NUMBERS.get(name)
    if kind is None:
        if not isinstance(value, str):
            raise ConfigError(where, f"{value!r} is no text", "put it in quotes")
        # No shell has done it for a value in a file or behind an "=".
        return str(Path(value).expanduser()) if name in _PATHS and value.startswith("~") else value
    try:
        if isinstance(value, bool):
            raise ValueError
        number = kind(value)
        if isinstance(value, float) and number != value:
            raise ValueError
    except (TypeError, ValueError):
        wanted = "a whole number" if kind is int else "a number"
        raise ConfigError(where, f"{str(value)[:40]!r} is not {wanted}", f"give {wanted}") from None
    if name != "budget" and not 0 < number < float("inf"):
        raise ConfigError(where, f"{value} is not above 0", "give a number above 0")
    return number
