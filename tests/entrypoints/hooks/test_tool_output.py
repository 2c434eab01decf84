from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from context_gatekeeper.core.slimming import MEASURED_SLIMMING
from context_gatekeeper.entrypoints.hooks.tool_output import LEAST_CHARS
from tests.entrypoints.hooks.clients import LARGE, bash, hook_answer, run_hook, tool_event

PAGES = Path("data/context-gatekeeper/pages/7b616e6f-5ea5-47ce-a0cf-4ac35e7f939e")


def updated(home: Path, event: dict[str, object]) -> object:
    """What takes the result's place; None when it stays."""
    answer = hook_answer(home, event)
    if not answer:
        return None
    assert answer["hookSpecificOutput"]["hookEventName"] == "PostToolUse"
    return answer["hookSpecificOutput"]["updatedToolOutput"]


def test_the_limit_is_the_measured_one() -> None:
    assert MEASURED_SLIMMING.threshold_chars == LEAST_CHARS


def test_a_large_output_of_a_command_is_slimmed_in_its_own_shape(tmp_path: Path) -> None:
    slimmed = updated(tmp_path, tool_event("Bash", bash(LARGE, noOutputExpected=False)))

    assert isinstance(slimmed, dict)
    assert list(slimmed) == ["stdout", "stderr", "interrupted", "isImage", "noOutputExpected"]
    assert slimmed | {"stdout": ""} == bash("", noOutputExpected=False)
    assert len(slimmed["stdout"]) < 2500
    assert slimmed["stdout"].startswith("line 0 of what the command printed\n")
    assert "result of Bash make:" in slimmed["stdout"]


def test_the_view_names_a_file_that_holds_the_original_for_its_owner_alone(tmp_path: Path) -> None:
    slimmed = updated(tmp_path, tool_event("Bash", bash(LARGE)))

    page = tmp_path / PAGES / "toolu_01.txt"
    assert isinstance(slimmed, dict)
    assert slimmed["stdout"].endswith(f"whole text: {page}]")
    assert page.read_text("utf-8") == LARGE
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (page.parent, page.parent.parent)} == {0o700}
    assert [entry.name for entry in page.parent.iterdir()] == ["toolu_01.txt"]


def test_the_same_result_gets_the_same_answer_byte_for_byte(tmp_path: Path) -> None:
    event = tool_event("Bash", bash(LARGE))

    assert run_hook(tmp_path, event).stdout == run_hook(tmp_path, event).stdout
    assert len(list((tmp_path / PAGES).iterdir())) == 1


def test_another_result_under_the_same_name_leaves_the_first_ones_file_alone(tmp_path: Path) -> None:
    hook_answer(tmp_path, tool_event("Bash", bash(LARGE)))
    slimmed = updated(tmp_path, tool_event("Bash", bash(f"{LARGE}\nmore")))

    assert (tmp_path / PAGES / "toolu_01.txt").read_text("utf-8") == LARGE
    (other,) = (tmp_path / PAGES).glob("toolu_01-*.txt")
    assert isinstance(slimmed, dict)
    assert slimmed["stdout"].endswith(f"{other}]")
    assert other.read_text("utf-8") == f"{LARGE}\nmore"


def test_output_and_errors_are_slimmed_apart(tmp_path: Path) -> None:
    slimmed = updated(tmp_path, tool_event("Bash", bash(LARGE) | {"stderr": f"E {LARGE}"}))

    assert isinstance(slimmed, dict)
    assert max(len(slimmed["stdout"]), len(slimmed["stderr"])) < 2500
    assert (tmp_path / PAGES / "toolu_01-stderr.txt").read_text("utf-8") == f"E {LARGE}"


@pytest.mark.parametrize("shape", ["list", "object", "text"])
def test_results_of_mcp_tools_keep_their_blocks(tmp_path: Path, shape: str) -> None:
    blocks = [{"type": "text", "text": "few"}, {"type": "image", "data": LARGE}, {"type": "text", "text": LARGE}]
    response = {"list": blocks, "object": {"content": blocks, "isError": False}, "text": LARGE}[shape]

    slimmed = updated(tmp_path, tool_event("mcp__db__query", response))

    if isinstance(slimmed, str):
        assert shape == "text"
        assert "whole text: " in slimmed
        return
    told = slimmed["content"] if isinstance(slimmed, dict) else slimmed
    assert isinstance(told, list)
    assert told[:2] == blocks[:2]
    assert list(told[2]) == ["type", "text"]
    assert len(told[2]["text"]) < 2500


def test_found_lines_and_fetched_pages_are_slimmed(tmp_path: Path) -> None:
    found = updated(tmp_path, tool_event("Grep", {"mode": "content", "content": LARGE, "numLines": 900}))
    fetched = updated(tmp_path, tool_event("WebFetch", {"code": 200, "result": LARGE}, tool_use_id="toolu_02"))

    assert isinstance(found, dict)
    assert isinstance(fetched, dict)
    assert (found["numLines"], fetched["code"]) == (900, 200)
    assert max(len(found["content"]), len(fetched["result"])) < 2500


@pytest.mark.parametrize(
    "event",
    [
        tool_event("Bash", bash("few")),
        tool_event("Bash", bash(LARGE, isImage=True)),
        tool_event("Bash", bash(LARGE[:30_000], persistedOutputPath="/kept.txt")),
        tool_event("Bash", bash(LARGE), tool_input={"command": "cat notes.txt"}),
        tool_event("Bash", LARGE),
        tool_event("Bash", None),
        tool_event("Bash", bash(LARGE) | {"stdout": [LARGE]}),
        tool_event("Read", {"type": "text", "file": {"filePath": "/a.py", "content": LARGE}}),
        tool_event("Grep", {"mode": "files_with_matches", "content": LARGE}),
        tool_event("Agent", {"content": [{"type": "text", "text": LARGE}]}),
        tool_event("mcp__files__read_file", [{"type": "text", "text": LARGE}]),
        tool_event("mcp__db__query", {"content": [{"type": "text", "text": LARGE}], "structuredContent": {}}),
        tool_event("mcp__cgk__cgk_expand", [{"type": "text", "text": LARGE}]),
        tool_event("mcp__db__query", [LARGE, 3]),
        tool_event("mcp__db__query", 3),
        tool_event("mcp__db__query", [{"type": "text", "text": LARGE}], turn_id="t1", model="gpt"),
    ],
    ids=lambda event: f"{event['tool_name']}-{str(event['tool_response'])[:40]}",
)
def test_what_is_small_or_read_or_unknown_or_codexs_stays_and_leaves_no_file(
    tmp_path: Path, event: dict[str, object]
) -> None:
    assert hook_answer(tmp_path, event) == {}
    assert not (tmp_path / "data").exists()


def test_names_of_the_client_become_no_path(tmp_path: Path) -> None:
    event = tool_event("Bash", bash(LARGE), session_id="../../out", tool_use_id="/etc/passwd")

    assert updated(tmp_path, event) is not None
    (page,) = (tmp_path / "data").rglob("*.txt")
    assert page.parent.parent == (tmp_path / PAGES).parent
    assert set(f"{page.parent.name}{page.stem}") <= set("0123456789abcdef")


def test_a_call_without_a_name_is_kept_too(tmp_path: Path) -> None:
    assert updated(tmp_path, tool_event("Bash", bash(LARGE), tool_use_id=None, tool_input=None)) is not None
    assert len(list((tmp_path / "data").rglob("*.txt"))) == 1


def test_lone_surrogates_come_through(tmp_path: Path) -> None:
    slimmed = updated(tmp_path, tool_event("Bash", bash(f"\ud83d {LARGE}")))

    assert isinstance(slimmed, dict)
    assert slimmed["stdout"].startswith("\ud83d ")
    kept = (tmp_path / PAGES / "toolu_01.txt").read_bytes()
    assert kept.decode("utf-8", "surrogatepass") == f"\ud83d {LARGE}"


def test_nothing_is_said_when_the_original_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no folder", "utf-8")

    result = run_hook(tmp_path, tool_event("Bash", bash(LARGE)), env={"CGK_DEBUG": "1"})

    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr.startswith("cgk hook: NotADirectoryError")
    assert len(result.stderr.splitlines()) == 1


def test_a_link_in_the_place_of_a_page_is_not_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("mine", "utf-8")
    (tmp_path / PAGES).mkdir(parents=True)
    (tmp_path / PAGES / "toolu_01.txt").symlink_to(outside)

    assert updated(tmp_path, tool_event("Bash", bash(LARGE))) is not None
    assert outside.read_text("utf-8") == "mine"


SECRET = "AKIAIOSFODNN7EXAMPLQ"


def test_where_secrets_are_to_be_kept_nowhere_a_result_with_one_stays(tmp_path: Path) -> None:
    event = tool_event("Bash", bash(f"aws_access_key_id = {SECRET}\n{LARGE}"))

    assert hook_answer(tmp_path, event, env={"CGK_REDACTION": "drop"}) == {}
    assert not list(tmp_path.rglob("*.txt"))
    assert hook_answer(tmp_path, event, env={"CGK_REDACTION": "keep"}) != {}
    assert hook_answer(tmp_path, tool_event("Bash", bash(LARGE)), env={"CGK_REDACTION": "drop"}) != {}


def test_shadow_and_the_kill_switch_change_nothing(tmp_path: Path) -> None:
    event = tool_event("Bash", bash(LARGE))
    switch = tmp_path / "config" / "context-gatekeeper" / "gateway.off"

    assert hook_answer(tmp_path, event, "--shadow") == {}
    assert hook_answer(tmp_path, event, env={"CGK_GATEWAY": "off"}) == {}
    switch.parent.mkdir(parents=True)
    switch.touch()
    assert hook_answer(tmp_path, event) == {}
    assert not (tmp_path / "data").exists()
    switch.unlink()
    assert json.dumps(hook_answer(tmp_path, event)).count("whole text") == 1


def test_a_page_is_not_for_others_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        hook_answer(tmp_path, tool_event("Bash", bash(LARGE)))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / PAGES / "toolu_01.txt").stat().st_mode) == 0o600
