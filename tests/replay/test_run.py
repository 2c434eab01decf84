"""The course of a replay: seams and gaps, the resident part, calibration, chains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.engine.pager_params import PagerParams
from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.replay.figures import SessionFigures
from context_gatekeeper.replay.policies import Ours
from context_gatekeeper.replay.run import (
    APPEND_ONLY,
    ReplayOptions,
    ReplaySession,
    chain_sessions,
    replay_session,
    token_factor,
)
from context_gatekeeper.types import AgentMessage, AgentSession, Usage
from tests.replay.scripted import PROMPT, answer, filler, reading_session, result, session_of, user

ANTHROPIC = PRICES["anthropic-5m"]
RESIDENT = 8000


def replayed(item: ReplaySession, options: ReplayOptions | None = None) -> SessionFigures:
    found, _, _ = replay_session(item, {}, options or ReplayOptions(ANTHROPIC, RESIDENT))
    return found[APPEND_ONLY]


def cold_calls(figures: SessionFigures) -> list[int]:
    """Calls that read nothing from the cache."""
    return [
        call
        for call, (prompt, uncached) in enumerate(zip(figures.call_prompts, figures.call_uncached, strict=True))
        if prompt == uncached
    ]


def timed_session(*gaps: float) -> AgentSession:
    """A call after each gap, in seconds; every result comes at once."""
    now = 1000.0
    messages = [user(PROMPT, time=now)]
    for number, gap in enumerate(gaps):
        now += gap
        messages.append(replace(user(f"Go on {number}."), time=now))
        messages.append(replace(answer(filler(300)), time=now + 1, end_time=now + 2))
        now += 2
    return session_of(*messages)


def test_the_first_call_is_cold_and_so_is_the_first_after_each_seam() -> None:
    first, second = reading_session(2), reading_session(3)
    item = ReplaySession(session_of(*first.messages, *second.messages), frozenset({len(first.messages)}))
    assert item.calls == 7
    assert cold_calls(replayed(item)) == [0, 3]
    assert cold_calls(replayed(replace(item, seams=frozenset()))) == [0]


def test_real_gaps_let_the_cache_go_cold_only_when_they_count() -> None:
    session = timed_session(0, 10, 299, 301, 10)
    assert cold_calls(replayed(ReplaySession(session))) == [0]
    gaps = ReplayOptions(ANTHROPIC, RESIDENT, uses_gaps=True)
    assert cold_calls(replayed(ReplaySession(session), gaps)) == [0, 3]
    hour = ReplayOptions(PRICES["anthropic-1h"], RESIDENT, uses_gaps=True)
    assert cold_calls(replayed(ReplaySession(session), hour)) == [0]


def test_a_gap_is_counted_from_the_end_of_the_answer_to_the_next_request() -> None:
    messages = [
        user(PROMPT, time=0.0),
        replace(answer("Running it.", ("a", "Bash", {})), time=10.0, end_time=20.0),
        replace(result("a", "slow tool"), time=330.0),
        replace(answer("Done."), time=400.0),
        replace(answer("No time is known before this one."), time=None),
    ]
    gaps = ReplayOptions(ANTHROPIC, RESIDENT, uses_gaps=True)
    assert cold_calls(replayed(ReplaySession(session_of(*messages)), gaps)) == [0, 1]
    assert cold_calls(replayed(ReplaySession(session_of(*messages[1:])), gaps)) == [0, 1]


def test_every_prompt_has_the_resident_part() -> None:
    session = reading_session(2)
    small, large = (replayed(ReplaySession(session), ReplayOptions(ANTHROPIC, size)) for size in (0, 20_000))
    assert [b - a for a, b in zip(small.call_prompts, large.call_prompts, strict=True)] == [20_000] * 3


def test_the_logged_resident_part_is_the_first_prompt_less_its_messages() -> None:
    log = SessionLog()
    before = sum(piece.tokens for piece in log.add_message(user(PROMPT)))
    usage = Usage(plain_tokens=12, read_tokens=15_000, written_tokens=before, output_tokens=3)
    session = session_of(user(PROMPT), answer("Yes.", usage=usage), user("More?"), answer("No."))
    logged = replayed(ReplaySession(session), ReplayOptions(ANTHROPIC, None))
    assert logged.call_prompts[0] == usage.prompt_tokens
    tiny = session_of(user(filler(4000)), answer("Yes.", usage=Usage(plain_tokens=5)))
    assert replayed(ReplaySession(tiny), ReplayOptions(ANTHROPIC, None)).call_prompts[0] > 5
    assert replayed(ReplaySession(reading_session(1)), ReplayOptions(ANTHROPIC, None)).call_prompts[0] == before


def test_final_output_counts_are_billed_and_others_estimated() -> None:
    logged = session_of(user(PROMPT), answer("Yes, I will do that.", usage=Usage(plain_tokens=9, output_tokens=777)))
    assert replayed(ReplaySession(logged)).bill.output_tokens == 777
    open_count = session_of(user(PROMPT), answer("Yes, I will do that.", usage=Usage(plain_tokens=9)))
    assert replayed(ReplaySession(open_count)).bill.output_tokens == estimate_tokens("Yes, I will do that.")
    silent = session_of(user(PROMPT), AgentMessage(answer("x").role, (), is_call=True))
    assert replayed(ReplaySession(silent)).bill.output_tokens == 1


def with_usage(session: AgentSession, factor: float, resident: int) -> AgentSession:
    """The session with prompts logged as if real tokens were ``factor`` times the estimated ones."""
    log, tokens, messages = SessionLog(), 0, []
    for message in session.messages:
        usage = Usage(plain_tokens=resident + round(factor * tokens)) if message.is_call else None
        messages.append(replace(message, usage=usage))
        tokens += sum(piece.tokens for piece in log.add_message(message))
    return session_of(*messages)


@pytest.mark.parametrize("factor", [0.8, 1.0, 1.4])
def test_logged_prompts_calibrate_the_estimate(factor: float) -> None:
    session = with_usage(reading_session(9), factor, 12_345)
    assert token_factor([session]) == pytest.approx(factor, rel=0.01)


def test_a_prompt_that_was_cut_or_few_prompts_calibrate_nothing() -> None:
    assert token_factor([reading_session(9)]) == 1.0
    assert token_factor([with_usage(reading_session(4), 1.4, 100)]) == 1.0, "four steps are too few"
    assert token_factor([with_usage(reading_session(9), 5.0, 100)]) == 1.0, "no model counts five times as many"
    assert token_factor([]) == 1.0


def test_the_factor_scales_what_is_sent() -> None:
    session = reading_session(3, chars=3000)
    plain = replayed(ReplaySession(session), ReplayOptions(ANTHROPIC, 0))
    scaled = replayed(ReplaySession(session), ReplayOptions(ANTHROPIC, 0, token_factor=2.0))
    assert scaled.call_prompts[-1] == pytest.approx(2 * plain.call_prompts[-1], rel=0.05)


def test_sessions_are_chained_in_time_order_until_they_are_long_enough() -> None:
    def at(name: str, time: float, calls: int) -> AgentSession:
        return session_of(user(PROMPT, time=time), *(answer("On.") for _ in range(calls)), name=name)

    sessions = [at("late", 300.0, 2), at("early", 100.0, 2), at("middle", 200.0, 2), at("rest", 400.0, 1)]
    chains = chain_sessions(sessions, 4)
    assert [chain.session.session_id for chain in chains] == ["early+middle"]
    assert chains[0].seams == {3}
    assert chains[0].calls == 4
    assert [chain.session.session_id for chain in chain_sessions(sessions, 3)] == ["early+middle", "late+rest"]
    assert chain_sessions(sessions, 8) == []
    assert chain_sessions([], 1) == []


def test_assistant_messages_that_no_model_wrote_are_no_calls() -> None:
    notice = answer("Credit balance is too low", is_call=False)
    session = session_of(user(PROMPT), notice, answer("Yes."), notice)
    heard: list[int] = []
    found, policies, log = replay_session(
        ReplaySession(session), {}, ReplayOptions(ANTHROPIC, 0), on_call=lambda: heard.append(1)
    )
    assert found[APPEND_ONLY].bill.calls == log.calls == len(heard) == 1
    assert found[APPEND_ONLY].call_prompts[0] == sum(piece.tokens for piece in log.slices[:2])
    assert list(policies) == [APPEND_ONLY]


def test_a_page_that_is_needed_again_soon_after_it_left_is_told() -> None:
    params = PagerParams(
        fault_price_factor=0.0, fault_target=None, patience=0.0, tail_tokens=200, kept_exchanges=0, keep_calls=1000.0,
        overdraft=1.0, reserve_faults=1.0, digest=False,
    )  # fmt: skip
    session = reading_session(6, chars=4000)
    makers = {"eager": lambda log, resident: Ours(log, ANTHROPIC, resident, params)}
    found, _, _ = replay_session(ReplaySession(session), makers, ReplayOptions(ANTHROPIC, RESIDENT))
    assert found["eager"].epochs > 0
    assert found["eager"].faults == 1
    assert found["eager"].refetched_hot_pages == 1
    assert found["eager"].prefix_breaks == 0
