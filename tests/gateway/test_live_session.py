"""One conversation, request after request: E8, retries, thinking that is bound to a prefix, pages that come back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.gateway.live_session import NO_PAGE, LiveSession, PlannedRequest, resident_tokens
from context_gatekeeper.testing.rendering import render_request
from context_gatekeeper.testing.signatures import check_signatures, sign_thinking
from context_gatekeeper.types import Usage
from context_gatekeeper.wire import decode_request, encode_request
from context_gatekeeper.wire.records import RequestEdits, WireApi, WireRequest
from tests.gateway.histories import BINDING_MODEL, OLDER_MODEL, Growth, Size, grow
from tests.gateway.request_checks import faults_of, sent_blocks
from tests.gateway.test_rendering import EAGER

ROOT = Path(__file__).parents[2]
MIDDLE = Size((12, 14), (200, 1500))
PAGE = "\n".join(f"alpha_{number} = beta_{number % 7}(gamma_{number})" for number in range(60))


def a_session(**options: Any) -> LiveSession:
    given: dict[str, Any] = {"resident_tokens": 100, "secret": b"x" * 16, "params": EAGER, **options}
    return LiveSession("s", PRICES["anthropic-5m"], **given)


def read(growth: Growth, number: int) -> WireRequest:
    return decode_request(growth.api, growth.raw(number))


def sent(request: WireRequest, planned: PlannedRequest) -> Any:
    return json.loads(encode_request(request, planned.edits))


def messages(*told: tuple[str, Any], model: str = OLDER_MODEL) -> WireRequest:
    body = {"model": model, "max_tokens": 9, "messages": [{"role": role, "content": content} for role, content in told]}
    return decode_request(WireApi.MESSAGES, json.dumps(body).encode())


def use(call_id: str, name: str = "Read", **given: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": call_id, "name": name, "input": given}]


def gave(call_id: str, text: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call_id, "content": text}]


@pytest.mark.parametrize("api", list(WireApi))
@pytest.mark.parametrize("seed", [1, 2])
def test_between_declared_rewrites_a_request_begins_with_the_one_before(api: WireApi, seed: int) -> None:
    growth, session = grow(api, seed, MIDDLE), a_session()
    before: list[str] = []
    epochs = rewrites = 0
    for number in range(len(growth.requests)):
        request = read(growth, number)
        planned = session.plan(request, now=20.0 * number)
        body = sent(request, planned)
        assert faults_of(api, growth.requests[number], body) == []
        now = sent_blocks(api, body)
        is_broken = now[: len(before)] != before
        assert is_broken == planned.is_rewrite
        assert not is_broken or planned.plan.epoch > epochs
        assert session.plan(request, now=20.0 * number) is planned  # the same request again
        before, epochs, rewrites = now, planned.plan.epoch, rewrites + is_broken
        session.look_ahead()
        assert session.plan(request, now=20.0 * number) is planned  # a retry after that
        assert session.preview() == replace(planned.edits, marked=frozenset(), marks_added=frozenset(), mark_ttl="5m")
    assert rewrites == session.rewrites > 0
    assert session.calls == len(growth.requests)


def plan_all(growth: Growth) -> list[bytes]:
    session = a_session()
    found = []
    for number in range(len(growth.requests)):
        request = read(growth, number)
        found.append(encode_request(request, session.plan(request, now=20.0 * number).edits))
        session.look_ahead()
    return found


def test_two_planners_send_the_same_bytes() -> None:
    growth = grow(WireApi.MESSAGES, 4, MIDDLE)
    assert plan_all(growth) == plan_all(growth)


def test_the_order_of_sets_has_no_say() -> None:
    told = (
        "import hashlib\nfrom tests.gateway.histories import grow\nfrom tests.gateway import test_live_session as t\n"
        "bodies = t.plan_all(grow(t.WireApi.MESSAGES, 4, t.Size((8, 9), (200, 900))))\n"
        "print(hashlib.sha256(b''.join(bodies)).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", told],
            check=True,
            capture_output=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


# -- thinking ------------------------------------------------------------------------------------------------


def signed_requests(seed: int) -> tuple[Growth, LiveSession]:
    return grow(WireApi.MESSAGES, seed, MIDDLE, model=BINDING_MODEL, is_claude_code=False), a_session(params=SELDOM)


@pytest.mark.parametrize("seed", range(4))
def test_no_thinking_stays_whose_prefix_is_another(seed: int) -> None:
    """The provider signs what it answers; what comes back must fit what stands in front of it."""
    growth, session = signed_requests(seed)
    signatures: dict[str, str] = {}
    kept = 0
    for number in range(len(growth.requests)):
        body = json.loads(growth.raw(number))
        resign(body["messages"], signatures)
        request = decode_request(WireApi.MESSAGES, json.dumps(body).encode())
        planned = session.plan(request, now=20.0 * number)
        edited = sent(request, planned)
        blocks = render_request(WireApi.MESSAGES, edited)
        assert check_signatures(edited["messages"], blocks, is_bound=True, drops=False).fault == ""
        kept += sum(part["type"] == "thinking" for part in parts_of(edited["messages"]))
        if number + 1 < len(growth.requests):
            answer = growth.requests[number + 1]["messages"][len(body["messages"])]
            thinking = [part for part in answer["content"] if part["type"] == "thinking"]
            prompt = list(blocks)
            for place, part in enumerate(thinking):
                key = f"{len(body['messages'])}/{place}"
                signatures[key] = sign_thinking(prompt, part["thinking"])
                shown = {"model": BINDING_MODEL, "messages": [{"role": "assistant", "content": [
                    {**one, "signature": signatures[f"{len(body['messages'])}/{n}"]}
                    for n, one in enumerate(thinking[: place + 1])
                ]}]}  # fmt: skip
                prompt = [*blocks, *render_request(WireApi.MESSAGES, shown)]
        session.look_ahead()
    assert session.rewrites
    assert kept


def parts_of(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for message in told if isinstance(message["content"], list) for part in message["content"]]


def resign(told: list[dict[str, Any]], signatures: dict[str, str]) -> None:
    """Put the signatures that were given out on the thinking; what is sealed leaves, since nobody sealed it."""
    for number, message in enumerate(told):
        if message["role"] != "assistant":
            continue
        content = [part for part in message["content"] if part["type"] != "redacted_thinking"]
        thinking = [part for part in content if part["type"] == "thinking"]
        for place, part in enumerate(thinking):
            content[content.index(part)] = {**part, "signature": signatures[f"{number}/{place}"]}
        message["content"] = content


SELDOM = replace(EAGER, kept_exchanges=2, every_calls=5)
THOUGHT = [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]


def thoughts(request: WireRequest, edits: RequestEdits) -> int:
    return encode_request(request, edits).count(b'"thinking": "hm"')


def test_of_a_conversation_that_began_elsewhere_no_bound_thinking_is_sent() -> None:
    talk = [("user", "Go."), ("assistant", [*THOUGHT, *use("a")]), ("user", gave("a", "x"))]
    for model, kept in ((BINDING_MODEL, 0), (OLDER_MODEL, 1)):
        request = messages(*talk, model=model)
        assert thoughts(request, a_session().plan(request, now=0.0).edits) == kept


def test_thinking_that_answers_the_clients_own_bytes_leaves_once_something_is_edited() -> None:
    first = [("user", PAGE), ("assistant", use("a", path="/a.py")), ("user", gave("a", PAGE[:900]))]
    second = [*first, ("assistant", [*THOUGHT, *use("b")]), ("user", gave("b", "fine"))]
    for is_bypassed in (False, True):
        session = a_session()
        planned = session.plan(messages(*first, model=BINDING_MODEL), now=0.0)
        assert planned.edits
        if is_bypassed:
            session.bypassed(messages(*first, model=BINDING_MODEL), planned)
        later = messages(*second, model=BINDING_MODEL)
        assert thoughts(later, session.plan(later, now=1.0).edits) == (not is_bypassed)


def test_thinking_of_an_answer_to_a_request_that_went_by_leaves() -> None:
    first = [("user", PAGE), ("assistant", use("a", path="/a.py")), ("user", gave("a", PAGE[:900]))]
    beside = [*first, ("assistant", use("b")), ("user", gave("b", "fine")), ("assistant", [*THOUGHT, *use("c")])]
    session = a_session()
    assert session.plan(messages(*first, model=BINDING_MODEL), now=0.0).edits
    later = messages(*beside, ("user", gave("c", "ok")), model=BINDING_MODEL)
    assert thoughts(later, session.plan(later, now=1.0).edits) == 0


# -- pages that come back ---------------------------------------------------------------------------------------


def left_page() -> tuple[LiveSession, list[tuple[str, Any]]]:
    """A session out of which the first result, p2, has left."""
    talk: list[tuple[str, Any]] = [("user", "Go.")]
    session = a_session(expand_command="cgk expand --session s")
    for number in range(4):
        page = PAGE.replace("alpha", f"delta{number}x").replace("beta", f"eps{number}y").replace("gamma", f"z{number}q")
        talk += [("assistant", use(f"c{number}", path=f"/f{number}.py")), ("user", gave(f"c{number}", page))]
    session.plan(messages(*talk), now=0.0)
    assert not session.schedule.pager.window.holds_piece(session.schedule.log.segments[2].slices[0])
    return session, talk


def recalled_in(planned: PlannedRequest) -> list[tuple[int, str]]:
    return [(n, text) for n, texts in planned.edits.added.items() for text in texts if "<recalled-" in text]


def test_a_handle_that_the_model_names_brings_its_page_to_the_end_of_what_the_user_says() -> None:
    session, talk = left_page()
    talk += [("assistant", "Let me read p2 again."), ("user", "Then look at it.")]
    request = messages(*talk)
    planned = session.plan(request, now=1.0)
    [(host, text)] = recalled_in(planned)
    assert host == len(talk) - 1
    assert "p2: tool result" in text
    assert "output of a tool" in text
    assert "delta0x_0 = eps0y_0(z0q_0)" in text
    content = sent(request, planned)["messages"][-1]["content"]
    assert [part["text"][:9] for part in content] == ["Then look", "<recalled"]


@pytest.mark.parametrize(
    "call",
    [
        use("x", "mcp__cgk__cgk_expand", handle="p6"),
        use("x", "Bash", command="cgk expand --session s p6"),
    ],
)
def test_a_page_that_the_model_fetches_itself_is_not_brought_twice(call: list[dict[str, Any]]) -> None:
    session, talk = left_page()
    faults = session.schedule.pager.plan().faults_since_rewrite
    talk += [("assistant", call), ("user", gave("x", "the page"))]
    request = messages(*talk)
    assert recalled_in(session.plan(request, now=1.0)) == []
    assert session.schedule.pager.plan().faults_since_rewrite > faults


def test_a_handle_of_no_page_does_nothing() -> None:
    session, talk = left_page()
    talk += [("assistant", "See p9999 and q2."), ("user", "No.")]
    request = messages(*talk)
    assert recalled_in(session.plan(request, now=1.0)) == []


# -- what the provider counted ------------------------------------------------------------------------------------


def test_usage_calibrates_the_estimate_by_what_was_added() -> None:
    session = a_session()
    talk: list[tuple[str, Any]] = [("user", "Go.")]
    first = planned = session.plan(messages(*talk), now=0.0)
    for number in range(3):
        planned = session.plan(messages(*talk), now=float(number))
        session.heard(Usage(plain_tokens=2 * planned.plan.prompt_tokens), planned)
        talk += [("assistant", f"Answer {number} " * 20), ("user", "More words of the user. " * 10)]
    assert session.schedule.log.token_factor > 1.5
    factor = session.schedule.log.token_factor
    session.heard(Usage(plain_tokens=9), first)
    session.heard(Usage(), planned)
    assert session.schedule.log.token_factor == factor


def test_what_comes_after_the_next_request_was_planned_is_too_late() -> None:
    session = a_session()
    first = session.plan(messages(("user", "Go.")), now=0.0)
    session.plan(messages(("user", "Go."), ("assistant", "Yes."), ("user", "On.")), now=1.0)
    spent = session.schedule.pager.ledger.spent
    session.heard(Usage(plain_tokens=100_000), first)
    session.bypassed(messages(("user", "Go.")), first)
    assert session.schedule.pager.ledger.spent == spent


def test_a_request_that_is_shorter_or_another_does_not_go_on() -> None:
    session = a_session()
    assert session.preview() == RequestEdits()
    session.plan(messages(("user", "Go."), ("assistant", "Yes."), ("user", "On.")), now=0.0)
    assert not session.goes_on(messages(("user", "Go.")))
    assert not session.goes_on(messages(("user", "Go."), ("assistant", "Yes."), ("user", "Off.")))
    assert session.known_messages(messages(("user", "Go."), ("assistant", "No."))) == 1


def test_breakpoints_that_the_client_moves_are_counted_anew() -> None:
    growth = grow(WireApi.MESSAGES, 5, MIDDLE, is_claude_code=True, model=OLDER_MODEL, ttl="5m")
    session = a_session()
    request = read(growth, len(growth.requests) - 1)
    planned = session.plan(request, now=0.0)
    body = json.loads(growth.raw(len(growth.requests) - 1))
    body["system"] = [{"type": "text", "text": f"rule {n}", "cache_control": {"type": "ephemeral"}} for n in range(3)]
    again = decode_request(WireApi.MESSAGES, json.dumps(body).encode())
    assert faults_of(WireApi.MESSAGES, body, sent(again, session.plan(again, now=1.0))) == []
    assert session.plan(request, now=2.0) is planned
    assert session.calls == 1


def test_system_texts_and_tools_are_resident() -> None:
    growth = grow(WireApi.MESSAGES, 5, MIDDLE)
    assert resident_tokens(read(growth, 0)) > 50


def test_what_the_model_fetches_while_it_answers_stands_in_the_next_request_too() -> None:
    session, talk = left_page()
    assert session.fetch("p2") == PAGE.replace("alpha", "delta0x").replace("beta", "eps0y").replace("gamma", "z0q")
    talk += [("assistant", "I have seen it."), ("user", "Then go on.")]
    planned = session.plan(messages(*talk), now=1.0)
    assert "delta0x" in "".join(text for _, text in recalled_in(planned))


def test_what_is_fetched_and_is_no_page_or_a_very_long_one_gives_a_text() -> None:
    session = a_session()
    session.plan(messages(("user", "One word after the other. " * 3000)), now=0.0)
    assert session.fetch("p777") == session.fetch("what?") == NO_PAGE
    assert session.fetch("p0").endswith("such as p12#L400-600]")
    assert len(session.fetch("p0")) < 61_000


def test_thinking_around_a_fetched_page_leaves_where_it_is_bound() -> None:
    for model, kept in ((BINDING_MODEL, 0), (OLDER_MODEL, 1)):
        session = a_session()
        first = messages(("user", "Go."), model=model)
        session.plan(first, now=0.0)
        session.fetch("p0")
        later = messages(("user", "Go."), ("assistant", [*THOUGHT, *use("a")]), ("user", gave("a", "x")), model=model)
        assert thoughts(later, session.plan(later, now=1.0).edits) == kept
