"""The provider speaks Chat Completions and Responses."""

from __future__ import annotations

from typing import Any

import pytest

from context_gatekeeper.testing import FakeCall, FakeProvider, FakeReply
from tests.testing.asking import CHAT, GPT, KEYS, RESPONSES, chat, responses, said, send

LIST = FakeCall("ls", {"path": "/tmp"})
TWO_CALLS = FakeReply("I look.", thinking="First a list.", calls=(LIST, FakeCall("patch", "*** raw", id="call_mine")))
CHAT_TOOLS = [{"type": "function", "function": {"name": "ls"}}, {"type": "custom", "custom": {"name": "patch"}}]
TOOLS = [{"type": "function", "name": "ls"}, {"type": "custom", "name": "patch"}]


# -- Chat Completions -----------------------------------------------------------------------------


def test_a_chat_answer_has_text_and_calls_of_both_kinds() -> None:
    with FakeProvider([TWO_CALLS, FakeReply(calls=(LIST,))]) as provider:
        body = send(provider, CHAT, chat(tools=CHAT_TOOLS)).json
        bare = send(provider, CHAT, chat()).json
    message = body["choices"][0]["message"]
    assert (message["content"], body["choices"][0]["finish_reason"]) == ("I look.", "tool_calls")
    assert [call["type"] for call in message["tool_calls"]] == ["function", "custom"]
    assert message["tool_calls"][0]["function"] == {"name": "ls", "arguments": '{"path": "/tmp"}'}
    assert message["tool_calls"][1] == {
        "id": "call_mine",
        "type": "custom",
        "custom": {"name": "patch", "input": "*** raw"},
    }
    assert bare["choices"][0]["message"]["content"] is None
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + body["usage"]["completion_tokens"]


def test_a_chat_stream_gives_the_calls_in_pieces_and_usage_when_asked_for() -> None:
    usage = {"stream_options": {"include_usage": True}}
    with FakeProvider([TWO_CALLS, FakeReply("a", thinking="Deep.")]) as provider:
        whole = send(provider, CHAT, chat(tools=CHAT_TOOLS, stream=True, **usage))
        plain = send(provider, CHAT, chat(stream=True, model="deepseek-chat"))
    assert whole.content.endswith(b"data: [DONE]\n\n")
    *chunks, last = whole.events
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta.get("content") or "" for delta in deltas) == "I look."
    pieces = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    arguments = "".join(piece["function"]["arguments"] for piece in pieces if piece["index"] == 0)
    assert arguments == '{"path": "/tmp"}'
    assert "".join(piece["custom"]["input"] for piece in pieces if piece["index"] == 1) == "*** raw"
    assert [piece["id"] for piece in pieces if "id" in piece] == ["call_000000x0", "call_mine"]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert (last["choices"], last["usage"]["prompt_tokens"]) == ([], provider.requests[0].usage.prompt)
    assert all("usage" not in event for event in plain.events)
    deep = [event["choices"][0]["delta"].get("reasoning_content", "") for event in plain.events]
    assert "".join(deep) == "Deep."


def test_a_chat_loop_of_tools_is_checked() -> None:
    with FakeProvider([TWO_CALLS, "done"]) as provider:
        message = send(provider, CHAT, chat(tools=CHAT_TOOLS)).json["choices"][0]["message"]
        answered = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in message["tool_calls"]]
        listed = [said("hi"), message, *answered]
        assert send(provider, CHAT, chat(messages=listed)).status == 200
        assert provider.requests[1].results == [("call_000000x0", "ok"), ("call_mine", "ok")]
        refused = send(provider, CHAT, chat(messages=listed[:3]))
    assert (refused.status, refused.json["error"]["type"]) == (400, "invalid_request_error")
    assert "call_mine" in refused.json["error"]["message"]


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_openai_refusals_have_their_own_error_body(path: str) -> None:
    body = chat() if path == CHAT else responses()
    with FakeProvider(models=[GPT]) as provider:
        unknown = send(provider, path, {**body, "model": "gpt-other"})
        keyless = send(provider, path, body, headers={"x-api-key": "test-key"})
        broken = send(provider, path, b"[1]")
    assert (unknown.status, unknown.json["error"]["code"]) == (404, "model_not_found")
    assert (keyless.status, keyless.json["error"]["code"]) == (401, "invalid_api_key")
    assert (broken.status, broken.json["error"]["param"]) == (400, None)


# -- Responses ------------------------------------------------------------------------------------


def test_a_response_has_reasoning_message_and_calls() -> None:
    asked: dict[str, Any] = {"tools": TOOLS, "reasoning": {"effort": "low"}}
    with FakeProvider([TWO_CALLS] * 3) as provider:
        body = send(provider, RESPONSES, responses(**asked)).json
        sealed = send(provider, RESPONSES, responses(**asked, include=["reasoning.encrypted_content"])).json
        plain = send(provider, RESPONSES, responses()).json
    kinds = ["reasoning", "message", "function_call", "custom_tool_call"]
    assert [item["type"] for item in body["output"]] == kinds
    assert [item["type"] for item in plain["output"]] == ["message", "function_call", "function_call"]
    assert "encrypted_content" not in body["output"][0]
    assert sealed["output"][0]["encrypted_content"]
    assert (body["status"], body["object"]) == ("completed", "response")
    assert body["usage"]["output_tokens_details"]["reasoning_tokens"] > 0


def test_a_streamed_response_numbers_its_events_and_ends_with_the_whole() -> None:
    asked: dict[str, Any] = {"tools": TOOLS, "reasoning": {"effort": "low"}}
    with FakeProvider([TWO_CALLS, TWO_CALLS]) as provider:
        whole = send(provider, RESPONSES, responses(**asked)).json
        stream = send(provider, RESPONSES, responses(**asked, stream=True))
    events = stream.events
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert stream.kinds[:3] == ["response.created", "response.in_progress", "response.output_item.added"]
    assert stream.kinds[-1] == "response.completed"
    for kind in ("output_text", "reasoning_summary_text", "function_call_arguments", "custom_tool_call_input"):
        pieces = "".join(event["delta"] for event in events if event["type"] == f"response.{kind}.delta")
        (done,) = [event for event in events if event["type"] == f"response.{kind}.done"]
        assert pieces == next(done[key] for key in ("text", "arguments", "input") if key in done)
    completed = events[-1]["response"]
    assert [item["type"] for item in completed["output"]] == [item["type"] for item in whole["output"]]
    assert completed["usage"]["output_tokens"] == whole["usage"]["output_tokens"]
    done_items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done_items == completed["output"]


def test_what_a_model_put_out_can_be_sent_back_with_outputs() -> None:
    with FakeProvider([TWO_CALLS, "done", "done"]) as provider:
        items = [said("hi"), *send(provider, RESPONSES, responses(tools=TOOLS, reasoning={})).json["output"]]
        calls = [item for item in items if "call_id" in item]
        outputs = [{"type": f"{c['type']}_output", "call_id": c["call_id"], "output": "ok"} for c in calls]
        assert send(provider, RESPONSES, responses(items + outputs)).status == 200
        assert [text for _, text in provider.requests[1].results] == ["ok", "ok"]
        assert send(provider, RESPONSES, responses(items)).status == 400


def test_the_server_keeps_the_history_of_a_response_and_of_a_conversation() -> None:
    with FakeProvider([TWO_CALLS, "a", "b", "c"]) as provider:
        first = send(provider, RESPONSES, responses()).json
        outputs = [
            {"type": "function_call_output", "call_id": item["call_id"], "output": "ok"} for item in first["output"][1:]
        ]
        second = send(provider, RESPONSES, responses(outputs, previous_response_id=first["id"])).json
        assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"]
        unknown = send(provider, RESPONSES, responses(outputs, previous_response_id="resp_other"))
        assert (unknown.status, "not found" in unknown.json["error"]["message"]) == (400, True)
        sizes = [
            send(provider, RESPONSES, responses(conversation=one)).json["usage"]["input_tokens"]
            for one in ("conv_1", {"id": "conv_1"})
        ]
        assert sizes[1] > sizes[0]


def test_outputs_must_fit_to_the_calls_that_the_server_keeps() -> None:
    def output(call: str) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": call, "output": "ok"}

    with FakeProvider([FakeReply(calls=(FakeCall("ls", id="call_1"),)), "x"]) as provider:
        name = send(provider, RESPONSES, responses()).json["id"]
        answers = [
            send(provider, RESPONSES, responses(items, previous_response_id=name))
            for items in ([said("go")], [output("call_1"), output("call_2")], [output("call_1"), said("go")])
        ]
    assert [answer.status for answer in answers] == [400, 400, 200]
    assert "No tool output found for function call call_1." in answers[0].json["error"]["message"]
    assert "No tool call found for function call output with call_id call_2." in answers[1].json["error"]["message"]


def test_an_item_that_the_server_keeps_is_refused_without_its_reasoning() -> None:
    with FakeProvider([FakeReply("a", thinking="hm")] * 5) as provider:
        for more, status in (({}, 400), ({"store": False}, 200)):
            reasoning, message = send(provider, RESPONSES, responses(reasoning={}, **more)).json["output"]
            whole = [said("hi"), reasoning, message, said("go")]
            assert send(provider, RESPONSES, responses(whole)).status == 200
            cut = send(provider, RESPONSES, responses([said("hi"), message, said("go")]))
            assert cut.status == status
            if status == 400:
                assert "without its required 'reasoning' item" in cut.json["error"]["message"]


def test_a_response_that_is_not_stored_cannot_be_gone_on_with() -> None:
    with FakeProvider() as provider:
        first = send(provider, RESPONSES, responses(store=False)).json
        assert send(provider, RESPONSES, responses(previous_response_id=first["id"])).status == 400


def test_responses_are_counted_and_compacted() -> None:
    with FakeProvider([FakeReply("summary"), "ok"]) as provider:
        counted = send(provider, f"{RESPONSES}/input_tokens", responses()).json
        compacted = send(provider, f"{RESPONSES}/compact", responses([said("hi")])).json
        assert counted == {"object": "response.input_tokens", "input_tokens": compacted["usage"]["input_tokens"]}
        assert compacted["output"][0] == said("hi")
        assert compacted["output"][1]["type"] == "compaction"
        assert send(provider, RESPONSES, responses([*compacted["output"], said("go")])).status == 200
        assert send(provider, RESPONSES, {"model": GPT}).status == 400


# -- who answers how ------------------------------------------------------------------------------


def test_models_of_no_other_services_name_are_minimaxs_unless_the_test_says_otherwise() -> None:
    tool = FakeReply("t", calls=(LIST,))
    with FakeProvider([tool, tool]) as provider:
        body = send(provider, CHAT, chat(model="MiniMax-M2")).json
        stream = send(provider, CHAT, chat(model="MiniMax-M2", stream=True))
    assert body["choices"][0]["message"]["content"].startswith("<think>")
    assert "base_resp" in body
    assert stream.events[-1]["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "ls"
    with FakeProvider([tool], speaks_minimax=lambda _: False) as provider:
        assert send(provider, CHAT, chat(model="MiniMax-M2")).json["choices"][0]["message"]["content"] == "t"


def test_a_script_that_raises_is_a_500_that_says_so() -> None:
    def script(_: Any) -> str:
        raise LookupError("no such page")

    with FakeProvider(script) as provider:
        answer = send(provider, CHAT, chat())
    assert (answer.status, "no such page" in answer.json["error"]["message"]) == (500, True)


def test_the_session_is_read_from_header_or_body() -> None:
    named = {"metadata": {"user_id": '{"session_id": "s2"}'}}
    with FakeProvider() as provider:
        send(provider, RESPONSES, responses(prompt_cache_key="k"), headers={**KEYS, "session-id": "s1"})
        send(provider, RESPONSES, responses(**named, prompt_cache_key="k"))
        send(provider, RESPONSES, responses(metadata={"user_id": "[1]"}))
        send(provider, RESPONSES, responses(metadata={"user_id": "plain"}))
        send(provider, RESPONSES, responses(prompt_cache_key="k"))
        send(provider, RESPONSES, responses())
    assert [request.session for request in provider.requests] == ["s1", "s2", "[1]", "plain", "k", ""]


def test_the_text_of_the_user_is_found_behind_results_and_notes() -> None:
    listed = [said("go"), {"role": "developer", "content": "note"}]
    with FakeProvider() as provider:
        send(provider, RESPONSES, responses(listed, instructions="be brief"))
        send(provider, RESPONSES, responses([{"type": "compaction", "encrypted_content": "x"}]))
    assert (provider.requests[0].user_text, provider.requests[0].system) == ("go", "be brief")
    assert (provider.requests[1].user_text, provider.requests[1].query) == ("", "")
