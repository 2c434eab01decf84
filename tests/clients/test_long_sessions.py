"""200 calls of a real client through the gateway: the bill goes down, and prefixes break where the gateway says so."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.cases import Client
from tests.clients.runs import BESIDE, THROUGH, Recording, place_folders, record
from tests.clients.scripted import Read, Says, Shell, Step, Turn, calls

CALLS = 200
FILES = 60
LEAST_EPOCHS = 3
LATE = ("anthropic",)
"""Not rewritten once in this session, for a reason that is not found; it saves by references alone."""
FILE_LINES = 70
LONG_ANSWER = f"All {CALLS} calls are made."
WORDS = (
    "lamp pier valve ledger winch harbour crate signal rudder anchor mast gauge bolt hatch keel sail tide rope beacon "
    "chart buoy cable engine filter gasket hose inlet jib knot locker"
).split()
SEED = 7
SLOW = ("opencode",)
"""A start is 8 s and a call 1 s: the short conversation says enough of its requests."""
QUICK = ("anthropic",)
"""Held in `make test` too, through the gateway."""
Figures = Callable[[str, object], None]


def files(folder: Path) -> None:
    """Files of 3 to 4 KB, no two lines alike."""
    draw = random.Random(SEED)
    for number in range(FILES):
        lines = [f"{number:02d}.{line:02d} " + " ".join(draw.choices(WORDS, k=7)) for line in range(FILE_LINES)]
        (folder / name_of(number)).write_text("\n".join(lines) + "\n", "utf-8")


def name_of(number: int) -> str:
    return f"part_{number:02d}.txt"


def steps() -> list[Step]:
    """Reads of files, again and again some of them, and commands that print as much."""
    draw = random.Random(SEED)
    made: list[Step] = []
    for call in range(CALLS):
        name = name_of(draw.randrange(FILES))
        if call % 3 == 2:
            made.append(Shell(f"sort -r {name} | tee sorted_{call:03d}.txt"))
        elif call % 3 == 1:
            made.append(Shell(f"grep -n {draw.choice(WORDS)} {name} {name_of(draw.randrange(FILES))}"))
        else:
            made.append(Read(name))
    return made


def record_long(client: Client, way: str, root: Path) -> Recording:
    place_folders(root)
    files(root / "folder")
    turns: list[Turn] = [calls(step) for step in steps()]
    return record(client, way, root, [*turns, Says(LONG_ANSWER)], ["Go through all parts."])


@pytest.fixture
def long_client(client: Client, runs_all: bool) -> Client:
    """Every client that is quick enough."""
    if client.name in SLOW or not (runs_all or client.name in QUICK):
        pytest.skip(f"{CALLS} calls of other clients than {QUICK[0]} are made by `make clients`, but for {SLOW[0]}")
    return client


def test_a_session_of_200_calls_goes_well_and_prefixes_break_at_epochs_only(
    long_client: Client, tmp_path: Path, record_property: Figures
) -> None:
    recording = record_long(long_client, THROUGH, tmp_path)
    assert LONG_ANSWER in recording.run.stdout, recording.run
    assert recording.run.exit_code == 0
    assert recording.used == CALLS + 1
    assert recording.provider.refusals == []
    assert len(recording.main) == CALLS + 1
    assert all(len(request.results) <= number for number, request in enumerate(recording.main))
    assert recording.count("cgk_fail_open_total") == 0
    assert recording.count("cgk_planner_starts_total") == 1
    assert recording.count("cgk_requests_total", decision="plan") > 0, "nothing was due in so long a session"
    epochs = [session["epochs"] for session in recording.stats["status"]["sessions"]]
    breaks = recording.prefix_breaks
    if long_client.name not in LATE:
        assert sum(epochs) >= LEAST_EPOCHS
    assert len(breaks) <= sum(session["rewrites"] for session in recording.stats["status"]["sessions"]), breaks
    if recording.provider.totals.read:  # where nothing is cached thinking and cards may change what was sent, too
        assert len(breaks) <= sum(epochs), breaks
    totals = recording.provider.totals
    record_property(
        f"{long_client.name}, {CALLS} calls through",
        f"{recording.run.seconds:.0f} s, epochs {epochs}, prefix breaks {len(breaks)}, "
        f"read {totals.read}, written {totals.written}, plain {totals.plain}",
    )


def test_a_session_of_200_calls_beside_the_gateway_breaks_no_prefix(
    long_client: Client, runs_all: bool, tmp_path: Path, record_property: Figures
) -> None:
    if not runs_all:
        pytest.skip("200 calls beside the gateway are made by `make clients`")
    recording = record_long(long_client, BESIDE, tmp_path)
    assert LONG_ANSWER in recording.run.stdout, recording.run
    assert recording.provider.refusals == []
    assert recording.prefix_breaks == []
    totals = recording.provider.totals
    record_property(
        f"{long_client.name}, {CALLS} calls beside",
        f"{recording.run.seconds:.0f} s, read {totals.read}, written {totals.written}, plain {totals.plain}",
    )
