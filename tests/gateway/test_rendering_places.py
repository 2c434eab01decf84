"""Where what is left of a conversation stands: roles alternate, and pages that came back leave where they came to."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.engine.window import EntryForm
from context_gatekeeper.gateway.live_session import LiveSession
from context_gatekeeper.wire import decode_request, encode_request
from context_gatekeeper.wire.pairing import PairingRules, find_violations
from context_gatekeeper.wire.records import WireApi
from tests.gateway.test_live_session import PAGE, gave, left_page, messages, recalled_in, sent, use
from tests.gateway.test_rendering import EAGER

SHORT_STAYS = replace(EAGER, short_user_tokens=150)


def edited(*told: tuple[str, Any], params: Any = SHORT_STAYS) -> list[Any]:
    session = LiveSession("s", PRICES["anthropic-5m"], resident_tokens=9, secret=b"x" * 16, params=params)
    request = messages(*told)
    body = sent(request, session.plan(request, now=0.0))
    assert find_violations(WireApi.MESSAGES, body, rules=PairingRules(strict_roles=True)) == []
    return list(body["messages"])


END: list[tuple[str, Any]] = [("assistant", use("z")), ("user", gave("z", "the newest result"))]


def test_of_an_answer_between_two_texts_that_stay_the_first_line_stays() -> None:
    told = edited(("user", "Go."), ("assistant", f"First line.\n{PAGE}"), ("user", "And on."), *END)
    assert [message["role"] for message in told] == ["user", "assistant", "user", "assistant", "user"]
    assert told[1]["content"] == "First line.\n[out: p1]"


def test_a_short_answer_between_them_stays_whole() -> None:
    told = edited(("user", "Go."), ("assistant", "All fine."), ("user", "And on."), *END)
    assert told[1]["content"] == "All fine."


def test_of_calls_between_them_the_frame_stays() -> None:
    beside = [*gave("a", PAGE), {"type": "text", "text": "And on."}]
    told = edited(("user", "Go."), ("assistant", use("a", content=PAGE)), ("user", beside), *END)
    assert told[1]["content"][0]["input"] == {"content": "[out: p1]"}
    assert told[2]["content"][0]["content"].startswith("[out: p2]")
    assert told[2]["content"][1]["text"] == "And on."


def test_what_we_cannot_read_between_them_stays_as_it_is() -> None:
    sealed = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    ]
    told = edited(("user", "Go."), ("assistant", sealed), ("user", "And on."), *END)
    assert told[1]["content"] == sealed


def test_an_image_between_them_stays() -> None:
    image = [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}]
    told = edited(("user", "Go."), ("assistant", image), ("user", "And on."), *END)
    assert told[1]["content"] == image


def test_what_came_back_and_leaves_alone_is_marked_where_it_came_to() -> None:
    session, talk = left_page()
    talk += [("assistant", "Let me read p2 again."), ("user", "Then look at it.")]
    request = messages(*talk)
    session.plan(request, now=1.0)
    window = session.schedule.pager.window
    entries = [
        window.make(EntryForm.DIGEST, 9, entry.pieces, text="[out: p2]") if entry.form is EntryForm.RECALLED else entry
        for entry in window.entries
    ]
    edits = session._renderer.render(request, entries)  # noqa: SLF001 - a window that seldom comes about
    assert edits.added[len(talk) - 1] == ("[out: p2]",) * edits.added[len(talk) - 1].count("[out: p2]")
    assert edits.added[0] == session.preview().added[0]


def test_an_image_of_a_result_keeps_its_call() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    content = [{"type": "text", "text": PAGE}, {"type": "image", "source": source}]
    block = [{"type": "tool_result", "tool_use_id": "a", "content": content}]
    for number in range(3):
        told = edited(("user", "Go."), ("assistant", use("a")), ("user", block), *END[: 2 * number])
        assert told[0]["role"] == "user"


def test_a_page_that_came_back_and_leaves_again_changes_nothing_in_front_of_it() -> None:
    session, talk = left_page()
    talk += [("assistant", "Let me read p2 again."), ("user", "Then look at it.")]
    came = messages(*talk)
    planned = session.plan(came, now=1.0)
    assert recalled_in(planned)
    before = sent(came, planned)["messages"]
    for number in range(12):
        talk += [("assistant", use(f"n{number}")), ("user", gave(f"n{number}", f"something else {number}"))]
        left = messages(*talk)
        after = session.plan(left, now=2.0 + number)
        kept = sent(left, after)["messages"]
        assert kept[0]["content"][: len(before[0]["content"])] == before[0]["content"]
        if not recalled_in(after):
            break
    assert not recalled_in(after)
    assert " p2 " in json.dumps(kept)


def test_an_item_that_we_do_not_know_stays_with_its_output() -> None:
    body = {
        "model": "g",
        "input": [
            {"role": "user", "content": "Go."},
            {"type": "computer_call", "call_id": "c", "id": "cu", "action": {"type": "click"}, "status": "completed"},
            {
                "type": "computer_call_output",
                "call_id": "c",
                "output": {"type": "computer_screenshot", "image_url": "u"},
            },
            *({"role": ("assistant", "user")[n % 2], "content": f"{n}\n{PAGE}"} for n in range(4)),
        ],
    }
    request = decode_request(WireApi.RESPONSES, json.dumps(body).encode())
    session = LiveSession("s", PRICES["openai"], resident_tokens=9, secret=b"x" * 16, params=EAGER)
    told = json.loads(encode_request(request, session.plan(request, now=0.0).edits))
    assert find_violations(WireApi.RESPONSES, told) == []
