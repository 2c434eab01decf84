"""The settings that hooks go by: the user's own, from the environment and from the file that ``CGK_CONFIG`` names.

Settings that lie in the folder that is worked in do not count: a project that was fetched must not say where sessions
are kept, nor whether secrets are taken out.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from context_gatekeeper.config import Config

__all__ = ["DEBUG_VARIABLE", "drops_secrets", "hook_config", "is_switched_off", "may_have_pool"]

DEBUG_VARIABLE = "CGK_DEBUG"
"""`config.DEBUG_VARIABLE`, here so that most events load no settings; a test holds them together."""
_SWITCH_VARIABLE, _OFF_WORDS = "CGK_GATEWAY", ("off", "0", "false", "no")
_SWITCH_FILE = "gateway.off"
"""In the user's folder for settings; `cgk serve --off` makes it, `cgk serve --on` takes it away."""
_STORE_NAME = "pages.db"
_SOURCES = ("context-gatekeeper.toml", ".env")
_NAMES_STORE = ("CGK_STORE", "CGK_CONFIG")
_NAMES_REDACTION = ("CGK_REDACTION", "CGK_CONFIG")


def hook_config(folder: str) -> Config:
    """The settings; ``folder`` is the user's data folder. Raises ConfigError."""
    from pathlib import Path

    from context_gatekeeper.config import load_config

    return load_config(folder=Path(folder))


def is_switched_off(folder: str) -> bool:
    """Whether the gateway's kill switch is on: hooks change nothing then either; ``folder`` is that for settings."""
    told = os.environ.get(_SWITCH_VARIABLE, "").strip().lower()
    return told in _OFF_WORDS or os.path.exists(os.path.join(folder, _SWITCH_FILE))


def may_have_pool(folder: str) -> bool:
    """Whether a pool can exist: its default file does, or a setting may name another. Loads nothing."""
    return _is_told(folder, _NAMES_STORE, (_STORE_NAME, *_SOURCES))


def drops_secrets(folder: str) -> bool:
    """Whether originals of secrets may be kept nowhere. Loads settings only where any are told."""
    return _is_told(folder, _NAMES_REDACTION, _SOURCES) and hook_config(folder).redaction == "drop"


def _is_told(folder: str, variables: tuple[str, ...], files: tuple[str, ...]) -> bool:
    is_set = any(os.environ.get(name) for name in variables)
    return is_set or any(os.path.exists(os.path.join(folder, name)) for name in files)
