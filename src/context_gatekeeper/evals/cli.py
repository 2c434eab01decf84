"""Command line of the evaluations: ``python -m context_gatekeeper.evals`` and ``cgk eval``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.core.profiles import PROFILES
from context_gatekeeper.errors import GatekeeperError
from context_gatekeeper.evals.agents import RULES, listed_sessions, measure_agents, regression_rows
from context_gatekeeper.evals.contamination import ERROR_LIMIT, EXTRA_ORDERS, ORDERS, measure_contamination
from context_gatekeeper.evals.curve import CURVE_PRICES, DEFAULT_TARGETS, CurveSettings, measure_curve
from context_gatekeeper.evals.curve_tables import curve_lines
from context_gatekeeper.evals.fixtures import DEFAULT_FOLLOWUPS
from context_gatekeeper.evals.followups import measure_followups
from context_gatekeeper.evals.gate import measure_gate
from context_gatekeeper.evals.interleaved import measure_interleaved
from context_gatekeeper.evals.qa import measure_qa
from context_gatekeeper.evals.tables import figure_tables
from context_gatekeeper.evals.token_accuracy import measure_tokens

__all__ = ["evals", "main"]

_DECIMALS = 6
"""Of the figures printed: more would only show the order of additions."""
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_data = click.option("--data", required=True, type=_FILE, help="The set, a JSON Lines file, plain or gzipped.")
_several = click.option("--data", multiple=True, type=_FILE, help="The sets; several files may follow one flag.")
_more = click.argument("more", nargs=-1, type=_FILE)
_profile = click.option(
    "--profile", default="strict", show_default=True, type=click.Choice(list(PROFILES)), help="Selection profile."
)
_Number = TypeVar("_Number", int, float)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
_errors = click.option("--show-errors", is_flag=True, help="Add examples of what went wrong.")
_error_limit = click.option(
    "--error-limit",
    default=ERROR_LIMIT,
    show_default=True,
    type=click.IntRange(1),
    help="Most examples of --show-errors.",
)


@click.group()
def evals() -> None:
    """Measure selection and recall on labelled conversations."""


def _names(value: str) -> list[str]:
    return [name.strip() for name in value.split(",") if name.strip()]


def _print(figures: Mapping[str, Any], *, as_json: bool) -> None:
    rounded = _rounded(figures)
    lines = [json.dumps(rounded, ensure_ascii=False)] if as_json else figure_tables(rounded)
    for line in lines:
        # A log may hold half a surrogate pair, which no terminal takes.
        click.echo(line.encode("utf-8", "backslashreplace").decode("utf-8"))


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, _DECIMALS)
    if isinstance(value, Mapping):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value


@evals.command()
@_data
@_profile
@click.option(
    "--unit",
    default="turn",
    show_default=True,
    type=click.Choice(["turn", "block"]),
    help="What is ranked: a line or a pair.",
)
@click.option("--peers", default="", help="Rankings to measure beside ours: bm25, recency.")
@_json
@_errors
@_error_limit
def qa(data: Path, profile: str, unit: str, peers: str, as_json: bool, show_errors: bool, error_limit: int) -> None:
    """Questions with labelled evidence."""
    figures = measure_qa(data, profile, unit, _names(peers), error_limit=error_limit * show_errors)
    _print(figures, as_json=as_json)


@evals.command()
@_data
@_profile
@click.option("--times", type=_FILE, help="A file with the same turn ids, for times that --data does not have.")
@_json
@_errors
@_error_limit
def gate(data: Path, profile: str, times: Path | None, as_json: bool, show_errors: bool, error_limit: int) -> None:
    """Labelled topic shifts."""
    _print(measure_gate(data, profile, times, error_limit=error_limit * show_errors), as_json=as_json)


@evals.command()
@click.option(
    "--orders",
    default=",".join(ORDERS),
    show_default=True,
    help=f"Orders of the rounds; also {', '.join(EXTRA_ORDERS)}.",
)
@click.option("--topics", type=_FILE, help="Topics; those of the seed fixture by default.")
@click.option("--frames", type=_FILE, help="Questions that name topic {n} and sub {s}.")
@click.option("--elliptic", type=_FILE, help="Questions that name the sub {s} alone.")
@click.option("--recap", type=_FILE, help="Questions for an earlier sub.")
@click.option("--deictic", type=_FILE, help="Questions that name neither.")
@click.option("--rounds", default=100, show_default=True, help="Rounds of all four topics together.")
@click.option(
    "--seeds", default=3, show_default=True, type=click.IntRange(1), help="Draws of topics, kinds and frames."
)
@click.option("--recap-once", is_flag=True, help="The easier reading of recaps: each sub once, any turn that asked it.")
@_profile
@_json
@_errors
@_error_limit
def contamination(orders: str, as_json: bool, show_errors: bool, error_limit: int, **settings: Any) -> None:
    """Four topics in made conversations."""
    figures = measure_contamination(_names(orders), error_limit=error_limit * show_errors, **settings)
    _print(figures, as_json=as_json)


@evals.command()
@_several
@_more
@_profile
@_json
@_errors
@_error_limit
def interleaved(
    data: tuple[Path, ...],
    more: tuple[Path, ...],
    profile: str,
    as_json: bool,
    show_errors: bool,
    error_limit: int,
) -> None:
    """Real topics taking turns."""
    paths = _given(data, more)
    _print(measure_interleaved(paths, profile, error_limit=error_limit * show_errors), as_json=as_json)


@evals.command()
@click.option("--data", default=DEFAULT_FOLLOWUPS, type=_FILE, help="Cases; our own by default.")
@_profile
@_json
@_errors
@_error_limit
def followups(data: Path, profile: str, as_json: bool, show_errors: bool, error_limit: int) -> None:
    """Short queries that lean on what was just said."""
    _print(measure_followups(data, profile, error_limit=error_limit * show_errors), as_json=as_json)


@evals.command()
@_several
@_more
@_json
def tokens(data: tuple[Path, ...], more: tuple[Path, ...], as_json: bool) -> None:
    """The token estimate against the exact vocabulary (extra tokens)."""
    _print(measure_tokens(_given(data, more)), as_json=as_json)


@evals.command()
@_several
@_more
@click.option("--rules", default="ours", show_default=True, help=f"Of {', '.join(RULES)}, or all.")
@click.option("--listed", is_flag=True, help="The sessions of the kept list alone; every one must be there.")
@click.option("--min-calls", default=1, show_default=True, type=click.IntRange(1), help="Leave out shorter sessions.")
@click.option("--rows", is_flag=True, help="Print rows of the kept table and nothing else.")
@_json
def agents(
    data: tuple[Path, ...],
    more: tuple[Path, ...],
    rules: str,
    listed: bool,
    min_calls: int,
    rows: bool,
    as_json: bool,
) -> None:
    """Recorded agent sessions under the planner's rules."""
    figures = measure_agents(
        _given(data, more),
        RULES if rules == "all" else _names(rules),
        session_ids=listed_sessions() if listed else (),
        min_calls=min_calls,
    )
    if rows:
        for row in regression_rows(figures):
            click.echo(row)
        return
    _print(
        figures if as_json else {name: value for name, value in figures.items() if name != "by_session"},
        as_json=as_json,
    )


@evals.command()
@_several
@_more
@click.option(
    "--prices", default="anthropic-5m", show_default=True, help=f"Of {', '.join(PRICES)}, or all: each but local."
)
@click.option(
    "--targets",
    default=",".join(map(str, DEFAULT_TARGETS)),
    show_default=True,
    help="Shares of faulting calls to steer to, a row each.",
)
@click.option(
    "--min-calls", default=1, show_default=True, type=click.IntRange(1), help="Leave out shorter sessions or chains."
)
@click.option(
    "--resident-tokens",
    default="8000",
    show_default=True,
    help="System text and tools in every prompt: a number, or logged.",
)
@click.option(
    "--gaps",
    default="none",
    show_default=True,
    type=click.Choice(["real", "none"]),
    help="Let the cache go cold in real gaps between calls.",
)
@click.option("--chain", "chain_calls", default=0, type=click.IntRange(0), help="Join sessions to chains of N calls.")
@click.option("--half", type=click.IntRange(0, 1), help="The sessions of one half alone, by a checksum of their ids.")
@click.option("--markdown", is_flag=True, help="Print the tables of a document.")
@_json
def curve(
    data: tuple[Path, ...],
    more: tuple[Path, ...],
    prices: str,
    targets: str,
    resident_tokens: str,
    gaps: str,
    markdown: bool,
    as_json: bool,
    **numbers: Any,
) -> None:
    """How much cheaper agent sessions are at each share of faults."""
    settings = CurveSettings(
        prices=CURVE_PRICES if prices == "all" else tuple(_names(prices)),
        targets=tuple(_number("--targets", one, float) for one in _names(targets)),
        resident_tokens=None if resident_tokens == "logged" else _number("--resident-tokens", resident_tokens, int),
        uses_gaps=gaps == "real",
        **numbers,
    )
    with _progress("curve", wanted=not as_json) as on_call:
        figures = measure_curve(_given(data, more), settings, on_call=on_call)
    if as_json:
        _print(figures, as_json=True)
        return
    for line in curve_lines(figures, is_markdown=markdown):
        click.echo(line)


def _number(option: str, value: str, kind: Callable[[str], _Number]) -> _Number:
    try:
        return kind(value)
    except ValueError:
        raise click.UsageError(f"{option}: {value!a} is no number") from None


@contextmanager
def _progress(label: str, *, wanted: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar of plain characters on standard error; none where that is no terminal."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=1, label=label, file=sys.stderr, fill_char="#", empty_char=".") as bar:

        def show(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield show


def _given(data: Sequence[Path], more: Sequence[Path]) -> list[Path]:
    if not data and not more:
        raise click.UsageError("name at least one file with --data")
    return [*data, *more]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; our errors become one line on standard error and exit code 2."""
    try:
        evals(args=None if arguments is None else list(arguments), prog_name="context_gatekeeper.evals")
    except GatekeeperError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
