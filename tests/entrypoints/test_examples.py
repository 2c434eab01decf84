"""The shipped examples run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from context_gatekeeper.config import load_config, read_env_file
from tests.entrypoints.running import ROOT, environment


def test_the_quickstart_recalls_the_lock_and_not_the_bread(tmp_path: Path) -> None:
    shown = subprocess.run(
        [sys.executable, ROOT / "examples" / "quickstart.py"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "turn 1: " in shown
    assert "topic known" in shown
    assert "Every 3 seconds" in shown
    assert "sourdough" not in shown


def test_the_example_env_file_is_read_and_sets_nothing_yet(tmp_path: Path) -> None:
    example = (ROOT / ".env.example").read_text("utf-8")
    assert set(read_env_file(ROOT / ".env.example").values()) == {""}
    # Every suggestion in it is a setting that exists.
    uncommented = "\n".join(line.removeprefix("# ") if "=" in line else "" for line in example.splitlines())
    (tmp_path / ".env").write_text(uncommented)
    config = load_config(environ={}, folder=tmp_path)
    assert (config.budget, config.profile) == (4000, "strict")


def test_env_files_are_kept_out_of_the_repository() -> None:
    assert ".env" in (ROOT / ".gitignore").read_text("utf-8").splitlines()
