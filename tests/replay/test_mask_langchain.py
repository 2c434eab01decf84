"""Our masking beside the real ``ClearToolUsesEdit`` of LangChain: the same results are cleared at every call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents.middleware import ClearToolUsesEdit
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from context_gatekeeper.replay.policies import MaskResults
from context_gatekeeper.types import AgentMessage, BlockKind, MessageRole
from tests.replay.scripted import CALL_FRAME, FRAME, PROMPT, answer, character_log, filler, result, user

RESIDENT = 50


def their_message(message: AgentMessage) -> HumanMessage | AIMessage | ToolMessage:
    """The message as LangChain has it."""
    (first, *_) = message.blocks
    if message.role is MessageRole.USER:
        return HumanMessage(first.text)
    if message.role is MessageRole.TOOL:
        return ToolMessage(first.text, tool_call_id=first.call_id)
    text = "".join(block.text for block in message.blocks if block.kind is BlockKind.TEXT)
    calls = [
        {"id": block.call_id, "name": block.name, "args": json.loads(block.text)}
        for block in message.blocks
        if block.kind is BlockKind.TOOL_CALL
    ]
    return AIMessage(text, tool_calls=calls)


def count_tokens(messages: Sequence[Any]) -> int:
    """Characters and frames, as the scripted log counts them."""
    total = 0
    for message in messages:
        calls = getattr(message, "tool_calls", [])
        total += sum(len(json.dumps(call["args"])) + CALL_FRAME for call in calls)
        if message.content or not calls:
            total += len(message.content) + FRAME
    return total


@st.composite
def conversations(draw: st.DrawFn) -> list[AgentMessage]:
    """Calls of none to three tools, most of them answered, some results out of place."""
    messages = [user(PROMPT)]
    count = 0
    for _ in range(draw(st.integers(1, 8))):
        names = [f"call_{count + number}" for number in range(draw(st.integers(0, 3)))]
        count += len(names)
        text = draw(st.sampled_from(["", "Let me look."])) if names else "Nothing to run."
        messages.append(answer(text, *((name, "Read", {"file": "x" * draw(st.integers(0, 20))}) for name in names)))
        answered = draw(st.permutations([name for name in names if draw(st.integers(0, 9))]))
        messages += [result(name, filler(draw(st.integers(1, 900)))) for name in answered]
        extra = draw(st.integers(0, 11))
        if extra == 0:
            messages.append(result(f"call_{draw(st.integers(0, count))}_lost", filler(200)))
        elif extra == 1:
            messages.append(user(filler(40)))
    messages.append(answer("Done."))
    return messages


@settings(max_examples=150, deadline=None)
@given(
    messages=conversations(),
    trigger=st.integers(0, 3000),
    keep=st.integers(0, 4),
    clear_at_least=st.sampled_from([0, 0, 1, 50, 600, 5000]),
)
def test_ours_clears_the_results_that_theirs_clears(
    messages: list[AgentMessage], trigger: int, keep: int, clear_at_least: int
) -> None:
    log = character_log()
    ours = MaskResults(log, RESIDENT, RESIDENT + trigger, keep=keep, clear_at_least=clear_at_least)
    theirs = ClearToolUsesEdit(trigger=trigger, keep=keep, clear_at_least=clear_at_least)
    sent: list[Any] = []
    for message in messages:
        if message.is_call:
            theirs.apply(sent, count_tokens=count_tokens)
            request = ours.request(is_cold=False)
            assert cleared_by_ours(ours) == [place for place, one in enumerate(sent) if is_cleared(one)]
            assert request.tokens == count_tokens(sent)
        sent.append(their_message(message))
        ours.add(log.add_message(message))


def is_cleared(message: Any) -> bool:
    return bool(message.response_metadata.get("context_editing", {}).get("cleared"))


def cleared_by_ours(policy: MaskResults) -> list[int]:
    """Places of the messages whose text is not there any more."""
    log = policy.log
    return [
        segment.message
        for segment in log.segments
        if not all(policy.window.holds_piece(piece) for piece in segment.slices)
    ]
