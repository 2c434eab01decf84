"""What the installed clients let a hook do, and what their logs hold of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.testing import FakeCall, FakeProvider, FakeReply, ReceivedRequest
from tests.clients.cases import CLAUDE_ENVIRONMENT, INSTALLED, KEY, ClaudeCode, Codex, Place, know_device, start
from tests.clients.runs import place_folders
from tests.clients.scripted import Says, ScriptedModel, Shell, calls
from tests.entrypoints.hooks.clients import environ_of, write_claude_log
from tests.entrypoints.running import run_cgk

RULE = "We must never set lock_timeout_ms in src/billing/invoice_store.py below 4500."
PROMPT = "Why does invoice_store.py wait so long for its lock_timeout_ms?"
DELEGATED = "Count once more."
ANSWER = "It has been counted."
POOL = Path("data/context-gatekeeper/pages.db")
PAGES = Path("data/context-gatekeeper/pages")
CODEX_SETTINGS = """
model = "gpt-5.1-codex"
model_provider = "fake"
check_for_update_on_startup = false
[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
supports_websockets = false
"""
HOOK = """
import json, sys
answer = {"hookEventName": "PostToolUse", **json.loads(sys.argv[1])}
sys.stdin.read()
print(json.dumps({"hookSpecificOutput": answer}))
"""


class Counting:
    """Counts with a command, then has a sub-agent do so."""

    def __init__(self) -> None:
        self.turns = 0

    def __call__(self, request: ReceivedRequest) -> FakeReply:
        told = json.dumps(request.body["messages"])
        if not request.body.get("tools"):
            return FakeReply("title")
        if PROMPT not in told:
            return FakeReply(ANSWER) if "tool_result" in told else counting(4600)
        self.turns += 1
        wanted = {"description": "Count", "prompt": DELEGATED, "subagent_type": "general-purpose"}
        return (counting(4500), FakeReply("", calls=(FakeCall("Agent", wanted),)), FakeReply(ANSWER))[
            min(self.turns, 3) - 1
        ]


def counting(end: int) -> FakeReply:
    return FakeReply("", calls=(FakeCall("Bash", {"command": f"seq 1 {end}", "description": "Count"}),))


def numbers(end: int) -> str:
    return "\n".join(map(str, range(1, end + 1)))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place_folders(tmp_path)
    return Place("", tmp_path / "folder", tmp_path / "home")


def skip_without(client: ClaudeCode | Codex, *, runs_all: bool) -> None:
    if reason := client.missing() if runs_all else f"{client.name}: run by `make clients`":
        pytest.skip(reason)


def test_the_log_of_claude_code_comes_in_with_results_whole_and_nothing_of_ours(runs_all: bool, place: Place) -> None:
    client, home = ClaudeCode(), place.home
    skip_without(client, runs_all=runs_all)
    know_device(home)
    env = environ_of(home)
    before = write_claude_log(home, "before", place.folder, [("user", RULE), ("assistant", "Understood.")])
    assert run_cgk(home, "import", before, env=env).returncode == 0
    assert run_cgk(home, "init", "claude", "--yes", env=env).returncode == 0
    shown = ["--session-id", client.session, "--output-format", "json", "--allowedTools", "Bash", "Agent"]
    with FakeProvider(Counting()) as provider:
        extra = {**env, **CLAUDE_ENVIRONMENT, "ANTHROPIC_BASE_URL": provider.anthropic_url}
        run = start([str(client.binary()), "-p", PROMPT, *shown], place, extra)
        sent = [json.dumps(request.body["messages"]) for request in provider.requests]
    assert ANSWER in run.stdout, run
    assert any(RULE in one for one in sent), "the hook told of it"
    assert not any(json.dumps(numbers(4500))[1:-1] in one for one in sent), "the result was slimmed"

    logs = sorted((home / ".claude" / "projects").rglob("*.jsonl"))
    for log in logs:
        assert run_cgk(home, "import", log, env=env).returncode == 0

    agent = f"{client.session}/{next(log.stem for log in logs if log.stem.startswith('agent-'))}"
    with AgentPool(home / POOL) as pool:
        texts = {name: [pool.expand(one.handle).text for one in pool.pages(name)] for name in (client.session, agent)}
    assert numbers(4500) in texts[client.session]
    assert numbers(4600) in texts[agent]
    for text in (*texts[client.session], *texts[agent]):
        assert not any(mark in text for mark in ("whole text: ", "updatedToolOutput", "recalled-", RULE)), text
    assert len(list((home / PAGES).rglob("*.txt"))) == 2
    assert run_cgk(home, "forget", client.session, "--yes", env=env).returncode == 0
    assert list((home / PAGES).iterdir()) == []


@pytest.mark.parametrize("told", [{"updatedMCPToolOutput": "SHORTER"}, {"updatedToolOutput": "SHORTER"}])
def test_codex_takes_no_other_result_from_a_hook(runs_all: bool, place: Place, told: dict[str, Any]) -> None:
    """The day that this fails, `cgk init codex` can set up slimming by hooks."""
    client, home = Codex(), place.home
    skip_without(client, runs_all=runs_all)
    hook = home / "hook.py"
    hook.write_text(HOOK, "utf-8")
    command = f"{sys.executable} {hook} '{json.dumps(told)}'"
    run = {"type": "command", "command": command, "timeout": 10}
    (home / ".codex").mkdir()
    (home / ".codex/hooks.json").write_text(
        json.dumps({"hooks": {"PostToolUse": [{"matcher": ".*", "hooks": [run]}]}}), "utf-8"
    )
    script = ScriptedModel([calls(Shell("echo ORIGINAL")), Says(ANSWER)], client.call, place.folder)
    with FakeProvider(script) as provider:
        url = provider.openai_url.removesuffix("/v1")
        (home / ".codex/config.toml").write_text(CODEX_SETTINGS.format(url=url), "utf-8")
        flags = ["--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox"]
        codex = [str(INSTALLED / "node_modules/.bin/codex"), "exec", *flags, "--dangerously-bypass-hook-trust"]
        ran = start([*codex, "Go."], place, {"FAKE_KEY": KEY})
        second = json.dumps(provider.requests[-1].body["input"])
    assert ANSWER in ran.stdout, ran
    assert "ORIGINAL" in second
    assert "SHORTER" not in second
