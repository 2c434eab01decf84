"""Command line of the evaluations: ``python -m context_gatekeeper.evals`` and ``cgk eval``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from context_gatekeeper.core.profiles import PROFILES
from context_gatekeeper.errors import GatekeeperError
from context_gatekeeper.evals.contamination import ORDERS, measure_contamination
from context_gatekeeper.evals.followups import DEFAULT_CASES, measure_followups
from context_gatekeeper.evals.gate import measure_gate
from context_gatekeeper.evals.interleaved import measure_interleaved
from context_gatekeeper.evals.qa import measure_qa
from context_gatekeeper.evals.token_accuracy import measure_tokens

__all__ = ["evals", "main"]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_data = click.option("--data", required=True, type=_FILE, help="The set, a JSON Lines file.")
_profile = click.option("--profile", default="strict", show_default=True, type=click.Choice(list(PROFILES)))
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
_errors = click.option("--show-errors", is_flag=True, help="Add up to 40 examples of what went wrong.")


@click.group()
def evals() -> None:
    """Measure selection and recall on labelled conversations."""


def _names(value: str) -> list[str]:
    return [name.strip() for name in value.split(",") if name.strip()]


def _print(figures: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(figures, ensure_ascii=False))
        return
    for line in _rows(figures):
        click.echo(line)


def _rows(figures: Mapping[str, Any], prefix: str = "") -> list[str]:
    """An ASCII pipe table, nested names joined by dots."""
    rows: list[str] = ["| figure | value |", "|---|---|"] if not prefix else []
    for name, value in figures.items():
        if isinstance(value, Mapping):
            rows.extend(_rows(value, f"{prefix}{name}."))
        else:
            shown = f"{value:.4f}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
            rows.append(f"| {prefix}{name} | {shown} |")
    return rows


@evals.command()
@_data
@_profile
@click.option("--unit", default="turn", show_default=True, type=click.Choice(["turn", "block"]))
@click.option("--peers", default="", help="Peers to measure beside: bm25, recency.")
@_json
@_errors
def qa(data: Path, profile: str, unit: str, peers: str, as_json: bool, show_errors: bool) -> None:
    """Questions with labelled evidence."""
    _print(measure_qa(data, profile, unit, _names(peers), show_errors=show_errors), as_json=as_json)


@evals.command()
@_data
@_profile
@click.option("--times", type=_FILE, help="Question file of the same logs, for times and sessions by turn id.")
@_json
@_errors
def gate(data: Path, profile: str, times: Path | None, as_json: bool, show_errors: bool) -> None:
    """Labelled topic shifts."""
    _print(measure_gate(data, profile, times, show_errors=show_errors), as_json=as_json)


@evals.command()
@click.option("--orders", default=",".join(ORDERS), show_default=True, help="Orders, also random-literal.")
@click.option("--topics", type=_FILE)
@click.option("--frames", type=_FILE)
@click.option("--elliptic", type=_FILE)
@click.option("--recap", type=_FILE)
@click.option("--deictic", type=_FILE)
@click.option("--rounds", default=100, show_default=True, type=click.IntRange(4, 100_000), help="Rounds of all four topics.")
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(1, 10_000))
@_profile
@_json
@_errors
def contamination(orders: str, as_json: bool, show_errors: bool, **settings: Any) -> None:
    """Four topics in made conversations."""
    try:
        figures = measure_contamination(_names(orders), show_errors=show_errors, **settings)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    _print(figures, as_json=as_json)


@evals.command()
@_data
@_profile
@_json
@_errors
def interleaved(data: Path, profile: str, as_json: bool, show_errors: bool) -> None:
    """Real topics taking turns."""
    _print(measure_interleaved(data, profile, show_errors=show_errors), as_json=as_json)


@evals.command()
@click.option("--data", default=DEFAULT_CASES, type=_FILE, help="Cases; our own by default.")
@_profile
@_json
@_errors
def followups(data: Path, profile: str, as_json: bool, show_errors: bool) -> None:
    """Short queries that lean on what was just said."""
    _print(measure_followups(data, profile, show_errors=show_errors), as_json=as_json)


@evals.command()
@click.option("--data", multiple=True, type=_FILE, help="Files with texts.")
@click.argument("more", nargs=-1, type=_FILE)
@_json
def tokens(data: tuple[Path, ...], more: tuple[Path, ...], as_json: bool) -> None:
    """The token estimate against the exact vocabulary (extra ``tokens``)."""
    if not data + more:
        raise click.UsageError("--data: name at least one file")
    _print(measure_tokens([*data, *more]), as_json=as_json)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; our errors become one line on standard error and exit code 2."""
    try:
        evals(args=None if arguments is None else list(arguments), prog_name="evals")
    except GatekeeperError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
