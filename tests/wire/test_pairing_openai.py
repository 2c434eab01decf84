"""The strict checker on OpenAI's two APIs, and on the shapes of public fault reports."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.wire.pairing import find_violations
from context_gatekeeper.wire.records import WireApi

ASK = {"role": "user", "content": "q"}


def called(*ids: str, content: Any = None, **more: Any) -> dict[str, Any]:
    calls = [{"id": one, "type": "function", "function": {"name": "read", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": content, "tool_calls": calls, **more}


def tool(call: str, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": content}


def chat(*messages: Any) -> list[str]:
    return find_violations(WireApi.CHAT, {"messages": list(messages)})


def responses(*items: Any, **body: Any) -> list[str]:
    return find_violations(WireApi.RESPONSES, {"input": list(items), **body})


def call(name: str, kind: str = "function_call") -> dict[str, Any]:
    return {"type": kind, "call_id": name, "name": "read", "arguments": "{}", "input": "x"}


def output(name: str, kind: str = "function_call_output") -> dict[str, Any]:
    return {"type": kind, "call_id": name, "output": "ok"}


REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "system", "content": ""}],
        [{"role": "developer", "content": "d"}, ASK, {"role": "assistant", "content": "a"}, ASK],
        [ASK, called("a", "b"), tool("b"), tool("a", [{"type": "text", "text": "x"}]), ASK],
        [ASK, called("a", content=""), tool("a", ""), called("a"), tool("a"), ASK],
        [ASK, {"role": "assistant", "content": None, "refusal": "no"}],
        [ASK, {"role": "assistant", "function_call": {"name": "f"}}, {"role": "function", "content": None}],
        [ASK, {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "p"}}]}, tool("c")],
        [ASK, {"role": "assistant", "content": "a", "tool_calls": None}],
    ],
)  # fmt: skip
def test_conversations_that_chat_completions_takes_are_valid(messages: list[Any]) -> None:
    assert chat(*messages) == []


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([{"role": "poet", "content": "x"}], ["messages.0: there is no role 'poet'"]),
        ([{"role": "user", "content": None}], ["messages.0: user message has no content"]),
        ([ASK, {"role": "assistant", "content": None}], ["messages.1: assistant message has no content"]),
        ([{"role": "user", "content": []}], ["messages.0: user message has empty content"]),
        ([{"role": "user", "content": 7}], ["messages.0: content is neither text nor a list"]),
        ([{"role": "user", "content": ["x"]}], ["messages.0.content.0: a content part is an object with a type"]),
        ([tool("a")], ["messages.0: the tool message a answers no open call of the messages before"]),
        ([ASK, called("a")], ["messages.1: the call a has no tool message behind it"]),
        (
            [ASK, called("a"), ASK, tool("a")],
            [
                "messages.1: the call a has no tool message behind it",
                "messages.3: the tool message a answers no open call of the messages before",
            ],
        ),
        (
            [ASK, called("a"), tool("a"), tool("a")],
            ["messages.3: the tool message a answers no open call of the messages before"],
        ),
        ([ASK, called()], ["messages.1: tool_calls is no list of at least one call"]),
        ([ASK, called("a", "a"), tool("a")], ["messages.1: the call id a stands twice"]),
        (
            [{**called("a"), "role": "user", "content": "x"}, tool("a")],
            ["messages.0: only the assistant's messages have tool_calls"],
        ),
        ([ASK, called("")], ["messages.1.tool_calls.0: a call is an object with an id"]),
        (
            [ASK, {"role": "assistant", "tool_calls": [{"id": "a", "type": 7}, {"id": "b"}]}, tool("a"), tool("b")],
            [
                "messages.1.tool_calls.0: the call names no function",
                "messages.1.tool_calls.1: the call names no function",
            ],
        ),
    ],
)
def test_what_chat_completions_refuses_is_named(messages: list[Any], expected: list[str]) -> None:
    assert chat(*messages) == expected


@pytest.mark.parametrize(
    "items",
    [
        [ASK],
        [{"role": "developer", "content": [{"type": "input_text", "text": "d"}]}, ASK, SAID, ASK],
        [ASK, call("a"), call("b"), output("b"), output("a")],
        [ASK, call("a"), {"role": "user", "content": "meanwhile"}, output("a")],
        [ASK, call("a", "custom_tool_call"), output("a", "custom_tool_call_output"), call("a"), output("a")],
        [
            {"type": "local_shell_call", "id": "l", "call_id": "l", "action": {}},
            {"type": "local_shell_call_output", "id": "l", "output": "x"},
        ],
        [ASK, REASONING, SAID, ASK],
        [ASK, REASONING, REASONING, call("a"), output("a")],
        [ASK, REASONING, {"type": "web_search_call", "id": "w"}, SAID],
        [ASK, {"type": "of_tomorrow"}, {"id": "msg_1"}, output("stored")],
    ],
)
def test_conversations_that_the_responses_api_takes_are_valid(items: list[Any]) -> None:
    assert responses(*items) == []


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (["x"], ["input.0: an item is an object"]),
        ([{"type": 7}], ["input.0: the type of an item is a text"]),
        ([{"role": "poet", "content": "x"}], ["input.0: there is no role 'poet'"]),
        ([{"role": "user", "content": []}], ["input.0: user message has empty content"]),
        ([{"role": "user", "content": ["x"]}], ["input.0.content.0: a content part is an object with a type"]),
        ([{"type": "function_call", "call_id": "a", "name": ""}], ["input.0: a function_call needs the key arguments"]),
        ([call("")], ["input.0: call_id of a function_call is no text with something in it"]),
        ([{"type": "reasoning"}], ["input.0: a reasoning needs the key summary"]),
        ([ASK, call("a")], ["input.1: the function_call a has no output behind it"]),
        (
            [output("a"), call("a")],
            [
                "input.0: the output a answers no function_call before it",
                "input.1: the call id a stands twice in the request",
                "input.1: the function_call a has no output behind it",
            ],
        ),
        ([call("a"), output("a"), output("a")], ["input.2: the call a has two outputs"]),
        ([call("a"), call("a"), output("a")], ["input.1: the call id a stands twice in the request"]),
        (
            [call("a"), output("a", "custom_tool_call_output")],
            [
                "input.1: the output a answers no custom_tool_call before it",
                "input.0: the function_call a has no output behind it",
            ],
        ),
        ([ASK, REASONING], ["input.1: the reasoning item rs_1 lacks the item that followed it"]),
        ([ASK, REASONING, ASK], ["input.1: the reasoning item rs_1 lacks the item that followed it"]),
    ],
)  # fmt: skip
def test_what_the_responses_api_refuses_is_named(items: list[Any], expected: list[str]) -> None:
    assert responses(*items) == expected


@pytest.mark.parametrize("server", [{"previous_response_id": "resp_1"}, {"conversation": {"id": "conv_1"}}])
def test_outputs_may_answer_calls_that_the_server_keeps(server: dict[str, Any]) -> None:
    assert responses(output("a"), ASK, **server) == []
    assert responses(output("a"), output("a"), **server) == ["input.1: the call a has two outputs"]
    assert len(responses(output("a"))) == 1


@pytest.mark.parametrize(("given", "count"), [(None, 0), ("hi", 0), (7, 1)])
def test_input_is_text_or_a_list(given: Any, count: int) -> None:
    assert len(find_violations(WireApi.RESPONSES, {"input": given})) == count


# -- shapes of public fault reports, by the wrong outcome ------------------------------------------


def messages(*listed: Any) -> list[str]:
    return find_violations(WireApi.MESSAGES, {"model": "claude-sonnet-5", "messages": list(listed)})


def uses(*ids: str) -> list[Any]:
    return [{"type": "tool_use", "id": one, "name": "read", "input": {}} for one in ids]


def results(*ids: str) -> list[Any]:
    return [{"type": "tool_result", "tool_use_id": one, "content": "ok"} for one in ids]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.data())
def test_whole_loops_are_valid_in_every_api_and_half_a_pair_in_none(calls: list[int], data: st.DataObject) -> None:
    ids = [[f"c{turn}x{number}" for number in range(count)] for turn, count in enumerate(calls)]
    forms: dict[WireApi, list[Any]] = {api: [ASK] for api in WireApi}
    for turn in filter(None, ids):
        forms[WireApi.MESSAGES] += [
            {"role": "assistant", "content": uses(*turn)},
            {"role": "user", "content": results(*turn)},
        ]
        forms[WireApi.CHAT] += [called(*turn), *map(tool, turn)]
        forms[WireApi.RESPONSES] += [*map(call, turn), *map(output, turn)]
    for api, items in forms.items():
        key = "input" if api is WireApi.RESPONSES else "messages"
        assert find_violations(api, {"model": "claude-sonnet-5", key: items}) == []
        if len(items) > 1:
            gone = data.draw(st.integers(1, len(items) - 1))
            left = items[:gone] + items[gone + 1 :]
            assert find_violations(api, {"model": "claude-sonnet-5", key: left}) != []


def test_a_kept_tail_that_starts_with_a_tool_answer_is_refused() -> None:
    whole = [ASK, called("c1"), tool("c1", "a b"), ASK, {"role": "assistant", "content": "ok"}, ASK]
    assert chat(*whole) == []
    assert chat(*whole[2:]) != []


def test_ten_parallel_answers_of_which_the_call_was_folded_away_are_refused() -> None:
    ids = [f"c{number}" for number in range(1, 11)]
    whole = [ASK, called(*ids), *map(tool, ids), ASK]
    assert chat(*whole) == []
    assert len(chat(ASK, *whole[6:])) == 6
    assert len(chat(*whole[:-2], ASK)) == 1


def test_an_output_without_its_function_call_is_refused() -> None:
    whole = [ASK, call("call_1"), output("call_1"), SAID]
    assert responses(*whole) == []
    assert responses(*whole[2:]) != []
    assert responses(*whole[:2], SAID) != []


def test_two_answers_of_parallel_calls_in_two_user_messages_are_refused() -> None:
    asked = {"role": "assistant", "content": uses("t1", "t2")}
    assert messages(ASK, asked, {"role": "user", "content": results("t1", "t2")}) == []
    assert messages(ASK, asked, *({"role": "user", "content": results(one)} for one in ("t1", "t2"))) != []


def test_answers_glued_together_under_one_id_are_refused() -> None:
    assert chat(ASK, called("x", "y"), tool("x", "12"), ASK, ASK) == [
        "messages.1: the call y has no tool message behind it"
    ]


@pytest.mark.parametrize("function", [{"arguments": None}, {"arguments": {"a": 1}}, {}])
def test_odd_arguments_are_no_matter_of_pairing(function: dict[str, Any]) -> None:
    odd = {"id": "call_1", "type": "function", "function": {"name": "read", **function}}
    assert chat({"role": "assistant", "content": None, "tool_calls": [odd]}, tool("call_1"), ASK) == []


def test_an_empty_list_of_messages_is_named_and_no_exception() -> None:
    assert chat() == ["messages: a list of at least one message is needed"]
    assert chat({"role": "system", "content": ""}) == []


def test_a_message_whose_blocks_all_left_is_refused() -> None:
    assert messages({"role": "user", "content": []}) != []


def test_an_empty_text_block_beside_a_call_is_refused() -> None:
    answered = {"role": "user", "content": results("u1")}
    assert messages(ASK, {"role": "assistant", "content": uses("u1")}, answered) == []
    assert messages(ASK, {"role": "assistant", "content": [{"type": "text", "text": ""}, *uses("u1")]}, answered) != []


def test_thinking_without_its_signature_is_refused() -> None:
    answered = {"role": "user", "content": results("u1")}
    whole = {"type": "thinking", "thinking": "t1", "signature": "sigA"}
    assert messages(ASK, {"role": "assistant", "content": [whole, *uses("u1")]}, answered) == []
    cut = {"type": "thinking", "thinking": "t1"}
    assert messages(ASK, {"role": "assistant", "content": [cut, *uses("u1")]}, answered) != []


def test_reasoning_and_the_message_behind_it_stay_or_leave_together() -> None:
    assert responses(ASK, REASONING, SAID, ASK) == []
    assert responses(ASK, ASK) == []
    assert responses(ASK, REASONING, ASK) != []
