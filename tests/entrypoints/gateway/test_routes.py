"""Where a request goes: by its path, by the settings, by the form of its headers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from context_gatekeeper.config_gateway import BUILT_IN_UPSTREAMS, GatewayConfig, Upstream
from context_gatekeeper.entrypoints.gateway.routes import UnknownUpstreamError, error_body, find_target, is_ended

CONFIG = GatewayConfig()
ANTHROPIC, OPENAI = "https://api.anthropic.com", "https://api.openai.com"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"


@pytest.mark.parametrize(
    ("method", "path", "route", "upstream", "url"),
    [
        ("POST", "/v1/messages", "messages", "anthropic", f"{ANTHROPIC}/v1/messages"),
        ("POST", "/v1/messages/count_tokens", "count_tokens", "anthropic", f"{ANTHROPIC}/v1/messages/count_tokens"),
        ("POST", "/v1/messages/batches", "", "anthropic", f"{ANTHROPIC}/v1/messages/batches"),
        ("GET", "/v1/messages", "", "anthropic", f"{ANTHROPIC}/v1/messages"),
        ("POST", "/v1/chat/completions", "chat", "openai", f"{OPENAI}/v1/chat/completions"),
        ("POST", "/chat/completions", "chat", "openai", f"{OPENAI}/v1/chat/completions"),
        ("POST", "/v1/responses", "responses", "openai", f"{OPENAI}/v1/responses"),
        ("POST", "/v1/responses/compact", "", "openai", f"{OPENAI}/v1/responses/compact"),
        ("POST", "/v1/messages/", "", "anthropic", f"{ANTHROPIC}/v1/messages/"),
        ("GET", "/v1/models", "", "openai", f"{OPENAI}/v1/models"),
        ("HEAD", "/", "", "anthropic", f"{ANTHROPIC}/"),
        ("POST", "/api/event_logging/batch", "", "anthropic", f"{ANTHROPIC}/api/event_logging/batch"),
        ("POST", "/u/deepseek/v1/chat/completions", "chat", "deepseek", "https://api.deepseek.com/v1/chat/completions"),
        ("POST", "/u/deepseek/v1/messages", "messages", "deepseek", "https://api.deepseek.com/anthropic/v1/messages"),
        ("POST", "/u/minimax/v1/messages", "messages", "minimax", "https://api.minimax.io/anthropic/v1/messages"),
        ("POST", "/u/minimax/chat/completions", "chat", "minimax", "https://api.minimax.io/v1/chat/completions"),
        ("POST", "/u/gemini/v1/chat/completions", "chat", "gemini", f"{GEMINI}/chat/completions"),
        ("GET", "/u/gemini/v1/models", "", "gemini", f"{GEMINI}/models"),
        ("GET", "/u/anthropic/v1/models", "", "anthropic", f"{ANTHROPIC}/v1/models"),
        ("GET", "/u/gemini/", "", "gemini", f"{GEMINI}/"),
        ("GET", "/u/openai", "", "openai", f"{OPENAI}/v1/"),
        ("GET", "/user/x", "", "openai", f"{OPENAI}/v1/user/x"),
    ],
)
def test_the_path_chooses(method: str, path: str, route: str, upstream: str, url: str) -> None:
    target = find_target(CONFIG, method, path, {})
    assert (target.route, target.upstream, target.url) == (route, upstream, url)


@pytest.mark.parametrize(
    ("headers", "upstream"),
    [
        ({b"anthropic-version": b"2023-06-01"}, "anthropic"),
        ({b"x-api-key": b"k"}, "anthropic"),
        ({b"user-agent": b"claude-cli/2.1.332 (external, cli)"}, "anthropic"),
        ({b"authorization": b"Bearer sk-ant-oat01-x"}, "anthropic"),
        ({b"authorization": b"bearer SK-ANT-x"}, "anthropic"),
        ({b"authorization": b"Bearer sk-proj-x"}, "openai"),
        ({}, "openai"),
    ],
)
def test_a_shared_path_goes_to_whose_credential_it_carries(headers: dict[bytes, bytes], upstream: str) -> None:
    target = find_target(CONFIG, "GET", "/v1/models", headers)
    assert target.upstream == upstream
    assert target.is_anthropic is (upstream == "anthropic")


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("http://h:1", "/v1/messages", "http://h:1/v1/messages"),
        ("http://h:1", "/v1/chat/completions", "http://h:1/v1/chat/completions"),
        ("http://h:1", "/chat/completions", "http://h:1/v1/chat/completions"),
        ("http://h:1", "/v1/models", "http://h:1/v1/models"),
        ("http://h:1", "/", "http://h:1/"),
        ("http://h:1/v1", "/v1/messages", "http://h:1/v1/messages"),
        ("http://h:1/v1", "/v1/responses", "http://h:1/v1/responses"),
        ("http://h:1/v1", "/v1", "http://h:1/v1/"),
        ("http://h:1/anthropic", "/v1/messages", "http://h:1/anthropic/v1/messages"),
        ("http://h:1/api/paas/v4", "/v1/chat/completions", "http://h:1/api/paas/v4/chat/completions"),
        ("http://h:1/api/paas/v4", "/v1beta/x", "http://h:1/api/paas/v4/v1beta/x"),
    ],
)
def test_one_upstream_for_everything(base: str, path: str, url: str) -> None:
    config = replace(CONFIG, upstream=base, upstreams={**BUILT_IN_UPSTREAMS, "default": Upstream(base, base, "gpt-5")})
    target = find_target(config, "POST", path, {})
    assert (target.upstream, target.url, target.prices) == ("default", url, "gpt-5")


@pytest.mark.parametrize("path", ["/u/nowhere/v1/messages", "/u/openai/v1/messages", "/u/default/v1/responses"])
def test_an_upstream_that_is_not_there_is_an_error(path: str) -> None:
    with pytest.raises(UnknownUpstreamError, match=path.split("/")[2]):
        find_target(CONFIG, "POST", path, {})


@pytest.mark.parametrize(
    "path", ["/u/", "/u//v1/messages", "/u/a b/v1/messages", "/u/%6fpenai/v1/messages", "/u/" + "a" * 65]
)
def test_what_names_no_upstream_is_a_path_like_any_other(path: str) -> None:
    assert find_target(CONFIG, "POST", path, {}).upstream == "openai"


def test_errors_have_the_shape_of_the_api() -> None:
    assert error_body("m", "k", is_anthropic=True) == b'{"type": "error", "error": {"type": "k", "message": "m"}}'
    assert b'"code": null' in error_body("m", "k", is_anthropic=False)


@pytest.mark.parametrize(
    ("route", "last"),
    [
        ("messages", b'event: message_stop\ndata: {"type":"message_stop"}'),
        ("chat", b"data: [DONE]"),
        ("responses", b'event: response.completed\r\ndata: {"type":"response.completed"}'),
        ("responses", b'data: {"type":"response.incomplete"}'),
        ("responses", b'data: {"type":"response.failed"}'),
    ],
)
@pytest.mark.parametrize("line", [b"\n", b"\r\n"])
def test_a_stream_ends_with_the_last_event_of_its_api(route: str, last: bytes, line: bytes) -> None:
    kind = "text/event-stream; charset=utf-8"
    before = b"data: {}" + line * 2
    assert is_ended(route, kind, before + last + line * 2)
    assert is_ended(route, kind, last)
    assert not is_ended(route, kind, before)
    assert not is_ended(route, kind, b"")
    assert not is_ended(route, kind, last + line * 2 + before)


def test_what_is_no_stream_ends_with_its_last_byte() -> None:
    assert is_ended("chat", "application/json", b"{}")
    assert is_ended("count_tokens", "text/event-stream", b"")


@pytest.mark.parametrize(
    ("url", "native", "is_own"),
    [
        ("https://api.anthropic.com", "", True),
        ("https://eu.api.anthropic.com/v1", "", True),
        ("https://api.anthropic.com", "off", False),
        ("https://api.anthropic.com.evil.org", "", False),
        ("https://proxy.example.org", "", False),
        ("https://proxy.example.org", "on", True),
        ("https://api.openai.com/v1", "", False),
    ],
)
def test_a_providers_own_service_is_known_by_its_host(url: str, native: str, is_own: bool) -> None:
    config = GatewayConfig(upstreams={"x": Upstream("", url, native=native)})
    assert find_target(config, "POST", "/u/x/v1/messages", {}).is_own_api is is_own


def test_of_openais_api_it_is_openais_service() -> None:
    config = GatewayConfig()
    assert find_target(config, "POST", "/v1/responses", {}).is_own_api
    assert not find_target(config, "POST", "/u/deepseek/v1/chat/completions", {}).is_own_api
