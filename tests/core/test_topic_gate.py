"""The topic gate: every rule, in its order, on evidence made by hand."""

from __future__ import annotations

from dataclasses import fields, replace
from math import log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core import topic_gate
from context_gatekeeper.core.query_form import QueryForm
from context_gatekeeper.core.topic_gate import (
    GATE_PARAMS,
    LEAVING_PARAMS,
    GateEvidence,
    GateParams,
    LeavingParams,
    NamedRoot,
    gate_features,
    gate_topic,
    sum_points,
)
from context_gatekeeper.types import TopicMove

PLAIN_FORM = QueryForm(
    is_deictic=False,
    points_back=False,
    leads_on=False,
    recalls=False,
    chooses=False,
    has_change_cue=False,
    asks=False,
    greets=False,
    closes=False,
    is_han=False,
    word_count=9,
    is_long=False,
)
PLAIN = GateEvidence(
    turn_count=5,
    anchor_count=3,
    form=PLAIN_FORM,
    anchor_overlap_ratio=0.0,
    new_token_ratio=1.0,
    shares_content=False,
    new_content=0.0,
    content_count=0,
    named_root=NamedRoot.NONE,
    previous_closes=False,
    recent_switches=0,
    older_match=0.0,
    run_overlap_ratio=0.0,
    changes_script=False,
)
ROWS = [row.name for row in fields(GateParams)]
LEAVING_ROWS = [row.name for row in fields(LeavingParams)]
NO_POINTS = GateParams(**dict.fromkeys(ROWS, 0.0))
ALWAYS = replace(NO_POINTS, constant=1.0)
NEVER = replace(NO_POINTS, constant=-1.0)
NO_LEAVING = LeavingParams(**dict.fromkeys(LEAVING_ROWS, 0.0))
LEAVES = replace(NO_LEAVING, constant=1.0)
STAYS = replace(NO_LEAVING, constant=-1.0)

RATIO = st.floats(0.0, 1.0)
FORMS = st.builds(QueryForm, word_count=st.integers(0, 10_000))
EVIDENCE = st.builds(
    GateEvidence,
    turn_count=st.integers(0, 1000),
    anchor_count=st.integers(0, 1000),
    form=FORMS,
    anchor_overlap_ratio=RATIO,
    new_token_ratio=RATIO,
    new_content=st.floats(0.0, 1e6),
    content_count=st.integers(0, 1000),
    recent_switches=st.integers(0, 6),
    older_match=RATIO,
    run_overlap_ratio=RATIO,
    last_overlap_ratio=RATIO,
    new_background=RATIO,
    length_ratio=st.floats(0.0, 1e6),
)


def with_form(**changes: Any) -> GateEvidence:
    return replace(PLAIN, form=replace(PLAIN_FORM, **changes))


def test_the_documented_thresholds_keep_their_values() -> None:
    assert topic_gate.OVERLAP_CONTINUE_THRESHOLD == 0.45
    assert topic_gate.OVERLAP_SWITCH_THRESHOLD == 0.20
    assert topic_gate.NEW_RATIO_SWITCH_THRESHOLD == 0.70


def test_without_history_the_topic_continues_even_on_an_explicit_cue() -> None:
    verdict = gate_topic(replace(with_form(has_change_cue=True), turn_count=0), ALWAYS)
    assert (verdict.move, verdict.reason, verdict.points) == (TopicMove.CONTINUE, "no history", 0.0)


def test_without_anchors_the_topic_continues_even_on_an_explicit_cue() -> None:
    verdict = gate_topic(replace(with_form(has_change_cue=True), anchor_count=0), ALWAYS)
    assert (verdict.move, verdict.reason, verdict.points) == (TopicMove.CONTINUE, "no anchors", 0.0)


@pytest.mark.parametrize("named_root", [NamedRoot.NONE, NamedRoot.OLDER])
def test_an_explicit_cue_switches_whatever_the_overlap(named_root: NamedRoot) -> None:
    evidence = replace(with_form(has_change_cue=True), anchor_overlap_ratio=1.0, named_root=named_root)
    verdict = gate_topic(evidence, NEVER)
    assert (verdict.move, verdict.reason) == (TopicMove.SWITCH, "explicit change of subject")


def test_a_cue_that_names_the_running_topic_does_not_switch() -> None:
    verdict = gate_topic(replace(with_form(has_change_cue=True), named_root=NamedRoot.RUNNING), NEVER)
    assert (verdict.move, verdict.reason) == (TopicMove.CONTINUE, "not enough for a switch")


@pytest.mark.parametrize(
    ("overlap", "named_root", "move", "reason"),
    [
        (0.46, NamedRoot.NONE, TopicMove.CONTINUE, "overlap above threshold"),
        (0.46, NamedRoot.RUNNING, TopicMove.CONTINUE, "overlap above threshold"),
        (0.45, NamedRoot.NONE, TopicMove.SWITCH, "points"),
        (0.46, NamedRoot.OLDER, TopicMove.SWITCH, "points"),
        (1.00, NamedRoot.OLDER, TopicMove.SWITCH, "points"),
    ],
)
def test_overlap_over_the_threshold_continues_unless_an_older_topic_is_named(
    overlap: float, named_root: NamedRoot, move: TopicMove, reason: str
) -> None:
    verdict = gate_topic(replace(PLAIN, anchor_overlap_ratio=overlap, named_root=named_root), ALWAYS)
    assert (verdict.move, verdict.reason) == (move, reason)


@pytest.mark.parametrize(
    ("overlap", "new", "reason"),
    [
        (0.19, 0.71, "new anchors"),
        (0.20, 0.71, "points"),
        (0.19, 0.70, "points"),
        (0.00, 1.00, "new anchors"),
        (0.40, 0.60, "points"),
    ],
)
def test_a_switch_by_points_names_the_documented_zone_only_inside_it(overlap: float, new: float, reason: str) -> None:
    verdict = gate_topic(replace(PLAIN, anchor_overlap_ratio=overlap, new_token_ratio=new), ALWAYS)
    assert (verdict.move, verdict.reason, verdict.points) == (TopicMove.SWITCH, reason, 1.0)


@pytest.mark.parametrize(("is_deictic", "reason"), [(True, "deictic"), (False, "not enough for a switch")])
def test_too_few_points_continue_and_a_deictic_query_says_so(is_deictic: bool, reason: str) -> None:
    verdict = gate_topic(with_form(is_deictic=is_deictic), NEVER)
    assert (verdict.move, verdict.reason, verdict.points) == (TopicMove.CONTINUE, reason, -1.0)
    assert verdict.is_deictic is is_deictic


@given(EVIDENCE)
def test_a_tie_never_switches_without_an_explicit_cue(evidence: GateEvidence) -> None:
    verdict = gate_topic(replace(evidence, form=replace(evidence.form, has_change_cue=False)), NO_POINTS)
    assert verdict.move is TopicMove.CONTINUE
    assert verdict.points == 0.0


def test_the_verdict_reports_both_ratios() -> None:
    verdict = gate_topic(replace(PLAIN, anchor_overlap_ratio=0.3, new_token_ratio=0.6))
    assert (verdict.anchor_overlap_ratio, verdict.new_token_ratio) == (0.3, 0.6)


def test_the_points_are_weighed_by_the_table_that_is_given() -> None:
    table = replace(NO_POINTS, constant=-3.0, words=1.0, new_day=2.0, changes_script=4.0)
    assert gate_topic(PLAIN, table).points == pytest.approx(-3.0 + log(10.0))
    assert gate_topic(PLAIN, table).move is TopicMove.CONTINUE
    verdict = gate_topic(replace(PLAIN, is_new_day=True, changes_script=True), table)
    assert verdict.points == pytest.approx(3.0 + log(10.0))
    assert verdict.move is TopicMove.SWITCH


@pytest.mark.parametrize(("leaving", "is_soft"), [(LEAVES, False), (NO_LEAVING, True), (STAYS, True)])
def test_a_switch_by_points_is_soft_unless_the_smaller_table_says_that_it_leaves(
    leaving: LeavingParams, is_soft: bool
) -> None:
    verdict = gate_topic(PLAIN, ALWAYS, leaving)
    assert (verdict.move, verdict.is_soft) == (TopicMove.SWITCH, is_soft)


def test_the_points_of_leaving_are_those_of_the_smaller_table_that_is_given() -> None:
    leaving = replace(NO_LEAVING, constant=-3.0, new_day=2.0, changes_script=2.0)
    for days, scripts, is_soft in ((True, True, False), (True, False, True), (False, True, True)):
        evidence = replace(PLAIN, is_new_day=days, changes_script=scripts)
        verdict = gate_topic(evidence, ALWAYS, leaving)
        assert (verdict.points, verdict.is_soft) == (1.0, is_soft), "the smaller table adds nothing to the points"


@pytest.mark.parametrize("leaving", [STAYS, NO_LEAVING])
def test_an_explicit_change_of_subject_is_never_soft(leaving: LeavingParams) -> None:
    verdict = gate_topic(with_form(has_change_cue=True), ALWAYS, leaving)
    assert (verdict.reason, verdict.is_soft) == ("explicit change of subject", False)


@pytest.mark.parametrize(
    "evidence",
    [
        replace(PLAIN, turn_count=0),
        replace(PLAIN, anchor_count=0),
        replace(PLAIN, anchor_overlap_ratio=0.9),
        PLAIN,
        with_form(is_deictic=True),
    ],
    ids=["no history", "no anchors", "overlap", "points", "deictic"],
)
def test_what_continues_is_never_soft(evidence: GateEvidence) -> None:
    verdict = gate_topic(evidence, NEVER, STAYS)
    assert (verdict.move, verdict.is_soft) == (TopicMove.CONTINUE, False)


def test_features_and_table_have_the_same_rows() -> None:
    assert set(gate_features(PLAIN)) == set(ROWS)


def test_the_smaller_table_has_rows_of_the_table_only_and_not_all() -> None:
    assert set(LEAVING_ROWS) < set(ROWS)


def test_the_sum_of_a_table_leaves_out_the_rows_that_it_does_not_have() -> None:
    features = {name: float(place + 1) for place, name in enumerate(ROWS)}
    for table, rows in ((GateParams, ROWS), (LeavingParams, LEAVING_ROWS)):
        for name in rows:
            points = dict.fromkeys(rows, 0.0) | {name: 3.0}
            assert sum_points(features, table(**points)) == 3.0 * features[name], name
    assert sum_points(features, LEAVES) == features["constant"]


def test_a_plain_statement_has_no_feature_but_constant_and_length() -> None:
    features = {name: amount for name, amount in gate_features(PLAIN).items() if amount}
    assert features == {"constant": 1.0, "words": pytest.approx(log(10.0))}


@pytest.mark.parametrize(
    ("evidence", "name", "amount"),
    [
        (replace(PLAIN, last_overlap_ratio=0.3, anchor_overlap_ratio=0.4), "last_overlap", 0.3),
        (replace(PLAIN, anchor_overlap_ratio=0.4), "last_overlap", 0.0),
        (replace(PLAIN, run_overlap_ratio=0.7), "run_lead", 0.7),
        (replace(PLAIN, run_overlap_ratio=0.7, older_match=0.4), "run_lead", 0.3),
        (replace(PLAIN, run_overlap_ratio=0.1, older_match=0.6), "run_lead", -0.5),
        (replace(PLAIN, new_background=0.3), "new_background", 0.3),
        (replace(PLAIN, length_ratio=4.0), "length", log(4.0)),
        (replace(PLAIN, length_ratio=0.5), "length", log(0.5)),
        (replace(PLAIN, length_ratio=0.0), "length", log(0.01)),
        (replace(PLAIN, length_ratio=1e-9), "length", log(0.01)),
        (with_form(closes=True), "closes", 1.0),
        (replace(PLAIN, content_count=3), "content", log(4.0)),
        (replace(PLAIN, new_content=2.0), "novelty_unshared", log(3.0)),
        (replace(PLAIN, new_content=2.0, shares_content=True), "novelty_unshared", 0.0),
        (replace(PLAIN, new_content=2.0), "novelty_statement", log(3.0)),
        (replace(with_form(asks=True), new_content=2.0), "novelty_statement", 0.0),
        (replace(with_form(is_han=True), new_content=2.0), "han_novelty", log(3.0)),
        (replace(PLAIN, new_content=2.0), "han_novelty", 0.0),
        (with_form(is_han=True), "han", 1.0),
        (with_form(points_back=True), "points_back", 1.0),
        (with_form(is_deictic=True, word_count=8), "points_back", 1.0),
        (with_form(is_deictic=True, word_count=9), "points_back", 0.0),
        (with_form(leads_on=True), "points_back", 0.0),
        (with_form(greets=True), "greets", 1.0),
        (with_form(word_count=4), "short", 1.0),
        (with_form(word_count=5), "short", 0.0),
        (replace(PLAIN, previous_closes=True), "previous_closes", 1.0),
        (replace(PLAIN, named_root=NamedRoot.RUNNING), "names_older", 0.0),
        (replace(PLAIN, named_root=NamedRoot.OLDER), "names_older", 1.0),
        (replace(PLAIN, recent_switches=4), "alternating", 1.0),
        (replace(PLAIN, recent_switches=3), "alternating", 0.0),
        (replace(PLAIN, is_new_day=True), "new_day", 1.0),
        (replace(PLAIN, is_new_day=False), "same_day", 1.0),
        (replace(PLAIN, is_new_day=None), "same_day", 0.0),
        (replace(PLAIN, changes_script=True), "changes_script", 1.0),
        (replace(PLAIN, is_answered=False), "han_unanswered", 0.0),
        (replace(with_form(is_han=True), is_answered=False), "han_unanswered", 1.0),
        (with_form(is_han=True), "han_unanswered", 0.0),
    ],
)
def test_each_row_reads_its_own_evidence(evidence: GateEvidence, name: str, amount: float) -> None:
    assert gate_features(evidence)[name] == pytest.approx(amount)


FRESH = replace(with_form(asks=True), new_content=2.0, content_count=1)


def test_a_question_that_leans_on_nothing_counts_the_news_in_it() -> None:
    assert gate_features(FRESH)["fresh_ask"] == pytest.approx(log(3.0))
    assert gate_features(replace(FRESH, new_content=0.0))["fresh_ask"] == 0.0


@pytest.mark.parametrize(
    "evidence",
    [
        replace(FRESH, is_answered=False),
        replace(FRESH, shares_content=True),
        replace(FRESH, form=replace(FRESH.form, asks=False)),
        replace(FRESH, form=replace(FRESH.form, is_long=True)),
        replace(FRESH, form=replace(FRESH.form, points_back=True)),
        replace(FRESH, form=replace(FRESH.form, leads_on=True)),
        replace(FRESH, form=replace(FRESH.form, is_deictic=True)),
    ],
    ids=["unanswered", "shares content", "statement", "long", "points back", "leads on", "deictic"],
)
def test_a_question_that_leans_on_the_talk_is_not_fresh(evidence: GateEvidence) -> None:
    assert gate_features(evidence)["fresh_ask"] == 0.0


@pytest.mark.parametrize("name", ["recalls", "chooses"])
def test_what_a_query_asks_for_of_older_turns_says_nothing_of_a_switch(name: str) -> None:
    assert gate_features(with_form(**{name: True})) == gate_features(PLAIN)


@given(EVIDENCE)
def test_the_gate_is_pure_and_switches_by_points_only_above_zero(evidence: GateEvidence) -> None:
    before = repr(evidence)
    first, second = gate_topic(evidence), gate_topic(evidence)
    assert first == second
    assert repr(evidence) == before
    if first.reason in {"points", "new anchors"}:
        assert first.points > 0.0
        assert first.is_soft is (sum_points(gate_features(evidence), LEAVING_PARAMS) <= 0.0)
    if first.move is TopicMove.CONTINUE:
        assert first.points <= 0.0
        assert not first.is_soft


@given(EVIDENCE)
def test_the_points_are_the_sum_of_the_table(evidence: GateEvidence) -> None:
    verdict = gate_topic(evidence)
    if verdict.points:
        total = sum(amount * getattr(GATE_PARAMS, name) for name, amount in gate_features(evidence).items())
        assert verdict.points == pytest.approx(total)
