"""Figures as ASCII pipe tables, for reading; programs take ``--json``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["figure_tables", "pipe_table"]


def figure_tables(figures: Mapping[str, Any]) -> Iterator[str]:
    """Lines: a table of the plain figures, one for each nested group, and the examples one by one."""
    plain = {name: value for name, value in figures.items() if not _is_group(value)}
    if plain:
        yield from pipe_table(["figure", "value"], [[name, _cell(value)] for name, value in plain.items()])
    for name, value in figures.items():
        if isinstance(value, Mapping) and value:
            yield from _group(name, value)
        elif isinstance(value, list) and _is_group(value):
            yield from ["", name]
            yield from (f"- {json.dumps(example, ensure_ascii=False)}" for example in value)


def pipe_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of one table, its columns padded to their widest cell; each row as long as the head."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]

    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"

    yield line(head)
    yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    yield from map(line, rows)


def _is_group(value: object) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(one, Mapping) for one in value))


def _group(name: str, group: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    rows = [(key, dict(_flat(value))) for key, value in group.items() if isinstance(value, Mapping)]
    if len(rows) < len(group):
        yield from pipe_table([name, "value"], [[key, _cell(value)] for key, value in _flat(group)])
        return
    columns = list(dict.fromkeys(column for _, row in rows for column in row))
    yield from pipe_table(
        [name, *(key for key, _ in rows)],
        [[column, *(_cell(row.get(column)) for _, row in rows)] for column in columns],
    )


def _flat(group: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in group.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, list | tuple):
        return " to ".join(_cell(one) for one in value)
    return str(value)
