"""What the hook showed in the place of a result becomes the result again, before a session's log goes into the pool.

The log of a client holds what its model saw: of a slimmed result the view, which names the file of the original. The
file's text takes the view's place only when the file is one of ours and the view is, character for character, what we
make of that text and call: so no log, whoever wrote it, can have other files read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from context_gatekeeper.entrypoints.hooks.page_files import kept_page
from context_gatekeeper.entrypoints.hooks.tool_output import view_of
from context_gatekeeper.types import AgentSession, BlockKind, ContentBlock

__all__ = ["with_originals"]

_BEFORE_PATH, _PATH_END, _BEHIND_PATH = "; whole text: ", ".txt", "]"
"""Around the handle, at the end of a head view, and how our paths end."""
_MOST_PATH_CHARS = 4096


def with_originals(session: AgentSession, folder: str) -> AgentSession:
    """The session with the texts of our files in the place of their views; the same object where there are none.

    Args:
        session: as read from a log.
        folder: of `pages_folder`.

    O(the session's text); files are read for texts that name one.
    """
    mark = f"{_BEFORE_PATH}{folder}"
    if not any(mark in block.text for message in session.messages for block in message.blocks):
        return session
    calls = {
        block.call_id: block
        for message in session.messages
        for block in message.blocks
        if block.kind is BlockKind.TOOL_CALL
    }
    messages = tuple(
        replace(message, blocks=tuple(_original(block, calls, mark, folder) for block in message.blocks))
        for message in session.messages
    )
    return replace(session, messages=messages)


def _original(block: ContentBlock, calls: dict[str, ContentBlock], mark: str, folder: str) -> ContentBlock:
    call = calls.get(block.call_id)
    if block.kind is not BlockKind.TOOL_RESULT or call is None or mark not in block.text:
        return block
    pieces: list[str] = []
    place = 0
    shown: dict[str, tuple[str, str] | None] = {}
    for path, end in _named(block.text, mark):
        if path not in shown:
            shown[path] = _original_and_view(path, call, folder)
        found = shown[path]
        start = None if found is None else _start_of(block.text, found[1], place, end)
        if found is not None and start is not None:
            pieces += (block.text[place:start], found[0])
            place = end
    return replace(block, text="".join((*pieces, block.text[place:]))) if pieces else block


def _original_and_view(path: str, call: ContentBlock, folder: str) -> tuple[str, str] | None:
    """The text of a file of ours and what is shown in its place for a call."""
    original = kept_page(path, folder=folder)
    view = None if original is None else view_of(original, path, call.name, _arguments(call))
    return None if original is None or view is None else (original, view)


def _named(text: str, mark: str) -> Iterator[tuple[str, int]]:
    """Paths that stand where a view ends, and the place behind each."""
    place = text.find(mark)
    while place >= 0:
        start = place + len(_BEFORE_PATH)
        end = text.find(_PATH_END + _BEHIND_PATH, start, start + _MOST_PATH_CHARS)
        if end >= 0:
            end += len(_PATH_END)
            yield text[start:end], end + len(_BEHIND_PATH)
        place = text.find(mark, start)


def _start_of(text: str, view: str, place: int, end: int) -> int | None:
    """Where a view that ends at ``end`` begins, at ``place`` or behind it; None when it is not there.

    Claude Code takes blank lines away in front of what a command printed.
    """
    lead = len(view) - len(view.lstrip())
    for shown in (view, view[view.rfind("\n", 0, lead) + 1 :]):
        start = end - len(shown)
        if start >= place and text.startswith(shown, start):
            return start
    return None


def _arguments(call: ContentBlock) -> object:
    try:
        return json.loads(call.text)
    except ValueError:
        return None
