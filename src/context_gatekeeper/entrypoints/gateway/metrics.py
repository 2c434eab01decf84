"""Figures of the gateway as Prometheus reads them. No label ever holds a session, a key or an address."""

from __future__ import annotations

import logging
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["CONTENT_TYPE", "GatewayMetrics"]

_LOGGER = logging.getLogger(__name__)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Upper bounds of the histograms, in seconds."""
_HELP: Mapping[str, tuple[str, str]] = {
    "cgk_requests_total": ("counter", "Requests by provider, route and what was decided."),
    "cgk_fail_open_total": ("counter", "Requests sent on as they came because our part failed, by where it did."),
    "cgk_own_calls_total": ("counter", "Calls of the gateway's own tool that it answered."),
    "cgk_continued_total": ("counter", "Requests whose plan was late, sent behind what was sent before."),
    "cgk_second_tries_total": ("counter", "Refused requests that were sent once more and taken, by what was sent."),
    "cgk_upstream_errors_total": ("counter", "Requests that the upstream could not be asked, by cause."),
    "cgk_broken_answers_total": ("counter", "Answers that broke off, by who ended them."),
    "cgk_unread_answers_total": ("counter", "Answers relayed without being read by the planner."),
    "cgk_observe_faults_total": ("counter", "Answers that the planner failed to read, by where it did."),
    "cgk_planner_starts_total": ("counter", "Starts of the planner's process."),
    "cgk_prompt_tokens_total": ("counter", "Tokens of the requests as planned."),
    "cgk_append_only_tokens_total": ("counter", "Tokens that the same requests had without planning."),
    "cgk_saved_units": (
        "gauge",
        "Net saving so far, in prices of one uncached input token; falls when planning cost more.",
    ),
    "cgk_archive_faults_total": ("counter", "Times that conversations could not be stored."),
    "cgk_archive_dropped_total": ("counter", "Conversations of which the newest state found no room to wait."),
    "cgk_archive_waiting": ("gauge", "Conversations that wait to be stored."),
    "cgk_schedule_seconds": ("histogram", "Time of one plan, with the way to the planner and back."),
    "cgk_ttfb_seconds": ("histogram", "From a request's last byte to its answer's first."),
    "cgk_open_requests": ("gauge", "Requests under way."),
}
_FIGURES = {
    "prompt_tokens": "cgk_prompt_tokens_total",
    "append_only_tokens": "cgk_append_only_tokens_total",
    "saved_units": "cgk_saved_units",
}
_PLANNER_METRIC = re.compile(
    r'cgk_[a-z_]{1,60}(?:\{(?:provider|kind|mechanism|cause|model|result|hit)="[\w.:/ -]{0,80}"'
    r'(?:,(?:provider|kind|mechanism|cause|model|result|hit)="[\w.:/ -]{0,80}"){0,3}\})?'
)
"""Names that the planner's status may add, with the labels that are known to hold no session."""


class GatewayMetrics:
    """Counters and histograms of one gateway; for one thread."""

    def __init__(self) -> None:
        self._counters: Counter[str] = Counter()
        self._histograms: dict[str, list[float]] = {}
        self.open_requests = 0
        self.archive_fault = ""
        """Why conversations cannot be stored at present: type of the error and path of the store."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        shown = ",".join(f'{key}="{value}"' for key, value in labels.items())
        self._counters[f"{name}{{{shown}}}" if shown else name] += amount  # type: ignore[assignment]

    def value(self, name: str, **labels: str) -> float:
        """What a counter has come to."""
        shown = ",".join(f'{key}="{value}"' for key, value in labels.items())
        return self._counters[f"{name}{{{shown}}}" if shown else name]

    def observe_seconds(self, name: str, seconds: float) -> None:
        """Add a time to a histogram."""
        cells = self._histograms.setdefault(name, [0.0] * (len(_BOUNDS) + 2))
        cells[bisect_left(_BOUNDS, seconds)] += 1
        cells[-1] += seconds

    def add_figures(self, figures: Mapping[str, Any]) -> None:
        """Take over those figures of a plan that are numbers for the sums."""
        for name, metric in _FIGURES.items():
            amount = figures.get(name)
            if isinstance(amount, int | float) and not isinstance(amount, bool) and amount == amount:
                self.count(metric, amount)
        fault = figures.get("archive_fault")
        if isinstance(fault, str):
            self.note_archive(fault)

    def note_archive(self, fault: str) -> None:
        """Take over whether conversations can be stored; each change is a line in the log."""
        if bool(fault) != bool(self.archive_fault):
            if fault:
                _LOGGER.warning("conversations cannot be stored (%s); they wait in memory", fault)
            else:
                _LOGGER.warning("conversations can be stored again")
        self.archive_fault = fault

    def text(self, planner_metrics: object = None) -> str:
        """All figures in Prometheus' text form; ``planner_metrics`` maps more names to numbers."""
        lines = [*self._lines(), *_planner_lines(planner_metrics)]
        return "\n".join(lines) + "\n"

    def _lines(self) -> Iterator[str]:
        for name, (kind, text) in _HELP.items():
            yield f"# HELP {name} {text}"
            yield f"# TYPE {name} {kind}"
            if kind == "histogram":
                yield from _histogram_lines(name, self._histograms.get(name, [0.0] * (len(_BOUNDS) + 2)))
            elif name == "cgk_open_requests":
                yield f"{name} {self.open_requests}"
            else:
                yield from (
                    f"{key} {_number(amount)}"
                    for key, amount in sorted(self._counters.items())
                    if key.partition("{")[0] == name
                )


def _histogram_lines(name: str, cells: list[float]) -> Iterator[str]:
    total = 0.0
    for bound, amount in zip((*map(str, _BOUNDS), "+Inf"), cells, strict=False):
        total += amount
        yield f'{name}_bucket{{le="{bound}"}} {_number(total)}'
    yield f"{name}_sum {_number(cells[-1])}"
    yield f"{name}_count {_number(total)}"


def _planner_lines(found: object) -> Iterator[str]:
    if isinstance(found, Mapping):
        for name, amount in found.items():
            is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
            if is_number and isinstance(name, str) and _PLANNER_METRIC.fullmatch(name):
                yield f"{name} {_number(amount)}"


def _number(amount: float) -> str:
    return str(int(amount)) if amount == int(amount) else repr(round(amount, 6))
