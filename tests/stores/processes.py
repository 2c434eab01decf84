"""Starting the worker programs of this folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WORKERS = Path(__file__).parent / "workers"
_started: list[subprocess.Popen[str]] = []


def start(worker: str, *arguments: object) -> subprocess.Popen[str]:
    """A running worker with pipes on both sides."""
    process = subprocess.Popen(
        [sys.executable, "-u", str(WORKERS / worker), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    _started.append(process)
    return process


def end_all() -> None:
    """End the workers that a failed test left behind."""
    while _started:
        process = _started.pop()
        if process.returncode is None:
            kill(process)


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
    output = _read_to_the_end(process)
    assert process.returncode == 0, output
    return output


def kill(process: subprocess.Popen[str]) -> list[str]:
    """kill -9; returns the whole lines that it had said and nobody had read."""
    process.kill()
    return _read_to_the_end(process).split("\n")[:-1]


def _read_to_the_end(process: subprocess.Popen[str]) -> str:
    # Not communicate(): it reads past the lines that readline() has fetched but not returned yet.
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    with process.stdout:
        output = process.stdout.read()
    process.wait(timeout=60)
    return output
