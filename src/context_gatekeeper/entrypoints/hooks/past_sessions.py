"""What hooks give an agent of earlier sessions of its folder: pages for a prompt, a card at a session's start.

Only what a person or an assistant said crosses from one session to another, and for a prompt the files that were
read: never what came from tools or the web (threats T5 and T6). The pool is opened only when its file exists.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from time import monotonic, time
from typing import NamedTuple

from context_gatekeeper.agent_pool import AgentPool, RecalledPage, SessionInfo
from context_gatekeeper.config import default_store
from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.card_records import CardEntry, CardField, OpenItemFacts, SaidFacts
from context_gatekeeper.core.recalled_text import SESSION_HEAD, RecalledItem, render_recalled
from context_gatekeeper.core.weights import base_weight
from context_gatekeeper.entrypoints.hooks.events import HookEvent, is_same_folder
from context_gatekeeper.entrypoints.hooks.settings import hook_config
from context_gatekeeper.errors import GatekeeperError
from context_gatekeeper.types import PageKind, Provenance

__all__ = ["card_for", "pages_for", "recalled_contexts"]

_MOST_SESSIONS = 8
"""The newest of the folder that a prompt is looked up in: each costs the time of its index."""
_MOST_CARDED = 4
"""The newest of the folder whose times are compared: each costs the reading of its pages."""
_MOST_PAGES = 5
_SEARCHING_SHARE = 0.7
"""Of the time that is left."""
_FENCE_BYTES = 8
_LEAST_SHARE = 0.5
"""Of the weight of the prompt's words that a page holds."""
_LEAST_SHARED_WEIGHT, _LEAST_NAMED_WEIGHT = 0.9, 2.0
"""Of what a page shares with a prompt, beside half of all or beside a name; a word that is rare at large weighs 1."""
_NAME_MARKS = frozenset("_./\\0123456789")
"""A shared term with one of these is a name: a path, an identifier, a version."""
_MOST_CONTEXT_CHARS = 8000
_MOST_CARD_CHARS = 1500
_MOST_LINE_CHARS = 240
_FRESH_SECONDS = 12 * 3600
_SPOKEN = frozenset((Provenance.USER, Provenance.ASSISTANT))
_CROSSING = _SPOKEN | {Provenance.FILE}
_GOING_ON = frozenset(("resume", "compact", "fork"))
_CARD_ORDER = (CardField.GOAL, CardField.CONSTRAINT, CardField.DECISION, CardField.OPEN_ITEM, CardField.VALUE)
"""What a session's card says of itself."""


def _open(folder: str) -> AgentPool | None:
    """The user's pool; None when there is none yet."""
    config = hook_config(folder)
    path = Path((config.store or str(default_store())).removeprefix("sqlite:"))
    if not path.is_file():
        return None
    return AgentPool(path, redaction=config.redaction, sealed_folder=config.sealed_folder)


# -- pages for a prompt -----------------------------------------------------------------------


def pages_for(event: HookEvent, folder: str) -> str:
    """A fenced block of the pages of earlier sessions that tell of a prompt; "" when none surely does.

    Args:
        event: of ``UserPromptSubmit``.
        folder: where settings are looked for, `data_folder`.

    Raises:
        GatekeeperError: the pool cannot be read.
    """
    pool = _open(folder)
    if pool is None:
        return ""
    with pool:
        until = _alarm_time()
        told = ""
        for context in recalled_contexts(pool, event.text("prompt"), event.folder, event.session):
            told = context
            if monotonic() >= until:
                break
        return told


def _alarm_time() -> float:
    """When to look no further, so that there is time to answer before the hook's alarm ends it; never without one."""
    import signal

    left = signal.getitimer(signal.ITIMER_REAL)[0] if hasattr(signal, "getitimer") else 0.0
    return monotonic() + _SEARCHING_SHARE * left if left else inf


def recalled_contexts(pool: AgentPool, prompt: str, folder: str, session: str) -> Iterator[str]:
    """The same of a pool that is open, as it is known after each session, the newest of which is looked into first.

    Args:
        pool: the user's.
        prompt: what the user asks.
        folder: that the client works in.
        session: the client's name of the session that asks: it is not told of itself.

    Raises:
        GatekeeperError: the pool cannot be read.
    """
    weights = {term: base_weight(term) for term in scan_anchors(prompt).counts}
    strong: list[tuple[float, RecalledPage]] = []
    others = [one for one in _sessions_of(pool, folder) if one.log_id != session][-_MOST_SESSIONS:]
    for one in reversed(others):
        for page in pool.recall(prompt, session=one.name, now=time()).pages:
            is_other = _may_cross(page) and page.item.text.strip() != prompt.strip()
            if is_other and (told := _strength(page, weights)) > 0.0:
                strong.append((told, page))
        strong.sort(key=lambda one: (-one[0], -(one[1].time or 0.0), one[1].item.handle))
        yield _fenced([page.item for _, page in strong[:_MOST_PAGES]], _MOST_CONTEXT_CHARS)


def _sessions_of(pool: AgentPool, folder: str) -> list[SessionInfo]:
    """Those that worked in the folder, the last that came in last."""
    return [one for one in pool.sessions() if is_same_folder(one.working_folder, folder)]


def _may_cross(page: RecalledPage) -> bool:
    item = page.item
    is_outdated = bool(item.superseded_by or item.changed_by)
    return item.kind is not PageKind.CARD and item.provenance in _CROSSING and not is_outdated


def _strength(page: RecalledPage, weights: dict[str, float]) -> float:
    """Share of the prompt's weight that the page's lines hold; 0.0 when that is no strong evidence.

    Strong is half of what the prompt weighs, or a name with other words that are rare.
    """
    held = scan_anchors(page.item.text).counts
    shared = [term for term in weights if term in held]
    whole = sum(weights.values())
    told = sum(weights[term] for term in shared)
    is_half = told >= max(_LEAST_SHARED_WEIGHT, _LEAST_SHARE * whole)
    is_named = told >= _LEAST_NAMED_WEIGHT and any(not _NAME_MARKS.isdisjoint(term) for term in shared)
    return told / whole if is_half or is_named else 0.0


def _fenced(items: Sequence[RecalledItem], most_chars: int) -> str:
    """The block of as many of the items, the best first, as have room."""
    for count in range(len(items), 0, -1):
        block = render_recalled(items[:count], secrets.token_hex(_FENCE_BYTES))
        if len(block) <= most_chars:
            return block
    return ""


# -- the card at a start ----------------------------------------------------------------------


class _Recent(NamedTuple):
    """A session and when something was said in it last."""

    info: SessionInfo
    time: float


def card_for(event: HookEvent, folder: str) -> str:
    """A fenced card of the newest session of the folder; "" when there is none to be told of.

    A session that goes on is told of itself. A new one is told only of what is younger than 12 hours.

    Args:
        event: of ``SessionStart``.
        folder: as of `pages_for`.

    Raises:
        GatekeeperError: the pool cannot be read.
    """
    pool = _open(folder)
    if pool is None:
        return ""
    with pool:
        newest = _newest(pool, event)
        if newest is None or (event.text("source") == "startup" and time() - newest.time > _FRESH_SECONDS):
            return ""
        return _card_text(pool, newest.info.name)


def _newest(pool: AgentPool, event: HookEvent) -> _Recent | None:
    known = _sessions_of(pool, event.folder)
    if event.text("source") in _GOING_ON:
        own = [one for one in known if one.log_id == event.session]
        known = own or known
    recent = [_Recent(one, _last_time(pool, one.name)) for one in known[-_MOST_CARDED:]]
    return max(recent, key=lambda one: one.time, default=None)


def _last_time(pool: AgentPool, name: str) -> float:
    return max((page.time for page in pool.pages(name) if page.time is not None), default=0.0)


def _card_text(pool: AgentPool, name: str) -> str:
    card = pool.session_card(name)
    if card is None:
        return ""
    lines: list[str] = []
    block = ""
    fence = secrets.token_hex(_FENCE_BYTES)
    for line in _said_lines(pool, name, [entry for kind in _CARD_ORDER for entry in reversed(card.card.of(kind))]):
        item = RecalledItem(card.stretch, PageKind.CARD, Provenance.DERIVED, name, "\n".join((*lines, line)))
        wider = render_recalled([item], fence, head=SESSION_HEAD)
        if len(wider) <= _MOST_CARD_CHARS:
            lines.append(line)
            block = wider
    return block


def _said_lines(pool: AgentPool, name: str, entries: Sequence[CardEntry]) -> Iterator[str]:
    """The entries that a person or an assistant said, one line each, with who said it."""
    for entry in entries:
        if not isinstance(entry.facts, SaidFacts | OpenItemFacts) or len(entry.text) > _MOST_LINE_CHARS:
            continue
        channel = _channel(pool, name, entry)
        if channel in _SPOKEN:
            yield f"{entry.field.value} ({channel}): {' '.join(entry.text.split())}"


def _channel(pool: AgentPool, name: str, entry: CardEntry) -> Provenance | None:
    """Of the page that holds what the entry quotes; a goal that was pinned is the user's own."""
    if entry.page_id < 0:
        return Provenance.USER
    try:
        return pool.expand(f"p{entry.page_id}", session=name, joins_secrets=False).provenance
    except GatekeeperError:
        return None
