"""Where a text holds a private key: its block of PEM lines, also behind what tools put in front of each line.

Line numbers, the file's name, marks of quotes and differences, colours and escapes of JSON stand in front of a
line without changing it: what is left behind them is base64 to the line's end. Lines of one block have the
same *shape* in front. A block is found by its ``BEGIN``, by its ``END``, or, where a reader saw its middle alone,
by three lines or more as wide as those of keys. Certificates and public keys are left alone. O(length).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from context_gatekeeper.core.lazy_pattern import lazy_pattern

__all__ = ["find_private_keys"]

_BEGIN = lazy_pattern(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END_START = "-----END "
_END = lazy_pattern(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_MARKER = lazy_pattern(r"-----(?:BEGIN|END) [A-Z0-9 ]{1,60}-----")
_BLOCK_CHARS = 20_000
"""The largest private keys in use have half of it."""
_BREAKS = r"\\{1,8}[nr]"
"""Line breaks in JSON, however often it was encoded."""
_PLAIN_LINE = lazy_pattern(rf"(?:{_BREAKS}|\s){{0,8}}+[A-Za-z0-9+/=]{{16,}}+")
_PLAIN_LAST_LINE = lazy_pattern(rf"(?:(?:{_BREAKS}|\s){{1,8}}+[A-Za-z0-9+/=]{{1,15}}+)?")
_CONTENT = lazy_pattern(r"(?<![A-Za-z0-9+/=])(?=[A-Za-z0-9+/=]{0,64}[0-9+/])[A-Za-z0-9+/=]{24,}+")

_BREAK = lazy_pattern(rf"\\{{1,8}}r\\{{1,8}}n|{_BREAKS}|\r\n|[\r\n]")
_MARKS_ALONE = lazy_pattern(r"(?=.{0,12}\S)[^A-Za-z0-9]{1,12}\Z")
"""What stands between the line break of a text in code and that of the code."""
_COLOUR = r"(?:\x1b|\\{1,4}(?:u001b|x1b|033|e))\[[0-9;]{0,8}m"
_RUN = lazy_pattern(rf"(?<![A-Za-z0-9+/])([A-Za-z0-9+/]++={{0,2}})(?:{_COLOUR}|[^A-Za-z0-9+/=]){{0,12}}+\Z")
"""The last base64 of a line, in front of quotes, commas and the like."""
_LEAD = lazy_pattern(
    r"(?<=\\)(?:t|u[0-9a-fA-F]{4})|(?:(?<=\x1b\[)|(?<=u001b\[)|(?<=x1b\[)|(?<=033\[)|(?<=\\e\[))[0-9;]{1,8}m"
)
"""What the end of an escape, or of a colour, adds to a run behind it."""
_NUMBERED = lazy_pattern(r"[A-Za-z]*[0-9][A-Za-z0-9]*")
_BLANKS = lazy_pattern(r"\s+")
_HEADER = lazy_pattern(r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID): ")
_MOST_IN_FRONT = 240
"""Characters in front of a line: longer than the paths that searches print."""
_MOST_OF_A_LINE = 4000
"""A whole key of 4,096 bits on one line has 3,200."""
_MOST_SKIPPED = 6
"""Headers, and lines that hold nothing, between a marker and the body."""
_EMPTY_CHARS = 60
_FULL_LINE = 40
"""Characters of a line that is known for body by itself; a block's last one may have fewer."""
_SHORT_LINE = 16
_KEY_WIDTHS = frozenset((64, 70))
"""Of OpenSSL and OpenSSH; other base64 is cut at 76 characters or not at all."""
_KEY_LINES = 3
_WIDE = lazy_pattern(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{64,75}(?![A-Za-z0-9+/=])")


class _Line(NamedTuple):
    """What a line ends in."""

    start: int
    """Of its base64."""
    end: int
    shape: str
    """What stands in front, numbers and blanks made equal; the same for all lines of a block."""

    @property
    def width(self) -> int:
        return self.end - self.start


class _Marker(NamedTuple):
    start: int
    is_begin: bool
    is_private: bool


def find_private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each private key's block, in order, none touching another.

    Body lines without any marker are taken for a key's as well, because nothing else in use has their widths; but
    not where the text shows a certificate, or another public block, and no private one.
    """
    found: list[tuple[int, int]] = []
    if "PRIVATE KEY" in text:
        found += _from_begin(text)
        found = sorted([*found, *_before_end(text, found)])
    yield from sorted([*found, *_middles(text, found)])


def _is_inside(place: int, found: list[tuple[int, int]]) -> bool:
    return place < _end_before(place, found)


def _end_before(place: int, found: list[tuple[int, int]]) -> int:
    """Where the last of the blocks ends that begin at ``place`` or before; 0 where none does."""
    count = bisect_right(found, place, key=lambda block: block[0])
    return found[count - 1][1] if count else 0


# -- behind BEGIN ---------------------------------------------------------------------------------


def _from_begin(text: str) -> Iterator[tuple[int, int]]:
    read_to = 0
    for begin in _BEGIN.finditer(text):
        if begin.start() < read_to:
            continue
        end_mark = text.find(_END_START, begin.end(), begin.end() + _BLOCK_CHARS)
        end = _END.match(text, end_mark) if end_mark >= 0 else None
        stop = end.end() if end else _body_end(text, begin.end())
        if _CONTENT.search(text, begin.end(), stop):
            read_to = stop
            yield begin.start(), stop


def _body_end(text: str, start: int) -> int:
    """Where the lines of a block that was cut off end."""
    stop = start
    while line := _PLAIN_LINE.match(text, stop):
        stop = line.end()
    if stop > start:
        last = _PLAIN_LAST_LINE.match(text, stop)
        return last.end() if last else stop
    return _marked_body_end(text, start)


def _marked_body_end(text: str, start: int) -> int:
    """The same of lines behind numbers and marks."""
    first: _Line | None = None
    stop = start
    if not _BREAK.search(text, start, start + _MOST_OF_A_LINE):
        return start
    skipped = 0
    for span in _lines(text, start, len(text)):
        line = _read(text, *span)
        if first is None and line is not None and line.width >= _FULL_LINE:
            first = line
        elif first is None or line is None or line.shape != first.shape:
            is_skipped = span[1] - span[0] <= _EMPTY_CHARS or _HEADER.search(text, *span)
            skipped += 1
            if first is not None or not is_skipped or skipped > _MOST_SKIPPED:
                return stop
            continue
        stop = line.end
        if line.width < _SHORT_LINE:
            return stop
    return stop


# -- before END -----------------------------------------------------------------------------------


def _before_end(text: str, found: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Blocks of which the text has the end alone."""
    floor = 0
    for end in _END.finditer(text):
        if _is_inside(end.start(), found):
            continue
        floor = max(floor, _end_before(end.start(), found))
        start = _body_start(text, floor, end.start())
        if _CONTENT.search(text[start : end.start()]):
            yield start, end.end()
        floor = end.end()


def _body_start(text: str, floor: int, stop: int) -> int:
    """Where the body lines that stand before ``stop`` begin; ``stop`` itself where none does."""
    spans = list(_lines(text, max(floor, stop - 4 * _BLOCK_CHARS), stop))
    start, shape = stop, None
    skipped = 0
    for begin, end in reversed(spans):
        line = _read(text, begin, end)
        if skipped > _MOST_SKIPPED:
            break
        if line is None or (shape is not None and line.shape != shape):
            skipped += 1
            if start < stop:
                break
        elif line.width >= _FULL_LINE:
            start, shape = line.start, line.shape
        elif start < stop:
            break
        elif line.width >= _SHORT_LINE:
            start, shape = line.start, line.shape
        else:
            skipped += 1
    return start


# -- neither --------------------------------------------------------------------------------------


def _middles(text: str, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Runs of lines as wide as a key's, in no block."""
    places = _wide_places(text)
    if not places:
        return []
    markers = [
        _Marker(one.start(), one[0].startswith("-----BEGIN"), "PRIVATE KEY" in one[0]) for one in _MARKER.finditer(text)
    ]
    if markers and not any(marker.is_private for marker in markers):
        return []
    middles: list[tuple[int, int]] = []
    for start, stop in places:
        group: list[_Line] = []
        for span in _lines(text, start, stop):
            line = _read(text, *span)
            if line is not None and group and line.shape == group[0].shape and line.width == group[0].width:
                group.append(line)
                continue
            middles += _middle(group, line, markers, found)
            group = [line] if line is not None and _is_of_key(text, line) else []
        middles += _middle(group, None, markers, found)
    return middles


def _wide_places(text: str) -> list[tuple[int, int]]:
    """Where three runs or more as wide as a key's lines stand near each other, with the lines around them."""
    places: list[tuple[int, int]] = []
    first, last, count = 0, 0, 0
    for run in (*_WIDE.finditer(text), None):
        if run is not None and count and run.start() - last <= _MOST_IN_FRONT + _EMPTY_CHARS:
            last, count = run.end(), count + 1
            continue
        if count >= _KEY_LINES:
            breaks = [one.end() for one in _BREAK.finditer(text, max(0, first - _MOST_IN_FRONT), first)]
            start = breaks[-1] if breaks else max(0, first - _MOST_IN_FRONT)
            places.append((start, min(len(text), last + _MOST_IN_FRONT + 2 * _EMPTY_CHARS)))
        if run is not None:
            first, last, count = run.start(), run.end(), 1
    return places


def _middle(
    group: list[_Line], behind: _Line | None, markers: list[_Marker], found: list[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """The run that ``group`` is, with the shorter line behind it; nothing where it is too short, or public."""
    if len(group) < _KEY_LINES or _is_inside(group[0].start, found):
        return
    start, end = group[0].start, group[-1].end
    place = bisect_right(markers, start, key=lambda marker: marker.start)
    before, after = markers[place - 1 : place], markers[place : place + 1]
    if any(one.is_begin and not one.is_private for one in before):
        return
    if any(not one.is_begin and not one.is_private for one in after):
        return
    if behind is not None and behind.shape == group[0].shape and behind.width < group[0].width:
        end = behind.end
    yield start, end


def _is_of_key(text: str, line: _Line) -> bool:
    """Whether a line is as wide as a key's, and drawn from all of base64: hexadecimal digests are not."""
    run = text[line.start : line.end]
    width = len(run) - run.startswith("+")
    is_mixed = any(map(str.isdigit, run)) and any(map(str.islower, run)) and any(map(str.isupper, run))
    return (len(run) in _KEY_WIDTHS or width in _KEY_WIDTHS) and is_mixed


# -- lines ----------------------------------------------------------------------------------------


def _lines(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Start and end of the lines between two places, the rest of the first one's line first."""
    for found in _BREAK.finditer(text, start, stop):
        if not _MARKS_ALONE.match(text, start, found.start()):
            yield start, found.start()
        start = found.end()
    yield start, stop


def _read(text: str, start: int, end: int) -> _Line | None:
    """The base64 in which a line ends; None where there is none, too much in front of it or too much of it."""
    if end - start > _MOST_OF_A_LINE:
        return None
    content = text[start:end]  # alone, so that the escape in front of it is no part of it
    found = _RUN.search(content)
    if found is None:
        return None
    place = found.start(1)
    lead = _LEAD.match(content, place)
    first = lead.end() if lead and lead.end() < found.end(1) else place
    if first > _MOST_IN_FRONT:
        return None
    # Without the lead: base64 may begin like one, and then this line's shape would differ from its neighbours'.
    shape = _BLANKS.sub(" ", _NUMBERED.sub("0", content[:place])).strip(" ")
    return _Line(start + first, start + found.end(1), shape)
