"""Requests of two runs, made comparable: only what a client draws by lot is replaced, all other bytes stay."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from context_gatekeeper.testing import ReceivedRequest
from tests.clients.scripted import is_main

_METADATA = '"client_metadata":'
_UUID = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_CODEX = (
    (re.compile(r"Chunk ID: [0-9a-f]{6}"), "Chunk ID: <chunk>"),
    (re.compile(r"Wall time: [0-9.]+ seconds"), "Wall time: <time>"),
    (re.compile(r'(turn_started_at_unix_ms\\*":)[0-9]+'), r"\1<time>"),
)
DRAWS_BY_LOT = frozenset({"codex"})
"""Clients whose prompts hold ids that no setting fixes."""
_OPENCODE_SESSION = re.compile(r"\bses_[0-9A-Za-z]{20,30}\b")
OF_THE_HOP = frozenset({"host", "connection", "accept-encoding", "content-length", "transfer-encoding", "keep-alive"})
"""Headers that belong to a connection, not to the request."""


@dataclass(frozen=True, slots=True)
class NormalRequest:
    """A request without what is drawn by lot."""

    target: str
    headers: tuple[tuple[str, str], ...]
    body: str


def normal_requests(client: str, requests: list[ReceivedRequest]) -> list[NormalRequest]:
    """Requests of one run: those of the agent's own conversation in order, the others behind them."""
    ordered = sorted(requests, key=lambda request: not is_main(request))
    names: dict[str, str] = {}
    return [_normal(client, request, names) for request in ordered]


def _normal(client: str, request: ReceivedRequest, names: dict[str, str]) -> NormalRequest:
    headers = sorted((name, value) for name, value in request.headers.items() if name not in OF_THE_HOP)
    body = request.raw.decode("utf-8")
    if client == "codex":
        body = _sorted_metadata(body)
    return NormalRequest(
        request.target,
        tuple((name, _without_lots(client, value, names)) for name, value in headers),
        _without_lots(client, body, names),
    )


def _sorted_metadata(body: str) -> str:
    """The keys of Codex's ``client_metadata`` come in no order."""
    start = body.index(_METADATA) + len(_METADATA)
    found, end = json.JSONDecoder().raw_decode(body, start)
    return body[:start] + json.dumps(found, sort_keys=True) + body[end:]


def _without_lots(client: str, text: str, names: dict[str, str]) -> str:
    """Ids are numbered by their first appearance: which ids are equal stays visible."""

    def number(found: re.Match[str]) -> str:
        return names.setdefault(found.group(), f"<id {len(names) + 1}>")

    if client == "opencode":
        return _OPENCODE_SESSION.sub(number, text)
    if client != "codex":
        return text
    for pattern, word in _CODEX:
        text = pattern.sub(word, text)
    return _UUID.sub(number, text)
