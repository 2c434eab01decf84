"""The progress bar: on a terminal alone, in plain characters, wiped at the end."""

from __future__ import annotations

import io
import sys

import pytest

from context_gatekeeper.entrypoints.cli.progress import progress_bar


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_shares_are_shown_once_each_and_wiped_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    with progress_bar("replay", "calls") as show:
        for done in (0, 1, 1, 2):
            show(done, 2)
    first, second, third, blank, rest = shown.getvalue().split("\r")[1:]
    assert first == "replay [..............................] 0% of 2 calls"
    assert second == "replay [###############...............] 50% of 2 calls"
    assert third == "replay [##############################] 100% of 2 calls"
    assert (blank, rest) == (" " * len(third), "")


def test_nothing_to_do_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    with progress_bar("replay", "calls") as show:
        show(0, 0)
    assert "100% of 0 calls" in shown.getvalue()


@pytest.mark.parametrize(("stream", "wanted"), [(io.StringIO, True), (Terminal, False)])
def test_a_pipe_and_who_wants_none_get_none(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], wanted: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", shown := stream())
    with progress_bar("replay", "calls", wanted=wanted) as show:
        show(1, 2)
    with progress_bar("replay", "calls"):
        pass
    assert shown.getvalue() == ""


def test_a_closed_standard_error_is_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with progress_bar("replay", "calls") as show:
        show(1, 2)
