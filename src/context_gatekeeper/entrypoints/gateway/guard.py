"""Who may speak to the gateway: requests for this machine, from programs, not from web pages; checked before any work.

A page in a browser reaches a local server by a form, by ``fetch``, or by a name that resolves to 127.0.0.1 (DNS
rebinding). The first two say so in ``Origin`` or ``Sec-Fetch-Site``, the third in ``Host``.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from context_gatekeeper.config_gateway import GatewayConfig
from context_gatekeeper.entrypoints.gateway.headers import TOKEN_HEADER
from context_gatekeeper.entrypoints.gateway.routes import error_body

__all__ = ["Guard", "send_error"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_UNAUTHORISED, _FORBIDDEN, _UPGRADE = 401, 403, 426
_FORM_TYPES = (b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data")
"""What a page may send without asking first."""
_HOST = re.compile(r"(?:\[([0-9a-fA-F:.]{2,45})\]|([^:\[\]@/?#\s]{1,253}))(?::[0-9]{1,5})?")
_ALL_ADDRESSES = ("", "0.0.0.0", "::")  # noqa: S104 - to leave them out
_OUTSIDE_SITES = (b"cross-site", b"same-site")
_WEBSOCKET = b"websocket"
_WEBSOCKET_TEXT = (
    "websocket: the gateway relays HTTP; "
    "set supports_websockets = false for this provider in the client, which then sends plain requests"
)


class Guard:
    """Answers what must not come in, hands on the rest (an ASGI application around another)."""

    def __init__(self, app: Application, *, config: GatewayConfig) -> None:
        self._app = app
        self._token = config.token.encode()
        # An address that stands for all is a name for this machine that a page can use as well.
        named = () if config.host in _ALL_ADDRESSES else (config.host,)
        self._hosts = {host.lower() for host in ("localhost", *named, *config.allowed_hosts)}
        self._origins = {origin.rstrip("/").lower().encode() for origin in config.allowed_origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        headers = scope["headers"]
        refusal = self._refusal(headers)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, message = refusal
        await send_error(send, status, message, is_anthropic=any(name == b"anthropic-version" for name, _ in headers))

    def _refusal(self, headers: list[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not self._is_allowed_host(hosts[0].decode("latin-1")):
            step = "use 127.0.0.1 or localhost, or list it in [gateway] allowed_hosts"
            return _FORBIDDEN, f"Host: the gateway does not answer to this name; {step}"
        found = dict(headers)
        if self._is_of_page(found):
            step = "list its origin in [gateway] allowed_origins"
            return _FORBIDDEN, f"Origin: web pages may not use the gateway; {step}"
        if self._token and not hmac.compare_digest(found.get(TOKEN_HEADER, b""), self._token):
            return _UNAUTHORISED, "x-gatekeeper-token: it is missing or wrong; send the secret of `cgk serve --token`"
        if any(name == b"upgrade" and _WEBSOCKET in _listed(value) for name, value in headers):
            return _UPGRADE, _WEBSOCKET_TEXT  # Any other protocol is offered only, and plain HTTP is an answer to that.
        return None

    def _is_allowed_host(self, host: str) -> bool:
        name = _without_port(host).lower()
        if name in self._hosts:
            return True
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False

    def _is_of_page(self, headers: Mapping[bytes, bytes]) -> bool:
        origin = headers.get(b"origin")
        if origin is None:
            return headers.get(b"sec-fetch-site", b"").lower() in _OUTSIDE_SITES
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        return origin.lower() not in self._origins or kind in _FORM_TYPES


def _listed(value: bytes) -> list[bytes]:
    """The names in a header that lists some."""
    return [name.strip().lower() for name in value.split(b",")]


def _without_port(host: str) -> str:
    """The name in a ``Host`` header; "" for what is none."""
    found = _HOST.fullmatch(host)
    return (found[1] or found[2]) if found else ""


async def send_error(
    send: Send, status: int, message: str, *, is_anthropic: bool, kind: str = "gatekeeper_error", note: str = ""
) -> None:
    """An answer of the gateway's own, after which the connection is closed: its request may not have been read."""
    body = error_body(message, kind, is_anthropic=is_anthropic)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    if note:
        headers.append((b"x-gatekeeper", note.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
