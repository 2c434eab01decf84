"""How a hook finds the gateway that runs, and believes nobody else."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from context_gatekeeper.entrypoints.hooks.running_gateway import (
    PROOF_HEADER,
    GatewayState,
    answer_proof,
    ask_for_context,
    find_gateway,
    question_proof,
    remove_state,
    write_state,
)

WORD = "0123456789abcdef" * 4
STATE = GatewayState("127.0.0.1", 8787, os.getpid(), WORD)
Answer = Callable[[str, bytes], tuple[int, bytes, str]]
"""Nonce and body of the question -> status, body and proof of the answer."""


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CGK_GATEWAY_URL", "CGK_GATEWAY_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def somebody(answer: Answer) -> Iterator[tuple[GatewayState, list[tuple[str, dict[str, str], bytes]]]]:
    """A server that answers as it likes, what it is found by, and what it got."""
    got: list[tuple[str, dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            status, told, proof = answer(self.headers[PROOF_HEADER].partition(".")[0], body)
            self.send_response(status)
            self.send_header("content-length", str(len(told)))
            self.send_header(PROOF_HEADER, proof)
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield STATE._replace(port=server.server_address[1]), got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ask(state: GatewayState) -> str | None:
    return ask_for_context(state, prompt="Why \ud800 é?", cwd="/project", session="now")


# -- the file -------------------------------------------------------------------------------------


def test_the_file_is_for_its_owner_alone_and_goes_with_its_gateway(tmp_path: Path) -> None:
    folder = tmp_path / "settings"
    write_state(str(folder), STATE)
    (file,) = folder.iterdir()

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert find_gateway(str(folder)) == STATE
    remove_state(str(folder), STATE)
    assert find_gateway(str(folder)) is None
    assert list(folder.iterdir()) == []


def test_a_gateway_that_ends_leaves_the_file_of_one_that_began_later(tmp_path: Path) -> None:
    later = STATE._replace(port=2, word=WORD[::-1])
    write_state(str(tmp_path), STATE)
    write_state(str(tmp_path), later)

    remove_state(str(tmp_path), STATE)

    assert find_gateway(str(tmp_path)) == later


def test_a_gateway_that_was_killed_is_not_found(tmp_path: Path) -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    write_state(str(tmp_path), STATE._replace(pid=child))

    assert find_gateway(str(tmp_path)) is None


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"host": "h", "port": "x", "pid": 1, "word": "w"}', "\x00", "3", '"text"']
)
def test_a_file_that_is_none_of_ours_is_as_if_it_were_not_there(tmp_path: Path, content: str) -> None:
    write_state(str(tmp_path), STATE)
    (tmp_path / "gateway.run").write_text(content)
    assert find_gateway(str(tmp_path)) is None


@pytest.mark.parametrize("change", [{"word": ""}, {"pid": 0}, {"pid": -1}, {"port": 0}, {"port": 70000}])
def test_a_file_with_odd_figures_is_none_either(tmp_path: Path, change: dict[str, object]) -> None:
    (tmp_path / "gateway.run").write_text(json.dumps(STATE._asdict() | change))
    assert find_gateway(str(tmp_path)) is None


@pytest.mark.parametrize("url", ["http://localhost:9", "http://127.0.0.1:9/", "http://[::1]:9"])
def test_the_environment_may_name_another_address_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("CGK_GATEWAY_URL", url)
    assert find_gateway(str(tmp_path)) is None  # who has no word can prove nothing
    write_state(str(tmp_path), STATE)
    found = find_gateway(str(tmp_path))
    assert found is not None
    assert (found.host in url, found.port, found.word) == (True, 9, WORD)


@pytest.mark.parametrize(
    "url", ["http://evil.example:9", "https://127.0.0.1:9", "http://127.0.0.1", "http://127.0.0.1:x", "http://[", "x"]
)
def test_a_prompt_goes_to_no_other_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    write_state(str(tmp_path), STATE)
    monkeypatch.setenv("CGK_GATEWAY_URL", url)
    assert find_gateway(str(tmp_path)) is None


# -- asking ---------------------------------------------------------------------------------------


def test_what_a_gateway_of_ours_says_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    told = json.dumps({"context": "said before"}).encode()
    with somebody(lambda nonce, _: (200, told, answer_proof(WORD, nonce, told))) as (state, got):
        assert ask(state) == "said before"
        monkeypatch.setenv("CGK_GATEWAY_TOKEN", "secret")
        assert ask(state) == "said before"
    (path, headers, body), (_, with_token, _) = got
    nonce, _, proof = headers[PROOF_HEADER].partition(".")
    assert (path, headers["content-type"]) == ("/recall", "application/json")
    assert json.loads(body) == {"prompt": "Why \ud800 é?", "cwd": "/project", "session": "now"}
    assert proof == question_proof(WORD, nonce, body)
    assert ("x-gatekeeper-token" in headers, with_token["x-gatekeeper-token"]) == (False, "secret")
    assert with_token[PROOF_HEADER].partition(".")[0] != nonce


def test_the_word_never_goes_over_the_wire() -> None:
    with somebody(lambda *_: (200, b"{}", "")) as (state, got):
        ask(state)
    assert WORD not in repr(got)


TOLD = b'{"context": "from a stranger"}'


@pytest.mark.parametrize(
    "answer",
    [
        lambda _nonce, _body: (200, TOLD, ""),
        lambda _nonce, _body: (200, TOLD, "é"),
        lambda nonce, _body: (200, TOLD, answer_proof("another word", nonce, TOLD)),
        lambda _nonce, _body: (200, TOLD, answer_proof(WORD, "another nonce", TOLD)),
        lambda nonce, _body: (200, TOLD, answer_proof(WORD, nonce, b"another answer")),
        lambda nonce, body: (200, body, question_proof(WORD, nonce, body)),
        lambda nonce, _body: (503, TOLD, answer_proof(WORD, nonce, TOLD)),
        lambda nonce, _body: (200, b'{"context": 3}', answer_proof(WORD, nonce, b'{"context": 3}')),
    ],
)
def test_what_anybody_else_says_is_not(answer: Answer) -> None:
    with somebody(answer) as (state, _):
        assert ask(state) is None


def test_nobody_there_is_no_answer() -> None:
    with somebody(lambda *_: (200, b"", "")) as (state, _):
        pass
    assert ask(state) is None


def test_a_gateway_that_says_nothing_is_left_in_time() -> None:
    ends = threading.Event()

    def wait(_nonce: str, _body: bytes) -> tuple[int, bytes, str]:
        ends.wait(60)
        return 200, TOLD, ""

    with somebody(wait) as (state, _):
        assert ask(state) is None
        ends.set()
