"""One conversation of a client with a scripted model, beside the gateway or through it."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from context_gatekeeper.config_gateway import Upstream
from context_gatekeeper.testing import FakeProvider, FakeReply, PrefixBreak, ReceivedRequest
from context_gatekeeper.testing.journal import conversation_key
from context_gatekeeper.wire.records import WireApi
from tests.clients.cases import KEY, Client, ClientRun, Place
from tests.clients.scripted import REFUSED, RETRY_AFTER, Read, Refuses, Says, ScriptedModel, Shell, Turn, calls, is_main
from tests.entrypoints.gateway.running import running_gateway

BESIDE, THROUGH = "beside", "through"
PLANNER = "context_gatekeeper.gateway.planning:make_planner"
NOTES = "".join(f"note {number}: the lamp at pier {number} was seen to.\n" for number in range(1, 31))
SUB_AGENT = "x-claude-code-agent-id"
"""Header of Claude Code's sub-agents, which have the session of their agent."""
FIRST_ANSWER = "The notes hold 30 lines."
SECOND_ANSWER = "The file still says seven."
PROMPTS = ("Make a file, then read the notes.", "Look at the file again.", "And once more.")
OVERLOADED = {WireApi.MESSAGES: (529, "Overloaded"), WireApi.CHAT: (429, "Slow down"), WireApi.RESPONSES: (429, "Wait")}
FINAL = {WireApi.MESSAGES: 403, WireApi.CHAT: 400, WireApi.RESPONSES: 400}
"""Refusals that are not answered by another try: Claude Code takes a 400 apart in seven, Codex repeats a 403."""


def conversation(client: Client) -> tuple[Turn, ...]:
    """A tool loop with a refused call that is tried again, one that is resumed, and one that the provider refuses."""
    return (
        calls(Shell("printf 'seven\\n' > made.txt && cat made.txt")),
        Refuses(*OVERLOADED[client.api], RETRY_AFTER),
        # The second ends last whatever the order of their starts: clients send results in the order of their ends.
        calls(Read("notes.txt"), Shell("sleep 0.5; wc -l < notes.txt")),
        Says(FIRST_ANSWER),
        calls(Shell("cat made.txt made.txt")),
        Says(SECOND_ANSWER),
        Refuses(FINAL[client.api], REFUSED),
    )


@dataclass(frozen=True, slots=True)
class Recording:
    """What the user saw and what the provider saw."""

    run: ClientRun
    provider: FakeProvider
    folder: Path
    stats: dict[str, Any]
    """The gateway's ``/stats``; empty beside it."""
    metrics: str
    used: int = 0
    """Turns of the script that were taken."""

    @property
    def main(self) -> list[ReceivedRequest]:
        """Requests of the agent's own conversation, refused ones included."""
        return [request for request in self.provider.log if request.api is not None and is_main(request)]

    def count(self, name: str, **labels: str) -> float:
        """A counter of the gateway's, summed over all labels but those given."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        lines = [line for line in self.metrics.splitlines() if line.startswith((f"{name}{{", f"{name} "))]
        return sum(float(line.rpartition(" ")[2]) for line in lines if all(word in line for word in wanted))

    @property
    def prefix_breaks(self) -> list[PrefixBreak]:
        """Requests that do not extend the one before them; sub-agents and requests without tools are apart."""

        def key(request: ReceivedRequest) -> Hashable:
            return conversation_key(request), is_main(request), request.headers.get(SUB_AGENT, "")

        return self.provider.prefix_breaks(key)

    @property
    def unscripted_refusals(self) -> list[str]:
        """What the provider refused for reasons of its own."""
        scripted = {REFUSED, *(text for _, text in OVERLOADED.values())}
        return [refusal for refusal in self.provider.refusals if refusal not in scripted]


def record_conversation(client: Client, way: str, root: Path) -> Recording:
    """The short conversation, in the same folders every time."""
    place_folders(root)
    (root / "folder" / "notes.txt").write_text(NOTES, "utf-8")
    return record(client, way, root, conversation(client), PROMPTS)


def place_folders(root: Path) -> None:
    """New folders under the same names, so that their paths say nothing of the run."""
    for name in ("folder", "home", "gateway"):
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir(parents=True)


def record(client: Client, way: str, root: Path, turns: Sequence[Turn], prompts: Sequence[str]) -> Recording:
    """Run a client in ``root`` with a model that takes ``turns``."""
    model = ScriptedModel(turns, client.call, root / "folder")
    return replace(record_with(client, way, root, model, prompts), used=model.used)


def record_with(
    client: Client, way: str, root: Path, model: Callable[[ReceivedRequest], FakeReply], prompts: Sequence[str]
) -> Recording:
    """Run a client in ``root`` with a model that answers as it likes."""
    folder, home = root / "folder", root / "home"
    with FakeProvider(model, api_key=KEY) as provider, way_to(provider, way, root / "gateway") as url:
        run = client.run(Place(url, folder, home), prompts)
        stats, metrics = (read_stats(url), read_metrics(url)) if way == THROUGH else ({}, "")
    return Recording(run, provider, folder, stats, metrics)


@contextmanager
def way_to(provider: FakeProvider, way: str, folder: Path) -> Iterator[str]:
    """Address that a client is given."""
    if way == BESIDE:
        yield provider.url
        return
    upstreams = {"default": Upstream(provider.openai_url, provider.url)}
    with running_gateway(provider.url, folder=folder, planner=PLANNER, upstreams=upstreams) as gateway:
        yield gateway.url


def read_stats(url: str) -> dict[str, Any]:
    """The gateway's figures."""
    stats: dict[str, Any] = json.loads(_get(f"{url}/stats"))
    return stats


def read_metrics(url: str) -> str:
    """The gateway's counters, in Prometheus' text."""
    return _get(f"{url}/metrics")


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        text: str = answer.read().decode("utf-8")
    return text
