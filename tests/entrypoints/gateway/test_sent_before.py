"""A request whose plan is late goes on behind what was sent before."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.entrypoints.gateway.sent_before import SentBefore
from context_gatekeeper.gateway.cuts import Cut
from context_gatekeeper.testing import FakeCall, FakeProvider, FakeReply
from tests.entrypoints.gateway.running import RawAnswer, RunningGateway, ask, running_gateway

PLANNER = "context_gatekeeper.gateway.planning:make_planner"
HEADERS = {"x-api-key": "test-key", "anthropic-version": "2023-06-01", "content-type": "application/json"}


WORDS = [f"{word}{n}" for word in ("lamp", "pier", "valve", "ledger", "winch", "crate") for n in range(60)]
CALLS = 60


def test_what_is_new_stands_behind_what_was_sent() -> None:
    before = SentBefore(1000)
    before.note("a", b"[old,1]", b"[o,1]", [Cut(6, 4)])
    assert before.continued("a", b"[old,1,2]") == b"[o,1,2]"
    assert before.continued("b", b"[old,1,2]") is None, "another's"
    assert before.continued("a", b"[new,1,2]") is None, "another conversation"


def test_a_newest_message_in_another_shape_is_taken_as_it_comes_now() -> None:
    before = SentBefore(1000)
    before.note("a", b"[old,1,{mark}]", b"[o,1,{mark}]", [Cut(13, 11), Cut(7, 5)])
    assert before.continued("a", b"[old,1,plain,2]") == b"[o,1,plain,2]"
    assert before.continued("a", b"[old,1,{mark},2]") == b"[o,1,{mark},2]"


def test_a_conversation_keeps_its_newest_and_another_of_the_same_owner_its_own() -> None:
    before = SentBefore(1000)
    before.note("a", b"[x,1]", b"[-,1]", [Cut(4, 4)])
    before.note("a", b"[y,1]", b"[+,1]", [Cut(4, 4)])
    before.note("a", b"[x,1,2]", b"[=,2]", [Cut(6, 4)])
    assert before.continued("a", b"[x,1,2,3]") == b"[=,2,3]"
    assert before.continued("a", b"[y,1,2]") == b"[+,1,2]"
    before.note("a", b"[x,1,2,3]", b"", [])  # sent as it came
    assert before.continued("a", b"[x,1,2,3,4]") is None


def test_the_oldest_leave_when_there_are_too_many_bytes() -> None:
    before = SentBefore(20)
    for name in (b"x", b"y", b"z"):
        before.note(name, b"[%b,1]" % name, b"[-,1]", [Cut(4, 4)])
    assert [before.continued(name, b"[%b,1,2]" % name) is None for name in (b"x", b"y", b"z")] == [True, False, False]
    before.note(b"w", bytes(30), bytes(30), [Cut(30, 30)])
    assert before.continued(b"z", b"[z,1,2]") is None


@pytest.mark.parametrize(("marks", "is_sent"), [(3, True), (4, False)])
def test_no_more_breakpoints_than_the_api_takes(marks: int, is_sent: bool) -> None:
    before, mark = SentBefore(1000), b'"cache_control":'
    before.note("a", b"[old", mark * marks, [Cut(4, len(mark) * marks)])
    assert (before.continued("a", b"[old" + mark) is not None) == is_sent


def post(gateway: RunningGateway, body: dict[str, Any]) -> RawAnswer:
    return ask(gateway.port, "/v1/messages", json.dumps(body).encode(), HEADERS)


def test_a_late_plan_costs_neither_the_cache_nor_the_thinking(tmp_path: Path) -> None:
    """The planner's process is stopped while two requests wait, in a conversation whose thinking is bound."""
    draw = random.Random(7)
    pages = [" ".join(draw.choices(WORDS, k=1300)) for _ in range(CALLS)]
    told: list[dict[str, Any]] = [{"role": "user", "content": "Read all of it."}]
    body = {"model": "claude-opus-5-5", "max_tokens": 2000, "messages": told, "system": "You read. " * 400,
            "thinking": {"type": "enabled", "budget_tokens": 1024}, "cache_control": {"type": "ephemeral"},
            "tools": [{"name": "read", "input_schema": {"type": "object"}}]}  # fmt: skip
    notes, late = [], {CALLS - 4, CALLS - 3}
    with (
        FakeProvider(lambda _: FakeReply("", thinking="hm", calls=[FakeCall("read")])) as provider,
        running_gateway(
            provider.url, folder=tmp_path, planner=PLANNER, planner_settings={"policy": "frugal"}, plan_seconds=0.5
        ) as gateway,
    ):
        for number, page in enumerate(pages):
            planner = gateway.gateway.planner.process_id
            assert planner is not None
            if number in late:
                os.kill(planner, signal.SIGSTOP)
            try:
                got = post(gateway, body)
            finally:
                os.kill(planner, signal.SIGCONT)
            assert got.status == 200, got.body
            notes.append(got.note)
            while not gateway.run(gateway.gateway.planner.status(30.0))["is_idle"]:
                pass
            content = json.loads(got.body)["content"]
            [call] = [block for block in content if block["type"] == "tool_use"]
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": page}
            told += [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
        assert gateway.count("cgk_continued_total") == len(late)
        assert gateway.count("cgk_fail_open_total", where="late") == 0
    assert notes[-5:] == ["plan"] * 5
    assert provider.refusals == []
    usages = [request.usage for request in provider.requests]
    for number in late:
        assert usages[number].read > usages[number - 1].read, "what was sent before came from the cache"
