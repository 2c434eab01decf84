"""The script that fits the citation tables, run on a few sessions as a process of its own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zlib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from context_gatekeeper.engine.citation import SLICE_TABLE_SIZE, UNIT_TABLE_SIZE
from context_gatekeeper.types import BlockKind
from tests.engine.coding import coding_session

ROOT = Path(__file__).parents[2]
SCRIPT = Path("scripts/fit_citation.py")
TABLES = Path("src/context_gatekeeper/core/tables/citation_rows.py")
SIZES = {"LINE": SLICE_TABLE_SIZE, "NAME": SLICE_TABLE_SIZE, "UNIT": UNIT_TABLE_SIZE}
AREA = re.compile(r"(?m)^(\w+): (\d+) rows, area (\d\.\d{4}) on the half it is fitted to, (\d\.\d{4}) on the other$")
WEIGHTS = re.compile(r"(?m)^(\w+)_WEIGHTS = \((.*)\)$")


@pytest.fixture(scope="module", autouse=True)
def numpy() -> None:
    try:
        distribution("numpy")
    except PackageNotFoundError:
        pytest.skip("numpy is not installed: the tables cannot be fitted")


def session_row(name: str, calls: int) -> str:
    """One session as a line of a file of sessions."""
    messages: list[dict[str, object]] = []
    for message in coding_session(calls).messages:
        row: dict[str, object] = {"role": message.role.value}
        for block in message.blocks:
            if block.kind is BlockKind.TOOL_CALL:
                called = {"name": block.name, "arguments": block.text}
                row["tool_calls"] = [{"id": block.call_id, "type": "function", "function": called}]
            else:
                row["content"] = block.text
            if block.kind is BlockKind.TOOL_RESULT:
                row["tool_call_id"] = block.call_id
        if message.is_call:
            row["call_id"] = f"c{len(messages)}"
        messages.append(row)
    return json.dumps({"id": name, "source": "made for the tests", "messages": messages})


def run_copy(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The script run from a copy of its place, so that it writes into a copy of the tables."""
    for path in (SCRIPT, TABLES):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    names = [f"made/{number}" for number in range(8)]
    assert {zlib.crc32(name.encode()) & 1 for name in names} == {0, 1}
    rows = [session_row(name, 32 + 2 * number) for number, name in enumerate(names)]
    (folder / "sessions.jsonl").write_text("\n".join([*rows, session_row("short", 4)]), "utf-8")
    command = [sys.executable, str(folder / SCRIPT), str(folder / "sessions.jsonl"), *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished


def test_the_tables_are_written_with_a_weight_for_every_row_and_are_python(tmp_path: Path) -> None:
    shown = run_copy(tmp_path, "--write").stdout
    areas = {name: (float(seen), float(unseen)) for name, _, seen, unseen in AREA.findall(shown)}
    assert areas.keys() == SIZES.keys()
    assert all(0.5 < area <= 1 for pair in areas.values() for area in pair), areas
    written = (tmp_path / TABLES).read_text("utf-8")
    assert {name: len(weights.split(", ")) for name, weights in WEIGHTS.findall(written)} == SIZES
    found: dict[str, object] = {}
    exec(compile(written, "rows", "exec"), found)  # as an import of it would
    shipped = (ROOT / TABLES).read_text("utf-8")
    assert found["__all__"] == re.findall(r'"([A-Z_]+)"', shipped.partition("__all__ = ")[2].partition("]")[0])
    assert written.partition("LINE_BASE =")[0] == shipped.partition("LINE_BASE =")[0]


def test_without_the_flag_the_tables_are_printed_and_nothing_is_written(tmp_path: Path) -> None:
    shown = run_copy(tmp_path, "--half", "1").stdout
    assert {name for name, _ in WEIGHTS.findall(shown)} == SIZES.keys()
    assert (tmp_path / TABLES).read_bytes() == (ROOT / TABLES).read_bytes()
