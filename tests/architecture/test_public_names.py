"""`__all__` is sorted and true both ways."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import context_gatekeeper
from tests.architecture.tree import PACKAGE, module_name, name_of, python_files, syntax_tree

MODULES = tuple(
    path
    for path in python_files("src")
    if path.name != "__main__.py" and "tables" not in path.parts and path.read_text("utf-8").strip()
)


def own_public_names(path: Path) -> set[str]:
    """Functions and classes a module defines; those a decorator registers elsewhere need no export."""
    return {
        node.name
        for node in syntax_tree(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not (isinstance(node, ast.FunctionDef) and any("command" in ast.dump(one) for one in node.decorator_list))
    }


def kind_then_name(name: str) -> tuple[object, ...]:
    """Constants, then classes, then functions; numbers inside names count as numbers (the linter's order)."""
    parts = [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
    return (not name.isupper(), not name[0].isupper(), parts)


def has_statements(path: Path) -> bool:
    """Whether a module is more than a docstring."""
    return any(not isinstance(node, ast.Expr) for node in syntax_tree(path).body)


@pytest.mark.parametrize("path", [path for path in MODULES if has_statements(path)], ids=name_of)
def test_exported_names_are_sorted_and_true(path: Path) -> None:
    module = importlib.import_module(module_name(path))
    exported = list(module.__all__)
    assert exported in (sorted(exported), sorted(exported, key=kind_then_name))
    assert len(exported) == len(set(exported))
    for name in exported:
        assert getattr(module, name, None) is not None, f"{name} is exported and not there"
    assert own_public_names(path) - set(exported) == set()


def test_the_packages_own_names_are_sorted_and_resolve_lazily() -> None:
    assert list(context_gatekeeper.__all__) == sorted(context_gatekeeper.__all__)
    for name in context_gatekeeper.__all__:
        assert getattr(context_gatekeeper, name) is not None
        assert name in dir(context_gatekeeper)


def test_every_lazy_name_is_known_to_type_checkers() -> None:
    declared = {
        alias.asname or alias.name
        for node in ast.walk(syntax_tree(PACKAGE / "__init__.py"))
        if isinstance(node, ast.If)
        for one in node.body
        if isinstance(one, ast.ImportFrom)
        for alias in one.names
    }
    assert declared == set(context_gatekeeper.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        context_gatekeeper.no_such_name  # noqa: B018


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_names_the_documents_fix_are_there() -> None:
    from context_gatekeeper.core import anchor, content_words, sparse, topic_gate

    assert anchor.extract_anchors is context_gatekeeper.extract_anchors
    assert topic_gate.gate_topic is context_gatekeeper.gate_topic
    assert callable(sparse.lex)
    assert topic_gate.OVERLAP_CONTINUE_THRESHOLD == 0.45
    assert isinstance(topic_gate.DEICTIC_PATTERNS, tuple)
    assert content_words.CONTENT_WORD_MIN_LEN == 4
    assert content_words.CONTENT_WORD_PATTERNS
