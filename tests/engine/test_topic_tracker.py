"""What a session is about, kept turn by turn and rebuilt from its pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.session import Session
from context_gatekeeper.engine.topic_tracker import TopicTracker, TurnNotes, key_candidates
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores import open_store
from context_gatekeeper.types import TopicMove

DAY = 86_400.0


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PageStore]:
    opened = open_store(None if request.param == "memory" else tmp_path / "pool.sqlite")
    yield opened
    opened.close()


def talked(
    store: PageStore,
    moves: str,
    times: tuple[float | None, ...] = (),
    speakers: tuple[str | None, str | None] = (None, None),
) -> TopicTracker:
    """A session with one turn for each letter of ``moves``: ``s`` switches, ``c`` continues."""
    session = Session(PagePool(store, "share", "talk"))
    for turn_id, letter in enumerate(moves):
        move = TopicMove.SWITCH if letter == "s" else TopicMove.CONTINUE
        time = times[turn_id] if times else None
        session.add_turn(f"kingfisher question {turn_id}", "A kingfisher.", time, speakers, known_move=move)
    return session.tracker


def test_a_fresh_tracker_knows_nothing() -> None:
    tracker = TopicTracker()
    assert (tracker.turn_count, tracker.run_start, tracker.recent_switches()) == (0, 0, 0)
    assert tracker.is_new_day(1.0) is None


def test_each_switch_starts_a_segment(store: PageStore) -> None:
    tracker = talked(store, "ccsccs")
    assert list(tracker.segment_starts) == [0, 2, 5]
    assert list(tracker.segment_of) == [0, 0, 1, 1, 1, 2]
    assert [tracker.segment_turns(segment) for segment in range(3)] == [range(2), range(2, 5), range(5, 6)]
    assert (tracker.run_start, tracker.turn_count) == (5, 6)


def test_the_first_turn_is_no_switch(store: PageStore) -> None:
    assert talked(store, "s").recent_switches() == 0


def test_switches_count_for_six_turns(store: PageStore) -> None:
    tracker = talked(store, "csccccc")
    assert tracker.recent_switches() == 1
    assert talked(open_store(), "cscccccc").recent_switches() == 0


def test_days_are_those_of_utc_and_part_sittings(store: PageStore) -> None:
    tracker = talked(store, "ccccc", (DAY, 2 * DAY - 1, 2 * DAY, None, 4 * DAY))
    assert list(tracker.sitting_of) == [0, 0, 1, 1, 2]
    assert tracker.is_new_day(5 * DAY - 1) is False
    assert tracker.is_new_day(5 * DAY) is True
    assert tracker.is_new_day(None) is None


def test_a_turn_without_a_time_keeps_the_last_known_one(store: PageStore) -> None:
    assert talked(store, "cc", (DAY, None)).last_time == DAY


@pytest.mark.parametrize("speakers", [("Ann", None), (None, "Ben")])
def test_one_named_speaker_makes_it_talk_between_persons(
    store: PageStore, speakers: tuple[str | None, str | None]
) -> None:
    assert not talked(open_store(), "c").names_speakers
    assert talked(store, "c", speakers=speakers).names_speakers


def test_a_tracker_rebuilt_from_the_pages_is_the_live_one(store: PageStore) -> None:
    live = talked(store, "ccsccsc", (None, DAY, DAY, 2 * DAY, None, 3 * DAY, 3 * DAY), ("Ann", None))
    session = Session(PagePool(store, "share", "talk"))
    session.catch_up()
    rebuilt = session.tracker
    for name in ("segment_of", "segment_starts", "sitting_of", "last_time", "last_form", "names_speakers", "seam"):
        assert getattr(rebuilt, name) == getattr(live, name), name
    for turn_id in range(live.turn_count):
        assert rebuilt.keys.own_roots(turn_id) == live.keys.own_roots(turn_id)
    assert rebuilt.keys.message_count("kingfish") == live.keys.message_count("kingfish") == 7


def test_notes_survive_json() -> None:
    notes = TurnNotes(True, ("kingfish", "heron"), frozenset({"heron"}), {"kingfish": "heron", "heron": None})
    assert TurnNotes.from_dict(json.loads(json.dumps(notes.to_dict()))) == notes
    assert TurnNotes.from_dict({}) == TurnNotes(False)


def test_a_number_is_no_topic_key() -> None:
    scan = scan_anchors("The kingfisher has 4711 feathers")
    assert any(term == "4711" for term in scan.counts)
    assert "4711" not in key_candidates(scan)
    assert "kingfish" in key_candidates(scan)


@pytest.mark.parametrize("text", ["apple kingfisher", "kingfisher apple"])
def test_the_rarer_of_two_words_is_the_first_candidate(text: str) -> None:
    assert key_candidates(scan_anchors(text)) == ("kingfish", "appl")


def test_a_name_is_inherited_inside_its_run_and_for_twelve_turns(store: PageStore) -> None:
    session = Session(PagePool(store, "share", "talk"))
    for turn_id in range(16):
        move = TopicMove.SWITCH if turn_id == 14 else TopicMove.CONTINUE
        session.add_turn("And?", "Well.", None, (None, None), known_move=move)
    named, roots = frozenset({0, 13}), frozenset({"kingfish"})
    heirs = [turn_id for turn_id in range(16) if session.tracker.inherits(turn_id, named, roots)]
    assert heirs == [*range(12), 13]


# -- seams -------------------------------------------------------------------------------------

BIRDS = ("Kingfishers dive", "They eat trout.")
UNTIED = ("Granite weathers", "Feldspar goes first.")
TROMBONE = ("Trombones shine", "Brass does.")


def seams(store: PageStore, *turns: tuple[str, str], switches: tuple[int, ...] = ()) -> list[int]:
    """The seam behind each turn, as it is kept live and as each of a row of later sessions finds it."""
    live = Session(PagePool(store, "share", "talk"))
    found = []
    for turn_id, (user, assistant) in enumerate(turns):
        move = TopicMove.SWITCH if turn_id in switches else TopicMove.CONTINUE
        live.add_turn(user, assistant, DAY, ("Ann", "Ben"), known_move=move)
        later = Session(PagePool(store, "share", "talk"))
        later.catch_up()
        assert later.tracker.seam == live.tracker.seam, "restored from its pages"
        found.append(live.tracker.seam)
    return found


def test_a_turn_that_nothing_ties_to_the_one_before_is_a_seam(store: PageStore) -> None:
    assert seams(store, BIRDS, UNTIED, TROMBONE) == [0, 1, 2]


@pytest.mark.parametrize(
    "user",
    [
        "Do kingfishers sing?",
        "Do otters like trout?",
        "The same granite",
        "Granite instead?",
        "Again granite",
        "And?",
        "",
    ],
    ids=["shares an asked word", "shares an answered word", "points back", "leads on", "deictic", "no word", "empty"],
)
def test_a_turn_that_shares_a_word_points_back_or_has_no_word_of_its_own_is_tied(store: PageStore, user: str) -> None:
    assert seams(store, UNTIED, BIRDS, (user, "Obsidian gleams."), TROMBONE) == [0, 1, 1, 3]


def test_only_the_turn_before_ties(store: PageStore) -> None:
    assert seams(store, BIRDS, ("Tell them", "Well."), BIRDS) == [0, 0, 2]


def test_what_only_the_answer_shares_ties_nothing(store: PageStore) -> None:
    assert seams(store, BIRDS, ("Granite weathers", "Kingfishers dive.")) == [0, 1]


def test_everyday_words_tie_nothing(store: PageStore) -> None:
    assert seams(store, ("Is the kingfisher a good one?", "It is."), ("Is the granite a good one?", "It is.")) == [0, 1]


def test_each_segment_begins_with_a_seam(store: PageStore) -> None:
    assert seams(store, BIRDS, BIRDS, BIRDS, ("And then?", "Well."), BIRDS, switches=(2,)) == [0, 0, 2, 2, 4]


def test_a_session_that_was_restored_goes_on_from_its_seam(store: PageStore) -> None:
    assert seams(store, UNTIED, BIRDS) == [0, 1]
    for user, seam in (("Do kingfishers sing?", 1), ("Trombones shine", 3)):
        later = Session(PagePool(store, "share", "talk"))
        later.catch_up()
        later.add_turn(user, "Indeed.", DAY, ("Ann", "Ben"), known_move=TopicMove.CONTINUE)
        assert later.tracker.seam == seam
