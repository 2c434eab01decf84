"""Who may import whom; the contracts stand in pyproject.toml."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import PACKAGE, ROOT, name_of, python_files, syntax_tree

PURE = (
    *(path for path in python_files("src") if PACKAGE / "core" in path.parents),
    PACKAGE / "types.py",
    PACKAGE / "ports.py",
)
PURE_STANDARD_LIBRARY = {
    "__future__", "array", "bisect", "collections", "dataclasses", "enum", "functools", "hashlib", "heapq",
    "itertools", "json", "math", "operator", "re", "string", "struct", "types", "typing", "unicodedata", "zlib",
}  # fmt: skip
"""Modules that compute and do nothing else."""
PURE_PACKAGES = {"context_gatekeeper", "snowballstemmer"}
"""`importlib.resources` of tables is read as package data, at first use."""
TABLE_READERS = {"src/context_gatekeeper/core/background.py": {"importlib", "gzip"}}


def imported_roots(path: Path) -> set[str]:
    roots = set()
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.Import):
            roots.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            roots.add((node.module or "").partition(".")[0])
    return roots


@pytest.mark.parametrize("path", PURE, ids=name_of)
def test_core_and_records_import_nothing_that_acts(path: Path) -> None:
    allowed = PURE_STANDARD_LIBRARY | PURE_PACKAGES | TABLE_READERS.get(name_of(path), set())
    assert imported_roots(path) - allowed == set()


def test_core_imports_nothing_from_an_outer_layer() -> None:
    inner = {"core", "ports", "types", "errors"}
    found = []
    for path in PURE:
        for node in ast.walk(syntax_tree(path)):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            if module and module.startswith("context_gatekeeper.") and module.split(".")[1] not in inner:
                found.append(f"{name_of(path)}: {module}")
    assert found == []


def test_relative_imports_are_not_used() -> None:
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in python_files("src")
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert found == []


def test_every_layer_contract_is_kept() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[done.stdout.find("Contracts") :]


def test_a_stray_module_would_break_the_contracts(tmp_path: Path) -> None:
    """The contract is exhaustive: a module of no layer cannot slip in."""
    root = tmp_path / "stray_package"
    root.mkdir()
    for name in ("__init__", "core", "utils"):
        (root / f"{name}.py").write_text("")
    (tmp_path / "setup.cfg").write_text(
        "[importlinter]\nroot_package = stray_package\n"
        "[importlinter:contract:layers]\nname = layers\ntype = layers\n"
        "containers = stray_package\nexhaustive = true\nlayers = core\n"
    )
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    assert "stray_package.utils" in done.stdout
