"""New results that are sent as references to what stands in the window."""

from __future__ import annotations

import re

import pytest

from context_gatekeeper.core.evidence import plain_lines
from context_gatekeeper.engine.repeats import reference_to_window
from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.engine.window import EntryForm, Window
from context_gatekeeper.types import AgentMessage
from tests.engine.agents import answered, gave, returned, said
from tests.engine.coding import logged, module_text, read_module

_REFERENCE = re.compile(r"\[= p(\d+)#L(\d+)-(\d+)\]")


def last_added(*messages: AgentMessage, whole: bool = True) -> tuple[SessionLog, Window, list[object]]:
    """References for the slices of the last message, when what came before stands in the window."""
    log, added = logged(messages)
    window = Window(log)
    for pieces in added[:-1]:
        for piece in pieces:
            if whole:
                window.append(window.make(EntryForm.RAW, piece.tokens, [piece.number]))
    return log, window, [reference_to_window(log, window, piece) for piece in added[-1]]


def test_a_file_read_twice_is_sent_as_references_to_the_very_lines() -> None:
    log, _, found = last_added(said("Go."), *read_module(1), *read_module(1, shift=10))
    texts = [reference.entry.text for reference in found if reference is not None]  # type: ignore[attr-defined]
    assert texts
    newer = plain_lines(log.segments[-1].text.split("\n"))
    told: list[str] = []
    for text in texts:
        for line in text.split("\n"):
            if (match := _REFERENCE.fullmatch(line)) is None:
                told += plain_lines([line])
                continue
            block, first, last = (int(group) for group in match.groups())
            told += plain_lines(log.segments[block].text.split("\n"))[first - 1 : last]
    assert [line for line in told if line in newer] == newer[: len(told)]
    assert len(told) >= 40


def test_only_new_lines_count_as_shown() -> None:
    fresh = "the_new_line_of_it = compute_what_was_never_seen(42)"
    _, _, found = last_added(
        returned(gave("a", module_text(1, 20), "Read")), returned(gave("b", f"{module_text(1, 20)}\n{fresh}", "Read"))
    )
    (reference,) = found
    assert reference is not None
    assert fresh in reference.entry.text  # type: ignore[attr-defined]
    assert reference.entry.form is EntryForm.REFERENCE  # type: ignore[attr-defined]
    assert reference.rests_on == (0,)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "second",
    [
        returned(gave("b", module_text(1, 20), "Read", is_error=True)),
        answered(module_text(1, 20)),
        said(module_text(1, 20)),
        returned(gave("b", module_text(2, 20), "Read")),
        returned(gave("b", module_text(1, 1), "Read")),
        returned(gave("b", "\n".join(module_text(1, 20).split("\n")[::2]), "Read")),
    ],
    ids=["a failed result", "what a model wrote", "what a person wrote", "other lines", "a short result", "no run"],
)
def test_nothing_else_is_referred_to(second: AgentMessage) -> None:
    assert last_added(returned(gave("a", module_text(1, 20), "Read")), second)[2] == [None]


def test_what_is_not_in_the_window_is_not_referred_to() -> None:
    first, second = (returned(gave(name, module_text(1, 20), "Read")) for name in ("a", "b"))
    assert last_added(first, second, whole=False)[2] == [None]
