"""Files and functions stay small enough to be read."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.tree import name_of, python_files, syntax_tree

MOST_MODULE_LINES = 600
MOST_FUNCTION_LINES = 60
MOST_TEST_FILE_LINES = 500
TABLES = "src/context_gatekeeper/core/tables/"
"""Tables of numbers and words; length says nothing about them."""
FIXTURE_TEXTS = "src/context_gatekeeper/evals/fixtures.py"
CODE = tuple(
    path
    for path in python_files("src", "benchmarks", "scripts")
    if not name_of(path).startswith((TABLES, FIXTURE_TEXTS))
)
TESTS = python_files("tests")


def too_long_functions(path: Path, most_lines: int) -> list[str]:
    found = []
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > most_lines:
                found.append(f"{name_of(path)}:{node.lineno} {node.name}: {lines} lines")
    return found


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_a_module_has_at_most_600_lines(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= MOST_MODULE_LINES


def test_a_function_has_at_most_60_lines() -> None:
    assert [row for path in CODE for row in too_long_functions(path, MOST_FUNCTION_LINES)] == []


@pytest.mark.parametrize("path", TESTS, ids=name_of)
def test_a_test_file_has_at_most_500_lines(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= MOST_TEST_FILE_LINES


def test_the_measure_sees_a_function_that_is_too_long() -> None:
    assert too_long_functions(Path(__file__), 1), "every function of this file is longer than one line"
