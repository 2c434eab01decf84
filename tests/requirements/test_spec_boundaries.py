"""DESIGN.md 2, 6 and 9, SPEC.md 1 and 6: names, module borders, what the product never needs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import requires
from inspect import signature

import pytest

from context_gatekeeper import ContextGatekeeper
from context_gatekeeper.core import profiles, selector
from tests.architecture.tree import PACKAGE, ROOT, name_of, python_files, syntax_tree

MODEL_PACKAGES = {"torch", "transformers", "sentence-transformers", "onnxruntime", "openai", "tensorflow", "faiss-cpu"}


def assigned_names(path_names: tuple[str, ...]) -> set[str]:
    found = set()
    for path in python_files(*path_names):
        for node in ast.walk(syntax_tree(path)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
    return found


@pytest.mark.requirement("R-D2-names-carry-meaning")
def test_no_value_is_called_val_tmp_or_data() -> None:
    names = assigned_names(("src/context_gatekeeper/core", "src/context_gatekeeper/engine"))
    assert {"anchor", "turn_id", "query"} & names
    assert {"val", "tmp", "data", "score"} & names == set()


@pytest.mark.requirement("R-D2-function-names", "R-D2-module-names")
def test_functions_and_modules_are_named_as_the_document_names_them() -> None:
    defined = {
        name: {
            node.name for node in syntax_tree(PACKAGE / "core" / f"{name}.py").body if isinstance(node, ast.FunctionDef)
        }
        for name in ("anchor", "topic_gate", "sparse", "selector")
    }
    assert "extract_anchors" in defined["anchor"]
    assert "gate_topic" in defined["topic_gate"]
    assert "lex" in defined["sparse"]
    assert "select_blocks" in defined["selector"]


@pytest.mark.requirement("R-D6-anchor-does-not-gate")
def test_the_anchor_module_knows_nothing_of_topics() -> None:
    tree = syntax_tree(PACKAGE / "core" / "anchor.py")
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [module for module in imported if module and ("topic" in module or "query_form" in module)]
    assert not [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and "topic" in node.name]


@pytest.mark.requirement("R-D6-alpha-fixed")
def test_no_profile_and_no_argument_can_change_alpha() -> None:
    assert "alpha" not in " ".join(signature(selector.SelectParams).parameters).lower()
    assert "alpha" not in " ".join(signature(profiles.SelectionProfile).parameters).lower()
    assert "alpha" not in " ".join(signature(selector.select_blocks).parameters).lower()
    assert "alpha" not in " ".join(signature(ContextGatekeeper).parameters).lower()


@pytest.mark.requirement("R-D6-no-hard-coded-colour")
def test_colours_are_painted_in_one_module_of_the_command_line_and_in_one_of_the_page() -> None:
    # Two places, since a terminal takes escape sequences and a page a style sheet: that of the replay is one file by
    # itself, so that its colours have to stand in the package, with darker ones for a light ground.
    paints = re.compile(r"click\.s(?:tyle|echo)\(|\\x1b\[|\\033\[|#[0-9A-Fa-f]{6}\b")
    coloured = [name_of(path) for path in python_files("src") if paints.search(path.read_text("utf-8"))]
    assert coloured == [
        "src/context_gatekeeper/entrypoints/cli/terminal.py",
        "src/context_gatekeeper/replay/page_style.py",
    ]


@pytest.mark.requirement("R-D3-palette")
def test_the_palette_has_the_documents_six_colours() -> None:
    from context_gatekeeper.entrypoints.cli.terminal import Tint

    assert {tint.name: f"#{''.join(f'{part:02X}' for part in tint.value)}" for tint in Tint} == {
        "NORMAL": "#FFFFFF",
        "HIGHLIGHT": "#5EEAD4",
        "WARN": "#FBBF24",
        "ERROR": "#F87171",
        "DEBUG": "#6B7280",
        "ACCENT": "#A78BFA",
    }


@pytest.mark.requirement("R-D6-new-modules-outside")
def test_further_modules_such_as_benchmarks_live_beside_the_package() -> None:
    assert (ROOT / "benchmarks" / "__main__.py").is_file()
    imported = {
        node.module
        for path in python_files("src")
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    assert not [module for module in imported if module.partition(".")[0] == "benchmarks"]


@pytest.mark.requirement("R-D9-threshold-place")
def test_the_overlap_threshold_is_one_constant_of_the_gate() -> None:
    assigned = [
        name_of(path)
        for path in python_files("src")
        for node in syntax_tree(path).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "OVERLAP_CONTINUE_THRESHOLD"
    ]
    assert assigned == ["src/context_gatekeeper/core/topic_gate.py"]


@pytest.mark.requirement("R-D9-budget-place")
def test_the_100_round_test_has_its_budget_in_one_constant() -> None:
    tree = syntax_tree(ROOT / "tests" / "test_100rounds_v2.py")
    assert "BUDGET" in {ast.unparse(node.targets[0]) for node in tree.body if isinstance(node, ast.Assign)}


@pytest.mark.requirement("R-S1-no-model", "R-S6-no-model", "R-D6-no-embedding")
def test_no_install_of_ours_pulls_a_model() -> None:
    # `dev` holds a provider's client: tests send its requests through the gateway.
    lines = [line for line in requires("context-gatekeeper") or () if "extra == 'dev'" not in line.replace('"', "'")]
    asked = {re.split(r"[^\w.-]", line, maxsplit=1)[0].lower() for line in lines}
    assert asked
    assert asked & MODEL_PACKAGES == set()


@pytest.mark.requirement("R-S1-two-cores-2g", "R-S6-two-cores-2g")
def test_two_thousand_turns_fit_a_process_of_one_gigabyte() -> None:
    """Half of the promised memory, address space and all, on one core."""
    code = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from context_gatekeeper import ContextGatekeeper
gatekeeper = ContextGatekeeper()
for number in range(2000):
    gatekeeper.add_turn(f"question {number} about topic{number % 7} 分布式锁{number % 11}", f"answer {number} " * 5)
assert gatekeeper.turn_count == 2000
assert gatekeeper.select("topic3 分布式锁5 question 1203")
print("fits")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("fits\n", 0), done.stderr
