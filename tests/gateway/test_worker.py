"""The planner's process: frames in, frames out, whatever the planner does."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.gateway.port import GatewayCall
from context_gatekeeper.gateway.worker import (
    FRAME_LENGTHS,
    Frame,
    call_header,
    load_planner,
    pack_frame,
    read_frame,
    read_header,
    run_worker,
)
from tests.gateway.planners import REPLY_FAULTS, MarkingPlanner

ROOT = Path(__file__).parents[2]
FACTORY = "tests.gateway.planners:make_marking"
CALL = GatewayCall(7, "messages", "anthropic", "", "ab12", {"session-id": "s"}, 1.5, b'{"a": "long old text"}')
HEADERS = st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=9), max_size=4)


def start_frame(settings: dict[str, Any], factory: str = FACTORY) -> tuple[dict[str, Any], bytes]:
    return {"id": 1, "factory": factory, "settings": settings}, b""


def plan_frame(number: int, call: GatewayCall = CALL, deadline: float = 10.0) -> tuple[dict[str, Any], bytes]:
    return {"id": number, "kind": "plan", "deadline": deadline, "call": call_header(call)}, call.body


def observe_frame(number: int) -> tuple[dict[str, Any], bytes]:
    fields = {"call_id": 7, "status": 200, "content_type": "a", "is_complete": True, "sent_as": "planned"}
    return {"id": number, "kind": "observe", "answer": fields}, b"content"


def worked(*frames: tuple[dict[str, Any], bytes], now: float = 0.0) -> list[Frame]:
    """Answers of a worker that gets these frames."""
    source = io.BytesIO(b"".join(piece for frame in frames for piece in pack_frame(*frame)))
    sink = io.BytesIO()
    run_worker(source, sink, lambda: now)
    sink.seek(0)
    answers = []
    while (answer := read_frame(sink)) is not None:
        answers.append(answer)
    return answers


@given(frames=st.lists(st.tuples(HEADERS, st.binary(max_size=300)), max_size=5))
def test_frames_come_back_as_they_were_packed(frames: list[Frame]) -> None:
    packed = io.BytesIO(b"".join(piece for frame in frames for piece in pack_frame(*frame)))
    for frame in frames:
        assert read_frame(packed) == frame
    assert read_frame(packed) is None


@given(header=HEADERS, body=st.binary(max_size=50), data=st.data())
def test_a_frame_that_breaks_off_is_none(header: dict[str, Any], body: bytes, data: st.DataObject) -> None:
    packed = b"".join(pack_frame(header, body))
    length = data.draw(st.integers(0, len(packed) - 1))
    assert read_frame(io.BytesIO(packed[:length])) is None


@pytest.mark.parametrize("head", [b"[]", b"{", b"\xff", b'"a"'])
def test_a_header_is_an_object(head: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_header(head)


def test_a_header_that_is_no_json_is_not_packed() -> None:
    with pytest.raises(ValueError, match="JSON"):
        pack_frame({"a": float("nan")})


def test_a_large_body_is_not_copied_into_its_frame() -> None:
    body = b"x" * 100_000
    assert pack_frame({}, body)[1] is body


def test_a_call_is_planned_and_answered_with_its_id() -> None:
    started, planned = worked(start_frame({}), plan_frame(2))
    assert started == ({"id": 1}, b"")
    assert planned[1] == b'{"a": "[page 1]"}'
    assert (planned[0]["id"], planned[0]["has_body"], planned[0]["note"]) == (2, True, "plan")
    assert planned[0]["figures"]["saved_units"] == 1.5


def test_a_call_without_an_edit_has_no_body() -> None:
    call = GatewayCall(8, "chat", "openai", "", "", {}, 1.5, b"{}")
    assert worked(start_frame({}), plan_frame(2, call))[1] == (
        {"id": 2, "has_body": False, "note": "unchanged", "figures": {"prompt_tokens": 7}, "cuts": [], "betas": [],
         "seconds": 0.0},
        b"",
    )  # fmt: skip


def test_what_a_reply_says_beside_its_body_comes_along() -> None:
    header, _ = worked(start_frame({"cuts": [[1, 2]], "betas": ["b-1"]}), plan_frame(2))[1]
    assert (header["cuts"], header["betas"]) == ([[1, 2]], ["b-1"])


def test_a_refused_call_is_answered_with_what_fits() -> None:
    call = GatewayCall(9, "messages", "u", "", "", {}, 1.5, b'{"a": "a thought"}')
    frame = {"id": 2, "kind": "repair", "was_edited": False, "call": call_header(call)}, call.body
    assert worked(start_frame({}), frame)[1][1] == b'{"a": ""}'


def test_pages_are_fetched_for_a_call() -> None:
    frame = {"id": 2, "kind": "fetch", "call_id": 7, "handles": ["p1", "p2"]}, b""
    assert worked(start_frame({}), frame)[1] == ({"id": 2, "texts": ["page p1", "page p2"]}, b"")


def test_the_planner_gets_the_call_as_it_was() -> None:
    seen: list[GatewayCall] = []

    class Keeping(MarkingPlanner):
        def plan(self, call: GatewayCall) -> Any:
            seen.append(call)
            return super().plan(call)

    sys.modules["tests_keeping_planner"] = type(sys)("tests_keeping_planner")
    sys.modules["tests_keeping_planner"].Keeping = Keeping  # type: ignore[attr-defined]
    try:
        worked(start_frame({}, "tests_keeping_planner:Keeping"), plan_frame(2))
    finally:
        del sys.modules["tests_keeping_planner"]
    assert seen == [CALL]


@pytest.mark.parametrize("fault", ["raise", "memory", "exit"])
def test_a_planner_that_raises_is_told_without_its_message(fault: str) -> None:
    frames = [start_frame({"fault": fault, "fault_mark": "old text"}), plan_frame(2), observe_frame(3)]
    _, planned, observed = worked(*frames)
    kinds = {"raise": "RuntimeError", "memory": "MemoryError", "exit": "SystemExit"}
    assert planned == ({"id": 2, "fault": "raised", "text": kinds[fault]}, b"")
    assert observed == ({"id": 3}, b"")


@pytest.mark.parametrize("fault", sorted(set(REPLY_FAULTS) - {"declines", "odd figures"}))
def test_a_reply_that_cannot_be_sent_is_junk(fault: str) -> None:
    planned = worked(start_frame({"fault": fault}), plan_frame(2))[1]
    assert (planned[0]["fault"], planned[1]) == ("junk", b"")
    assert planned[0]["text"]


def test_a_call_whose_time_is_over_is_not_planned() -> None:
    _, planned, status = worked(
        start_frame({}), plan_frame(2, deadline=4.9), ({"id": 3, "kind": "status"}, b""), now=5.0
    )
    assert planned == ({"id": 2, "fault": "late"}, b"")
    assert status[0]["status"]["calls"] == 0


def test_answers_are_observed_and_the_status_told() -> None:
    _, observed, failed, status = worked(
        start_frame({}), observe_frame(2), ({"id": 3, "kind": "no such"}, b""), ({"id": 4, "kind": "status"}, b"")
    )
    assert observed == ({"id": 2}, b"")
    assert failed == ({"id": 3, "fault": "raised", "text": "KeyError"}, b"")
    assert (status[0]["status"]["answers"], status[0]["status"]["calls"]) == (1, 0)


def test_the_planner_is_closed_when_the_input_ends(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    worked(start_frame({"journal": str(journal)}))
    assert journal.read_text() == '{"kind": "close"}\n'


def test_without_a_first_frame_nothing_is_started() -> None:
    assert worked() == []


@pytest.mark.parametrize(
    "factory", ["tests.gateway.planners:make_none", "tests.gateway.planners:none", "no.such.module:x", "", "a", ":a"]
)
def test_a_planner_that_cannot_be_made_is_told(factory: str) -> None:
    answers = worked(start_frame({}, factory), plan_frame(2))
    assert len(answers) == 1
    assert answers[0][0]["fault"] == "start"
    assert answers[0][0]["text"].startswith(("OSError: the pool", "ConfigError: planner"))


def test_a_factory_is_named_by_module_and_attribute() -> None:
    assert isinstance(load_planner(FACTORY, {}), MarkingPlanner)
    with pytest.raises(ConfigError, match="name it module:attribute"):
        load_planner("nonsense", {})


def run_process(*frames: tuple[dict[str, Any], bytes]) -> list[Frame]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "context_gatekeeper.gateway.worker"],
        input=b"".join(piece for frame in frames for piece in pack_frame(*frame)),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=True,
    )
    assert done.stderr == b""
    output = io.BytesIO(done.stdout)
    answers = []
    while (answer := read_frame(output)) is not None:
        answers.append(answer)
    assert output.tell() == len(done.stdout)
    return answers


def test_the_process_speaks_frames_alone_whatever_the_planner_prints() -> None:
    _, planned = run_process(start_frame({"fault": "prints"}), plan_frame(2, deadline=float(2**40)))
    assert planned[1] == b'{"a": "[page 1]"}'


def test_the_lengths_of_a_frame_are_two_numbers() -> None:
    assert FRAME_LENGTHS.size == 8
