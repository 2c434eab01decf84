"""Running the real command as a process of its own, away from anybody's settings."""

from __future__ import annotations

import codecs
import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

DEADLINE_SECONDS = 60
PATIENCE_SECONDS = 5
ROOT = Path(__file__).parents[2]
EXAMPLE_ZH = ROOT / "examples" / "data" / "assistant_zh.jsonl"
EXAMPLE_EN = ROOT / "examples" / "data" / "assistant_en.jsonl"
COMMAND = (sys.executable, "-m", "context_gatekeeper.entrypoints.cli")
_SETTINGS = ("CGK_", "MINIMAX_", "OPENAI_", "ANTHROPIC_")
Result = subprocess.CompletedProcess[str]


def environment(folder: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without settings of the person who runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
    return {
        **kept,
        "HOME": str(folder),
        "PYTHONUTF8": "1",
        "NO_PROXY": "127.0.0.1",
        "TERM": "xterm-256color",
        **(extra or {}),
    }


def run_cgk(folder: Path, *arguments: object, env: Mapping[str, str] | None = None, stdin: str = "") -> Result:
    """Run ``cgk`` in ``folder`` with its output in pipes."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=folder,
        env=environment(folder, env),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=DEADLINE_SECONDS,
        check=False,
    )


def cgk_json(folder: Path, *arguments: object, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The one JSON object that ``cgk`` prints."""
    result = run_cgk(folder, *arguments, "--json", env=env)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == 1
    printed: dict[str, Any] = json.loads(lines[0])
    return printed


def error_line(result: Result) -> str:
    """The only line on standard error, after checking that nothing else was said."""
    assert result.returncode == 2, (result.stdout, result.stderr)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert "; " in line, line
    return line


class OnTerminal:
    """``cgk`` with a pseudo-terminal as its standard streams."""

    def __init__(self, folder: Path, *arguments: object, env: Mapping[str, str] | None = None) -> None:
        self._ours, theirs = pty.openpty()
        # A suite that runs in the background ignores Ctrl-C, and so would what it starts.
        ours = signal.signal(signal.SIGINT, signal.SIG_DFL)
        self._process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            cwd=folder,
            env=environment(folder, env),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        signal.signal(signal.SIGINT, ours)
        os.close(theirs)
        self.shown = ""
        # A piece may end inside a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def read_until(self, mark: str) -> str:
        """Read on until ``mark`` was shown; what was read since the last call."""
        start = len(self.shown)
        while mark not in self.shown[start:]:
            piece = self._read()
            assert piece, f"{mark!r} was never shown: {self.shown!r}"
        return self.shown[start:]

    def write(self, text: str) -> None:
        """Type."""
        os.write(self._ours, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C, again if nothing comes of it.

        A signal that arrives right before the process waits for input is noticed by the next one only.
        """
        for _ in range(DEADLINE_SECONDS // PATIENCE_SECONDS):
            self._process.send_signal(signal.SIGINT)
            if select.select([self._ours], [], [], PATIENCE_SECONDS)[0]:
                return
        raise AssertionError(f"Ctrl-C was not noticed after {self.shown!r}")

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        return self._process.wait(DEADLINE_SECONDS)

    def _read(self) -> bytes:
        ready, _, _ = select.select([self._ours], [], [], DEADLINE_SECONDS)
        assert ready, f"nothing was shown for {DEADLINE_SECONDS} s after {self.shown!r}"
        try:
            piece = os.read(self._ours, 65536)
        except OSError:  # Linux says so when the other end is closed.
            piece = b""
        self.shown += self._decoder.decode(piece).replace("\r\n", "\n")
        return piece
