"""What standard output is given: colours only on a terminal, control characters never, pipe tables."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import IO, Any
from unicodedata import combining, east_asian_width

import click

from context_gatekeeper.errors import GatekeeperError

__all__ = [
    "OutputClosedError",
    "OutputFailedError",
    "Painter",
    "Tint",
    "clipped",
    "columns_for",
    "facts",
    "fitted_table",
    "make_streams_tolerant",
    "one_line",
    "pipe_table",
    "printable",
    "say",
]

_DELETE, _LAST_CONTROL = 0x7F, 0x9F
_FIRST_PRINTABLE = 0x20
_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF
"""Half of a character, of which no encoding knows: a stream would write it as an escape, wider than counted."""
_LEAST_COLUMNS = 12
_KEPT_CONTROLS = "\n\t"
_DIRECTION_MARKS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Reverse the order in which a terminal shows text, so that it would not be what it looks like."""


class Tint(Enum):
    """Roles of DESIGN.md section 3 with their colours (red, green, blue)."""

    NORMAL = (0xFF, 0xFF, 0xFF)
    HIGHLIGHT = (0x5E, 0xEA, 0xD4)
    WARN = (0xFB, 0xBF, 0x24)
    ERROR = (0xF8, 0x71, 0x71)
    DEBUG = (0x6B, 0x72, 0x80)
    ACCENT = (0xA7, 0x8B, 0xFA)


@dataclass(frozen=True, slots=True)
class Painter:
    """Paints text by role, or leaves it alone."""

    is_on: bool = False

    @classmethod
    def for_stream(cls, stream: IO[Any], *, wanted: bool) -> Painter:
        """Colours when they are asked for and ``stream`` is a terminal that knows them."""
        return cls(wanted and stream.isatty() and os.environ.get("TERM") != "dumb")

    def paint(self, text: str, tint: Tint) -> str:
        """``text`` in the colour of its role."""
        return click.style(text, fg=tint.value) if self.is_on else text


def printable(text: str) -> str:
    """``text`` without what steers a terminal or is half a character: such characters are shown as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _is_harmless(char) else char.encode("unicode_escape").decode() for char in text)


def _is_harmless(char: str) -> bool:
    if char in _DIRECTION_MARKS:
        return False
    code = ord(char)
    is_control = code < _FIRST_PRINTABLE or _DELETE <= code <= _LAST_CONTROL
    is_half = _FIRST_SURROGATE <= code <= _LAST_SURROGATE
    return char in _KEPT_CONTROLS or not (is_control or is_half)


def one_line(text: str) -> str:
    """``text`` printable and on one line."""
    return printable(" ".join(text.split()))


class OutputClosedError(Exception):
    """Whoever read standard output has seen enough."""


class OutputFailedError(GatekeeperError):
    """Standard output cannot be written to."""


def say(line: str = "", *, to_stderr: bool = False, is_piece: bool = False) -> None:
    """Print a line, or a piece of one, whose texts are printable already; it may hold colours.

    Raises:
        OutputClosedError: nobody reads any more.
        OutputFailedError: the disk is full, for one. That standard error fails can be told to nobody.
    """
    try:
        # click would strip colours from a pipe; they were decided on before.
        click.echo(line, err=to_stderr, color=True, nl=not is_piece)
    except BrokenPipeError:
        raise OutputClosedError from None
    except OSError as error:
        if not to_stderr:
            raise OutputFailedError(
                "standard output", f"it cannot be written to ({error.strerror})", "free space or send it elsewhere"
            ) from error


def clipped(text: str, columns: int) -> str:
    """``text`` on one line, cut to ``columns`` terminal columns."""
    line = one_line(text)
    if _columns(line) <= columns:
        return line
    kept, width = [], 0
    for char in line:
        width += _columns(char)
        if width > columns - 3:
            break
        kept.append(char)
    return f"{''.join(kept)}..."


def columns_for(most: int, *, beside: int) -> int:
    """Columns of a table's widest cell: ``most``, or what a narrower terminal has left ``beside`` the row's rest."""
    if sys.stdout is None or not sys.stdout.isatty():
        return most
    return max(_LEAST_COLUMNS, min(most, shutil.get_terminal_size().columns - beside))


def pipe_table(header: Sequence[str], rows: Sequence[Sequence[object]], *, right: str = "") -> list[str]:
    """An ASCII pipe table with aligned columns, wide characters counted as two.

    Args:
        header: names of the columns.
        rows: cells; shown by ``str``.
        right: a letter per column, "r" for aligned to the right; other columns stand left.
    """
    cells = [[_cell(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(_columns, column)) for column in zip(*cells, strict=True)]
    is_right = [right[number : number + 1] == "r" for number in range(len(header))]
    lines = [
        "| "
        + " | ".join(
            _padded(cell, width, on_right) for cell, width, on_right in zip(row, widths, is_right, strict=True)
        )
        + " |"
        for row in cells
    ]
    rule = (
        "|"
        + "|".join(
            "-" * (width + 1) + (":" if on_right else "-") for width, on_right in zip(widths, is_right, strict=True)
        )
        + "|"
    )
    return [lines[0], rule, *lines[1:]]


def fitted_table(
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    right: str = "",
    gives: Mapping[str, int],
    drops: Sequence[str] = (),
    ends: Sequence[str] = (),
) -> list[str]:
    """A pipe table no wider than the terminal, as far as its columns give way; as it is where there is no terminal.

    Args:
        header: names of the columns.
        rows: cells; shown by ``str``.
        right: as of `pipe_table`.
        gives: name of a column -> columns of the terminal that it keeps at least; the widest gives way first.
        drops: names of columns that are left out in this order where that is not enough; a last line tells them.
        ends: names of columns whose cells are cut at their beginning, as paths are.
    """
    if sys.stdout is None or not sys.stdout.isatty():
        return pipe_table(header, rows, right=right)
    room = shutil.get_terminal_size().columns
    dropped: list[str] = []
    for name in ("", *drops):
        dropped += [name] if name else []
        places = [place for place, title in enumerate(header) if title not in dropped]
        titles = [header[place] for place in places]
        cells = [[one_line(str(row[place])) for place in places] for row in rows]
        widths = [max(map(_width, column)) for column in zip(titles, *cells, strict=True)]
        least = [max(gives.get(title, width), _columns(title)) for title, width in zip(titles, widths, strict=True)]
        _narrow(widths, least, room - 3 * len(widths) - 1)
        if sum(widths) + 3 * len(widths) + 1 <= room:
            break
    at_start = [title in ends for title in titles]
    shown = [[_cut(*one) for one in zip(row, widths, at_start, strict=True)] for row in cells]
    table = pipe_table(titles, shown, right="".join(right[place : place + 1] or "l" for place in places))
    return [*table, *([f"left out, the terminal is narrow: {', '.join(dropped)}"] if dropped else [])]


def _narrow(widths: list[int], least: Sequence[int], room: int) -> None:
    """Take from the widest column that can give until all fit into ``room``, or none can give."""
    while sum(widths) > room:
        givers = [place for place, width in enumerate(widths) if width > least[place]]
        if not givers:
            return
        widths[max(givers, key=widths.__getitem__)] -= 1


def _cut(cell: str, columns: int, at_start: bool) -> str:
    """A cell of one line in ``columns`` columns as `pipe_table` shows it, cut at one of its ends."""
    if _width(cell) <= columns:
        return cell
    columns -= cell.count("|")
    if at_start:
        return f"...{clipped(cell[::-1], columns).removesuffix('...')[::-1]}"
    return clipped(cell, columns)


def _width(cell: str) -> int:
    """Columns of a cell as `pipe_table` shows it."""
    return _columns(_cell(cell))


def _cell(cell: object) -> str:
    return one_line(str(cell)).replace("|", "\\|")


def facts(pairs: Mapping[str, str]) -> list[str]:
    """Name and value a line, values below one another."""
    width = max(map(len, pairs), default=0)
    return [f"{name:<{width}}  {value}" for name, value in pairs.items()]


def _columns(text: str) -> int:
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def _padded(cell: str, width: int, on_right: bool) -> str:
    blanks = " " * (width - _columns(cell))
    return blanks + cell if on_right else cell + blanks


def make_streams_tolerant() -> None:
    """Let standard streams pass characters that their encoding does not know, escaped instead of raising."""
    for stream, errors in ((sys.stdout, "backslashreplace"), (sys.stderr, "backslashreplace"), (sys.stdin, "replace")):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=errors)
