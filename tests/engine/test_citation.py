"""How likely a slice or a unit is quoted again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from context_gatekeeper.core.tables import citation_rows
from context_gatekeeper.engine.citation import (
    SLICE_TABLE_SIZE,
    UNIT_TABLE_SIZE,
    CitationModel,
    slice_features,
    unit_features,
)
from context_gatekeeper.engine.session_log import SliceKind
from tests.engine.agents import answered, gave, returned, said
from tests.engine.coding import coding_session, edit_module, logged, read_module
from tests.engine.random_sessions import STEPS, session_messages


def test_the_tables_have_a_weight_for_every_row() -> None:
    assert len(citation_rows.LINE_WEIGHTS) == len(citation_rows.NAME_WEIGHTS) == SLICE_TABLE_SIZE
    assert len(citation_rows.UNIT_WEIGHTS) == UNIT_TABLE_SIZE


@pytest.mark.parametrize("calls", [2, 9, 30, 120])
def test_every_slice_stands_on_one_row_of_each_part(calls: int) -> None:
    log, _ = logged(coding_session(calls).messages)
    for piece in log.slices:
        rows = slice_features(log, piece)
        assert list(rows) == sorted(set(rows))
        assert rows[-1] < SLICE_TABLE_SIZE
    for number, unit in enumerate(log.units):
        rows = unit_features(log, unit, log.name_of(number))
        assert list(rows) == sorted(set(rows))
        assert rows[-1] < UNIT_TABLE_SIZE


def test_probabilities_are_worked_out_anew_at_each_call() -> None:
    log, _ = logged([said("Go."), *read_module(1)])
    model = CitationModel(log)
    piece = next(piece for piece in log.slices if log.segments[piece.segment].kind is SliceKind.READ)
    before = model.slice_probabilities(piece)
    assert all(0 < chance < 1 for chance in before)
    assert model.slice_probabilities(piece) == before
    unit = model.unit_probability(piece.units[0])
    assert 0 < unit < 1
    for _ in range(30):
        log.add_message(answered("Thinking about it."))
    assert model.slice_probabilities(piece)[0] < before[0]
    assert model.unit_probability(piece.units[0]) < unit


def test_what_was_quoted_lately_is_more_likely_to_be_quoted_again() -> None:
    quiet, _ = logged([said("Go."), *read_module(1), *[answered("Hm.")] * 12])
    quoted, _ = logged([said("Go."), *read_module(1), *[answered("Hm.")] * 11, *edit_module(1, 3)[:1]])
    read = 3
    assert quiet.segments[read].kind is SliceKind.READ
    first = quiet.segments[read].slices[0]
    chances = [sum(CitationModel(log).slice_probabilities(log.slices[first])) for log in (quiet, quoted)]
    assert chances[0] < chances[1]


def test_a_slice_that_came_again_is_worth_less() -> None:
    once, _ = logged([said("Go."), *read_module(1), *read_module(2)])
    twice, _ = logged([said("Go."), *read_module(1), *read_module(1)])
    first = once.segments[3].slices[0]
    assert twice.slices[first].repeated > 0
    chances = [CitationModel(log).slice_probabilities(log.slices[first])[0] for log in (once, twice)]
    assert chances[1] < chances[0]


def test_failed_results_and_places_in_a_block_have_rows_of_their_own() -> None:
    log, _ = logged([returned(gave("a", "broken " * 3000 + "\n" + "x y\n" * 900, "Bash", is_error=True))])
    rows = {slice_features(log, log.slices[number]) for number in log.segments[0].slices}
    assert len(rows) > 1


def test_a_probability_is_kept_until_the_next_call() -> None:
    log, _ = logged([said("Go."), *read_module(1)])
    model = CitationModel(log)
    piece = log.slices[log.segments[3].slices[0]]
    chance, use = model.slice_probabilities(piece), model.unit_probability(piece.units[0])
    log.add_message(returned(gave("late", "total_1_3 came again")))
    assert model.slice_probabilities(piece) is chance
    assert model.unit_probability(piece.units[0]) is use
    log.add_message(answered("Hm."))
    assert model.slice_probabilities(piece) is not chance
    assert model.unit_probability(piece.units[0]) is not use


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_whatever_happens_every_part_has_one_row_and_every_chance_is_one(steps: list[tuple[str, int, int]]) -> None:
    log, _ = logged(session_messages(steps))
    model = CitationModel(log)
    for piece in log.slices:
        rows = slice_features(log, piece)
        assert list(rows) == sorted(set(rows))
        assert rows[-1] < SLICE_TABLE_SIZE
        assert all(0 < chance < 1 for chance in model.slice_probabilities(piece))
    for number, unit in enumerate(log.units):
        rows = unit_features(log, unit, log.name_of(number))
        assert list(rows) == sorted(set(rows))
        assert rows[-1] < UNIT_TABLE_SIZE
        assert 0 < model.unit_probability(number) < 1
