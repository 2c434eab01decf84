"""``cgk wrap`` with clients that are real processes on the path."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from context_gatekeeper.entrypoints.clients.running import is_gateway, run_client, running_gateway
from context_gatekeeper.entrypoints.clients.wanted import is_our_hook
from context_gatekeeper.errors import ConfigError
from tests.entrypoints.hooks.clients import environ_of
from tests.entrypoints.running import COMMAND, DEADLINE_SECONDS, Result, error_line

# Tells what it was started with, then does what SAYS says.
CLIENT = """#!{python}
import json, os, signal, sys
arguments = sys.argv[1:]
given = {{"arguments": arguments, "environ": dict(os.environ), "stdin": ""}}
if "--settings" in arguments:
    given["file"] = arguments[arguments.index("--settings") + 1]
    given["settings"] = json.load(open(given["file"]))
    places = (given["file"], os.path.dirname(os.path.abspath(given["file"])))
    given["modes"] = [os.stat(one).st_mode & 0o777 for one in places]
if os.environ.get("READS"):
    given["stdin"] = sys.stdin.read()
json.dump(given, open(os.environ["TOLD"], "w"))
if os.environ.get("WAITS"):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(31))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(32))
    print("ready", flush=True)
    signal.pause()
if os.environ.get("DIES"):
    os.kill(os.getpid(), signal.SIGKILL)
print("from the client")
sys.exit(int(os.environ.get("CODE", "0")))
"""
SERVE = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: (open("{done}.end", "w").write("stopped"), sys.exit(0)))
print("note first", flush=True)
print("serving at http://127.0.0.1:{port}: set it", flush=True)
for number in range(2000):
    print("a line for nobody " * 20, flush=True)
open("{done}", "w").write("all said")
signal.pause()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose ``bin`` holds all three clients."""
    (tmp_path / "bin").mkdir()
    for name in ("claude", "codex", "opencode"):
        client = tmp_path / "bin" / name
        client.write_text(CLIENT.format(python=sys.executable), "utf-8")
        client.chmod(0o755)
    return tmp_path


def environ(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    path = f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return environ_of(home, {"PATH": path, "TOLD": str(home / "told.json"), "TMPDIR": str(home), **(extra or {})})


def wrap(home: Path, *arguments: str, env: Mapping[str, str] | None = None, stdin: str = "") -> Result:
    return subprocess.run(
        [*COMMAND, "wrap", *arguments],
        cwd=home,
        env=environ(home, env),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=DEADLINE_SECONDS,
    )


def told(home: Path) -> dict[str, Any]:
    """What the client was started with."""
    given: dict[str, Any] = json.loads((home / "told.json").read_text("utf-8"))
    return given


@contextmanager
def answering(status: int = 200) -> Iterator[str]:
    """An address where something answers."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/healthz" else 404)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# -- what a run is given ----------------------------------------------------------------------------


def test_claude_runs_with_its_own_arguments_and_our_hooks(home: Path) -> None:
    result = wrap(home, "--no-gateway", "claude", "--", "-p", "a b", "--model", "opus")

    given = told(home)
    assert (result.returncode, result.stdout, result.stderr) == (0, "from the client\n", "")
    assert given["arguments"][2:] == ["-p", "a b", "--model", "opus"]
    assert given["arguments"][:1] == ["--settings"]
    commands = [hook["command"] for groups in given["settings"]["hooks"].values() for hook in groups[0]["hooks"]]
    assert len(commands) == 5
    assert all(map(is_our_hook, commands))
    assert "env" not in given["settings"]
    assert "ANTHROPIC_BASE_URL" not in given["environ"]


def test_settings_of_the_run_are_for_its_user_alone_and_are_gone_afterwards(home: Path) -> None:
    wrap(home, "--no-gateway", "claude")

    given = told(home)
    assert given["modes"][1] == 0o700
    assert not Path(given["file"]).parent.exists()
    assert {entry.name for entry in home.iterdir()} == {"bin", "told.json"}


def test_claude_is_led_to_a_gateway_that_runs_already(home: Path) -> None:
    with answering() as address:
        result = wrap(
            home, "--gateway", address, "claude", "-p", "x", env={"ANTHROPIC_BASE_URL": "https://own.example"}
        )

    assert result.returncode == 0
    assert told(home)["environ"]["ANTHROPIC_BASE_URL"] == address
    assert told(home)["settings"]["env"] == {"ANTHROPIC_BASE_URL": address}


def test_a_run_without_anything_of_ours_is_the_clients_own(home: Path) -> None:
    wrap(home, "--no-gateway", "--no-hooks", "claude", "-p", "x")

    assert told(home)["arguments"] == ["-p", "x"]


@pytest.mark.parametrize("own", [("--settings", "mine.json"), ("--settings=mine.json",)])
def test_settings_of_the_users_own_are_left_alone(home: Path, own: tuple[str, ...]) -> None:
    (home / "mine.json").write_text("{}", "utf-8")
    with answering() as address:
        result = wrap(home, "--gateway", address, "claude", "--", *own)

    assert told(home)["arguments"] == list(own)
    assert told(home)["environ"]["ANTHROPIC_BASE_URL"] == address
    assert "hooks are left out" in result.stderr


def test_shadow_goes_to_the_hook(home: Path) -> None:
    wrap(home, "--no-gateway", "--shadow", "claude")

    assert told(home)["settings"]["hooks"]["SessionEnd"][0]["hooks"][0]["command"].endswith(" hook --shadow")


def test_codex_gets_a_provider_for_the_run(home: Path) -> None:
    with answering() as address:
        wrap(home, "--gateway", address, "--no-hooks", "codex", "--", "exec", "x")

    words = told(home)["arguments"]
    settings = dict(word.split("=", 1) for word in words[1:-2:2])
    assert words[-2:] == ["exec", "x"]
    assert set(words[:-2:2]) == {"-c"}
    assert settings == {
        "model_provider": '"cgk"',
        "model_providers.cgk.name": '"context-gatekeeper"',
        "model_providers.cgk.base_url": f'"{address}/v1"',
        "model_providers.cgk.wire_api": '"responses"',
        "model_providers.cgk.supports_websockets": "false",
        "model_providers.cgk.requires_openai_auth": "true",
    }


def test_codex_uses_a_key_of_the_environment_and_is_told_of_trust(home: Path) -> None:
    with answering() as address:
        result = wrap(home, "--gateway", address, "codex", env={"OPENAI_API_KEY": "k"})

    assert 'model_providers.cgk.env_key="OPENAI_API_KEY"' in told(home)["arguments"]
    assert "cgk init codex" in result.stderr
    assert "-c" not in _after(wrap(home, "--no-gateway", "codex", "exec"), home)


def _after(_result: Result, home: Path) -> list[str]:
    arguments: list[str] = told(home)["arguments"]
    return arguments


def test_opencode_gets_addresses_on_top_of_its_own_settings(home: Path) -> None:
    own = {"theme": "dark", "provider": {"openai": {"options": {"timeout": 3}}, "anthropic": 4}}
    with answering() as address:
        wrap(home, "--gateway", address, "opencode", "run", env={"OPENCODE_CONFIG_CONTENT": json.dumps(own)})

    content = json.loads(told(home)["environ"]["OPENCODE_CONFIG_CONTENT"])
    assert content["theme"] == "dark"
    assert content["provider"]["openai"]["options"] == {"timeout": 3, "baseURL": f"{address}/v1"}
    assert content["provider"]["anthropic"]["options"] == {"baseURL": f"{address}/v1"}
    assert "OPENCODE_CONFIG_CONTENT" not in _environ(wrap(home, "--no-gateway", "opencode"), home)


def _environ(_result: Result, home: Path) -> dict[str, str]:
    variables: dict[str, str] = told(home)["environ"]
    return variables


def test_the_clients_input_and_exit_code_are_its_own(home: Path) -> None:
    result = wrap(home, "--no-gateway", "claude", env={"READS": "1", "CODE": "7"}, stdin="typed")

    assert result.returncode == 7
    assert told(home)["stdin"] == "typed"


# -- ends ---------------------------------------------------------------------------------------------


def test_a_client_that_is_killed_leaves_nothing_behind(home: Path) -> None:
    result = wrap(home, "--no-gateway", "claude", env={"DIES": "1"})

    assert result.returncode == 128 + signal.SIGKILL
    assert not Path(told(home)["file"]).exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 31), (signal.SIGINT, 32)])
def test_signals_go_to_the_client_and_its_end_is_ours(home: Path, number: int, code: int) -> None:
    ours = signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(
        [*COMMAND, "wrap", "--no-gateway", "claude"],
        cwd=home,
        env=environ(home, {"WAITS": "1"}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    signal.signal(signal.SIGINT, ours)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"

    process.send_signal(number)

    assert process.wait(DEADLINE_SECONDS) == code
    process.stdout.close()
    assert not Path(told(home)["file"]).parent.exists()


# -- refusals -------------------------------------------------------------------------------------------


def test_a_client_that_is_not_there_is_told_with_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    result = wrap(tmp_path, "claude", env={"PATH": str(tmp_path / "bin")})

    assert "claude: there is no such command; install it" in error_line(result)


def test_a_client_that_cannot_be_started_is_told(home: Path) -> None:
    (home / "bin" / "claude").write_text("#!/nowhere/at/all\n", "utf-8")

    assert "it cannot be started" in error_line(wrap(home, "--no-gateway", "claude"))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--gateway", "http://127.0.0.1:9", "claude"), "nothing answers there"),
        (("--gateway", "http://127.0.0.1:9", "--no-gateway", "claude"), "--no-gateway"),
        (("--gateway", "http://far.example:80", "claude"), "in the clear"),
        (("emacs",), "emacs"),
    ],
)
def test_what_cannot_be_meant_is_refused(home: Path, arguments: tuple[str, ...], named: str) -> None:
    assert named in error_line(wrap(home, *arguments))
    assert not (home / "told.json").exists()


@pytest.mark.parametrize("content", ["{", "[]"])
def test_settings_of_opencode_that_cannot_be_read_are_refused(home: Path, content: str) -> None:
    with answering() as address:
        result = wrap(home, "--gateway", address, "opencode", env={"OPENCODE_CONFIG_CONTENT": content})

    assert "OPENCODE_CONFIG_CONTENT" in error_line(result)


# -- the gateway beside it --------------------------------------------------------------------------------


def test_a_gateway_runs_as_long_as_the_block_and_never_waits_for_a_reader(tmp_path: Path) -> None:
    done = tmp_path / "done"
    os.mkfifo(done)  # its reader waits for the writer
    command = [sys.executable, "-c", SERVE.format(port=4321, done=done)]

    with running_gateway(command, os.environ, tmp_path / "made") as address:
        assert address == "http://127.0.0.1:4321"
        assert (tmp_path / "made").is_dir()
        assert done.read_text() == "all said"
    assert (tmp_path / "done.end").read_text() == "stopped"


def test_a_gateway_that_ends_says_why(tmp_path: Path) -> None:
    code = "import sys; print('first', file=sys.stderr); print('error: no port; take another', file=sys.stderr)"

    for script, why in ((code, r"it ended \(no port; take another\)"), ("", "it ended")):
        command = [sys.executable, "-c", script]
        with pytest.raises(ConfigError, match=f"{why}; .*--no-gateway"), running_gateway(command, os.environ, tmp_path):
            raise AssertionError


def test_an_error_inside_stops_the_gateway(tmp_path: Path) -> None:
    done = tmp_path / "done"
    os.mkfifo(done)
    command = [sys.executable, "-c", SERVE.format(port=4321, done=done)]

    with pytest.raises(KeyboardInterrupt), running_gateway(command, os.environ, tmp_path):
        raise KeyboardInterrupt
    assert (tmp_path / "done.end").read_text() == "stopped"


def test_only_what_answers_well_is_a_gateway() -> None:
    with answering() as address:
        assert is_gateway(address)
    with answering(500) as address:
        assert not is_gateway(address)
    assert not is_gateway("http://127.0.0.1:9")


def test_the_real_gateway_is_started_for_a_run_and_forwards_to_the_clients_own_service(home: Path) -> None:
    with answering() as service:
        result = wrap(home, "claude", env={"ANTHROPIC_BASE_URL": service})

    given = told(home)
    address = given["environ"]["ANTHROPIC_BASE_URL"]
    assert result.returncode == 0, result.stderr
    assert address.startswith("http://127.0.0.1:")
    assert address != service
    assert not is_gateway(address)  # it went with the run


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_client_runs_puts_everything_back(tmp_path: Path, number: int) -> None:
    done = tmp_path / "done"
    os.mkfifo(done)
    serve = [sys.executable, "-c", SERVE.format(port=4321, done=done)]
    code = (
        "import os, pathlib, signal, sys\n"
        "from context_gatekeeper.entrypoints.clients.running import ending_on_signals, private_file, running_gateway\n"
        "with ending_on_signals(), private_file('a.json', '{}'):\n"
        f"    with running_gateway({serve!r}, os.environ, pathlib.Path.cwd()):\n"
        "        print('up', flush=True)\n"
        "        signal.pause()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env=environ(tmp_path), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"

    process.send_signal(number)

    assert process.wait(DEADLINE_SECONDS) == 128 + number
    process.stdout.close()
    assert (tmp_path / "done.end").read_text() == "stopped"
    assert not list(tmp_path.glob("cgk-*"))


def test_signal_handlers_are_as_they_were() -> None:
    before = signal.getsignal(signal.SIGTERM)

    assert run_client([sys.executable, "-c", "raise SystemExit(3)"], os.environ) == 3
    assert signal.getsignal(signal.SIGTERM) is before
