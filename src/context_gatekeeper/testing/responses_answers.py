"""Answers of the Responses API, whole and as server-sent events."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any

from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.testing.answers import CREATED, Answer, arguments_text, cut_pieces, is_custom, named_event

__all__ = ["compacted_body", "has_thinking", "output_items", "responses_body", "responses_events"]

_ENCRYPTED = "reasoning.encrypted_content"
_CALL_KINDS = ("function_call", "custom_tool_call")


def has_thinking(answer: Answer) -> bool:
    """Whether the answer has a reasoning item: where the request asks for reasoning."""
    return bool(answer.reply.thinking) and answer.request.body.get("reasoning") is not None


def output_items(answer: Answer) -> list[dict[str, Any]]:
    """The items that the model puts out."""
    reply = answer.reply
    items: list[dict[str, Any]] = [_reasoning_item(answer)] if has_thinking(answer) else []
    items += [dict(item) for item in reply.blocks]
    if reply.text or not (reply.calls or reply.blocks):
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        items.append(
            {
                "type": "message",
                "id": answer.name("msg"),
                "status": "completed",
                "role": "assistant",
                "content": [part],
            }
        )
    return items + _call_items(answer)


def _reasoning_item(answer: Answer) -> dict[str, Any]:
    thinking = answer.reply.thinking
    item: dict[str, Any] = {
        "type": "reasoning",
        "id": answer.name("rs"),
        "summary": [{"type": "summary_text", "text": thinking}],
    }
    if _ENCRYPTED in (answer.request.body.get("include") or ()):
        item["encrypted_content"] = b64encode(thinking.encode()).decode()
    return item


def _call_items(answer: Answer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for place, call in enumerate(answer.reply.calls):
        head = {"status": "completed", "call_id": answer.call_id("call", place), "name": call.name}
        text = arguments_text(call)
        if is_custom(call, answer.request.body.get("tools")):
            items.append({"type": "custom_tool_call", "id": answer.name("ctc", place), **head, "input": text})
        else:
            items.append({"type": "function_call", "id": answer.name("fc", place), **head, "arguments": text})
    return items


def _usage(answer: Answer) -> dict[str, Any]:
    usage = answer.usage
    shown = has_thinking(answer)
    output_tokens = answer.output_tokens(has_thinking=shown)
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.read, "cache_write_tokens": usage.written},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": estimate_tokens(answer.reply.thinking) if shown else 0},
        "total_tokens": usage.prompt + output_tokens,
    }


def responses_body(answer: Answer, status: str = "completed") -> dict[str, Any]:
    """The whole answer; of another ``status`` than ``completed`` without output and usage."""
    asked = answer.request.body
    is_done = status == "completed"
    echoed = {key: asked.get(key) for key in ("instructions", "max_output_tokens", "metadata", "previous_response_id")}
    return {
        "id": answer.name("resp"),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": asked["model"],
        "output": output_items(answer) if is_done else [],
        "parallel_tool_calls": asked.get("parallel_tool_calls", True),
        "reasoning": asked.get("reasoning"),
        "store": asked.get("store", True),
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": asked.get("tool_choice", "auto"),
        "tools": asked.get("tools") or [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": _usage(answer) if is_done else None,
        **echoed,
    }


def compacted_body(answer: Answer) -> dict[str, Any]:
    """Answer of the compaction route: the user's messages and one opaque item."""
    kept = [item for item in answer.request.items if item.get("role") == "user"]
    sealed = b64encode(answer.reply.text.encode()).decode()
    return {
        "id": answer.name("resp"),
        "object": "response.compaction",
        "created_at": CREATED,
        "output": [*kept, {"type": "compaction", "id": answer.name("cmp"), "encrypted_content": sealed}],
        "usage": _usage(answer),
    }


def responses_events(answer: Answer) -> Iterator[str]:
    """The same, streamed, in numbered events."""
    for number, event in enumerate(_events(answer)):
        yield named_event({"type": event["type"], "sequence_number": number, **event})


def _events(answer: Answer) -> Iterator[dict[str, Any]]:
    begun = responses_body(answer, "in_progress")
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(output_items(answer)):
        place = {"output_index": index}
        yield {"type": "response.output_item.added", **place, "item": _begun_item(item)}
        for event in _item_events(item, answer.piece_chars):
            yield {"item_id": item.get("id", ""), **place, **event}
        yield {"type": "response.output_item.done", **place, "item": item}
    yield {"type": "response.completed", "response": responses_body(answer)}


def _begun_item(item: Mapping[str, Any]) -> dict[str, Any]:
    kind = item["type"]
    if kind == "message":
        return {**item, "status": "in_progress", "content": []}
    if kind == "reasoning":
        return {**item, "summary": []}
    if kind in _CALL_KINDS:
        return {**item, "status": "in_progress", "input" if kind == "custom_tool_call" else "arguments": ""}
    return dict(item)


def _item_events(item: Mapping[str, Any], chars: int) -> Iterator[dict[str, Any]]:
    kind = item["type"]
    if kind == "message":
        yield from _text_events(item["content"][0], chars)
    elif kind == "reasoning":
        yield from _summary_events(item["summary"][0], chars)
    elif kind == "function_call":
        name = "response.function_call_arguments"
        for piece in cut_pieces(item["arguments"], chars):
            yield {"type": f"{name}.delta", "delta": piece}
        yield {"type": f"{name}.done", "arguments": item["arguments"], "name": item["name"]}
    elif kind == "custom_tool_call":
        name = "response.custom_tool_call_input"
        for piece in cut_pieces(item["input"], chars):
            yield {"type": f"{name}.delta", "delta": piece}
        yield {"type": f"{name}.done", "input": item["input"]}


def _text_events(part: Mapping[str, Any], chars: int) -> Iterator[dict[str, Any]]:
    place = {"content_index": 0}
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    for piece in cut_pieces(part["text"], chars):
        yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}


def _summary_events(part: Mapping[str, Any], chars: int) -> Iterator[dict[str, Any]]:
    place = {"summary_index": 0}
    yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}}
    for piece in cut_pieces(part["text"], chars):
        yield {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
    yield {"type": "response.reasoning_summary_text.done", **place, "text": part["text"]}
    yield {"type": "response.reasoning_summary_part.done", **place, "part": part}
