"""Which lines of an output tell of an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.error_lines import find_error_lines, normalise_error
from tests.core.texts import ANY_TEXT


def found(text: str, most: int = 50, *, loose: bool = False) -> list[str]:
    return [text[line.start : line.end] for line in find_error_lines(text, most, loose=loose)]


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: bad port",
        "E   AssertionError: 1 != 2",
        "requests.exceptions.ConnectionError: refused",
        "Caused by: java.lang.IllegalStateException: closed",
        "Uncaught TypeError: x is no function",
        "KeyboardInterrupt",
        "fatal: not a git repository",
        "error[E0308]: mismatched types",
        "error TS2304: Cannot find name 'x'.",
        "src/a.ts(3,5): error TS2304: Cannot find name 'x'.",
        "main.c:3:5: error: expected ';'",
        "cmd/run.go:12:3: undefined: id",
        "--- FAIL: TestOpen (0.00s)",
        "FAILED tests/test_a.py::test_b - ValueError",
        "not ok 3 - opens",
        "bash: gradle: command not found",
        "zsh: no matches found: *.x",
        "thread 'main' panicked at src/main.rs:3",
        "Segmentation fault",
        "错误：端口被占用",
        "錯誤: 連接埠已被使用",
        "\x1b[31mError: no such file\x1b[0m",
    ],
)
def test_what_tools_print_at_the_beginning_of_a_line_is_plain(line: str) -> None:
    assert found(f"start\n{line}\nend") == [line]


@pytest.mark.parametrize(
    "line",
    [
        "class PortError(Exception):",
        "    raise ValueError('x')",
        "Compiling errors.py",
        "0 errors, 2 warnings",
        "error: 0",
        "Found no errors.",
        'error: {"code": 3}',
        "the fatal: flaw",
        "没有错误",
    ],
)
def test_code_and_clean_summaries_are_no_errors(line: str) -> None:
    assert found(line) == []


def test_loose_lines_count_only_where_the_command_failed() -> None:
    output = "copying\ncannot open the store\n找不到文件 a.txt\n    return not_found;\nbye"
    assert found(output) == []
    assert found(output, loose=True) == ["cannot open the store", "找不到文件 a.txt"]


def test_lines_that_only_say_that_something_failed_are_generic() -> None:
    lines = find_error_lines("npm error code 1\nnpm ERR! missing script: lint\nmake: *** [all] Error 2")
    assert [line.is_generic for line in lines] == [True, False, True]


def test_of_each_kind_the_first_ones_are_told() -> None:
    text = "\n".join(f"E{n}Error: {n}\nfile {n} not found" for n in range(9))
    assert found(text, 2) == ["E0Error: 0", "E1Error: 1"]
    assert found(text, 2, loose=True) == ["E0Error: 0", "file 0 not found", "E1Error: 1", "file 1 not found"]
    assert found(text, 0) == []


def test_what_changes_from_run_to_run_does_not_tell_errors_apart() -> None:
    assert normalise_error("/a/b/x.py:12: KeyError at 0x7f3a") == normalise_error("/c/x.py:7:  keyerror at 0x11")
    assert normalise_error("KeyError: 'a'") != normalise_error("KeyError: 'b'")


@given(st.lists(st.sampled_from(["ValueError: x", "ok", "", "a\r", "无法打开", "\ud83d"]), max_size=12).map("\n".join))
def test_every_line_told_is_a_line_of_the_text(text: str) -> None:
    lines = text.split("\n")
    assert all(line in lines for line in found(text, loose=True))


@given(ANY_TEXT)
def test_any_text_can_be_read(text: str) -> None:
    assert normalise_error(text) == normalise_error(text).strip()
    assert find_error_lines(text) == [line for line in find_error_lines(text, loose=True) if line.is_plain]
