"""The options of ``cgk replay``, apart from what they set going: every run of ``cgk`` reads them."""

from __future__ import annotations

import click

from context_gatekeeper.core.economics import PRICES

__all__ = ["REPLAY_OPTIONS"]

REPLAY_OPTIONS = (
    click.option("--html", help="Also write one self-contained page to this file."),
    click.option(
        "--plot",
        default="longest",
        help="Session whose prompts are plotted over its calls: its id, longest, or none.  [default: longest]",
    ),
    click.option("--chain", "chain_calls", type=int, default=0, help="Join sessions of a file to chains of N calls."),
    click.option("--min-calls", type=int, default=1, help="Leave out sessions with fewer model calls."),
    click.option(
        "--gaps",
        type=click.Choice(["real", "none"]),
        default="none",
        help="Let the cache go cold in real gaps between calls.  [default: none]",
    ),
    click.option(
        "--prefill-rate",
        type=float,
        default=5000.0,
        help="Tokens a second that the provider takes in, to estimate the time to the first token.  [default: 5000]",
    ),
    click.option("--fault-target", type=float, help="Share of faulting calls that our policies steer to."),
    click.option("--fault-price", type=float, help="Worth of a page fault in units of its own bill; fixes the knob."),
    click.option(
        "--resident-tokens",
        default="8000",
        help="System text and tools in every prompt: a number, or `logged`.  [default: 8000]",
    ),
    click.option(
        "--prices",
        default="anthropic-5m",
        help=f"Price profile: {', '.join(PRICES)}.  [default: anthropic-5m]",
    ),
    click.option("--policy", "policies", help="Policies by name, with commas, or `all`.  [default: the main ones]"),
    click.argument("files", nargs=-1, required=True),
)
"""Decorators, in the order in which `click` takes them: the last option of the help text first."""
