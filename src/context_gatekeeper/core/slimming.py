"""The head view of an oversized tool result, and when a result is slimmed as soon as it is born.

The body stays in the pool; the window keeps a head of whole lines, error lines, the tail, and the handle. Every line
shown is a line of the original, byte for byte, or stands in square brackets: a line too long is cut at a grapheme
border and says so, and each gap says which lines it leaves out, so that they can be asked for by number. Code fences
that a gap would tear are closed and opened again. JSON is replaced as a whole: half of it would look like all of it.

Linear in the length of the text. Source: sections 1 and 2.4 of the paging notes; section 2 of the scheduling design.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple, Self

from context_gatekeeper.core.cuts import cut_text
from context_gatekeeper.core.error_lines import find_error_lines
from context_gatekeeper.core.fences import Fence, find_fences
from context_gatekeeper.core.json_shape import Shape, describe_shape
from context_gatekeeper.core.lazy_pattern import lazy_pattern
from context_gatekeeper.core.secret_rules import find_secrets
from context_gatekeeper.core.tool_shapes import is_file_read
from context_gatekeeper.errors import ConfigError

__all__ = ["MEASURED_SLIMMING", "SPEC_SLIMMING", "SlimView", "SlimmingParams", "head_view", "should_slim_at_birth"]


class _Limits(NamedTuple):
    """Fields of `SlimmingParams`; no dataclass, whose module takes longer to load than all of ours."""

    threshold_chars: int
    """Longer results are slimmed."""
    machine_output_only: bool
    """Leave files alone that were read: the next calls quote them."""
    head_chars: int
    """Whole lines up to about so many characters."""
    tail_chars: int
    tail_lines: int
    error_lines: int
    error_chars: int
    """Of one error line; a longer one is cut."""


class SlimmingParams(_Limits):
    """What is slimmed at birth, and what a head view shows."""

    __slots__ = ()

    def __new__(
        cls,
        threshold_chars: int = 2000,
        machine_output_only: bool = False,
        head_chars: int = 200,
        tail_chars: int = 200,
        tail_lines: int = 5,
        error_lines: int = 3,
        error_chars: int = 300,
    ) -> Self:
        """Raises ConfigError when a limit is below 0."""
        if min(threshold_chars, head_chars, tail_chars, tail_lines, error_lines) < 0:
            raise ConfigError("SlimmingParams", "a limit is below 0", "give limits of 0 or more")
        return super().__new__(
            cls, threshold_chars, machine_output_only, head_chars, tail_chars, tail_lines, error_lines, error_chars
        )


SPEC_SLIMMING = SlimmingParams()
"""The scheduling design's: any result over 2,000 characters, at once."""
MEASURED_SLIMMING = SlimmingParams(
    threshold_chars=16_000, machine_output_only=True, tail_chars=800, tail_lines=12, error_lines=8
)
"""The default: machine output over 16,000 characters only (section 2.4 of the paging notes)."""


class SlimView(NamedTuple):
    """What stands in the window in place of a result."""

    text: str
    handle: str
    kind: str
    """``lines``, or the kind of a `Shape`: ``JSON object`` ..."""
    shown: tuple[tuple[int, int], ...]
    """(start, end) of what is shown of the original, ascending: whole lines, and the beginnings of cut ones."""
    line_count: int
    """Of the original."""
    lines_left_out: int
    """Lines that are not shown at all."""
    size_chars: int
    size_bytes: int
    """In UTF-8; lone surrogates count three."""


def should_slim_at_birth(
    text: str,
    *,
    tool: str = "",
    arguments: str = "",
    is_error: bool = False,
    params: SlimmingParams = MEASURED_SLIMMING,
) -> bool:
    """Whether a result is slimmed before it is sent for the first time.

    Args:
        text: the result.
        tool: name of its tool.
        arguments: of its call as logged: ``cat`` in a shell shows a file too.
        is_error: the tool marked it as failed.
        params: the setting.

    A failed result may be slimmed too: `head_view` keeps what tells of the error.
    """
    if len(text) <= params.threshold_chars:
        return False
    return is_error or not params.machine_output_only or not is_file_read(tool, arguments)


def head_view(
    text: str,
    *,
    handle: str,
    name: str = "",
    tool: str = "",
    is_error: bool = False,
    params: SlimmingParams = MEASURED_SLIMMING,
) -> SlimView | None:
    """The view that takes a result's place.

    Args:
        text: the result, any ``str``.
        handle: what expands to it.
        name: what it is of, a path or command; shown when given.
        tool: the tool's name; shown when given.
        is_error: the tool marked it as failed: more is taken for an error line.
        params: how much is shown.

    Returns:
        None when the view would be no shorter than the text, or would show nothing of a failed result.

    Raises:
        ConfigError: ``handle`` is empty or has a line break.
    """
    if not handle or "\n" in handle:
        raise ConfigError(f"handle {handle!r}", "it must be one line that is not empty", "pass the page's handle")
    size = _Size.of(text)
    label = _label(tool, name)
    shape = describe_shape(text)
    if shape is None:
        kind, told = "lines", ""
        body, shown, lines_shown = _show_lines(text, params, is_error=is_error)
    else:
        kind, told = shape.kind, f"{shape.kind}{shape.told}{shape.error if is_error else ''}; "
        body, shown, lines_shown = _show_around(text, shape)
    view = f"{body}[{label}{told}{size}; whole text: {handle}]"
    is_silent = not shown and (shape is None or not shape.error)
    if len(view) >= len(text) or (is_error and is_silent):
        return None
    return SlimView(view, handle, kind, shown, size.lines, size.lines - lines_shown, size.chars, size.bytes)


_LABEL_CHARS = 120
_CONTROL = lazy_pattern(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def _label(tool: str, name: str) -> str:
    """What the result is of, on one line and short."""
    words = [_CONTROL.sub(" ", word).strip() for word in (tool, name)]
    label = cut_text(" ".join(word for word in words if word).replace("`", "'"), _LABEL_CHARS)
    if find_secrets(label):
        label = _CONTROL.sub(" ", tool)[:_LABEL_CHARS]
    return f"result of {label}: " if label else "result: "


class _Size(NamedTuple):
    chars: int
    bytes: int
    lines: int

    @classmethod
    def of(cls, text: str) -> _Size:
        lines = text.count("\n") + (not text.endswith("\n"))
        return cls(len(text), len(text.encode("utf-8", "surrogatepass")), lines)

    def __str__(self) -> str:
        return f"{self.chars} characters, {self.bytes} bytes, {self.lines} line{'' if self.lines == 1 else 's'}"


# -- lines ------------------------------------------------------------------------------------


class _Line(NamedTuple):
    number: int
    """From 0."""
    start: int
    end: int
    cut: str | None = None
    """What is shown of a line that is too long."""
    cut_end: int = 0

    @property
    def shown_end(self) -> int:
        return self.end if self.cut is None else self.cut_end


def _show_around(text: str, shape: Shape) -> tuple[str, tuple[tuple[int, int], ...], int]:
    """What stands before and behind JSON, with a note in its place; see `_show_lines`."""
    spans = [(start, end) for start, end in ((0, shape.start), (shape.end, len(text))) if text[start:end].strip()]
    if not spans:
        return "", (), 0
    before, behind = text[: shape.start], text[shape.end :].removesuffix("\n")
    line_count = before.count("\n") + max(0, behind.count("\n"))
    return f"{before}[... {shape.kind} left out ...]{behind}\n", tuple(spans), line_count


def _show_lines(text: str, params: SlimmingParams, *, is_error: bool) -> tuple[str, tuple[tuple[int, int], ...], int]:
    """(the body of the view, what it shows, how many lines it shows)."""
    starts = _line_starts(text)
    lines = {line.number: line for line in _head(text, starts, params)}
    for line in (*_errors(text, starts, params, is_error=is_error), *_tail(text, starts, params)):
        lines.setdefault(line.number, line)
    fences = find_fences(text)
    ordered = _without_lone_fences(_with_short_gaps(text, starts, lines), fences)
    spans: list[tuple[int, int]] = []
    for line in ordered:
        if spans and spans[-1][1] == line.start - 1:
            spans[-1] = (spans[-1][0], line.shown_end)
        else:
            spans.append((line.start, line.shown_end))
    return f"{_lay_out(text, ordered, len(starts), fences)}\n", tuple(spans), len(ordered)


def _line_starts(text: str) -> list[int]:
    """Where the lines begin; a break at the very end begins none."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    if len(starts) > 1 and starts[-1] == len(text):
        starts.pop()
    return starts


def _line_end(text: str, starts: Sequence[int], number: int) -> int:
    return starts[number + 1] - 1 if number + 1 < len(starts) else len(text) - text.endswith("\n")


def _line(text: str, starts: Sequence[int], number: int, limit_chars: int) -> _Line | None:
    """A line; cut when it is longer than ``limit_chars``. None when nothing of it can be shown."""
    start, end = starts[number], _line_end(text, starts, number)
    if end - start <= limit_chars:
        return _Line(number, start, end)
    cut = cut_text(text[start : min(end, start + 2 * limit_chars + _CUT_VIEW_CHARS)], limit_chars)
    kept = 0
    while kept < len(cut) and cut[kept] == text[start + kept]:
        kept += 1
    return _Line(number, start, end, cut, start + kept) if kept else None


_CUT_VIEW_CHARS = 600
"""What is looked at behind a cut, for the end of inline code."""


def _head(text: str, starts: Sequence[int], params: SlimmingParams) -> list[_Line]:
    found: list[_Line] = []
    room = params.head_chars
    has_words = False
    for number, start in enumerate(starts):
        line = _line(text, starts, number, len(text) if has_words else room)
        if line is None or line.shown_end - start > room:
            break
        found.append(line)
        has_words = has_words or bool(text[start : line.shown_end].strip())
        room -= line.shown_end - start + 1
        if line.cut is not None or room <= 0:
            break
    return found


def _tail(text: str, starts: Sequence[int], params: SlimmingParams) -> list[_Line]:
    found: list[_Line] = []
    room = params.tail_chars
    number = bisect_right(starts, max(0, len(text.rstrip()) - 1)) - 1
    while number >= 0 and len(found) < params.tail_lines:
        line = _Line(number, starts[number], _line_end(text, starts, number))
        room -= line.end - line.start
        if room < 0:
            break
        found.append(line)
        room -= 1
        number -= 1
    return found


def _errors(text: str, starts: Sequence[int], params: SlimmingParams, *, is_error: bool) -> list[_Line]:
    """The first and the last error lines: the first says what began it, the last what came of it."""
    most = params.error_lines
    errors = find_error_lines(text, _MOST_ERRORS)
    if not errors and is_error:
        errors = find_error_lines(text, _MOST_ERRORS, loose=True)
    errors = [error for error in errors if not error.is_generic] or errors
    if len(errors) > most:
        errors = [*errors[: most - most // 2], *errors[len(errors) - most // 2 :]]
    found = [_line(text, starts, bisect_right(starts, error.start) - 1, params.error_chars) for error in errors]
    return [line for line in found if line is not None]


_MOST_ERRORS = 1000


def _with_short_gaps(text: str, starts: Sequence[int], lines: dict[int, _Line]) -> list[_Line]:
    """The lines in order, and every single line between two of them that is shorter than the note of its gap."""
    for number in list(lines):
        if number + 2 in lines and number + 1 not in lines:
            between = _Line(number + 1, starts[number + 1], _line_end(text, starts, number + 1))
            if between.end - between.start <= len(_gap(number + 1, number + 1)):
                lines[number + 1] = between
    return [lines[number] for number in sorted(lines)]


def _gap(first: int, last: int) -> str:
    """What stands in the place of the lines ``first`` to ``last``, both from 0."""
    count = last - first + 1
    place = f"line {first + 1}" if count == 1 else f"lines {first + 1}-{last + 1}"
    return f"[... {count} line{'' if count == 1 else 's'} left out: {place} ...]"


# -- fences -----------------------------------------------------------------------------------


def _fence_of(fences: Sequence[Fence], line: _Line) -> Fence | None:
    """The block that a line belongs to, its opening and closing lines included."""
    place = bisect_right(fences, line.start, key=lambda fence: fence.start) - 1
    return fences[place] if place >= 0 and line.start <= fences[place].end else None


def _opens(fence: Fence | None, line: _Line) -> bool:
    return fence is not None and line.start == fence.start


def _closes(fence: Fence | None, line: _Line) -> bool:
    return fence is not None and fence.is_closed and line.end >= fence.end and line.start != fence.start


def _without_lone_fences(lines: Sequence[_Line], fences: Sequence[Fence]) -> list[_Line]:
    """The lines without those that open or close a block of whose code nothing is shown."""
    kept: list[_Line] = []
    for fence, group in groupby(lines, key=lambda line: _fence_of(fences, line)):
        block = list(group)
        has_code = any(not _opens(fence, line) and not _closes(fence, line) for line in block)
        is_empty_block = len(block) == 2 and block[0].number + 1 == block[1].number
        if fence is None or has_code or is_empty_block:
            kept += block
    return kept


def _lay_out(text: str, lines: Sequence[_Line], line_count: int, fences: Sequence[Fence]) -> str:
    """The lines with their gaps; a block that a gap tears is closed before it and opened again behind it."""
    parts: list[str] = []
    opened: Fence | None = None
    expected = 0
    for line in lines:
        fence = _fence_of(fences, line)
        if line.number > expected:
            if opened is not None and opened is not fence:
                parts.append(opened.closing.removeprefix("\n"))
            parts.append(_gap(expected, line.number - 1))
            if fence is not None and opened is not fence and not _opens(fence, line):
                parts.append(fence.opening.removesuffix("\n"))
        parts.append(_as_shown(text, line))
        opened = None if _closes(fence, line) else fence
        expected = line.number + 1
    if opened is not None:
        parts.append(opened.closing.removeprefix("\n"))
    if expected < line_count:
        parts.append(_gap(expected, line_count - 1))
    return "\n".join(parts)


def _as_shown(text: str, line: _Line) -> str:
    if line.cut is None:
        return text[line.start : line.end]
    return f"{line.cut} [... cut after {line.shown_end - line.start} of {line.end - line.start} characters ...]"
