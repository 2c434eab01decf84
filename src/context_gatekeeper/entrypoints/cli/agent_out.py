"""``cgk expand`` and ``cgk recall``: pages back out of the pool."""

from __future__ import annotations

import os
import sys
from time import time

from context_gatekeeper.agent_pool import MOST_RECALLED_PAGES, Expansion
from context_gatekeeper.entrypoints.cli.agent_store import open_pool, range_of, session_for, session_named
from context_gatekeeper.entrypoints.cli.face import Face
from context_gatekeeper.entrypoints.cli.terminal import (
    OutputClosedError,
    OutputFailedError,
    Tint,
    one_line,
    printable,
    say,
)

__all__ = ["run_expand", "run_recall"]


def run_expand(
    face: Face,
    handle: str,
    *,
    store: str | None,
    session: str | None,
    lines: str | None,
    chars: str | None,
    pattern: str | None,
    regex: bool,
    as_file: bool,
) -> None:
    """What a handle stands for: byte for byte into a pipe or file, made printable on a terminal."""
    with open_pool(face, store) as pool:
        expansion = pool.expand(
            handle,
            session=session_for(pool, handle, session),
            lines=range_of("--lines", lines),
            characters=range_of("--chars", chars),
            pattern=pattern,
            regex=regex,
            as_file=as_file,
        )
    if face.as_json:
        face.print_json(_expansion_json(expansion))
    elif as_file:
        say(expansion.file)
    elif pattern is not None:
        _show_slices(face, expansion)
    elif sys.stdout.isatty():
        say(printable(expansion.text), is_piece=expansion.text.endswith("\n"))
    else:
        _write(expansion.text)


def _expansion_json(expansion: Expansion) -> dict[str, object]:
    """JSON-ready form of an expansion."""
    return {
        "handle": expansion.handle,
        "page": expansion.page,
        "session": expansion.session,
        "kind": expansion.kind.value,
        "provenance": expansion.provenance.value if expansion.provenance else "",
        "tool": expansion.tool,
        "path": expansion.path,
        "text": expansion.text,
        "slices": [
            {"first_line": one.first_line, "last_line": one.last_line, "text": one.text} for one in expansion.slices
        ],
        "blocks": [{"handle": handle, "text": text} for handle, text in expansion.blocks],
        "secrets_joined": expansion.secrets_joined,
        "file": expansion.file,
    }


def _show_slices(face: Face, expansion: Expansion) -> None:
    for one in expansion.slices:
        place = (
            f"line {one.first_line}" if one.first_line == one.last_line else f"lines {one.first_line}-{one.last_line}"
        )
        say(face.paint(f"[{place}]", Tint.DEBUG))
        say(printable(one.text), is_piece=one.text.endswith("\n"))
    if not expansion.slices:
        face.note("note: the pattern occurs nowhere in it")


def _write(text: str) -> None:
    """The original's bytes, nothing added."""
    try:
        sys.stdout.flush()
        content = memoryview(text.encode("utf-8", "surrogatepass"))
        while content:
            content = content[os.write(sys.stdout.fileno(), content) :]
    except BrokenPipeError:
        raise OutputClosedError from None
    except OSError as error:
        raise OutputFailedError(
            "standard output", f"it cannot be written to ({error.strerror})", "free space or send it elsewhere"
        ) from error


def run_recall(face: Face, query: str, *, store: str | None, session: str | None, limit: int) -> None:
    """The best pages for a query, as the one block of quoted data that an agent is given; the rest as a list."""
    with open_pool(face, store) as pool:
        named = None if session is None else session_named(pool, session)
        result = pool.recall(query, session=named, limit=limit, now=time())
    if face.as_json:
        face.print_json({"query": query, "pages": [page.to_dict() for page in result.pages], "text": result.text})
    elif result.pages:
        say(printable(result.text))
        for page in result.pages[MOST_RECALLED_PAGES:]:
            item = page.item
            told = (item.handle, item.kind.value, one_line(item.path or item.tool), f"session {one_line(item.session)}")
            face.note(f"also: {', '.join(filter(None, told))}")
    else:
        face.note("note: nothing was found")
