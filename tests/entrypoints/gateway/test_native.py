"""The setting ``native`` on the wire: the provider is asked in the client's own request, and clears by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from context_gatekeeper.config_gateway import Upstream
from context_gatekeeper.testing import FakeProvider
from tests.entrypoints.gateway.running import (
    RawAnswer,
    Received,
    RunningGateway,
    UpstreamSide,
    ask,
    plain_answer,
    running_gateway,
    scripted_upstream,
)

PLANNER = "context_gatekeeper.gateway.planning:make_planner"
HEADERS = {"x-api-key": "test-key", "anthropic-version": "2023-06-01", "content-type": "application/json"}
WORDS = "lamp pier valve ledger winch harbour crate signal rudder anchor mast gauge bolt hatch keel sail tide "


def looks(count: int) -> bytes:
    """A conversation whose results are 5,000 tokens each."""
    told: list[dict[str, Any]] = [{"role": "user", "content": "Look."}]
    for number in range(count):
        use = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"page": number}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number} " + WORDS * 220}
        told += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    body = {"model": "claude-opus-5-5", "max_tokens": 100, "messages": told,
            "tools": [{"name": "read", "input_schema": {"type": "object"}}]}  # fmt: skip
    return json.dumps(body).encode()


def asked(gateway: RunningGateway, body: bytes, **headers: str) -> RawAnswer:
    return ask(gateway.port, "/v1/messages", body, {**HEADERS, **headers})


def test_the_provider_clears_what_it_is_asked_to(tmp_path: Path) -> None:
    body = looks(40)
    with FakeProvider(lambda _: "ok") as provider:
        upstreams = {"default": Upstream(provider.url, provider.url, native="on")}
        with running_gateway(
            provider.url, folder=tmp_path, planner=PLANNER, planner_settings={"native": "auto"}, upstreams=upstreams
        ) as gateway:
            got = asked(gateway, body, **{"anthropic-beta": "a-1"})
        assert (got.status, got.note) == (200, "plan")
        [edit] = json.loads(got.body)["context_management"]["applied_edits"]
        assert edit["cleared_input_tokens"] > 32_000
        [request] = provider.requests
        assert request.headers["anthropic-beta"] == "a-1,context-management-2025-06-27"
        assert request.raw.startswith(body[:-1])


def test_a_service_that_knows_nothing_of_it_gets_the_clients_own_bytes(tmp_path: Path) -> None:
    refusal = b'{"error": {"message": "context_management: Extra inputs are not permitted"}}'

    async def answer(request: Received, side: UpstreamSide) -> None:
        if b"context_management" in request.body:
            await side.send(plain_answer(refusal, "400 Bad Request"))
        else:
            await side.send(plain_answer(b'{"type": "message", "content": [], "role": "assistant"}'))

    with scripted_upstream(answer) as upstream:
        upstreams = {"default": Upstream(upstream.url, upstream.url, native="on")}
        with running_gateway(
            upstream.url, folder=tmp_path, planner=PLANNER, planner_settings={"native": "auto"}, upstreams=upstreams
        ) as gateway:
            first = asked(gateway, looks(2), **{"anthropic-beta": "a-1"})
            gateway.run(gateway.gateway.planner.status(30.0))  # it has heard of the refusal by then
            second = asked(gateway, looks(3), **{"anthropic-beta": "a-1"})
        assert (first.status, first.note) == (200, "bypass")
        assert (second.status, second.note) == (200, "unchanged")
        assert [request.body for request in upstream.received[1:]] == [looks(2), looks(3)]
        assert [request.header("anthropic-beta") for request in upstream.received[1:]] == ["a-1", "a-1"]
