"""Files, commands, tests and errors, read off calls and results."""

from __future__ import annotations

import json

import pytest

from context_gatekeeper.core.card_records import (
    CARD_PARAMS,
    CardEntry,
    CardField,
    CommandFacts,
    ErrorFacts,
    FileFacts,
    TestFacts,
)
from context_gatekeeper.core.card_work import StretchWork, user_reply_start
from context_gatekeeper.types import BlockKind
from tests.core.card_sources import Stretch


def work_of(stretch: Stretch, folder: str = "") -> StretchWork:
    work = StretchWork(CARD_PARAMS, folder)
    for source in stretch.sources:
        if source.kind is BlockKind.TOOL_CALL:
            work.add_call(source)
        elif source.kind is BlockKind.TOOL_RESULT:
            work.add_result(source)
        else:
            work.add_reported_errors(source)
    return work


def entries(stretch: Stretch, field: CardField, folder: str = "") -> list[CardEntry]:
    found = [entry for entry in work_of(stretch, folder).entries(40) if entry.field is field]
    assert all(quote.text in stretch.texts[quote.page_id] for entry in found for quote in entry.all_quotes())
    return found


def notes(stretch: Stretch, field: CardField, folder: str = "") -> list[tuple[str, str]]:
    return [(entry.text, entry.note) for entry in entries(stretch, field, folder)]


# -- files --------------------------------------------------------------------------------------


def test_reads_and_writes_of_one_file_are_counted() -> None:
    stretch = Stretch().use("Read", {"file_path": "/w/a.py"}).use("Edit", {"file_path": "/w/a.py", "old_string": "x"})
    stretch.use("view", {"path": "./a.py"}).use("write", {"path": "b/../c.md", "content": "x"})
    assert notes(stretch, CardField.FILE, "/w") == [("./a.py", "written 1, read 2"), ("b/../c.md", "written 1")]


def test_a_failed_edit_and_an_unanswered_call_write_nothing() -> None:
    stretch = Stretch().use("Edit", {"file_path": "/w/a.py"}, "String to replace not found.", is_error=True)
    stretch.call("Write", {"file_path": "/w/b.py"}, "late")
    assert entries(stretch, CardField.FILE) == []


def test_parallel_calls_pair_by_their_ids() -> None:
    stretch = Stretch().call("Read", {"file_path": "/a"}, "1").call("Write", {"file_path": "/b"}, "2")
    stretch.result("done", "2").result("text", "1")
    assert notes(stretch, CardField.FILE) == [("/b", "written 1"), ("/a", "read 1")]


def test_patches_write_and_diffs_tell_files() -> None:
    patch = "*** Begin Patch\n*** Update File: src/x y.py\n@@\n*** End Patch"
    stretch = Stretch().call("apply_patch", patch, "1").result("Success", "1")
    stretch.call("shell", json.dumps({"command": ["apply_patch", patch]}), "2").result("ok", "2")
    stretch.run("git diff", "diff --git a/n.go b/n.go\n--- a/n.go\n+++ b/n.go\n")
    assert notes(stretch, CardField.FILE) == [("src/x y.py", "written 2"), ("n.go", "in diffs 2")]


def test_generated_files_say_so() -> None:
    stretch = Stretch().use("Write", {"file_path": "/w/dist/a.js"}).use("Write", {"file_path": "/w/src/a.js"})
    facts = [entry.facts for entry in entries(stretch, CardField.FILE)]
    assert [isinstance(fact, FileFacts) and fact.is_generated for fact in facts] == [True, False]


def test_broken_arguments_tell_no_file() -> None:
    stretch = (
        Stretch().call("Read", "null", "1").result("x", "1").call("Write", '{"file_path": "', "2").result("x", "2")
    )
    stretch.call("Edit", '{"file_path": "' + "x" * 999 + "sk-" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1x", "3").result(
        "x", "3"
    )
    stretch.call("Write", "*** Begin Patch\n*** Add File: x\n", "4").result("x", "4")
    assert entries(stretch, CardField.FILE) == []


# -- commands -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "is_error", "note"),
    [
        ("all fine", False, "exit unknown"),
        ("Exit code 2\nboom", True, "exit 2"),
        ("boom", True, "failed, exit unknown"),
        ("ok\n<exited with exit code 0>", False, "exit 0"),
        ('{"output": "ok", "metadata": {"exit_code": 0, "duration_seconds": 2.5}}', False, "exit 0, 2.5 s"),
    ],
)
def test_a_command_has_the_exit_code_that_its_log_has(output: str, is_error: bool, note: str) -> None:
    assert notes(Stretch().run("make all", output, is_error=is_error), CardField.COMMAND) == [("make all", note)]


def test_runs_of_one_command_are_one_entry_with_its_last_run() -> None:
    stretch = Stretch().run("make all", "Exit code 2\nmain.c:1:2: error: no x", is_error=True)
    stretch.run("cd /w && make all 2>&1 | tail -5", "fine")
    (entry,) = entries(stretch, CardField.COMMAND)
    assert (entry.text, entry.note, entry.quotes) == ("make all 2>&1 | tail -5", "exit unknown, 2 runs", ())


def test_a_failed_command_quotes_its_last_error_line() -> None:
    stretch = Stretch().run("make", "Exit code 2\na.c:1:2: error: one\nb.c:3:4: error: two\n", is_error=True)
    (entry,) = entries(stretch, CardField.COMMAND)
    assert [quote.text for quote in entry.quotes] == ["b.c:3:4: error: two"]


def test_the_clock_of_the_log_tells_the_duration() -> None:
    stretch = Stretch().call("Bash", {"command": "make"}, "1", time=10.0).result("x", "1", time=12.5)
    assert notes(stretch, CardField.COMMAND) == [("make", "exit unknown, 2.5 s")]


def test_a_long_command_is_cut_without_tearing_an_escape() -> None:
    command = 'python -c "' + 'print(\\"a\\")\n' * 30 + '"'
    (entry,) = entries(Stretch().run(command, "x"), CardField.COMMAND)
    assert len(entry.text) <= 120
    json.loads(f'"{entry.text}"')


def test_a_call_that_the_user_refused_did_not_run() -> None:
    refusal = "The user doesn't want to proceed with this tool use. To go on, the user said:\nuse make instead"
    stretch = Stretch().run("rm -rf build", refusal, is_error=True)
    assert work_of(stretch).entries(40) == []
    start = user_reply_start(refusal)
    assert start is not None
    assert refusal[start:] == "use make instead"
    assert user_reply_start("The user doesn't want to proceed.") is None
    assert user_reply_start("the user said:\nhello") is None


def test_a_tool_of_another_name_with_a_command_is_a_shell() -> None:
    assert notes(Stretch().run("make", "ok", tool="sandbox_run"), CardField.COMMAND) == [("make", "exit unknown")]
    assert notes(Stretch().call("Bash", "{}", "1").result("ok", "1"), CardField.COMMAND) == []
    assert notes(Stretch().run("sk-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3", "ok"), CardField.COMMAND) == []


def test_of_many_commands_the_newest_that_do_something_stay() -> None:
    stretch = Stretch().run("make all", "x")
    for number in range(50):
        stretch.run(f"ls d{number}", "x")
    work = work_of(stretch)
    kept = [entry.text for entry in work.entries(3)]
    assert kept == ["make all", "ls d48", "ls d49"]


# -- tests --------------------------------------------------------------------------------------


def test_the_last_counts_of_each_runner_keep_the_place_of_their_run() -> None:
    stretch = Stretch().run("pytest", "1 failed, 2 passed in 0.1s").run("npx jest", "Tests:       4 passed, 4 total")
    stretch.run("pytest -q", "3 passed in 0.1s")
    found = [(entry.text, entry.seq) for entry in entries(stretch, CardField.TEST)]
    assert found == [("Tests:       4 passed, 4 total", 4), ("3 passed in 0.1s", 6)]


def test_counts_in_files_that_were_read_are_no_test_runs() -> None:
    stretch = Stretch().use("Read", {"file_path": "/log"}, "3 passed in 0.1s").run("cat log", "3 passed in 0.1s")
    assert entries(stretch, CardField.TEST) == []


def test_wrapped_output_is_read_too() -> None:
    output = json.dumps({"output": 'x\n1 failed, 2 passed in 0.1s\nValueError: "x"\n', "metadata": {"exit_code": 1}})
    stretch = Stretch().run("pytest", output, tool="shell")
    (count,) = entries(stretch, CardField.TEST)
    assert (count.text, count.facts) == ("1 failed, 2 passed in 0.1s", TestFacts("pytest", 2, 1))
    assert [entry.text for entry in entries(stretch, CardField.ERROR)] == ['ValueError: \\"x\\"']


# -- errors -------------------------------------------------------------------------------------

BOOM = "Exit code 1\nValueError: bad port 80"


def states(stretch: Stretch) -> list[str]:
    return [entry.note for entry in entries(stretch, CardField.ERROR)]


def test_an_error_stays_open_until_the_same_command_goes_through() -> None:
    stretch = Stretch().run("pytest -q", BOOM, is_error=True)
    assert states(stretch) == ["open"]
    assert states(stretch.run("ls", "a.py").run("git push", "done")) == ["open"]
    assert states(stretch.run("cd /w && pytest -q", "3 passed in 1s\nExit code 0 is what we want")) == ["closed"]


def test_exit_code_zero_closes_what_no_tool_had_marked() -> None:
    trace = 'Traceback (most recent call last):\n  File "app.py", line 3, in run\nValueError: bad port 80'
    stretch = Stretch().run("python app.py", trace)
    assert states(stretch) == ["open"]
    assert states(stretch.run("python app.py", "ok")) == ["unconfirmed"]
    assert states(stretch.run("python app.py", "ok\n<exited with exit code 0>")) == ["closed"]


def test_another_command_that_goes_through_confirms_nothing() -> None:
    stretch = Stretch().run("pytest tests/a.py", BOOM, is_error=True).run("pytest", "9 passed in 1s")
    assert states(stretch) == ["unconfirmed"]
    assert states(stretch.run("pytest tests/a.py", BOOM, is_error=True)) == ["open, 2 times"]


def test_a_pipe_hides_the_exit_code() -> None:
    stretch = Stretch().run("pytest", BOOM, is_error=True)
    assert states(stretch.run("pytest | tail -3", "ok\n<exited with exit code 0>")) == ["unconfirmed"]


def test_a_run_without_its_error_marks_leaves_other_errors_alone() -> None:
    stretch = (
        Stretch().run("pytest", BOOM, is_error=True).run("cargo run", "Exit code 1\nerror: no crate", is_error=True)
    )
    assert states(stretch.run("cargo run", "fine")) == ["open", "closed"]


def test_the_same_error_with_other_numbers_is_one() -> None:
    stretch = Stretch().run("pytest", BOOM, is_error=True).run("pytest", BOOM.replace("80", "81"), is_error=True)
    (entry,) = entries(stretch, CardField.ERROR)
    assert (entry.text, entry.facts) == ("ValueError: bad port 81", ErrorFacts(entry.facts.state, 2, 2))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("output", "frame"),
    [
        ('Traceback:\n  File "/v/site-packages/x.py", line 1, in y\n  File "app.py", line 9, in run\nValueError: x',
         'File "app.py", line 9, in run'),
        ("TypeError: x\n    at node:internal/a.js:1:1\n    at run (/w/app.js:3:4)\n    at main (/w/b.js:1:1)",
         "at run (/w/app.js:3:4)"),
        ("panic: boom\n\ngoroutine 1:\nmain.run()\n\t/w/main.go:7 +0x1d", "/w/main.go:7 +0x1d"),
        ("ValueError: x", None),
    ],
)  # fmt: skip
def test_an_error_quotes_its_innermost_own_frame(output: str, frame: str | None) -> None:
    (entry,) = entries(Stretch().run("run it", f"Exit code 1\n{output}", is_error=True), CardField.ERROR)
    assert [quote.text for quote in entry.quotes] == ([] if frame is None else [frame])


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("grep -n x a.py", "Exit code 1"),
        ("ls /nowhere", "Exit code 2\nls: /nowhere: No such file or directory"),
        ("make", "Exit code 2\nall went well"),
        ("make", "<tool_use_error>Sibling tool call errored</tool_use_error>"),
    ],
)
def test_looking_for_what_is_not_there_is_no_error(command: str, output: str) -> None:
    assert entries(Stretch().run(command, output, is_error=True), CardField.ERROR) == []


def test_a_clean_exit_prints_what_it_likes() -> None:
    stretch = Stretch().run("make", "error: was mended\n<exited with exit code 0>")
    assert entries(stretch, CardField.ERROR) == []


def test_generic_lines_stand_only_where_nothing_tells_more() -> None:
    stretch = Stretch().run("npm test", "Exit code 1\nnpm error code 1\nnpm error path /w", is_error=True)
    stretch.run("npm run x", "Exit code 1\ncannot open the store\nnpm error code 1", is_error=True)
    assert [entry.text for entry in entries(stretch, CardField.ERROR)] == ["npm error path /w", "cannot open the store"]


def test_progress_that_was_written_over_is_not_quoted() -> None:
    output = "Exit code 1\nRebasing (1/2)\rerror: could not apply 1a2b\r"
    stretch = Stretch().run("git rebase main", output, is_error=True)
    assert [entry.text for entry in entries(stretch, CardField.ERROR)] == ["error: could not apply 1a2b"]


def test_the_error_of_another_tool_is_its_first_line() -> None:
    edit = {"file_path": "/w/a.py", "old_string": "x"}
    stretch = Stretch().use("Edit", edit, "<tool_use_error>Text not found.\nx = 1</tool_use_error>", is_error=True)
    stretch.use("Edit", {"file_path": "/w/b.py"}, "The file is locked", is_error=True)
    assert [entry.text for entry in entries(stretch, CardField.ERROR)] == ["Text not found.", "The file is locked"]
    assert states(stretch.use("Write", {"file_path": "/w/b.py"})) == ["open", "unconfirmed"]
    assert states(stretch.use("Read", {"file_path": "/w/a.py"}).use("Edit", edit)) == ["closed", "unconfirmed"]


def test_searches_and_reads_that_fail_are_no_errors() -> None:
    stretch = Stretch().use("Grep", {"pattern": "x"}, "Path does not exist", is_error=True)
    stretch.use("Read", {"file_path": "/x"}, "Error: gone", is_error=True).use("Task", {}, "ValueError: told")
    assert entries(stretch, CardField.ERROR) == []


def test_a_result_without_its_call_tells_errors_and_tests() -> None:
    stretch = Stretch().result("Exit code 1\nValueError: x\n1 failed in 0.1s", "gone", "Bash", is_error=True)
    assert [entry.text for entry in work_of(stretch).entries(9)] == ["1 failed in 0.1s", "ValueError: x"]


def test_errors_that_a_user_pasted_are_closed_by_the_user_alone() -> None:
    stretch = Stretch().user("I get this:\nTypeError: x is no function\nsee").run("make test", "all fine")
    work = work_of(stretch)
    assert [entry.note for entry in work.entries(9) if entry.field is CardField.ERROR] == ["open"]
    work.confirm_fixed("the function is fine now")
    assert [entry.note for entry in work.entries(9) if entry.field is CardField.ERROR] == ["closed"]


def test_fixed_closes_what_it_names_else_what_came_last() -> None:
    stretch = Stretch().run("run a", "Exit code 1\nPortError: x", is_error=True)
    stretch.run("run b", "Exit code 1\nStoreError: y", is_error=True)
    work = work_of(stretch)
    work.confirm_fixed("PortError is gone, it works now")
    assert [entry.note for entry in work.entries(9) if entry.field is CardField.ERROR] == ["closed", "open"]
    work.confirm_fixed("好了")
    work.confirm_fixed("fixed")
    assert [entry.note for entry in work.entries(9) if entry.field is CardField.ERROR] == ["closed", "closed"]


def test_closed_errors_leave_first_when_there_are_too_many() -> None:
    stretch = Stretch().run("make", "Exit code 1\nFirstError: x", is_error=True)
    stretch.run("make b", "Exit code 1\nSecondError: x", is_error=True).run("make b", "ok")
    for number in range(130):
        name = "".join(chr(97 + int(digit)) for digit in str(number))
        stretch.run(f"./run {number}", f"Exit code 1\nE{name}xError: x", is_error=True)
    kept = [entry.text for entry in work_of(stretch).entries(400) if entry.field is CardField.ERROR]
    assert len(kept) == 120
    assert "FirstError: x" not in kept
    assert "SecondError: x" not in kept


def test_of_one_result_three_errors_are_taken() -> None:
    lines = "\n".join(f"{name}Error: x" for name in ("Aa", "Bb", "Cc", "Dd"))
    stretch = Stretch().run("make", f"Exit code 1\n{lines}", is_error=True)
    assert [entry.text for entry in entries(stretch, CardField.ERROR)] == ["AaError: x", "BbError: x", "CcError: x"]
    (command,) = entries(stretch, CardField.COMMAND)
    assert isinstance(command.facts, CommandFacts)
    assert [quote.text for quote in command.quotes] == ["DdError: x"]
