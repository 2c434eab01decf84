"""The command ``cgk mcp``, as click knows it; the server is imported when it runs."""

from __future__ import annotations

import click

from context_gatekeeper.entrypoints.cli.face import Face, face_options, with_face

__all__ = ["mcp"]

_EXTRA = frozenset(("anyio", "mcp", "mcp_types"))
"""Packages that the extra brings."""


@click.command()
@click.option("--allow-write", "allows_writing", is_flag=True, help="Offer cgk_pin too.")
@click.option("--session", help="Whose blocks p12 names, and the only one recalled from.")
@click.option("--owner", default="", help="Whose pages are seen.")
@click.option("--pool", default="default", help="Share of the store.  [default: default]")
@face_options
@click.option("--store", help="SQLite file that keeps the pages.  [default: pages.db in the user's data folder]")
@with_face
def mcp(face: Face, /, store: str | None, pool: str, owner: str, session: str | None, allows_writing: bool) -> None:
    """Serve the pool to an agent as MCP tools on standard input and output: expand, recall, status.

    What it may see is fixed here; nothing that it sends changes that. Without --session short handles such as p12
    name blocks of the newest session that worked in this folder, and recall looks in all.
    """
    from pathlib import Path

    from context_gatekeeper.config import default_store
    from context_gatekeeper.errors import ConfigError

    try:
        from context_gatekeeper.entrypoints.mcp.server import serve
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise ConfigError("mcp 2", "it is not installed", 'run: pip install "context-gatekeeper[mcp]"') from missing
    from context_gatekeeper.entrypoints.mcp.tools import PoolTools, ToolScope

    config = face.config(store=store)
    scope = ToolScope(
        config.store or str(default_store()),
        pool,
        owner,
        session,
        str(Path.cwd()),
        allows_writing,
        config.redaction,
        config.sealed_folder,
    )
    serve(PoolTools(scope))
