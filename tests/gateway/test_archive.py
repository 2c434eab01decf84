"""Conversations that went through the gateway become sessions of the pool, by a process of its own."""

from __future__ import annotations

import io
import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.errors import GatekeeperError, WireFormatError
from context_gatekeeper.gateway import archive
from context_gatekeeper.gateway.archive import Archive, Archived, ArchiveWriter, archived_session, main, open_pool
from context_gatekeeper.gateway.live_session import LiveSession
from context_gatekeeper.gateway.worker import pack_frame
from context_gatekeeper.types import AgentSession
from context_gatekeeper.wire import decode_request
from context_gatekeeper.wire.records import WireApi
from tests.gateway.histories import OLDER_MODEL, Growth, Size, grow
from tests.gateway.test_rendering import EAGER

MIDDLE = Size((6, 8), (100, 700))
KEY = "sk-ant-api03-" + "Ab3dEf9h" * 11 + "AA"
WAIT = 20.0


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "pool.db")


def answer_of(growth: Growth, number: int, **changes: Any) -> bytes:
    """What the provider answered to a request, by what the client sends next."""
    told = growth.requests[number + 1]
    if growth.api is WireApi.MESSAGES:
        message = {**told["messages"][len(growth.requests[number]["messages"])], "type": "message", **changes}
        return json.dumps(
            {**message, "stop_reason": "end_turn", "usage": {"input_tokens": 5, "output_tokens": 5}}
        ).encode()
    message = {**told["messages"][len(growth.requests[number]["messages"])], **changes}
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()


def exchanges(growth: Growth, **changes: Any) -> list[Archived]:
    return [
        Archived("s", growth.api, growth.raw(n), "application/json", answer_of(growth, n, **changes), is_complete=True)
        for n in range(len(growth.requests) - 1)
    ]


def messages_growth(seed: int = 1) -> Growth:
    return grow(WireApi.MESSAGES, seed, MIDDLE, model=OLDER_MODEL, is_claude_code=True)


def names(store: str) -> list[str]:
    with AgentPool(store) as pool:
        return [info.name for info in pool.sessions()]


def stored(store: str, name: str = "s") -> AgentSession:
    with AgentPool(store) as pool:
        return pool.session(name)


def texts(session: AgentSession) -> list[str]:
    return [block.text for message in session.messages for block in message.blocks if block.text]


@pytest.mark.parametrize("api", [WireApi.MESSAGES, WireApi.CHAT])
def test_growing_requests_become_one_session_with_each_answer_once(api: WireApi, store: str) -> None:
    growth = messages_growth() if api is WireApi.MESSAGES else grow(api, 1, MIDDLE, sends_reasoning=True)
    writer = ArchiveWriter(open_pool({"store": store}))
    assert {writer.store(exchange) for exchange in exchanges(growth)} == {"s"}
    writer.close()
    assert names(store) == ["s"]
    whole, _ = archived_session(Archived("s", api, growth.raw(len(growth.requests) - 1)))
    found = texts(stored(store))
    assert found == texts(whole)[: len(found)]
    assert stored(store).working_folder == "/srv/shop"


def test_an_answer_that_nobody_went_on_from_comes_in_at_the_end(store: str) -> None:
    growth = messages_growth()
    writer = ArchiveWriter(open_pool({"store": store}))
    writer.store(exchanges(growth)[0])
    writer.close()
    answered = stored(store).messages[-1]
    assert answered.role.value == "assistant"


def test_a_client_that_sends_no_thinking_back_makes_no_fork(store: str) -> None:
    growth = grow(WireApi.CHAT, 3, MIDDLE, sends_reasoning=False)
    writer = ArchiveWriter(open_pool({"store": store}))
    for exchange in exchanges(growth, reasoning_content="hm, hm"):
        writer.store(exchange)
    writer.close()
    assert names(store) == ["s"]
    assert "hm, hm" not in texts(stored(store))


def test_a_client_that_changes_its_answers_later_makes_one_fork_at_most(store: str) -> None:
    growth = messages_growth(2)
    writer = ArchiveWriter(open_pool({"store": store}))
    for number, exchange in enumerate(exchanges(growth)):
        changed = exchanges(growth, content=[{"type": "text", "text": f"other words {number}"}])[number]
        writer.store(exchange if number < 2 else changed)
    writer.close()
    assert set(names(store)) <= {"s", "s~2"}


def test_an_answer_that_broke_off_is_kept_apart(store: str) -> None:
    growth = messages_growth()
    whole = exchanges(growth)
    writer = ArchiveWriter(open_pool({"store": store}))
    writer.store(Archived("s", growth.api, whole[0].request, "application/json", whole[0].answer))
    for exchange in whole:
        writer.store(exchange)
    writer.close()
    assert sorted(names(store)) == ["s", "s/broken-off-1"]


def test_old_conversations_give_way_with_their_answers_stored(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_MOST_TALKS", 1)
    growth = messages_growth()
    first = exchanges(growth)[0]
    with AgentPool(store) as pool:
        writer = ArchiveWriter(pool)
        for name in ("a", "b"):
            writer.store(Archived(name, first.api, first.request, first.content_type, first.answer, is_complete=True))
        kinds = [pool.session(name).messages[-1].role.value for name in ("a", "b")]
    assert kinds == ["assistant", "user"]


def test_handles_of_the_live_session_are_those_of_the_pool(store: str) -> None:
    growth = messages_growth(4)
    session = LiveSession("s", PRICES["anthropic-5m"], resident_tokens=9, secret=b"x" * 16, params=EAGER)
    writer = ArchiveWriter(open_pool({"store": store}))
    for number, exchange in enumerate(exchanges(growth)):
        session.plan(decode_request(growth.api, growth.raw(number)), now=float(number))
        session.look_ahead()
        writer.store(exchange)
    writer.close()
    with AgentPool(store) as pool:
        for segment in session.schedule.log.segments:
            if segment.block.text and segment.block.kind.value in ("text", "tool_result"):
                handle = session.schedule.log.handle(segment)
                assert pool.expand(handle, session="s").text == segment.block.text


def test_secrets_do_not_reach_the_pools_file(tmp_path: Path, store: str) -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": f"my key is {KEY} ok"}]}).encode()
    writer = ArchiveWriter(open_pool({"store": store, "sealed_folder": str(tmp_path / "sealed")}))
    writer.store(Archived("s", WireApi.MESSAGES, body))
    writer.close()
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.glob("pool.db*"))


def test_a_request_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(WireFormatError):
        archived_session(Archived("s", WireApi.MESSAGES, b"{"))


def test_arguments_that_are_no_json_stay_as_they_are() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{broken"}}
    body = {"model": "g", "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call]}]}
    session, answer = archived_session(Archived("s", WireApi.CHAT, json.dumps(body).encode()))
    assert answer is None
    assert session.messages[1].blocks[0].text == "{broken"


# -- the process -----------------------------------------------------------------------------------------------


def frames(settings: dict[str, Any], *told: Archived, broken: bool = False) -> io.BytesIO:
    pieces = [*pack_frame({"settings": settings})]
    if broken:
        pieces += pack_frame({"session": "s"}, b"sk-canary")
    for one in told:
        header = {"session": one.session, "api": one.api.value, "content_type": one.content_type,
                  "is_complete": one.is_complete, "request_bytes": len(one.request)}  # fmt: skip
        pieces += pack_frame(header, one.request + one.answer)
    return io.BytesIO(b"".join(pieces))


def test_the_process_stores_frames_and_passes_over_what_it_cannot_read(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(io.BytesIO())
    main(frames({"store": store}))
    unreadable = Archived("s", WireApi.MESSAGES, b"{")
    main(frames({"store": store}, unreadable, *exchanges(messages_growth()), broken=True))
    assert names(store) == ["s"]
    assert capsys.readouterr().err == "archive: KeyError\n"


def test_a_store_that_cannot_be_used_is_told_in_a_line_and_it_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corrupt = tmp_path / "corrupt.db"
    corrupt.write_bytes(b"this is no database at all" * 100)
    for path in (str(corrupt), str(tmp_path / "missing" / "deeper" / "p.db")):
        main(frames({"store": path}, *exchanges(messages_growth())[:2]))
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(line.startswith("archive: ") for line in lines)


def test_a_store_that_breaks_on_the_way_is_opened_again(
    store: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = exchanges(messages_growth())
    real: Callable[..., Any] = AgentPool.import_session
    failing = iter([True, False, False, False, False, False, False, False, False, False])

    def import_session(pool: AgentPool, session: AgentSession) -> Any:
        if next(failing, False):
            raise GatekeeperError("the pool", "it is locked", "try again")
        return real(pool, session)

    monkeypatch.setattr(AgentPool, "import_session", import_session)
    main(frames({"store": store}, *told))
    assert "it is locked" in capsys.readouterr().err
    assert names(store) == ["s"]


def test_what_could_not_be_stored_is_stored_when_the_store_is_there_again(tmp_path: Path) -> None:
    blocked = tmp_path / "not yet"
    blocked.write_text("a file where a folder must be")
    told = exchanges(messages_growth())
    keeper = Archive({"store": str(blocked / "p.db")})
    keeper.put(told[-1])
    until(lambda: keeper.faults > 0)
    assert "p.db" in keeper.last_fault
    blocked.unlink()
    blocked.mkdir()
    keeper.close()  # the last try is at the end
    assert names(str(blocked / "p.db")) == ["s"]


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def pages_in(store: str) -> int:
    try:
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as database:
            return int(database.execute("SELECT count(*) FROM pages").fetchone()[0])
    except sqlite3.Error:
        return 0


def test_a_killed_process_loses_nothing_that_the_next_request_does_not_bring_back(store: str) -> None:
    growth = messages_growth()
    told = exchanges(growth)
    keeper = Archive({"store": store})
    keeper.put(told[0])
    until(lambda: pages_in(store) > 0)
    process = keeper._process  # noqa: SLF001 - there is no other way to kill it
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    for exchange in told[1:-1]:
        keeper.put(exchange)
    until(lambda: not keeper._waiting)  # noqa: SLF001
    keeper.put(told[-1])
    keeper.close()
    whole, _ = archived_session(told[-1])
    assert texts(stored(store))[: len(texts(whole))] == texts(whole)


def test_what_finds_no_room_is_counted_and_closing_is_quick(monkeypatch: pytest.MonkeyPatch, store: str) -> None:
    monkeypatch.setattr(archive, "_MOST_WAITING", 0)
    keeper = Archive({"store": store})
    keeper.put(exchanges(messages_growth())[0])
    assert keeper.dropped == 1
    keeper.close()


def test_a_process_that_cannot_be_started_costs_exchanges_alone(monkeypatch: pytest.MonkeyPatch, store: str) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError("no more processes")

    monkeypatch.setattr("subprocess.Popen", refuse)
    keeper = Archive({"store": store})
    keeper.put(exchanges(messages_growth())[0])
    keeper.close()
    assert not Path(store).exists()
