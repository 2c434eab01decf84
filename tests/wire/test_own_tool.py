"""The gateway's own tool in requests, and the requests that go on behind its answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.errors import WireFormatError
from context_gatekeeper.wire import decode_request
from context_gatekeeper.wire.own_tool import OWN_TOOL, continued, with_own_tool
from context_gatekeeper.wire.pairing import find_violations
from context_gatekeeper.wire.records import WireApi
from tests.wire.hidden_exchanges import CHAT, MESSAGES, RESPONSES, request_text
from tests.wire.requests import UNHURRIED, SampleRequest, sample_requests

EACH_API = pytest.mark.parametrize("api", list(WireApi))
CALL: dict[WireApi, dict[str, Any]] = {
    MESSAGES: {"type": "tool_use", "id": "c1", "name": OWN_TOOL, "input": {"handle": "p1"}},
    CHAT: {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": OWN_TOOL, "arguments": "{}"}}],
    },
    RESPONSES: {"type": "function_call", "call_id": "c1", "name": OWN_TOOL, "arguments": "{}"},
}


def own_tool_of(text: str) -> dict[str, Any]:
    tool: dict[str, Any] = json.loads(text)["tools"][-1]
    return tool


def common_start(one: str, other: str) -> int:
    return next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))


# -- the tool ------------------------------------------------------------------------------------


@EACH_API
def test_the_tool_stands_behind_the_clients(api: WireApi) -> None:
    source = request_text(api)
    text = with_own_tool(api, source)
    tool = own_tool_of(text)
    assert OWN_TOOL in (tool.get("name"), tool.get("function", {}).get("name"))
    written = json.dumps(tool, ensure_ascii=False, separators=(",", ":"))
    assert estimate_tokens(json.dumps(tool)) < 120
    assert text.replace(f",{written}", "") == source
    assert with_own_tool(api, source) == text
    assert with_own_tool(api, text) == text


@UNHURRIED
@given(request=sample_requests(), tools=st.lists(st.just({"name": "a"}), min_size=1, max_size=2))
def test_nothing_else_of_a_request_changes(request: SampleRequest, tools: list[dict[str, str]]) -> None:
    body = {key: value for key, value in request.body.items() if key not in ("tools", "tool_choice", "n")}
    body |= {"store": False} if request.api is RESPONSES else {}
    source = json.dumps({**body, "tools": tools}, indent=1)
    text = with_own_tool(request.api, source)
    start = common_start(source, text)
    if text != source:
        added = len(text) - len(source)
        assert text[:start] + text[start + added :] == source
        assert json.loads(text)["tools"][:-1] == tools
        assert own_tool_of(text) == own_tool_of(with_own_tool(request.api, request_text(request.api)))
    else:
        assert body.get("previous_response_id") or not body.get("input", body.get("messages"))


@EACH_API
@pytest.mark.parametrize(
    "more",
    [
        {"tools": None},
        {"tools": []},
        {"tools": "none"},
        {"tools": {}},
        {"tool_choice": "none"},
        {"tool_choice": {"type": "none"}},
        {"tool_choice": {"type": "allowed_tools", "tools": []}},
        {"tools": [{"name": OWN_TOOL}]},
        {"tools": [{"type": "function", "function": {"name": OWN_TOOL}}]},
        {"n": 2},
        {"messages": [], "input": []},
        {"messages": None, "input": None},
        {"messages": 3, "input": 3},
    ],
)
def test_a_request_that_cannot_have_it_comes_back_as_it_is(api: WireApi, more: dict[str, Any]) -> None:
    source = request_text(api, **more)
    assert with_own_tool(api, source) is source


@pytest.mark.parametrize(
    "more",
    [{"conversation": "c"}, {"background": True}, {"previous_response_id": "r"}, {"store": True}, {"store": None}],
)
def test_where_the_provider_keeps_the_answer_the_request_comes_back_as_it_is(more: dict[str, Any]) -> None:
    """A kept answer would hold a call without its result."""
    source = request_text(RESPONSES, **more)
    assert with_own_tool(RESPONSES, source) is source
    assert with_own_tool(CHAT, request_text(CHAT, **more)) != request_text(CHAT, **more)


@EACH_API
def test_a_request_without_tools_or_talk_comes_back_as_it_is(api: WireApi) -> None:
    for source in (
        "{}",
        '[{"tools":[1],"messages":[1],"input":[1]}]',
        '{"tools":[{"name":"a"}]}',
        '{"messages":[{}],"input":[{}]}',
    ):
        assert with_own_tool(api, source) == source


@EACH_API
@pytest.mark.parametrize("choice", ["auto", "required", {"type": "any"}, {"type": "tool", "name": "Read"}, None])
def test_other_choices_of_tools_are_left_to_the_model(api: WireApi, choice: object) -> None:
    assert OWN_TOOL in with_own_tool(api, request_text(api, tool_choice=choice, n=1, background=False))


@EACH_API
def test_what_is_no_request_is_refused(api: WireApi) -> None:
    for text in ("", "x", '{"tools":1,"tools":2}'):
        with pytest.raises(WireFormatError):
            with_own_tool(api, text)
        with pytest.raises(WireFormatError):
            continued(api, text, [json.dumps(CALL[api])], {"c1": "x"})


# -- requests that go on ---------------------------------------------------------------------------


@UNHURRIED
@given(request=sample_requests(), result=st.text())
def test_a_request_goes_on_behind_what_it_held(request: SampleRequest, result: str) -> None:
    source = request.raw.decode("utf-8", "surrogatepass")
    text = continued(request.api, source, [json.dumps(CALL[request.api])], {"c1": result, "other": "no"})
    key = "input" if request.api is RESPONSES else "messages"
    before, after = json.loads(source), json.loads(text)
    held = before[key]
    if isinstance(held, str):
        held = [{"type": "message", "role": "user", "content": held}]
    assert after[key][: len(held)] == held
    assert {**after, key: 0} == {**before, key: 0}
    assert len(after[key]) == len(held) + 2
    assert json.dumps(result) in json.dumps(after[key][-1])
    if not find_violations(request.api, before):
        added = [one for one in find_violations(request.api, after) if "stands twice" not in one]
        assert added == []
    decode_request(request.api, text.encode("utf-8", "surrogatepass"))


@EACH_API
def test_nothing_changes_but_the_end_of_the_conversation(api: WireApi) -> None:
    source = with_own_tool(api, request_text(api, cache_control={"type": "ephemeral"}))
    text = continued(api, source, [json.dumps(CALL[api])], {"c1": "中"})
    start = common_start(source, text)
    added = len(text) - len(source)
    assert text[:start] + text[start + added :] == source
    assert text[start:].startswith(",{")
    assert "中" in text


@EACH_API
def test_every_call_needs_a_result_and_there_is_one(api: WireApi) -> None:
    source = request_text(api)
    with pytest.raises(WireFormatError, match="the call c1 has no result"):
        continued(api, source, [json.dumps(CALL[api])], {})
    with pytest.raises(WireFormatError, match="the answer calls no tool"):
        continued(api, source, ["null"], {"c1": "x"})


@EACH_API
@pytest.mark.parametrize("talk", [None, 3, {}])
def test_a_request_without_a_conversation_does_not_go_on(api: WireApi, talk: object) -> None:
    with pytest.raises(WireFormatError, match="no list"):
        continued(api, request_text(api, messages=talk, input=talk), [json.dumps(CALL[api])], {"c1": "x"})


def test_blank_texts_do_not_go_back_to_anthropic() -> None:
    blocks = ['{"type":"text","text":" \\n"}', '{"type":"text","text":"a"}', json.dumps(CALL[MESSAGES])]
    sent = json.loads(continued(MESSAGES, request_text(MESSAGES), blocks, {"c1": ""}))["messages"]
    assert [block["type"] for block in sent[1]["content"]] == ["text", "tool_use"]
    assert sent[2] == {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": ""}]}


def test_reasoning_that_nobody_keeps_does_not_go_back() -> None:
    blocks = [
        '{"type":"reasoning","id":"rs_1","summary":[]}',
        '{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"QQ"}',
        json.dumps(CALL[RESPONSES]),
    ]
    for store, ids in ((True, ["rs_1", "rs_2"]), (False, ["rs_2"])):
        text = continued(RESPONSES, request_text(RESPONSES, store=store), blocks, {"c1": "x"})
        items = json.loads(text)["input"]
        assert [item["id"] for item in items if item.get("type") == "reasoning"] == ids
