"""The archive's two sides, with real processes and real stores: nothing is lost that there was room for."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.gateway.handing_over import Archive
from context_gatekeeper.gateway.shelf import Archived, ArchiveLimits
from context_gatekeeper.wire.records import WireApi
from tests.gateway.test_archive import names, one_each, stored, texts

WAIT = 60.0
PATIENT = ArchiveLimits(close_seconds=WAIT, retry_seconds=0.02, pause_seconds=0.01)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "pool.db")


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def waiting(archive: Archive) -> int:
    return archive.figures()["cgk_archive_waiting"]


def test_many_short_conversations_at_once_are_all_stored_at_an_orderly_end(store: str) -> None:
    archive = Archive({"store": store}, PATIENT)
    told = one_each(400)
    for exchange in told:
        archive.put(exchange)
    archive.close()
    assert len(names(store)) == len(told)
    assert archive.figures() == {
        "cgk_archive_faults_total": 0,
        "cgk_archive_dropped_total": 0,
        "cgk_archive_waiting": 0,
    }


def test_what_waits_when_the_planner_must_end_is_stored_without_it(store: str) -> None:
    archive = Archive({"store": store}, ArchiveLimits(close_seconds=0.5))
    told = one_each(150)
    for exchange in told:
        archive.put(exchange)
    archive.close()
    until(lambda: Path(store).exists() and len(names(store)) == len(told))


def test_a_killed_process_loses_nothing(store: str) -> None:
    archive = Archive({"store": store}, PATIENT)
    told = one_each(60)
    for number, exchange in enumerate(told):
        archive.put(exchange)
        if number % 20 == 10:
            until(lambda: archive.process_id is not None)
            os.kill(archive.process_id or 0, signal.SIGKILL)
    until(lambda: waiting(archive) == 0)
    archive.close()
    assert sorted(names(store)) == sorted(exchange.session for exchange in told)
    assert archive.faults > 0
    assert not archive.is_failing


def test_of_one_conversation_that_comes_fast_the_newest_state_is_stored(store: str) -> None:
    archive = Archive({"store": store}, PATIENT)
    turns = [[{"role": "user", "content": f"q{n}"}, {"role": "assistant", "content": f"a{n}"}] for n in range(50)]
    for count in range(1, len(turns) + 1):
        body = {"model": "m", "messages": [message for turn in turns[:count] for message in turn]}
        archive.put(Archived("s", WireApi.CHAT, json.dumps(body).encode()))
    archive.close()
    assert names(store) == ["s"]
    assert texts(stored(store))[-1] == "a49"


@pytest.mark.parametrize("fault", ["noise", "folder"])
def test_a_store_that_is_broken_is_told_and_when_it_is_whole_again_everything_is_stored(
    tmp_path: Path, fault: str
) -> None:
    path = tmp_path / "p.db"
    if fault == "noise":
        path.write_bytes(b"sk-canary" * 1000)
    else:
        path.mkdir()
    archive = Archive({"store": str(path)}, PATIENT)
    assert archive.fault == ""
    for exchange in one_each(3):
        archive.put(exchange)
    until(lambda: archive.is_failing)
    assert archive.fault.endswith(f"Error at {path}")
    assert archive.figures()["cgk_archive_faults_total"] > 0
    if fault == "noise":
        path.unlink()
    else:
        path.rmdir()
    until(lambda: waiting(archive) == 0)  # though nothing new comes in
    assert (archive.is_failing, archive.fault, archive.dropped) == (False, "", 0)
    archive.close()
    assert sorted(names(str(path))) == ["c0", "c1", "c2"]


def test_a_store_that_takes_no_more_on_the_way_is_told_and_gone_on_with(store: str) -> None:
    with AgentPool(store):
        pass
    with sqlite3.connect(store) as database:
        database.execute("CREATE TRIGGER full BEFORE INSERT ON pages BEGIN SELECT RAISE(ABORT, 'no room'); END")
    archive = Archive({"store": store}, PATIENT)
    for exchange in one_each(3):
        archive.put(exchange)
    until(lambda: archive.faults > 3)
    assert archive.is_failing
    assert waiting(archive) == 3
    with sqlite3.connect(store, timeout=WAIT) as database:
        database.execute("DROP TRIGGER full")
    until(lambda: waiting(archive) == 0)
    archive.close()
    assert sorted(names(store)) == ["c0", "c1", "c2"]


def test_what_finds_no_room_is_counted_and_closing_is_quick(store: str) -> None:
    archive = Archive({"store": store}, ArchiveLimits(most_bytes=0))
    for exchange in one_each(3):
        archive.put(exchange)
    assert (archive.dropped, waiting(archive)) == (3, 0)
    archive.close()
    assert not Path(store).exists()


def test_what_the_process_drops_is_counted(store: str) -> None:
    archive = Archive({"store": store}, PATIENT)
    archive.put(Archived("s", WireApi.MESSAGES, b"{"))
    until(lambda: archive.dropped == 1)
    assert archive.last_fault == f"WireFormatError at {store}"
    assert not archive.is_failing
    archive.close()


@pytest.mark.parametrize("command", [("/nowhere/at/all",), (sys.executable, "-c", "print('no JSON')")])
def test_a_process_that_does_not_run_is_told_and_costs_exchanges_alone(store: str, command: tuple[str, ...]) -> None:
    archive = Archive({"store": store}, PATIENT, command)
    for exchange in one_each(2):
        archive.put(exchange)
    until(lambda: archive.faults > 2)
    assert archive.is_failing
    assert waiting(archive) == 2
    archive.close()
    assert not Path(store).exists()


def test_a_process_that_takes_nothing_does_not_hold_up_the_end(store: str) -> None:
    endless = (sys.executable, "-c", "import signal; signal.pause()")
    archive = Archive({"store": store}, ArchiveLimits(close_seconds=0.5), endless)
    archive.put(Archived("s", WireApi.MESSAGES, os.urandom(3_000_000)))
    until(lambda: archive.process_id is not None)
    process_id = archive.process_id or 0
    archive.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
