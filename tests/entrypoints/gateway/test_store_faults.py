"""R3, R4, R14: a store that is locked, full, no file, no store or cannot be written costs the client nothing.

The planner here is the real one with the real archive, and so are the faults. Plans have less time than the store is
patient: had a request to wait for the store, it would go on without a plan.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.errors import GatekeeperError
from context_gatekeeper.gateway.planning import SessionPlanner, make_planner
from context_gatekeeper.stores.sqlite import BUSY_TIMEOUT_SECONDS
from context_gatekeeper.testing import FakeProvider
from context_gatekeeper.wire.records import WireApi
from tests.entrypoints.gateway.running import DEADLINE_SECONDS, RawAnswer, RunningGateway, ask, running_gateway
from tests.entrypoints.gateway.test_injection import PATHS, body_of
from tests.gateway.request_checks import faults_of

PLANNER = "tests.entrypoints.gateway.test_store_faults:make_limited"
PLAN_SECONDS = BUSY_TIMEOUT_SECONDS / 2
ROOM_BYTES = 96 * 1024
"""Of a file, where there is no room for more: enough for a store that holds nothing."""
NOISE = bytes(range(256)) * 64
HOLDER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


def make_limited(settings: Mapping[str, Any]) -> SessionPlanner:
    """The gateway's planner; ``file_bytes`` is the size that no file of its process, or of those it starts, passes."""
    if settings.get("file_bytes"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (settings["file_bytes"], resource.RLIM_INFINITY))
    return make_planner(settings)


# -- clients ----------------------------------------------------------------------------------------


def conversation(name: str, turns: int) -> list[tuple[str, ...]]:
    """Turns that no other conversation has: enough text that a store of `ROOM_BYTES` cannot take it in."""
    steps: list[tuple[str, ...]] = [("user", f"{name}: begin.")]
    for turn in range(turns):
        lines = "\n".join(f"{name}_{turn}_{line} = value_{line % 9}" for line in range(150))
        steps += [("call", f"{name}{turn}"), ("result", f"{name}{turn}", lines)]
        steps += [("assistant", f"{name} did {turn}."), ("user", f"{name}: go on after {turn}.")]
    return steps


class Clients:
    """One of each API, whose answers are streamed, and one of each whose are not."""

    def __init__(self, gateway: RunningGateway, provider: FakeProvider) -> None:
        self.gateway = gateway
        self.provider = provider
        self.turns = 0
        self.names = {f"{api.value}{'s' if streams else 'w'}": (api, streams) for api in WireApi for streams in (0, 1)}

    def ask_all(self) -> None:
        """Each conversation goes on by one turn; every request is planned, valid, and answered."""
        self.turns += 1
        for name, (api, streams) in self.names.items():
            body = body_of(api, conversation(name, self.turns)) | ({"stream": True} if streams else {})
            if api is WireApi.RESPONSES:
                body["max_output_tokens"] = body.pop("max_tokens")
            got = self.newest = self._ask(api, name, body)
            assert (got.status, got.is_whole) == (200, True), got
            assert got.note in ("plan", "unchanged"), got.headers
            sent = json.loads(self.provider.log[-1].raw)
            assert sent == body or faults_of(api, body, sent) == []
        assert self.provider.refusals == []
        assert sum(self.gateway.count("cgk_fail_open_total", where=w) for w in ("late", "raised", "dead", "down")) == 0

    def _ask(self, api: WireApi, name: str, body: Any) -> RawAnswer:
        headers = {"content-type": "application/json", "authorization": "Bearer test-key", "x-api-key": "test-key",
                   "anthropic-version": "2023-06-01", "session-id": name}  # fmt: skip
        return ask(self.gateway.port, PATHS[api], json.dumps(body).encode(), headers)

    def wait_for_pages(self, store: Path) -> None:
        """Until the store holds what every client has sent, to its last line."""
        said = [told[-1] for name in self.names for told in conversation(name, self.turns) if told[0] != "call"]
        lines = {line for text in said for line in text.split("\n")}
        seen = -1

        def are_there() -> bool:
            nonlocal seen
            before, seen = seen, pages_in(store)
            return seen == before and lines <= lines_in(store)

        self.gateway.run(_until(self.gateway, are_there))

    def wait_for_faults(self) -> None:
        """Until the archive has told that it cannot store."""
        self.gateway.run(_until(self.gateway, lambda: False, has_faults=True))


async def _until(gateway: RunningGateway, is_so: Callable[[], bool], *, has_faults: bool = False) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not is_so():
            status = await gateway.gateway.planner.status(DEADLINE_SECONDS)
            if has_faults and status["archive"]["faults"]:
                return


def lines_in(store: Path) -> set[str]:
    """Lines of the sessions of a store; none while it has no pages, or cannot be read."""
    if not pages_in(store):  # opening it would make one
        return set()
    with suppress(GatekeeperError), AgentPool(store, redaction="off") as pool:
        sessions = [pool.session(info.name) for info in pool.sessions()]
        blocks = (block for one in sessions for message in one.messages for block in message.blocks)
        return {line for block in blocks for line in block.text.split("\n")}
    return set()


def pages_in(store: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=0)) as database:
            return int(database.execute("SELECT count(*) FROM pages").fetchone()[0])
    except sqlite3.Error:
        return 0


@contextmanager
def clients(folder: Path, store: Path, **settings: Any) -> Iterator[Clients]:
    given = {"store": str(store), "redaction": "off", **settings}
    with (
        FakeProvider() as provider,
        running_gateway(
            provider.url, folder=folder / "settings", planner=PLANNER, planner_settings=given, plan_seconds=PLAN_SECONDS
        ) as gateway,
    ):
        yield Clients(gateway, provider)


# -- locked -----------------------------------------------------------------------------------------


@contextmanager
def locked(store: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the file for itself, until its input is closed."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        yield holder


@pytest.mark.parametrize("is_made", [True, False], ids=["a store", "a file that is to become one"])
def test_while_another_process_locks_the_store_requests_go_on_and_then_the_pages_come(
    tmp_path: Path, is_made: bool
) -> None:
    store = tmp_path / "pages.db"
    if is_made:
        AgentPool(store).close()
    with locked(store) as holder, clients(tmp_path, store) as some:
        some.ask_all()
        some.ask_all()
        assert lines_in(store) == set()
        holder.communicate("")
        some.wait_for_pages(store)
        some.ask_all()
        some.wait_for_pages(store)


# -- no store ---------------------------------------------------------------------------------------


def a_folder(store: Path) -> None:
    (store / "inside").mkdir(parents=True)


def noise(store: Path) -> None:
    store.write_bytes(NOISE)


def a_store_with_noise_in_it(store: Path) -> None:
    AgentPool(store).close()
    with store.open("r+b") as file:
        file.seek(200)
        file.write(NOISE)


def a_broken_link(store: Path) -> None:
    store.symlink_to(store.with_name("no such folder") / "pages.db")


def a_file_in_the_folders_place(store: Path) -> None:
    store.parent.rmdir()
    store.parent.write_text("no folder")


def mend(store: Path) -> None:
    """What its owner would do: put away what is there."""
    if store.parent.is_file():
        store.parent.unlink()
        store.parent.mkdir()
    for place in (store, Path(f"{store}-wal"), Path(f"{store}-shm")):
        if place.is_symlink() or place.exists():
            place.rename(f"{place}.aside")


@pytest.mark.parametrize(
    "fault", [a_folder, noise, a_store_with_noise_in_it, a_broken_link, a_file_in_the_folders_place]
)
def test_what_is_no_store_costs_no_request_and_once_it_is_away_the_pages_come(
    tmp_path: Path, fault: Callable[[Path], None]
) -> None:
    store = tmp_path / "data" / "pages.db"
    store.parent.mkdir()
    fault(store)
    before = store.read_bytes() if store.is_file() else b""
    with clients(tmp_path, store) as some:
        some.ask_all()
        some.wait_for_faults()
        some.ask_all()
        some.ask_all()
        assert some.newest.header("x-gatekeeper-store") == "failing"
        assert json.loads(ask(some.gateway.port, "/healthz", method="GET").body)["store"] == "failing"
        assert (store.read_bytes() if store.is_file() else b"") == before, "damage is kept as it is"
        mend(store)
        some.ask_all()
        some.wait_for_pages(store)


def test_in_a_folder_that_cannot_be_written_nothing_is_stored_and_requests_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o500)
    # Root writes where it likes, but for the system's own folders.
    store = Path("/sys/pages.db") if os.geteuid() == 0 else folder / "pages.db"
    with clients(tmp_path, store) as some:
        some.ask_all()
        some.wait_for_faults()
        some.ask_all()
        folder.chmod(0o700)
        if store.parent == folder:
            some.ask_all()
            some.wait_for_pages(store)
        else:
            assert not store.exists()


# -- full -------------------------------------------------------------------------------------------


def processes_under(process: int) -> list[int]:
    """A process and all that it started."""
    found = [process]
    for one in found:
        for task in Path(f"/proc/{one}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def test_when_a_disk_is_full_requests_go_on_and_with_room_the_pages_come(tmp_path: Path) -> None:
    """A limit of a file's size fails each write behind it, as a disk without room does."""
    store = tmp_path / "pages.db"
    with AgentPool(store):
        pass
    with clients(tmp_path, store, file_bytes=ROOM_BYTES) as some:
        some.ask_all()
        some.wait_for_faults()
        some.ask_all()
        planner = some.gateway.gateway.planner.process_id
        assert planner is not None
        for one in processes_under(planner):
            resource.prlimit(one, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        some.ask_all()
        some.wait_for_pages(store)
    with closing(sqlite3.connect(store)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
