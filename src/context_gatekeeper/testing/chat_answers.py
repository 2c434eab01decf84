"""Answers of Chat Completions, whole and as server-sent events, in OpenAI's form and in MiniMax's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.testing.answers import CREATED, Answer, arguments_text, cut_pieces, data_event, is_custom

__all__ = ["chat_body", "chat_events", "has_thinking"]


def has_thinking(answer: Answer) -> bool:
    """Whether the answer shows its thinking: MiniMax's and DeepSeek's models do."""
    return bool(answer.reply.thinking) and (answer.is_minimax or "deepseek" in answer.request.model)


def _content(answer: Answer) -> str | None:
    reply = answer.reply
    if answer.is_minimax and reply.thinking:
        return f"<think>\n{reply.thinking}\n</think>\n\n{reply.text}"
    return reply.text if reply.text or not reply.calls else None


def _frame(answer: Answer, kind: str) -> dict[str, Any]:
    return {"id": answer.name("chatcmpl"), "object": kind, "created": CREATED, "model": answer.request.model}


def _calls(answer: Answer) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    for place, call in enumerate(answer.reply.calls):
        text = arguments_text(call)
        if is_custom(call, answer.request.body.get("tools")):
            form = {"type": "custom", "custom": {"name": call.name, "input": text}}
        else:
            form = {"type": "function", "function": {"name": call.name, "arguments": text}}
        calls.append({"id": answer.call_id("call", place), **form})
    return calls


def _message(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": _content(answer)}
    if answer.is_minimax:
        message |= {"name": "MiniMax AI", "audio_content": ""}
    else:
        message |= {"refusal": None, "annotations": []}
        if has_thinking(answer):
            message["reasoning_content"] = answer.reply.thinking
    return {**message, "tool_calls": _calls(answer)} if answer.reply.calls else message


def _usage(answer: Answer) -> dict[str, Any]:
    usage = answer.usage
    shown = has_thinking(answer)
    completion = answer.output_tokens(has_thinking=shown)
    counts: dict[str, Any] = {
        "prompt_tokens": usage.prompt,
        "completion_tokens": completion,
        "total_tokens": usage.prompt + completion,
        "completion_tokens_details": {"reasoning_tokens": estimate_tokens(answer.reply.thinking) if shown else 0},
    }
    if answer.is_minimax:
        return {**counts, "total_characters": 0}
    return {**counts, "prompt_tokens_details": {"cached_tokens": usage.read, "cache_write_tokens": usage.written}}


def chat_body(answer: Answer) -> dict[str, Any]:
    """The whole answer."""
    reason = answer.reply.stop_reason or ("tool_calls" if answer.reply.calls else "stop")
    body = {
        **_frame(answer, "chat.completion"),
        "choices": [{"index": 0, "finish_reason": reason, "logprobs": None, "message": _message(answer)}],
        "usage": _usage(answer),
    }
    if not answer.is_minimax:
        return body
    base_resp = {"status_code": 0, "status_msg": ""}
    return {**body, "input_sensitive": False, "output_sensitive": False, "base_resp": base_resp}


def chat_events(answer: Answer) -> Iterator[str]:
    """The same, streamed."""
    frame = _frame(answer, "chat.completion.chunk")
    asks_usage = bool((answer.request.body.get("stream_options") or {}).get("include_usage"))
    for delta in _deltas(answer):
        yield data_event({**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    reason = answer.reply.stop_reason or ("tool_calls" if answer.reply.calls else "stop")
    last_delta = {"content": ""} if answer.is_minimax else {}
    yield data_event({**frame, "choices": [{"index": 0, "delta": last_delta, "finish_reason": reason}]})
    if answer.is_minimax:
        # The service closes with the whole message once more; a client that adds it up says everything twice.
        whole = chat_body(answer)
        if not asks_usage:
            del whole["usage"]
        yield data_event(whole)
    elif asks_usage:
        yield data_event({**frame, "choices": [], "usage": _usage(answer)})
    yield "data: [DONE]\n\n"


def _deltas(answer: Answer) -> Iterator[dict[str, Any]]:
    chars = answer.piece_chars
    role = {"role": "assistant"} if answer.is_minimax else {}
    if not answer.is_minimax:
        yield {"role": "assistant", "content": ""}
        if has_thinking(answer):
            for piece in cut_pieces(answer.reply.thinking, chars):
                yield {"reasoning_content": piece}
    for piece in cut_pieces(_content(answer) or "", chars):
        yield {**role, "content": piece}
    for place, call in enumerate(_calls(answer)):
        form = call["type"]
        key = "input" if form == "custom" else "arguments"
        yield {"tool_calls": [{"index": place, **call, form: {**call[form], key: ""}}]}
        for piece in cut_pieces(call[form][key], chars):
            yield {"tool_calls": [{"index": place, form: {key: piece}}]}
