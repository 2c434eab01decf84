"""Real clients, run without a network: how each is started, and what it sends.

Every run has a folder to work in and a home of its own; nothing of the person's is read. All clients stream. `make
clients` installs those that are no part of the ``dev`` extra.

Claude Code (the command in the wheel of claude-agent-sdk), 1.6 s a start
    ``claude -p PROMPT --output-format stream-json --verbose --allowedTools Bash Read``, then ``--resume``. Session:
    ``x-claude-code-session-id``, again in ``metadata.user_id``; ``--session-id`` fixes it, ``userID`` in
    ``~/.claude.json`` the device, and then two runs send the same bytes. A sub-agent has the same session, another
    system prompt and ``x-claude-code-agent-id``. Three cache marks: two in ``system``, one on the last block; a
    message that carries it is a list of blocks, the same message is a plain text one call later. The environment
    with the date is a system message behind the first prompt. Parallel results come in the order of their ends.
claude-agent-sdk, 2.5 s a prompt
    The same command with a shorter system prompt: two cache marks.
Codex, 0.6 s a start
    ``codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox PROMPT``, then ``exec
    resume ... THREAD PROMPT``; a provider of its own in ``config.toml``, without websockets. Session: headers
    ``session-id`` and ``thread-id``, body ``prompt_cache_key`` and ``client_metadata``, whose keys come in another
    order in every request, the repeated one included. Random: all ids, ``Chunk ID`` and ``Wall time`` of a command's
    output. It asks for zstd answers. Its own compaction is moved out of the way by a large window.
opencode, 8 s a start
    ``opencode run --format json PROMPT``, then ``--session ID``; the binary of the platform's package, since its
    install script does not run everywhere. Session: ``x-session-id``. A request for a title, without tools, goes out
    beside the first. In one folder two runs send the same bytes.
openai, anthropic, LangChain, OpenAI Agents, pydantic-ai, 3 to 10 s a start
    The small agents beside this file (``program_*.py``). They send no session at all, and two runs the same bytes.

A refused call is sent again as it was by all of them after 429 or 529; the Python SDKs count it in
``x-stainless-retry-count``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from context_gatekeeper.testing.records import FakeCall
from context_gatekeeper.wire.records import WireApi
from tests.clients.scripted import Read, Shell, Step

HERE = Path(__file__).parent
INSTALLED = HERE.parents[1] / ".clients"
HOW_TO_INSTALL = "`make clients` installs it"
KEY = "test-key"
DEADLINE_SECONDS = 300
WINDOW_TOKENS = 2_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where a client runs and what it talks to."""

    url: str
    """Provider or gateway, without a path."""
    folder: Path
    home: Path


@dataclass(frozen=True, slots=True)
class ClientRun:
    """What a user saw."""

    stdout: str
    stderr: str
    exit_code: int
    """Of the last start."""
    seconds: float


class Client(Protocol):
    """A real client."""

    name: str
    api: WireApi
    is_light: bool
    """Whether the ``dev`` extra installs it."""

    def missing(self) -> str:
        """Why it cannot run, "" when it can."""
        ...

    def call(self, step: Step, folder: Path) -> FakeCall:
        """A step as a call of the client's own tool."""
        ...

    def run(self, place: Place, prompts: Sequence[str]) -> ClientRun:
        """One conversation of several prompts; those behind the first resume it."""
        ...


def start(command: Sequence[str], place: Place, extra: Mapping[str, str]) -> ClientRun:
    """One start of a client, with nothing of the person's environment."""
    node = shutil.which("node")
    paths = [*([str(Path(node).parent)] if node else []), "/usr/local/bin", "/usr/bin", "/bin"]
    environment = {"HOME": str(place.home), "PATH": os.pathsep.join(paths), "LANG": "C.UTF-8", "NO_PROXY": "127.0.0.1"}
    began = monotonic()
    ended = subprocess.run(
        command,
        cwd=place.folder,
        env={**environment, **extra},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    return ClientRun(ended.stdout, ended.stderr, ended.returncode, monotonic() - began)


def joined(runs: Sequence[ClientRun]) -> ClientRun:
    """Several starts as one."""
    return ClientRun(
        "".join(run.stdout for run in runs),
        "".join(run.stderr for run in runs),
        runs[-1].exit_code,
        sum(run.seconds for run in runs),
    )


def python_with(package: str) -> str | None:
    """An interpreter that has ``package``: this one, or that of the installed clients; None when neither has."""
    if find_spec(package):
        return sys.executable
    python = INSTALLED / "venv" / "bin" / "python"
    packages = (INSTALLED / "venv" / "lib").glob(f"python3*/site-packages/{package}")
    return str(python) if python.exists() and any(packages) else None


# -- Claude Code ------------------------------------------------------------------------------

CLAUDE_ENVIRONMENT = {
    "ANTHROPIC_API_KEY": KEY,
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "IS_SANDBOX": "1",
}


def claude_call(step: Step, folder: Path) -> FakeCall:
    """A step by the tools of Claude Code."""
    match step:
        case Shell(command):
            return FakeCall("Bash", {"command": command, "description": "Work in the folder"})
        case Read(name):
            return FakeCall("Read", {"file_path": str(folder / name)})


def know_device(home: Path) -> None:
    """The device is what a request would otherwise draw by lot."""
    (home / ".claude.json").write_text(json.dumps({"userID": "0" * 64, "hasCompletedOnboarding": True}), "utf-8")


class ClaudeCode:
    """The command line of Claude Code."""

    name = "claude-code"
    api = WireApi.MESSAGES
    is_light = False
    session = "00000000-0000-4000-8000-00000000000a"

    def binary(self) -> Path | None:
        found = (INSTALLED / "venv" / "lib").glob("python3*/site-packages/claude_agent_sdk/_bundled/claude")
        return next(found, None)

    def missing(self) -> str:
        return "" if self.binary() else f"Claude Code is not there; {HOW_TO_INSTALL}"

    def call(self, step: Step, folder: Path) -> FakeCall:
        return claude_call(step, folder)

    def run(self, place: Place, prompts: Sequence[str]) -> ClientRun:
        know_device(place.home)
        runs = []
        for number, prompt in enumerate(prompts):
            session = ["--resume" if number else "--session-id", self.session]
            shown = ["--output-format", "stream-json", "--verbose", "--allowedTools", "Bash", "Read"]
            command = [str(self.binary()), "-p", prompt, *session, *shown]
            runs.append(start(command, place, {**CLAUDE_ENVIRONMENT, "ANTHROPIC_BASE_URL": place.url}))
        return joined(runs)


# -- Codex and opencode -----------------------------------------------------------------------


class Codex:
    """The command line of Codex, without questions."""

    name = "codex"
    api = WireApi.RESPONSES
    is_light = False

    def missing(self) -> str:
        is_there = (INSTALLED / "node_modules" / ".bin" / "codex").exists() and shutil.which("node")
        return "" if is_there else f"Codex is not there; {HOW_TO_INSTALL}"

    def call(self, step: Step, folder: Path) -> FakeCall:  # noqa: ARG002
        match step:
            case Shell(command):
                return FakeCall("exec_command", {"cmd": command})
            case Read(name):
                return FakeCall("exec_command", {"cmd": f"cat {name}"})

    def run(self, place: Place, prompts: Sequence[str]) -> ClientRun:
        (place.home / ".codex").mkdir(exist_ok=True)
        (place.home / ".codex" / "config.toml").write_text(self._config(place.url), "utf-8")
        flags = ["--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox"]
        runs: list[ClientRun] = []
        for prompt in prompts:
            kind = ["resume", *flags, self._thread(runs[0])] if runs else flags
            command = [str(INSTALLED / "node_modules" / ".bin" / "codex"), "exec", *kind, prompt]
            runs.append(start(command, place, {"FAKE_KEY": KEY}))
        return joined(runs)

    @staticmethod
    def _thread(first: ClientRun) -> str:
        return str(json.loads(first.stdout.splitlines()[0])["thread_id"])

    @staticmethod
    def _config(url: str) -> str:
        window = f"model_context_window = {WINDOW_TOKENS}\nmodel_auto_compact_token_limit = {WINDOW_TOKENS}\n"
        provider = f'[model_providers.fake]\nname = "fake"\nbase_url = "{url}/v1"\nenv_key = "FAKE_KEY"\n'
        wire = 'wire_api = "responses"\nsupports_websockets = false\nrequest_max_retries = 4\nstream_max_retries = 4\n'
        top = 'model = "gpt-5.1-codex"\nmodel_provider = "fake"\ncheck_for_update_on_startup = false\n'
        return top + window + provider + wire


class Opencode:
    """The command line of opencode."""

    name = "opencode"
    api = WireApi.CHAT
    is_light = False

    def binary(self) -> Path | None:
        found = sorted((INSTALLED / "node_modules").glob("opencode-*/bin/opencode"))
        # The one for old processors runs on every processor.
        return max(found, key=lambda path: "baseline" in str(path), default=None)

    def missing(self) -> str:
        return "" if self.binary() else f"opencode is not there; {HOW_TO_INSTALL}"

    def call(self, step: Step, folder: Path) -> FakeCall:
        match step:
            case Shell(command):
                return FakeCall("bash", {"command": command, "description": "Work in the folder"})
            case Read(name):
                return FakeCall("read", {"filePath": str(folder / name)})

    def run(self, place: Place, prompts: Sequence[str]) -> ClientRun:
        config = place.home / "opencode.json"
        config.write_text(json.dumps(self._config(place.url)), "utf-8")
        extra = {
            "OPENCODE_CONFIG": str(config),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
        }
        runs: list[ClientRun] = []
        for prompt in prompts:
            session = ["--session", self._session(runs[0])] if runs else []
            runs.append(start([str(self.binary()), "run", "--format", "json", *session, prompt], place, extra))
        return joined(runs)

    @staticmethod
    def _session(first: ClientRun) -> str:
        return str(json.loads(first.stdout.splitlines()[0])["sessionID"])

    @staticmethod
    def _config(url: str) -> dict[str, Any]:
        model = {"name": "gpt-5.1", "limit": {"context": WINDOW_TOKENS, "output": 8000}}
        options = {"baseURL": f"{url}/v1", "apiKey": KEY}
        fake = {"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": options, "models": {"gpt-5.1": model}}
        allowed = dict.fromkeys(("bash", "edit", "read"), "allow")
        return {
            "autoupdate": False,
            "share": "disabled",
            "provider": {"fake": fake},
            "model": "fake/gpt-5.1",
            "permission": allowed,
        }


# -- SDKs -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SdkAgent:
    """A small agent on an SDK, as a program of its own."""

    name: str
    api: WireApi
    program: str
    package: str
    words: tuple[str, ...] = ()
    """In front of the prompts."""
    is_light: bool = False

    def missing(self) -> str:
        return "" if python_with(self.package) else f"{self.package} is not there; {HOW_TO_INSTALL}"

    def call(self, step: Step, folder: Path) -> FakeCall:  # noqa: ARG002
        match step:
            case Shell(command):
                return FakeCall("shell", {"command": command})
            case Read(name):
                return FakeCall("read_file", {"path": name})

    def run(self, place: Place, prompts: Sequence[str]) -> ClientRun:
        python = python_with(self.package)
        assert python is not None
        command = [python, str(HERE / f"program_{self.program}.py"), place.url, *self.words, *prompts]
        return start(command, place, {"PYTHONDONTWRITEBYTECODE": "1"})


class ClaudeAgentSdk(ClaudeCode):
    """The claude-agent-sdk for Python."""

    name = "claude-agent-sdk"

    def run(self, place: Place, prompts: Sequence[str]) -> ClientRun:
        know_device(place.home)
        python = python_with("claude_agent_sdk")
        assert python is not None
        command = [python, str(HERE / "program_claude_sdk.py"), place.url, *prompts]
        return start(command, place, CLAUDE_ENVIRONMENT)


CHAT, RESPONSES, MESSAGES = WireApi.CHAT, WireApi.RESPONSES, WireApi.MESSAGES
CLIENTS: tuple[Client, ...] = (
    ClaudeCode(),
    ClaudeAgentSdk(),
    Codex(),
    Opencode(),
    SdkAgent("openai-chat", CHAT, "openai_chat", "openai", is_light=True),
    SdkAgent("openai-responses", RESPONSES, "openai_responses", "openai", is_light=True),
    SdkAgent("anthropic", MESSAGES, "anthropic", "anthropic", is_light=True),
    SdkAgent("langchain-anthropic", MESSAGES, "langchain", "langchain_anthropic", ("messages",)),
    SdkAgent("langchain-chat", CHAT, "langchain", "langchain_openai", ("chat",)),
    SdkAgent("langchain-responses", RESPONSES, "langchain", "langchain_openai", ("responses",)),
    SdkAgent("agents-chat", CHAT, "openai_agents", "agents", ("chat",)),
    SdkAgent("agents-responses", RESPONSES, "openai_agents", "agents", ("responses",)),
    SdkAgent("pydantic-chat", CHAT, "pydantic_ai", "pydantic_ai", ("chat",)),
    SdkAgent("pydantic-responses", RESPONSES, "pydantic_ai", "pydantic_ai", ("responses",)),
    SdkAgent("pydantic-anthropic", MESSAGES, "pydantic_ai", "pydantic_ai", ("messages",)),
)
