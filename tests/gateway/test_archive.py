"""Conversations that went through the gateway become sessions of the pool, by a process of its own."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.errors import GatekeeperError, WireFormatError
from context_gatekeeper.gateway.archive import ArchiveWriter, archived_session, main, open_pool
from context_gatekeeper.gateway.live_session import LiveSession
from context_gatekeeper.gateway.shelf import Archived, WaitingExchange
from context_gatekeeper.gateway.worker import pack_frame
from context_gatekeeper.types import AgentSession
from context_gatekeeper.wire import decode_request
from context_gatekeeper.wire.records import WireApi
from tests.gateway.histories import OLDER_MODEL, Growth, Size, grow
from tests.gateway.test_rendering import EAGER

MIDDLE = Size((6, 8), (100, 700))
KEY = "sk-ant-api03-" + "Ab3dEf9h" * 11 + "AA"


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


def test_an_answer_that_waits_comes_in_when_the_pool_was_opened_again(store: str) -> None:
    writer = ArchiveWriter(open_pool({"store": store}))
    writer.store(exchanges(messages_growth())[0])
    writer.go_on_in(open_pool({"store": store}))
    assert writer.close() is None
    assert stored(store).messages[-1].role.value == "assistant"


def test_an_answer_that_cannot_be_stored_at_the_end_is_told(store: str) -> None:
    pool = open_pool({"store": store})
    writer = ArchiveWriter(pool)
    writer.store(exchanges(messages_growth())[0])
    pool.close()
    assert isinstance(writer.close(), GatekeeperError)


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


def test_old_conversations_give_way_with_their_answers_stored(store: str) -> None:
    growth = messages_growth()
    first = exchanges(growth)[0]
    with AgentPool(store) as pool:
        writer = ArchiveWriter(pool, most_talks=1)
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


def frames(settings: dict[str, Any], *told: Archived, broken: bytes = b"", **limits: float) -> io.BytesIO:
    pieces = pack_frame({"settings": settings, "limits": {"end_seconds": 0.0, **limits}})
    for number, one in enumerate(told, 1):
        pieces += WaitingExchange.of(one, number).frame()
    return io.BytesIO(b"".join([*pieces, broken]))


def run(source: io.BytesIO) -> list[dict[str, Any]]:
    """What the process says."""
    sink = io.StringIO()
    main(source, sink)
    return [json.loads(line) for line in sink.getvalue().splitlines()]


def one_each(count: int) -> list[Archived]:
    """Conversations that will not go on."""
    bodies = (b'{"model":"m","messages":[{"role":"user","content":"question %d"}]}' % number for number in range(count))
    return [Archived(f"c{number}", WireApi.MESSAGES, body) for number, body in enumerate(bodies)]


def test_without_exchanges_nothing_happens(store: str) -> None:
    assert run(io.BytesIO()) == run(frames({"store": store})) == []
    assert not Path(store).exists()


def test_each_conversation_is_stored_and_told(store: str) -> None:
    told = run(frames({"store": store}, *one_each(20)))
    assert [line["stored"] for line in told] == list(range(1, 21))
    assert sorted(names(store)) == sorted(f"c{number}" for number in range(20))


def test_what_cannot_be_read_holds_up_nothing_and_is_told_without_its_words(store: str) -> None:
    unreadable = Archived("canary", WireApi.MESSAGES, b"{canary")
    told = run(
        frames(
            {"store": store},
            unreadable,
            *exchanges(messages_growth()),
            broken=b"".join(pack_frame({"session": "canary"}, b"canary")) + b"\0\0",
        )
    )
    assert names(store) == ["s"]
    assert {"fault": "WireFormatError", "is_store": False} in told
    assert {"fault": "KeyError", "is_store": False} in told
    assert {"dropped": 1} in told
    assert "canary" not in json.dumps(told)


def test_what_finds_no_room_is_told(store: str) -> None:
    told = run(frames({"store": store}, *one_each(3), most_bytes=100))
    assert [line["dropped"] for line in told] == [1, 2, 3]


@pytest.mark.parametrize("fault", ["noise", "folder", "no folder"])
def test_a_store_that_cannot_be_used_is_told_with_the_type_alone(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "p.db"
    if fault == "noise":
        path.write_bytes(b"this is no database at all" * 100)
    elif fault == "folder":
        path.mkdir()
    else:
        path.parent.joinpath("file").touch()
        path = path.parent / "file" / "p.db"
    told = run(frames({"store": str(path)}, *one_each(1)))
    assert [set(line) for line in told] == [{"fault", "is_store"}, {"dropped"}]
    assert told[0]["is_store"] is True
    assert told[0]["fault"] in ("StoreDamagedError", "StoreError", "ConfigError")


def test_a_store_is_tried_again_for_a_while_at_the_end(tmp_path: Path) -> None:
    told = run(frames({"store": str(tmp_path)}, *one_each(2), end_seconds=0.05, retry_seconds=0.01))
    assert sum("fault" in line for line in told) > 1
    assert sum("dropped" in line for line in told) == 2


def test_nobody_needs_to_listen(store: str) -> None:
    sink = io.StringIO()
    sink.close()
    main(frames({"store": store}, *one_each(1)), sink)
    assert names(store) == ["c0"]
