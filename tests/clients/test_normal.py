"""What makes two runs comparable hides nothing that a client did not draw by lot."""

from __future__ import annotations

import json
from typing import Any

from context_gatekeeper.testing import ReceivedRequest
from tests.clients.normal import NormalRequest, normal_requests

ONE = "01a22e6a-bb9e-74c1-954c-36bf434817ba"
OTHER = "01a22e6a-c55c-7ca1-83d3-3159b9abd7cf"


def compact(body: dict[str, Any]) -> str:
    return json.dumps(body, separators=(",", ":"))


def request(body: dict[str, Any], **headers: str) -> ReceivedRequest:
    return ReceivedRequest("/v1/responses", headers, body, target="/v1/responses", raw=compact(body).encode())


def codex(body: dict[str, Any], **headers: str) -> NormalRequest:
    return normal_requests("codex", [request({"tools": [1], **body}, **headers)])[0]


def test_ids_that_are_drawn_by_lot_are_numbered_and_stay_told_apart() -> None:
    same = {"client_metadata": {"a": ONE, "b": ONE}}
    assert codex(same).body == codex({"client_metadata": {"a": OTHER, "b": OTHER}}).body
    assert codex(same).body != codex({"client_metadata": {"a": ONE, "b": OTHER}}).body


def test_the_order_of_keys_counts_everywhere_but_in_metadata_of_codex() -> None:
    assert (
        codex({"client_metadata": {"a": "1", "b": "2"}}).body == codex({"client_metadata": {"b": "2", "a": "1"}}).body
    )
    first = codex({"x": {"a": "1", "b": "2"}, "client_metadata": {}})
    assert first.body != codex({"x": {"b": "2", "a": "1"}, "client_metadata": {}}).body


def test_output_of_a_command_stays_but_for_its_number_and_time() -> None:
    text = "Chunk ID: {}\nWall time: {} seconds\nOutput:\n{}"
    body = {"input": text.format("0876ea", "0.5012", "seven"), "client_metadata": {}}
    assert codex(body).body == codex({**body, "input": text.format("eb89ba", "0.5", "seven")}).body
    assert codex(body).body != codex({**body, "input": text.format("eb89ba", "0.5", "eight")}).body


def test_other_clients_are_compared_byte_for_byte() -> None:
    first, second = (normal_requests("openai-chat", [request({"text": word})])[0] for word in (ONE, OTHER))
    assert first.body != second.body
    assert first.body == compact({"text": ONE})


def test_headers_count_but_those_of_the_connection() -> None:
    made = codex({"client_metadata": {}}, host="127.0.0.1:1", authorization="Bearer a", **{"accept-encoding": "zstd"})
    assert made.headers == (("authorization", "Bearer a"),)


def test_requests_of_the_agent_come_first() -> None:
    title, main = request({"text": "title"}), request({"text": "main", "tools": [1]})
    assert [one.body for one in normal_requests("opencode", [title, main])] == [
        compact({"text": "main", "tools": [1]}),
        compact({"text": "title"}),
    ]
