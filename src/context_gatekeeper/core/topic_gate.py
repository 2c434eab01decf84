"""The topic gate decides whether a query continues the running topic (DESIGN.md 4.2, SPEC.md 3.2).

The documented thresholds are kept and reported. Inside their zones a small table of
points decides, because on real talk the zones alone call too many continuations a
switch (decision note 0003): a false switch empties the context, a false continue only keeps a block too many.
Order of the rules: no history -> explicit cue -> overlap (unless an older topic is named) -> points.

A new subject need not end the talk: who has chosen a restaurant asks for a hotel close by. A second,
smaller table tells whether a switch leaves the talk about the last block; where it does not, the
switch is *soft* and the last block is kept (decision note 0008).

Source: reading 5-12 and section 6.5 of the selection notes. The points are fitted by logistic
regression with ``scripts/fit_gate.py``; decision note 0003 tells how far that is to be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from math import log

from context_gatekeeper.core.query_form import DEICTIC_PATTERNS, QueryForm, has_deictic
from context_gatekeeper.types import GateVerdict, TopicMove

__all__ = [
    "DEICTIC_PATTERNS",
    "GATE_PARAMS",
    "LEAVING_PARAMS",
    "NEW_RATIO_SWITCH_THRESHOLD",
    "OVERLAP_CONTINUE_THRESHOLD",
    "OVERLAP_SWITCH_THRESHOLD",
    "GateEvidence",
    "GateParams",
    "LeavingParams",
    "NamedRoot",
    "gate_features",
    "gate_topic",
    "has_deictic",
    "sum_points",
]

OVERLAP_CONTINUE_THRESHOLD = 0.45
"""Above this share of known anchors the topic goes on."""
OVERLAP_SWITCH_THRESHOLD = 0.20
"""Below it, with mostly new anchors, the documents call it a switch."""
NEW_RATIO_SWITCH_THRESHOLD = 0.70


class NamedRoot(Enum):
    """Which topic name, if any, the query speaks out."""

    NONE = "none"
    RUNNING = "running"
    OLDER = "older"


@dataclass(frozen=True, slots=True)
class GateEvidence:
    """Everything the gate looks at; worked out by the engine."""

    turn_count: int
    anchor_count: int
    form: QueryForm
    anchor_overlap_ratio: float
    """Weighted share of the query's anchors in the active topic (last three turns of the run)."""
    new_token_ratio: float
    shares_content: bool
    """Whether a content anchor of the query is in the active topic."""
    new_content: float
    """Base weight of the content anchors that the active topic does not hold, >= 0."""
    content_count: int
    named_root: NamedRoot
    previous_closes: bool
    recent_switches: int
    """Switches among the last six turns."""
    older_match: float
    """Largest share of the query's base weight that an older segment holds, in [0, 1]."""
    run_overlap_ratio: float
    """Weighted share of the query's anchors in the whole running segment."""
    changes_script: bool
    """Han against Latin, compared with the last user message."""
    is_answered: bool = True
    """Whether the last turn has an answer: talk between persons and notes have none."""
    last_overlap_ratio: float = 0.0
    """Weighted share of the query's anchors in the last turn."""
    new_background: float = 0.0
    """Background of the most telling content anchor that the active topic does not hold, in [0, 1]."""
    length_ratio: float = 1.0
    """Characters of the query over those of the last user message."""
    is_new_day: bool | None = None
    """Whether the day changed since the last turn; None when times are not known."""


@dataclass(frozen=True, slots=True)
class GateParams:
    """The table: points for a switch."""

    constant: float = -6.62
    last_overlap: float = -8.28
    novelty_unshared: float = 0.48
    novelty_statement: float = -0.38
    content: float = -0.57
    points_back: float = -0.97
    greets: float = 2.77
    closes: float = -1.16
    previous_closes: float = 0.78
    names_older: float = 1.20
    alternating: float = 1.58
    new_day: float = 5.59
    same_day: float = -2.24
    changes_script: float = 2.08
    words: float = 1.11
    short: float = -1.52
    fresh_ask: float = 2.24
    new_background: float = 3.22
    run_lead: float = -1.05
    length: float = -0.23
    han: float = -2.65
    han_novelty: float = 2.76
    han_unanswered: float = -2.51


@dataclass(frozen=True, slots=True)
class LeavingParams:
    """The smaller table: points for a switch that leaves the talk about the last block."""

    constant: float = -3.29
    last_overlap: float = -6.48
    novelty_unshared: float = 0.72
    points_back: float = -0.73
    greets: float = 3.96
    closes: float = -1.06
    previous_closes: float = 2.06
    names_older: float = 1.46
    alternating: float = 1.24
    new_day: float = 6.16
    changes_script: float = 1.59
    short: float = -1.70
    fresh_ask: float = 1.65
    new_background: float = 2.19
    run_lead: float = -1.08


GATE_PARAMS = GateParams()
LEAVING_PARAMS = LeavingParams()
_ALTERNATING_SWITCHES = 4
"""Switches among the last six turns that make talk alternating."""
_LEAST_LENGTH_RATIO = 0.01


def gate_features(evidence: GateEvidence) -> dict[str, float]:
    """Value of each row of the two tables for ``evidence``; the names are those of their fields."""
    form = evidence.form
    novelty = log(1.0 + evidence.new_content)
    leans_back = evidence.shares_content or form.points_back or form.leads_on or form.is_deictic
    is_fresh = evidence.is_answered and form.asks and not form.is_long and not leans_back
    han = float(form.is_han)
    return {
        "constant": 1.0,
        "last_overlap": evidence.last_overlap_ratio,
        "novelty_unshared": 0.0 if evidence.shares_content else novelty,
        "novelty_statement": 0.0 if form.asks else novelty,
        "content": log(1.0 + evidence.content_count),
        "points_back": float(form.points_back or (form.is_deictic and form.word_count <= 8)),
        "greets": float(form.greets),
        "closes": float(form.closes),
        "previous_closes": float(evidence.previous_closes),
        "names_older": float(evidence.named_root is NamedRoot.OLDER),
        "alternating": float(evidence.recent_switches >= _ALTERNATING_SWITCHES),
        "new_day": float(evidence.is_new_day is True),
        "same_day": float(evidence.is_new_day is False),
        "changes_script": float(evidence.changes_script),
        "words": log(1.0 + form.word_count),
        "short": float(form.word_count <= 4),
        "fresh_ask": novelty if is_fresh else 0.0,
        "new_background": evidence.new_background,
        "run_lead": evidence.run_overlap_ratio - evidence.older_match,
        "length": log(max(_LEAST_LENGTH_RATIO, evidence.length_ratio)),
        "han": han,
        "han_novelty": han * novelty,
        "han_unanswered": han * (not evidence.is_answered),
    }


def sum_points(features: Mapping[str, float], table: GateParams | LeavingParams) -> float:
    """Points of one table for features of `gate_features`."""
    return float(sum(features[row.name] * getattr(table, row.name) for row in fields(table)))


def gate_topic(
    evidence: GateEvidence, params: GateParams = GATE_PARAMS, leaving: LeavingParams = LEAVING_PARAMS
) -> GateVerdict:
    """Decide continue or switch, and whether a switch is soft. Pure; ties (0 points) continue, or are soft.

    An explicit change of subject is never soft.
    """

    def verdict(move: TopicMove, reason: str, points: float = 0.0, *, is_soft: bool = False) -> GateVerdict:
        return GateVerdict(
            move,
            reason,
            evidence.anchor_overlap_ratio,
            evidence.new_token_ratio,
            points,
            evidence.form.is_deictic,
            is_soft,
        )

    if not evidence.turn_count:
        return verdict(TopicMove.CONTINUE, "no history")
    if not evidence.anchor_count:
        return verdict(TopicMove.CONTINUE, "no anchors")
    if evidence.form.has_change_cue and evidence.named_root is not NamedRoot.RUNNING:
        return verdict(TopicMove.SWITCH, "explicit change of subject")
    if evidence.anchor_overlap_ratio > OVERLAP_CONTINUE_THRESHOLD and evidence.named_root is not NamedRoot.OLDER:
        return verdict(TopicMove.CONTINUE, "overlap above threshold")
    features = gate_features(evidence)
    points = sum_points(features, params)
    if points <= 0.0:
        reason = "deictic" if evidence.form.is_deictic else "not enough for a switch"
        return verdict(TopicMove.CONTINUE, reason, points)
    in_documented_zone = (
        evidence.anchor_overlap_ratio < OVERLAP_SWITCH_THRESHOLD
        and evidence.new_token_ratio > NEW_RATIO_SWITCH_THRESHOLD
    )
    reason = "new anchors" if in_documented_zone else "points"
    return verdict(TopicMove.SWITCH, reason, points, is_soft=sum_points(features, leaving) <= 0.0)
