"""Error bodies as each API writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from context_gatekeeper.wire.records import WireApi

__all__ = ["error_event", "minimax_error", "service_error"]

_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_OPENAI_TYPES = {401: "invalid_request_error", 429: "rate_limit_exceeded", 503: "service_unavailable_error"}
_OPENAI_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
_MINIMAX_TYPES = {400: "bad_request_error", 401: "authorized_error"}
_FIRST_OWN_FAULT = 500


def service_error(api: WireApi | None, status: int, message: str, request_id: str) -> bytes:
    """Anthropic's error body for its API, OpenAI's for all others."""
    if api is WireApi.MESSAGES:
        kind = _ANTHROPIC_TYPES.get(status, "api_error")
        return _text({"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id})
    kind = _OPENAI_TYPES.get(status, "server_error" if status >= _FIRST_OWN_FAULT else "invalid_request_error")
    return _text({"error": {"message": message, "type": kind, "param": None, "code": _OPENAI_CODES.get(status)}})


def error_event(api: WireApi, number: int) -> bytes:
    """The event with which a stream tells of an error; ``number`` is its place in the stream."""
    if api is WireApi.MESSAGES:
        error = {"type": "overloaded_error", "message": "Overloaded"}
        return b"event: error\ndata: " + _text({"type": "error", "error": error}) + b"\n\n"
    message = "The server had an error while processing your request."
    if api is WireApi.CHAT:
        error = {"message": message, "type": "server_error"}
        return b"data: " + _text({"error": {**error, "param": None, "code": None}}) + b"\n\n"
    body = {"type": "error", "code": "server_error", "message": message, "param": None, "sequence_number": number}
    return b"event: error\ndata: " + _text(body) + b"\n\n"


def minimax_error(status: int, message: str) -> bytes:
    """MiniMax's error body."""
    error = {"type": _MINIMAX_TYPES.get(status, "api_error"), "message": message, "http_code": str(status)}
    return _text({"type": "error", "error": error, "request_id": "fake"})


def _text(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()
