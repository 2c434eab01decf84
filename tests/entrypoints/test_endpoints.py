"""Which address, route, model and key a provider's name stands for."""

from __future__ import annotations

from pathlib import Path

import pytest

from context_gatekeeper.config import load_config
from context_gatekeeper.entrypoints.endpoints import Endpoint, Route, endpoint_of
from context_gatekeeper.errors import ConfigError


def endpoint(folder: Path, provider: str, env: dict[str, str] | None = None, model: str | None = None) -> Endpoint:
    return endpoint_of(load_config({"provider": provider, "model": model}, environ=env or {}, folder=folder))


@pytest.mark.parametrize(
    ("provider", "url", "route"),
    [
        ("minimax", "https://api.minimax.io/v1/chat/completions", Route.CHAT_COMPLETIONS),
        ("openai", "https://api.openai.com/v1/chat/completions", Route.CHAT_COMPLETIONS),
        ("anthropic", "https://api.anthropic.com/v1/messages", Route.MESSAGES),
    ],
)
def test_a_provider_needs_only_its_key(tmp_path: Path, provider: str, url: str, route: Route) -> None:
    found = endpoint(tmp_path, provider, {f"{provider.upper()}_API_KEY": " sk-1\n"})
    assert (found.url, found.route, found.api_key) == (url, route, "sk-1")
    assert found.model
    assert "sk-1" not in repr(found)


@pytest.mark.parametrize(
    ("base", "url", "route"),
    [
        ("http://h:1", "http://h:1/v1/chat/completions", Route.CHAT_COMPLETIONS),
        ("http://h:1/", "http://h:1/v1/chat/completions", Route.CHAT_COMPLETIONS),
        ("http://h/v1", "http://h/v1/chat/completions", Route.CHAT_COMPLETIONS),
        ("http://h/api/v4/", "http://h/api/v4/chat/completions", Route.CHAT_COMPLETIONS),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions", Route.CHAT_COMPLETIONS),
        ("http://h/anthropic", "http://h/anthropic/v1/messages", Route.MESSAGES),
        ("http://h/anthropic/v1", "http://h/anthropic/v1/messages", Route.MESSAGES),
        ("http://h/v1/messages", "http://h/v1/messages", Route.MESSAGES),
        ("http://h/v1?key=1", "http://h/v1/chat/completions?key=1", Route.CHAT_COMPLETIONS),
        ("http://[::1]:80/v1", "http://[::1]:80/v1/chat/completions", Route.CHAT_COMPLETIONS),
    ],
)
def test_an_address_tells_its_route_and_missing_parts_are_added(
    tmp_path: Path, base: str, url: str, route: Route
) -> None:
    by_url = endpoint(tmp_path, base, model="m")
    by_name = endpoint(tmp_path, "minimax", {"MINIMAX_API_KEY": "k", "MINIMAX_BASE_URL": base})
    assert (by_url.url, by_url.route) == (by_name.url, by_name.route) == (url, route)


def test_the_model_comes_from_the_flag_then_the_variable_then_the_provider(tmp_path: Path) -> None:
    env = {"OPENAI_API_KEY": "k", "OPENAI_MODEL": "from-variable"}
    assert endpoint(tmp_path, "openai", env, model="from-flag").model == "from-flag"
    assert endpoint(tmp_path, "openai", env).model == "from-variable"


def test_a_url_gets_only_the_key_that_was_meant_for_it(tmp_path: Path) -> None:
    env = {"OPENAI_API_KEY": "k", "MINIMAX_API_KEY": "k"}
    assert endpoint(tmp_path, "http://localhost:8080/v1", env, model="m").api_key is None
    assert endpoint(tmp_path, "http://localhost:8080/v1", {**env, "CGK_API_KEY": "mine"}, model="m").api_key == "mine"


@pytest.mark.parametrize(
    ("provider", "env", "model", "parts"),
    [
        ("minimax", {}, None, ("MINIMAX_API_KEY is neither in the environment nor in .env", "put MINIMAX_API_KEY=")),
        ("minimax", {"MINIMAX_API_KEY": "你的key"}, None, ("MINIMAX_API_KEY", "placeholder")),
        ("minimax", {"MINIMAX_API_KEY": "two words"}, None, ("MINIMAX_API_KEY", "placeholder")),
        ("bing", {}, None, ("provider 'bing'", "minimax, openai, anthropic")),
        ("ftp://h/v1", {}, "m", ("provider 'ftp://h/v1'", "http(s) URL")),
        ("http://", {}, "m", ("provider 'http://'", "http(s) URL")),
        ("http://h/v1", {}, None, ("no model is named", "--model")),
        ("http://[::1", {}, "m", ("provider 'http://[::1'", "http(s) URL")),
        ("http://h:99999/v1", {}, "m", ("provider 'http://h:99999/v1'", "http(s) URL")),
        ("http://h:port/v1", {}, "m", ("provider 'http://h:port/v1'", "http(s) URL")),
        ("openai", {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "h/v1"}, None, ("OPENAI_BASE_URL", "api.openai.com")),
        ("openai", {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://[::"}, None, ("OPENAI_BASE_URL", "correct it")),
        ("openai", {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "ftp://h"}, None, ("OPENAI_BASE_URL", "http(s)")),
    ],
)
def test_what_is_missing_is_named_with_the_next_step(
    tmp_path: Path, provider: str, env: dict[str, str], model: str | None, parts: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as caught:
        endpoint(tmp_path, provider, env, model)
    for part in parts:
        assert part in str(caught.value)


def test_a_password_in_an_address_is_used_and_not_shown(tmp_path: Path) -> None:
    found = endpoint(tmp_path, "http://ann:secret@h:1/v1", model="m")
    assert found.url == "http://ann:secret@h:1/v1/chat/completions"
    assert found.shown_url == "http://h:1/v1/chat/completions"
