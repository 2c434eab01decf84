"""A progress bar on standard error, in plain characters, for work that takes long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from context_gatekeeper.entrypoints.cli.terminal import say

__all__ = ["progress_bar"]

_BAR_COLUMNS = 30


@contextmanager
def progress_bar(label: str, unit: str, *, wanted: bool = True) -> Iterator[Callable[[int, int], None]]:
    """Give a function that shows how many of how many are done.

    Args:
        label: the work.
        unit: what is counted.
        wanted: False for none at all. Where standard error is no terminal there is none either.

    The line is written again when its share in percent changed, and wiped at the end.
    """
    if not wanted or sys.stderr is None or not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    shown = ""

    def show(done: int, total: int) -> None:
        nonlocal shown
        share = done / total if total else 1.0
        bar = "#" * int(share * _BAR_COLUMNS)
        line = f"{label} [{bar:.<{_BAR_COLUMNS}}] {int(100 * share)}% of {total} {unit}"
        if line != shown:
            shown = line
            say(f"\r{line}", to_stderr=True, is_piece=True)

    try:
        yield show
    finally:
        if shown:
            say(f"\r{' ' * len(shown)}\r", to_stderr=True, is_piece=True)
