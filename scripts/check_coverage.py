"""Hold coverage to its two bounds: every branch of the inner layers, 95 % of everything.

    coverage json && python scripts/check_coverage.py .coverage_report.json

Prints what is missing and ends with 1 when a bound is not held.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

WHOLE_LAYERS = ("core", "engine", "stores", "wire")
"""Layers in which every line and branch is run by a test."""
OVERALL_LEAST = 95.0
"""Per cent of lines and branches of the whole package."""
PACKAGE = "src/context_gatekeeper/"


def layer_of(path: str) -> str:
    """First folder or module below the package."""
    return path.replace("\\", "/").partition(PACKAGE)[2].partition("/")[0]


def missing_rows(files: dict[str, Any]) -> list[str]:
    """One row for each file of the inner layers that is not run as a whole."""
    rows = []
    for path, report in sorted(files.items()):
        lines = report["missing_lines"]
        branches = report["missing_branches"]
        if layer_of(path) in WHOLE_LAYERS and (lines or branches):
            rows.append(f"{path}: lines {lines}, branches {[f'{start}->{stop}' for start, stop in branches]}")
    return rows


def main(report_path: str) -> int:
    """Check one JSON report; returns the exit status."""
    report = json.loads(Path(report_path).read_text("utf-8"))
    rows = missing_rows(report["files"])
    overall = report["totals"]["percent_covered"]
    for row in rows:
        print(f"not covered: {row}")
    if overall < OVERALL_LEAST:
        for path, entry in sorted(report["files"].items(), key=lambda item: item[1]["summary"]["percent_covered"])[:10]:
            print(f"low: {path}: {entry['summary']['percent_covered']:.1f} %")
    print(f"coverage: {overall:.2f} % overall, at least {OVERALL_LEAST:g}; inner files with gaps: {len(rows)}")
    return int(bool(rows) or overall < OVERALL_LEAST)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ".coverage_report.json"))
