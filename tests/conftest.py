"""What every test leaves as it found it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _same_logger_afterwards() -> Iterator[None]:
    """The command line sets up the package's logger; in a process of many tests that must not last."""
    logger = logging.getLogger("context_gatekeeper")
    before = (logger.level, logger.propagate, list(logger.handlers), list(logger.filters))
    yield
    logger.setLevel(before[0])
    logger.propagate = before[1]
    logger.handlers[:] = before[2]
    logger.filters[:] = before[3]
