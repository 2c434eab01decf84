"""kill -9: what was acknowledged is there, whole; what was not is there whole or not at all."""

from __future__ import annotations

import random
import subprocess
from hashlib import sha256
from pathlib import Path

from context_gatekeeper.stores.sqlite import SqliteStore
from tests.conformance.samples import turn
from tests.stores.processes import finish, kill, said, start, tell

KILLS = 20
WRITERS = 4
PAGE_BYTES = 4096


class Acknowledged:
    """What the writers of each session said is stored."""

    def __init__(self) -> None:
        self.appends: dict[str, list[tuple[int, int, str]]] = {}

    def note(self, session: str, line: str) -> None:
        first, pages, digest = line.split()
        self.appends.setdefault(session, []).append((int(first), int(pages), digest))

    def check(self, path: Path, session: str) -> None:
        """Every acknowledged page is there; no turn is torn; the index equals a recount."""
        store = SqliteStore(path)
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


def test_twenty_kills_lose_no_acknowledged_page(tmp_path: Path) -> None:
    path = tmp_path / "pages.db"
    chance = random.Random(20)
    acknowledged = Acknowledged()

    def started(session: str) -> subprocess.Popen[str]:
        return start("append_on_demand.py", path, session, chance.randrange(10**6))

    writers = {f"session-{number}": started(f"session-{number}") for number in range(WRITERS)}
    for kill_number in range(KILLS):
        victim = f"session-{kill_number % WRITERS}"
        for session, writer in writers.items():
            tell(writer, "append\n" * (40 if session == victim else 8))
        for _ in range(chance.randint(1, 12)):
            acknowledged.note(victim, said(writers[victim]))
        for line in kill(writers[victim]):
            acknowledged.note(victim, line)
        acknowledged.check(path, victim)
        writers[victim] = started(victim)
    for session, writer in writers.items():
        for line in finish(writer).splitlines():
            acknowledged.note(session, line)
        acknowledged.check(path, session)
    assert len(acknowledged.appends) == WRITERS


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
