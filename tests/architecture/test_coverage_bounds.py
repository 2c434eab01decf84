"""What `scripts/check_coverage.py` lets pass."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.tree import ROOT

SCRIPT = ROOT / "scripts" / "check_coverage.py"
COVERED: dict[str, Any] = {"missing_lines": [], "missing_branches": [], "summary": {"percent_covered": 100.0}}


def check(folder: Path, files: dict[str, Any], *, overall: float) -> tuple[int, list[str]]:
    """Exit status and lines for a report of these files."""
    report = folder / "report.json"
    listed = {f"src/context_gatekeeper/{name}": entry for name, entry in files.items()}
    report.write_text(json.dumps({"files": listed, "totals": {"percent_covered": overall}}), "utf-8")
    done = subprocess.run([sys.executable, SCRIPT, report], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_what_is_run_as_a_whole_passes(tmp_path: Path) -> None:
    assert check(tmp_path, {"core/text.py": COVERED}, overall=95.0) == (
        0,
        ["coverage: 95.00 % overall, at least 95; inner files with gaps: 0"],
    )


@pytest.mark.parametrize("module", ["core/ledger.py", "engine/pager.py", "stores/rows.py", "wire/format.py"])
@pytest.mark.parametrize("gap", [{"missing_lines": [7]}, {"missing_branches": [[7, 9]]}], ids=["line", "branch"])
def test_one_line_or_branch_that_no_test_runs_fails_in_an_inner_layer(
    tmp_path: Path, module: str, gap: dict[str, Any]
) -> None:
    status, lines = check(tmp_path, {module: {**COVERED, **gap}, "core/text.py": COVERED}, overall=99.9)
    assert status == 1
    assert [line for line in lines if line.startswith("not covered: ")] == lines[:1]
    assert module in lines[0]
    assert "7" in lines[0]


def test_the_outer_layers_may_have_gaps_as_long_as_the_whole_is_held(tmp_path: Path) -> None:
    files = {"evals/qa.py": {**COVERED, "missing_lines": [3], "summary": {"percent_covered": 90.0}}}
    assert check(tmp_path, files, overall=95.0)[0] == 0
    status, lines = check(tmp_path, files, overall=94.99)
    assert status == 1
    assert lines[0] == "low: src/context_gatekeeper/evals/qa.py: 90.0 %"
