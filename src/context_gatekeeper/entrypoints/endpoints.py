"""Where a chat is sent: address, route, model and key of a service."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit, urlunsplit

from context_gatekeeper.config import PROVIDERS, Config
from context_gatekeeper.errors import ConfigError

__all__ = ["Endpoint", "Route", "endpoint_of"]

_VERSION = "/v1"
_URL_KEY_VARIABLE = "CGK_API_KEY"
_USER_INFO = re.compile(r"//[^/?#]*@")
_FIRST_PRINTABLE, _LAST_PRINTABLE = "!", "~"


class Route(StrEnum):
    """The two kinds of API that are spoken; the value is the end of their path."""

    CHAT_COMPLETIONS = "/chat/completions"
    MESSAGES = "/messages"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One service, ready to be called."""

    name: str
    """What errors call it."""
    url: str
    """Address of the route."""
    route: Route
    model: str
    api_key: str | None = field(default=None, repr=False)
    key_variable: str = _URL_KEY_VARIABLE
    """Variable that holds the key, for errors."""

    @property
    def shown_url(self) -> str:
        """The address as errors show it: without a name and password in it."""
        return _USER_INFO.sub("//", self.url, count=1)


def endpoint_of(config: Config) -> Endpoint:
    """The service that the settings name.

    A provider's name stands for its usual address; a URL is taken as it is. Its path tells the
    route: one with ``/anthropic`` or ending in ``/messages`` speaks Anthropic's Messages, any other
    OpenAI's Chat Completions. What is missing of ``/v1`` and the route is added.

    Raises:
        ConfigError: unknown provider, a URL that is none, no key for a provider that wants one.
    """
    provider = PROVIDERS.get(config.provider)
    if provider is None:
        return _endpoint_of_url(config)
    key = _checked_key(config.secrets.get(provider.key_variable), provider.key_variable)
    if key is None:
        raise ConfigError(
            f"provider {provider.name}",
            f"{provider.key_variable} is neither in the environment nor in .env",
            f"put {provider.key_variable}=... into .env",
        )
    model = config.model or config.secrets.get(provider.model_variable) or provider.model
    base_url = config.secrets.get(provider.url_variable) or provider.base_url
    if _host(base_url) is None:
        raise ConfigError(
            provider.url_variable, "it is no http(s) address", f"correct it, or unset it for {provider.base_url}"
        )
    route = Route.MESSAGES if provider.name == "anthropic" else _route(base_url)
    return Endpoint(provider.name, _route_url(base_url, route), route, model, key, provider.key_variable)


def _endpoint_of_url(config: Config) -> Endpoint:
    host = _host(config.provider)
    if host is None:
        raise ConfigError(
            f"provider {config.provider!r}",
            "there is no such provider and it is no http(s) address",
            f"use {', '.join(PROVIDERS)} or an http(s) URL",
        )
    if not config.model:
        raise ConfigError(f"provider {host}", "no model is named", "add --model NAME or set CGK_MODEL")
    route = _route(config.provider)
    key = _checked_key(config.api_key, _URL_KEY_VARIABLE)
    return Endpoint(host, _route_url(config.provider, route), route, config.model, key)


def _host(url: str) -> str | None:
    """Name of the host of an http(s) address; None when it is no such address."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in {"http", "https"} and parts.port != 0  # a bad port raises
    except ValueError:
        return None
    return (parts.hostname or None) if is_address else None


def _route(url: str) -> Route:
    path = urlsplit(url).path.rstrip("/")
    return Route.MESSAGES if "/anthropic" in path or path.endswith(Route.MESSAGES) else Route.CHAT_COMPLETIONS


def _route_url(url: str, route: Route) -> str:
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    if not path.endswith(route):
        # OpenAI's base addresses hold the version (a path of their own may replace it), Anthropic's do not.
        has_version = path.endswith(_VERSION) or (route is Route.CHAT_COMPLETIONS and bool(path))
        path += route if has_version else f"{_VERSION}{route}"
    return urlunsplit(parts._replace(path=path))


def _checked_key(key: str | None, variable: str) -> str | None:
    """``key`` without surrounding blanks; None when there is none."""
    stripped = (key or "").strip()
    if any(not _FIRST_PRINTABLE <= char <= _LAST_PRINTABLE for char in stripped):
        raise ConfigError(variable, "the key holds characters that no key has", "replace the placeholder by your key")
    return stripped or None
