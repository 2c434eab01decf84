"""kill -9: what was acknowledged is there, whole; what was not is there whole or not at all."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from time import perf_counter

import pytest

from context_gatekeeper.stores.sqlite import SqliteStore
from tests.conformance.samples import turn
from tests.stores.processes import finish, kill, said, start, tell

WRITERS = 4
PAGE_BYTES = 4096
KILLS_PER_SESSION = 5
"""After so many kills a writer begins a new session, so that reading all of it stays quick in the long form."""


class Acknowledged:
    """What the writers of each session said is stored."""

    def __init__(self) -> None:
        self.appends: dict[str, list[tuple[int, int, str]]] = {}
        self.slowest_opening_seconds = 0.0

    def note(self, session: str, line: str) -> None:
        first, pages, digest = line.split()
        self.appends.setdefault(session, []).append((int(first), int(pages), digest))

    def check(self, path: Path, session: str) -> None:
        """Every acknowledged page is there; no turn is torn; the index equals a recount."""
        begun = perf_counter()
        store = SqliteStore(path)
        self.slowest_opening_seconds = max(self.slowest_opening_seconds, perf_counter() - begun)
        pages = list(store.scan("pool", session))
        assert len(pages) % 2 == 0
        assert [page.ordinal for page in pages] == list(range(len(pages)))
        for page in pages:
            assert page.text.startswith(f"{session} {page.ordinal} ")
            assert sha256(page.text.encode()).hexdigest() == page.sha256
        for first, total, digest in self.appends[session]:
            assert pages[first + total - 1].sha256 == digest
        self.check_index(store, session)
        store.close()

    def check_index(self, store: SqliteStore, session: str) -> None:
        recount: dict[str, list[int]] = {}
        scanned = 0
        for page in store.scan("pool", session):
            scanned += 1
            for term in page.terms:
                recount.setdefault(term, []).append(page.ordinal)
        index = store.postings("pool", session)  # may know pages that came in after the scan
        indexed = {term: [ordinal for ordinal in index.ordinals(term) if ordinal < scanned] for term in recount}
        assert indexed == recount


def test_kills_lose_no_acknowledged_page(
    tmp_path: Path, pytestconfig: pytest.Config, record_property: Callable[[str, object], None]
) -> None:
    kills = pytestconfig.getoption("--kills")
    path = tmp_path / "pages.db"
    chance = random.Random(20)
    acknowledged = Acknowledged()

    def started(session: str) -> subprocess.Popen[str]:
        return start("append_on_demand.py", path, session, chance.randrange(10**6))

    sessions = [f"writer {number} from kill 0" for number in range(WRITERS)]
    writers = [started(session) for session in sessions]
    for kill_number in range(kills):
        victim = kill_number % WRITERS
        for number, writer in enumerate(writers):
            tell(writer, "append\n" * (40 if number == victim else 8))
        for _ in range(chance.randint(1, 12)):
            acknowledged.note(sessions[victim], said(writers[victim]))
        for line in kill(writers[victim]):
            acknowledged.note(sessions[victim], line)
        acknowledged.check(path, sessions[victim])
        if (kill_number // WRITERS + 1) % KILLS_PER_SESSION == 0:
            sessions[victim] = f"writer {victim} from kill {kill_number + 1}"
        writers[victim] = started(sessions[victim])
    for session, writer in zip(sessions, writers, strict=True):
        for line in finish(writer).splitlines():
            acknowledged.note(session, line)
    for session in acknowledged.appends:
        acknowledged.check(path, session)
    assert len(acknowledged.appends) >= WRITERS
    appends = [pages for session in acknowledged.appends.values() for _, pages, _ in session]
    record_property(
        "kill -9",
        f"{kills} kills among {WRITERS} writers; {len(appends)} appends of {sum(appends)} pages acknowledged, 0 lost, "
        f"0 torn, index equal to a recount; slowest opening {acknowledged.slowest_opening_seconds:.2f} s",
    )


def test_a_file_left_in_the_middle_of_taking_in_its_log_opens(tmp_path: Path) -> None:
    """Its first page, which a checkpoint writes first, already tells of pages that are only in the log."""
    path, left = tmp_path / "pages.db", tmp_path / "left.db"
    SqliteStore(path).close()
    store = SqliteStore(path)
    pages = [page for number in range(40) for page in store.append("p", "s", turn(number, f"ask {number} " * 99))]
    log = Path(f"{path}-wal").read_bytes()
    frames = [log[start : start + 24 + PAGE_BYTES] for start in range(32, len(log), 24 + PAGE_BYTES)]
    first_page = next(frame[24:] for frame in reversed(frames) if frame[:4] == b"\0\0\0\1")
    left.write_bytes(first_page + path.read_bytes()[PAGE_BYTES:])
    Path(f"{left}-wal").write_bytes(log)
    store.close()
    assert int.from_bytes(first_page[28:32], "big") * PAGE_BYTES > left.stat().st_size
    reopened = SqliteStore(left)
    assert list(reopened.scan("p", "s")) == pages
    reopened.close()
