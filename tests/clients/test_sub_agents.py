"""A sub-agent of Claude Code's has its agent's session and is another conversation all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from context_gatekeeper.testing import FakeCall, FakeReply, ReceivedRequest
from tests.clients.cases import ClaudeCode
from tests.clients.runs import NOTES, SUB_AGENT, THROUGH, place_folders, record_with
from tests.clients.scripted import Read, Says, ScriptedModel, Shell, calls

DELEGATED = "Read the notes and say what is in them."
SUB_ANSWER = "The notes are about lamps."
ANSWER = "The other agent has read them."


class Delegating:
    """Calls a sub-agent first; both then have a script of their own."""

    def __init__(self, folder: Path) -> None:
        client = ClaudeCode()
        # The command lasts until the sub-agent has ended.
        self._main = ScriptedModel([calls(Shell("sleep 4")), Says(ANSWER)], client.call, folder)
        self._sub = ScriptedModel([calls(Read("notes.txt")), Says(SUB_ANSWER)], client.call, folder)
        self._is_first = True

    def __call__(self, request: ReceivedRequest) -> FakeReply:
        if self._is_first:
            self._is_first = False
            wanted = {"description": "Read the notes", "prompt": DELEGATED, "subagent_type": "general-purpose"}
            return FakeReply("Let another do it.", calls=(FakeCall("Agent", wanted),))
        return (self._sub if SUB_AGENT in request.headers else self._main)(request)


def test_a_sub_agent_is_kept_apart_from_the_agent_that_started_it(runs_all: bool, tmp_path: Path) -> None:
    client = ClaudeCode()
    if reason := client.missing() if runs_all else f"{client.name}: run by `make clients`":
        pytest.skip(reason)
    place_folders(tmp_path)
    (tmp_path / "folder" / "notes.txt").write_text(NOTES, "utf-8")
    recording = record_with(client, THROUGH, tmp_path, Delegating(tmp_path / "folder"), ["Let the notes be read."])
    assert ANSWER in recording.run.stdout, recording.run
    assert recording.provider.refusals == []
    subs = [request for request in recording.main if SUB_AGENT in request.headers]
    assert len(subs) == 2
    assert len({request.session for request in recording.main}) == 1, "one session by its name"
    assert len(recording.stats["status"]["sessions"]) == 2, "two conversations all the same"
    assert recording.prefix_breaks == []
