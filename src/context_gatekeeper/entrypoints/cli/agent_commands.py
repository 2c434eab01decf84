"""The commands about agents' sessions, as click knows them; each calls its module.

These modules are imported when their command runs: they need the stores and half of the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from context_gatekeeper.entrypoints.cli.face import Face, face_options, with_face

__all__ = ["AGENT_COMMANDS"]

_STORE_HELP = "SQLite file that keeps the pages.  [default: pages.db in the user's data folder]"
_KINDS = ("turn", "tool", "file", "card", "goal")


def _store_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--store`` of every command about agents' sessions."""
    return click.option("--store", help=_STORE_HELP)(command)


def _session_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option("--session", help=text)


@click.command("import")
@click.option("--redaction", help="What becomes of secrets: keep (sealed apart), drop or off.  [default: keep]")
@click.option("--dry-run", is_flag=True, help="Only say what would come in.")
@face_options
@_store_option
@click.argument("files", nargs=-1, required=True)
@with_face
def import_command(
    face: Face, /, files: tuple[str, ...], store: str | None, redaction: str | None, dry_run: bool
) -> None:
    """Take recorded sessions of agents into the pool; what it holds already is not stored again.

    FILES hold sessions of Claude Code, Codex rollouts, OpenAI or Anthropic message lists, plain or
    gzip-compressed. A session that went on adds what is new; one that differs from what is stored by its
    name becomes a session of its own, NAME~2.
    """
    from context_gatekeeper.entrypoints.cli.agent_import import run_import

    run_import(face, files, store, redaction, dry_run=dry_run)


@click.command()
@click.option("--kind", type=click.Choice(_KINDS), help="Show pages of this kind alone.")
@face_options
@_store_option
@click.argument("session")
@with_face
def pages(face: Face, /, session: str, store: str | None, kind: str | None) -> None:
    """Print the pages of a session with their handles; its cards with --kind card.

    SESSION is its name, or a part of it that no other name holds.
    """
    from context_gatekeeper.entrypoints.cli.agent_views import run_pages

    run_pages(face, session, store, kind)


@click.command()
@click.option("--tokens", "max_tokens", type=int, default=300, help="Most tokens of a card.  [default: 300]")
@face_options
@_store_option
@click.argument("session")
@with_face
def cards(face: Face, /, session: str, store: str | None, max_tokens: int) -> None:
    """Print the memory card of each task of a session, and one over all of them.

    Every entry stands word for word in the block that it cites. Behind a task's card stands the handle of the page
    that keeps it.
    """
    from context_gatekeeper.entrypoints.cli.agent_views import run_cards

    run_cards(face, session, store, max_tokens)


@click.command()
@click.option(
    "--resident-tokens", type=int, default=8000, help="System text and tools of the plan's request.  [default: 8000]"
)
@click.option("--prices", default="anthropic-5m", help="Price profile of the plan.  [default: anthropic-5m]")
@face_options
@_store_option
@click.argument("session", required=False)
@with_face
def inspect(face: Face, /, session: str | None, store: str | None, prices: str, resident_tokens: int) -> None:
    """Print what the pool holds of a session: kinds, tokens, versions of files, tasks.

    Last comes the plan of its next request: what would be in it and why, what left. Without SESSION the sessions are
    listed.
    """
    from context_gatekeeper.entrypoints.cli.agent_views import run_inspect

    run_inspect(face, session, store, prices=prices, resident_tokens=resident_tokens)


@click.command()
@click.option("--file", "as_file", is_flag=True, help="Write it to a private temporary file and print its name.")
@click.option("--regex", is_flag=True, help="The pattern is a regular expression.")
@click.option("--pattern", help="The lines around each place where this text stands.")
@click.option("--chars", help="Characters A-B, from 0, without the last.")
@click.option("--lines", help="Lines A-B, from 1.")
@_session_option("Whose blocks p12 and its like name; not needed for page:..., or with one session.")
@face_options
@_store_option
@click.argument("handle")
@with_face
def expand(face: Face, /, handle: str, **options: Any) -> None:
    """Print what a handle stands for, byte for byte.

    HANDLE is page:... or p12, p12-p20; a range may stand behind it: page:...#L10-20, p12#C0-99.
    """
    from context_gatekeeper.entrypoints.cli.agent_out import run_expand

    run_expand(face, handle, **options)


@click.command()
@click.option("--limit", type=int, default=5, help="Most pages; those behind the fifth are listed.  [default: 5]")
@_session_option("Look in this session only.")
@face_options
@_store_option
@click.argument("query")
@with_face
def recall(face: Face, /, query: str, store: str | None, session: str | None, limit: int) -> None:
    """Print the pages that tell most of a query, as one block of quoted data for an agent.

    The block holds five pages at most. With a higher limit the others are listed on standard error.
    """
    from context_gatekeeper.entrypoints.cli.agent_out import run_recall

    run_recall(face, query, store=store, session=session, limit=limit)


@click.command()
@face_options
@_store_option
@with_face
def stats(face: Face, /, store: str | None) -> None:
    """Print how the sessions of the pool add up."""
    from context_gatekeeper.entrypoints.cli.agent_views import run_stats

    run_stats(face, store)


@click.group(invoke_without_command=True)
@face_options
@_store_option
@click.pass_context
def goal(context: click.Context, store: str | None) -> None:
    """Set goals, which are always sent; without a command, list them."""
    context.meta["store"] = store
    if context.invoked_subcommand is None:
        context.invoke(goal_list)


def _store_of(store: str | None) -> str | None:
    """``--store`` behind the command, or behind ``goal``."""
    named: str | None = click.get_current_context().meta.get("store")
    return named if store is None else store


@goal.command("set")
@face_options
@_store_option
@click.argument("text")
@with_face
def goal_set(face: Face, /, text: str, store: str | None) -> None:
    """Set a goal: TEXT is sent with every request until it is done."""
    from context_gatekeeper.entrypoints.cli.agent_goals import run_set_goal

    run_set_goal(face, text, _store_of(store))


@goal.command("done")
@face_options
@_store_option
@click.argument("goal_id", metavar="ID")
@with_face
def goal_done(face: Face, /, goal_id: str, store: str | None) -> None:
    """Call a goal done; its page stays."""
    from context_gatekeeper.entrypoints.cli.agent_goals import run_finish_goal

    run_finish_goal(face, goal_id, _store_of(store))


@goal.command("list")
@face_options
@_store_option
@with_face
def goal_list(face: Face, /, store: str | None = None) -> None:
    """List the goals."""
    from context_gatekeeper.entrypoints.cli.agent_goals import run_goals

    run_goals(face, _store_of(store))


@click.command()
@click.option("--remove", "removes", is_flag=True, help="Take the pin away.")
@_session_option("Whose blocks p12 and its like name; not needed for page:..., or with one session.")
@face_options
@_store_option
@click.argument("handle", required=False)
@with_face
def pin(face: Face, /, handle: str | None, store: str | None, session: str | None, removes: bool) -> None:
    """Pin a page, or some lines of it, so that it is always sent; without HANDLE, list the pins."""
    from context_gatekeeper.entrypoints.cli.agent_goals import run_pin, run_pins

    if handle is None:
        run_pins(face, store)
    else:
        run_pin(face, handle, store, session, removes=removes)


@click.command()
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@face_options
@_store_option
@click.argument("names", nargs=-1, required=True, metavar="SESSION|HANDLE...")
@with_face
def forget(face: Face, /, names: tuple[str, ...], store: str | None, is_sure: bool) -> None:
    """Delete sessions, or pages by their handles, for good, with what was sealed of them.

    A session is named whole, and its sub-agents' go with it. The files that `cgk hook` kept of their results go
    too. Nothing else ever deletes anything. Importing the same log again brings nothing back.
    """
    from context_gatekeeper.entrypoints.cli.agent_import import run_forget

    run_forget(face, names, store, is_sure=is_sure)


AGENT_COMMANDS: tuple[click.Command, ...] = (
    import_command,
    pages,
    cards,
    inspect,
    expand,
    recall,
    stats,
    goal,
    pin,
    forget,
)
"""In the order of use."""
