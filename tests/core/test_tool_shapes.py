"""Calls and results of coding agents, as their logs hold them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.tool_shapes import (
    ToolKind,
    align_output,
    decode_string,
    find_duration,
    find_exit_code,
    is_file_read,
    json_strings,
    patch_paths,
    read_command,
    tool_kind,
    tool_path,
    tool_todos,
)
from tests.core.texts import ANY_TEXT


def told(arguments: str) -> str | None:
    command = read_command(arguments)
    return None if command is None else arguments[command.start : command.end]


# -- JSON as it stands --------------------------------------------------------------------------


def test_the_strings_of_broken_json_are_told_as_far_as_it_goes() -> None:
    text = '{"a": "one", "b": ["two", 3, "th\\"ree"], "c": {"d": "four'
    strings = [(found.key, text[found.start : found.end]) for found in json_strings(text)]
    assert strings == [("a", "one"), ("b", "two"), ("b", 'th\\"ree'), ("d", "four")]


def test_strings_side_by_side_without_marks_are_both_told() -> None:
    text = '"a" "b"'
    assert [text[found.start : found.end] for found in json_strings(text)] == ["a", "b"]


def test_no_more_than_two_thousand_strings_are_told() -> None:
    assert len(json_strings('["x"' + ',"x"' * 5000 + "]")) == 2000


@given(st.recursive(st.text(max_size=8), lambda inner: st.lists(inner, max_size=3), max_leaves=6))
def test_the_strings_of_whole_json_are_all_told(document: object) -> None:
    def leaves(node: object) -> list[str]:
        return [node] if isinstance(node, str) else [leaf for part in node for leaf in leaves(part)]  # type: ignore[attr-defined]

    text = json.dumps(document)
    assert [decode_string(text[found.start : found.end]) for found in json_strings(text)] == leaves(document)


def test_broken_escapes_stay_as_they_are() -> None:
    assert (decode_string("a\\nb"), decode_string("a\\x"), decode_string("plain")) == ("a\nb", "a\\x", "plain")


# -- calls --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Read", ToolKind.READ), ("view", ToolKind.READ), ("mcp__files__read_file", ToolKind.READ),
        ("Edit", ToolKind.WRITE), ("MultiEdit", ToolKind.WRITE), ("NotebookEdit", ToolKind.WRITE),
        ("apply_patch", ToolKind.WRITE), ("Bash", ToolKind.SHELL), ("exec_command", ToolKind.SHELL),
        ("shell", ToolKind.SHELL), ("TodoWrite", ToolKind.TODO), ("update_plan", ToolKind.TODO),
        ("Grep", ToolKind.SEARCH), ("Glob", ToolKind.SEARCH), ("Task", ToolKind.OTHER), ("", ToolKind.OTHER),
    ],
)  # fmt: skip
def test_tools_are_known_by_name(name: str, kind: ToolKind) -> None:
    assert tool_kind(name) is kind


def test_an_editor_that_shows_a_file_reads_it() -> None:
    assert tool_kind("str_replace_editor", '{"command": "view", "path": "/a.py"}') is ToolKind.READ
    assert tool_kind("str_replace_editor", '{"command": "create", "path": "/a.py"}') is ToolKind.WRITE


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ('{"file_path": "/a/b.py", "old_string": "\\"path\\": \\"no\\""}', "/a/b.py"),
        ('{"path": "src/x.ts", "offset": 3}', "src/x.ts"),
        ('{"title": "view the file", "input": "/doc/方案.md (lines 3-9)"}', "/doc/方案.md"),
        ('{"file_path": "/a/b.py", "content": "cut of', "/a/b.py"),
        ('{"input": "two\\nlines"}', None),
        ('{"path": ""}', None),
        ("{}", None),
        ("null", None),
    ],
)
def test_the_path_of_a_file_tool_is_found(arguments: str, path: str | None) -> None:
    span = tool_path(arguments)
    assert (None if span is None else arguments[slice(*span)]) == path


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("*** Begin Patch\n*** Update File: src/a b.py\n@@\n*** Add File: n.md\n*** End Patch", ["src/a b.py", "n.md"]),
        ('{"input": "*** Begin Patch\\n*** Delete File: old.py\\n*** End Patch"}', ["old.py"]),
        ("diff --git a/x/y.go b/x/y.go\n--- a/x/y.go\n+++ b/x/y.go\n@@", ["x/y.go", "x/y.go"]),
        ("--- a/gone.go\n+++ /dev/null", []),
        ("nothing here", []),
    ],
)
def test_the_paths_of_patches_and_diffs_are_found(text: str, paths: list[str]) -> None:
    assert [text[slice(*span)] for span in patch_paths(text)] == paths


def test_a_huge_diff_tells_its_first_hundred_files() -> None:
    assert len(patch_paths("".join(f"+++ b/f{n}.py\n" for n in range(500)))) == 100


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ('{"todos": [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]}',
         [("b", "in_progress")]),
        ('{"plan": [{"step": "写测试", "status": "pending"}]}', [("写测试", "pending")]),
        ('{"plan": [{"status": "pending", "step": "late"}, {"step": "x", "status": "completed"}]}', []),
        ("- [x] one\n- [ ] two\n  - [ ] three", [("two", "open"), ("three", "open")]),
        ('{"todos": "## List\\n- [x] one\\n- [ ] two `x`"}', [("two `x`", "open")]),
        ('{"status": "pending"}', None),
        ('{"todos": []}', None),
    ],
)  # fmt: skip
def test_what_is_not_done_is_read_off_a_todo_list(text: str, items: list[tuple[str, str]] | None) -> None:
    todos = tool_todos(text)
    assert (None if todos is None else [(text[start:end], state) for start, end, state in todos]) == items


# -- commands -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ('{"command": "cd /a && go test ./... 2>&1 | tail -20", "description": "x"}', "go test ./... 2>&1 | tail -20"),
        ('{"command": ["bash", "-lc", "npm test -- --ci"]}', "npm test -- --ci"),
        ('["/bin/sh", "-c", "make"]', "make"),
        ('{"command": ["git", "status"]}', 'git", "status'),
        ('{"cmd": "FOO=1 pytest -q"}', "pytest -q"),
        ('{"title": "Run", "input": "$ cd /x && python3 -m pytest"}', "python3 -m pytest"),
        ("ls -la", "ls -la"),
        ('{"command": "cat > notes.txt <<EOF and so on and on\\nabc"}', "cat > notes.txt <<EOF and so on and on\\nabc"),
        ('{"command": "python -m build --outdir dist --no-isolation .\\nls"}',
         "python -m build --outdir dist --no-isolation ."),
        ("make all\nmake clean", "make all"),
        ('{"command": "go build \\"unterm', 'go build \\"unterm'),
        ('{"command": "cd /only"}', "cd /only"),
        ('{"comm', None),
        ('{"command": null}', None),
        ("", None),
    ],
)  # fmt: skip
def test_the_command_is_told_as_a_slice_of_the_arguments(arguments: str, command: str | None) -> None:
    assert told(arguments) == command


def test_what_only_shapes_the_output_does_not_make_another_command() -> None:
    commands = ["go test ./... 2>&1 | tail -5", "cd /a && go test ./...", "go  test ./... > log.txt"]
    keys = {read_command(json.dumps({"command": command})).key for command in commands}  # type: ignore[union-attr]
    assert keys == {"go test ./..."}


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("python -m pytest -q", "pytest"), ("npx --yes jest", "jest"), ("/usr/bin/python3 x.py", "python"),
        ("env A=1 uv run ruff check", "ruff"), ("timeout 30 make", "make"), ("", ""), ("sudo -n", ""),
    ],
)  # fmt: skip
def test_the_program_is_what_runs(command: str, program: str) -> None:
    found = read_command(json.dumps({"command": command or " "}))
    assert found is not None
    assert found.program == program


@pytest.mark.parametrize(
    ("command", "is_masked", "is_probe", "is_check", "reads_file"),
    [
        ("go test ./...", False, False, True, False),
        ("go test ./... | tail", True, False, True, False),
        ("make || true", True, False, True, False),
        ("ls -la; cat a.txt", True, True, False, False),
        ("cat a.txt", False, True, False, True),
        ("cat > a.txt", False, False, False, False),
        ("grep -rn 'a|b;c' src 2>/dev/null", False, True, False, False),
        ("git log --oneline && rm x", False, False, False, False),
        ("sed -n 1,20p a.py", False, True, False, True),
    ],
)
def test_a_command_is_judged_by_its_words(
    command: str, is_masked: bool, is_probe: bool, is_check: bool, reads_file: bool
) -> None:
    found = read_command(json.dumps({"command": command}))
    assert found is not None
    assert (found.is_masked, found.is_probe, found.is_check, found.reads_file) == (
        is_masked, is_probe, is_check, reads_file,
    )  # fmt: skip


def test_files_are_read_by_tools_and_by_shells() -> None:
    assert is_file_read("Read", '{"file_path": "/a"}')
    assert is_file_read("Bash", '{"command": "cat a.py"}')
    assert not is_file_read("Bash", '{"command": "make"}')
    assert not is_file_read("Bash", "{}")
    assert not is_file_read("Grep")


# -- results ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "exit_code"),
    [
        ("Exit code 2\nboom", 2),
        ("Exit code: 0\nWall time: 1.5 seconds\nOutput:\nok", 0),
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:", 1),
        ("out\n\nCommand exited with code 7", 7),
        ("out\n<exited with exit code 127>", 127),
        ('{"output": "x", "metadata": {"exit_code": 3, "duration_seconds": 0.4}}', 3),
        ("the tool says\n" * 60 + "Exit code 5", None),
        ("log: Exit code 5 happened\nand more", None),
        ("all good", None),
        ("", None),
    ],
)
def test_only_what_the_tool_itself_reports_is_an_exit_code(result: str, exit_code: int | None) -> None:
    assert find_exit_code(result) == exit_code


def test_the_time_that_a_tool_reports_is_read() -> None:
    assert find_duration('{"output": "", "metadata": {"exit_code": 0, "duration_seconds": 0.4}}') == 0.4
    assert find_duration("Exit code: 0\nWall time: 12 seconds\n") == 12.0
    assert find_duration("done") is None


def test_wrapped_output_is_read_in_lines_at_the_same_places() -> None:
    result = json.dumps(
        {"output": 'Traceback:\n  File "a.py"\nValueError: bad \\n "x"\n', "metadata": {"exit_code": 1}}
    )
    aligned = align_output(result)
    assert len(aligned) == len(result)
    assert [line.strip() for line in aligned.split("\n")][3:6] == [
        "Traceback:", 'File  "a.py "', "ValueError: bad \x01\x01n  \"x \"",
    ]  # fmt: skip
    assert align_output("plain\\n text") == "plain\\n text"


@given(ANY_TEXT)
def test_any_arguments_and_results_can_be_read(text: str) -> None:
    assert len(align_output(text)) == len(text)
    assert len(align_output('{"output":"\\n' + text)) == len(text) + 13
    for arguments in (text, '{"command": "' + text, '{"path": "' + text + '"}'):
        command = read_command(arguments)
        assert command is None or 0 <= command.start <= command.end <= len(arguments)
        span = tool_path(arguments)
        assert span is None or span[0] <= span[1] <= len(arguments)
        tool_todos(arguments)
        patch_paths(arguments)
        find_exit_code(arguments)
