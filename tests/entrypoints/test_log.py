"""One line a log record."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

import pytest

from context_gatekeeper.entrypoints.cli.log import FewWarnings, LineFormatter
from tests.entrypoints.running import EXAMPLE_EN, run_cgk


def record(message: str, *arguments: object, level: int = logging.WARNING, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("context_gatekeeper", level, "file.py", 1, message, arguments, None)
    made.created = 1_683_554_160.0
    for name, value in extra.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (record("turn 12: too long"), "2023-05-08T13:56:00Z turn 12 warning: too long"),
        (record("%d blocks", 3, level=logging.INFO, turn=0), "2023-05-08T13:56:00Z turn 0 info: 3 blocks"),
        (record("no number"), "2023-05-08T13:56:00Z turn - warning: no number"),
        (record("two\nlines \x1b[31m\r\n"), "2023-05-08T13:56:00Z turn - warning: two lines \\x1b[31m"),
    ],
)
def test_a_record_is_one_line_with_time_turn_and_level(made: logging.LogRecord, line: str) -> None:
    assert LineFormatter().format(made) == line


def test_an_exception_stays_on_the_line() -> None:
    try:
        raise ValueError("bad\nthing")
    except ValueError:
        made = record("it failed")
        made.exc_info = sys.exc_info()
    assert LineFormatter().format(made).endswith("it failed (ValueError: bad thing)")


def test_few_warnings_pass_and_the_rest_is_counted_but_errors_always_pass() -> None:
    few = FewWarnings(2)
    assert [few.filter(record("w")) for _ in range(4)] == [True, True, False, False]
    assert few.filter(record("e", level=logging.ERROR))
    assert few.held_back == 2


def test_every_line_of_a_verbose_run_has_the_form(tmp_path: Path) -> None:
    shown = run_cgk(tmp_path, "select", EXAMPLE_EN, "--query", "x", "--budget", 20, "--verbose").stderr.splitlines()
    assert len(shown) >= 24
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ turn (\d+|-) \w+: .", line) for line in shown)
