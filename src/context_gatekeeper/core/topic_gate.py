"""The topic gate decides whether a query continues the running topic (DESIGN.md 4.2, SPEC.md 3.2).

The documented thresholds are kept and reported. Inside their zones a small table of
points decides, because on real talk the zones alone call too many continuations a
switch (decision note 0003): a false switch empties the context, a false continue only keeps a block too many.
Order of the rules: no history -> explicit cue -> overlap (unless an older topic is named) -> points.
Source: reading 5-12 and section 6.5 of the selection notes. The points are fitted by logistic
regression with ``scripts/fit_gate.py``; decision note 0003 tells how far that is to be trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import log

from context_gatekeeper.core.query_form import DEICTIC_PATTERNS, QueryForm, has_deictic
from context_gatekeeper.types import GateVerdict, TopicMove

__all__ = [
    "DEICTIC_PATTERNS",
    "GATE_PARAMS",
    "NEW_RATIO_SWITCH_THRESHOLD",
    "OVERLAP_CONTINUE_THRESHOLD",
    "OVERLAP_SWITCH_THRESHOLD",
    "GateEvidence",
    "GateParams",
    "NamedRoot",
    "gate_features",
    "gate_topic",
    "has_deictic",
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
    shared_background: float = 0.0
    """Background of the most telling content anchor that the active topic holds too, in [0, 1]."""
    new_background: float = 0.0
    """The same of those that it does not hold."""
    length_ratio: float = 1.0
    """Characters of the query over those of the last user message."""
    answer_asks: bool = False
    """Whether the last text of the last turn ends with a question."""
    is_new_day: bool | None = None
    """Whether the day changed since the last turn; None when times are not known."""


@dataclass(frozen=True, slots=True)
class GateParams:
    """The table: points for a switch."""

    constant: float = -5.50
    overlap: float = -6.11
    novelty_unshared: float = 1.14
    novelty_statement: float = -0.74
    shares_content: float = 1.70
    content: float = -0.87
    points_back: float = -0.94
    greets: float = 2.86
    previous_closes: float = 0.95
    names_running: float = -1.34
    names_older: float = 1.36
    alternating: float = 1.10
    han: float = -1.26
    new_day: float = 5.34
    same_day: float = -2.26
    run_overlap: float = -0.58
    changes_script: float = 2.47
    asks: float = -0.54
    words: float = 1.18
    short: float = -1.62
    fresh_ask: float = 2.02
    shared_background: float = -0.10
    new_background: float = 2.09
    run_lead: float = -0.81
    answer_asks: float = -0.80
    closes: float = -1.28
    length: float = -0.45
    han_novelty: float = 1.90
    han_unanswered: float = -2.22
    han_run_overlap: float = 1.49
    han_length: float = 1.02
    alternating_least: int = 4
    """Switches among the last six turns that make talk alternating."""


GATE_PARAMS = GateParams()
_LEAST_LENGTH_RATIO = 0.01


def gate_features(evidence: GateEvidence, params: GateParams = GATE_PARAMS) -> dict[str, float]:
    """Value of each row of the table for ``evidence``; the names are those of `GateParams`."""
    form = evidence.form
    novelty = log(1.0 + evidence.new_content)
    length = log(max(_LEAST_LENGTH_RATIO, evidence.length_ratio))
    leans_back = evidence.shares_content or form.points_back or form.leads_on or form.is_deictic
    is_fresh = evidence.is_answered and form.asks and not form.is_long and not leans_back
    han = float(form.is_han)
    return {
        "constant": 1.0,
        "overlap": evidence.anchor_overlap_ratio,
        "novelty_unshared": 0.0 if evidence.shares_content else novelty,
        "novelty_statement": 0.0 if form.asks else novelty,
        "shares_content": float(evidence.shares_content),
        "content": log(1.0 + evidence.content_count),
        "points_back": float(form.points_back or (form.is_deictic and form.word_count <= 8)),
        "greets": float(form.greets),
        "previous_closes": float(evidence.previous_closes),
        "names_running": float(evidence.named_root is NamedRoot.RUNNING),
        "names_older": float(evidence.named_root is NamedRoot.OLDER),
        "alternating": float(evidence.recent_switches >= params.alternating_least),
        "new_day": float(evidence.is_new_day is True),
        "same_day": float(evidence.is_new_day is False),
        "run_overlap": evidence.run_overlap_ratio,
        "changes_script": float(evidence.changes_script),
        "asks": float(form.asks),
        "words": log(1.0 + form.word_count),
        "short": float(form.word_count <= 4),
        "fresh_ask": novelty if is_fresh else 0.0,
        "shared_background": evidence.shared_background,
        "new_background": evidence.new_background,
        "run_lead": evidence.run_overlap_ratio - evidence.older_match,
        "answer_asks": float(evidence.answer_asks),
        "closes": float(form.closes),
        "length": length,
        "han": han,
        "han_novelty": han * novelty,
        "han_unanswered": han * (not evidence.is_answered),
        "han_run_overlap": han * evidence.run_overlap_ratio,
        "han_length": han * length,
    }


def gate_topic(evidence: GateEvidence, params: GateParams = GATE_PARAMS) -> GateVerdict:
    """Decide continue or switch. Pure; ties (0 points) continue."""

    def verdict(move: TopicMove, reason: str, points: float = 0.0) -> GateVerdict:
        return GateVerdict(
            move,
            reason,
            evidence.anchor_overlap_ratio,
            evidence.new_token_ratio,
            points,
            evidence.form.is_deictic,
        )

    if not evidence.turn_count:
        return verdict(TopicMove.CONTINUE, "no history")
    if not evidence.anchor_count:
        return verdict(TopicMove.CONTINUE, "no anchors")
    if evidence.form.has_change_cue and evidence.named_root is not NamedRoot.RUNNING:
        return verdict(TopicMove.SWITCH, "explicit change of subject")
    if evidence.anchor_overlap_ratio > OVERLAP_CONTINUE_THRESHOLD and evidence.named_root is not NamedRoot.OLDER:
        return verdict(TopicMove.CONTINUE, "overlap above threshold")
    points = sum(value * getattr(params, name) for name, value in gate_features(evidence, params).items())
    if points <= 0.0:
        reason = "deictic" if evidence.form.is_deictic else "not enough for a switch"
        return verdict(TopicMove.CONTINUE, reason, points)
    in_documented_zone = (
        evidence.anchor_overlap_ratio < OVERLAP_SWITCH_THRESHOLD
        and evidence.new_token_ratio > NEW_RATIO_SWITCH_THRESHOLD
    )
    return verdict(TopicMove.SWITCH, "new anchors" if in_documented_zone else "points", points)
