"""Whatever goes wrong on our side, the client's own bytes reach the upstream."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.entrypoints.gateway.running import (
    DEADLINE_SECONDS,
    RawAnswer,
    Received,
    RunningGateway,
    ScriptedUpstream,
    UpstreamSide,
    ask,
    chunk,
    chunked_head,
    plain_answer,
    read_journal,
    running_gateway,
    scripted_upstream,
)
from tests.gateway.planners import REPLY_FAULTS

APIS = ("/v1/messages", "/v1/chat/completions", "/v1/responses")
WHERE = {"raise": "raised", "sleep": "late", "memory": "raised", "killed": "dead", "exit": "raised"}
BODY = b'{"a": "long old text",  "spaces": "kept"}'


async def answer(request: Received, side: UpstreamSide) -> None:
    if b'"stream": true' in request.body:
        await side.send(chunked_head(), chunk(b"data: {}\n\n"), b"0\r\n\r\n")
    else:
        await side.send(plain_answer(b'{"ok": true}'))


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with scripted_upstream(answer) as running:
        yield running


def forwarded(upstream: ScriptedUpstream, gateway: RunningGateway, path: str, body: bytes) -> RawAnswer:
    """The answer to a request, after a look at what the upstream got: the client's bytes."""
    got = ask(gateway.port, path, body)
    assert (got.status, got.is_whole) == (200, True)
    assert upstream.received[-1].body == body
    return got


@pytest.mark.parametrize("fault", WHERE)
def test_a_planner_that_fails_costs_the_client_nothing(upstream: ScriptedUpstream, tmp_path: Path, fault: str) -> None:
    """R14, O42: each way to fail, each API, streamed or whole; the next calls are planned again."""
    settings = {"fault": fault, "fault_mark": "go wrong"}
    limits = {"plan_seconds": 0.25, "answer_seconds": 0.3} if fault == "sleep" else {"answer_seconds": 30.0}
    with running_gateway(upstream.url, folder=tmp_path, planner_settings=settings, **limits) as gateway:
        for path in APIS:
            for stream in ("true", "false"):
                body = b'{"a": "long old text, go wrong", "stream": %b}' % stream.encode()
                gateway.run(gateway.gateway.planner.wait_until_up())
                assert forwarded(upstream, gateway, path, body).note == "bypass"
        assert gateway.count("cgk_fail_open_total", where=WHERE[fault]) >= 1
        counted = sum(gateway.count("cgk_fail_open_total", where=where) for where in ("late", "raised", "dead", "down"))
        assert counted == len(APIS) * 2
        if fault != "sleep":
            gateway.run(gateway.gateway.planner.wait_until_up())
            assert ask(gateway.port, APIS[0], BODY).note == "plan"


@pytest.mark.parametrize("fault", REPLY_FAULTS)
def test_a_reply_that_cannot_be_sent_on_is_not_sent(upstream: ScriptedUpstream, tmp_path: Path, fault: str) -> None:
    with running_gateway(upstream.url, folder=tmp_path, planner_settings={"fault": fault}) as gateway:
        for path in APIS:
            assert forwarded(upstream, gateway, path, BODY).note == "bypass"
        where = {"declines": "planner", "odd figures": "raised"}.get(fault, "junk")
        assert gateway.count("cgk_fail_open_total", where=where) == len(APIS)


def test_a_planner_that_prints_spoils_nothing(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    with running_gateway(upstream.url, folder=tmp_path, planner_settings={"fault": "prints"}) as gateway:
        assert ask(gateway.port, APIS[0], BODY).note == "plan"
        assert ask(gateway.port, APIS[0], BODY).note == "plan"


@pytest.mark.parametrize(
    "factory", ["tests.gateway.planners:make_none", "tests.gateway.planners:nothing", "no.such:x", "x"]
)
def test_without_a_planner_requests_go_on(upstream: ScriptedUpstream, tmp_path: Path, factory: str) -> None:
    with running_gateway(upstream.url, folder=tmp_path, planner=factory) as gateway:
        assert forwarded(upstream, gateway, APIS[0], BODY).note == "bypass"
        assert gateway.gateway.planner.start_fault
        health = json.loads(ask(gateway.port, "/healthz", method="GET").body)
        assert (health["status"], health["planner"]) == ("ok", "down")
        assert json.loads(ask(gateway.port, "/stats", method="GET").body)["status"] == {"fault": "down"}


def test_a_planner_killed_between_calls_is_started_again(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    with running_gateway(upstream.url, folder=tmp_path) as gateway:
        planner = gateway.gateway.planner
        for _ in range(2):
            first = planner.process_id
            assert first is not None
            os.kill(first, signal.SIGKILL)
            # Whether the end was noticed before or after the call came: the call goes on.
            assert ask(gateway.port, APIS[0], BODY).status == 200
            gateway.run(_other_process(gateway, first))
            assert ask(gateway.port, APIS[0], BODY).note == "plan"
        assert gateway.count("cgk_planner_starts_total") == 3


async def _other_process(gateway: RunningGateway, first: int) -> None:
    import asyncio

    async with asyncio.timeout(DEADLINE_SECONDS):
        while gateway.gateway.planner.process_id in (None, first):
            await asyncio.sleep(0.01)


def test_a_plan_that_comes_too_late_is_told_to_the_planner(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    settings = {"fault": "nap", "fault_mark": "slowly", "journal": str(tmp_path / "journal")}
    with running_gateway(
        upstream.url, folder=tmp_path, planner_settings=settings, plan_seconds=0.1, answer_seconds=30.0
    ) as gateway:
        assert forwarded(upstream, gateway, APIS[0], b'{"a": "long old text slowly"}').note == "bypass"
        gateway.run(gateway.gateway.planner.status(DEADLINE_SECONDS))
    heard = [entry for entry in read_journal(tmp_path / "journal") if entry["kind"] == "observe"]
    assert [(entry["sent_as"], entry["content"]) for entry in heard] == [("own", '{"ok": true}')]


def test_a_planner_that_cannot_read_an_answer_goes_on(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    with running_gateway(upstream.url, folder=tmp_path, planner_settings={"observe_fault": True}) as gateway:
        for _ in range(3):
            assert ask(gateway.port, APIS[0], BODY).note == "plan"
        gateway.run(gateway.gateway.planner.status(DEADLINE_SECONDS))
        assert gateway.count("cgk_observe_faults_total", where="raised") == 3


def test_the_planner_is_closed_at_the_end(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    settings = {"journal": str(tmp_path / "journal")}
    with running_gateway(upstream.url, folder=tmp_path, planner_settings=settings) as gateway:
        ask(gateway.port, APIS[0], BODY)
    assert [entry["kind"] for entry in read_journal(tmp_path / "journal")] == ["plan", "observe", "close"]


def test_an_answer_that_is_too_long_is_relayed_and_not_read(tmp_path: Path) -> None:
    long_text = b"x" * 300_000

    async def long_answer(_request: Received, side: UpstreamSide) -> None:
        await side.send(plain_answer(long_text))

    settings = {"journal": str(tmp_path / "journal")}
    with (
        scripted_upstream(long_answer) as upstream,
        running_gateway(upstream.url, folder=tmp_path, planner_settings=settings, max_answer_bytes=100_000) as gateway,
    ):
        assert ask(gateway.port, APIS[0], b"{}").body == long_text
        gateway.run(gateway.gateway.planner.status(DEADLINE_SECONDS))
        assert gateway.count("cgk_unread_answers_total") == 1
    heard = [entry for entry in read_journal(tmp_path / "journal") if entry["kind"] == "observe"]
    assert [(entry["content"], entry["is_complete"]) for entry in heard] == [("", False)]
