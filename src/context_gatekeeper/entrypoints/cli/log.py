"""Log records as single lines with time and turn number (DESIGN.md section 2)."""

from __future__ import annotations

import logging
import re
import sys
from datetime import UTC, datetime

from context_gatekeeper.entrypoints.cli.terminal import one_line

__all__ = ["FewWarnings", "LineFormatter", "start_logging"]

_NAMED_TURN = re.compile(r"turn (\d+): ")
_NO_TURN = "-"


class LineFormatter(logging.Formatter):
    """``2026-05-08T13:56:00Z turn 7 warning: message``; times are UTC.

    The number is the record's ``turn`` (``extra={"turn": 7}``) or the one that its message begins
    with; ``-`` where neither is there.
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the message and its exception hold."""
        message = record.getMessage()
        turn = getattr(record, "turn", None)
        named = _NAMED_TURN.match(message)
        if turn is None and named:
            turn, message = named[1], message[named.end() :]
        if record.exc_info and record.exc_info[1] is not None:
            message = f"{message} ({type(record.exc_info[1]).__name__}: {record.exc_info[1]})"
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"{moment} turn {_NO_TURN if turn is None else turn} {record.levelname.lower()}: {one_line(message)}"


class FewWarnings(logging.Filter):
    """Lets the first warnings through and counts the rest; other levels pass."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._left = most
        self.held_back = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is shown."""
        if record.levelno != logging.WARNING:
            return True
        self._left -= 1
        self.held_back += self._left < 0
        return self._left >= 0


def start_logging(*, is_verbose: bool, most_warnings: int | None = None) -> FewWarnings | None:
    """Send the package's records to standard error: warnings and errors, with ``is_verbose`` all.

    Returns:
        The filter that counts the warnings above ``most_warnings``; None when all are shown.
    """
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(LineFormatter())
    few = None if most_warnings is None or is_verbose else FewWarnings(most_warnings)
    if few is not None:
        output.addFilter(few)
    logger = logging.getLogger("context_gatekeeper")
    logger.handlers[:] = [output]
    logger.setLevel(logging.DEBUG if is_verbose else logging.WARNING)
    return few
