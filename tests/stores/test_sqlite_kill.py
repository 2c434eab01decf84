"""kill -9: what was acknowledged is there, whole; what was not is there whole or not at all."""

from __future__ import annotations

import random
import subprocess
from hashlib import sha256
from pathlib import Path

from context_gatekeeper.stores.sqlite import SqliteStore
from tests.stores.processes import kill, said, start

KILLS = 20
WRITERS = 4


class Acknowledged:
    """What the writers of each session said is stored."""

    def __init__(self) -> None:
        self.appends: dict[str, list[tuple[int, int, str]]] = {}

    def note(self, session: str, line: str) -> None:
        first, pages, digest = line.split()
        self.appends.setdefault(session, []).append((int(first), int(pages), digest))

    def check(self, path: Path) -> None:
        """Every acknowledged page is there; no session has a torn turn; the index equals a recount."""
        store = SqliteStore(path)
        for session, appends in self.appends.items():
            pages = list(store.scan("pool", session))
            assert len(pages) % 2 == 0
            assert [page.ordinal for page in pages] == list(range(len(pages)))
            for page in pages:
                assert page.text.startswith(f"{session} {page.ordinal} ")
                assert sha256(page.text.encode()).hexdigest() == page.sha256
            for first, total, digest in appends:
                assert pages[first + total - 1].sha256 == digest
            self.check_index(store, session)
        store.close()

    def check_index(self, store: SqliteStore, session: str) -> None:
        recount: dict[str, list[int]] = {}
        for page in store.scan("pool", session):
            for term in page.terms:
                recount.setdefault(term, []).append(page.ordinal)
        index = store.postings("pool", session)
        assert {term: list(index.ordinals(term)) for term in recount} == recount


def test_twenty_kills_lose_no_acknowledged_page(tmp_path: Path) -> None:
    path = tmp_path / "pages.db"
    chance = random.Random(20)
    acknowledged = Acknowledged()

    def started(session: str) -> subprocess.Popen[str]:
        return start("append_forever.py", path, session, chance.randrange(10**6))

    writers = {f"session-{number}": started(f"session-{number}") for number in range(WRITERS)}
    for kill_number in range(KILLS):
        session = f"session-{kill_number % WRITERS}"
        for _ in range(chance.randint(1, 12)):
            acknowledged.note(session, said(writers[session]))
        for line in kill(writers[session]):
            acknowledged.note(session, line)
        acknowledged.check(path)
        writers[session] = started(session)
    for session, writer in writers.items():
        acknowledged.note(session, said(writer))
        for line in kill(writer):
            acknowledged.note(session, line)
    acknowledged.check(path)
    assert len(acknowledged.appends) == WRITERS
