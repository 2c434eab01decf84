"""The files of the project, as the architecture tests read them."""

from __future__ import annotations

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "context_gatekeeper"
LEFT_OUT = {
    ".git",
    ".venv",
    ".hypothesis",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    "__pycache__",
    "build",
    "dist",
}


@cache
def project_files() -> tuple[Path, ...]:
    """Files under version control, and new ones that are not ignored; outside of a checkout every file."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not LEFT_OUT & set(path.relative_to(ROOT).parts)]
    return tuple(sorted(path for path in paths if path.is_file()))


def python_files(*folders: str) -> tuple[Path, ...]:
    """Python files below the folders of the project's root."""
    roots = [ROOT / folder for folder in folders]
    return tuple(
        path for path in project_files() if path.suffix == ".py" and any(root in path.parents for root in roots)
    )


@cache
def syntax_tree(path: Path) -> ast.Module:
    """A file's syntax tree, read by the grammar of the oldest Python we promise."""
    return ast.parse(path.read_text("utf-8"), filename=str(path), feature_version=(3, 11))


def name_of(path: Path) -> str:
    """Path from the project's root, with forward slashes."""
    return path.relative_to(ROOT).as_posix()


def module_name(path: Path) -> str:
    """Dotted name of a module of the package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
