"""Starting the worker programs of this folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WORKERS = Path(__file__).parent / "workers"


def start(worker: str, *arguments: object) -> subprocess.Popen[str]:
    """A running worker with pipes on both sides."""
    return subprocess.Popen(
        [sys.executable, "-u", str(WORKERS / worker), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> str:
    """The worker's next line; "" when it ended."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def tell(process: subprocess.Popen[str], line: str) -> None:
    """Send one line to the worker."""
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def finish(process: subprocess.Popen[str]) -> str:
    """Close the worker's input, wait for its end and return what it still said."""
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    return output


def kill(process: subprocess.Popen[str]) -> list[str]:
    """kill -9; returns the whole lines that it had said and nobody had read."""
    process.kill()
    output, _ = process.communicate(timeout=60)
    return output.split("\n")[:-1]
