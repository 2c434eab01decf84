"""The curve of ``evals curve`` as tables: padded for a terminal, or as GitHub shows them in a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from context_gatekeeper.evals.tables import pipe_table

__all__ = ["curve_lines"]

_NONE = "-"
_KINDS = {"strict": "calls that fault", "words": "with words", "hard": "hard"}
"""Kind of a fault -> what the tables call it."""
_COLUMNS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "target": lambda row: f"{row['target']:.3g}",
    "times cheaper": lambda row: f"{row['times_cheaper']:.2f}x",
    "90 % of resamples": lambda row: _interval(row["times_cheaper_interval"]),
    "calls that fault": lambda row: _percent(row["faulting_call_share"]),
    "with words": lambda row: _percent(row["faulting_call_share_words"]),
    "hard": lambda row: _percent(row["hard_faulting_call_share"]),
    "coverage": lambda row: _percent(row["evidence_coverage"]),
    "coverage with words": lambda row: _percent(row["evidence_coverage_words"]),
    "mean prompt": lambda row: f"{row['mean_prompt_tokens']:,.0f}",
    "worst session": lambda row: _worst(row["worst_session"]),
}
"""Head -> its cell; sessions and calls are the same in every row and stand above."""


def curve_lines(figures: Mapping[str, Any], *, is_markdown: bool = False) -> Iterator[str]:
    """Lines: of each price profile a table of its rows and one of its curve, read off at round shares."""
    resident = figures["resident_tokens"]
    about = "; ".join(
        (
            f"sessions: {figures['sessions']}",
            f"calls: {figures['calls']:,}",
            f"resident part: {resident if isinstance(resident, str) else f'{resident:,} tokens'}",
            f"cache: {'cold in real gaps' if figures['gaps'] == 'real' else 'always warm'}",
        )
    )
    for place, (name, curve) in enumerate(figures["prices"].items()):
        yield from [""] * bool(place)
        yield from (f"### {name}" if is_markdown else name, "", about, "")
        rows = [[cell(row) for cell in _COLUMNS.values()] for row in curve["rows"]]
        yield from _table(list(_COLUMNS), rows, is_markdown=is_markdown)
        yield ""
        yield from _table(*_read_off(curve["at_faults"]), is_markdown=is_markdown)


def _read_off(at_faults: Mapping[str, Mapping[str, float | None]]) -> tuple[list[str], list[list[str]]]:
    """Head and rows: a kind of fault a row, a share of faulting calls a column."""
    head = ["times cheaper at", *(f"{float(faulting):.0%}" for faulting in at_faults["strict"])]
    return head, [[_KINDS[kind], *(_times(times) for times in read.values())] for kind, read in at_faults.items()]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, is_markdown: bool) -> Iterator[str]:
    if not is_markdown:
        yield from pipe_table(head, rows)
        return
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _times(value: float | None) -> str:
    return _NONE if value is None else f"{value:.2f}x"


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _interval(ends: Sequence[float] | None) -> str:
    return _NONE if ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}"


def _worst(worst: Mapping[str, float]) -> str:
    return f"{worst['billed_vs_append_only']:.2f}x, {_percent(worst['faulting_call_share'])}"
