"""The kill switch: a file that turns the gateway into a plain relay without a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from context_gatekeeper.errors import ConfigError

__all__ = ["KillSwitch", "turn_off", "turn_on"]

_CHECK_SECONDS = 1.0


class KillSwitch:
    """Tells whether everything is to be forwarded untouched.

    Args:
        off_file: looked for at most once a second.
        is_always_off: said by the environment or the settings.
        clock: seconds that only grow.
    """

    def __init__(self, off_file: Path, *, is_always_off: bool, clock: Callable[[], float]) -> None:
        self._off_file = off_file
        self._is_always_off = is_always_off
        self._clock = clock
        self._checked_at = float("-inf")
        self._is_off = False

    @property
    def is_off(self) -> bool:
        """Whether the switch is off now, or was a second ago at most."""
        if self._is_always_off:
            return True
        now = self._clock()
        if now - self._checked_at >= _CHECK_SECONDS:
            self._checked_at = now
            self._is_off = self._off_file.exists()
        return self._is_off


def turn_off(off_file: Path) -> None:
    """Make running gateways plain relays, within a second. Raises ConfigError."""
    try:
        off_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        off_file.touch()
    except OSError as error:
        raise _unusable(off_file, error) from error


def turn_on(off_file: Path) -> None:
    """Undo `turn_off`. Raises ConfigError."""
    try:
        off_file.unlink(missing_ok=True)
    except OSError as error:
        raise _unusable(off_file, error) from error


def _unusable(off_file: Path, error: OSError) -> ConfigError:
    step = "make its folder writable, or send the header x-gatekeeper: off"
    return ConfigError(str(off_file), f"the switch cannot be changed ({error.strerror})", step)
