"""The planner's process as the gateway sees it: queues, deadlines, ends."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from context_gatekeeper.entrypoints.gateway.planner_process import PlannerFaultError, PlannerLimits, PlannerProcess
from context_gatekeeper.gateway.port import Answer, GatewayCall
from tests.entrypoints.gateway.running import DEADLINE_SECONDS, MARKING, importable_tests

ANSWER = Answer(1, 200, "text/plain", b"", is_complete=True)


def call(number: int, body: bytes = b'{"a": "long old text"}') -> GatewayCall:
    return GatewayCall(number, "messages", "anthropic", "", "", {}, 0.0, body)


@asynccontextmanager
async def running(settings: dict[str, Any], **limits: Any) -> AsyncIterator[PlannerProcess]:
    planner = PlannerProcess(MARKING, settings, limits=PlannerLimits(**{"first_pause_seconds": 0.001, **limits}))
    try:
        assert await planner.start()
        yield planner
    finally:
        await planner.close()


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await work()

    with importable_tests():
        asyncio.run(limited())


def test_many_calls_at_once_each_get_their_own_answer() -> None:
    async def work() -> None:
        async with running({}) as planner:
            bodies = [b'{"n": %d, "a": "long old text", "b": "%b"}' % (n, b"x" * 40_000) for n in range(50)]
            replies = await asyncio.gather(
                *(planner.plan(call(n, body), DEADLINE_SECONDS) for n, body in enumerate(bodies))
            )
            for number, (reply, body) in enumerate(zip(replies, bodies, strict=True)):
                assert (reply.call_id, reply.body) == (number, body.replace(b"long old text", b"[page 1]"))

    run(work)


@pytest.mark.parametrize("limits", [{"most_waiting": 2}, {"most_waiting_bytes": 50}])
def test_more_than_the_queue_takes_is_not_handed_over(limits: dict[str, int]) -> None:
    async def work() -> None:
        faults: list[str] = []
        async with running({"fault": "nap", "fault_mark": "old"}, **limits) as planner:
            first = [asyncio.create_task(planner.plan(call(n), DEADLINE_SECONDS)) for n in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(PlannerFaultError, match="queue"):
                await planner.plan(call(3), DEADLINE_SECONDS)
            planner.observe(Answer(1, 200, "a", bytes(30), is_complete=True), faults.append)
            assert faults == ["queue"]
            for task in first:
                assert (await task).note == "plan"
            assert (await planner.plan(call(4), DEADLINE_SECONDS)).note == "plan"

    run(work)


def test_a_process_that_does_not_answer_is_killed_and_replaced() -> None:
    async def work() -> None:
        async with running({"fault": "sleep", "fault_mark": "hang"}, answer_seconds=0.2) as planner:
            first = planner.process_id
            with pytest.raises(PlannerFaultError, match="dead"):
                await planner.plan(call(1, b'"hang"'), DEADLINE_SECONDS)
            await planner.wait_until_up()
            assert planner.process_id != first
            assert (await planner.plan(call(2), DEADLINE_SECONDS)).note == "plan"

    run(work)


def test_whoever_waits_for_a_process_that_dies_is_told_at_once() -> None:
    async def work() -> None:
        faults: list[str] = []
        async with running({"fault": "sleep", "fault_mark": "hang"}) as planner:
            waiting = asyncio.create_task(planner.plan(call(1, b'"hang"'), DEADLINE_SECONDS))
            await asyncio.sleep(0)
            planner.observe(ANSWER, faults.append)
            os.kill(planner.process_id or 0, signal.SIGKILL)
            with pytest.raises(PlannerFaultError, match="dead"):
                await waiting
            await asyncio.sleep(0)
            assert faults == ["dead"]

    run(work)


def test_before_the_start_and_after_the_end_nobody_plans() -> None:
    async def work() -> None:
        planner = PlannerProcess(MARKING, {})
        faults: list[str] = []
        await planner.close()
        with pytest.raises(PlannerFaultError, match="down"):
            await planner.plan(call(1), 1.0)
        planner.observe(ANSWER, faults.append)
        assert (faults, await planner.status(), planner.process_id) == (["down"], {"fault": "down"}, None)
        async with running({}) as planner:
            pass
        with pytest.raises(PlannerFaultError, match="down"):
            await planner.plan(call(1), 1.0)

    run(work)


def test_a_status_that_does_not_come_is_told() -> None:
    async def work() -> None:
        async with running({"fault": "sleep", "fault_mark": "hang"}) as planner:
            waiting = asyncio.create_task(planner.plan(call(1, b'"hang"'), DEADLINE_SECONDS))
            await asyncio.sleep(0)
            assert await planner.status(0.01) == {"fault": "late"}
            os.kill(planner.process_id or 0, signal.SIGKILL)
            with pytest.raises(PlannerFaultError):
                await waiting

    run(work)


@pytest.mark.parametrize(
    "junk", [b"not a frame at all, and long enough", b"\x00\x00\x00\x02\x00\x00\x00\x00{}", b"\xff" * 8]
)
def test_a_process_that_speaks_no_frames_is_replaced(junk: bytes) -> None:
    async def work() -> None:
        async with running({"fault": "raw", "raw": junk.hex(), "fault_mark": "spoil"}) as planner:
            first = planner.process_id
            with pytest.raises(PlannerFaultError, match="dead"):
                await planner.plan(call(1, b'"spoil"'), DEADLINE_SECONDS)
            await planner.wait_until_up()
            assert planner.process_id != first

    run(work)


def test_an_end_in_the_middle_of_a_start_leaves_no_process() -> None:
    async def work() -> None:
        planner = PlannerProcess(MARKING, {"slow_start": 30})
        starting = asyncio.create_task(planner.start())
        await asyncio.sleep(0.05)
        starting.cancel()
        await planner.close()
        assert not planner.is_up

    run(work)
