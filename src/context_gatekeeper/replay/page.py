"""The page of ``cgk replay --html``: tables and charts in one file that needs nothing else.

No script, nothing fetched: the policy in its head allows one style alone, by its digest. Every text that
comes from a session or a file is escaped, characters that do not print are shown as escapes.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from html import escape
from itertools import accumulate
from pathlib import Path
from typing import Any

from context_gatekeeper.core.economics import PRICES_AS_OF
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.replay.axes import short_number
from context_gatekeeper.replay.catalogue import POLICY_NAMES
from context_gatekeeper.replay.charts import call_chart, point_chart
from context_gatekeeper.replay.page_style import LINE_CLASSES, STYLE
from context_gatekeeper.replay.report import ReplayReport
from context_gatekeeper.replay.run import APPEND_ONLY

__all__ = ["check_page_place", "page_text", "write_page"]

_MOST_CHARTED = 12
"""Sessions with charts, those with most calls first: each adds up to 100 KB."""
_ID_CHARS = 80
_PAGE_START = b"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="cgk replay">
"""
"""How every page begins, and nothing else: a file that does may be written over."""


def check_page_place(path: Path, inputs: Sequence[Path] = ()) -> None:
    """See before a long replay whether a page can be written there, and that no other file is lost by it.

    Args:
        path: of the page.
        inputs: files that are read, which a page never takes the place of, whatever name leads to them.

    Raises:
        ConfigError: its folder is not there or cannot be written to, something else than a file has its name, or
            what has it is an input or no earlier page.
    """
    try:
        is_there = path.exists()
        is_something_else = is_there and not path.is_file()
        folder = path.resolve().parent
        has_folder = folder.is_dir()
    except (OSError, RuntimeError) as error:  # a name that is too long, links that lead in a circle
        raise ConfigError(f"page {path}", f"its place cannot be looked at ({error})", "name another file") from error
    if is_something_else:
        raise ConfigError(f"page {path}", "it is no regular file", "name another file")
    if not has_folder:
        raise ConfigError(f"page {path}", "its folder does not exist", "make the folder, or name another file")
    if is_there:
        _check_overwritten(path, inputs)
    if not os.access(folder, os.W_OK):
        raise ConfigError(f"page {path}", "its folder cannot be written to", "name a file in another folder")


def _check_overwritten(path: Path, inputs: Sequence[Path]) -> None:
    """Refuse a file that a page would take the place of, unless it is such a page itself."""
    if any(_is_same(path, other) for other in inputs):
        raise ConfigError(f"page {path}", "it is a file to be replayed, which would be lost", "name another file")
    try:
        with path.open("rb") as file:
            is_page = file.read(len(_PAGE_START)) == _PAGE_START
    except OSError as error:
        cause = f"what stands there cannot be read ({error.strerror or error})"
        raise ConfigError(f"page {path}", cause, "name another file") from error
    if not is_page:
        cause = "another file stands there, no page of an earlier replay"
        raise ConfigError(f"page {path}", cause, "name another file, or move that one away")


def _is_same(path: Path, other: Path) -> bool:
    """Whether both names lead to one file, through links too."""
    with suppress(OSError, ValueError):  # a file that is not there is told when it is read
        return path.samefile(other)
    return False


def write_page(report: ReplayReport, path: Path) -> None:
    """Write the page whole or not at all: into a file beside it, which then takes its name.

    Raises:
        ConfigError: it cannot be written; a page that was there is as it was.
    """
    check_page_place(path)
    content = page_text(report).encode("utf-8")
    place = path.resolve()
    beside = place.with_name(f".cgk-{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as file:
            file.write(content)
        if place.exists():
            beside.chmod(place.stat().st_mode & 0o777)
        beside.replace(place)
    except OSError as error:
        cause = f"it cannot be written ({error.strerror or error})"
        raise ConfigError(f"page {path}", cause, "free space, or name another file") from error
    finally:
        beside.unlink(missing_ok=True)


def page_text(report: ReplayReport) -> str:
    """The page."""
    result = report.to_dict()
    digest = base64.b64encode(hashlib.sha256(STYLE.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    classes = _line_classes(result["policies"])
    return "\n".join(
        [
            *_PAGE_START.decode("ascii").splitlines(),
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="dark light">',
            "<title>cgk replay</title>",
            f"<style>{STYLE}</style>",
            "</head>",
            "<body>",
            "<h1>cgk replay</h1>",
            _facts(report, result),
            "<h2>Policies</h2>",
            _policy_table(result["policies"], classes),
            "<h2>Price and faults</h2>",
            _price_chart(result["policies"], classes),
            "<h2>Sessions</h2>",
            _session_table(report),
            _session_charts(report, classes),
            "<h2>How to read this</h2>",
            _notes(report),
            "</body>",
            "</html>",
            "",
        ]
    )


def _facts(report: ReplayReport, result: Mapping[str, Any]) -> str:
    settings, prices = report.settings, report.settings.price_profile
    resident = "as logged" if settings.resident_tokens is None else f"{settings.resident_tokens:,} tokens"
    ratios = f"read {prices.read:g}, write {prices.write:g}, output {prices.output:g}"
    pairs = {
        "sessions": f"{result['sessions']:,}, {result['calls']:,} model calls",
        "prices": f"{prices.name} ({ratios}; a plain input token is 1; as of {PRICES_AS_OF})",
        "resident part": resident,
        "cold cache": f"gaps over {prices.ttl_seconds:g} s" if settings.uses_gaps else "at a session's first call only",
        "handles that gave the original bytes": _percent(result["expand_exact"]),
        "prefix breaks outside epochs": str(result["prefix_breaks_outside_epochs"]),
        "card entries and kept lines not verbatim": str(result["unverifiable_card_entries"]),
    }
    if settings.fault_price is not None:
        pairs["fault price"] = f"{settings.fault_price:g}"
    if settings.fault_target is not None:
        pairs["fault target"] = _percent(settings.fault_target)
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs.items())
    return f"<dl>{rows}</dl>"


_POLICY_HEADER = (
    "policy",
    "cheaper",
    "bill",
    "prompt",
    "prompt to output",
    "cached",
    "first token",
    "95 of 100",
    "faults",
    "by words",
    "by lines",
    "coverage",
    "extra",
    "epochs",
    "late",
    "worst",
    "most faults",
)


def _policy_table(policies: Mapping[str, Mapping[str, Any]], classes: Mapping[str, str]) -> str:
    rows = []
    for name, figures in policies.items():
        worst, first = figures["worst_session"], figures["first_token_seconds_estimated"]
        rows.append(
            [
                f"{_swatch(classes[name])}{escape(name)}",
                _times(figures["billed_vs_append_only"]),
                short_number(figures["billed_units"]),
                _number(figures["mean_prompt_tokens"], ",.0f"),
                _number(figures["prompt_completion_ratio"], ",.0f"),
                _percent(figures["cache_read_share"]),
                _number(first["mean"], ".2f", " s"),
                _number(first["p95"], ".2f", " s"),
                _percent(figures["faulting_call_share"]),
                _percent(figures["faulting_call_share_words"]),
                _percent(figures["hard_faulting_call_share"]),
                _percent(figures["evidence_coverage"]),
                f"{figures['extra_calls']:,}",
                f"{figures['epochs']:,}",
                _number(figures["call200_vs_call6"], ".2f"),
                _times(worst["billed_vs_append_only"]),
                _percent(worst["faulting_call_share"]),
            ]
        )
    return _table(_POLICY_HEADER, rows)


def _price_chart(policies: Mapping[str, Mapping[str, Any]], classes: Mapping[str, str]) -> str:
    points = {
        name: (100 * (figures["faulting_call_share"] or 0.0), figures["billed_vs_append_only"])
        for name, figures in policies.items()
        if figures["billed_vs_append_only"] is not None
    }
    chart = point_chart(
        points,
        classes,
        title="times cheaper than append-only over the share of faulting calls",
        x_unit="faulting calls, %",
        y_unit="times cheaper than append-only",
    )
    return f'<div class="wide">{chart}</div>'


def _session_table(report: ReplayReport) -> str:
    names = list(report.sessions)
    rows = []
    for place, reference in enumerate(report.sessions[APPEND_ONLY]):
        row = [escape(_plain(reference.session_id)), f"{len(reference.call_units):,}"]
        for name in names:
            session = report.sessions[name][place]
            ratio = reference.bill.units / session.bill.units if session.bill.units else None
            row.append(f"{_times(ratio)}, {_percent(session.faulting_call_share)}")
        rows.append(row)
    return _table(("session", "calls", *map(escape, names)), rows)


def _session_charts(report: ReplayReport, classes: Mapping[str, str]) -> str:
    reference = report.sessions[APPEND_ONLY]
    longest = sorted(range(len(reference)), key=lambda place: -len(reference[place].call_units))
    legend = " ".join(f"<li>{_swatch(classes[name])}{escape(name)}</li>" for name in report.sessions)
    parts = []
    for order, place in enumerate(longest[:_MOST_CHARTED]):
        figures = {name: listed[place] for name, listed in report.sessions.items()}
        prompts = call_chart(
            {name: one.call_prompts for name, one in figures.items()},
            classes,
            title="prompt tokens of each call",
            unit="prompt tokens of a call",
        )
        bills = call_chart(
            {name: list(accumulate(one.call_units)) for name, one in figures.items()},
            classes,
            title="bill up to each call",
            unit="bill so far, in plain input tokens",
        )
        parts.append(
            f"<details{'' if order else ' open'}><summary>{escape(_plain(reference[place].session_id))}: "
            f"{len(reference[place].call_units):,} calls</summary>"
            f'<ul class="legend">{legend}</ul>'
            f'<div class="wide">{prompts}</div><div class="wide">{bills}</div></details>'
        )
    if len(longest) > _MOST_CHARTED:
        parts.append(f"<p>Charts of the {_MOST_CHARTED} sessions with most calls; {len(longest)} were replayed.</p>")
    return "\n".join(parts)


def _notes(report: ReplayReport) -> str:
    rate = f"{report.settings.prefill_rate:,.0f}"
    has_cache = report.settings.price_profile.has_cache
    cache = "a perfect prompt cache" if has_cache else "no prompt cache"
    notes = {
        "cheaper": "times: the bill of append-only over that of the policy. Append-only sends everything, with an "
        f"unlimited window and {cache}.",
        "bill": "in units of one plain input token.",
        "prompt": "mean tokens, resident part included.",
        "cached": f"share of the prompt tokens that {'were' if has_cache else 'could be'} read from the cache.",
        "faults": "calls in which the model quoted an exact line, identifier, path or number that had stood earlier "
        "in the session and stood nowhere in its prompt. Each is charged: one more call at the whole prompt, and "
        "the page.",
        "by words": "the same where a bare word in a digest counts as being there.",
        "by lines": "faults by a whole line.",
        "coverage": "share of what was quoted that was there.",
        "extra": "calls to fetch what was missed, or to write a summary.",
        "first token": f"an estimate: uncached tokens at {rate} a second; no queue, no network.",
        "late": "billed units of calls 196 to 205 over those of calls 5 to 7, in sessions of 205 or more.",
        "worst": "cheaper, for the session that gains least.",
        "most faults": "for the session with the highest share.",
        "clairvoyant": "these know what will be quoted: bounds that nothing that runs can reach.",
        "a replay": "tells what a recorded session would have cost, not what a live agent would have done otherwise.",
    }
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(note)}</dd>" for name, note in notes.items())
    return f"<dl>{rows}</dl>"


def _line_classes(names: Iterable[str]) -> dict[str, str]:
    """Look of each policy's lines: always the same for a known one."""
    known = dict(zip(POLICY_NAMES, LINE_CLASSES, strict=False))
    return {name: known.get(name, LINE_CLASSES[-1]) for name in names}


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are escaped already; the first column stands left."""
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _swatch(name: str) -> str:
    return f'<svg class="swatch" viewBox="0 0 28 8"><line class="line {name}" x1="0" x2="28" y1="4" y2="4"/></svg>'


def _plain(text: str) -> str:
    """``text`` on one line, cut, and without characters that do not print or that turn its direction."""
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return shown if len(shown) <= _ID_CHARS else f"{shown[: _ID_CHARS - 3]}..."


def _times(ratio: float | None) -> str:
    return _number(ratio, ".2f", "x")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f}%"


def _number(value: float | None, form: str, unit: str = "") -> str:
    return "-" if value is None else f"{value:{form}}{unit}"
