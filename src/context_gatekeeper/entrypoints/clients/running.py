"""One run of a client: a gateway of its own beside it, its terminal, its signals, its exit code."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic
from types import FrameType
from typing import IO, cast

from context_gatekeeper.errors import ConfigError

__all__ = ["ending_on_signals", "find_client", "is_gateway", "private_file", "run_client", "running_gateway"]

_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d{1,5}")
_START_SECONDS = 20.0
_STOP_SECONDS = 5.0
_MOST_LINE_BYTES = 4096
_PASSED_ON = tuple(
    one for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if (one := getattr(signal, name, None)) is not None
)
_TYPED = frozenset(one for name in ("SIGINT", "SIGQUIT") if (one := getattr(signal, name, None)) is not None)
"""What a terminal sends to all of its processes by itself."""
_SIGNALLED = 128
"""A shell's exit code of a process that signal N ended is 128 + N."""


@contextmanager
def running_gateway(command: Sequence[str], environ: Mapping[str, str], folder: Path) -> Iterator[str]:
    """Run a gateway inside a ``with`` block; its address.

    It is in a session of its own, so that a Ctrl-C meant for the client does not reach it.

    Args:
        command: ``cgk serve`` with its options; prints a line with its address when it is ready.
        environ: its environment.
        folder: where it runs; made when it is not there. Settings that lie in a project that was fetched must not say
            where keys are sent.

    Raises:
        ConfigError: it ended, or said no address in 20 seconds.
    """
    folder.mkdir(0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command,
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
        )
        told = cast("IO[bytes]", process.stdout)
        reader = Thread(target=_drain, args=(told,), daemon=True)
        try:
            address = _address(told)
            if address is None:
                raise ConfigError("cgk serve", _why(process, said), "see `cgk serve --help`, or add --no-gateway")
            reader.start()
            yield address
        finally:
            _stop(process)
            if reader.ident is not None:
                reader.join(_STOP_SECONDS)
            told.close()


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Inside the ``with`` block a signal that ends processes is an exit, so that what was begun is put back.

    The first one alone: what is being put back is not broken off. Ctrl-C is an exception already.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        for one in ending:
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(_SIGNALLED + number)

    ending = [one for one in _PASSED_ON if one != signal.SIGINT]
    before = {number: signal.signal(number, end) for number in ending}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_client(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a client with our terminal; signals that come to us go on to it.

    Args:
        command: the client and its arguments.
        environ: its environment.

    Returns its exit code; 128 + N when signal N ended it.

    Raises:
        ConfigError: it cannot be started.
    """
    started: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        is_typed = number in _TYPED and os.isatty(0)
        if started and not is_typed:
            started[0].send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
    try:
        started.append(subprocess.Popen(command, env=dict(environ)))  # noqa: S603 - what the user asked for
        code = started[0].wait()
    except OSError as error:
        raise ConfigError(command[0], f"it cannot be started ({error.strerror})", "check its installation") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else _SIGNALLED - code


def _address(told: IO[bytes]) -> str | None:
    """The address in the first line that has one; None when the process ends first, or takes too long."""
    deadline = monotonic() + _START_SECONDS
    line = b""
    while monotonic() < deadline:
        if not select.select([told], [], [], max(0.0, deadline - monotonic()))[0]:
            break
        piece = os.read(told.fileno(), _MOST_LINE_BYTES)
        if not piece:
            break
        line = (line + piece)[-_MOST_LINE_BYTES:]
        found = _ADDRESS.search(line.decode("utf-8", "replace"))
        if found is not None and b"\n" in line[line.index(b"http://") :]:
            return found[0]
    return None


def _why(process: subprocess.Popen[bytes], said: IO[bytes]) -> str:
    if process.poll() is None and not _has_ended(process):
        return f"it said no address in {_START_SECONDS:.0f} s"
    said.seek(0)
    lines = said.read().decode("utf-8", "replace").strip().splitlines()
    return f"it ended ({lines[-1].removeprefix('error: ')})" if lines else "it ended"


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process that has closed its output ends too."""
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _drain(told: IO[bytes]) -> None:
    """Read on, so that the gateway never waits for a reader."""
    while os.read(told.fileno(), _MOST_LINE_BYTES):
        pass


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    if not _has_ended(process):
        process.kill()
        process.wait()


def find_client(name: str) -> str:
    """The path of a client's command. Raises ConfigError: there is none on the path."""
    import shutil

    found = shutil.which(name)
    if found is None:
        raise ConfigError(name, "there is no such command", "install it, or put it on the PATH")
    return found


@contextmanager
def private_file(name: str, text: str) -> Iterator[Path]:
    """A file of the user's alone that is gone after the ``with`` block."""
    with tempfile.TemporaryDirectory(prefix="cgk-") as folder:
        path = Path(folder) / name
        path.write_text(text, "utf-8")
        yield path


def is_gateway(address: str) -> bool:
    """Whether something answers at an address, within a second."""
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlsplit

    place = urlsplit(address)
    connection = HTTPConnection(place.hostname or "127.0.0.1", place.port, timeout=1.0)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException, ValueError):
        return False
    finally:
        connection.close()
