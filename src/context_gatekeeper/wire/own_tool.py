"""The gateway's own tool in a request: how it is declared, and how a request goes on behind its answers.

Both are splices of the request's text: order of keys, spaces, escapes and the client's cache breakpoints stay as they
are, and the same input gives the same bytes, so that the provider's cache keeps its prefix from call to call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from context_gatekeeper.errors import WireFormatError
from context_gatekeeper.wire.answer_draft import as_object, as_objects, as_text, loaded_object
from context_gatekeeper.wire.hidden_edits import JsonEdits
from context_gatekeeper.wire.records import WireApi
from context_gatekeeper.wire.splicing import write_text

__all__ = ["OWN_TOOL", "continued", "with_own_tool"]

OWN_TOOL = "cgk_expand"
_DESCRIPTION = (
    "Returns the full text behind a part of this conversation that was shortened. Call it when you need what is "
    "missing there, with the handle written in its place, such as p12, p12#L40-88 or page:..."
)
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"handle": {"type": "string"}},
    "required": ["handle"],
    "additionalProperties": False,
}
_FUNCTION: Mapping[str, Any] = {"name": OWN_TOOL, "description": _DESCRIPTION, "parameters": _SCHEMA}
_DEFINITIONS: Mapping[WireApi, Mapping[str, Any]] = {
    WireApi.MESSAGES: {"name": OWN_TOOL, "description": _DESCRIPTION, "input_schema": _SCHEMA},
    WireApi.CHAT: {"type": "function", "function": _FUNCTION},
    # Not strict, which the API would be by itself: one schema of a request that is strict is compiled first.
    WireApi.RESPONSES: {"type": "function", **_FUNCTION, "strict": False},
}
_TALK: Mapping[WireApi, str] = {WireApi.MESSAGES: "messages", WireApi.CHAT: "messages", WireApi.RESPONSES: "input"}
_CLOSED_CHOICES = ("none", "allowed_tools")
"""Values, or types, of ``tool_choice`` under which the model cannot call a tool that the client does not name."""
_ONE_ANSWER = (None, 1)
_LOOKED_AT = (
    "background", "conversation", "input", "messages", "n", "previous_response_id", "store", "tool_choice", "tools",
)  # fmt: skip


def with_own_tool(api: WireApi, source: str) -> str:
    """A request's text with the tool `OWN_TOOL` behind its tools. O(its length), 15 ms a megabyte.

    It comes back as it is, and the feature is off for it, when it has no tools, when a tool of that name is there,
    when ``tool_choice`` forbids tools or lists the allowed ones, when several answers are asked for (Chat's ``n``),
    when the provider keeps the answer (Responses, where ``store`` is not false, a conversation or an earlier response
    is named, or the answer is made in the background), or when it holds no conversation that could go on (``messages``
    or ``input``).

    Raises:
        WireFormatError: the text is no JSON object.
    """
    edits = JsonEdits(source, {"tools": {}})
    if not _takes_tool(api, {key: node.value for key in _LOOKED_AT if (node := edits.find((key,))) is not None}):
        return source
    edits.append(("tools",), [_json(_DEFINITIONS[api])])
    return edits.text()


def _takes_tool(api: WireApi, asked: Mapping[str, Any]) -> bool:
    tools, talk, choice = asked.get("tools"), asked.get(_TALK[api]), asked.get("tool_choice")
    if not (isinstance(tools, list) and tools and isinstance(talk, list | str) and talk):
        return False
    if choice in _CLOSED_CHOICES or as_object(choice).get("type") in _CLOSED_CHOICES:
        return False
    if api is WireApi.RESPONSES and not _is_stateless(asked):
        return False
    if asked.get("n") not in _ONE_ANSWER:
        return False
    names = [(tool.get("name"), as_object(tool.get("function")).get("name")) for tool in as_objects(tools)]
    return not any(OWN_TOOL in named for named in names)


def _is_stateless(asked: Mapping[str, Any]) -> bool:
    """Whether the provider keeps nothing of the exchange: a kept answer would hold our call without its result."""
    is_apart = all(asked.get(key) is None for key in ("conversation", "previous_response_id"))
    return is_apart and asked.get("store") is False and asked.get("background") is not True


def continued(api: WireApi, source: str, answer_blocks: Sequence[str], results: Mapping[str, str]) -> str:
    """The request that goes on behind an answer which called nothing but our tool.

    The answer and what came of its calls stand behind the conversation: of Anthropic's as a message of the assistant's
    and one of the user's, of Chat's as one message of the assistant's and one for each result, of the Responses API as
    the answer's items and one for each result; a conversation that is a text becomes a list with it. Texts of blanks
    alone are left out, which Anthropic refuses, and so is reasoning that the Responses API neither keeps (``store`` is
    false) nor gave sealed.

    Args:
        api: whose form the request has.
        source: the text of the request that was answered: that of `with_own_tool`, or of this function for the answer
            before.
        answer_blocks: `FinishedAnswer.blocks` of the answer.
        results: id of each call -> what the model is told.

    Raises:
        WireFormatError: the request has no conversation, the answer no call, or a call no result.
    """
    edits = JsonEdits(source, {_TALK[api]: {}})
    path = (_TALK[api],)
    talk = edits.find(path)
    if talk is None or not (talk.items is not None or isinstance(talk.value, str)):
        raise _refuse("the request has no list of messages or items")
    store = edits.find(("store",))
    if api is WireApi.RESPONSES and store is not None and store.value is False:
        answer_blocks = [text for text in answer_blocks if not _is_forgotten(loaded_object(text) or {})]
    elements = _CONTINUATIONS[api](answer_blocks, results)
    if talk.items is not None:
        edits.append(path, elements)
    else:
        first = f'{{"type":"message","role":"user","content":{edits.source(path)}}}'
        edits.set(path, f"[{','.join((first, *elements))}]")
    return edits.text()


def _refuse(cause: str) -> WireFormatError:
    return WireFormatError("the request that goes on", cause, "release the answer that is held back")


def _is_forgotten(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "reasoning" and not as_text(item.get("encrypted_content"))


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _results_of(calls: Sequence[str], results: Mapping[str, str]) -> list[tuple[str, str]]:
    """(id of a call, JSON literal of its result), in the order of the calls."""
    missing = [call for call in calls if call not in results]
    if missing or not calls:
        raise _refuse(f"the call {missing[0]} has no result" if missing else "the answer calls no tool")
    return [(write_text(call), write_text(results[call])) for call in calls]


def _continue_messages(blocks: Sequence[str], results: Mapping[str, str]) -> list[str]:
    told = [(text, loaded_object(text) or {}) for text in blocks]
    said = [text for text, block in told if block.get("type") != "text" or as_text(block.get("text")).strip()]
    calls = [as_text(block.get("id")) for _, block in told if block.get("type") == "tool_use"]
    pieces = [
        f'{{"type":"tool_result","tool_use_id":{call},"content":{result}}}'
        for call, result in _results_of(calls, results)
    ]
    return [
        f'{{"role":"assistant","content":[{",".join(said)}]}}',
        f'{{"role":"user","content":[{",".join(pieces)}]}}',
    ]


def _continue_chat(blocks: Sequence[str], results: Mapping[str, str]) -> list[str]:
    told = [loaded_object(text) or {} for text in blocks]
    calls = [as_text(call.get("id")) for message in told for call in as_objects(message.get("tool_calls"))]
    pieces = [
        f'{{"role":"tool","tool_call_id":{call},"content":{result}}}' for call, result in _results_of(calls, results)
    ]
    return [*blocks, *pieces]


def _continue_responses(blocks: Sequence[str], results: Mapping[str, str]) -> list[str]:
    told = [loaded_object(text) or {} for text in blocks]
    calls = [as_text(item.get("call_id")) for item in told if item.get("type") == "function_call"]
    pieces = [
        f'{{"type":"function_call_output","call_id":{call},"output":{result}}}'
        for call, result in _results_of(calls, results)
    ]
    return [*blocks, *pieces]


_CONTINUATIONS = {
    WireApi.MESSAGES: _continue_messages,
    WireApi.CHAT: _continue_chat,
    WireApi.RESPONSES: _continue_responses,
}
