"""The command ``cgk``. `main` is the console script."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``cgk`` and leave the process: 0 fine, 2 wrong use or an error (one line on standard error), 130 Ctrl-C.

    Args:
        arguments: those of the process when None.
    """
    # click is imported only now, so that the package and other commands to come stay light.
    from context_gatekeeper.entrypoints.cli.app import run

    sys.exit(run(arguments))
