"""Reading the manifests and the tests they name, without running either."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.tree import ROOT, name_of, python_files, syntax_tree

MANIFESTS = tuple(
    Path(__file__).with_name(name) for name in ("manifest.toml", "manifest_scheduling.toml", "manifest_gateway.toml")
)
"""The two documents of the chat selection with the plan; the scheduling design; the gateway."""


@dataclass(frozen=True)
class Requirement:
    """One line of a document or of the plan, and what proves it."""

    requirement_id: str
    source: str
    text: str
    tests: tuple[str, ...]
    """``path::function`` from the project's root."""
    outside: str
    """Why no test of ours can prove it; empty when tests do."""
    later: str
    """What it comes with, when that is not built yet; empty when tests prove it."""


def read_manifest(paths: Sequence[Path] = MANIFESTS) -> tuple[Requirement, ...]:
    entries = [entry for path in paths for entry in tomllib.loads(path.read_text("utf-8"))["requirement"]]
    allowed = {"id", "source", "text", "tests", "outside", "later"}
    for entry in entries:
        assert set(entry) <= allowed, f"{entry.get('id')}: unknown keys {set(entry) - allowed}"
    return tuple(
        Requirement(
            one["id"],
            one["source"],
            one["text"],
            tuple(one.get("tests", ())),
            one.get("outside", ""),
            one.get("later", ""),
        )
        for one in entries
    )


def test_functions(path: Path) -> dict[str, tuple[str, ...]]:
    """Test functions of a file -> requirement ids of their marks."""
    return {
        node.name: _marked_ids(node)
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


test_functions.__test__ = False  # type: ignore[attr-defined]


def _marked_ids(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, ...]:
    ids: list[str] = []
    for one in node.decorator_list:
        if isinstance(one, ast.Call) and ast.unparse(one.func) == "pytest.mark.requirement":
            ids.extend(ast.literal_eval(argument) for argument in one.args)
    return tuple(ids)


def all_tests() -> dict[str, tuple[str, ...]]:
    """Every test of the project, ``path::function`` -> requirement ids of its marks."""
    return {
        f"{name_of(path)}::{name}": ids
        for path in python_files("tests")
        if path.name.startswith("test_")
        for name, ids in test_functions(path).items()
    }


def named_places(path: Path) -> str:
    """A file's place for messages."""
    return path.relative_to(ROOT).as_posix()
