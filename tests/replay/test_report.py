"""From sessions to the object that `cgk replay` prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.replay.catalogue import POLICY_NAMES, policy_makers
from context_gatekeeper.replay.figures import SessionFigures
from context_gatekeeper.replay.report import DEFAULT_POLICIES, ReplayReport, ReplaySettings, replay_files
from tests.engine.agents import answered, said
from tests.replay.scripted import reading_session, session_of

POLICY_KEYS = {
    "mean_prompt_tokens", "prompt_completion_ratio", "billed_vs_append_only", "faulting_call_share",
    "faulting_call_share_words", "hard_faulting_call_share", "evidence_coverage", "evidence_coverage_words",
    "extra_calls", "refetched_hot_pages", "other_task_share", "call200_vs_call6", "worst_session", "cache_read_share",
}  # fmt: skip
CONTRACT_POLICIES = (
    "append-only", "window-20k", "window-40k", "mask-100k", "mask-60k", "auto-compact-160k", "slim-2k", "reselect",
    "ours", "ours-frugal", "ours-careful", "clairvoyant-seen", "clairvoyant-exact",
)  # fmt: skip


def replayed(**settings: Any) -> ReplayReport:
    return replay_files([[reading_session(4), reading_session(2)]], ReplaySettings(**settings))


def test_the_policies_of_the_contract_are_there_in_its_order() -> None:
    assert POLICY_NAMES == CONTRACT_POLICIES


def test_the_object_has_every_key_of_the_contract() -> None:
    told: Mapping[str, Any] = json.loads(json.dumps(replayed(policies=("all",)).to_dict()))
    assert {"sessions", "calls", "policies", "expand_exact", "prefix_breaks_outside_epochs"} <= set(told)
    assert "unverifiable_card_entries" in told
    assert tuple(told["policies"]) == CONTRACT_POLICIES
    for figures in told["policies"].values():
        assert set(figures) >= POLICY_KEYS
        assert set(figures["worst_session"]) == {"billed_vs_append_only", "faulting_call_share"}
    assert (told["sessions"], told["calls"]) == (2, 8)


def test_append_only_is_the_reference_and_always_there() -> None:
    told = replayed(policies=("mask-60k",)).figures()
    assert list(told) == ["append-only", "mask-60k"]
    assert told["append-only"]["billed_vs_append_only"] == 1.0
    assert told["append-only"]["faulting_call_share"] == 0.0
    assert ReplaySettings().names == DEFAULT_POLICIES


def test_a_replay_tells_the_same_every_time() -> None:
    assert replayed(policies=("all",)).to_dict() == replayed(policies=("all",)).to_dict()


def test_prices_change_the_bill_and_not_what_is_sent() -> None:
    cached, plain = replayed().figures(), replayed(prices="none").figures()
    assert cached["append-only"]["mean_prompt_tokens"] == plain["append-only"]["mean_prompt_tokens"]
    assert cached["append-only"]["billed_units"] < plain["append-only"]["billed_units"]


def test_short_sessions_are_left_out() -> None:
    assert replayed(min_calls=4).to_dict()["sessions"] == 1
    with pytest.raises(ConfigError, match="none has enough model calls"):
        replayed(min_calls=6)
    with pytest.raises(ConfigError, match="none has enough model calls"):
        replay_files([[session_of()], []], ReplaySettings(min_calls=0))


def test_sessions_of_a_file_are_chained_and_those_of_different_files_never() -> None:
    report = replay_files([[reading_session(2)], [reading_session(2)]], ReplaySettings(chain_calls=3))
    assert report.to_dict()["sessions"] == 2
    together = replay_files([[reading_session(2), reading_session(2)]], ReplaySettings(chain_calls=6))
    assert (together.to_dict()["sessions"], together.to_dict()["calls"]) == (1, 6)


def test_progress_is_told_call_by_call() -> None:
    heard: list[tuple[int, int]] = []
    sessions = [[reading_session(2)], [reading_session(1)]]
    replay_files(sessions, ReplaySettings(policies=()), on_call=lambda done, total: heard.append((done, total)))
    assert heard == [(done, 5) for done in range(1, 6)]


def test_the_estimate_of_the_first_token_follows_its_rate() -> None:
    slow, fast = (replayed(prefill_rate=rate).figures()["ours"] for rate in (1000.0, 4000.0))
    slower, faster = slow["first_token_seconds_estimated"]["mean"], fast["first_token_seconds_estimated"]["mean"]
    assert slower == pytest.approx(4 * faster, abs=0.005)
    assert slower == pytest.approx(slow["uncached_tokens_a_call"] / 1000, abs=0.001)


def test_the_longest_session_and_one_by_its_id_are_found() -> None:
    sessions = [session_of(*reading_session(calls).messages, name=f"s{calls}") for calls in (1, 3, 2)]
    report = replay_files([sessions], ReplaySettings(policies=()))
    assert report.place_of() == 1
    assert report.place_of("s2") == 2
    with pytest.raises(ConfigError, match="'s9': none that was replayed has this id; pass one of s1, s3, s2"):
        report.place_of("s9")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"policies": ("ours", "yours")}, "policy 'yours': there is none of this name"),
        ({"prices": "free"}, "price profile 'free'"),
        ({"resident_tokens": -1}, "resident_tokens -1: it is out of range; pass 0 to 1e"),
        ({"fault_price": -0.5}, "fault_price -0.5"),
        ({"fault_target": 1.5}, "fault_target 1.5: it is out of range; pass 0 to 1"),
        ({"min_calls": -1}, "min_calls -1"),
        ({"chain_calls": -2}, "chain_calls -2"),
        ({"prefill_rate": 0.0}, "prefill_rate 0.0: it is out of range; pass 1 to 1e"),
        ({"prefill_rate": float("nan")}, "prefill_rate nan"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        ReplaySettings(**settings)


def test_an_unknown_policy_has_no_maker() -> None:
    with pytest.raises(ConfigError, match="policy 'yours'"):
        policy_makers(["yours"], reading_session(1), PRICES["none"])


@pytest.mark.parametrize(
    "knob", [{"fault_price": 2.0}, {"fault_target": 0.2}, {"fault_price": 2.0, "fault_target": 0.2}]
)
def test_the_knob_of_our_policies_can_be_set(knob: dict[str, float]) -> None:
    told = replayed(policies=("ours",), **knob).to_dict()
    assert told["expand_exact"] == 1.0
    assert told["prefix_breaks_outside_epochs"] == told["unverifiable_card_entries"] == 0


def test_the_resident_part_can_be_that_of_the_log() -> None:
    logged, none = replayed(resident_tokens=None).figures(), replayed(resident_tokens=0).figures()
    assert logged["append-only"]["mean_prompt_tokens"] == none["append-only"]["mean_prompt_tokens"]


def test_sessions_that_ours_sent_unchanged_are_counted_where_ours_was_replayed() -> None:
    short = session_of(said("Count."), answered("One."), name="short")
    listed = [[short, reading_session(3)]]
    base, ours = SessionFigures("a"), SessionFigures("a")
    report = ReplayReport(ReplaySettings(), {"append-only": [base], "ours": [ours]})
    assert report.left_alone() == 1, "nothing billed, nothing changed"
    for units, epochs, expected in ((100.0, 0, 1), (99.6, 0, 1), (98.0, 0, 0), (100.0, 1, 0)):
        base.bill.units, ours.bill.units, ours.epochs = 100.0, units, epochs
        assert report.left_alone() == expected
    assert replay_files(listed, ReplaySettings(policies=("ours",))).left_alone() >= 1
    assert replay_files(listed, ReplaySettings(policies=("mask-60k",))).left_alone() == 0
    assert ReplayReport(ReplaySettings()).left_alone() == 0


def test_real_gaps_are_asked_for() -> None:
    assert replayed(uses_gaps=True).figures()["append-only"]["billed_units"] > 0
