from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from context_gatekeeper import config
from context_gatekeeper.config import default_store, settings_folder
from context_gatekeeper.entrypoints.hook import answer_event
from context_gatekeeper.entrypoints.hooks import page_files, running_gateway, settings
from tests.entrypoints.hooks.clients import LARGE, bash, environ_of, hook_answer, run_hook, tool_event
from tests.entrypoints.running import COMMAND, DEADLINE_SECONDS


@pytest.mark.parametrize("name", ["Stop", "SubagentStop", "Notification", "PreToolUse", "FromTheFuture", ""])
def test_events_that_are_none_of_ours_get_an_empty_object(tmp_path: Path, name: str) -> None:
    assert hook_answer(tmp_path, {"hook_event_name": name, "session_id": "s"}) == {}


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "3", '{"hook_event_name":', "[" * 100_000, "\x00"])
def test_what_is_no_event_gets_nothing_and_ends_well(tmp_path: Path, text: str) -> None:
    result = run_hook(tmp_path, text)

    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_fields_of_the_wrong_kind_are_as_if_they_were_not_there(tmp_path: Path) -> None:
    event = {"hook_event_name": ["PostToolUse"], "session_id": 3, "cwd": None, "prompt": {}}

    assert hook_answer(tmp_path, event) == {}
    assert hook_answer(tmp_path, event | {"hook_event_name": "UserPromptSubmit"}) == {}


def test_the_reason_is_told_to_whoever_asks_for_it_in_one_line(tmp_path: Path) -> None:
    result = run_hook(tmp_path, "no\nJSON", env={"CGK_DEBUG": "1"})

    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr.startswith("cgk hook: JSONDecodeError: ")
    assert len(result.stderr.splitlines()) == 1


def test_closed_streams_end_well(tmp_path: Path) -> None:
    shell = '"$@" <&- >&- 2>&-; echo $?'
    result = subprocess.run(
        ["sh", "-c", shell, "sh", *COMMAND, "hook"],
        env=environ_of(tmp_path),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert result.stdout == "0\n"


def test_a_reader_that_left_does_not_change_the_exit_code(tmp_path: Path) -> None:
    shell = '{ "$@"; echo $? >&2; } | true'
    result = subprocess.run(
        ["sh", "-c", shell, "sh", *COMMAND, "hook"],
        input=json.dumps(tool_event("Bash", bash(LARGE))),
        env=environ_of(tmp_path),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert result.stderr == "0\n"


def test_a_client_that_never_ends_its_event_is_left_in_time(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "hook"], env=environ_of(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"{")
    process.stdin.flush()

    assert process.wait(DEADLINE_SECONDS) == 0
    assert process.stdout.read() == b""
    process.stdin.close()
    process.stdout.close()


def test_a_small_result_loads_nothing_but_the_standard_library(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from context_gatekeeper.entrypoints.cli import main\n"
        "try:\n    main(['hook'])\n"
        "except SystemExit as end:\n    assert end.code == 0\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"],
        input=json.dumps(tool_event("Bash", bash("few"))),
        env=environ_of(tmp_path),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    loaded = set(result.stderr.split())
    ours = {name for name in loaded if name.startswith("context_gatekeeper.")}
    assert result.stdout == "{}\n"
    assert all(name.startswith("context_gatekeeper.entrypoints") for name in ours)
    assert not loaded & {"click", "rich", "platformdirs", "pathlib", "subprocess", "dataclasses", "sqlite3", "tomllib"}


def test_help_is_for_people(tmp_path: Path) -> None:
    result = run_hook(tmp_path, "", "--help")

    assert result.returncode == 0
    assert "Usage: cgk hook" in result.stdout


def test_folders_are_those_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folders in ({}, {"XDG_DATA_HOME": str(tmp_path / "d"), "XDG_CONFIG_HOME": str(tmp_path / "c")}):
        for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in folders.items():
            monkeypatch.setenv(name, value)
        for platform in ("linux", "another"):  # elsewhere the package that knows all platforms is asked
            monkeypatch.setattr(page_files.sys, "platform", platform)
            assert page_files.data_folder() == str(default_store().parent)
            assert page_files.settings_folder() == str(settings_folder())


def test_what_is_looked_up_without_loading_settings_is_what_the_settings_say() -> None:
    assert settings.DEBUG_VARIABLE == config.DEBUG_VARIABLE
    assert running_gateway.URL_VARIABLE == config.GATEWAY_URL_VARIABLE


def test_no_object_is_no_event() -> None:
    with pytest.raises(ValueError, match="no JSON object"):
        answer_event([])
