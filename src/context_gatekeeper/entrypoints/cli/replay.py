"""``cgk replay``: what real agent sessions would have cost under each policy, and what would have been missed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from context_gatekeeper.entrypoints.cli.face import Face
from context_gatekeeper.entrypoints.cli.progress import progress_bar
from context_gatekeeper.entrypoints.cli.replay_view import LONGEST, NO_PLOT, plot_lines, replay_lines
from context_gatekeeper.entrypoints.cli.session_files import SessionFiles
from context_gatekeeper.entrypoints.cli.terminal import one_line
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.replay.page import check_page_place, write_page
from context_gatekeeper.replay.report import ReplaySettings, replay_files
from context_gatekeeper.types import AgentSession

__all__ = ["run_replay"]

_SHOWN_WARNINGS = 5
"""Of one file; --verbose shows all."""
_MOST_DIGITS = 9
"""Of --resident-tokens."""


def run_replay(face: Face, files: Sequence[str], *, html: str | None, plot: str, **options: Any) -> None:
    """Replay the files and print the comparison; the page comes last, so that no replay is lost by it.

    Raises:
        ConfigError: a file, setting or session id that cannot be used, or a page that cannot be written.
    """
    settings = _settings(**options)
    page = None if html is None else Path(html)
    if page is not None:
        check_page_place(page, [Path(file) for file in files])
    source = SessionFiles(face, files)
    listed = [_warned(face, file, sessions) for file, sessions in source]
    if not settings.chain_calls:
        _check_plotted(plot, listed)
    with progress_bar("replay", "calls", wanted=not face.as_json) as on_call:
        report = replay_files(listed, settings, on_call=on_call)
    if face.as_json:
        face.print_json({**report.to_dict(), "skipped": source.skipped})
    else:
        plot_of = plot_lines(report, face, plot)
        face.print_lines([*replay_lines(report, face), *plot_of])
    if page is not None:
        write_page(report, page)
        if not face.as_json:
            face.print_lines(["", f"page: {one_line(str(page))}"])


def _check_plotted(plot: str, listed: Sequence[Sequence[AgentSession]]) -> None:
    """Refuse a session that no file holds before the replay, not after it."""
    if plot not in (LONGEST, NO_PLOT, *(session.session_id for sessions in listed for session in sessions)):
        raise ConfigError(f"--plot {plot!a}", "no file holds a session of this id", "pass its id, longest, or none")


def _settings(*, policies: str | None, resident_tokens: str, gaps: str, **numbers: Any) -> ReplaySettings:
    if policies is not None:
        numbers["policies"] = tuple(name.strip() for name in policies.split(",") if name.strip())
    resident = None
    if resident_tokens != "logged":
        if not (resident_tokens.isascii() and resident_tokens.isdigit() and len(resident_tokens) <= _MOST_DIGITS):
            raise ConfigError(
                f"--resident-tokens {resident_tokens!a}", "it is no number of tokens", "pass a whole number, or logged"
            )
        resident = int(resident_tokens)
    return ReplaySettings(resident_tokens=resident, uses_gaps=gaps == "real", **numbers)


def _warned(face: Face, file: str, sessions: list[AgentSession]) -> list[AgentSession]:
    """The sessions of a file; what is odd or broken in it goes to standard error, each with its place."""
    warnings = [warning for session in sessions for warning in session.warnings]
    shown = warnings if face.is_verbose else warnings[:_SHOWN_WARNINGS]
    for warning in shown:
        face.note(f"{file}: {one_line(warning)}")
    if len(shown) < len(warnings):
        face.note(f"{file}: {len(warnings) - len(shown)} more warnings; --verbose shows all")
    return sessions
