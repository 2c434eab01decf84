"""The lines of a text that a query is about, as they stand, with the gaps told.

Whole lines that hold most of the query's weight, each with its neighbours, up to a bound; a gap says which lines are
left out and by which handle they come. Of a line too long the stretch around its heaviest term is shown. Of a text
without any of the query's terms the beginning is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.cuts import cut_plain
from context_gatekeeper.errors import ConfigError

__all__ = ["excerpt"]

_LINE_CHARS = 600
"""Of a longer line so many are shown, and it says so."""
_LEAD_CHARS = 200
"""Of these, in front of the heaviest term."""
_READ_CHARS = 4000
"""A longer line is not read word by word: that a term's letters stand in it is enough."""
_MOST_READ_CHARS = 1 << 18
"""Of a longer text only the lines at its beginning are looked at: a quarter of a second."""
_CONTEXT_LINES = 1


def excerpt(text: str, weights: Mapping[str, float], *, most_chars: int, handle: str) -> str:
    """Up to about ``most_chars`` characters of whole lines of ``text``. O(length).

    Args:
        text: the original.
        weights: anchor term -> what it is worth, > 0.
        most_chars: of the lines shown, >= 1; gaps and a line's cut end are told beside.
        handle: of the text, for the gaps.

    Raises:
        ConfigError: ``most_chars`` is below 1.
    """
    if most_chars < 1:
        raise ConfigError("most_chars", f"{most_chars} is no room for a line", "give 1 or more")
    if len(text) <= most_chars:
        return text
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    shown = _chosen(lines, weights, most_chars) or _beginning(lines, most_chars)
    return "\n".join(_told(lines, shown, weights, handle))


def _chosen(lines: Sequence[str], weights: Mapping[str, float], most_chars: int) -> list[int]:
    """Numbers of the lines shown, from 0, ascending; the heaviest first while there is room, ties to the earlier."""
    worth: dict[int, float] = {}
    read = 0
    for number, line in enumerate(lines):
        read += len(line)
        if read > _MOST_READ_CHARS:
            break
        if line:
            held = scan_anchors(line).counts if len(line) <= _READ_CHARS else line.lower()
            gained = sum(weight for term, weight in weights.items() if term in held)
            if gained > 0.0:
                worth[number] = gained
    room = most_chars
    shown: set[int] = set()
    for number in sorted(worth, key=lambda one: (-worth[one], one)):
        around = range(max(0, number - _CONTEXT_LINES), min(len(lines), number + _CONTEXT_LINES + 1))
        for wanted in ((number,), around):
            new = [one for one in wanted if one not in shown]
            cost = sum(_cost(lines[one]) for one in new)
            if cost <= room or not shown:
                shown.update(new)
                room -= cost
        if room <= 0:
            break
    return sorted(shown)


def _beginning(lines: Sequence[str], most_chars: int) -> list[int]:
    shown, room = [0], most_chars - _cost(lines[0])
    for number in range(1, len(lines)):
        room -= _cost(lines[number])
        if room < 0:
            break
        shown.append(number)
    return shown


def _cost(line: str) -> int:
    return min(len(line), _LINE_CHARS) + 1


def _told(lines: Sequence[str], shown: Sequence[int], weights: Mapping[str, float], handle: str) -> Iterable[str]:
    behind = -1
    for number in shown:
        if number > behind + 1:
            yield _gap(behind + 1, number - 1, handle)
        yield _shortened(lines[number], weights)
        behind = number
    if behind < len(lines) - 1:
        yield _gap(behind + 1, len(lines) - 1, handle)


def _gap(first: int, last: int, handle: str) -> str:
    named = f"line {first + 1}" if first == last else f"lines {first + 1}-{last + 1}"
    return f"[{named} left out: {handle}#L{first + 1}-{last + 1}]"


def _shortened(line: str, weights: Mapping[str, float]) -> str:
    if len(line) <= _LINE_CHARS:
        return line
    lowered = line.lower()
    heaviest = sorted(weights, key=lambda term: (-weights[term], term))
    place = next((found for term in heaviest if (found := lowered.find(term)) >= 0), 0)
    start = len(cut_plain(line, max(0, place - _LEAD_CHARS)))
    kept = cut_plain(line[start:], _LINE_CHARS)
    before, behind = start, len(line) - start - len(kept)
    told = [f"[{before} characters of the line left out] " if before else "", kept]
    return "".join((*told, f" [{behind} characters of the line left out]" if behind else ""))
