"""What ``cgk replay`` shows: the comparison as a table, and the prompts of one session over its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from context_gatekeeper.core.economics import PRICES_AS_OF
from context_gatekeeper.entrypoints.cli.call_plot import call_plot
from context_gatekeeper.entrypoints.cli.face import Face
from context_gatekeeper.entrypoints.cli.terminal import Tint, columns_for, facts, one_line, pipe_table
from context_gatekeeper.replay.axes import short_number
from context_gatekeeper.replay.catalogue import OUR_POLICIES
from context_gatekeeper.replay.report import ReplayReport
from context_gatekeeper.replay.run import APPEND_ONLY

__all__ = ["NO_PLOT", "percent", "plot_lines", "replay_lines", "times_cheaper"]

NO_PLOT, LONGEST = "none", "longest"
_HEADER = ("policy", "cheaper", "bill", "faults", "coverage", "prompt", "first token")
_BILL_PLACE = 2
_MORE_HEADER = ("policy", "worst", "most faults", "by lines", "extra", "cached", "late")
_NOTES = {
    "cheaper": "times, than append-only: all that was said, {cache}",
    "bill": "in units of one plain input token",
    "faults": "calls that quoted what stood nowhere in their prompt, each charged",
    "coverage": "share of what was quoted that was there",
    "prompt": "mean tokens, resident part included",
    "first token": "estimated: uncached tokens at {rate:,.0f} a second; no queue, no network",
    "worst": "cheaper, for the session that gains least",
    "most faults": "for the session with the highest share",
    "by lines": "faults by a whole line",
    "extra": "calls to fetch what was missed, or to write a summary",
    "cached": "share of the prompt tokens that {read} from the cache",
    "late": "bill of call 200 over that of call 6, where a session is as long",
    "prices": "ratios as of {as_of}",
}
_PLOT_COLUMNS = 100
_PLOTTED_TOGETHER = 6
"""Policies of one plot, append-only among them: more cannot be told apart."""
_SESSION_COLUMNS = 60


def replay_lines(report: ReplayReport, face: Face) -> list[str]:
    """The comparison in two tables of 80 columns, and what the columns are."""
    result = report.to_dict()
    settings = report.settings
    resident = "as logged" if settings.resident_tokens is None else f"{settings.resident_tokens} tokens"
    title = f"{result['sessions']} sessions, {result['calls']} model calls; prices {settings.prices}"
    policies = result["policies"]
    read = "were read" if settings.price_profile.has_cache else "could be read"
    cache = "with a perfect cache" if settings.price_profile.has_cache else "without a cache"
    return [
        face.paint(f"{title}, resident part {resident}", Tint.HIGHLIGHT),
        "",
        *_bill_table(policies),
        "",
        *pipe_table(_MORE_HEADER, [_more_row(name, figures) for name, figures in policies.items()], right="lrrrrrr"),
        "",
        *facts(
            {
                name: note.format(rate=settings.prefill_rate, as_of=PRICES_AS_OF, cache=cache, read=read)
                for name, note in _NOTES.items()
            }
        ),
        "",
        *_left_alone(report),
        *facts(
            {
                "handles that gave the original bytes": percent(result["expand_exact"]),
                "prefix breaks outside epochs": str(result["prefix_breaks_outside_epochs"]),
                "card entries and kept lines not verbatim": str(result["unverifiable_card_entries"]),
            }
        ),
    ]


def plot_lines(report: ReplayReport, face: Face, session: str) -> list[str]:
    """Prompt tokens of a session's calls under each policy, in plots on the same scale.

    Args:
        report: of the replay.
        face: how to paint.
        session: an id, ``longest``, or ``none`` for no lines.

    Raises:
        ConfigError: no session that was replayed has this id.
    """
    if session == NO_PLOT:
        return []
    place = report.place_of(None if session == LONGEST else session)
    prompts = {name: listed[place].call_prompts for name, listed in report.sessions.items()}
    session_id = one_line(report.sessions[APPEND_ONLY][place].session_id)
    if len(session_id) > _SESSION_COLUMNS:
        session_id = f"{session_id[: _SESSION_COLUMNS - 3]}..."
    lines = ["", face.paint(f"{session_id}: {len(prompts[APPEND_ONLY])} calls", Tint.HIGHLIGHT)]
    highest = max(max(values) for values in prompts.values())
    for series in _together(prompts):
        columns = columns_for(_PLOT_COLUMNS, beside=1)
        lines += ["", *call_plot(series, columns=columns, unit="prompt tokens of a call", highest=highest)]
    return lines


def times_cheaper(ratio: float | None) -> str:
    """``2.11x``."""
    return "-" if ratio is None else f"{ratio:.2f}x"


def percent(share: float | None) -> str:
    """``4.97%``."""
    return "-" if share is None else f"{100 * share:.2f}%"


def _row(name: str, figures: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        name,
        times_cheaper(figures["billed_vs_append_only"]),
        short_number(figures["billed_units"]),
        percent(figures["faulting_call_share"]),
        percent(figures["evidence_coverage"]),
        f"{figures['mean_prompt_tokens']:,.0f}",
        f"{figures['first_token_seconds_estimated']['mean']:.2f} s",
    )


def _bill_table(policies: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The first table; on a terminal too narrow for the column of bills, a line with those that matter most."""
    rows = [_row(name, figures) for name, figures in policies.items()]
    table = pipe_table(_HEADER, rows, right="lrrrrrr")
    if columns_for(_PLOT_COLUMNS, beside=0) >= len(table[0]):
        return table
    narrow = [(*row[:_BILL_PLACE], *row[_BILL_PLACE + 1 :]) for row in (_HEADER, *rows)]
    ours = [name for name in OUR_POLICIES if name in policies]
    best = sorted(ours, key=lambda name: float(policies[name]["billed_units"]))[:1]
    bills = (f"{name} {short_number(policies[name]['billed_units'])}" for name in (APPEND_ONLY, *best))
    return [*pipe_table(narrow[0], narrow[1:], right="lrrrrr"), "", f"bill: {', '.join(bills)}"]


def _left_alone(report: ReplayReport) -> list[str]:
    """Why ours changed nothing in some sessions, where it did not."""
    count, sessions = report.left_alone(), len(report.sessions[APPEND_ONLY])
    if not count:
        return []
    told = f"ours left {count} of {sessions} sessions alone on purpose: too short for a rewrite to pay"
    return [told, ""]


def _more_row(name: str, figures: Mapping[str, Any]) -> tuple[str, ...]:
    worst, late = figures["worst_session"], figures["call200_vs_call6"]
    return (
        name,
        times_cheaper(worst["billed_vs_append_only"]),
        percent(worst["faulting_call_share"]),
        percent(figures["hard_faulting_call_share"]),
        f"{figures['extra_calls']:,}",
        percent(figures["cache_read_share"]),
        "-" if late is None else f"{late:.2f}",
    )


def _together(prompts: Mapping[str, Sequence[float]]) -> list[dict[str, Sequence[float]]]:
    """Series of each plot: append-only and a few others."""
    others = [name for name in prompts if name != APPEND_ONLY]
    step = _PLOTTED_TOGETHER - 1
    groups = [others[start : start + step] for start in range(0, len(others), step)] or [[]]
    return [{name: prompts[name] for name in (APPEND_ONLY, *group)} for group in groups]
