"""Profiles by name, and the numbers that the documents fix."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from context_gatekeeper.core.profiles import PROFILES, profile_named
from context_gatekeeper.core.selector import SelectParams
from context_gatekeeper.core.sparse import SCORE_PARAMS
from context_gatekeeper.errors import ConfigError


def test_there_are_two_profiles_and_strict_comes_first() -> None:
    assert list(PROFILES) == ["strict", "recall"]


@pytest.mark.parametrize("name", ["strict", "recall"])
def test_a_profile_is_found_by_its_name_and_carries_it(name: str) -> None:
    assert profile_named(name) is PROFILES[name]
    assert profile_named(name).name == name


def test_strict_has_the_documented_numbers_and_keeps_to_the_topic() -> None:
    strict = profile_named("strict")
    assert strict.scoring == SCORE_PARAMS
    assert strict.selection == SelectParams(redundancy=1, uses_score=False, reachable_only=False, fill_share=0.0)
    assert (strict.ranks_pages, strict.keeps_topic) == (False, True)
    assert strict.admission_least > 0.0


def test_recall_ranks_pages_covers_more_than_once_fills_and_admits_all() -> None:
    recall = profile_named("recall")
    assert (recall.ranks_pages, recall.keeps_topic) == (True, False)
    assert recall.selection == SelectParams(redundancy=3, uses_score=True, reachable_only=True, fill_share=0.5)
    assert (recall.admission_least, recall.admission_of_best, recall.admission_of_best_named) == (0.0, 0.0, 0.0)
    assert recall.scoring.candidate_limit > SCORE_PARAMS.candidate_limit


@pytest.mark.parametrize("name", ["", "Strict", "strict ", "fast", None, 3, ["strict"], b"strict"])
def test_an_unknown_profile_is_refused_with_the_names_there_are(name: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        profile_named(name)
    assert refused.value.thing == f"profile {name!r}"
    assert refused.value.next_step == "use one of strict, recall"
    assert isinstance(refused.value, ValueError)


def test_a_profile_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        profile_named("strict").keeps_topic = False  # type: ignore[misc]
