"""Command line of the measurements: ``python -m benchmarks --help``."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from benchmarks.gateway import GatewaySettings, measure_gateway
from benchmarks.hook import measure_hook
from benchmarks.hostile import measure_text
from benchmarks.imports import measure_import
from benchmarks.plan import PlanSettings, measure_plan
from benchmarks.rankers import PEERS
from benchmarks.select import SelectSettings, measure_select
from context_gatekeeper.errors import GatekeeperError

__all__ = ["main"]

_ENGINE_FIGURES = ("add_us", "rank_p50_ms", "rank_p99_ms", "rank_quickest_p50_ms", "turn_cycle_ms")
_RATIOS = ("rank_p50", "rank_quickest_p50", "turn_cycle")
_OUR_FIGURES = (
    "add_memory_us",
    "add_sqlite_us",
    "add_sqlite_wall_us",
    "bm25_p50_ms",
    "select_p50_ms",
    "add_turn_p50_ms",
    "rss_mb",
)


@click.group()
def main() -> None:
    """Speed of context-gatekeeper beside its peers. Every command takes --json."""
    logging.getLogger("context_gatekeeper").setLevel(logging.ERROR)  # Long turns warn; here they are meant to be.


@main.command("select")
@click.option("--sizes", default="1000,10000,100000", show_default=True, help="Turns, separated by commas.")
@click.option("--peers", default="", help=f"Of {','.join(PEERS)}; none by default.")
@click.option(
    "--data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON Lines of conversations to splice turns from, instead of made texts.",
)
@click.option("--seed", default=7, show_default=True, help="Of the corpus and the queries.")
@click.option("--queries", default=200, show_default=True, type=click.IntRange(min=10), help="Measured queries.")
@click.option("--facade-max", default=10_000, show_default=True, help="Largest size for the whole select and add_turn.")
@click.option(
    "--seconds-per-peer",
    default=20.0,
    show_default=True,
    help="Slower peers get fewer repetitions; ratios stay paired.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def select_command(
    sizes: str,
    peers: str,
    data: Path | None,
    seed: int,
    queries: int,
    facade_max: int,
    seconds_per_peer: float,
    as_json: bool,
) -> None:
    """Make a turn searchable and rank the top 20, interleaved with the peers."""
    settings = SelectSettings(
        sizes=_numbers(sizes),
        peers=_names(peers),
        data=data,
        seed=seed,
        queries=queries,
        facade_max=facade_max,
        seconds_per_peer=seconds_per_peer,
    )
    result = measure_select(settings, lambda line: click.echo(line, err=True))
    if as_json:
        click.echo(json.dumps(result))
    else:
        _print_sizes(result["sizes"])


@main.command("plan")
@click.option(
    "--tokens",
    default=100_000,
    show_default=True,
    type=click.IntRange(min=1_000),
    help="Of the session, all its messages together.",
)
@click.option(
    "--data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Recorded agent sessions, measured beside the made ones.",
)
@click.option("--sessions", default=4, show_default=True, type=click.IntRange(min=1), help="Made sessions.")
@click.option("--seed", default=7, show_default=True, help="Of the made sessions.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def plan_command(tokens: int, data: Path | None, sessions: int, seed: int, as_json: bool) -> None:
    """One scheduling decision over an agent session: add the new slices, decide what stays."""
    try:
        result = measure_plan(PlanSettings(tokens=tokens, data=data, sessions=sessions, seed=seed))
    except GatekeeperError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        click.echo(json.dumps(result))
        return
    columns = [result, *([result["data"]] if "data" in result else [])]
    names = [name for name in result if name != "data"]
    rows = [[name, *(_number(column[name]) for column in columns)] for name in names]
    _print_table(["figure", "made", "recorded"][: len(columns) + 1], rows)


@main.command("import")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def import_command(as_json: bool) -> None:
    """Import time of the package, median of 15 fresh interpreters."""
    _print_flat(dict(measure_import()), as_json)


@main.command("gateway")
@click.option("--streams", default=1000, show_default=True, type=click.IntRange(min=1), help="Open at once.")
@click.option("--body-kb", default=400, show_default=True, type=click.IntRange(min=1), help="Of each request.")
@click.option("--stream-seconds", default=20.0, show_default=True, help="Length of an answer.")
@click.option("--events-per-second", default=1.0, show_default=True, help="Of each answer.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def gateway_command(as_json: bool, **settings: Any) -> None:
    """What the gateway adds to the first byte of an answer while many streams run, and its memory for each."""
    _print_flat(measure_gateway(GatewaySettings(**settings)), as_json)


@main.command("hook")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def hook_command(as_json: bool) -> None:
    """What `cgk hook` adds to the start of a bare interpreter, median of 15 rounds of fresh processes."""
    _print_flat(measure_hook(), as_json)


@main.command("text")
@click.option("--characters", default=100_000, show_default=True, type=click.IntRange(min=100), help="Of each text.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def text_command(characters: int, as_json: bool) -> None:
    """Hostile texts through add_turn: seconds by kind, growth from half the length."""
    result = measure_text(characters)
    if as_json:
        click.echo(json.dumps(result))
        return
    seconds, growth = result["seconds"], result["growth"]
    assert isinstance(seconds, dict)
    assert isinstance(growth, dict)
    rows = [[name, f"{took:.4f}", growth[name] or "-"] for name, took in sorted(seconds.items(), key=lambda e: -e[1])]
    _print_table(["text", "seconds", "growth"], rows)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 100:
        raise click.BadParameter(
            f"{text!r} is no list of sizes; pass whole numbers from 100 on, as 1000,10000", param_hint="--sizes"
        )
    return numbers


@main.command("through-gateway")
@click.option(
    "--data",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Recorded sessions of agents.",
)
@click.option("--min-calls", default=100, show_default=True, help="Shorter sessions are left out.")
@click.option("--sessions", "most_sessions", type=int, help="Most of them.  [default: all]")
@click.option("--policy", default="ours", show_default=True, help="ours, frugal or careful.")
@click.option("--cards/--no-cards", default=False, show_default=True, help="Whether the gateway adds cards.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def through_gateway_command(
    data: Path, min_calls: int, most_sessions: int | None, policy: str, cards: bool, as_json: bool
) -> None:
    """Send recorded sessions through a running gateway, and compare the provider's bill with the replay's."""
    from benchmarks.through_gateway import ThroughSettings, measure_through_gateway

    with TemporaryDirectory() as folder:
        settings = ThroughSettings(data, min_calls, most_sessions, policy, cards, Path(folder))
        result = measure_through_gateway(settings, lambda line: click.echo(line, err=True))
    rows = {key: value for key, value in result.items() if key != "sessions"}
    _print_flat(result if as_json else rows, as_json)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise click.BadParameter(f"no peer {unknown[0]!r}; pass some of {', '.join(PEERS)}", param_hint="--peers")
    return names


def _print_flat(values: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(values))
    else:
        _print_table(["figure", "value"], [[key, _number(value)] for key, value in values.items()])


def _print_sizes(sizes: dict[str, dict[str, Any]]) -> None:
    head = [
        "engine",
        "add us",
        "rank p50 ms",
        "p99",
        "quickest p50",
        "cycle ms",
        "ours/rank",
        "ours/quickest",
        "ours/cycle",
    ]
    for size, engines in sizes.items():
        click.echo(f"{size} turns")
        ratios = engines["ratio"]
        rows = []
        for name in ("ours", *ratios):
            figures = [engines[name][key] for key in _ENGINE_FIGURES]
            shares = [ratios[name][key] for key in _RATIOS] if name in ratios else [1.0] * len(_RATIOS)
            rows.append([name, *map(_number, figures + shares)])
        _print_table(head, rows)
        _print_table(["ours", "value"], [[key, _number(engines["ours"][key])] for key in _OUR_FIGURES])
        click.echo("")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _print_table(head: list[str], rows: list[list[Any]]) -> None:
    click.echo("| " + " | ".join(head) + " |")
    click.echo("|" + "---|" * len(head))
    for row in rows:
        click.echo("| " + " | ".join(str(cell) for cell in row) + " |")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
