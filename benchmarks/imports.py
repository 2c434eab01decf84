"""``python -m benchmarks import``: how long a fresh interpreter takes to import the package."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.timing import percentile

__all__ = ["measure_import"]

_STATEMENTS = {
    "import_ms": "import context_gatekeeper",
    "import_facade_ms": "from context_gatekeeper import ContextGatekeeper",
}
_TIMED = "from time import perf_counter; t = perf_counter(); {statement}; print(perf_counter() - t)"


def measure_import(interpreters: int = 15) -> dict[str, float]:
    """Median wall time, in milliseconds, over fresh interpreters; bytecode is cached by the first."""
    return {key: _median_ms(statement, interpreters) for key, statement in _STATEMENTS.items()}


def _median_ms(statement: str, interpreters: int) -> float:
    command = [sys.executable, "-c", _TIMED.format(statement=statement)]
    seconds = []
    for _ in range(interpreters + 1):
        answer = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - our own code
        seconds.append(float(answer.stdout))
    return percentile(seconds[1:], 0.5) * 1e3
