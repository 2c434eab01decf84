"""What a window holds of other tasks, and when a slice left it: the same as counting everything anew each time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.economics import FAULT_FRAME_TOKENS, PRICES
from context_gatekeeper.engine.pager_params import PagerParams
from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.engine.window import EntryForm, Window
from context_gatekeeper.replay.holdings import Holdings
from context_gatekeeper.replay.policies import (
    AppendOnly,
    AutoCompact,
    MaskResults,
    Ours,
    SlidingWindow,
    SlimAtBirth,
    WindowPolicy,
)
from context_gatekeeper.replay.reselect import Reselect
from context_gatekeeper.replay.run import ReplayOptions, ReplaySession, replay_session
from context_gatekeeper.types import AgentMessage
from tests.replay.scripted import SECRET_LINE, answer, filler, result, session_of, user

ANTHROPIC = PRICES["anthropic-5m"]
EAGER = PagerParams(
    fault_price_factor=0.0, fault_target=None, patience=0.0, tail_tokens=200, keep_calls=1000.0, overdraft=1.0,
    digest=False,
)  # fmt: skip
POLICIES: dict[str, Callable[[SessionLog], WindowPolicy]] = {
    "append-only": AppendOnly,
    "window": lambda log: SlidingWindow(log, 2000),
    "mask": lambda log: MaskResults(log, 0, 1500, keep=1),
    "compact": lambda log: AutoCompact(log, 0, 6000),
    "slim": SlimAtBirth,
    "ours": lambda log: Ours(log, ANTHROPIC, 8000, EAGER),
    "reselect": Reselect,
}
LOCK = "The Redis lock of the payments worker expires after lock_ttl_seconds = 45 in settings/locks.toml."


def two_tasks() -> list[AgentMessage]:
    """A task, another one in between that shares no word with it, and back; results of all sizes."""
    messages = []
    asked = (
        "How long does the Redis lock of the payments worker live?",
        "Now something else entirely: write a carrot soup recipe with onions and ginger.",
        "Back to the Redis lock of the payments worker: which file holds its expiry?",
    )
    for turn, text in enumerate(asked):
        messages.append(user(text))
        for number in range(4):
            call = f"c{turn}-{number}"
            messages.append(answer(f"Step {number}.", (call, "Read", {"file_path": f"{turn}/part_{number}.txt"})))
            content = f"{LOCK}\n{SECRET_LINE}\n{filler(1500 + 900 * number)}" if number == turn == 0 else filler(2500)
            messages.append(result(call, content))
    messages.append(answer(f"It is here:\n{SECRET_LINE}\n{LOCK}"))
    return messages


@pytest.mark.parametrize("name", POLICIES)
def test_the_figures_of_a_policy_are_those_of_counting_everything_anew(name: str) -> None:
    log = SessionLog()
    policy = POLICIES[name](log)
    before: set[int] = set()
    left: dict[int, int] = {}
    others = []
    for message in two_tasks():
        if message.is_call:
            policy.request(is_cold=False)
            entries = policy.window.entries
            whole = {entry.pieces[0] for entry in entries if entry.is_whole}
            left |= dict.fromkeys(before - whole, log.calls)
            before = whole
            counted = sum(
                entry.tokens
                for entry in entries
                if entry.is_whole and log.is_of_other_task(log.slices[entry.pieces[0]])
            )
            told = policy.other_task_tokens()
            assert told is not None
            assert told == counted if name != "reselect" else told >= counted
            others.append(told)
            if log.calls == 9:
                policy.fault([3])
                before.add(3)
        policy.add(log.add_message(message))
    assert {piece: policy.left_at(piece) for piece in range(len(log.slices))} == {
        piece: left.get(piece) for piece in range(len(log.slices))
    }
    assert bool(left) is (name in ("window", "mask", "compact", "reselect")), "ours sees no rewrite that pays here"
    assert max(others) > 0, "the soup stands between"


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(0, 11)),
            st.tuples(st.just("keep"), st.sets(st.integers(0, 11))),
            st.just(("look", 0)),
        ),
        max_size=40,
    )
)
def test_any_course_of_a_window_is_followed(course: list[tuple[str, object]]) -> None:
    log = SessionLog()
    for number in range(4):
        for message in (
            user(f"Question {number} about {'cats' if number % 2 else 'docks'}."),
            answer("Yes."),
            user(""),
        ):
            log.add_message(message)
    window = Window(log)
    holdings = Holdings(log, window)
    seen: set[int] = set()
    left: set[int] = set()
    for step, value in [*course, ("look", 0)]:
        if step == "append" and isinstance(value, int):
            piece = log.slices[value % len(log.slices)]
            window.append(window.make(EntryForm.RAW, piece.tokens, [piece.number]))
        elif step == "keep" and isinstance(value, set):
            window.replace_all([entry for entry in window.entries if entry.pieces[0] in value])
        elif step == "look":
            holdings.look()
            whole = {entry.pieces[0] for entry in window.entries}
            left |= seen - whole
            seen = whole
            counted = [e.tokens for e in window.entries if log.is_of_other_task(log.slices[e.pieces[0]])]
            assert holdings.other_task_tokens() == sum(counted)
    assert {piece.number for piece in log.slices if holdings.left_at(piece.number) is not None} == left


@pytest.mark.parametrize("name", POLICIES)
def test_a_page_that_came_back_stands_in_its_frame_and_is_billed_once(name: str) -> None:
    log = SessionLog()
    policy = POLICIES[name](log)
    for message in two_tasks()[:6]:
        if message.is_call:
            policy.request(is_cold=False)
        policy.add(log.add_message(message))
    sent = policy.request(is_cold=False)
    pieces = [2, 3]
    own = sum(log.slices[piece].tokens for piece in pieces)
    assert policy.fault(pieces) == own
    assert policy.window.tokens == sent.tokens + own + 2 * FAULT_FRAME_TOKENS
    back = [entry for entry in policy.window.entries if entry.form is EntryForm.RECALLED]
    assert [entry.tokens for entry in back] == [log.slices[piece].tokens + FAULT_FRAME_TOKENS for piece in pieces]


def test_the_frame_of_a_page_is_in_every_prompt_after_its_fault_and_read_from_the_cache() -> None:
    messages = [
        user("Look at it."),
        answer("Reading.", ("a", "Read", {"file_path": "a"})),
        result("a", f"{filler(4000)}\n{SECRET_LINE}\n{filler(4000)}"),
        answer("Reading on.", ("b", "Read", {"file_path": "b"})),
        result("b", filler(300)),
        answer(SECRET_LINE),
        user("And now?"),
        answer("Done."),
    ]
    makers = {"slim": lambda log, _resident: SlimAtBirth(log)}
    found, _, log = replay_session(ReplaySession(session_of(*messages)), makers, ReplayOptions(ANTHROPIC, 8000))
    figures = found["slim"]
    assert figures.faults == 1
    unit = log.unit_id(SECRET_LINE.strip())
    assert unit is not None
    page = log.slices[log.units[unit].holders[0]].tokens + FAULT_FRAME_TOKENS
    new = sum(piece.tokens for piece in log.slices[-3:-1])
    assert log.segments[log.slices[-3].segment].text == SECRET_LINE
    assert figures.call_prompts[-1] == figures.call_prompts[-2] + page + new
    assert figures.call_uncached[-1] == new
