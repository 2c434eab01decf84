"""A real client's whole conversation works, and the provider sees the same of it with and without the gateway."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.clients.cases import Client
from tests.clients.conftest import Recorded
from tests.clients.normal import DRAWS_BY_LOT, normal_requests
from tests.clients.runs import BESIDE, FINAL, FIRST_ANSWER, NOTES, SECOND_ANSWER, THROUGH, Recording, conversation
from tests.clients.scripted import REFUSED

WAYS = (BESIDE, THROUGH)
CACHE_STEP_TOKENS = 128


@pytest.fixture(params=WAYS)
def recording(request: pytest.FixtureRequest, client: Client, recorded: Recorded) -> Recording:
    """A client's conversation, by each way."""
    return recorded(client, request.param)


def test_the_whole_tool_loop_is_held(client: Client, recording: Recording) -> None:
    assert recording.used == len(conversation(client)), recording.run
    assert FIRST_ANSWER in recording.run.stdout
    assert (recording.folder / "made.txt").read_text() == "seven\n"
    results = recording.main[-1].results
    assert len(results) == 4
    shown = "\n".join(text for _, text in results)
    assert all(line.split(":")[1] in shown for line in NOTES.splitlines()), "the file was read by the client's own tool"


def test_every_answer_is_streamed(recording: Recording) -> None:
    assert all(request.is_stream for request in recording.main)


def test_the_conversation_is_resumed(recording: Recording) -> None:
    assert SECOND_ANSWER in recording.run.stdout
    resumed = recording.main[-1]
    assert FIRST_ANSWER in resumed.raw.decode("utf-8"), "what was said before is sent again"


def test_a_call_that_was_refused_for_load_is_sent_again_as_it_was(client: Client, recording: Recording) -> None:
    refused, again = next(pair for pair in pairwise(recording.main) if pair[0].status in (429, 529))
    assert again.status == 200
    first, second = (normal_requests(client.name, [request])[0].body for request in (refused, again))
    assert first == second


def test_parallel_calls_are_answered_together(recording: Recording) -> None:
    counts = [len(request.results) for request in recording.main if request.status == 200]
    assert counts == [0, 1, 3, 3, 4]


def test_the_user_is_shown_why_the_provider_refused(client: Client, recording: Recording) -> None:
    assert recording.main[-1].status == FINAL[client.api]
    assert REFUSED in recording.run.stdout + recording.run.stderr
    assert recording.run.exit_code == 1


def test_the_provider_finds_nothing_against_its_rules(recording: Recording) -> None:
    assert recording.unscripted_refusals == []


def test_the_prefix_is_never_broken(recording: Recording) -> None:
    assert recording.prefix_breaks == []


def test_the_gateway_planned_every_request_and_found_nothing_to_change(client: Client, recorded: Recorded) -> None:
    recording = recorded(client, THROUGH)
    assert recording.count("cgk_fail_open_total") == 0
    assert recording.count("cgk_requests_total", decision="unchanged") == recording.count("cgk_requests_total")
    assert recording.count("cgk_requests_total") == len(recording.provider.log)
    assert recording.count("cgk_observe_faults_total") == 0
    assert recording.count("cgk_broken_answers_total") == 0


def test_the_provider_sees_the_same_requests_with_and_without_the_gateway(client: Client, recorded: Recorded) -> None:
    beside, through = (normal_requests(client.name, recorded(client, way).provider.log) for way in WAYS)
    assert len(beside) == len(through)
    for one, other in zip(beside, through, strict=True):
        assert one.target == other.target
        assert one.body == other.body
        assert one.headers == other.headers


def test_the_cache_serves_as_much_with_the_gateway_as_without(client: Client, recorded: Recorded) -> None:
    beside, through = (recorded(client, way).provider.totals for way in WAYS)
    # Ids that are drawn by lot are not of the same number of tokens.
    allowed = CACHE_STEP_TOKENS if client.name in DRAWS_BY_LOT else 0
    assert through.read == pytest.approx(beside.read, abs=allowed)
    assert through.prompt == pytest.approx(beside.prompt, abs=allowed)
