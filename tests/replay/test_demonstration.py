"""The sample session, replayed and told."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache

from context_gatekeeper.engine.pager import Rewrite
from context_gatekeeper.engine.plan import ContextPlan
from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.replay.demonstration import Demonstration, demonstrate, tell_rewrite
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentMessage, AgentSession, BlockKind, ContentBlock, MessageRole
from tests.architecture.tree import ROOT

SAMPLE = ROOT / "tests" / "data" / "agents" / "claude_code_session.jsonl.gz"


@cache
def shown() -> Demonstration:
    return demonstrate(read_sessions(SAMPLE)[0])


def test_the_sample_is_one_session_of_at_least_sixty_calls_without_a_warning() -> None:
    (session,) = read_sessions(SAMPLE)
    assert 60 <= sum(message.is_call for message in session.messages) <= 110
    assert session.warnings == ()
    assert SAMPLE.stat().st_size < 200_000


def test_the_sample_holds_nothing_personal() -> None:
    text = gzip.decompress(SAMPLE.read_bytes()).decode("utf-8")
    homes = set(re.findall(r"/(?:Users|home)/([\w.-]+)", text))
    addresses = set(re.findall(r"[\w.+-]{1,64}@[\w-]{1,64}\.[A-Za-z]{2,}", text))
    assert homes <= {"USER", ".REDACTED.jsonl"}
    assert addresses == {"noreply@anthropic.com"}
    assert re.findall(r"\b(?:sk-|gh[po]_|AKIA|eyJ)[\w-]{12,}", text) == []


def test_the_bill_is_told_for_the_reference_a_rival_ours_and_the_bound() -> None:
    figures = shown().policies
    assert list(figures) == ["append-only", "mask-60k", "ours", "clairvoyant-seen"]
    bills = {name: one["billed_units"] for name, one in figures.items()}
    assert bills["clairvoyant-seen"] < bills["ours"] < bills["append-only"]
    assert figures["append-only"]["faulting_call_share"] == figures["clairvoyant-seen"]["faulting_call_share"] == 0


def test_every_faulting_call_is_told_with_something_that_it_missed() -> None:
    faults = round(shown().policies["ours"]["faulting_call_share"] * shown().calls)
    assert len({need.call for need in shown().missed}) == faults
    assert all(need.text and need.what for need in shown().missed)
    origins = [(need.call, need.what, need.file) for need in shown().missed]
    assert origins == sorted(set(origins))


def test_the_plan_that_is_told_adds_up() -> None:
    plan = shown().plan
    assert plan is not None
    assert 0 < plan.call < shown().calls
    assert plan.slices == sum(one.slices for one in plan.left) >= plan.quoted_later
    assert plan.tokens_after < plan.tokens_before
    assert sum(one.tokens for one in plan.stayed) == plan.tokens_after
    assert [one.tokens for one in plan.left] == sorted((one.tokens for one in plan.left), reverse=True)
    assert not [one.reason for one in plan.stayed if re.search(r"\d", one.reason)]


def test_the_told_session_is_ready_for_json() -> None:
    told = json.loads(json.dumps(shown().to_dict()))
    assert told["calls"] == 72
    assert told["plan"]["left"][0]["tokens"] == shown().plan.left[0].tokens  # type: ignore[union-attr]


def message(role: MessageRole, text: str) -> AgentMessage:
    return AgentMessage(role, (ContentBlock(BlockKind.TEXT, text),), is_call=role is MessageRole.ASSISTANT)


def test_a_session_that_never_needs_a_rewrite_has_no_plan() -> None:
    talk = (
        message(MessageRole.USER, "Say hello."),
        message(MessageRole.ASSISTANT, "Hello."),
        message(MessageRole.USER, "Thanks."),
        message(MessageRole.ASSISTANT, "You are welcome."),
    )
    told = demonstrate(AgentSession("short", "test", talk))
    assert (told.plan, told.rewrites, told.missed) == (None, 0, ())
    assert told.policies["ours"]["billed_vs_append_only"] == 1.0


def test_what_left_and_was_quoted_all_the_same_is_counted() -> None:
    log = SessionLog()
    line = "the lock_timeout of the orders table is 4500 milliseconds"
    for one in (
        message(MessageRole.USER, line),
        message(MessageRole.ASSISTANT, "Noted, nothing more to say about that."),
        message(MessageRole.USER, "And now?"),
        message(MessageRole.ASSISTANT, f"As you said:\n{line}"),
    ):
        log.add_message(one)
    plan = ContextPlan(1, 1, "rent", 0, 0, 0, 0.0, 1.0, 0, 0.0, "", (), ())
    story = tell_rewrite(log, Rewrite(1, "rent", (0, 1), 60, 20, 5.0), plan)
    assert story.quoted_later == 1
    assert [(one.what, one.slices) for one in story.left] == [("user text", 1), ("answer", 1)]
    assert story.stayed == ()
