"""The strict checker: what each API refuses about calls, results, places and empty content."""

from __future__ import annotations

from typing import Any

import pytest

from context_gatekeeper.wire.pairing import PairingRules, find_violations, rules_of_model
from context_gatekeeper.wire.records import WireApi

OPUS = "claude-opus-4-8"
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
ASK = {"role": "user", "content": "q"}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def model(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def use(name: str, kind: str = "tool_use") -> dict[str, Any]:
    return {"type": kind, "id": name, "name": "read", "input": {}}


def result(name: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": content, **more}


def think(said: str = "hm", signature: str = "sig") -> dict[str, Any]:
    return {"type": "thinking", "thinking": said, "signature": signature}


REDACTED = {"type": "redacted_thinking", "data": "xx"}
SEARCH = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}


def violations(*messages: Any, rules: PairingRules | None = None, **body: Any) -> list[str]:
    return find_violations(WireApi.MESSAGES, {"model": OPUS, "messages": list(messages), **body}, rules=rules)


@pytest.mark.parametrize(
    "messages",
    [
        [ASK],
        [ASK, {"role": "assistant", "content": "a"}, ASK],
        [ASK, ASK],
        [ASK, model(use("a"), use("b")), user(result("a"), result("b"), text("next"))],
        [ASK, model(use("a")), user(result("a")), {"role": "system", "content": "note"}, model(text("x")), ASK],
        [ASK, model(think(), text("t"), use("a")), user(result("a", [{"type": "image"}, text("\n")], is_error=True))],
        [ASK, model(REDACTED, use("a")), user(result("a", None))],
        [ASK, model(think(""), use("a")), user(result("a"))],
        [ASK, model(use("s1", "server_tool_use"), SEARCH, text("t")), ASK],
        [ASK, model(use("s1", "server_tool_use"))],
        [ASK, model(text("half an answ"))],
        [ASK, model({"type": "of_tomorrow", "x": 1}, text("t")), user({"type": "image"}, {"type": "document"})],
        [ASK, model(text("a")), model(use("a")), user(result("a"))],
    ],
)
def test_conversations_that_the_messages_api_takes_are_valid(messages: list[Any]) -> None:
    assert violations(*messages, thinking={"type": "enabled", "budget_tokens": 1024}) == []


@pytest.mark.parametrize(
    ("messages", "part"),
    [
        ([], "at least one message"),
        ("text", "at least one message"),
        (["text"], "an object with a role"),
        ([{"content": "x"}], "an object with a role"),
        ([model(text("a")), ASK], "messages.0: the first message is not the user's"),
        ([{"role": "system", "content": "s"}, ASK], "the first message is not the user's"),
        ([ASK, {"role": "poet", "content": "s"}], "there is no role 'poet'"),
        ([{"role": "user", "content": " "}], "user message has empty content"),
        ([{"role": "user"}], "user message has empty content"),
        ([user()], "user message has empty content"),
        ([user(text(""))], "text of a text block is no text with something in it"),
        ([user(text(" \n"))], "text of a text block"),
        ([user("bare")], "messages.0.content.0: a content block is an object with a type"),
        ([user({"text": "x"})], "an object with a type"),
        ([ASK, model({"type": "tool_use", "id": "a b", "name": "n", "input": {}})], "id of a tool_use block"),
        ([ASK, model({"type": "tool_use", "id": "a", "name": "", "input": {}})], "name of a tool_use block"),
        ([ASK, model({"type": "tool_use", "id": "a", "name": "n", "input": "{}"})], "input of a tool_use block"),
        ([ASK, model({"type": "tool_use", "name": "n", "input": {}})], "id of a tool_use block"),
        ([user(result(""))], "tool_use_id of a tool_result block"),
        ([user(use("a"))], "a tool_use block belongs into a message of the role assistant"),
        ([ASK, model(result("a"))], "a tool_result block belongs into a message of the role user"),
        ([user(think())], "a thinking block belongs into"),
        ([ASK, model(think(signature=""), text("x"))], "signature of a thinking block"),
        ([ASK, model({"type": "thinking", "signature": "s"}, text("x"))], "thinking of a thinking block is no text"),
        ([ASK, model({"type": "redacted_thinking"}, text("x"))], "data of a redacted_thinking block"),
        ([ASK, model(use("a")), user(result("a", 7))], "neither text nor a list"),
        ([ASK, model(use("a")), user(result("a", ["x"]))], "content.0.content.0: a content block is an object"),
        ([ASK, model(use("a")), user(result("a", [text("")]))], "content.0.content.0: text of a text block is empty"),
        ([ASK, model(text("a ")), ASK, model(text("a "))], "messages.3: the assistant's text at the end"),
    ],
)
def test_wrong_roles_and_content_are_named(messages: Any, part: str) -> None:
    found = find_violations(WireApi.MESSAGES, {"model": OPUS, "messages": messages})
    assert len(found) == 1
    assert part in found[0]


@pytest.mark.parametrize(
    ("system", "count"), [(None, 0), ("", 0), ([text("s")], 0), ([text("")], 1), ([{"type": "image"}], 1), (7, 1)]
)
def test_the_system_prompt_is_text_or_text_blocks_that_say_something(system: Any, count: int) -> None:
    assert len(violations(ASK, system=system)) == count


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([ASK, model(use("a"))], ["messages.1: the call a has no result in the next message"]),
        ([ASK, model(use("a")), ASK], ["messages.1: the call a has no result in the next message"]),
        (
            [ASK, model(use("a"), use("b")), user(result("a")), user(result("b"))],
            [
                "messages.1: the call b has no result in the next message",
                "messages.3: the result b answers no call of the message before",
            ],
        ),
        (
            [ASK, model(use("a")), {"role": "system", "content": "s"}, user(result("a"))],
            [
                "messages.1: the call a has no result in the next message",
                "messages.3: the result a answers no call of the message before",
            ],
        ),
        ([user(result("a"))], ["messages.0: the result a answers no call of the message before"]),
        ([ASK, model(use("a")), user(result("a"), result("a"))], ["messages.2: the call a has 2 results"]),
        (
            [ASK, model(use("a")), user(text("t"), result("a"))],
            ["messages.2: tool results must stand before all other blocks"],
        ),
        (
            [ASK, model(use("a")), user(result("a")), model(use("a")), user(result("a"))],
            ["messages.3: the call id a stands twice in the request"],
        ),
        (
            [ASK, model(use("s1", "server_tool_use"), text("t")), ASK],
            ["messages.1: the server's call s1 has no result in its message"],
        ),
        (
            [ASK, model(SEARCH, text("t")), ASK],
            ["messages.1: the web_search_tool_result s1 answers no call of its message"],
        ),
        (
            [ASK, model(use("s1", "mcp_tool_use"), text("t")), model(SEARCH, text("t")), ASK],
            [
                "messages.1: the server's call s1 has no result in its message",
                "messages.2: the web_search_tool_result s1 answers no call of its message",
            ],
        ),
    ],
)
def test_calls_without_results_and_results_without_calls_are_named(messages: list[Any], expected: list[str]) -> None:
    assert violations(*messages) == expected


def test_roles_that_follow_themselves_are_refused_where_a_service_does_not_join_them() -> None:
    strict = PairingRules(strict_roles=True)
    assert violations(ASK, model(text("a")), ASK, rules=strict) == []
    assert violations(ASK, ASK, rules=strict) == [
        "messages.1: roles must alternate between user and assistant, the user first"
    ]


@pytest.mark.parametrize(
    ("name", "takes_system"),
    [
        ("claude-opus-4-8", True),
        ("claude-opus-5", True),
        ("claude-opus-5-5", True),
        ("claude-fable-5-1", True),
        ("claude-opus-4-7", False),
        ("claude-opus-4-20250514", False),
        ("claude-sonnet-5", False),
        ("claude-3-opus-latest", False),
        ("", False),
    ],
)
def test_system_messages_inside_are_for_models_that_take_them(name: str, takes_system: bool) -> None:
    assert rules_of_model(name).system_in_messages is takes_system
    found = violations(ASK, {"role": "system", "content": "s"}, model=name)
    assert found == ([] if takes_system else ["messages.1: this model takes no system message inside the conversation"])


def test_thinking_neither_ends_a_message_nor_stands_behind_the_beginning_of_an_open_tool_loop() -> None:
    enabled = {"type": "enabled", "budget_tokens": 1024}
    assert violations(ASK, model(text("a"), think()), ASK) == [
        "messages.1: the last block of an assistant message cannot be thinking"
    ]
    late = [ASK, model(text("t"), think(), use("a")), user(result("a"))]
    assert violations(*late, thinking=enabled) == [
        "messages.1: the assistant message of an open tool loop must start with its thinking"
    ]
    assert violations(*late) == []
    assert violations(*late, model(text("b")), ASK, thinking=enabled) == []
    assert violations(ASK, model(text("t"), use("a")), user(result("a")), thinking=enabled) == []
    assert violations(ASK, model(think()), model(use("a")), user(result("a")), thinking=enabled) == []


def test_cache_marks_are_at_most_four_and_those_of_an_hour_come_first() -> None:
    tool = {"name": "read", "cache_control": HOUR}
    four = [text("a", cache_control=MARK), text("b"), text("c", cache_control=MARK)]
    assert violations(user(*four), tools=[tool, "odd"], system=[text("s", cache_control=HOUR)]) == []
    assert violations(user(*four), tools=[tool], system=[text("s", cache_control=HOUR)], cache_control=MARK) == [
        "cache_control: 5 blocks bear it, at most 4 may"
    ]
    assert violations(user(text("a", cache_control=MARK), text("b", cache_control=HOUR))) == [
        "messages.0.content.1: a cache mark of 1h stands behind one of 5m"
    ]
    assert violations(ASK, tools=[{"name": "read", "cache_control": MARK}], cache_control=HOUR) == [
        "request: a cache mark of 1h stands behind one of 5m"
    ]


def test_cache_marks_are_of_one_type_and_not_on_thinking_or_empty_text() -> None:
    for odd in ("5m", {"type": "lasting"}, {"type": "ephemeral", "ttl": "2h"}):
        assert "not of type ephemeral" in violations(user(text("a", cache_control=odd)))[0]
    marked = {**think(), "cache_control": MARK}
    assert violations(ASK, model(marked, text("t")), ASK) == [
        "messages.1.content.0: a thinking block cannot bear cache_control"
    ]
    inner = result("a", [text("out", cache_control=MARK)], cache_control=MARK)
    assert violations(ASK, model(use("a")), user(inner)) == []
    empty = {"type": "text", "text": "", "cache_control": MARK}
    assert violations(ASK, tools=[empty]) == ["tools.0: an empty text block cannot bear cache_control"]
