"""Which API a request speaks, which upstream gets it, and under what address: from its path and the settings alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from context_gatekeeper.config_gateway import GatewayConfig, Upstream

__all__ = [
    "OWN_PATHS",
    "UNNAMED",
    "Target",
    "UnknownUpstreamError",
    "error_body",
    "find_target",
    "is_ended",
    "looks_anthropic",
]

OWN_PATHS = ("/healthz", "/metrics", "/stats")
"""Answered by the gateway itself, as is ``/recall``; everything else is the upstream's."""
UNNAMED = "default"
"""Name of the upstream that ``--upstream`` gives."""
_ROUTES: Mapping[str, str] = {
    "/v1/messages": "messages",
    "/v1/messages/count_tokens": "count_tokens",
    "/v1/chat/completions": "chat",
    "/chat/completions": "chat",
    "/v1/responses": "responses",
    "/responses": "responses",
}
"""Paths whose POST is planned; those without version are of clients that were given an address without it."""
_OWN_HOSTS = ("api.openai.com", "api.anthropic.com")
"""Of OpenAI and of Anthropic."""
_NAMED = re.compile(r"/u/([A-Za-z0-9_.-]{1,64})(?=/|\Z)")
_VERSION = "/v1"
_ANTHROPIC_PATHS = ("/v1/messages", "/v1/complete", "/api/")
_ANTHROPIC_KEY = re.compile(rb"(?:bearer\s+)?sk-ant-", re.IGNORECASE)
_ENDS: Mapping[str, tuple[bytes, ...]] = {
    "messages": (b"message_stop",),
    "chat": (b"[DONE]",),
    "responses": (b"response.completed", b"response.incomplete", b"response.failed"),
}
"""What the last event of a stream says that ended as its API ends it."""
_TAIL_BYTES = 16 * 1024
_LAST_EVENT = re.compile(rb"\r?\n\r?\n(?=[^\r\n])")


class UnknownUpstreamError(Exception):
    """The path names an upstream that the configuration does not have."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where one request goes."""

    route: str
    """``messages``, ``count_tokens``, ``chat``, ``responses``; "" for what is passed through."""
    upstream: str
    """Its name in the configuration."""
    prices: str
    url: str
    """Without the query."""
    is_anthropic: bool
    """Whose shape our own errors take."""
    is_own_api: bool = False
    """Whether it is the service of the API's own provider."""


def find_target(config: GatewayConfig, method: str, raw_path: str, headers: Mapping[bytes, bytes]) -> Target:
    """Choose by the path's ``/u/NAME``, else by ``--upstream``, else by whose API it is.

    Args:
        config: the settings.
        method: in capitals.
        raw_path: as received, without the query.
        headers: lower-case names; tell the two large APIs apart where the path does not, by form alone.

    Raises:
        UnknownUpstreamError: ``/u/NAME`` with a name that is not configured, or one that has no such API.
    """
    named = _NAMED.match(raw_path)
    path = raw_path[named.end() :] if named else raw_path
    route = _ROUTES.get(path, "") if method == "POST" else ""
    is_anthropic = route in ("messages", "count_tokens") if route else looks_anthropic(path, headers)
    name = named[1] if named else UNNAMED if config.upstream else "anthropic" if is_anthropic else "openai"
    upstream = config.upstreams.get(name)
    if upstream is None:
        raise UnknownUpstreamError(name)
    if not upstream.base(is_anthropic=is_anthropic):
        if route:
            raise UnknownUpstreamError(name)
        is_anthropic = not is_anthropic  # What is passed through needs no API in common, only an address.
    url = _address(upstream, path, is_anthropic=is_anthropic)
    is_own = upstream.native == "on" or (not upstream.native and _is_own_api(url, is_anthropic=is_anthropic))
    return Target(route, name, upstream.prices, url, is_anthropic, is_own)


def looks_anthropic(path: str, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request seems to be of Anthropic's API, by its path without an upstream's name, or its headers."""
    if path == "/" or path.startswith(_ANTHROPIC_PATHS):  # The root alone is asked for by Claude Code, to probe.
        return True
    if b"anthropic-version" in headers or b"x-api-key" in headers or headers.get(b"user-agent", b"")[:6] == b"claude":
        return True
    return _ANTHROPIC_KEY.match(headers.get(b"authorization", b"")) is not None


def _is_own_api(url: str, *, is_anthropic: bool) -> bool:
    """Whether an address is that of the API's own provider, regional ones included."""
    host, own = urlsplit(url).hostname or "", _OWN_HOSTS[is_anthropic]
    return host == own or host.endswith(f".{own}")


def _address(upstream: Upstream, path: str, *, is_anthropic: bool) -> str:
    """As the APIs' own clients put it together: an OpenAI address holds the version, an Anthropic address does not."""
    base = upstream.base(is_anthropic=is_anthropic).rstrip("/")
    has_path = base.count("/") > len("//")
    is_versioned = base.endswith(_VERSION) if is_anthropic else has_path
    if is_versioned and (path == _VERSION or path.startswith(f"{_VERSION}/")):
        path = path[len(_VERSION) :]
    elif not is_anthropic and not has_path and path in ("/chat/completions", "/responses"):
        path = _VERSION + path
    return base + (path or "/")


def error_body(message: str, kind: str, *, is_anthropic: bool) -> bytes:
    """An error of ours in the shape of the client's API."""
    if is_anthropic:
        return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": None}}).encode()


def is_ended(route: str, content_type: str, content: bytes) -> bool:
    """Whether an answer that came to its last byte ended as its API ends it; only event streams can tell."""
    ends = _ENDS.get(route)
    if ends is None or not content_type.startswith("text/event-stream"):
        return True
    last = _LAST_EVENT.split(content[-_TAIL_BYTES:].rstrip())[-1]
    return any(end in last for end in ends)
