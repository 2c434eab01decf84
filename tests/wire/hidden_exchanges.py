"""Exchanges in which the model calls the gateway's own tool, with the fake provider's answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from context_gatekeeper.testing.answers import Answer
from context_gatekeeper.testing.anthropic_answers import messages_body, messages_events
from context_gatekeeper.testing.chat_answers import chat_body, chat_events
from context_gatekeeper.testing.records import FakeCall, FakeReply, ReceivedRequest, RequestUsage
from context_gatekeeper.testing.responses_answers import responses_body, responses_events
from context_gatekeeper.wire.answers import WireAnswer, read_answer
from context_gatekeeper.wire.hidden_calls import FinishedAnswer, HiddenCalls
from context_gatekeeper.wire.own_tool import OWN_TOOL, continued, with_own_tool
from context_gatekeeper.wire.pairing import find_violations
from context_gatekeeper.wire.records import WireApi
from context_gatekeeper.wire.sse import EventReader

MESSAGES, CHAT, RESPONSES = WireApi
STREAM, JSON = "text/event-stream", "application/json"
EVENTS: Mapping[WireApi, Callable[[Answer], Iterator[str]]] = {
    MESSAGES: messages_events,
    CHAT: chat_events,
    RESPONSES: responses_events,
}
BODIES: Mapping[WireApi, Callable[[Answer], dict[str, Any]]] = {
    MESSAGES: messages_body,
    CHAT: chat_body,
    RESPONSES: responses_body,
}
_TOOL: dict[WireApi, dict[str, Any]] = {
    MESSAGES: {"name": "Read", "input_schema": {"type": "object"}},
    CHAT: {"type": "function", "function": {"name": "Read", "parameters": {"type": "object"}}},
    RESPONSES: {"type": "function", "name": "Read", "parameters": {"type": "object"}},
}
_ASKED: dict[WireApi, dict[str, Any]] = {
    MESSAGES: {"model": "claude-opus-5", "max_tokens": 9, "thinking": {"type": "enabled", "budget_tokens": 5}},
    CHAT: {"model": "deepseek-chat", "stream_options": {"include_usage": True}},
    RESPONSES: {
        "model": "gpt-5.6",
        "store": False,
        "reasoning": {"effort": "low"},
        "include": ["reasoning.encrypted_content"],
    },
}


def expand(handle: str = "p12") -> FakeCall:
    return FakeCall(OWN_TOOL, {"handle": handle})


def read_file(path: str = "a.py") -> FakeCall:
    return FakeCall("Read", {"path": path})


def request_text(api: WireApi, **more: Any) -> str:
    talk = [{"role": "user", "content": "What does 中 p12 say?"}]
    body = {**_ASKED[api], ("input" if api is RESPONSES else "messages"): talk, "tools": [_TOOL[api]], **more}
    return json.dumps(body, ensure_ascii=False)


def made_answer(api: WireApi, reply: FakeReply, number: int = 1, *, source: str = "", chars: int = 7) -> Answer:
    """The fake provider's answer; its prompt has 1,000 tokens, and 100 more for each number."""
    request = ReceivedRequest("/", {}, json.loads(source or request_text(api)))
    usage = RequestUsage(plain=1000 + 100 * number, read=500, written=20)
    is_minimax = request.model.startswith("MiniMax")
    return Answer(request, reply, number, usage, chars, is_minimax)


def stream_of(api: WireApi, reply: FakeReply, number: int = 1, *, source: str = "", chars: int = 7) -> bytes:
    return "".join(EVENTS[api](made_answer(api, reply, number, source=source, chars=chars))).encode()


def whole_of(api: WireApi, reply: FakeReply, number: int = 1, *, source: str = "") -> bytes:
    return json.dumps(BODIES[api](made_answer(api, reply, number, source=source)), ensure_ascii=False).encode()


def event_texts(content: bytes) -> list[str]:
    return [event.data for event in EventReader().feed(content)]


def event_values(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(data) for data in event_texts(content) if data != "[DONE]"]


@dataclass
class Exchange:
    """What came of one."""

    given: bytes = b""
    """What the client got."""
    finished: list[FinishedAnswer] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    """Texts of the requests that went out."""


def in_pieces(content: bytes, cuts: Sequence[int]) -> Iterator[bytes]:
    """The bytes cut at places; such as lie behind the end count from the start again."""
    places = sorted({cut % (len(content) + 1) for cut in cuts})
    for start, end in zip((0, *places), (*places, len(content)), strict=True):
        yield content[start:end]


def play(
    api: WireApi,
    replies: Sequence[FakeReply],
    *,
    is_stream: bool = True,
    source: str = "",
    cuts: Sequence[int] = (),
    line_end: bytes = b"\n",
    chars: int = 7,
) -> Exchange:
    """Let the model answer, with results for calls of our tool as long as replies are there."""
    hidden = HiddenCalls(api, is_stream=is_stream)
    text = with_own_tool(api, source or request_text(api))
    done = Exchange(sources=[text])
    for number, reply in enumerate(replies):
        if number:
            hidden.next_answer()
        content = (
            stream_of(api, reply, number, source=text, chars=chars)
            if is_stream
            else whole_of(api, reply, number, source=text)
        )
        finished = feed_all(hidden, done, content.replace(b"\n", line_end) if is_stream else content, cuts)
        if not finished.is_continuable:
            break
        results = {call.id: f"page of {call.arguments} 全" for call in finished.calls}
        text = continued(api, text, finished.blocks, results)
        assert find_violations(api, json.loads(text)) == []
        done.sources.append(text)
    done.given += hidden.released()
    assert hidden.released() == b""
    return done


def feed_all(hidden: HiddenCalls, done: Exchange, content: bytes, cuts: Sequence[int] = ()) -> FinishedAnswer:
    for piece in in_pieces(content, cuts):
        done.given += hidden.feed(piece)
    finished = hidden.finish()
    done.given += finished.rest
    done.finished.append(finished)
    return finished


def fed(api: WireApi, *contents: bytes, is_stream: bool = True) -> tuple[Exchange, HiddenCalls]:
    """Answers of the provider's one behind the other, whatever they hold; nothing is released."""
    hidden = HiddenCalls(api, is_stream=is_stream)
    done = Exchange()
    for number, content in enumerate(contents):
        if number:
            hidden.next_answer()
        feed_all(hidden, done, content)
    return done, hidden


def read(api: WireApi, content: bytes) -> WireAnswer:
    return read_answer(api, JSON if content.lstrip().startswith(b"{") else STREAM, content)


def said(replies: Iterable[FakeReply], api: WireApi) -> list[tuple[str, str]]:
    """(kind, text) of all that the client is to see, in order; Chat's texts stand together."""
    listed = list(replies)
    thoughts = [("thinking", reply.thinking) for reply in listed if reply.thinking]
    texts = [("text", reply.text) for reply in listed if reply.text]
    calls = [("tool_call", call.name) for reply in listed for call in reply.calls if call.name != OWN_TOOL]
    if api is CHAT:
        joined = [
            (kind, "".join(text for _, text in found)) for kind, found in (("thinking", thoughts), ("text", texts))
        ]
        return [pair for pair in joined if pair[1]] + calls
    seen: list[tuple[str, str]] = []
    for reply in listed:
        seen += [("thinking", reply.thinking)] if reply.thinking else []
        seen += [("text", reply.text)] if reply.text or not reply.calls else []
        seen += [("tool_call", call.name) for call in reply.calls if call.name != OWN_TOOL]
    return seen


def blocks_of(answer: WireAnswer) -> list[tuple[str, str]]:
    """The same of what the client got."""
    return [
        (block.kind.value, block.name if block.kind.value == "tool_call" else block.text)
        for block in answer.message.blocks
        if block.text or not block.data
    ]
