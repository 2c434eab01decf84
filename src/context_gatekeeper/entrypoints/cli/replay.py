"""``cgk replay``: what real agent sessions would have cost under each policy, and what would have been missed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from context_gatekeeper.core.economics import PRICES, PRICES_AS_OF
from context_gatekeeper.entrypoints.cli.face import Face
from context_gatekeeper.entrypoints.cli.terminal import Tint, one_line, pipe_table
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.replay.report import ReplayReport, ReplaySettings, replay_files
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentSession

__all__ = ["REPLAY_OPTIONS", "replay_lines", "run_replay"]

_HEADER = ("policy", "times cheaper", "mean prompt", "faulting calls", "coverage", "extra calls", "worst session")

REPLAY_OPTIONS = (
    click.option("--html", type=click.Path(dir_okay=False), help="Also write one self-contained page to this file."),
    click.option("--chain", "chain_calls", type=int, default=0, help="Join sessions of a file to chains of N calls."),
    click.option("--min-calls", type=int, default=1, help="Leave out sessions with fewer model calls."),
    click.option("--gaps", type=click.Choice(["real", "none"]), default="none", help="Let the cache go cold in real gaps."),
    click.option("--fault-target", type=float, help="Share of faulting calls that our policies steer to."),
    click.option("--fault-price", type=float, help="Worth of a page fault in units of its own bill; fixes the knob."),
    click.option("--resident-tokens", default="8000", help="System text and tools in every prompt, or `logged`.  [default: 8000]"),
    click.option("--prices", default="anthropic-5m", help=f"Price profile: {', '.join(PRICES)}.  [default: anthropic-5m]"),
    click.option("--policy", "policies", help="Policies by name, with commas, or `all`.  [default: the main ones]"),
    click.argument("files", nargs=-1, required=True),
)


def run_replay(face: Face, files: Sequence[str], **options: Any) -> None:
    """Replay the files and print the comparison."""
    settings = _settings(**{name: value for name, value in options.items() if name != "html"})
    listed = [_read(face, file) for file in files]
    with _progress(face) as on_session:
        report = replay_files(listed, settings, on_session=on_session)
    if options.get("html"):
        from context_gatekeeper.replay.page import write_page  # noqa: PLC0415

        write_page(report, Path(options["html"]))
    if face.as_json:
        face.print_json(report.to_dict())
    else:
        face.print_lines(replay_lines(report, face))


def replay_lines(report: ReplayReport, face: Face) -> list[str]:
    """The comparison as a table, with what it was billed by."""
    result = report.to_dict()
    settings = report.settings
    resident = "as logged" if settings.resident_tokens is None else f"{settings.resident_tokens} tokens"
    title = f"{result['sessions']} sessions, {result['calls']} model calls; prices {settings.prices}, resident part {resident}"
    rows = [
        (
            name,
            _times(figures["billed_vs_append_only"]),
            f"{figures['mean_prompt_tokens']:,.0f}",
            _percent(figures["faulting_call_share"]),
            _percent(figures["evidence_coverage"]),
            figures["extra_calls"],
            f"{_times(figures['worst_session']['billed_vs_append_only'])}, {_percent(figures['worst_session']['faulting_call_share'])}",
        )
        for name, figures in result["policies"].items()
    ]
    return [
        face.paint(title, Tint.HIGHLIGHT),
        "",
        *pipe_table(_HEADER, rows, right="lrrrrrr"),
        "",
        f"Faults are charged. Prices are ratios as of {PRICES_AS_OF}; append-only sends everything with a perfect cache.",
        f"Handles that gave the original bytes: {_percent(result['expand_exact'])}; prefix breaks outside epochs: "
        f"{result['prefix_breaks_outside_epochs']}; card entries not verbatim: {result['unverifiable_card_entries']}",
    ]


def _settings(*, policies: str | None, resident_tokens: str, gaps: str, **numbers: Any) -> ReplaySettings:
    named = {} if policies is None else {"policies": tuple(name.strip() for name in policies.split(",") if name.strip())}
    if resident_tokens == "logged":
        resident = None
    elif resident_tokens.isdecimal():
        resident = int(resident_tokens)
    else:
        raise ConfigError(
            f"--resident-tokens {resident_tokens!a}", "it is no number of tokens", "pass a whole number, or logged"
        )
    return ReplaySettings(resident_tokens=resident, uses_gaps=gaps == "real", **named, **numbers)


def _read(face: Face, file: str) -> list[AgentSession]:
    sessions = read_sessions(file)
    for session in sessions:
        for warning in session.warnings:
            face.note(f"{file}: {one_line(warning)}")
    return sessions


@contextmanager
def _progress(face: Face) -> Iterator[Any]:
    """A progress bar on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty() or face.as_json:
        yield lambda done, total: None
        return
    columns = (TextColumn("replay"), BarColumn(), TextColumn("{task.completed}/{task.total} sessions"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task: TaskID = bar.add_task("replay", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}x"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f}%"
