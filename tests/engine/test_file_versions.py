"""Versions of files: what calls do with them, and which page is the last word."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_gatekeeper.engine.file_versions import FileCall, FileTracker, FileUse, read_file_call, resolve_path
from tests.engine.agents import call, text

READ, WRITE, EDIT = FileUse.READ, FileUse.WRITE, FileUse.EDIT
FOLDER = "/srv/shop"
PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: src/b.py\n+z\n*** End Patch"


def use_of(name: str, arguments: object, folder: str = FOLDER) -> FileCall | None:
    return read_file_call(name, arguments if isinstance(arguments, str) else json.dumps(arguments), folder)


def digest(content: str) -> str:
    return sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("Read", {"file_path": "/srv/shop/a.py"}, FileCall(READ, ("/srv/shop/a.py",))),
        ("read", {"path": "src/../a.py"}, FileCall(READ, ("/srv/shop/a.py",))),
        (
            "view",
            {"path": "/srv/a.py", "view_range": [1, 20]},
            FileCall(READ, ("/srv/a.py",), '{"view_range": [1, 20]}'),
        ),
        ("Read", {"file_path": "/a", "offset": 10, "limit": None}, FileCall(READ, ("/a",), '{"offset": 10}')),
        ("view", {"input": "/srv/a.py (lines 3-9)"}, FileCall(READ, ("/srv/a.py",), "(lines 3-9)")),
        ("mcp__files__read_file", {"path": "/a"}, FileCall(READ, ("/a",))),
        ("Write", {"file_path": "/a", "content": "x\n"}, FileCall(WRITE, ("/a",), "", digest("x\n"))),
        ("create", {"path": "/a", "file_text": "\ud83d"}, FileCall(WRITE, ("/a",), "", digest("\ud83d"))),
        (
            "str_replace_editor",
            {"command": "create", "path": "/a", "file_text": ""},
            FileCall(WRITE, ("/a",), "", digest("")),
        ),
        ("str_replace_editor", {"command": "view", "path": "/a"}, FileCall(READ, ("/a",))),
        ("Edit", {"file_path": "/a", "old_string": "x", "new_string": "y"}, FileCall(EDIT, ("/a",))),
        ("insert", {"path": "/a", "text": "x", "line": 3}, FileCall(EDIT, ("/a",))),
        ("write_file", {"path": "/a"}, FileCall(EDIT, ("/a",))),
        ("apply_patch", PATCH, FileCall(EDIT, ("/srv/shop/src/a.py", "/srv/shop/src/b.py"))),
        ("apply_patch", {"input": PATCH}, FileCall(EDIT, ("/srv/shop/src/a.py", "/srv/shop/src/b.py"))),
        ("Bash", {"command": "cat /srv/a.py"}, FileCall(READ, ("/srv/a.py",))),
        ("Bash", {"command": "cat -n '/srv/a b.py'"}, FileCall(READ, ("/srv/a b.py",))),
        ("shell", {"command": ["bash", "-lc", "cat a.py"], "workdir": "/w"}, FileCall(READ, ("/w/a.py",))),
        ("Bash", {"command": "head -50 /srv/a.py"}, FileCall(READ, ("/srv/a.py",), "head -50")),
        ("Bash", {"command": "sed -n 1,20p /srv/a.py"}, FileCall(READ, ("/srv/a.py",), "sed -n 1,20p")),
        ("shell", {"command": ["apply_patch", PATCH], "workdir": "/w"}, FileCall(EDIT, ("/w/src/a.py", "/w/src/b.py"))),
    ],
)
def test_a_call_tells_what_it_does_with_files(name: str, arguments: object, expected: FileCall) -> None:
    assert use_of(name, arguments) == expected


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Grep", {"pattern": "x", "path": "/srv"}),
        ("Read", {}),
        ("Read", {"file_path": ""}),
        ("Read", {"file_path": "  "}),
        ("Read", "null"),
        ("Edit", {"new_string": "y"}),
        ("Edit", ""),
        ("apply_patch", "*** Begin Patch\n*** End Patch"),
        ("Bash", {"command": "ls"}),
        ("Bash", {"command": "cat a.py"}),
        ("Bash", {"command": "cat /a /b"}),
        ("Bash", {"command": "cat /a | grep x | wc -l > /b"}),
        ("Bash", {"command": "cat /a && rm /a"}),
        ("Bash", {"command": "cat 'unclosed"}),
        ("Bash", {"command": "head -5"}),
        ("Bash", {"command": "cat"}),
        ("Bash", {}),
        ("Bash", {"command": "*** Begin Patch"}),
    ],
)
def test_a_call_that_names_no_file_of_its_own_tells_nothing(name: str, arguments: object) -> None:
    assert use_of(name, arguments) is None


def test_broken_arguments_are_read_as_far_as_they_go() -> None:
    assert use_of("Read", '{"file_path": "/a", "offset": ') == FileCall(READ, ("/a",))
    assert use_of("Write", '{"file_path": "/a", "content": "x') == FileCall(EDIT, ("/a",))
    assert use_of("Read", "[" * 100_000) is None


@settings(deadline=None)
@given(st.sampled_from(["Read", "Write", "Bash", "apply_patch", "view"]), st.text())
def test_any_arguments_are_read(name: str, arguments: str) -> None:
    read_file_call(name, arguments, FOLDER)


@pytest.mark.parametrize(
    ("path", "folder", "resolved"),
    [
        ("", "/srv", ""),
        ("  ", "", ""),
        ("a.py", "", "a.py"),
        ("./a.py", "/srv", "/srv/a.py"),
        ("../a.py", "/srv/shop", "/srv/a.py"),
        ("/a//b/./c", "/srv", "/a/b/c"),
        ("~/a", "/srv", "~/a"),
        ("C:\\shop\\a.py", "/srv", "C:/shop/a.py"),
        ("d:/a", "/srv", "d:/a"),
        ("\\\\host\\a", "/srv", "//host/a"),
    ],
)
def test_paths_are_compared_as_their_folder_makes_them(path: str, folder: str, resolved: str) -> None:
    assert resolve_path(path, folder) == resolved


# -- versions -----------------------------------------------------------------------------------


class Story:
    """Calls with their results, each at the next place."""

    def __init__(self) -> None:
        self.files = FileTracker(FOLDER)
        self.place = 0

    def does(
        self, name: str, *, fails: bool = False, gives: str = "", **members: object
    ) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        """(file, places superseded, places changed) by the call."""
        self.place += 1
        self.files.note_calls((text("now"), call(f"c{self.place}", name, **members)))
        note = self.files.note_result(f"c{self.place}", self.place, is_error=fails, text=gives)
        return ("", (), ()) if note is None else (note.path, note.superseded, note.changed)


def test_a_newer_read_of_the_whole_file_takes_the_place_of_all_older_ones() -> None:
    story = Story()
    assert story.does("Read", file_path="a.py") == ("/srv/shop/a.py", (), ())
    assert story.does("Read", file_path="a.py", offset=5) == ("/srv/shop/a.py", (), ())
    assert story.does("Read", file_path="other.py") == ("/srv/shop/other.py", (), ())
    assert story.does("Read", file_path="/srv/shop/a.py") == ("/srv/shop/a.py", (1, 2), ())
    assert story.does("Read", file_path="a.py") == ("/srv/shop/a.py", (4,), ())


def test_a_read_of_a_part_takes_the_place_of_the_same_part_alone() -> None:
    story = Story()
    story.does("Read", file_path="a.py")
    story.does("Read", file_path="a.py", offset=5)
    story.does("Read", file_path="a.py", offset=90)
    assert story.does("Read", file_path="a.py", offset=5) == ("/srv/shop/a.py", (2,), ())


def test_a_write_is_a_version_and_changes_the_older_ones_too() -> None:
    story = Story()
    story.does("Read", file_path="a.py")
    assert story.does("Write", file_path="a.py", content="x") == ("/srv/shop/a.py", (1,), (1,))
    assert story.does("Read", file_path="a.py") == ("/srv/shop/a.py", (2,), ())


def test_an_edit_marks_what_was_read_before_it_once() -> None:
    story = Story()
    story.does("Read", file_path="a.py")
    story.does("Read", file_path="a.py", offset=5)
    assert story.does("Edit", file_path="a.py", old_string="x", new_string="y") == ("", (), (1, 2))
    assert story.does("Edit", file_path="a.py", old_string="y", new_string="z") == ("", (), ())
    assert story.does("Edit", file_path="unseen.py", old_string="y", new_string="z") == ("", (), ())


def test_a_patch_changes_every_file_that_it_names() -> None:
    story = Story()
    story.does("Read", file_path="src/a.py")
    story.does("Read", file_path="src/b.py")
    assert story.does("apply_patch", input=PATCH) == ("", (), (1, 2))


def test_what_failed_showed_and_changed_nothing() -> None:
    story = Story()
    story.does("Read", file_path="a.py")
    assert story.does("Edit", fails=True, file_path="a.py", old_string="x", new_string="y") == ("", (), ())
    assert story.does("Read", fails=True, file_path="a.py") == ("", (), ())
    assert story.does("Read", file_path="a.py")[1] == (1,)


def test_a_result_of_an_unknown_call_is_no_version() -> None:
    assert FileTracker().note_result("nobody", 1, is_error=False) is None


# -- changes that no call told -------------------------------------------------------------------


OLD = ["import re", "", "def f(x):", "    return x", "", "f(1)", "f(2)", "f(3)"]
NEW = [line.replace("f(", "g(") for line in OLD]


def numbered(lines: list[str], first: int = 1) -> str:
    return "\n".join(f"{first + place:>6}\u2192{line}" for place, line in enumerate(lines))


def plain(lines: list[str], first: int = 1) -> str:
    return "\n".join(lines) + ("\n" if first == 1 else "\n\n... (9 more lines not shown)")


@pytest.mark.parametrize("shows", [numbered, plain])
def test_a_read_that_shows_other_lines_marks_the_versions_from_before(shows: Callable[..., str]) -> None:
    story = Story()
    story.does("Read", file_path="a.py", gives=shows(OLD))
    story.does("Bash", command="sed -i s/f/g/ a.py")
    assert story.does("Read", file_path="a.py", offset=3, limit=2, gives=shows(NEW[2:4], 3))[2] == (1,)
    assert story.does("Read", file_path="a.py", offset=3, limit=3, gives=shows(NEW[2:5], 3))[2] == (), "marked once"
    assert story.does("Read", file_path="a.py", gives=shows(NEW)) == ("/srv/shop/a.py", (1, 3, 4), ())


@pytest.mark.parametrize("shows", [numbered, plain])
def test_a_read_that_shows_the_same_lines_marks_nothing(shows: Callable[..., str]) -> None:
    story = Story()
    story.does("Read", file_path="a.py", gives=shows(OLD))
    assert story.does("Read", file_path="a.py", offset=3, limit=2, gives=shows(OLD[2:4], 3))[2] == ()
    assert story.does("read", path="a.py", offset=2, limit=2, gives=shows(OLD[2:4], 3))[2] == (), "counts from 0"
    assert story.does("Bash", command="sed -n 3,4p /srv/shop/a.py", gives=plain(OLD[2:4]))[2] == ()
    assert story.does("Bash", command="head -2 /srv/shop/a.py", gives=plain(OLD[:2]))[2] == ()
    assert story.does("Bash", command="tail -2 /srv/shop/a.py", gives=plain(NEW[-2:]))[2] == (), "lines unknown"
    assert story.does("Read", file_path="a.py", pages="1-2", gives=plain(NEW))[2] == ()


def test_versions_older_than_one_that_differs_are_marked_too_and_newer_ones_not() -> None:
    story = Story()
    story.does("Read", file_path="a.py", offset=6, limit=2, gives=numbered(OLD[5:7], 6))
    story.does("Read", file_path="a.py", offset=1, limit=4, gives=numbered(OLD[:4], 1))
    story.does("Bash", command="git checkout other")
    story.does("Read", file_path="a.py", offset=8, limit=1, gives=numbered(NEW[7:8], 8))
    assert story.does("Read", file_path="a.py", view_range=[3, 3], gives=numbered(NEW[2:3], 3))[2] == (1, 2)


def test_a_read_shows_that_what_was_written_has_changed() -> None:
    story = Story()
    story.does("Write", file_path="a.py", content="\n".join(OLD))
    assert story.does("Read", file_path="a.py", offset=1, limit=2, gives=numbered(OLD[:2]))[2] == ()
    story.does("Bash", command="gofmt -w a.py")
    assert story.does("Bash", command="sed -n '3,4p' /srv/shop/a.py", gives=plain(NEW[2:4]))[2] == (1,)


def test_what_is_marked_by_an_edit_is_not_marked_again_by_a_read() -> None:
    story = Story()
    story.does("Read", file_path="a.py", gives=numbered(OLD))
    assert story.does("Edit", file_path="a.py", old_string="f", new_string="g")[2] == (1,)
    assert story.does("Read", file_path="a.py", offset=3, gives=numbered(NEW[2:], 3))[2] == ()


@pytest.mark.parametrize("offset", ["3", -1, True, [], {}])
def test_an_odd_offset_compares_nothing_but_numbered_lines(offset: object) -> None:
    story = Story()
    story.does("Read", file_path="a.py", gives=plain(OLD))
    story.does("Read", file_path="a.py", offset=offset, gives=plain(NEW))
    assert story.does("Read", file_path="a.py", offset=3, gives=numbered(NEW[2:], 3))[2][:1] == (1,)


def test_a_listed_folder_is_no_version_of_a_file() -> None:
    story = Story()
    names = "__init__.py\nagent.py\nllm.py"
    assert story.does("view", path="core", gives=names) == ("", (), ())
    assert story.does("str_replace_editor", command="view", path="core", gives=names) == ("", (), ())
    assert story.does("Bash", command="cat /srv/shop/words", gives=names)[0] == "/srv/shop/words"
    assert story.does("view", path="core/llm.py", gives="1. import re\n2. x = 1")[0] == "/srv/shop/core/llm.py"
