"""The command ``cgk``. `main` is the console script."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]

_HELP = frozenset(("-h", "--help"))


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``cgk`` and leave the process: 0 fine, 2 wrong use or an error (one line on standard error), 130 Ctrl-C.

    Args:
        arguments: those of the process when None.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["hook"] and not _HELP.intersection(given):
        # A client waits for it at each call of a tool: nothing else is imported.
        from context_gatekeeper.entrypoints.hook import run_hook

        sys.exit(run_hook(given[1:]))
    # click is imported only now, so that the package and its hook stay light.
    from context_gatekeeper.entrypoints.cli.app import run

    sys.exit(run(given))
