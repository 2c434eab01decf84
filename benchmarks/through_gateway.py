"""Recorded sessions sent through a running gateway to a provider that simulates its prompt cache.

Each model call of a session is sent as its client would have sent it: straight to the provider, and through
``cgk serve``. What the provider bills for both is compared with what `cgk replay`'s planner expects of the same texts.
No page faults: nobody reads the answers.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.recorded_requests import plain_session, request_bodies
from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.core.ledger import PromptCache
from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.gateway.live_session import resident_tokens
from context_gatekeeper.replay.catalogue import OUR_POLICIES, policy_makers
from context_gatekeeper.replay.policies import AppendOnly, Policy
from context_gatekeeper.testing import FakeProvider
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentSession
from context_gatekeeper.wire import decode_request
from context_gatekeeper.wire.records import WireApi

__all__ = ["ThroughSettings", "measure_through_gateway"]

_MODEL = "claude-opus-4-8"
_SYSTEM = "You are a coding agent. " + "Work step by step and say what you did. " * 600
_TOOLS = ({"name": "tool", "description": "Any tool.", "input_schema": {"type": "object"}},)
_PRICES = "anthropic-5m"
_WAIT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class ThroughSettings:
    """What is sent."""

    data: Path
    min_calls: int = 100
    most_sessions: int | None = None
    policy: str = "ours"
    cards: bool = False
    """Whether the gateway adds cards, which the replay's policies do not."""
    folder: Path = Path()
    """For the gateway's files."""


def measure_through_gateway(settings: ThroughSettings, say: Callable[[str], None]) -> dict[str, Any]:
    """The bills, per session and together, in plain input tokens without outputs.

    ``ratio`` is direct over gateway, ``replay_ratio`` append-only over the policy by the replay's own planner,
    ``difference`` what the first lacks of the second.
    """
    rows = []
    for session in _sessions(settings):
        bodies = list(request_bodies(session, model=_MODEL, system=_SYSTEM, tools=_TOOLS))
        direct, _ = _sent(bodies, None)
        gateway, notes = _sent(bodies, settings)
        resident = resident_tokens(decode_request(WireApi.MESSAGES, bodies[0]))
        expected = _replayed(session, settings.policy, resident)
        row = {
            "session": session.session_id,
            "calls": len(bodies),
            "direct": _told(direct),
            "gateway": _told(gateway),
            "notes": notes,
            "prefix_breaks": len(gateway.prefix_breaks()),
            "refusals": len(gateway.refusals),
            "replay_append_only": round(expected[0]),
            "replay_policy": round(expected[1]),
        }
        rows.append(row | _ratios(row))
        say(json.dumps(rows[-1]))
    return {"sessions": rows, **_ratios(_summed(rows))}


def _sessions(settings: ThroughSettings) -> list[AgentSession]:
    found = [plain_session(one) for one in read_sessions(settings.data)]
    found = [one for one in found if sum(message.is_call for message in one.messages) >= settings.min_calls]
    return found[: settings.most_sessions]


def _told(provider: FakeProvider) -> dict[str, Any]:
    totals = provider.totals
    units = provider.bill(PRICES[_PRICES]) - PRICES[_PRICES].output * totals.output
    return {"read": totals.read, "written": totals.written, "plain": totals.plain, "units": round(units)}


def _summed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "direct": {"units": sum(row["direct"]["units"] for row in rows)},
        "gateway": {"units": sum(row["gateway"]["units"] for row in rows)},
        "replay_append_only": sum(row["replay_append_only"] for row in rows),
        "replay_policy": sum(row["replay_policy"] for row in rows),
    }


def _ratios(row: Mapping[str, Any]) -> dict[str, float]:
    ratio = row["direct"]["units"] / max(1, row["gateway"]["units"])
    expected = row["replay_append_only"] / max(1, row["replay_policy"])
    return {"ratio": round(ratio, 4), "replay_ratio": round(expected, 4), "difference": round(1 - ratio / expected, 4)}


def _sent(bodies: Sequence[bytes], settings: ThroughSettings | None) -> tuple[FakeProvider, dict[str, int]]:
    """Send all bodies, through a gateway when there are settings for one; the provider, and the notes with counts."""
    notes: dict[str, int] = {}
    with FakeProvider(lambda _: "ok", checks_thinking=False) as provider:
        if settings is None:
            for body in bodies:
                _post(provider.url, body)
            return provider, notes
        with _gateway(provider.url, settings) as url:
            for body in bodies:
                note = _post(url, body)
                notes[note] = notes.get(note, 0) + 1
                while not _is_idle(url):  # an agent works meanwhile
                    pass
    return provider, notes


@contextmanager
def _gateway(upstream: str, settings: ThroughSettings) -> Iterator[str]:
    config = settings.folder / "gateway.toml"
    cards = "true" if settings.cards else "false"
    config.write_text(f'[gateway.planner_settings]\npolicy = "{settings.policy}"\ncards = {cards}\n')
    command = [sys.executable, "-m", "context_gatekeeper.entrypoints.cli", "serve", "--json", "--port", "0"]
    command += ["--upstream", upstream, "--store", str(settings.folder / "pages.db")]
    environment = {"CGK_CONFIG": str(config), "HOME": str(settings.folder), "PATH": ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:  # noqa: S603
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield json.loads(line)["url"]
        finally:
            process.terminate()


def _post(url: str, body: bytes) -> str:
    headers = {
        "content-type": "application/json",
        "x-api-key": "test-key",
        "anthropic-version": "2023-06-01",
        "x-claude-code-session-id": "recorded",
    }
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_WAIT_SECONDS)
    connection.request("POST", "/v1/messages", body, headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.getheader("x-gatekeeper") or ""


def _is_idle(url: str) -> bool:
    """Whether the planner has done what it does between two calls; frames are answered in order."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_WAIT_SECONDS)
    connection.request("GET", "/stats")
    told = json.loads(connection.getresponse().read())
    connection.close()
    return bool(told["status"].get("is_idle", True))


def _replayed(session: AgentSession, policy: str, resident: int) -> tuple[float, float]:
    """Units of append-only and of the policy by the replay's rules, without faults and outputs.

    Args:
        session: what is replayed.
        policy: its name.
        resident: tokens in front of the conversation.
    """
    prices = PRICES[_PRICES]
    log = SessionLog()
    name = policy if policy in OUR_POLICIES else f"ours-{policy}"
    policies: list[Policy] = [AppendOnly(log), policy_makers([name], session, prices)[name](log, resident)]
    caches = [PromptCache(prices), PromptCache(prices)]
    for place, message in enumerate(session.messages):
        if message.is_call and place:
            units = []
            for one, cache in zip(policies, caches, strict=True):
                request = one.request(is_cold=False)
                common = resident + request.common_tokens if cache.bill.calls else 0
                units.append(cache.call(resident + request.tokens, common, is_cold=False))
            policies[1].billed(units[1], units[0])
        pieces = log.add_message(message)
        for one in policies:
            one.add(pieces)
    return caches[0].bill.units, caches[1].bill.units
