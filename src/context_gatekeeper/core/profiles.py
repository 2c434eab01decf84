"""Selection profiles: named, frozen sets of numbers, reported in every result.

``strict`` keeps the documents' numbers and puts purity first. ``recall`` serves questions to
a long memory: neighbours and sittings, dates and speakers, every anchor covered more than
once, the budget filled inside the topic.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from context_gatekeeper.core.selector import SelectParams
from context_gatekeeper.core.sparse import PERSONS_PARAMS, RECALL_PARAMS, SCORE_PARAMS, RecallParams, ScoreParams
from context_gatekeeper.errors import ConfigError

__all__ = ["AGENT_PROFILE", "PROFILES", "SelectionProfile", "profile_named"]


@dataclass(frozen=True, slots=True)
class SelectionProfile:
    """All numbers of one selection."""

    name: str
    scoring: ScoreParams = SCORE_PARAMS
    recall: RecallParams = RECALL_PARAMS
    """Page ranking in talk between a user and an assistant, and in lists of notes."""
    recall_persons: RecallParams = PERSONS_PARAMS
    """Page ranking in talk whose speakers are named."""
    selection: SelectParams = field(default_factory=SelectParams)
    ranks_pages: bool = False
    """Rank pages by BM25 with neighbours and sittings instead of blocks by the documented formula."""
    keeps_topic: bool = True
    """Look for blocks inside the running or the resumed topic only."""
    admission_least: float = 0.3
    """Least share of the query's topic weight that a block must hold itself ..."""
    admission_of_best: float = 0.4
    """... and least part of the best block's share."""
    admission_of_best_named: float = 0.0
    """`admission_of_best` when the query names the topic."""
    name_factor: float = 0.3
    """What is left of the weight of a topic's name once the topic is found, so that the sub-question pays."""


PROFILES = {
    profile.name: profile
    for profile in (
        SelectionProfile("strict"),
        SelectionProfile(
            "recall",
            scoring=ScoreParams(candidate_limit=60),
            selection=SelectParams(redundancy=3, uses_score=True, reachable_only=True, fill_share=0.5),
            ranks_pages=True,
            keeps_topic=False,
            admission_least=0.0,
            admission_of_best=0.0,
            admission_of_best_named=0.0,
        ),
    )
}
AGENT_PROFILE = SelectionProfile(
    "agent",
    recall=RecallParams(
        next_share=0.2,
        next_share_of_question=0.2,
        second_next_share=0.0,
        previous_share=0.1,
        sitting_share=0.0,
        assistant_share=1.0,
        opening_share=0.0,
        length_b=0.6,
        recency_share=0.2,
    ),
    ranks_pages=True,
    keeps_topic=False,
)
"""Page ranking in sessions of agents, for recall alone: a result tells by itself what it holds, whoever asked for it
and on which day; of two that tell the same the newer one is meant."""


def profile_named(name: str) -> SelectionProfile:
    """The profile called ``name``. Raises ConfigError for an unknown one."""
    profile = PROFILES.get(name) if isinstance(name, str) else None
    if profile is None:
        raise ConfigError(
            f"profile {name!r}", "there is no such selection profile", f"use one of {', '.join(PROFILES)}"
        )
    return profile
