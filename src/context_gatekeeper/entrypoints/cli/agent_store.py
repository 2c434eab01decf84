"""Opening the pool that the commands about agents' sessions work on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.config import default_store
from context_gatekeeper.core.block_handles import parse_block_handle
from context_gatekeeper.entrypoints.cli.face import Face
from context_gatekeeper.errors import ConfigError

__all__ = ["counted", "long_work", "open_pool", "range_of", "session_for", "session_named"]

_SHOWN_SESSIONS = 5
_MEMORY = frozenset(("memory:", ":memory:"))


@contextmanager
def open_pool(
    face: Face, store: str | None, *, makes: bool = False, dry_run: bool = False, **flags: Any
) -> Iterator[AgentPool]:
    """The pool in the store that flag, settings or the default name.

    Args:
        face: the command's.
        store: value of ``--store``.
        makes: make the file when it is not there; an error otherwise.
        dry_run: nothing may be made: an absent file is an empty pool.
        flags: further settings given on the command line.

    Raises:
        ConfigError: there is no such file. StoreError: it cannot be opened.
    """
    config = face.config(store=store, **flags)
    target = config.store or str(default_store())
    path = Path(target.removeprefix("sqlite:"))
    is_there = target in _MEMORY or path.exists()
    if not (is_there or makes or dry_run):
        raise ConfigError(
            f"store {path}", "there is no such file", "check the path, or take sessions in: cgk import FILE"
        )
    opened = None if dry_run and not is_there else target
    with AgentPool(opened, redaction=config.redaction, sealed_folder=config.sealed_folder) as pool:
        yield pool


def session_named(pool: AgentPool, name: str, *, is_whole: bool = False) -> str:
    """The session of this name, or the only one whose name holds it.

    Args:
        pool: where it is.
        name: a name or, unless it must be whole, a part of one.
        is_whole: for what cannot be undone.

    Raises:
        ConfigError: none does, or several do, or it is a part where a whole name is wanted.
    """
    names = [info.name for info in pool.sessions()]
    near = [name] if name in names else [one for one in names if name and name in one]
    if len(near) == 1 and (near[0] == name or not is_whole):
        return near[0]
    some = ", ".join((near or names)[:_SHOWN_SESSIONS])
    if is_whole and near:
        raise ConfigError(f"session {name[:80]!a}", "it is a part of a name alone", f"give the whole one: {some}")
    cause = f"{len(near)} sessions have it in their names" if near else "the pool has no such agent session"
    raise ConfigError(f"session {name[:80]!a}", cause, f"take one of {some}" if some else "import one: cgk import FILE")


def session_for(pool: AgentPool, handle: str, name: str | None) -> str | None:
    """The session that a handle's blocks are looked up in: the one named; None where the pool can tell by itself.

    Raises:
        ConfigError: as `session_named`; or a short handle, no name and several sessions.
    """
    if name is not None:
        return session_named(pool, name)
    names = [info.name for info in pool.sessions()] if parse_block_handle(handle) is not None else []
    if len(names) > 1:
        raise ConfigError(
            f"handle {handle!a}",
            f"it names a block of a session, and the pool has {len(names)} sessions",
            f"add --session NAME with one of {', '.join(names[:_SHOWN_SESSIONS])}",
        )
    return None


def range_of(option: str, value: str | None) -> tuple[int, int | None] | None:
    """``A-B``, ``A-`` or ``A`` as two numbers; None for None. Raises ConfigError for what is none."""
    if value is None:
        return None
    first, dash, last = value.partition("-")
    if not first.isdecimal() or (last and not last.isdecimal()) or len(value) > _RANGE_CHARS:
        raise ConfigError(f"{option} {value[:40]!a}", "it is no range", "give A-B, A- for up to the end, or A for one")
    if not dash:
        return int(first), int(first) + (option == "--chars")
    return int(first), int(last) if last else None


_RANGE_CHARS = 19


def counted(count: int, what: str) -> str:
    """``1 page``, ``2 pages``."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


@contextmanager
def long_work(face: Face, title: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal, nothing elsewhere; the function says that one more is done."""
    if not sys.stderr.isatty() or face.as_json:
        yield lambda: None
        return
    columns = (TextColumn(title), BarColumn(), TextColumn("{task.completed}/{task.total}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda: bar.advance(task)
