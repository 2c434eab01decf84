"""``cgk serve`` as a process: what it prints, how it ends, how it refuses."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.entrypoints.gateway.running import (
    DEADLINE_SECONDS,
    MARKING,
    ROOT,
    RawClient,
    Received,
    UpstreamSide,
    ask,
    chunk,
    chunked_head,
    plain_answer,
    scripted_upstream,
)
from tests.entrypoints.running import COMMAND, environment, run_cgk


async def answer(request: Received, side: UpstreamSide) -> None:
    if request.header("x-want") == "endless":
        await side.send(chunked_head(), chunk(b"data: 1\n\n"))
        await side.wait_until_left()
    else:
        await side.send(plain_answer(b"{}"))


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running command and the first line that it prints."""
    variables = {"PYTHONPATH": str(ROOT), "CGK_GATEWAY_PLANNER": MARKING, "CGK_GATEWAY_STOP_SECONDS": "1"}
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", *arguments],
        cwd=folder,
        env=environment(folder, variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline()
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=DEADLINE_SECONDS)


def test_it_says_where_it_is_and_how_to_use_it(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, line):
        port = int(line.split("127.0.0.1:")[1].split(":")[0])
        assert line == (
            f"serving at http://127.0.0.1:{port}: set ANTHROPIC_BASE_URL=http://127.0.0.1:{port} "
            f"or OPENAI_BASE_URL=http://127.0.0.1:{port}/v1 in the client\n"
        )
        assert json.loads(ask(port, "/healthz", method="GET").body)["planner"] == "up"
        key = tmp_path / ".config" / "context-gatekeeper" / "gateway.key"
        assert key.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_by_a_signal_with_everything_closed(tmp_path: Path, number: signal.Signals) -> None:
    with (
        scripted_upstream(answer) as upstream,
        serving(tmp_path, "--json", "--shadow", "--upstream", upstream.url) as (process, line),
    ):
        told = json.loads(line)
        assert (told["shadow"], told["planner"]) == (True, True)
        assert ask(told["port"], "/v1/messages", b'{"a":"long old text"}').note == "shadow"
        with RawClient(told["port"]) as client:
            client.request("POST", "/v1/messages", b"{}", {"X-Want": "endless"})
            client.read_head()
            assert client.read_pieces(9) == b"data: 1\n\n"
            process.send_signal(number)
            assert client.read_body({"transfer-encoding": "chunked"}) == (b"", False)
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
        assert (process.returncode, out) == (0, "")
        assert err == "note: shadow mode, plans are reported and nothing is changed\n"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", told["port"]))


def test_a_second_signal_waits_for_nobody(tmp_path: Path) -> None:
    with (
        scripted_upstream(answer) as upstream,
        serving(tmp_path, "--json", "--upstream", upstream.url) as (process, line),
        RawClient(json.loads(line)["port"]) as client,
    ):
        client.request("POST", "/v1/messages", b"{}", {"X-Want": "endless"})
        client.read_head()
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 0


def test_the_planner_does_not_outlive_a_killed_gateway(tmp_path: Path) -> None:
    with serving(tmp_path, "--json") as (process, line):
        port = json.loads(line)["port"]
        ask(port, "/stats", method="GET")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 1
        process.kill()
        process.wait(DEADLINE_SECONDS)
        # It ends when its input does.
        subprocess.run(["tail", f"--pid={children[0]}", "-f", "/dev/null"], timeout=DEADLINE_SECONDS, check=True)


def test_switching_off_works_on_a_running_gateway(tmp_path: Path) -> None:
    with (
        scripted_upstream(answer) as upstream,
        serving(tmp_path, "--json", "--upstream", upstream.url) as (_, line),
    ):
        port = json.loads(line)["port"]
        assert ask(port, "/v1/messages", b'{"a":"long old text"}').note == "plan"
        switched = run_cgk(tmp_path, "serve", "--off")
        assert switched.stdout.startswith("gateways of this user forward everything untouched (")
        while ask(port, "/v1/messages", b'{"a":"long old text"}').note != "off":
            pass
        assert json.loads(ask(port, "/healthz", method="GET").body)["planner"] == "off"
        assert json.loads(run_cgk(tmp_path, "serve", "--on", "--json").stdout)["off"] is False
        while ask(port, "/v1/messages", b'{"a":"long old text"}').note != "plan":
            pass


def test_an_address_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run_cgk(tmp_path, "serve", "--port", port)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        f"error: 127.0.0.1:{port}: the port is in use; stop the other program, or choose another with --port\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--host", "0.0.0.0"), "others than this machine could connect"),
        (("--host", "203.0.113.1", "--token", "x"), "it cannot be listened on"),
        (("--port", "70000"), "it cannot be listened on"),
        (("--upstream", "ftp://x"), "no plain http or https address"),
        (("--off", "--port", "x"), "not a valid integer"),
    ],
)
def test_what_cannot_be_served_is_one_line(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = run_cgk(tmp_path, "serve", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_without_the_extra_the_command_to_install_it_is_told(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "aiohttp.py").write_text("raise ModuleNotFoundError(\"No module named 'aiohttp'\", name='aiohttp')\n")
    result = run_cgk(tmp_path, "serve", "--port", "0", env={"PYTHONPATH": str(hidden)})
    assert result.returncode == 2
    assert result.stderr == 'error: aiohttp: it is not installed; run: pip install "context-gatekeeper[gateway]"\n'


def test_the_help_does_not_load_the_server() -> None:
    code = (
        "import sys\nfrom context_gatekeeper.entrypoints.cli import main\n"
        "sys.argv = ['cgk', 'serve', '--help']\nmain()\n"
        "assert not {'uvicorn', 'aiohttp', 'starlette'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert done.returncode == 0, done.stderr
    assert "ANTHROPIC_BASE_URL" in done.stdout
