"""New results that are sent as references to what stands in the window."""

from __future__ import annotations

import re

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from context_gatekeeper.core.evidence import plain_lines
from context_gatekeeper.engine.repeats import REPEAT_PARAMS, reference_to_window
from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.engine.window import EntryForm, Window
from context_gatekeeper.types import AgentMessage
from tests.engine.agents import answered, call, gave, returned, said
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


def test_lines_that_stand_everywhere_do_not_hide_a_repeat() -> None:
    text = module_text(1, 30).replace("\n", "\n\n")
    _, _, found = last_added(returned(gave("a", text, "Read")), returned(gave("b", f"\n{text}", "Read")))
    assert any(reference is not None for reference in found)


def test_a_stretch_that_is_indented_anew_is_sent_whole() -> None:
    body = [f"total_{line} = compute_the_total_of(module, {line})" for line in range(20)]
    first = returned(gave("a", "\n".join(body), "Read"))
    deeper = returned(gave("b", "\n".join(f"    {line}" for line in body), "Read"))
    assert last_added(first, deeper)[2] == [None]


def test_sizes_in_front_of_names_are_no_line_numbers() -> None:
    names = [f"reports/sales_of_the_year_{number}.csv" for number in range(30)]
    before, after = (
        returned(gave(name, "\n".join(f"{size + 3 * place}\t{one}" for place, one in enumerate(names)), "Bash"))
        for name, size in (("a", 100), ("b", 500))
    )
    assert set(last_added(before, after)[2]) == {None}


def test_a_call_is_not_referred_to_because_its_lines_are_json() -> None:
    text = module_text(1, 20)
    written = answered(call("w", "Write", file_path="a.py", content=text))
    assert last_added(written, returned(gave("r", text, "Read")))[2] == [None]


def test_only_slices_that_are_referred_to_are_rested_on() -> None:
    one, two = module_text(1, 20), module_text(2, 20)
    name = two.split(" ")[0]
    log, _, (found,) = last_added(
        returned(gave("a", one, "Read")),
        returned(gave("b", two, "Read")),
        returned(gave("c", f"{one}\n{name}", "Read")),
    )
    assert found is not None
    assert found.rests_on == (0,)  # type: ignore[attr-defined]
    assert log.segments[0].slices == [0]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 60), max_size=60), min_size=1, max_size=4),
    st.lists(st.integers(0, 60), min_size=8, max_size=90),
    st.booleans(),
)
def test_references_put_together_with_what_is_sent_are_the_new_text(
    older: list[list[int]], newer: list[int], is_listing: bool
) -> None:
    def text(numbers: list[int], first: int) -> str:
        lines = ["" if number > 57 else f"\ttotal_{number} = compute_the_total_of({number})" for number in numbers]
        return (
            "\n".join(f"{place:5}→{line}" for place, line in enumerate(lines, first))
            if is_listing
            else "\n".join(lines)
        )

    messages = [returned(gave(f"c{place}", text(numbers, 1), "Read")) for place, numbers in enumerate(older)]
    log, _, found = last_added(*messages, returned(gave("new", text(newer, 40), "Read")))
    segment = log.segments[-1]
    for reference, number in zip(found, segment.slices, strict=True):
        if reference is None:
            continue
        entry = reference.entry  # type: ignore[attr-defined]
        piece = log.slices[number]
        sent = segment.text[piece.start : piece.end].removesuffix("\n").split("\n")
        told: list[str] = []
        for line in entry.text.split("\n"):
            if (match := _REFERENCE.fullmatch(line)) is None:
                told.append(plain_lines(sent)[len(told)])
                assert line in sent
                continue
            block, first, last = (int(group) for group in match.groups())
            run = plain_lines(log.segments[block].text.split("\n"))[first - 1 : last]
            assert len(run) == last - first + 1
            size = sum(len(one) + 1 for one in sent[len(told) : len(told) + len(run)])
            assert size * piece.tokens / (piece.end - piece.start) >= REPEAT_PARAMS.least_run_tokens
            told += run
        event("a reference")
        assert told == plain_lines(sent)
        assert entry.tokens <= 0.6 * piece.tokens


def test_lines_of_an_older_slice_that_is_one_long_line_are_compared_too() -> None:
    long_line = "the_long_line_of_it = " + "compute_the_value(12345) + " * 400
    text = f"{long_line}\n{module_text(1, 20)}"
    _, _, found = last_added(returned(gave("a", text, "Read")), returned(gave("b", text, "Read")))
    assert found[0] is not None
    assert found[0].entry.text == "[= p0#L1-1]"  # type: ignore[attr-defined]


def test_only_older_slices_are_referred_to() -> None:
    text = module_text(1, 200)
    log, added = logged([returned(gave("a", text, "Read"), gave("b", text, "Read"))])
    window = Window(log)
    pieces = added[0]
    assert reference_to_window(log, window, pieces[0]) is None
    for piece in pieces[1:]:
        window.append(window.make(EntryForm.RAW, piece.tokens, [piece.number]))
    assert reference_to_window(log, window, pieces[0]) is None
