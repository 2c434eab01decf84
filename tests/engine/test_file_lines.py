"""Lines of a file in the results of reads, and results that list a folder."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.engine.file_lines import differs, is_listing, shown_lines

SOURCE = ["import re", "", "def f(x):", "    return x", "", "f(1)"]


def known(lines: list[str], start: int = 1) -> dict[int, int]:
    return {start + place: hash(line) for place, line in enumerate(lines)}


@pytest.mark.parametrize(
    "form",
    [
        lambda number, line: f"{number:>6}\u2192{line}",
        lambda number, line: f"{number:>6}\t{line}",
        lambda number, line: f"{number}. {line}",
        lambda number, line: f"{number}:{line}",
        lambda number, line: f"{number}| {line}",
    ],
)
@pytest.mark.parametrize(
    ("start", "behind"), [(1, ""), (98, "\n"), (7, "\n\n<system-reminder>\nMind.\n</system-reminder>")]
)
def test_lines_with_numbers_are_known_by_them(form: Callable[[int, str], str], start: int, behind: str) -> None:
    text = "\n".join(form(start + place, line) for place, line in enumerate(SOURCE)) + behind
    assert shown_lines(text, ()) == (known(SOURCE, start),)
    assert shown_lines("[File: a.py (9 lines total)]\r\n" + text.replace("\n", "\r\n"), (55,)) == (
        known(SOURCE, start),
    )


@pytest.mark.parametrize(
    "footer",
    ["", "\n", "\n\n... (12 more lines not shown)", "\n[truncated]\n", "\n\n<note>cut</note>", "\n(End of file)"],
)
def test_lines_without_numbers_count_from_where_the_read_began(footer: str) -> None:
    text = "\n".join(SOURCE) + footer
    assert shown_lines(text) == (known(SOURCE),)
    assert shown_lines(text, (40, 41)) == (known(SOURCE, 40), known(SOURCE, 41))
    assert shown_lines(text, ()) == ()


def test_a_single_number_in_front_is_a_line_number_where_an_arrow_or_tab_says_so() -> None:
    assert shown_lines("    12\u2192x = 1\n", (1,)) == ({12: hash("x = 1")},)
    assert shown_lines("3. Third\nand more", (1,)) == (known(["3. Third", "and more"]),)


def test_what_a_shell_says_before_its_output_is_no_line() -> None:
    text = "Exit code: 0\nWall time: 0.1 seconds\nTotal output lines: 2\nOutput:\nimport re\nf(1)\n"
    assert shown_lines(text) == (known(["import re", "f(1)"]),)
    assert shown_lines('{"output": "import re\\nf(1)", "metadata": {}}') == ()


def test_only_lines_of_the_same_number_are_compared() -> None:
    assert not differs(known(SOURCE), (known(SOURCE[2:], 3),))
    assert not differs(known(SOURCE[:2]), (known(["other"], 3),))
    assert differs(known(SOURCE), (known(["def g(x):"], 3),))
    assert differs(known(SOURCE), (known(SOURCE[2:], 4),))
    assert not differs(known(SOURCE), (known(SOURCE[2:], 2), known(SOURCE[2:], 3))), "one way to count fits"
    assert not differs(known(SOURCE), ())
    assert not differs({}, (known(SOURCE),))


@given(st.text(), st.integers(0, 50))
def test_a_result_never_differs_from_itself(text: str, start: int) -> None:
    readings = shown_lines(text, (start, start + 1))
    assert not any(differs(one, readings) for one in readings)


LISTINGS = [
    ("/srv/shop/core", "__init__.py\nagent.py\nconfig.py\nllm.py"),
    ("/srv/shop", ".git\n.gitignore\nAGENTS.md\ncore\ndocs\nREADME.md"),
    ("/srv/shop/prompts", "agents_prompts\ntools_prompts\n"),
    ("/srv/.github", "workflows/"),
    ("/srv/one", "main.go"),
    ("/srv/shop", "/srv/shop\n/srv/shop/a.py\n/srv/shop/core"),
    (
        "/srv/shop",
        "Here's the files and directories up to 2 levels deep in /srv/shop, excluding hidden items:\n4.0K\t/srv",
    ),
    ("/srv/shop", "Here're the files and directories up to 2 levels deep in /srv/shop:\nx y"),
    ("/srv/shop", "Here are the files and directories in /srv/shop.d:\n"),
]
FILES = [
    ("/srv/a.py", "alpha\nbeta"),
    ("/srv/requirements.txt", "attrs\nhttpx\npytest"),
    ("/srv/VERSION", "1.2.3\n"),
    ("/srv/.python-version", "3.12"),
    ("/srv/current_session", "2026-01-20-3646471d"),
    ("/srv/Makefile", "all:\n\tmake test"),
    ("/srv/LICENSE", "MIT License\n\nCopyright"),
    ("/srv/Procfile", "web: run"),
    ("/srv/words", "zebra\nant"),
    ("/srv/shop", ""),
    ("/srv/shop", " \n"),
    ("/srv/empty", "1. \n2. x = 1"),
]


@pytest.mark.parametrize(("path", "text"), LISTINGS)
def test_a_listed_folder_is_told(path: str, text: str) -> None:
    assert is_listing(path, text)


@pytest.mark.parametrize(("path", "text"), FILES)
def test_a_file_is_no_listing(path: str, text: str) -> None:
    assert not is_listing(path, text)
