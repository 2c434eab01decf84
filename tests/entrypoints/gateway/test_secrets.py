"""No key is ever in a log, a figure, a file, an error or an address; the planner gets a keyed hash."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from context_gatekeeper.config_gateway import Upstream
from context_gatekeeper.entrypoints.gateway.headers import CredentialHash, CredentialMask
from context_gatekeeper.errors import ConfigError
from tests.entrypoints.gateway.running import (
    DEADLINE_SECONDS,
    Received,
    RunningGateway,
    ScriptedUpstream,
    UpstreamSide,
    ask,
    chunked_head,
    plain_answer,
    read_journal,
    running_gateway,
    scripted_upstream,
)

KEYS = ("sk-TESTKEY-123", "sk-ant-TESTKEY-456", "AIza-TESTKEY-789")
CARRIERS = (
    ("/v1/messages", {"X-Api-Key": KEYS[1]}),
    ("/v1/chat/completions", {"Authorization": f"Bearer {KEYS[0]}"}),
    (f"/v1/responses?key={KEYS[2]}", {}),
    (f"/v1beta/models?key={KEYS[2]}", {"X-Goog-Api-Key": KEYS[2]}),
    ("/u/dead/v1/messages", {"X-Api-Key": KEYS[1]}),
    (f"/u/dead/v1/chat/completions?key={KEYS[2]}", {"Authorization": f"Bearer {KEYS[0]}"}),
    (f"/u/nowhere/v1/messages?key={KEYS[2]}", {"X-Api-Key": KEYS[1]}),
)


async def answer(request: Received, side: UpstreamSide) -> None:
    """Echoes what it got, as some services do in their errors; or breaks off."""
    if request.header("x-want") == "break":
        await side.send(chunked_head())
        side.reset()
    elif request.header("x-want") == "garbage":
        await side.send(f"HTTP/1.1 2x0 {request.header('authorization')}\r\n\r\n".encode())
    else:
        echoed = " ".join(f"{name}={value}" for name, value in request.headers)
        await side.send(plain_answer(echoed.encode(), "401 Unauthorized"))


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with scripted_upstream(answer) as running:
        yield running


@pytest.mark.parametrize("fault", ["", "raise", "killed", "junk"])
def test_no_key_is_kept_or_told(
    upstream: ScriptedUpstream, tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    """O47, T1: at every level of logging, with every kind of failure."""
    caplog.set_level(logging.DEBUG)
    folder, journal = tmp_path / "folder", tmp_path / "journal"
    settings = {"journal": str(journal), "fault": fault}
    dead = {"dead": Upstream("http://127.0.0.1:1", "http://127.0.0.1:1")}
    with running_gateway(upstream.url, folder=folder, upstreams=dead, planner_settings=settings) as gateway:
        told = []
        for target, headers in CARRIERS:
            for want in ("", "break", "garbage"):
                body = b'{"a": "long old text"}'
                got = ask(gateway.port, target, body, {**headers, "X-Want": want})
                if got.header("x-gatekeeper") is None or got.status == 502:
                    told.append(got.body.decode())
        gateway.run(gateway.gateway.planner.wait_until_up())
        gateway.run(gateway.gateway.planner.status(DEADLINE_SECONDS))
        told += [ask(gateway.port, path, method="GET").body.decode() for path in ("/stats", "/metrics", "/healthz")]
        told.append(repr(gateway.gateway.config))
    told += [record.getMessage() + str(record.exc_info) + str(record.args) for record in caplog.records]
    told += [path.read_text("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    assert len(told) > 8
    for key in (*KEYS, "TESTKEY"):
        assert [text for text in told if key in text] == []


def test_one_credential_is_one_name_and_another_is_another(tmp_path: Path) -> None:
    hashes = CredentialHash.from_file(tmp_path / "new" / "gateway.key")
    by_key = hashes.of({b"x-api-key": b"k1"}, b"")
    assert len(by_key) == 64
    assert hashes.of({b"authorization": b"Bearer k1"}, b"") == by_key
    assert hashes.of({b"authorization": b"bearer  k1 "}, b"") == by_key
    assert hashes.of({}, b"alt=sse&key=k1") == by_key
    assert hashes.of({b"x-api-key": b"k2"}, b"") != by_key
    assert hashes.of({}, b"key=&other=1") == hashes.of({b"authorization": b"Bearer "}, b"") == ""


def test_the_key_of_the_names_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "gateway.key"
    first = CredentialHash.from_file(path).of({b"x-api-key": b"k"}, b"")
    assert CredentialHash.from_file(path).of({b"x-api-key": b"k"}, b"") == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert CredentialHash.from_file(tmp_path / "other.key").of({b"x-api-key": b"k"}, b"") != first


def test_a_key_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short.key").write_bytes(b"short")
    with pytest.raises(ConfigError, match="too short; remove the file"):
        CredentialHash.from_file(tmp_path / "short.key")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be kept there"):
        CredentialHash.from_file(tmp_path / "file" / "gateway.key")


def test_clients_are_told_apart_by_their_credentials(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    def credentials(gateway: RunningGateway) -> list[str]:
        for key in ("a", "b", "a"):
            ask(gateway.port, "/v1/messages", b"{}", {"X-Api-Key": key})
        ask(gateway.port, "/v1/messages", b"{}")
        gateway.run(gateway.gateway.planner.status(DEADLINE_SECONDS))
        return [entry["credential"] for entry in read_journal(tmp_path / "journal") if entry["kind"] == "plan"]

    settings = {"journal": str(tmp_path / "journal")}
    with running_gateway(upstream.url, folder=tmp_path, planner_settings=settings) as gateway:
        first, second, third, none = credentials(gateway)
    assert first == third != second
    assert none == ""


def masked(headers: dict[bytes, bytes], query: bytes = b"") -> CredentialMask:
    return CredentialHash(b"k" * 32).mask(headers, query)


LONG = b"CANARYzq7Xk93vLmP0aB"


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({b"x-api-key": LONG}, b""),
        ({b"authorization": b"Bearer " + LONG}, b""),
        ({b"authorization": b"Basic " + LONG}, b""),
        ({b"x-api-key": b"another-long-credential", b"authorization": b"bearer  " + LONG}, b""),
        ({}, b"alt=sse&key=" + LONG),
    ],
)
def test_a_credential_in_a_text_has_a_name_there_and_is_shown_again(headers: dict[bytes, bytes], query: bytes) -> None:
    mask = masked(headers, query)
    text = b'{"text":"your key is %b, really %b"}' % (LONG, LONG)
    hidden, shown = mask.hide_request(text)
    assert LONG not in hidden
    assert hidden == mask.hide(text)
    assert shown.show(hidden) == text
    assert mask.hide_request(text) == masked(headers, query).hide_request(text)
    assert LONG not in repr(mask.hide(text)).encode()


def test_of_what_was_not_in_a_request_nothing_is_shown() -> None:
    mask = masked({b"x-api-key": LONG})
    name = mask.hide(LONG)
    hidden, shown = mask.hide_request(b"an older page says " + name)
    assert (hidden, shown.show(hidden)) == (b"an older page says " + name,) * 2
    both = name + b" stands for " + LONG
    hidden, shown = mask.hide_request(both)
    assert LONG not in hidden
    assert shown.show(hidden) == both


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        (b"ollama", b"run ollama serve", b"run ollama serve"),
        (b"sk-1234", b"use sk-1234, not sk-12345 or xsk-1234", b"use %b, not sk-12345 or xsk-1234"),
        (b"\\1+.*4", b"a \\1+.*4 b", b"a %b b"),
    ],
)
def test_a_short_credential_is_hidden_where_it_stands_alone(key: bytes, text: bytes, expected: bytes) -> None:
    mask = masked({b"x-api-key": key})
    name = mask.names[0][1]
    assert mask.hide(text) == (expected % name if b"%b" in expected else expected)


def test_without_credentials_nothing_is_hidden() -> None:
    assert masked({}).hide(b"text") == CredentialMask().show(b"text") == b"text"


@pytest.mark.parametrize("status", ["200 OK", "401 Unauthorized"])
def test_a_key_in_an_answer_and_in_the_next_request_is_hidden_from_the_planner(tmp_path: Path, status: str) -> None:
    async def echo(_request: Received, side: UpstreamSide) -> None:
        await side.send(plain_answer(b'{"t":"your key is %b"}' % LONG, status))

    settings = {"journal": str(tmp_path / "journal")}
    with (
        scripted_upstream(echo) as upstream,
        running_gateway(upstream.url, folder=tmp_path, planner_settings=settings) as gateway,
    ):
        for body in (b'{"a":"x"}', b'{"a":"%b","b":"long old text"}' % LONG):
            got = ask(gateway.port, "/v1/messages", body, {"X-Api-Key": LONG.decode()})
            assert LONG in got.body
        gateway.run(gateway.gateway.planner.status(DEADLINE_SECONDS))
        assert upstream.received[-1].body == b'{"a":"%b","b":"[page 1]"}' % LONG
    assert LONG.decode() not in (tmp_path / "journal").read_text()
