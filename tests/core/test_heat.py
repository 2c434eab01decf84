"""Heat: decay in turns, real references only, caps, who may leave, and the memory that stops thrashing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.heat import (
    COLD,
    HEAT_PARAMS,
    FaultHistory,
    Heat,
    HeatEvent,
    HeatParams,
    is_thrashing,
    touched,
)

EVENTS = st.lists(st.tuples(st.sampled_from(HeatEvent), st.integers(0, 3)), max_size=30)


def heated(*events: tuple[HeatEvent, int]) -> Heat:
    heat = COLD
    for event, turn in events:
        heat = touched(heat, event, turn)
    return heat


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (HeatEvent.CREATED, 0.5),
        (HeatEvent.SHOWN, 0.0),
        (HeatEvent.KEYWORD_HIT_USED, 1.0),
        (HeatEvent.HANDLE_QUOTED, 2.0),
        (HeatEvent.HANDLE_READ, 3.0),
        (HeatEvent.FILE_EDITED, 3.0),
        (HeatEvent.GOAL_ACTIVE, 1.0),
    ],
)
def test_each_event_has_its_weight(event: HeatEvent, level: float) -> None:
    assert touched(COLD, event, 0).level == level


def test_heat_halves_every_eight_turns() -> None:
    heat = heated((HeatEvent.HANDLE_READ, 10))
    assert [heat.at(turn) for turn in (10, 18, 26)] == [3.0, 1.5, 0.75]


def test_a_turn_before_the_last_touch_reads_as_that_touch() -> None:
    heat = heated((HeatEvent.HANDLE_READ, 10))
    assert heat.at(3) == 3.0
    assert touched(heat, HeatEvent.KEYWORD_HIT_USED, 3).turn == 10


def test_showing_a_page_changes_nothing_so_that_shown_pages_do_not_feed_themselves() -> None:
    heat = heated((HeatEvent.CREATED, 0))
    shown = heat
    for turn in range(1, 100):
        shown = touched(shown, HeatEvent.SHOWN, turn)
    assert shown == heat


def test_a_page_seen_once_counts_half_until_its_second_access() -> None:
    once = heated((HeatEvent.CREATED, 0))
    twice = touched(once, HeatEvent.KEYWORD_HIT_USED, 0)
    thrice = touched(twice, HeatEvent.KEYWORD_HIT_USED, 1)
    assert (once.level, twice.level) == (0.5, 0.5 + 1.0 + 0.5)
    assert thrice.level == pytest.approx(twice.at(1) + 1.0)


def test_a_scan_of_many_files_leaves_each_colder_than_one_that_was_used_twice() -> None:
    scanned = heated((HeatEvent.CREATED, 9))
    used = heated((HeatEvent.CREATED, 0), (HeatEvent.KEYWORD_HIT_USED, 3))
    assert scanned.at(10) < used.at(10)


def test_a_batch_of_reads_in_one_turn_heats_by_three_at_most() -> None:
    heat = heated(*[(HeatEvent.HANDLE_READ, 4)] * 20)
    assert heat.level == 3.0
    assert touched(heat, HeatEvent.HANDLE_READ, 5).level == pytest.approx(heat.at(5) + 3.0)


def test_an_active_goal_counts_one_in_four_turns_and_is_no_access() -> None:
    heat = COLD
    gains = []
    for turn in range(8):
        before = heat.at(turn)
        heat = touched(heat, HeatEvent.GOAL_ACTIVE, turn)
        gains.append(round(heat.at(turn) - before, 9))
    assert gains == [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert heat.accesses == 0


@given(EVENTS)
def test_heat_is_bounded_never_negative_and_survives_json(steps: list[tuple[HeatEvent, int]]) -> None:
    heat, turn = COLD, 0
    for event, wait in steps:
        turn += wait
        heat = touched(heat, event, turn)
        assert 0.0 <= heat.gained <= HEAT_PARAMS.most_a_turn
        # Three a turn for ever, halved every eight turns, cannot pass this sum.
        assert 0.0 <= heat.level <= HEAT_PARAMS.most_a_turn / (1 - 2 ** (-1 / 8)) + 1e-9
    assert Heat.from_dict(json.loads(json.dumps(heat.to_dict()))) == heat


def test_a_goal_turn_survives_json() -> None:
    heat = heated((HeatEvent.GOAL_ACTIVE, 7))
    assert Heat.from_dict(json.loads(json.dumps(heat.to_dict()))) == heat


# -- thrashing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("faults", "turn", "thrashing"),
    [([1, 5, 10], 10, True), ([0, 5, 10], 10, False), ([5, 10], 10, False), ([8, 9, 11], 10, False)],
)
def test_three_faults_in_ten_turns_are_thrashing(faults: list[int], turn: int, thrashing: bool) -> None:
    assert is_thrashing(faults, turn) is thrashing


def test_a_thrashing_page_stays_for_eight_turns() -> None:
    history: FaultHistory[str] = FaultHistory()
    verdicts = [history.faulted("log", turn) for turn in (2, 6, 11)]
    assert [verdict.resident_until for verdict in verdicts] == [None, None, 18]
    assert verdicts[-1].reason == "3 faults in 10 turns: resident until turn 18"
    assert [history.is_resident("log", turn) for turn in (11, 18, 19)] == [True, True, False]
    assert not history.is_resident("other", 11)


def test_a_fault_soon_after_the_swap_was_a_hot_page() -> None:
    history: FaultHistory[int] = FaultHistory()
    for page, left, asked in ((1, 3, 8), (2, 3, 9)):
        history.swapped_out(page, left)
        assert history.faulted(page, asked).refetched is (asked - left <= 5)
    assert (history.fault_count, history.refetch_count) == (2, 1)


def test_one_swap_is_charged_once() -> None:
    history: FaultHistory[str] = FaultHistory()
    history.swapped_out("log", 3)
    assert [history.faulted("log", turn).refetched for turn in (4, 5)] == [True, False]


def test_the_reasons_are_words() -> None:
    history: FaultHistory[str] = FaultHistory()
    assert history.faulted("log", 0).reason == "fault"
    history.swapped_out("log", 1)
    assert history.faulted("log", 2).reason == "fetched again soon after it was swapped out: it was still hot"


def test_parts_of_one_file_read_over_and_over_are_pinned_for_the_run() -> None:
    """O18: stubbed before every call, the parts of one file were read again for ever."""
    history: FaultHistory[str] = FaultHistory()
    fetched = dict.fromkeys(("part 1", "part 2", "part 3"), 0)
    for turn in range(60):
        for part in fetched:
            if not history.is_resident(part, turn):
                history.swapped_out(part, turn)
                verdict = history.faulted(part, turn)
                fetched[part] += 1
    assert fetched == {"part 1": 2, "part 2": 2, "part 3": 2}
    assert verdict.pinned_for_run
    assert verdict.reason == "fetched again twice in this run: stays until the run ends"


def test_a_pin_ends_with_its_run() -> None:
    history: FaultHistory[str] = FaultHistory()
    for turn in (0, 1):
        history.swapped_out("log", turn)
        history.faulted("log", turn)
    assert history.is_resident("log", 5)
    history.start_run()
    assert not history.is_resident("log", 5)


def test_a_stay_that_is_over_is_not_told_again() -> None:
    history: FaultHistory[str] = FaultHistory(HeatParams(fault_window_turns=30))
    for turn in (0, 1, 2):
        history.faulted("log", turn)
    calm: FaultHistory[str] = FaultHistory.from_dict(history.to_dict(), HeatParams(fault_window_turns=3))
    assert calm.faulted("log", 12).resident_until is None


def test_old_faults_and_swaps_are_forgotten() -> None:
    history: FaultHistory[int] = FaultHistory()
    for page in range(500):
        history.swapped_out(page, page)
        history.faulted(page, page)
        history.swapped_out(page, page)
    sizes = {name: len(value) for name, value in history.to_dict().items() if isinstance(value, list)}
    assert sizes["faults"] <= 20
    assert sizes["swapped_out"] <= 20


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 4)), max_size=40), st.integers(0, 40))
def test_the_history_goes_on_after_a_restart_as_if_there_had_been_none(
    steps: list[tuple[str, bool, int]], restart: int
) -> None:
    whole: FaultHistory[str] = FaultHistory()
    split: FaultHistory[str] = FaultHistory()
    turn = 0
    for number, (page, leaves, wait) in enumerate(steps):
        turn += wait
        if number == restart:
            split = FaultHistory.from_dict(json.loads(json.dumps(split.to_dict())))
        if leaves:
            whole.swapped_out(page, turn)
            split.swapped_out(page, turn)
        else:
            assert whole.faulted(page, turn) == split.faulted(page, turn)
    assert whole == split
