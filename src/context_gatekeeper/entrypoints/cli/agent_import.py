"""``cgk import`` and ``cgk forget``: agents' sessions into the pool, and out of it for good."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import click

from context_gatekeeper.agent_pool import Expansion, ImportResult, SessionInfo
from context_gatekeeper.core.handles import parse_handle
from context_gatekeeper.entrypoints.cli.agent_store import counted, long_work, open_pool, session_named
from context_gatekeeper.entrypoints.cli.face import Face
from context_gatekeeper.entrypoints.cli.session_files import SessionFiles
from context_gatekeeper.entrypoints.cli.terminal import Tint, clipped, columns_for, one_line, pipe_table, say
from context_gatekeeper.entrypoints.hooks.events import AGENT_MARK
from context_gatekeeper.entrypoints.hooks.original_results import with_originals
from context_gatekeeper.entrypoints.hooks.page_files import data_folder, forget_pages, forget_texts, pages_folder
from context_gatekeeper.errors import ConfigError, GatekeeperError
from context_gatekeeper.transcripts.own_output import without_own_output

__all__ = ["run_forget", "run_import"]

_SHOWN_WARNINGS = 3
"""Of one session."""
_NAME_COLUMNS, _BESIDE_NAME = 60, 60


def run_import(face: Face, files: Sequence[str], store: str | None, redaction: str | None, *, dry_run: bool) -> None:
    """Take every session of the files in, file by file; what was taken in before an error stays.

    Where a log holds what our hook showed of a result, the result itself comes in; what we told the agent does not.
    """
    results: list[ImportResult] = []
    error = ""
    source = SessionFiles(face, files)
    kept = pages_folder(data_folder())
    listed = iter(source)
    first = next(listed)  # before a store is made for it
    with open_pool(face, store, makes=not dry_run, dry_run=dry_run, redaction=redaction) as pool:
        try:
            for file, sessions in chain((first,), listed):
                with long_work(face, f"import {one_line(file)}", len(sessions)) as on_session:
                    for session in sessions:
                        said = without_own_output(with_originals(session, kept))
                        results.append(pool.import_session(said, dry_run=dry_run))
                        _show_warnings(face, file, results[-1])
                        on_session()
        except GatekeeperError as failure:
            error = str(failure)
            raise
        finally:
            if face.as_json:
                face.print_json(_told(results, source.skipped, error, dry_run=dry_run))
            elif results:
                face.print_lines(_lines(face, results, dry_run=dry_run))


def _told(results: Sequence[ImportResult], skipped: Sequence[str], error: str, *, dry_run: bool) -> dict[str, Any]:
    """What came in, and why no more did."""
    told = {
        "dry_run": dry_run,
        "added_pages": sum(result.added_pages for result in results),
        "known_pages": sum(result.known_pages for result in results),
        "sessions": [result.to_dict() for result in results],
        "skipped": list(skipped),
    }
    return told | ({"error": error} if error else {})


def _show_warnings(face: Face, file: str, result: ImportResult) -> None:
    shown = result.warnings if face.is_verbose else result.warnings[:_SHOWN_WARNINGS]
    for warning in shown:
        face.note(f"{file}: {one_line(warning)}")
    more = len(result.warnings) - len(shown)
    if more:
        face.note(f"{file}: {more} more warnings; --verbose shows all")


def _lines(face: Face, results: Sequence[ImportResult], *, dry_run: bool) -> list[str]:
    columns = columns_for(_NAME_COLUMNS, beside=_BESIDE_NAME)
    rows = [
        (
            clipped(result.session, columns),
            result.source,
            result.known_pages,
            result.added_pages,
            result.blocks,
            _state(result),
        )
        for result in results
    ]
    added = sum(result.added_pages for result in results)
    redacted = sum(result.redacted_pages for result in results)
    sealed = f", secrets taken out of {redacted}" if redacted else ""
    verb = "would be added" if dry_run else "added"
    return [
        *pipe_table(("session", "format", "known", "added", "blocks", "state"), rows, right="llrrrl"),
        "",
        face.paint(f"{counted(len(results), 'session')}: {counted(added, 'page')} {verb}{sealed}", Tint.ACCENT),
    ]


def _state(result: ImportResult) -> str:
    if result.diverged_from:
        return f"differs from {result.diverged_from} from p{result.diverged_at} on"
    if not result.added_pages:
        return f"unchanged, {result.deleted_pages} deleted" if result.deleted_pages else "unchanged"
    return "grown" if result.known_pages else "new"


# -- forgetting ---------------------------------------------------------------------------------


def run_forget(face: Face, names: Sequence[str], store: str | None, *, is_sure: bool) -> None:
    """Delete sessions with their sub-agents', or pages by their handles, after asking; with them the hook's files."""
    with open_pool(face, store) as pool:
        handles = [name for name in names if parse_handle(name) is not None]
        named = [session_named(pool, name, is_whole=True) for name in names if name not in handles]
        known = {info.name: info for info in pool.sessions()}
        sessions = list(dict.fromkeys((*named, *_agents_of(named, known.values()))))
        # An unknown handle is told before anybody is asked.
        pages = [pool.expand(handle) for handle in dict.fromkeys(handles)]
        count = len(pages) + sum(pool.totals(session).pages for session in sessions)
        what = ", ".join(one_line(name) for name in (*sessions, *handles))
        if not is_sure:
            _ask(f"Delete {counted(count, 'page')} for good ({what})?")
        deleted = pool.forget_pages(handles) if handles else 0
        deleted += sum(map(pool.forget_session, sessions))
    files = _forget_files([known[name].log_id for name in sessions], pages, known)
    if face.as_json:
        face.print_json({"deleted_pages": deleted, "deleted_files": files, "sessions": sessions, "handles": handles})
    else:
        told = counted(deleted, "page") + (f" and {counted(files, 'file')}" if files else "")
        say(face.paint(f"{told} deleted for good: {what}", Tint.ACCENT))


def _agents_of(names: Sequence[str], known: Collection[SessionInfo]) -> Iterator[str]:
    """Sessions of the sub-agents of sessions that go; they stay while another session of the same log does."""
    staying = {info.log_id for info in known if info.name not in names}
    gone = {info.log_id for info in known if info.name in names} - staying
    for info in known:
        if any(info.log_id.startswith(f"{log_id}{AGENT_MARK}") for log_id in gone):
            yield info.name


def _forget_files(log_ids: Sequence[str], pages: Sequence[Expansion], known: Mapping[str, SessionInfo]) -> int:
    """How many files went: those of sessions, and those that held what pages did.

    Raises ConfigError where one cannot be deleted.
    """
    folder = pages_folder(data_folder())
    texts: dict[str, list[str]] = {}
    for page in pages:
        if page.session in known:
            texts.setdefault(known[page.session].log_id, []).append(page.text)
    count = sum(_deleted(name, lambda name: forget_texts(name, texts[name], folder=folder), folder) for name in texts)
    return count + sum(_deleted(name, lambda name: forget_pages(name, folder=folder), folder) for name in log_ids)


def _deleted(session: str, delete: Callable[[str], int], folder: str) -> int:
    try:
        return delete(session)
    except OSError as error:
        step = f"delete what is left of it in {folder}"
        raise ConfigError(f"session {session[:80]!a}", f"its files stay ({error.strerror})", step) from error


def _ask(question: str) -> None:
    """Raises ConfigError unless a person says yes."""
    if not sys.stdin.isatty():
        raise ConfigError("forget", "nobody is there to confirm it", "add --yes")
    if not click.confirm(question, default=False, err=True):
        raise ConfigError("forget", "it was not confirmed", "nothing was deleted")
