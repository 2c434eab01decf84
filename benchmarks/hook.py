"""``python -m benchmarks hook``: what `cgk hook` adds to the start of a bare interpreter.

Fresh processes, turn by turn: a bare interpreter, the hook with a result that stays, the hook with one that is
slimmed. Each is started ``rounds`` times after one that warms up the bytecode, which is kept apart whatever the
environment says of it; medians of the wall time. What is added is the median of the rounds' differences, so that a busy
machine slows both sides of each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from time import perf_counter

from benchmarks.timing import percentile
from context_gatekeeper.entrypoints.hooks.archive import cgk_command

__all__ = ["measure_hook"]

_LEFT_OUT = ("CGK_", "PYTHONDONTWRITEBYTECODE")
"""Of the environment: an installed package has its bytecode."""
_SHORT_LINES, _LARGE_LINES = 20, 2000
"""About 0.2 and 28 kB: Claude Code cuts the output of a command at 30,000 characters itself."""


def measure_hook(rounds: int = 15) -> dict[str, float]:
    """Milliseconds: ``bare_ms``, ``hook_ms``, ``added_ms``; ``slim_ms``, ``slim_added_ms`` with a slimmed result."""
    with tempfile.TemporaryDirectory() as home:
        environ = {name: value for name, value in os.environ.items() if not name.startswith(_LEFT_OUT)}
        environ |= {"HOME": home, "XDG_DATA_HOME": home, "XDG_CONFIG_HOME": home, "PYTHONPYCACHEPREFIX": home}
        runs = {
            "bare": ([sys.executable, "-c", "pass"], ""),
            "hook": (cgk_command("hook"), _event(_SHORT_LINES)),
            "slim": (cgk_command("hook"), _event(_LARGE_LINES)),
        }
        taken: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(rounds + 1):
            for name, (command, event) in runs.items():
                taken[name].append(_seconds(command, event, environ))
    bare, hook, slim = (taken[name][1:] for name in ("bare", "hook", "slim"))
    return {
        "bare_ms": percentile(bare, 0.5) * 1e3,
        "hook_ms": percentile(hook, 0.5) * 1e3,
        "added_ms": _median_added_ms(bare, hook),
        "slim_ms": percentile(slim, 0.5) * 1e3,
        "slim_added_ms": _median_added_ms(bare, slim),
    }


def _median_added_ms(bare: list[float], other: list[float]) -> float:
    return percentile([more - less for less, more in zip(bare, other, strict=True)], 0.5) * 1e3


def _event(lines: int) -> str:
    output = "\n".join(f"line {number} of it" for number in range(lines))
    response = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
    return json.dumps(
        {
            "session_id": "bench",
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": "make"},
            "tool_use_id": "toolu_1",
            "tool_response": response,
        }
    )


def _seconds(command: list[str], event: str, environ: dict[str, str]) -> float:
    start = perf_counter()
    subprocess.run(command, input=event, env=environ, check=True, capture_output=True, text=True)  # noqa: S603 - our own
    return perf_counter() - start
