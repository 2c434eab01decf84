"""The second part of ``cgk demo``: a real agent session, its bill under a few policies, and one plan in words."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Any

from context_gatekeeper.entrypoints.cli.face import Face
from context_gatekeeper.entrypoints.cli.terminal import Tint, clipped, columns_for, one_line, pipe_table
from context_gatekeeper.replay.demonstration import Demonstration, MissedNeed, RewriteStory, demonstrate
from context_gatekeeper.transcripts.agent_sessions import read_sessions

__all__ = ["demo_lines", "show_agent_session"]

_SAMPLE = "demo_session.jsonl.gz"
_BILL_HEADER = ("policy", "bill", "cheaper", "prompt", "missed")
_LEFT_HEADER = ("what left", "of the file", "slices", "tokens")
_STAYED_HEADER = ("what is sent, and why", "form", "entries", "tokens")
_SHOWN_ROWS = 6
_SHOWN_MISSES = 4
# Columns of the widest cell, and of the row beside it.
_FILE_COLUMNS, _BESIDE_FILE = 26, 41
_REASON_COLUMNS, _BESIDE_REASON = 60, 36
_NEED_COLUMNS, _BESIDE_NEED = 60, 4
_REASONS = {
    "cold": "the provider's cache had run out, so that everything is written again anyway",
    "rent": "the rent of what is hardly quoted again has come to several times the price of the rewrite",
}


def show_agent_session(face: Face) -> dict[str, Any]:
    """Replay the sample session and print what it shows; its JSON-ready form. A few seconds, no network."""
    with as_file(files(__package__) / _SAMPLE) as path:
        shown = demonstrate(read_sessions(path)[0])
    if not face.as_json:
        face.print_lines(demo_lines(shown, face))
    return shown.to_dict()


def demo_lines(shown: Demonstration, face: Face) -> list[str]:
    """The demonstration for a terminal; tables fit its width."""
    title = f"{one_line(shown.session_id)}: a recorded session of a coding agent, {shown.calls} model calls"
    return [
        face.paint(f"=== {title} ===", Tint.HIGHLIGHT),
        "",
        *_bill_lines(shown),
        "",
        *_missed_lines(shown, face),
        *([] if shown.plan is None else ["", *_plan_lines(shown.plan, shown.rewrites, face)]),
        "",
        "Every policy saw the same recorded calls; what a live agent would have done otherwise, a replay cannot tell.",
    ]


def _bill_lines(shown: Demonstration) -> list[str]:
    rows = [
        (
            name,
            f"{figures['billed_units']:,}",
            f"{figures['billed_vs_append_only']:.2f}x",
            f"{figures['mean_prompt_tokens']:,.0f}",
            f"{round(figures['faulting_call_share'] * shown.calls)} of {shown.calls}",
        )
        for name, figures in shown.policies.items()
    ]
    return [
        *pipe_table(_BILL_HEADER, rows, right="lrrrr"),
        "",
        f"bill: in plain input tokens, at the ratios of {shown.prices} ({shown.prices_as_of}), a perfect prompt cache",
        "and what fetching the missed text costs included. missed: calls that quoted a line or name which stood",
        "nowhere in their prompt. append-only sends everything, mask-60k clears old tool results, clairvoyant-seen",
        "knows the future.",
    ]


def _missed_lines(shown: Demonstration, face: Face) -> list[str]:
    if not shown.missed:
        return [face.paint("Ours missed nothing.", Tint.ACCENT)]
    columns = columns_for(_NEED_COLUMNS, beside=_BESIDE_NEED)
    lines = [face.paint("What ours missed, and fetched for one more call each:", Tint.ACCENT)]
    for need in shown.missed[:_SHOWN_MISSES]:
        lines += [f"  {_missed_words(need)}", f"    {clipped(need.text, columns)}"]
    if rest := len(shown.missed[_SHOWN_MISSES:]):
        lines.append(f"  and {rest} more")
    return lines


def _missed_words(need: MissedNeed) -> str:
    of_file = f" of {one_line(need.file)}" if need.file else ""
    handle = "its handle stood there" if need.was_named else "not even a handle was there"
    return f"after {need.call} calls: {need.what}{of_file}, {handle}"


def _plan_lines(plan: RewriteStory, rewrites: int, face: Face) -> list[str]:
    reason_columns = columns_for(_REASON_COLUMNS, beside=_BESIDE_REASON)
    stayed = [
        (clipped(one.reason, reason_columns), one.form, one.entries, f"{one.tokens:,}")
        for one in plan.stayed[:_SHOWN_ROWS]
    ]
    return [
        face.paint(f"One plan of {rewrites}, after {plan.call} calls: rewrite the window,", Tint.ACCENT),
        f"  because {_REASONS.get(plan.reason, plan.reason)}.",
        f"  {plan.tokens_before:,} tokens become {plan.tokens_after:,}: {plan.slices} slices leave, handles stay.",
        f"  Writing again what stands behind the first change costs {plan.price:,.0f} units more.",
        f"  Saved until then: {plan.saved_units:,.0f} units. Knob: a fault counts {plan.fault_price_factor:.2f} times.",
        f"  Of the slices that left, {plan.quoted_later} were quoted again later.",
        "",
        *pipe_table(_LEFT_HEADER, _left_rows(plan), right="llrr"),
        "",
        *pipe_table(_STAYED_HEADER, stayed, right="llrr"),
    ]


def _left_rows(plan: RewriteStory) -> list[tuple[str, str, int, str]]:
    file_columns = columns_for(_FILE_COLUMNS, beside=_BESIDE_FILE)
    rows = [
        (one.what, clipped(one.file, file_columns) or "-", one.slices, f"{one.tokens:,}")
        for one in plan.left[:_SHOWN_ROWS]
    ]
    if rest := plan.left[_SHOWN_ROWS:]:
        rows.append(("others", "-", sum(one.slices for one in rest), f"{sum(one.tokens for one in rest):,}"))
    return rows
