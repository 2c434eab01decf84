"""Where a query belongs: the run, a topic named before, a stretch resumed, nothing known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.query import read_query
from context_gatekeeper.engine.session import Session
from context_gatekeeper.engine.topic_finder import TopicFinding, find_topic, is_minor
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores import open_store
from context_gatekeeper.types import TopicMove

APPLES = (
    ("How do I prune an apple tree?", "Prune an apple tree in late winter. Remove dead branches first."),
    ("Which saw suits thick apple branches?", "A folding pruning saw suits branches above three centimetres."),
    ("When does the apple tree flower?", "Apple trees flower in late April. Frost harms the blossom."),
)
NGINX = (
    ("How do I configure nginx as a reverse proxy?", "Use proxy_pass inside a location block of nginx."),
    ("Which nginx header forwards the client address?", "Set X-Forwarded-For in nginx with proxy_set_header."),
)
DAY = 86_400.0


class Talk:
    """A session whose topics are asked for; the border between apples and nginx is given."""

    def __init__(self, store: PageStore) -> None:
        self.pool = PagePool(store, "share", "talk")
        self.session = Session(self.pool)

    def fill(self) -> Talk:
        for turn_id, (user, assistant) in enumerate((*APPLES, *NGINX)):
            move = TopicMove.SWITCH if turn_id == len(APPLES) else TopicMove.CONTINUE
            self.session.add_turn(user, assistant, DAY, (None, None), known_move=move)
        return self

    def find(self, query: str, time: float | None = None) -> TopicFinding:
        reading = read_query(query, self.pool.postings, self.session.tracker)
        return find_topic(reading, self.pool, self.session.tracker, time)


@pytest.fixture(params=["memory", "sqlite"])
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    opened = open_store(None if request.param == "memory" else tmp_path / "pool.sqlite")
    yield Talk(opened)
    opened.close()


def test_without_history_there_is_no_topic(talk: Talk) -> None:
    finding = talk.find("How do I prune an apple tree?")
    assert (finding.topic, finding.reason, list(finding.allowed)) == ("none", "no history", [])
    assert finding.evidence.turn_count == 0


def test_a_query_that_points_back_belongs_to_the_run(talk: Talk) -> None:
    finding = talk.fill().find("Explain that again")
    assert (finding.topic, finding.verdict.move, finding.verdict.is_deictic) == ("running", TopicMove.CONTINUE, True)
    assert list(finding.allowed) == [3, 4]
    assert finding.names == finding.roots == frozenset()


def test_a_query_that_names_the_running_topic_goes_on_with_it(talk: Talk) -> None:
    finding = talk.fill().find("Which nginx directive sets the timeout?")
    assert (finding.topic, finding.verdict.move) == ("running", TopicMove.CONTINUE)
    assert finding.roots == {"nginx"}
    assert "nginx" in finding.names
    assert list(finding.allowed) == [3, 4]
    assert 2 not in finding.allowed


def test_a_query_that_names_an_older_topic_returns_to_its_turns(talk: Talk) -> None:
    finding = talk.fill().find("How do I prune an apple tree?")
    assert (finding.topic, finding.verdict.move) == ("known", TopicMove.SWITCH)
    assert finding.roots == {"appl"}
    assert list(finding.allowed) == [0, 1, 2]
    assert len(finding.allowed) == 3
    assert "0" not in finding.allowed


def test_a_query_about_something_said_returns_to_the_stretch_that_holds_it(talk: Talk) -> None:
    finding = talk.fill().find("What did you say about frost earlier?")
    assert (finding.topic, finding.reason) == ("known", "returns to turns 0-2")
    assert list(finding.allowed) == [0, 1, 2]


def test_a_query_of_which_nothing_was_seen_is_new(talk: Talk) -> None:
    finding = talk.fill().find("By the way, how long does sourdough ferment?")
    assert (finding.topic, finding.verdict.move) == ("new", TopicMove.SWITCH)
    assert list(finding.allowed) == []


def test_the_two_ratios_share_out_the_weight_of_the_query(talk: Talk) -> None:
    talk.fill()
    for query in ("Which nginx header?", "nginx sourdough", "How does sourdough ferment?"):
        evidence = talk.find(query).evidence
        assert evidence.anchor_overlap_ratio + evidence.new_token_ratio == pytest.approx(1.0)
    assert talk.find("nginx header").evidence.anchor_overlap_ratio == pytest.approx(1.0)
    assert talk.find("sourdough").evidence.anchor_overlap_ratio == 0.0
    blank = talk.find("").evidence
    assert (blank.anchor_overlap_ratio, blank.new_token_ratio, blank.anchor_count) == (0.0, 0.0, 0)


def test_what_was_said_before_the_run_is_no_active_anchor(talk: Talk) -> None:
    evidence = talk.fill().find("apple branches").evidence
    assert (evidence.anchor_overlap_ratio, evidence.run_overlap_ratio, evidence.shares_content) == (0.0, 0.0, False)
    assert evidence.older_match > 0.9


def test_only_the_last_three_turns_of_the_run_are_active(talk: Talk) -> None:
    talk.session.add_turn("Tell me about kingfishers", "They dive.", None, (None, None))
    for _ in range(3):
        talk.session.add_turn("And?", "Well.", None, (None, None), known_move=TopicMove.CONTINUE)
    evidence = talk.find("kingfishers").evidence
    assert evidence.anchor_overlap_ratio == 0.0
    assert evidence.run_overlap_ratio == pytest.approx(1.0)


def test_the_evidence_knows_the_day_the_script_and_the_last_answer(talk: Talk) -> None:
    talk.fill()
    assert talk.find("nginx", 2 * DAY).evidence.is_new_day is True
    assert talk.find("nginx", DAY + 1).evidence.is_new_day is False
    assert talk.find("nginx").evidence.is_new_day is None
    assert talk.find("反向代理怎么配置？").evidence.changes_script
    assert not talk.find("nginx").evidence.changes_script
    assert talk.find("nginx").evidence.is_answered
    talk.session.add_turn("nginx again?", "", None, (None, None))
    assert not talk.find("nginx").evidence.is_answered


def test_finding_a_topic_changes_nothing(talk: Talk) -> None:
    talk.fill()
    for query in ("Explain that again", "How do I prune an apple tree?", "sourdough"):
        first, second = talk.find(query), talk.find(query)
        assert (first.verdict, first.evidence, list(first.allowed)) == (
            second.verdict,
            second.evidence,
            list(second.allowed),
        )
    assert (talk.session.tracker.turn_count, list(talk.session.tracker.segment_starts)) == (5, [0, 3])


def test_a_word_of_a_third_of_the_messages_is_minor(talk: Talk) -> None:
    tracker = talk.session.tracker
    for user in ("kingfisher", "kingfisher heron"):
        talk.session.add_turn(user, user, None, (None, None), known_move=TopicMove.CONTINUE)
    assert not is_minor("heron", "kingfish", tracker)
    talk.session.add_turn("kingfisher", "kingfisher", None, (None, None), known_move=TopicMove.CONTINUE)
    assert is_minor("heron", "kingfish", tracker)
    assert not is_minor("kingfish", "heron", tracker)
