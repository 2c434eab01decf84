"""What the terminal is given."""

from __future__ import annotations

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.entrypoints.cli.terminal import (
    Painter,
    Tint,
    clipped,
    fitted_table,
    one_line,
    pipe_table,
    printable,
)


def test_wide_characters_count_as_two_columns_so_that_tables_align() -> None:
    assert pipe_table(("turn", "text"), [(7, "锁"), (12, "lock")], right="r") == [
        "| turn | text |",
        "|-----:|------|",
        "|    7 | 锁   |",
        "|   12 | lock |",
    ]


@given(st.lists(st.text("a锁\ud83d\udc80e\u0301|\x07", max_size=6), min_size=1, max_size=4))
def test_a_table_is_as_wide_as_what_a_stream_writes(cells: list[str]) -> None:
    """A half character leaves the program as an escape."""
    lines = pipe_table(("text",), [(cell,) for cell in cells])
    written = [line.encode("utf-8", "backslashreplace").decode() for line in lines]
    assert written == lines
    assert len({sum(0 if char == "\u0301" else 2 if char == "锁" else 1 for char in line) for line in written}) == 1


ROWS = [("/srv/deep/folder/of/a/shop/export.py", 12, "a | b | c | d and more of it", "x")]
HEADER = ("file", "tokens", "begins with", "mark")


def fitted(columns: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    gives = {"file": 12, "begins with": 11}
    return fitted_table(HEADER, ROWS, right="lr", gives=gives, drops=("mark",), ends=("file",))


def test_a_table_without_a_terminal_is_as_wide_as_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fitted(40, monkeypatch) == pipe_table(HEADER, ROWS, right="lr")


def test_on_a_terminal_the_widest_column_gives_way_and_then_columns_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", OnScreen())
    assert fitted(200, monkeypatch) == pipe_table(HEADER, ROWS, right="lr")
    for columns in range(40, 100):
        table = fitted(columns, monkeypatch)
        assert max(map(len, table[:3])) <= columns
        assert "export.py |" in table[2]
        assert (table[3:] == ["left out, the terminal is narrow: mark"]) == ("mark" not in table[0])
    assert len(fitted(10, monkeypatch)[0]) == 39, "what cannot give stays"


class OnScreen(StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_cell_can_neither_add_a_column_nor_a_row() -> None:
    assert pipe_table(("a",), [("x | y\nz",)])[2] == "| x \\| y z |"


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("short", 5, "short"),
        ("too long", 6, "too..."),
        ("分布式锁", 8, "分布式锁"),
        ("分布式锁", 7, "分布..."),
        ("a\n b", 9, "a b"),
    ],
)
def test_a_text_is_cut_to_columns(text: str, columns: int, shown: str) -> None:
    assert clipped(text, columns) == shown


@given(st.text())
def test_nothing_that_steers_a_terminal_comes_through(text: str) -> None:
    controls = {chr(code) for code in [*range(0x20), *range(0x7F, 0xA0)]} - {"\n", "\t"}
    assert not controls & set(printable(text))
    assert "\n" not in one_line(text)


@given(st.text(st.characters(categories=["L", "N", "P", "Zs"])))
def test_ordinary_text_comes_through_unchanged(text: str) -> None:
    assert printable(text) == text


def test_a_painter_that_is_off_leaves_text_alone() -> None:
    assert Painter().paint("x", Tint.ERROR) == "x"
    assert Painter(is_on=True).paint("x", Tint.WARN) == "\x1b[38;2;251;191;36mx\x1b[0m"
