"""What every test leaves as it found it; the long forms of two of them, and the figures that tests record."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

import pytest

LOGGER = logging.getLogger("context_gatekeeper")
UNTOUCHED = (LOGGER.level, LOGGER.propagate, tuple(LOGGER.handlers), tuple(LOGGER.filters))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Sizes of the tests that `make slow-kills`, `slow-damage` and `slow-histories` run in their long form."""
    group = parser.getgroup("long forms")
    group.addoption("--kills", type=int, default=20, help="kill -9 while several processes append (default: 20)")
    group.addoption("--histories", type=int, default=1000, help="edited conversations of each API (default: 1000)")
    group.addoption("--damaged-files", type=int, default=50, help="variants of damaged store files (default: 50)")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for a ``damage_variant`` runs once for each."""
    if "damage_variant" in metafunc.fixturenames:
        metafunc.parametrize("damage_variant", range(metafunc.config.getoption("--damaged-files")))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures that passed tests recorded, equal ones counted."""
    figures = Counter(
        figure for report in terminalreporter.stats.get("passed", []) for figure in report.user_properties
    )
    if figures:
        terminalreporter.section("figures")
    for (name, figure), times in sorted(figures.items()):
        terminalreporter.line(f"{name}: {figure}" + (f": {times}" if times > 1 else ""))


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
