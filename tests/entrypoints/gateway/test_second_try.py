"""A request that is refused because of us is sent once more; the client hears nothing of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.entrypoints.gateway.running import (
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
from tests.gateway.planners import NEW, OLD, THOUGHT

ROUTE = "/v1/messages"
REFUSED = "400 Bad Request"
ABOUT_THINKING = b'{"error": {"message": "Invalid `signature` in `thinking` block"}}'
ABOUT_MORE = b'{"error": {"message": "max_tokens: too many"}}'
DISLIKED = b"disliked"


async def answer(request: Received, side: UpstreamSide) -> None:
    """Refuses thoughts, what the planner made, and what is disliked whatever it says."""
    body = request.body
    if b"unreachable" in body and THOUGHT not in body:
        side.reset()
    elif b"busy" in body and THOUGHT not in body:
        await side.send(plain_answer(b'{"busy": true}', "429 Too Many Requests", {"retry-after": "7"}))
    elif THOUGHT in body:
        await side.send(refusal_of_thinking(request))
    elif NEW in body or DISLIKED in body:
        await side.send(plain_answer(ABOUT_MORE, REFUSED))
    elif b"stream" in body:
        await side.send(chunked_head(), chunk(b"data: {}\n\n"), b"0\r\n\r\n")
    else:
        await side.send(plain_answer(b'{"ok": true}'))


def refusal_of_thinking(request: Received) -> bytes:
    if request.header("x-coded"):
        return plain_answer(gzip.compress(ABOUT_THINKING), REFUSED, {"content-encoding": "gzip"})
    if request.header("x-long"):
        return plain_answer(ABOUT_THINKING + b" " * 300_000, REFUSED)
    return plain_answer(ABOUT_THINKING, REFUSED)


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with scripted_upstream(answer) as running:
        yield running


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journal") / "planner.jsonl"


@pytest.fixture(scope="module")
def gateway(
    upstream: ScriptedUpstream, journal: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningGateway]:
    folder = tmp_path_factory.mktemp("gateway")
    with running_gateway(upstream.url, folder=folder, planner_settings={"journal": str(journal)}) as running:
        yield running


def sent_for(
    gateway: RunningGateway, upstream: ScriptedUpstream, body: bytes, **headers: str
) -> tuple[RawAnswer, list[bytes]]:
    """What the client gets for a request, and the bodies that the upstream got."""
    before = len(upstream.received)
    got = ask(gateway.port, ROUTE, body, {name.replace("_", "-"): value for name, value in headers.items()})
    assert got.is_whole
    return got, [request.body for request in upstream.received[before:]]


def heard(gateway: RunningGateway, journal: Path) -> dict[str, object]:
    """The answer that the planner heard last."""
    gateway.run(gateway.gateway.planner.status(30.0))  # it answers in order
    return next(line for line in reversed(read_journal(journal)) if line["kind"] == "observe")


@pytest.mark.parametrize("more", [b"", b', "stream": true'])
def test_where_the_plan_is_refused_the_clients_own_bytes_go(
    gateway: RunningGateway, upstream: ScriptedUpstream, journal: Path, more: bytes
) -> None:
    body = b'{"a": "long old text"%b}' % more
    got, sent = sent_for(gateway, upstream, body)
    assert (got.status, got.note) == (200, "bypass")
    assert sent == [body.replace(OLD, NEW), body]
    assert gateway.count("cgk_second_tries_total", sent="own") >= 1
    told = heard(gateway, journal)
    assert (told["sent_as"], told["status"]) == ("refused", 200)


def test_own_bytes_in_a_coding_go_again_in_that_coding(gateway: RunningGateway, upstream: ScriptedUpstream) -> None:
    body = gzip.compress(b'{"a": "long old text"}')
    got, sent = sent_for(gateway, upstream, body, content_encoding="gzip")
    assert got.status == 200
    assert sent[1:] == [body]
    assert upstream.received[-1].header("content-encoding") == "gzip"
    assert upstream.received[-2].header("content-encoding") is None


@pytest.mark.parametrize("header", ["x_plain", "x_coded", "x_long"])
def test_where_thinking_is_refused_the_planner_says_what_fits(
    gateway: RunningGateway, upstream: ScriptedUpstream, journal: Path, header: str
) -> None:
    body = b'{"a": "a thought, and more"}'
    got, sent = sent_for(gateway, upstream, body, **{header: "1"})
    assert (got.status, got.note, got.body) == (200, "plan", b'{"ok": true}')
    assert sent == [body, body.replace(THOUGHT, b"")]
    told = heard(gateway, journal)
    assert told["sent_as"] == "planned"


def test_of_a_plan_that_keeps_thinking_both_other_forms_are_tried(
    gateway: RunningGateway, upstream: ScriptedUpstream
) -> None:
    body = b'{"a": "long old text, a thought, disliked"}'
    got, sent = sent_for(gateway, upstream, body)
    assert sent == [body.replace(OLD, NEW), body.replace(THOUGHT, b""), body]
    assert (got.status, got.note, got.body) == (400, "bypass", ABOUT_THINKING)  # what its own bytes get


@pytest.mark.parametrize("header", ["x_plain", "x_coded", "x_long"])
def test_where_nothing_helps_the_client_gets_the_first_refusal(
    gateway: RunningGateway, upstream: ScriptedUpstream, header: str
) -> None:
    body = b'{"a": "a thought, disliked"}'
    got, sent = sent_for(gateway, upstream, body, **{header: "1"})
    assert sent == [body, body.replace(THOUGHT, b"")]
    beside = ask(int(upstream.url.rsplit(":", 1)[1]), ROUTE, body, {header.replace("_", "-"): "1"})
    assert (got.status, got.note, got.body) == (400, "unchanged", beside.body)
    assert got.header("content-encoding") == beside.header("content-encoding")


def test_a_refusal_of_something_else_is_not_asked_about(gateway: RunningGateway, upstream: ScriptedUpstream) -> None:
    got, sent = sent_for(gateway, upstream, b'{"a": "disliked"}')
    assert (got.status, got.note, got.body, len(sent)) == (400, "unchanged", ABOUT_MORE, 1)


def test_what_the_upstream_says_to_the_second_form_is_for_the_client(
    gateway: RunningGateway, upstream: ScriptedUpstream
) -> None:
    got, sent = sent_for(gateway, upstream, b'{"a": "a thought, busy"}')
    assert (got.status, got.header("retry-after"), len(sent)) == (429, "7", 2)


def test_an_upstream_that_is_gone_by_then_leaves_the_refusal(
    gateway: RunningGateway, upstream: ScriptedUpstream
) -> None:
    got, _ = sent_for(gateway, upstream, b'{"a": "a thought, unreachable"}')
    assert (got.status, got.body) == (400, ABOUT_THINKING)


def test_in_shadow_and_off_nothing_is_sent_twice(gateway: RunningGateway, upstream: ScriptedUpstream) -> None:
    for word in ("shadow", "off"):
        got, sent = sent_for(gateway, upstream, b'{"a": "a thought"}', x_gatekeeper=word)
        assert (got.status, len(sent)) == (400, 1)


@pytest.mark.parametrize("fault", ["raise", "memory", "killed", "sleep"])
def test_a_planner_that_fails_then_leaves_the_refusal(upstream: ScriptedUpstream, tmp_path: Path, fault: str) -> None:
    settings = {"repair_fault": fault}
    with running_gateway(
        upstream.url, folder=tmp_path, planner_settings=settings, repair_seconds=0.2, answer_seconds=0.5
    ) as gateway:
        got, sent = sent_for(gateway, upstream, b'{"a": "a thought"}')
        assert (got.status, got.body, len(sent)) == (400, ABOUT_THINKING, 1)


def test_a_planner_that_knows_nothing_leaves_the_refusal(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    with running_gateway(upstream.url, folder=tmp_path, planner_settings={"repairs": False}) as gateway:
        assert sent_for(gateway, upstream, b'{"a": "a thought"}')[0].body == ABOUT_THINKING


def test_a_planner_that_was_killed_is_waited_for(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    """The plan was lost with its process; the next one knows what to send."""
    settings = {"fault": "killed", "fault_mark": "deadly", "journal": str(tmp_path / "j")}
    with running_gateway(upstream.url, folder=tmp_path, planner_settings=settings, repair_seconds=60.0) as gateway:
        got, sent = sent_for(gateway, upstream, b'{"a": "deadly, a thought"}')
        assert (got.status, got.note, len(sent)) == (200, "plan", 2)
        assert [line["kind"] for line in read_journal(tmp_path / "j")][:2] == ["plan", "repair"]
        assert json.loads(ask(gateway.port, "/stats", method="GET").body)["planner"] == "up"
