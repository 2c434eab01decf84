"""The script that fits the gate's tables, run on a small folder as a process of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from context_gatekeeper.core.topic_gate import GateParams, LeavingParams
from context_gatekeeper.evals.fixtures import DEFAULT_FOLLOWUPS
from tests.evals.samples import SAMPLES

ROOT = Path(__file__).parents[2]
SCRIPT = Path("scripts/fit_gate.py")
GATE = Path("src/context_gatekeeper/core/topic_gate.py")
TABLES = (GateParams, LeavingParams)
ROW = re.compile(r"^    (\w+): float = (-?\d+\.\d\d)$", re.MULTILINE)


@dataclass(frozen=True)
class Fitted:
    """What one run left behind."""

    folder: Path
    shown: str
    notes: str

    def part(self, table: type) -> str:
        """What was printed of one table."""
        return re.split(r"^(?:GateParams|LeavingParams)$", self.shown, flags=re.MULTILINE)[1 + TABLES.index(table)]

    def turns(self, table: type) -> Mapping[str, int]:
        """Judged turns by set, as the table of figures counts them."""
        return {name: int(count) for name, count in re.findall(r"(?m)^(\w+) +(\d+) +[01]\.", self.part(table))}


def run_copy(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The script run from a copy of its place, so that it writes into a copy of the gate."""
    for path in (SCRIPT, GATE):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    command = [sys.executable, str(folder / SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False)


@pytest.fixture(scope="module", autouse=True)
def numpy() -> None:
    try:
        distribution("numpy")
    except PackageNotFoundError:
        pytest.skip("numpy is not installed: the tables cannot be fitted")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    folder = tmp_path_factory.mktemp("fit")
    for name in ("shift", "frames"):
        (folder / name).mkdir()
    shutil.copy(SAMPLES / "shift_roles.jsonl", folder / "shift" / "tiage_en.jsonl")
    shutil.copy(DEFAULT_FOLLOWUPS, folder / "frames" / "followups.jsonl")
    finished = run_copy(folder, str(folder), "--write")
    assert finished.returncode == 0, finished.stderr
    return Fitted(folder, finished.stdout, finished.stderr)


@pytest.mark.parametrize("table", TABLES)
def test_each_table_is_printed_with_its_rows_as_they_stand_in_the_source(fitted: Fitted, table: type) -> None:
    assert [name for name, _ in ROW.findall(fitted.part(table))] == [row.name for row in fields(table)]


@pytest.mark.parametrize("table", TABLES)
def test_what_is_printed_is_written_into_its_table_and_nothing_else_changes(fitted: Fitted, table: type) -> None:
    before, after = ((root / GATE).read_text("utf-8") for root in (ROOT, fitted.folder))
    written = after.partition(f"class {table.__name__}:\n")[2].partition("\n\n\n")[0]
    assert ROW.findall(written) == ROW.findall(fitted.part(table))
    assert ROW.sub(r"    \1", after) == ROW.sub(r"    \1", before)
    assert ROW.findall(after) != ROW.findall(before)


def test_a_set_whose_files_are_missing_is_named_with_them(fitted: Fitted) -> None:
    notes = fitted.notes.splitlines()
    assert "kdconv is left out: no shift/kdconv_zh.jsonl" in notes
    assert "realmem_timed is left out: no shift/realmem_switch_en.jsonl, qa/realmem_en.jsonl" in notes
    left_out = {note.partition(" ")[0] for note in notes}
    assert not left_out & {"tiage", "tiage_chains", "followups", "seed_burst"}
    assert not left_out & fitted.turns(GateParams).keys()


def test_a_table_is_judged_by_the_sets_that_it_learns_from(fitted: Fitted) -> None:
    gate, leaving = fitted.turns(GateParams), fitted.turns(LeavingParams)
    assert gate.keys() - leaving.keys() == {"tiage"}, "labels of subjects tell nothing of leaving"
    assert leaving.keys() < gate.keys()
    assert gate["followups"] == leaving["followups"] == len(DEFAULT_FOLLOWUPS.read_text("utf-8").splitlines())


def test_a_new_subject_inside_a_chained_dialogue_is_judged_as_no_leaving_and_not_by_the_gate(fitted: Fitted) -> None:
    told = (SAMPLES / "shift_roles.jsonl").read_text("utf-8").count('"shift": 1')
    assert fitted.turns(LeavingParams)["tiage_chains"] - fitted.turns(GateParams)["tiage_chains"] == told == 2


def test_a_folder_without_any_set_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    finished = run_copy(tmp_path, str(tmp_path), "--write")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr.rstrip().endswith(f"{tmp_path} holds none of the sets")
    assert (tmp_path / GATE).read_bytes() == (ROOT / GATE).read_bytes()
