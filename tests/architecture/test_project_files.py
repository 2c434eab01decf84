"""What may stand in the project's files."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.tree import PACKAGE, ROOT, name_of, project_files, python_files, syntax_tree

BINARY = {".gz", ".png", ".db", ".sqlite", ".bin", ".zip"}
TEXTS = tuple(path for path in project_files() if path.suffix not in BINARY)
# Written in pieces, so that this file does not hold what it looks for.
MACHINE_PATH = re.compile(
    r"(?<![\w.])/(?:"
    + "|".join(["wo" + "rk", "fa" + "rm", "roo" + "t", "home/[a-z]", "Us" + "ers/[A-Za-z]", "opt/py"])
    + r")[/\w]"
)
REGISTRY_HOST = re.compile(
    "|".join([r"py" + r"pi\.org", r"python" + r"hosted\.org", r"registry\." + r"npmjs", r"--index" + r"-url"])
)
EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf\u2b50\u2b55]")
LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\((?!https?:|mailto:)(?P<target>[^)\s]+)\)")
DOCUMENTS = tuple(path for path in project_files() if path.suffix == ".md")


def read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


def found_in(pattern: re.Pattern[str], paths: tuple[Path, ...]) -> list[str]:
    return [f"{name_of(path)}: {match.group()}" for path in paths for match in pattern.finditer(read(path))]


def test_no_file_names_a_path_of_a_machine() -> None:
    assert found_in(MACHINE_PATH, TEXTS) == []


def test_no_file_names_a_package_registry() -> None:
    assert found_in(REGISTRY_HOST, TEXTS) == []


def test_the_patterns_find_what_they_forbid() -> None:
    assert MACHINE_PATH.search("see /wo" + "rk/shared")
    assert MACHINE_PATH.search("open('/home/" + "ann/x')")
    assert REGISTRY_HOST.search("https://py" + "pi.org/simple")
    assert EMOJI.search("\U0001f680")


def test_code_and_documents_hold_no_emoji() -> None:
    shown = tuple(path for path in TEXTS if path.suffix in {".md", ".py", ".toml"} and "tests" not in path.parts)
    assert found_in(EMOJI, shown) == []


def heading_ids(text: str) -> set[str]:
    """Anchors that a Markdown renderer gives to the headings."""
    ids = set()
    for line in re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines():
        if line.startswith("#"):
            title = line.lstrip("#").strip().lower().replace("`", "")
            ids.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
    return ids


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_link_of_a_document_leads_somewhere(path: Path) -> None:
    broken = []
    for match in LINK.finditer(read(path)):
        target, _, part = match["target"].partition("#")
        other = (path.parent / target).resolve() if target else path
        if not other.exists() or (part and other.suffix == ".md" and part not in heading_ids(read(other))):
            broken.append(match["target"])
    assert broken == []


@pytest.mark.parametrize("path", python_files("src", "tests", "benchmarks", "scripts", "examples"), ids=name_of)
def test_a_file_is_python_3_11(path: Path) -> None:
    assert isinstance(syntax_tree(path), ast.Module)


def test_newer_syntax_would_be_refused() -> None:
    with pytest.raises(SyntaxError):
        ast.parse("type Weight = float\n", feature_version=(3, 11))


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        name_of(path)
        for path in python_files("src", "benchmarks", "scripts")
        if path.read_text("utf-8").strip() and not ast.get_docstring(syntax_tree(path))
    ]
    assert silent == []


@pytest.mark.requirement("R-S6-env-ignored")
def test_the_file_with_keys_is_ignored_by_git() -> None:
    assert ".env" in (ROOT / ".gitignore").read_text("utf-8").splitlines()
    tracked = subprocess.run(["git", "ls-files", ".env"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert tracked.stdout == ""
    assert (ROOT / ".env.example").is_file()


def test_the_licence_goes_with_the_package() -> None:
    text = read(ROOT / "LICENSE")
    assert "Apache License" in text
    assert "Version 2.0" in text
    assert 'license = "Apache-2.0"' in read(ROOT / "pyproject.toml")


def test_every_source_named_in_the_notice_has_its_licence_text() -> None:
    kept = {path.stem for path in (ROOT / "licences").iterdir()}
    assert {"jieba", "opencc", "symspellpy"} <= kept
    assert not [path for path in (ROOT / "licences").iterdir() if len(read(path)) < 400]


def test_the_catch_all_except_is_kept_out_of_the_package() -> None:
    # An observer of the event feed and a test's script are other people's code; the gateway and the agent's server go
    # on whatever breaks in us. Each handler says so beside it.
    allowed = {
        "engine/events.py",
        "entrypoints/gateway/decide.py",
        "entrypoints/gateway/recall_route.py",
        "entrypoints/gateway/relay.py",
        "entrypoints/mcp/server.py",
        "gateway/archive.py",
        "gateway/worker.py",
        "testing/faults.py",
        "testing/service.py",
    }
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in python_files("src")
        if not any(str(path).endswith(name) for name in allowed)
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "Exception"))
    ]
    assert found == []


def test_the_module_names_of_the_documents_are_kept() -> None:
    for name in ("anchor", "topic_gate", "sparse", "selector"):
        assert (PACKAGE / "core" / f"{name}.py").is_file()


def commands_of(target: str) -> list[str]:
    """What ``make`` would run for a target, setting up left out."""
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target],
        cwd=ROOT,
        env=surroundings,
        capture_output=True,
        text=True,
        check=True,
    )
    return re.findall(r"^\S+/bin/(?:python +(?:-m )?)?(.+)$", done.stdout, re.MULTILINE)


def test_continuous_integration_calls_what_a_person_calls() -> None:
    script = read(ROOT / ".ci" / "run")
    assert "set -euo pipefail" in script
    assert script.rstrip().splitlines()[-1] == "make --keep-going check"
    assert ".ci/run" in read(ROOT / ".gitea" / "workflows" / "test.yml")


def test_the_check_runs_every_test_once_under_coverage_and_holds_its_bounds_at_the_end() -> None:
    commands = commands_of("check")
    runs = [command.split() for command in commands if "pytest" in command]
    assert all(run[:4] == ["coverage", "run", "-m", "pytest"] for run in runs)
    rest, apart = sorted(runs, key=lambda run: "tests" not in run)
    assert "tests" in rest
    assert [f"--ignore={folder}" for folder in apart[4:]] == [word for word in rest[4:] if word != "tests"]
    assert all((ROOT / folder).is_dir() for folder in apart[4:])
    assert commands[-3:] == [
        "coverage combine --quiet",
        "coverage json --quiet",
        "scripts/check_coverage.py .coverage_report.json",
    ]
    checked = " ".join(commands)
    assert [
        name
        for name in ("ruff format", "ruff check", "mypy", "lint-imports", "codespell", "cogapp --check")
        if name not in checked
    ] == []


def test_the_tests_alone_run_without_coverage() -> None:
    assert commands_of("test")[-1] == "pytest"
