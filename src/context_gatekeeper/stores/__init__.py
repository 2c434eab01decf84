"""Stores: where pages are kept. `open_store` turns a target into one."""

from __future__ import annotations

import os
import re

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores.memory import MemoryStore

__all__ = ["MemoryStore", "open_store"]

_MEMORY_TARGETS = (None, "memory:", ":memory:")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", re.DOTALL)
"""Two letters at least: one letter is a drive."""


def open_store(target: str | os.PathLike[str] | None = None) -> PageStore:
    """Open a store.

    Args:
        target: None or ``"memory:"`` for memory; a path or ``"sqlite:PATH"`` for a SQLite file,
            which is made, with its folders, when it does not exist.

    Raises:
        ConfigError: no store of that kind.
        StoreError: the file cannot be opened; it is left as it was.
    """
    if target in _MEMORY_TARGETS:
        return MemoryStore()
    if not isinstance(target, str | os.PathLike):
        raise ConfigError(f"store {target!a}", f"it is a {type(target).__name__}", "pass a path, a PageStore or None")
    path = os.fsdecode(target)
    named = _SCHEME.fullmatch(path) if isinstance(target, str) else None
    if named:
        scheme, path = named[1].lower(), named[2]
        if scheme != "sqlite":
            raise ConfigError(
                f"store {scheme}:...",
                "there is no such kind of store in this release",
                f"pass the path of a SQLite file (as ./{scheme}:... if it is a file's name) or 'memory:'",
            )
    # Here, because a session in memory needs no sqlite3 (a fifth of the import time).
    from context_gatekeeper.stores.sqlite import SqliteStore

    return SqliteStore(path)
