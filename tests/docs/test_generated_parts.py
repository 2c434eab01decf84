"""Parts of the documents that are printed from the code are up to date."""

from __future__ import annotations

import subprocess
import sys

from tests.architecture.tree import ROOT


def test_what_is_printed_from_the_code_is_what_the_code_prints() -> None:
    documents = [str(path) for path in sorted((ROOT / "docs").glob("*.md"))]
    done = subprocess.run(
        [sys.executable, "-m", "cogapp", "--check", "--diff", "-P", *documents],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_command_has_its_section() -> None:
    from context_gatekeeper.entrypoints.cli.app import cgk

    text = (ROOT / "docs" / "cli.md").read_text("utf-8")
    assert cgk.commands
    assert [name for name in cgk.commands if f"## cgk {name}\n" not in text] == []
