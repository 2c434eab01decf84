"""Where a query belongs: the run, a topic named before, a stretch resumed, nothing known."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from context_gatekeeper.core.topic_gate import NamedRoot
from context_gatekeeper.engine import topic_finder
from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.query import read_query
from context_gatekeeper.engine.session import Session
from context_gatekeeper.engine.topic_finder import CLEAR_POINTS, TopicFinding, find_topic, is_minor
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores import open_store
from context_gatekeeper.types import TopicMove

Stretch = tuple[tuple[str, str], ...]

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

    def hear(self, *stretches: Stretch) -> Talk:
        """Add stretches of talk, each a topic of its own."""
        for stretch in stretches:
            for place, (user, assistant) in enumerate(stretch):
                move = TopicMove.CONTINUE if place else TopicMove.SWITCH
                self.session.add_turn(user, assistant, DAY, (None, None), known_move=move)
        return self

    def find(self, query: str, time: float | None = None) -> TopicFinding:
        reading = read_query(query, self.pool.postings, self.session.tracker)
        return find_topic(reading, self.pool, self.session.tracker, time)


def listed(finding: TopicFinding) -> list[int]:
    """Turns of a finding that can be counted, as it counts them."""
    assert isinstance(finding.allowed, Collection)
    turns = list(finding.allowed)
    assert len(finding.allowed) == len(turns)
    assert all(turn_id in finding.allowed for turn_id in turns)
    return turns


def allowed_turns(talk: Talk, finding: TopicFinding) -> list[int]:
    """Turns of the session that a finding allows."""
    return [turn_id for turn_id in range(talk.session.tracker.turn_count) if turn_id in finding.allowed]


@pytest.fixture(params=["memory", "sqlite"])
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    opened = open_store(None if request.param == "memory" else tmp_path / "pool.sqlite")
    yield Talk(opened)
    opened.close()


def test_without_history_there_is_no_topic(talk: Talk) -> None:
    finding = talk.find("How do I prune an apple tree?")
    assert (finding.topic, finding.reason, listed(finding)) == ("none", "no history", [])
    assert finding.evidence.turn_count == 0


def test_a_query_that_points_back_belongs_to_the_run(talk: Talk) -> None:
    finding = talk.fill().find("Explain that again")
    assert (finding.topic, finding.verdict.move, finding.verdict.is_deictic) == ("running", TopicMove.CONTINUE, True)
    assert listed(finding) == [3, 4]
    assert finding.names == finding.roots == frozenset()


def test_a_query_that_names_the_running_topic_goes_on_with_it(talk: Talk) -> None:
    finding = talk.fill().find("Which nginx directive sets the timeout?")
    assert (finding.topic, finding.verdict.move) == ("running", TopicMove.CONTINUE)
    assert finding.roots == {"nginx"}
    assert "nginx" in finding.names
    assert listed(finding) == [3, 4]
    assert 2 not in finding.allowed


def test_a_query_that_names_an_older_topic_returns_to_its_turns(talk: Talk) -> None:
    finding = talk.fill().find("How do I prune an apple tree?")
    assert (finding.topic, finding.verdict.move) == ("known", TopicMove.SWITCH)
    assert finding.roots == {"appl"}
    assert listed(finding) == [0, 1, 2]
    for no_turn in (3, "0", None):
        assert no_turn not in finding.allowed


def test_a_query_about_something_said_returns_to_the_stretch_that_holds_it(talk: Talk) -> None:
    finding = talk.fill().find("What did you say about frost earlier?")
    assert (finding.topic, finding.reason) == ("known", "returns to turns 0-2")
    assert listed(finding) == [0, 1, 2]


def test_a_query_of_which_nothing_was_seen_is_new(talk: Talk) -> None:
    finding = talk.fill().find("By the way, how long does sourdough ferment?")
    assert (finding.topic, finding.verdict.move) == ("new", TopicMove.SWITCH)
    assert listed(finding) == []


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
        assert (first.verdict, first.evidence, listed(first)) == (
            second.verdict,
            second.evidence,
            listed(second),
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


# -- topics that were touched, stretches that are resumed ------------------------------------

SOURDOUGH: Stretch = (("Which sourdough flour is best?", "Strong wheat, sold by mills."),)
MARZIPAN: Stretch = (("Which marzipan is best?", "One of almonds."),)
APPLES_ZH: Stretch = (
    ("苹果树怎么修剪？", "冬末修剪苹果树，先去掉枯枝。"),
    ("苹果树什么时候开花？", "四月下旬开花，霜冻会伤花。"),
)
NGINX_ZH: Stretch = (
    ("nginx 反向代理怎么配置？", "在 location 里写 proxy_pass。"),
    ("nginx 超时怎么设？", "用 proxy_read_timeout。"),
)
BREAD_ZH: Stretch = (("酸面包用什么面粉？", "高筋小麦粉，磨坊有卖。"),)
KEEPING = "By the way, how long does a loaf of sourdough keep in a linen bag on the kitchen shelf?"
RARE = ("kingfisher", "obsidian", "trombone", "lighthouse", "saffron", "walrus", "tamarind", "bobsled", "quartz")


def answered(words: tuple[str, ...]) -> Stretch:
    """A stretch in which only the answer holds ``words``."""
    return (("And what else?", f"The {' and the '.join(words)}."),)


@pytest.mark.parametrize(
    ("stretches", "query", "turns", "name"),
    [
        ((APPLES, SOURDOUGH, NGINX), KEEPING, [3], "sourdough"),
        ((APPLES_ZH, BREAD_ZH, NGINX_ZH), "对了，酸面包放在亚麻布袋里在厨房架子上能保存多久？", [2], "酸面包"),
    ],
    ids=["en", "zh"],
)
def test_a_topic_touched_once_is_found_at_its_second_mention(
    talk: Talk, stretches: tuple[Stretch, ...], query: str, turns: list[int], name: str
) -> None:
    finding = talk.hear(*stretches).find(query)
    assert finding.evidence.older_match < 0.4
    assert (finding.topic, finding.roots) == ("known", frozenset())
    assert finding.reason.startswith("asked about ")
    assert name in finding.names
    assert allowed_turns(talk, finding) == turns


@pytest.mark.parametrize(
    ("stretches", "query"),
    [
        ((APPLES, SOURDOUGH, NGINX), "By the way, do mills deliver linen bags to kitchen shelves?"),
        ((APPLES_ZH, BREAD_ZH, NGINX_ZH), "对了，磨坊送亚麻布袋到厨房架子吗？"),
    ],
    ids=["en", "zh"],
)
def test_a_word_of_the_answer_alone_was_not_asked_about(talk: Talk, stretches: tuple[Stretch, ...], query: str) -> None:
    finding = talk.hear(*stretches).find(query)
    assert finding.evidence.older_match > 0.0
    assert (finding.topic, allowed_turns(talk, finding)) == ("new", [])


def test_stretches_that_hold_alike_of_what_was_asked_are_united(talk: Talk) -> None:
    talk.hear(APPLES, SOURDOUGH, NGINX, MARZIPAN, NGINX)
    finding = talk.find("By the way, how do bakers pair sourdough with marzipan on a kitchen shelf in linen bags?")
    assert finding.reason == "asked about marzipan, sourdough"
    assert finding.names == {"marzipan", "sourdough"}
    assert allowed_turns(talk, finding) == [3, 6]


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (0, "asked about sourdough"),
        (1, "nothing older is like it"),
    ],
    ids=["short", "long"],
)
def test_a_touched_topic_is_found_again_in_a_short_stretch_only(talk: Talk, extra: int, reason: str) -> None:
    details = ("hydration", "salt", "ovens", "steam", "crusts", "crumbs", "scoring", "shaping", "baskets", "malt")
    asides = tuple((f"And what of {word}?", f"Mind the {word}.") for word in details)
    stretch = (*SOURDOUGH, *asides[: topic_finder.TOUCHED_TURNS - 1 + extra])
    assert len(stretch) == topic_finder.TOUCHED_TURNS + extra
    assert talk.hear(APPLES, stretch, NGINX).find(KEEPING).reason == reason


def test_a_word_that_the_run_was_asked_about_too_does_not_stand_out(talk: Talk) -> None:
    talk.hear(APPLES, SOURDOUGH, (*NGINX, ("Does sourdough matter?", "No."), *NGINX, *NGINX))
    finding = talk.find(KEEPING)
    assert (finding.topic, finding.evidence.shares_content) == ("new", False)


def test_a_switch_that_is_not_clear_is_no_return_to_a_touched_word(talk: Talk) -> None:
    """Clear or not depends on the fitted table, so many queries are tried; with a cue each of them is clear."""
    talk.hear(APPLES, SOURDOUGH, NGINX)
    known, new = "header forwards the client address".split(), "linen bag on the kitchen shelf of grandmother".split()
    clear, unclear = 0, 0
    for asked, time in (
        (f"{lead} {' '.join(known[:most])} keep sourdough {' '.join(new[:more])}?", time)
        for lead in ("Does the", "And the", "Hello! Is the")
        for most in range(6)
        for more in range(1, 9)
        for time in (None, DAY, 2 * DAY)
    ):
        finding = talk.find(asked, time)
        is_touched = finding.reason.startswith("asked about ")
        if finding.verdict.move is not TopicMove.SWITCH or finding.reason.startswith("returns to"):
            assert not is_touched
        elif finding.verdict.points >= CLEAR_POINTS:
            clear += 1
            assert is_touched, asked
        else:
            unclear += 1
            assert (is_touched, finding.topic) == (False, "new"), asked
            assert talk.find(f"By the way, {asked}", time).reason.startswith("asked about "), asked
    assert clear
    assert unclear


def test_an_older_name_said_in_passing_leaves_the_run_whole_where_the_gate_clearly_goes_on(talk: Talk) -> None:
    """Where it is not clear, turns of the run that name another topic are left out."""
    talk.hear(APPLES, NGINX)
    known, new = "address client header forwards".split(), "linen bag on the kitchen shelf of grandmother".split()
    clear, unclear = 0, 0
    for asked, time in (
        (f"{lead} {' '.join(known[:most])} on the apple tree {' '.join(new[:more])}{end}", time)
        for lead in ("Does the", "The", "Hello! Is the")
        for most in range(5)
        for more in range(9)
        for end in ("?", ".")
        for time in (None, DAY, 2 * DAY)
    ):
        finding = talk.find(asked, time)
        evidence = finding.evidence
        if finding.verdict.move is TopicMove.SWITCH or evidence.named_root is not NamedRoot.OLDER:
            continue
        assert finding.topic == "running"
        if finding.verdict.points <= -CLEAR_POINTS:
            clear += 1
            assert (finding.roots, allowed_turns(talk, finding)) == (frozenset(), [3, 4]), asked
        else:
            unclear += 1
            assert (set(finding.roots), allowed_turns(talk, finding)) == ({"appl"}, []), asked
    assert clear
    assert unclear


@pytest.mark.parametrize(
    ("second", "topic", "turns"), [(3, "known", [3]), (4, "new", [])], ids=["alone", "beside another"]
)
def test_a_stretch_that_alone_holds_a_good_part_is_resumed(
    talk: Talk, second: int, topic: str, turns: list[int]
) -> None:
    talk.hear(APPLES, answered(RARE[:4]), NGINX, answered(RARE[4 : 4 + second]), NGINX)
    finding = talk.find(f"By the way, {' '.join(RARE)}")
    assert finding.evidence.older_match == pytest.approx(4 / 9)
    assert (finding.topic, allowed_turns(talk, finding)) == (topic, turns)
    assert finding.reason == ("returns to turns 3-3" if turns else "nothing older is like it")


def test_a_stretch_that_alone_holds_little_is_not_resumed(talk: Talk) -> None:
    finding = talk.hear(APPLES, answered(RARE[:3]), NGINX).find(f"By the way, {' '.join(RARE)}")
    assert finding.evidence.older_match == pytest.approx(3 / 9)
    assert finding.topic == "new"


def test_a_question_about_something_said_looks_into_the_stretches_that_hold_as_much_as_the_best(talk: Talk) -> None:
    talk.hear(APPLES, answered(RARE[:2]), NGINX, answered(RARE[2:4]), answered(RARE[:1]), NGINX)
    recap = talk.find(f"By the way, what did we say before: {' '.join(RARE)}")
    assert (recap.topic, recap.reason) == ("known", "asks about something said")
    assert allowed_turns(talk, recap) == [3, 6]
    assert talk.find(f"By the way, what of these: {' '.join(RARE)}").topic == "new"


def test_a_recap_of_the_running_topic_looks_into_its_older_turns_too(talk: Talk) -> None:
    talk.hear(NGINX, APPLES, NGINX, APPLES)
    recap = talk.find("Remind me what you said about the apple tree earlier")
    assert (recap.topic, recap.roots) == ("running", frozenset({"appl"}))
    assert allowed_turns(talk, recap) == [2, 3, 4, 7, 8, 9]
    assert allowed_turns(talk, talk.find("How tall does an apple tree grow?")) == [7, 8, 9]


@pytest.mark.parametrize(("times", "named"), [(1, NamedRoot.OLDER), (8, NamedRoot.NONE)])
def test_a_name_that_is_minor_beside_the_running_topic_names_none(talk: Talk, times: int, named: NamedRoot) -> None:
    finding = talk.hear(APPLES, NGINX * times).find("By the way, where does the apple come from?")
    assert finding.evidence.named_root is named
    assert finding.roots == ({"appl"} if named is NamedRoot.OLDER else frozenset())


def test_the_evidence_tells_how_telling_shared_and_new_words_are(talk: Talk) -> None:
    talk.fill()
    both = talk.find("nginx sourdough").evidence
    shared, new = talk.find("nginx").evidence, talk.find("sourdough").evidence
    assert both.shared_background == shared.shared_background > 0.0 == shared.new_background
    assert both.new_background == new.new_background > 0.0 == new.shared_background


def test_the_evidence_compares_the_length_with_the_last_user_message(talk: Talk) -> None:
    assert talk.find("nginx").evidence.length_ratio == 1.0
    last = talk.fill().session.tracker.turn_count - 1
    size = len(talk.pool.turn(last).user.text)
    assert talk.find("x" * size).evidence.length_ratio == pytest.approx(1.0)
    assert talk.find("x" * (2 * size + 1)).evidence.length_ratio == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("user", "assistant", "asks"),
    [
        ("Which port?", "Port 80.", False),
        ("A port", "Which port? ", True),
        ("端口", "哪个端口？", True),
        ("Which port?", " ", True),
        ("A port", "", False),
    ],
)
def test_the_evidence_knows_whether_the_last_text_asks(talk: Talk, user: str, assistant: str, asks: bool) -> None:
    talk.session.add_turn(user, assistant, None, (None, None))
    assert talk.find("nginx").evidence.answer_asks is asks
