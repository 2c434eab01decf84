"""Logs that hold our views come into the pool with the originals, and no log can have another file read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.entrypoints.hook import answer_event
from context_gatekeeper.entrypoints.hooks.original_results import with_originals
from context_gatekeeper.entrypoints.hooks.page_files import forget_pages
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentSession, BlockKind
from tests.entrypoints.hooks.clients import LARGE, bash, environ_of, tool_event, write_claude_log
from tests.entrypoints.running import cgk_json, run_cgk

SESSION = "7b616e6f-5ea5-47ce-a0cf-4ac35e7f939e"
PAGES = Path("data/context-gatekeeper/pages")
MAKE = {"command": "make"}
SECRET = "what no log may have read\n" + LARGE


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in environ_of(tmp_path).items():
        monkeypatch.setenv(name, value)
    return tmp_path


def slimmed(tool: str, response: object, **others: object) -> Any:
    """What the hook puts in a result's place."""
    return answer_event(tool_event(tool, response, **others))["hookSpecificOutput"]["updatedToolOutput"]  # type: ignore[index]


def view_of_command(stdout: str = LARGE) -> str:
    return str(slimmed("Bash", bash(stdout))["stdout"])


def log_of(home: Path, content: object, tool: str = "Bash", arguments: object = MAKE) -> Path:
    """A log of Claude Code's with one call and what came of it."""
    call = [{"type": "tool_use", "id": "toolu_01", "name": tool, "input": arguments}]
    result = [{"type": "tool_result", "tool_use_id": "toolu_01", "content": content}]
    said: list[tuple[str, object]] = [("user", "Build it."), ("assistant", call), ("user", result)]
    return write_claude_log(home, SESSION, home, [*said, ("assistant", "It is built.")])


def session_of(home: Path, content: object, tool: str = "Bash", arguments: object = MAKE) -> AgentSession:
    (session,) = read_sessions(log_of(home, content, tool, arguments))
    return session


def results_of(session: AgentSession) -> list[str]:
    return [b.text for message in session.messages for b in message.blocks if b.kind is BlockKind.TOOL_RESULT]


def restored(home: Path, content: object, tool: str = "Bash", arguments: object = MAKE) -> Sequence[str]:
    """The results of a log's session with the originals in place."""
    return results_of(with_originals(session_of(home, content, tool, arguments), str(home / PAGES)))


# -- what comes back ------------------------------------------------------------------------------


def test_an_imported_log_brings_the_original_in_and_not_its_view(home: Path) -> None:
    log = log_of(home, view_of_command())
    env = {name: value for name, value in environ_of(home).items() if name.startswith("XDG_")}

    assert run_cgk(home, "import", log, env=env).returncode == 0

    pages = cgk_json(home, "pages", SESSION, env=env)["pages"]
    texts = [run_cgk(home, "expand", page["handle"], env=env).stdout for page in pages]
    assert any(LARGE in text for text in texts)
    assert not any("whole text: " in text for text in texts)
    assert cgk_json(home, "import", log, env=env)["added_pages"] == 0


def test_a_log_as_the_client_writes_it_with_our_answer_beside_the_result_comes_in_with_the_original(home: Path) -> None:
    view = view_of_command()
    log = log_of(home, view)
    first, call, result, last = (json.loads(line) for line in log.read_text("utf-8").splitlines())
    common = {"userType": "external", "entrypoint": "sdk-cli", "version": "2.1.332", "gitBranch": "HEAD"}
    result |= {
        **common,
        "promptId": "4daf49d7-949f-43e9-bff1-801495a15b8b",
        "toolUseResult": bash(view, noOutputExpected=False),
        "sourceToolAssistantUUID": call["uuid"],
    }
    answer = {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": bash(view)}}
    told = {
        **{name: result[name] for name in ("isSidechain", "sessionId", "cwd", "timestamp")},
        **common,
        "type": "attachment",
        "uuid": "2bbe7d96-eb75-471d-8755-2b703c4316c6",
        "parentUuid": result["uuid"],
        "attachment": {
            "type": "hook_success",
            "hookName": "PostToolUse:Bash",
            "toolUseID": "toolu_01",
            "hookEvent": "PostToolUse",
            "content": "",
            "stdout": json.dumps(answer),
            "exitCode": 0,
        },
    }
    last["parentUuid"] = told["uuid"]
    log.write_text("".join(json.dumps(one) + "\n" for one in (first, call, result, told, last)), "utf-8")
    (session,) = read_sessions(log)

    whole = with_originals(session, str(home / PAGES))

    assert results_of(session) == [view]
    assert results_of(whole) == [LARGE]
    assert [message.role for message in whole.messages] == [message.role for message in session.messages]


def test_a_view_inside_other_output_is_replaced_where_it_stands(home: Path) -> None:
    view = view_of_command()

    assert restored(home, f"before\n{view}\nbehind") == [f"before\n{LARGE}\nbehind"]


def test_output_and_errors_of_one_result_both_come_back(home: Path) -> None:
    told = slimmed("Bash", bash(LARGE) | {"stderr": f"E {LARGE}"})

    assert restored(home, f"{told['stdout']}\n{told['stderr']}") == [f"{LARGE}\nE {LARGE}"]


def test_blank_lines_that_the_client_takes_away_in_front_do_not_matter(home: Path) -> None:
    text = f"\n  \n  indented\n{LARGE}"
    view = view_of_command(text)

    assert view.startswith("\n  \n")
    assert restored(home, view[view.index("  indented") :]) == [text]


def test_each_block_of_an_mcp_result_comes_back(home: Path) -> None:
    blocks = [{"type": "text", "text": "few"}, {"type": "text", "text": LARGE}, {"type": "text", "text": f"2 {LARGE}"}]
    asked = {"query": "select 1"}
    told = slimmed("mcp__db__query", blocks, tool_input=asked)

    assert restored(home, told, "mcp__db__query", asked) == ["few", LARGE, f"2 {LARGE}"]


def test_a_session_without_views_is_the_same_object(home: Path) -> None:
    session = session_of(home, LARGE)

    assert with_originals(session, str(home / PAGES)) is session


# -- what stays -----------------------------------------------------------------------------------


def test_a_view_whose_file_is_gone_stays(home: Path) -> None:
    view = view_of_command()
    (home / PAGES / SESSION / "toolu_01.txt").unlink()

    assert restored(home, view) == [view]


@pytest.mark.parametrize(
    ("tool", "arguments"), [("Bash", {"command": "other"}), ("mcp__db__query", MAKE), ("Bash", ["make"])]
)
def test_a_view_of_another_call_stays(home: Path, tool: str, arguments: object) -> None:
    view = view_of_command()

    assert restored(home, view, tool, arguments) == [view]


@pytest.mark.parametrize("change", ["", "line 5", "[... 1 line left out: line 3 ...]"])
def test_what_is_not_the_view_to_the_letter_stays(home: Path, change: str) -> None:
    view = view_of_command()
    told = change + view[1:]

    assert restored(home, told) == [told]


def test_a_view_said_by_anybody_but_a_tool_stays(home: Path) -> None:
    view = view_of_command()
    log = write_claude_log(home, SESSION, home, [("user", view), ("assistant", view)])
    (session,) = read_sessions(log)

    told = with_originals(session, str(home / PAGES))

    assert [block.text for message in told.messages for block in message.blocks] == [view, view]


def forged(home: Path, path: str) -> str:
    """The view that our hook would make of the secret, with another file's path."""
    view = view_of_command(SECRET)
    return view.replace(str(home / PAGES / SESSION / "toolu_01.txt"), path)


@pytest.mark.parametrize(
    "path",
    [
        "{pages}/../secret.txt",
        "{pages}/x/../../secret.txt",
        "{pages}/{session}/../../secret.txt",
        "{pages}//{session}/toolu_01.txt",
        "{pages}/./toolu_01.txt",
        "{pages}/secret.txt",
        "{pages}/{session}/sub/toolu_01.txt",
        "{pages}/{session}/agent-1/sub/toolu_01.txt",
        "{pages}/{session}/agent-1/../../../secret.txt",
        "{pages}-other/{session}/toolu_01.txt",
    ],
)
def test_paths_out_of_our_folder_are_never_read(home: Path, path: str) -> None:
    told = path.format(pages=home / PAGES, session=SESSION)
    view = forged(home, told)
    place = Path(told)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(SECRET)

    assert restored(home, view) == [view]


def test_links_in_our_folder_are_never_followed(home: Path) -> None:
    view = view_of_command(SECRET)
    page = home / PAGES / SESSION / "toolu_01.txt"
    page.rename(home / "secret.txt")
    page.symlink_to(home / "secret.txt")
    assert restored(home, view) == [view]
    page.unlink()
    page.parent.rmdir()
    (home / "elsewhere").mkdir()
    (home / "secret.txt").rename(home / "elsewhere" / page.name)
    page.parent.symlink_to(home / "elsewhere")
    assert restored(home, view) == [view]


def test_a_file_whose_text_is_another_by_now_is_not_taken(home: Path) -> None:
    view = view_of_command()
    (home / PAGES / SESSION / "toolu_01.txt").write_text(SECRET)
    assert restored(home, view) == [view]
    (home / PAGES / SESSION / "toolu_01.txt").write_bytes(b"\xff\xfe")
    assert restored(home, view) == [view]


# -- forgetting -----------------------------------------------------------------------------------


def test_forgetting_a_session_removes_its_files_and_no_others(home: Path) -> None:
    log = log_of(home, view_of_command())
    view_other = slimmed("Bash", bash(LARGE), session_id="other", tool_use_id="toolu_02")["stdout"]
    env = {name: value for name, value in environ_of(home).items() if name.startswith("XDG_")}
    run_cgk(home, "import", log, env=env)

    told = cgk_json(home, "forget", SESSION, "--yes", env=env)

    assert told["deleted_files"] == 1
    assert sorted(entry.name for entry in (home / PAGES).iterdir()) == ["other"]
    assert str(home / PAGES / "other" / "toolu_02.txt") in view_other
    assert json.loads(run_cgk(home, "import", log, "--json", env=env).stdout)["added_pages"] == 0


def test_forgetting_says_how_many_files_went(home: Path) -> None:
    env = {name: value for name, value in environ_of(home).items() if name.startswith("XDG_")}
    for kept, said in ((True, "and 1 file deleted for good"), (False, "pages deleted for good")):
        log = log_of(home, view_of_command() if kept else "few")
        run_cgk(home, "import", log, "--store", f"{kept}.db", env=env)
        shown = run_cgk(home, "forget", SESSION, "--yes", "--store", f"{kept}.db", env=env)
        assert said in shown.stdout, (shown.stdout, shown.stderr)


def test_files_that_cannot_be_deleted_are_told(home: Path) -> None:
    log = log_of(home, view_of_command())
    env = {name: value for name, value in environ_of(home).items() if name.startswith("XDG_")}
    run_cgk(home, "import", log, env=env)
    (home / PAGES / SESSION / "a-folder").mkdir()

    shown = run_cgk(home, "forget", SESSION, "--yes", env=env)

    assert shown.returncode == 2
    assert "its files stay" in shown.stderr


AGENT = "a0d8585e0f776f284"


def log_of_agent(home: Path, view: str) -> Path:
    """The log of a sub-agent, as Claude Code keeps it beside its session's."""
    (home / "subagents").mkdir()
    log = log_of(home / "subagents", view)
    lines = [json.loads(line) | {"isSidechain": True, "agentId": AGENT} for line in log.read_text("utf-8").splitlines()]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return log


def import_both(home: Path) -> dict[str, str]:
    """A session and its sub-agent, each with a result of the same call's name that the hook slimmed."""
    env = {name: value for name, value in environ_of(home).items() if name.startswith("XDG_")}
    agents = f"the sub-agent's {LARGE}"
    logs = (
        log_of(home, view_of_command()),
        log_of_agent(home, slimmed("Bash", bash(agents), agent_id=AGENT, agent_type="Explore")["stdout"]),
    )
    for log in logs:
        assert run_cgk(home, "import", log, env=env).returncode == 0
    assert sorted(file_texts(home)) == [LARGE, agents]
    return env


def file_texts(home: Path) -> list[str]:
    return [file.read_text("utf-8") for file in (home / PAGES).rglob("*.txt")]


def test_the_original_of_a_sub_agents_result_comes_in_with_its_own_log(home: Path) -> None:
    env = import_both(home)

    pages = cgk_json(home, "pages", f"{SESSION}/agent-{AGENT}", env=env)["pages"]

    texts = [run_cgk(home, "expand", page["handle"], env=env).stdout for page in pages]
    assert any(f"the sub-agent's {LARGE}" in text for text in texts)
    assert not any("whole text: " in text for text in texts)


def test_forgetting_a_session_removes_its_sub_agents_sessions_and_files_too(home: Path) -> None:
    env = import_both(home)

    told = cgk_json(home, "forget", SESSION, "--yes", env=env)

    assert told["sessions"] == [SESSION, f"{SESSION}/agent-{AGENT}"]
    assert told["deleted_files"] == 2
    assert list((home / PAGES).iterdir()) == []
    assert "no such agent session" in run_cgk(home, "pages", f"{SESSION}/agent-{AGENT}", env=env).stderr


def test_files_of_a_sub_agent_whose_log_never_came_in_go_with_its_session(home: Path) -> None:
    env = {name: value for name, value in environ_of(home).items() if name.startswith("XDG_")}
    run_cgk(home, "import", log_of(home, view_of_command()), env=env)
    slimmed("Bash", bash(f"2 {LARGE}"), agent_id=AGENT)

    assert cgk_json(home, "forget", SESSION, "--yes", env=env)["deleted_files"] == 2
    assert file_texts(home) == []


def test_forgetting_a_sub_agent_leaves_its_session_and_that_ones_files(home: Path) -> None:
    env = import_both(home)

    told = cgk_json(home, "forget", f"{SESSION}/agent-{AGENT}", "--yes", env=env)

    assert (told["sessions"], told["deleted_files"]) == ([f"{SESSION}/agent-{AGENT}"], 1)
    assert file_texts(home) == [LARGE]
    assert cgk_json(home, "pages", SESSION, env=env)["pages"] != []


def test_while_another_session_of_the_same_log_stays_the_sub_agents_stay(home: Path) -> None:
    env = import_both(home)
    log = log_of(home, "another result")
    assert run_cgk(home, "import", log, env=env).returncode == 0

    assert cgk_json(home, "forget", f"{SESSION}~2", "--yes", env=env)["sessions"] == [f"{SESSION}~2"]


def test_forgetting_a_page_removes_the_file_of_its_text_and_no_other(home: Path) -> None:
    env = import_both(home)
    slimmed("Bash", bash(f"more {LARGE}"), tool_use_id="toolu_02")
    pages = cgk_json(home, "pages", SESSION, env=env)["pages"]
    (handle,) = [one["handle"] for one in pages if LARGE in run_cgk(home, "expand", one["handle"], env=env).stdout]

    told = cgk_json(home, "forget", handle, handle, "--yes", env=env)

    assert told["deleted_files"] == 1
    assert sorted(file_texts(home)) == [f"more {LARGE}", f"the sub-agent's {LARGE}"]


def test_forgetting_a_page_that_no_file_was_kept_of_removes_none(home: Path) -> None:
    env = import_both(home)
    handle = cgk_json(home, "pages", SESSION, env=env)["pages"][0]["handle"]

    assert cgk_json(home, "forget", handle, "--yes", env=env)["deleted_files"] == 0
    assert len(file_texts(home)) == 2


def test_a_link_in_the_place_of_a_sub_agents_folder_is_not_followed(home: Path) -> None:
    view_of_command()
    (home / "outside").mkdir()
    (home / "outside" / "mine.txt").write_text("mine")
    (home / PAGES / SESSION / f"agent-{AGENT}").symlink_to(home / "outside")

    forget_pages(SESSION, folder=str(home / PAGES))

    assert (home / "outside" / "mine.txt").read_text() == "mine"
    assert not (home / PAGES / SESSION).exists()
