"""PreCompact and SessionEnd: the session's log goes into the pool, in a process of its own, so that nobody waits."""

from __future__ import annotations

import os
import sys

from context_gatekeeper.entrypoints.hooks.events import HookEvent

__all__ = ["cgk_command", "start_archiving"]

_FOLDER_MODE = 0o700


def cgk_command(*arguments: str) -> list[str]:
    """The command line that runs ``cgk`` of this very installation.

    ``-P`` keeps Python from taking modules out of the folder that it is started in, which is a stranger's work.
    """
    return [sys.executable, "-P", "-m", "context_gatekeeper.entrypoints.cli", *arguments]


def start_archiving(event: HookEvent, folder: str) -> bool:
    """Start ``cgk import`` of the session's log, detached; whether there was one.

    It runs in ``folder``, not in the client's, whose settings do not count (module ``settings``).

    Raises:
        OSError: it could not be started.
    """
    if not event.transcript or not os.path.isfile(event.transcript):
        return False
    import subprocess

    os.makedirs(folder, _FOLDER_MODE, exist_ok=True)
    subprocess.Popen(  # noqa: S603 - our own command, and a file's path
        cgk_command("import", os.path.abspath(event.transcript)),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    return True
