"""What the user wants to be always there, read from the pool beside the planner, which never waits for a disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.engine.goals import Goal, Pin
from context_gatekeeper.errors import GatekeeperError

__all__ = ["Standing", "StandingReader"]

READ_EVERY_SECONDS = 15.0
_CLOSE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Standing:
    """Goals and pins as they were read last."""

    goals: tuple[Goal, ...] = ()
    pins: tuple[Pin, ...] = ()


class StandingReader:
    """Reads goals and pins again and again in a thread of its own.

    Args:
        open_pool: opens the pool; called in the thread.
    """

    def __init__(self, open_pool: Callable[[], AgentPool]) -> None:
        self.newest = Standing()
        """Replaced whole; nothing while the pool cannot be read."""
        self.first_read = threading.Event()
        """Set when the pool was read, or could not be, for the first time."""
        self._open_pool = open_pool
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="standing", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, and wait a moment for it to close the pool."""
        self._ends.set()
        self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        pool: AgentPool | None = None
        while not self._ends.is_set():
            try:
                pool = pool or self._open_pool()
                self.newest = Standing(pool.goals(), pool.pins())
            except GatekeeperError:
                pool = None  # locked, damaged or gone: what was read last stands
            self.first_read.set()
            self._ends.wait(READ_EVERY_SECONDS)
        if pool is not None:
            pool.close()
