"""Who may not speak to the gateway: web pages, other names, whoever lacks the token; on every route."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.entrypoints.gateway.running import (
    Received,
    RunningGateway,
    ScriptedUpstream,
    UpstreamSide,
    ask,
    plain_answer,
    running_gateway,
    scripted_upstream,
)

ROUTES = (
    ("GET", "/healthz"), ("GET", "/metrics"), ("GET", "/stats"), ("POST", "/v1/messages"),
    ("POST", "/v1/messages/count_tokens"), ("POST", "/v1/chat/completions"), ("POST", "/v1/responses"),
    ("GET", "/v1/models"), ("HEAD", "/"), ("OPTIONS", "/v1/messages"), ("GET", "/anything"),
)  # fmt: skip
GOOD_HOSTS = (
    "127.0.0.1",
    "127.0.0.1:8787",
    "localhost",
    "LOCALHOST:1",
    "[::1]:8787",
    "[::1]",
    "127.8.8.8",
    "box.lan:80",
)
BAD_HOSTS = (
    "evil.example", "evil.example:8787", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "0.0.0.0",
    "[::1].evil.example", "[::2]", "127.0.0.1:x", "127.0.0.1@evil.example", "", "::1", "2130706433", "[127.0.0.1",
)  # fmt: skip


async def answer(_request: Received, side: UpstreamSide) -> None:
    await side.send(plain_answer(b"") if _request.method == "HEAD" else plain_answer(b"{}"))


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with scripted_upstream(answer) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    listed = {"allowed_hosts": ("box.lan",), "allowed_origins": ("https://app.example",)}
    with running_gateway(upstream.url, folder=tmp_path_factory.mktemp("gateway"), **listed) as running:
        yield running


def refused(
    gateway: RunningGateway, upstream: ScriptedUpstream, route: tuple[str, str], headers: dict[str, str]
) -> int:
    """The status of a request of which the upstream sees nothing."""
    before = len(upstream.received)
    got = ask(gateway.port, route[1], b"{}" if route[0] == "POST" else b"", headers, route[0])
    assert len(upstream.received) == before
    assert got.header("access-control-allow-origin") is None
    return got.status


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:8787"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Content-Type": "text/plain"},
    ],
)
def test_pages_and_other_names_are_refused_on_every_route(
    gateway: RunningGateway, upstream: ScriptedUpstream, route: tuple[str, str], headers: dict[str, str]
) -> None:
    """O46, T15."""
    assert refused(gateway, upstream, route, headers) == 403


@pytest.mark.parametrize("host", BAD_HOSTS)
def test_only_names_of_this_machine_are_answered(
    gateway: RunningGateway, upstream: ScriptedUpstream, host: str
) -> None:
    assert refused(gateway, upstream, ("GET", "/healthz"), {"Host": host}) == 403


@pytest.mark.parametrize("host", GOOD_HOSTS)
def test_names_of_this_machine_are_answered(gateway: RunningGateway, host: str) -> None:
    assert ask(gateway.port, "/v1/messages", b"{}", {"Host": host}).status == 200


def test_two_names_are_no_name(gateway: RunningGateway, upstream: ScriptedUpstream) -> None:
    before = len(upstream.received)
    hosts = [("Host", "127.0.0.1"), ("Host", "127.0.0.1")]
    assert ask(gateway.port, "/v1/messages", b"{}", hosts).status in (400, 403)
    assert len(upstream.received) == before


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded; charset=x", "multipart/form-data"])
def test_a_listed_page_may_not_send_forms(gateway: RunningGateway, upstream: ScriptedUpstream, kind: str) -> None:
    headers = {"Origin": "https://app.example", "Content-Type": kind}
    assert refused(gateway, upstream, ("POST", "/v1/messages"), headers) == 403


def test_a_listed_page_is_served(gateway: RunningGateway) -> None:
    headers = {"Origin": "https://app.example", "Content-Type": "application/json", "Sec-Fetch-Site": "cross-site"}
    assert ask(gateway.port, "/v1/messages", b"{}", headers).status == 200


@pytest.mark.parametrize(
    "headers", [{"Content-Type": "text/plain"}, {"Sec-Fetch-Mode": "cors"}, {"Sec-Fetch-Site": "none"}]
)
def test_programs_may_send_what_they_like(gateway: RunningGateway, headers: dict[str, str]) -> None:
    assert ask(gateway.port, "/v1/messages", b"{}", headers).status == 200


def test_refusals_have_the_shape_of_the_api(gateway: RunningGateway) -> None:
    got = ask(gateway.port, "/v1/messages", b"{}", {"Host": "evil.example", "anthropic-version": "2023-06-01"})
    assert json.loads(got.body)["type"] == "error"
    assert "allowed_hosts" in json.loads(got.body)["error"]["message"]


def test_with_a_token_nothing_is_answered_without_it(
    upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with running_gateway(upstream.url, folder=tmp_path_factory.mktemp("token"), token="s3cret") as gateway:
        for route in ROUTES:
            for headers in ({}, {"X-Gatekeeper-Token": "wrong"}, {"Authorization": "Bearer s3cret"}):
                assert refused(gateway, upstream, route, headers) == 401
            body = b"{}" if route[0] == "POST" else b""
            assert ask(gateway.port, route[1], body, {"X-Gatekeeper-Token": "s3cret"}, route[0]).status == 200
        assert all(request.header("x-gatekeeper-token") is None for request in upstream.received)
