"""Every code block of the documents runs as it stands there.

Blocks marked ``python`` and ``bash`` are run, a document from top to bottom in one go; ``sh`` marks
what sets a machine up (``make demo``) and is left to continuous integration.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sybil import Example, Sybil
from sybil.document import Document
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from tests.architecture.tree import ROOT, name_of, project_files

DOCUMENTS = tuple(path for path in project_files() if path.suffix == ".md")


def run_in_shell(example: Example) -> str | None:
    """Run a block with the commands of this environment; its complaint when it fails."""
    tools = str(Path(sys.executable).parent)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", example.parsed],
        env={"PATH": tools + os.pathsep + os.environ["PATH"], "HOME": str(Path.cwd()), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    return None if done.returncode == 0 else f"exit {done.returncode}\n{done.stdout}{done.stderr}"


def parsed(path: Path) -> Document:
    parsers = [PythonCodeBlockParser(), CodeBlockParser("bash", run_in_shell)]
    return Sybil(parsers=parsers, path=str(path.parent), pattern=path.name).parse(path)


WITH_BLOCKS = tuple(path for path in DOCUMENTS if list(parsed(path).examples()))


@pytest.mark.parametrize("path", WITH_BLOCKS, ids=name_of)
def test_every_block_of_a_document_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for example in parsed(path).examples():
        example.evaluate()


def test_the_readme_and_the_guides_are_among_them() -> None:
    names = {name_of(path) for path in WITH_BLOCKS}
    assert {"README.md", "CONTRIBUTING.md", "docs/algorithm.md", "docs/store.md", "docs/tokens.md"} <= names


def test_the_readme_shows_library_and_command_line_and_stays_short() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert "make demo" in text
    assert "make test" in text
    assert "```python" in text
    assert "```bash" in text
    assert len(text.splitlines()) <= 150


def test_a_block_that_fails_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number, block in enumerate(("```python\nassert False\n```\n", "```bash\nfalse\n```\n")):
        path = tmp_path / f"broken{number}.md"
        path.write_text(block, "utf-8")
        with pytest.raises(AssertionError):
            next(iter(parsed(path).examples())).evaluate()
