"""Every module has its own file of tests (DESIGN.md section 8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.tree import PACKAGE, ROOT, name_of, python_files

LAYERS = ("core", "engine", "stores", "transcripts")
MODULES = tuple(
    path
    for path in python_files("src")
    if path.relative_to(PACKAGE).parts[0] in LAYERS and not path.name.startswith("_") and path.parent.name != "tables"
)
TESTED_TOGETHER = {
    "core/bitsets.py": "core/test_ranking.py",
    "core/page_patterns.py": "core/test_ranking.py",
    "core/token_rows.py": "core/test_tokens.py",
    "stores/drafts.py": "conformance/test_appends.py",
    "stores/memory.py": "conformance/test_appends.py",
    "stores/names.py": "conformance/test_sessions.py",
    "stores/rows.py": "conformance/test_reads.py",
    "stores/sqlite.py": "conformance/test_appends.py",
    "stores/sqlite_statements.py": "conformance/test_appends.py",
    "transcripts/conversation.py": "transcripts/test_reader.py",
}
"""Modules that are one promise with another, or are held by the suite that every store passes, by the tests of the
documents' lines, or by the chats of a hundred rounds."""


@pytest.mark.requirement("R-D8-test-per-module")
@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_has_its_tests(path: Path) -> None:
    place = path.relative_to(PACKAGE)
    own = ROOT / "tests" / place.parent / f"test_{place.stem}.py"
    instead = TESTED_TOGETHER.get(place.as_posix())
    assert own.is_file() or (instead and (ROOT / "tests" / instead).is_file())
