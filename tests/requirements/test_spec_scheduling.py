"""The scheduling design, sections 1 to 5, 7, 9 and 10, on a recorded session through what a user has in hand."""

from __future__ import annotations

import ast
import gzip
import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.core.slimming import SPEC_SLIMMING, head_view, should_slim_at_birth
from context_gatekeeper.engine.plan import ContextPlan
from context_gatekeeper.errors import BudgetError
from context_gatekeeper.replay.demonstration import demonstrate
from context_gatekeeper.replay.report import ReplayReport, ReplaySettings, replay_files
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentMessage, AgentSession, BlockKind
from tests.architecture.tree import ROOT, name_of, python_files, syntax_tree

SAMPLE = ROOT / "tests" / "data" / "agents" / "claude_code_session.jsonl.gz"
WENT_OUT = {"raw", "recalled", "reference"}
NETWORK = {"socket", "ssl", "http", "urllib", "asyncio", "httpx", "requests", "openai", "anthropic", "torch"}


@cache
def sample() -> AgentSession:
    return read_sessions(SAMPLE)[0]


@cache
def replayed() -> ReplayReport:
    return replay_files([[sample()]], ReplaySettings(policies=("ours",)))


@cache
def chained(folder: Path) -> dict[str, Any]:
    """The sample told three times over, as one session of 216 calls."""
    line = json.loads(gzip.decompress(SAMPLE.read_bytes()))
    path = folder / "three.jsonl"
    path.write_text("".join(f"{json.dumps({**line, 'id': f'part-{number}'})}\n" for number in range(3)), "utf-8")
    settings = ReplaySettings(policies=("ours",), chain_calls=205)
    policies: dict[str, Any] = replay_files([read_sessions(path)], settings).to_dict()["policies"]
    return policies


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sessions")


@pytest.fixture(scope="module")
def pool() -> Iterator[AgentPool]:
    with AgentPool() as opened:
        opened.import_session(sample())
        yield opened


@pytest.fixture(scope="module")
def plan(pool: AgentPool) -> ContextPlan:
    return pool.plan(sample().session_id)


def first_block(handle: str) -> int:
    return int(handle.split(maxsplit=1)[0].removeprefix("p").partition("#")[0].partition("-")[0])


@pytest.mark.requirement("R-C1-resident-bounded")
def test_the_resident_part_is_bounded_and_the_same_however_long_the_session() -> None:
    with AgentPool() as pool:
        pool.set_goal("Shell completion is installed, updated and removed cleanly.")
        before = pool.stats().resident_tokens
        pool.import_session(sample())
        assert 0 < pool.stats().resident_tokens == before < 8000
        with pytest.raises(BudgetError):
            pool.set_goal("word " * 9000)


@pytest.mark.requirement("R-C1-working-set-by-gain", "R-C7-heat")
def test_what_stays_is_chosen_by_worth_and_not_by_age(plan: ContextPlan) -> None:
    staying = [entry for entry in plan.entries if entry.form in WENT_OUT]
    left = [first_block(one.handle) for one in plan.departures]
    assert [entry for entry in staying if first_block(entry.handle) < max(left)], "something older than what left"
    assert {"likely to be quoted again", "a short text of the user"} <= {entry.reason for entry in staying}


@pytest.mark.requirement("R-C1-nothing-lost", "R-C7-compression-loses-nothing", "R-C3-originals-kept")
def test_every_block_of_a_recorded_session_comes_back_byte_for_byte(pool: AgentPool, plan: ContextPlan) -> None:
    blocks = [block for message in sample().messages for block in message.blocks]
    wrong = [
        number
        for number, block in enumerate(blocks)
        if block.kind is not BlockKind.THINKING and block.text and pool.expand(f"p{number}").text != block.text
    ]
    assert wrong == []
    for gone in plan.departures:
        assert pool.expand(gone.handle.split()[0]).text in blocks[first_block(gone.handle)].text


@pytest.mark.requirement("R-C2-oversized-to-pool")
def test_a_result_over_2000_characters_becomes_a_head_of_about_200_and_a_handle(pool: AgentPool) -> None:
    blocks = [block for message in sample().messages for block in message.blocks]
    number, block = next(
        (number, block)
        for number, block in enumerate(blocks)
        if block.kind is BlockKind.TOOL_RESULT and len(block.text) > 4000 and not block.is_error
    )
    assert should_slim_at_birth(block.text, tool=block.name, is_error=False, params=SPEC_SLIMMING)
    view = head_view(block.text, handle=f"p{number}", name="", tool=block.name, params=SPEC_SLIMMING)
    assert view is not None
    assert f"p{number}" in view.text
    assert len(view.text) < 1200
    assert block.text.startswith(view.text.split("\n")[0])
    assert pool.expand(f"p{number}").text == block.text
    assert not should_slim_at_birth("x" * 1999, tool="Bash", is_error=False, params=SPEC_SLIMMING)


@pytest.mark.requirement("R-C3-regular-not-watermark")
def test_the_window_is_tidied_long_before_any_limit_of_the_model() -> None:
    told = demonstrate(sample())
    assert told.rewrites >= 1
    assert told.plan is not None
    assert told.plan.tokens_before < 120_000 < 1_000_000
    assert told.plan.tokens_after < told.plan.tokens_before


@pytest.mark.requirement("R-C3-structured-cards")
def test_the_cards_of_a_recorded_session_quote_it_and_cite_their_pages(pool: AgentPool) -> None:
    cards = pool.cards(sample().session_id)
    entries = [entry for card in cards for entry in card.card.entries]
    assert len(entries) > 10
    assert sum(card.unverifiable for card in cards) == 0
    report = replayed()
    assert report.checks.expand_exact == 1.0
    assert (report.prefix_breaks, report.checks.unverifiable_card_entries) == (0, 0)


@pytest.mark.requirement("R-C4-mean-prompt")
def test_the_mean_prompt_and_prompt_to_completion_fall_and_are_told() -> None:
    figures = replayed().to_dict()["policies"]
    assert figures["ours"]["mean_prompt_tokens"] < 0.75 * figures["append-only"]["mean_prompt_tokens"]
    assert figures["ours"]["prompt_completion_ratio"] < figures["append-only"]["prompt_completion_ratio"]
    assert figures["ours"]["billed_vs_append_only"] > 1.0


@pytest.mark.requirement("R-C4-no-turn-tax", "R-C7-endless-session")
def test_a_late_call_of_a_long_session_costs_about_what_an_early_one_does(folder: Path) -> None:
    figures = chained(folder)
    assert figures["append-only"]["call200_vs_call6"] > 2 * figures["ours"]["call200_vs_call6"]
    assert figures["ours"]["mean_prompt_tokens"] < 0.5 * figures["append-only"]["mean_prompt_tokens"]


@pytest.mark.requirement("R-C7-page-unit")
def test_turns_tool_results_and_files_are_pages_of_their_own(pool: AgentPool) -> None:
    kinds = {str(page.kind) for page in pool.pages(sample().session_id)}
    assert {"turn", "tool", "file"} <= kinds


@pytest.mark.requirement("R-C7-zero-llm")
def test_no_module_that_schedules_can_reach_a_model_or_the_network() -> None:
    found = []
    for path in python_files("src/context_gatekeeper/core", "src/context_gatekeeper/engine"):
        for node in ast.walk(syntax_tree(path)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            found += [f"{name_of(path)}: {name}" for name in names if name.partition(".")[0] in NETWORK]
    assert found == []


@pytest.mark.requirement("R-C7-zero-llm")
def test_the_same_session_gives_the_same_plan(pool: AgentPool, plan: ContextPlan) -> None:
    assert asdict(pool.plan(sample().session_id)) == asdict(plan)


@pytest.mark.requirement("R-C9-observable", "R-C1-why")
def test_every_part_of_a_plan_says_why_it_is_in_or_out(plan: ContextPlan) -> None:
    assert all(entry.reason for entry in plan.entries)
    assert all(gone.reason and gone.handle for gone in plan.departures)
    assert sum(entry.tokens for entry in plan.entries) == plan.window_tokens
    told = "\n".join(plan.lines())
    assert "expected bill" in told
    assert "saved so far" in told


@pytest.mark.requirement("R-C9-one-recall-entry", "R-C10-one-recall-entry")
def test_one_recall_finds_all_kinds_of_pages_and_tells_where_each_is_from(pool: AgentPool) -> None:
    found = pool.recall("stanza shell completion FindStanza", limit=5)
    assert 2 <= len(found.pages) <= 5
    assert {page.item.session for page in found.pages} == {sample().session_id}
    assert len({page.item.kind for page in found.pages}) >= 2
    for page in found.pages:
        assert page.item.handle.startswith("page:")
        assert page.item.handle in found.text


@pytest.mark.requirement("R-C10-recall-quota")
def test_unless_asked_otherwise_a_recall_brings_five_pages_at_most(pool: AgentPool) -> None:
    assert len(pool.recall("completion setup test file error").pages) <= 5


@pytest.mark.requirement("R-C10-single-source")
def test_taking_a_session_in_again_stores_nothing_twice() -> None:
    half: tuple[AgentMessage, ...] = sample().messages[:40]
    with AgentPool() as pool:
        whole = sample()
        pool.import_session(AgentSession(whole.session_id, whole.source, half))
        pool.import_session(whole)
        pages = pool.stats().totals
        pool.import_session(whole)
        assert pool.stats().totals == pages
        assert len(pool.sessions()) == 1


@pytest.mark.requirement("R-C9-native-features")
def test_what_the_providers_do_themselves_was_looked_at_before() -> None:
    note = (ROOT / "docs" / "decisions" / "0010-native-features.md").read_text("utf-8")
    for feature in ("clear_tool_uses", "compaction", "memory tool", "prompt cache"):
        assert feature in note
    assert "**Decision.**" in note
