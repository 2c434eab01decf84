"""``cgk pages``, ``cgk cards``, ``cgk inspect`` and ``cgk stats``: what the pool holds of agents' sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from context_gatekeeper.agent_pool import AgentPool, ContextPlan, PageView, SessionTotals
from context_gatekeeper.entrypoints.cli.agent_store import counted, open_pool, session_named
from context_gatekeeper.entrypoints.cli.face import Face
from context_gatekeeper.entrypoints.cli.terminal import (
    Tint,
    clipped,
    facts,
    fitted_table,
    one_line,
    pipe_table,
    printable,
    say,
)
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.types import PageKind

__all__ = ["INSPECT_SECTIONS", "run_cards", "run_inspect", "run_pages", "run_stats"]

Section = tuple[str, Any, list[str]]
"""Name, JSON-ready value, and lines of one part of `inspect`."""
_TEXT_COLUMNS = 48
_PATH_COLUMNS = 40
_PAGE_LEAST = {"tool or file": 14, "begins with": 12}
"""Columns that cells of `cgk pages` keep on a narrow terminal."""
_LEAST_CARD_TOKENS = 40


def run_pages(face: Face, session: str, store: str | None, kind: str | None) -> None:
    """Every page of a session that holds something, a row each."""
    with open_pool(face, store) as pool:
        name = session_named(pool, session)
        own = pool.card_pages(name) if kind == PageKind.CARD else pool.pages(name)
        pages = [page for page in own if kind is None or page.kind == kind]
    if face.as_json:
        face.print_json({"session": name, "pages": [page.to_dict() for page in pages]})
        return
    rows = [
        (
            page.blocks or "-",
            page.kind,
            page.provenance or "-",
            _subject(page),
            page.tokens,
            page.handle,
            _marks(page),
            clipped(page.head, _TEXT_COLUMNS),
        )
        for page in pages
    ]
    header = ("blocks", "kind", "from", "tool or file", "tokens", "handle", "marks", "begins with")
    drops = ("from", "begins with", "marks")
    table = fitted_table(header, rows, right="llllrlll", gives=_PAGE_LEAST, drops=drops, ends=("tool or file",))
    face.print_lines([face.paint(one_line(name), Tint.HIGHLIGHT), "", *table])


def _subject(page: PageView) -> str:
    path = page.path
    if len(path) > _PATH_COLUMNS:
        path = f"...{path[-_PATH_COLUMNS + 3 :]}"
    return path or page.tool or "-"


def _marks(page: PageView) -> str:
    marks = (
        ("deleted", page.is_deleted),
        ("superseded", bool(page.superseded_by)),
        ("changed since", bool(page.changed_by) and not page.superseded_by),
        ("error", page.is_error),
    )
    return ", ".join(mark for mark, is_set in marks if is_set)


def run_cards(face: Face, session: str, store: str | None, max_tokens: int) -> None:
    """The memory cards of a session's tasks."""
    if max_tokens < _LEAST_CARD_TOKENS:
        raise ConfigError(f"--tokens {max_tokens}", "it is no room for a card", f"give {_LEAST_CARD_TOKENS} or more")
    with open_pool(face, store) as pool:
        name = session_named(pool, session)
        cards = pool.cards(name)
        whole = pool.session_card(name) if len(cards) > 1 else None
    if face.as_json:
        told = None if whole is None else whole.to_dict()
        face.print_json({"session": name, "cards": [card.to_dict() for card in cards], "session_card": told})
        return
    for card in (*cards, *([] if whole is None else [whole])):
        about = f"{card.task_id} {card.label}" if card.task_id else "all tasks"
        title = f"=== {one_line(about)} ({' '.join(filter(None, (card.stretch, card.handle)))}) ==="
        face.print_lines([face.paint(title, Tint.HIGHLIGHT), printable(card.render(max_tokens)), ""])
    say(
        face.paint(
            f"{one_line(name)}: {counted(len(cards), 'card')}; cgk expand p12 --session NAME shows a block", Tint.DEBUG
        )
    )


# -- inspect ------------------------------------------------------------------------------------


def run_inspect(face: Face, session: str | None, store: str | None, *, prices: str, resident_tokens: int) -> None:
    """The sessions of the pool, or what one of them holds, part by part (`INSPECT_SECTIONS`), and its next plan."""
    with open_pool(face, store) as pool:
        if session is None:
            _show_sessions(face, pool)
            return
        name = session_named(pool, session)
        plan = pool.plan(name, prices=prices, resident_tokens=resident_tokens)
        sections = [*(section(pool, name, face) for section in INSPECT_SECTIONS), _plan(plan, face)]
    if face.as_json:
        face.print_json({"session": name, **{title: value for title, value, _ in sections}})
        return
    face.print_lines([face.paint(one_line(name), Tint.HIGHLIGHT)])
    for _, _, lines in sections:
        if lines:
            face.print_lines(["", *lines])


def _show_sessions(face: Face, pool: AgentPool) -> None:
    sessions = pool.sessions()
    if face.as_json:
        face.print_json({"sessions": [info.to_dict() for info in sessions]})
        return
    rows = [(info.name, info.source, info.pages, info.working_folder or "-") for info in sessions]
    least = {"session": 24, "folder": 12}
    header = ("session", "format", "pages", "folder")
    table = fitted_table(header, rows, right="llrl", gives=least, drops=("folder",), ends=("folder",))
    face.print_lines([*table, ""])
    say(face.paint(counted(len(sessions), "session"), Tint.ACCENT))


def _totals(pool: AgentPool, name: str, _face: Face) -> Section:
    totals = pool.totals(name)
    return "totals", totals.to_dict(), _total_lines(totals)


def _total_lines(totals: SessionTotals) -> list[str]:
    kinds = [(kind, count, totals.kind_tokens[kind]) for kind, count in totals.kinds.most_common()]
    told = {
        "pages": f"{totals.pages} with {totals.blocks} blocks, {totals.tokens} tokens, {totals.chars} characters",
        "superseded": f"{totals.superseded} by a newer version of the file",
        "changed since": f"{totals.changed} whose file was edited after they were read or written",
        "failed": f"{totals.errors} results that their tools marked",
        "deleted": str(totals.deleted),
    }
    return [*facts(told), "", *pipe_table(("kind", "pages", "tokens"), kinds, right="lrr")]


def _files(pool: AgentPool, name: str, face: Face) -> Section:
    """The newest version of each file, with how many there are."""
    versions: dict[str, list[PageView]] = {}
    for page in pool.pages(name):
        if page.path:
            versions.setdefault(page.path, []).append(page)
    newest = {path: pages[-1] for path, pages in versions.items()}
    value = [
        {"path": path, "versions": len(versions[path]), "newest": page.handle, "marks": _marks(page)}
        for path, page in newest.items()
    ]
    rows = [(path, len(versions[path]), page.blocks, page.handle, _marks(page)) for path, page in newest.items()]
    header = ("file", "versions", "newest", "handle", "marks")
    gives, drops = {"file": 16}, ("marks", "versions")
    lines = fitted_table(header, rows, right="lrlll", gives=gives, drops=drops, ends=("file",)) if rows else []
    return "files", value, [face.paint("files that were read or written", Tint.DEBUG), *lines] if lines else []


def _tasks(pool: AgentPool, name: str, face: Face) -> Section:
    cards = pool.cards(name)
    rows = [(card.task_id, card.stretch, len(card.card.entries), card.label) for card in cards]
    value = [
        {
            "task_id": card.task_id,
            "stretch": card.stretch,
            "label": card.label,
            "goal_ids": list(card.goal_ids),
            "handle": card.handle,
        }
        for card in cards
    ]
    header = ("task", "blocks", "card entries", "about")
    lines = fitted_table(header, rows, right="llrl", gives={"about": 12})
    return "tasks", value, [face.paint("tasks", Tint.DEBUG), *lines]


def _plan(plan: ContextPlan, face: Face) -> Section:
    """What the session's next request would hold, and why."""
    lines = [one_line(line) for line in plan.lines(most_entries=12, most_departures=6)]
    return "plan", plan.to_dict(), [face.paint("plan of the next request", Tint.DEBUG), *lines]


INSPECT_SECTIONS: Sequence[Callable[[AgentPool, str, Face], Section]] = (_totals, _files, _tasks)
"""Parts of ``cgk inspect SESSION`` in order, in front of the plan."""


# -- the whole pool -----------------------------------------------------------------------------


def run_stats(face: Face, store: str | None) -> None:
    """How all sessions add up."""
    with open_pool(face, store) as pool:
        stats = pool.stats()
    if face.as_json:
        face.print_json(stats.to_dict())
        return
    size = "-" if stats.store_bytes is None else f"{stats.store_bytes} bytes"
    share = (
        f" ({stats.store_bytes / stats.totals.chars:.2f} a character)"
        if stats.store_bytes and stats.totals.chars
        else ""
    )
    head = {
        "sessions": str(stats.sessions),
        "store": f"{size}{share}",
        "always sent": f"{stats.goals} goals, {stats.pins} pins, {stats.resident_tokens} tokens",
    }
    face.print_lines([*facts(head), "", *_total_lines(stats.totals)])
