"""Stores: where pages are kept. `open_store` turns a name into one."""

from __future__ import annotations

import os

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores.memory import MemoryStore

__all__ = ["MemoryStore", "open_store"]


def open_store(target: str | os.PathLike[str] | None = None) -> PageStore:
    """Open a store.

    Args:
        target: None or ``"memory:"`` for memory; a path or ``"sqlite:PATH"`` for a SQLite file,
            which is made, with its folders, when it does not exist.

    Raises:
        ConfigError: no store of that kind.
        StoreError: the file cannot be opened; it is left as it was.
    """
    if target is None or target == "memory:":
        return MemoryStore()
    if not isinstance(target, str | os.PathLike):
        raise ConfigError(f"store {target!r}", "it is neither a path nor a store", "pass a path, a PageStore or None")
    name = os.fspath(target)
    scheme, mark, _ = name.partition("://")
    if mark and not os.path.exists(name):
        raise ConfigError(f"store {scheme}://...", "there is no such kind of store", "pass a path, or 'sqlite:PATH'")
    from context_gatekeeper.stores.sqlite import SqliteStore

    return SqliteStore(name.removeprefix("sqlite:"))
