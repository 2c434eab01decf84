"""What a service says when it refuses, as errors that name the next step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from context_gatekeeper.entrypoints.endpoints import Endpoint
from context_gatekeeper.errors import UpstreamError

__all__ = ["base_resp_error", "refusal", "service_message"]

_MOST_MESSAGE_CHARS = 200
_UNAUTHORISED, _NO_CREDIT, _FORBIDDEN, _NOT_FOUND, _TOO_LARGE, _TOO_MANY = 401, 402, 403, 404, 413, 429
_FIRST_REFUSAL, _SERVER_SIDE = 400, 500
_BASE_RESP_STATUS: Mapping[int, int] = {
    1002: _TOO_MANY,
    1004: _UNAUTHORISED,
    1008: _NO_CREDIT,
    1039: _TOO_LARGE,
    2013: 400,
    2049: _UNAUTHORISED,
}
"""MiniMax's own codes -> the HTTP status of the same meaning (https://platform.minimax.io/docs/api-reference/errorcode)."""


def refusal(endpoint: Endpoint, status: int, content: str, *, retry_after: str | None = None) -> UpstreamError:
    """Error for an answer with an HTTP status of 300 and more.

    Args:
        endpoint: who answered.
        status: the HTTP status.
        content: the answer's text, JSON or not.
        retry_after: the header of that name.
    """
    message = service_message(content, endpoint)
    cause = f"it answered {status}" + (f" ({message})" if message else "")
    return UpstreamError(endpoint.name, cause, _next_step(endpoint, status, retry_after))


def base_resp_error(endpoint: Endpoint, body: Mapping[str, Any]) -> UpstreamError | None:
    """Error for a body whose ``base_resp`` reports one although the HTTP status is 200; else None."""
    base_resp = body.get("base_resp")
    if not isinstance(base_resp, dict) or not base_resp.get("status_code"):
        return None
    code = base_resp["status_code"]
    message = _clean(str(base_resp.get("status_msg") or "no reason given"), endpoint)
    status = _BASE_RESP_STATUS.get(code, _SERVER_SIDE) if isinstance(code, int) else _SERVER_SIDE
    return UpstreamError(endpoint.name, f"it answered with code {code} ({message})", _next_step(endpoint, status, None))


def service_message(content: str, endpoint: Endpoint) -> str:
    """The message inside an error body, on one line, shortened, without the key."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return _clean(content, endpoint)
    error = body.get("error", body) if isinstance(body, dict) else body
    message = error.get("message") if isinstance(error, dict) else error
    return _clean(message if isinstance(message, str) else content, endpoint)


def _clean(message: str, endpoint: Endpoint) -> str:
    if endpoint.api_key:
        message = message.replace(endpoint.api_key, "<key>")
    line = " ".join(message.split())
    return line if len(line) <= _MOST_MESSAGE_CHARS else f"{line[:_MOST_MESSAGE_CHARS]}..."


def _next_step(endpoint: Endpoint, status: int, retry_after: str | None) -> str:
    steps = {
        _UNAUTHORISED: f"check {endpoint.key_variable}",
        _FORBIDDEN: f"check {endpoint.key_variable} and what it may use",
        _NO_CREDIT: "top up the account",
        _NOT_FOUND: f"check the address {endpoint.shown_url} and the model {endpoint.model}",
        _TOO_LARGE: "lower --budget",
        _TOO_MANY: f"wait {retry_after} s and ask again" if retry_after else "wait a little and ask again",
    }
    if status in steps:
        return steps[status]
    if status < _FIRST_REFUSAL:
        return f"check the address {endpoint.shown_url}, the service has moved"
    return "ask again later" if status >= _SERVER_SIDE else f"check the model {endpoint.model} and the request"
