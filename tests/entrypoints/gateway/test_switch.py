"""The kill switch and shadow mode: settings, environment, file and header."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.entrypoints.gateway.switch import KillSwitch, turn_off, turn_on
from context_gatekeeper.errors import ConfigError
from tests.entrypoints.gateway.running import (
    Received,
    ScriptedUpstream,
    UpstreamSide,
    ask,
    plain_answer,
    read_journal,
    running_gateway,
    scripted_upstream,
)

BODY = b'{"a":"long old text"}'


async def answer(_request: Received, side: UpstreamSide) -> None:
    await side.send(plain_answer(b"{}"))


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with scripted_upstream(answer) as running:
        yield running


def notes(
    upstream: ScriptedUpstream, folder: Path, headers: dict[str, str], **fields: Any
) -> tuple[str | None, bytes, list[bool]]:
    """Note and forwarded body of one request, and for each call that the planner saw whether it was a shadow."""
    journal = folder / "journal"
    with running_gateway(upstream.url, folder=folder, planner_settings={"journal": str(journal)}, **fields) as gateway:
        got = ask(gateway.port, "/v1/messages", BODY, headers)
    calls = [entry["shadow"] for entry in read_journal(journal) if entry["kind"] == "plan"]
    return got.note, upstream.received[-1].body, calls


@pytest.mark.parametrize("value", ["off", "OFF"])
def test_the_header_switches_one_request_off(upstream: ScriptedUpstream, tmp_path: Path, value: str) -> None:
    assert notes(upstream, tmp_path, {"X-Gatekeeper": value}) == ("off", BODY, [])
    assert upstream.received[-1].header("x-gatekeeper") is None


def test_the_settings_switch_everything_off(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    assert notes(upstream, tmp_path, {}, off=True) == ("off", BODY, [])


def test_the_file_switches_everything_off(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    turn_off(tmp_path / "gateway.off")
    assert notes(upstream, tmp_path, {}) == ("off", BODY, [])
    turn_on(tmp_path / "gateway.off")
    assert notes(upstream, tmp_path, {})[0] == "plan"


@pytest.mark.parametrize(("headers", "fields"), [({"X-Gatekeeper": "shadow"}, {}), ({}, {"shadow": True})])
def test_in_shadow_mode_plans_are_made_and_not_sent(
    upstream: ScriptedUpstream, tmp_path: Path, headers: dict[str, str], fields: dict[str, Any]
) -> None:
    assert notes(upstream, tmp_path, headers, **fields) == ("shadow", BODY, [True])


def test_the_file_is_looked_for_once_a_second(tmp_path: Path) -> None:
    now = [100.0]
    switch = KillSwitch(tmp_path / "gateway.off", is_always_off=False, clock=lambda: now[0])
    assert not switch.is_off
    turn_off(tmp_path / "gateway.off")
    now[0] = 100.9
    assert not switch.is_off
    now[0] = 101.0
    assert switch.is_off
    turn_on(tmp_path / "gateway.off")
    assert switch.is_off
    now[0] = 102.5
    assert not switch.is_off


def test_switching_twice_is_no_fault_and_a_folder_that_is_none_is_told(tmp_path: Path) -> None:
    off_file = tmp_path / "new" / "gateway.off"
    turn_on(off_file)
    turn_off(off_file)
    turn_off(off_file)
    turn_on(off_file)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="x-gatekeeper: off"):
        turn_off(tmp_path / "file" / "gateway.off")
    with pytest.raises(ConfigError, match="the switch cannot be changed"):
        turn_on(tmp_path / "file" / "gateway.off")
