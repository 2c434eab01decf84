"""What every test leaves as it found it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

LOGGER = logging.getLogger("context_gatekeeper")
UNTOUCHED = (LOGGER.level, LOGGER.propagate, tuple(LOGGER.handlers), tuple(LOGGER.filters))


@pytest.fixture(autouse=True)
def _untouched_logger() -> Iterator[None]:
    """The command line sets up the package's logger; in a process of many tests that must not last."""
    _restore_logger()
    yield
    _restore_logger()


def _restore_logger() -> None:
    LOGGER.setLevel(UNTOUCHED[0])
    LOGGER.propagate = UNTOUCHED[1]
    LOGGER.handlers[:] = UNTOUCHED[2]
    LOGGER.filters[:] = UNTOUCHED[3]
