"""Long conversations of agents as growing requests of the three APIs, all drawn from one seed each.

Request k ends on the user's side; request k + 1 has the model's answer to it and the next user side behind it. A
history holds what real clients send: several calls at once, results with repeated lines, failed ones, images and
documents, signed, sealed and empty thinking, tools of the provider's, system messages in the middle, typed texts long
and short beside results, Chinese and English.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from context_gatekeeper.wire.records import WireApi

__all__ = ["Exchange", "Growth", "Size", "grow", "make_exchanges", "messages_bodies"]

Json = dict[str, Any]
BINDING_MODEL, OLDER_MODEL = "claude-opus-5-5", "claude-opus-4-8"
SYSTEM = "You are a coding agent.\nWorking directory: /srv/shop\nKeep your answers short."
_WORDS = (
    "order invoice export retry parser billing stock cart header token window ledger customer refund price total tax"
    " row column batch worker queue session cache prefix digest"
).split()
_HAN = "订单发票导出重试解析账单库存购物车请求会话缓存价格客户退款统计批次队列前缀摘要窗口日志错误修复测试部署配置"
_TOOLS = ("Read", "Bash", "Grep", "WebFetch", "Edit", "Write")
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass(frozen=True, slots=True)
class Size:
    """How long a history is."""

    exchanges: tuple[int, int] = (15, 40)
    """Least and most: two messages each."""
    result_chars: tuple[int, int] = (200, 6000)


@dataclass(frozen=True, slots=True)
class Result:
    call_id: str
    name: str
    text: str
    is_error: bool = False
    has_image: bool = False
    is_list: bool = False


@dataclass(slots=True)
class Exchange:
    """The user's side, and what the model answers to it."""

    results: list[Result] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    has_image: bool = False
    has_document: bool = False
    system: str = ""
    thinking: list[tuple[str, str]] = field(default_factory=list)
    """(kind: open, sealed; text)"""
    said: str = ""
    calls: list[tuple[str, str, Json]] = field(default_factory=list)
    """(id, tool, arguments)"""
    query: str = ""
    """Of a tool that the provider runs itself."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One conversation's requests."""

    api: WireApi
    requests: tuple[Json, ...]

    def raw(self, number: int) -> bytes:
        """The bytes of a request."""
        return json.dumps(self.requests[number], ensure_ascii=False, separators=(",", ":")).encode()


class _Writer:
    """Writes texts as agents read and write them."""

    def __init__(self, chance: random.Random, size: Size) -> None:
        self.chance = chance
        self.size = size
        self.calls = 0
        self.files: dict[str, list[str]] = {}

    def line(self) -> str:
        chance = self.chance
        kind = chance.random()
        if kind < 0.15:
            return "".join(chance.choices(_HAN, k=chance.randint(4, 40)))
        if kind < 0.2:
            return ""
        words = chance.choices(_WORDS, k=chance.randint(2, 9))
        number = chance.randint(1, 400)
        if kind < 0.6:
            return f"    {words[0]}_{number} = {words[-1]}_{chance.randint(1, 90)}({' '.join(words)})"
        if kind < 0.75:
            return f"/srv/shop/{words[0]}/{words[1]}_{number}.py:{number}: {' '.join(words)}"
        return f"{' '.join(words)} {number}."

    def lines(self, chars: int) -> list[str]:
        found: list[str] = []
        while chars > 0:
            found.append(self.line())
            chars -= len(found[-1]) + 1
        return found

    def result(self) -> str:
        """A file that was read before, changed a little, or something new."""
        chance = self.chance
        low, high = self.size.result_chars
        if self.files and chance.random() < 0.3:
            name = chance.choice(list(self.files))
            lines = self.files[name] = [self.line() if chance.random() < 0.05 else one for one in self.files[name]]
            return "\n".join(lines)
        chars = int(low * (high / low) ** chance.random())
        lines = self.lines(chars)
        if chance.random() < 0.5:
            self.files[f"/srv/shop/{chance.choice(_WORDS)}.py"] = lines
        return "\n".join(lines) + ("\n" if chance.random() < 0.2 else "")

    def call(self) -> tuple[str, str, Json]:
        chance = self.chance
        self.calls += 1
        call_id, name = f"toolu_{self.calls:04d}", chance.choice(_TOOLS)
        path = chance.choice(list(self.files)) if self.files and chance.random() < 0.5 else "/srv/shop/new.py"
        low, high = self.size.result_chars
        long_text = "\n".join(self.lines(chance.randint(low, high)))
        every: dict[str, Json] = {
            "Read": {"file_path": path, "limit": chance.randint(1, 200)},
            "Bash": {"command": f"pytest -q {path}", "timeout": None},
            "Grep": {"pattern": self.line()[:60], "path": path, "flags": ["-n", True]},
            "WebFetch": {"url": "https://example.org/" + chance.choice(_WORDS)},
            "Edit": {"file_path": path, "old_string": self.line(), "new_string": long_text},
            "Write": {"file_path": path, "content": long_text},
        }
        return call_id, name, every[name]


def make_exchanges(chance: random.Random, size: Size) -> list[Exchange]:
    """A conversation; the newest exchange has no answer yet when it is sent."""
    writer = _Writer(chance, size)
    exchanges: list[Exchange] = []
    waiting: list[tuple[str, str, Json]] = []
    for number in range(chance.randint(*size.exchanges)):
        one = Exchange()
        for call_id, name, _ in chance.sample(waiting, len(waiting)):
            kind = chance.random()
            one.results.append(
                Result(
                    call_id,
                    name,
                    "" if kind < 0.03 else writer.result(),
                    is_error=kind > 0.9,
                    has_image=0.03 < kind < 0.08,
                    is_list=kind < 0.3,
                )
            )
        if not waiting or chance.random() < 0.1:
            chars = min(chance.choice((20, 60, 300, 900, 3000)), 2 * size.result_chars[1])
            one.texts = ["\n".join(writer.lines(chars)) or "go on" for _ in range(chance.choice((1, 1, 1, 2)))]
            one.texts = [text if text.strip() else "go on" for text in one.texts]
            one.has_image, one.has_document = chance.random() < 0.1, chance.random() < 0.1
        if number == 0 and chance.random() < 0.3:
            one.texts.insert(0, f"<system-reminder>\n{writer.line()}\n</system-reminder>")
        if chance.random() < 0.05:
            one.system = "[SYSTEM NOTIFICATION] " + (writer.line() or "idle")
        for _ in range(chance.choice((0, 0, 1, 1, 2))):
            kind = chance.random()
            words = "" if kind < 0.2 else "\n".join(writer.lines(chance.choice((30, 400))))
            one.thinking.append(("sealed", f"c2Vh{chance.randint(0, 10**9)}") if kind > 0.8 else ("open", words))
        calls = 0 if chance.random() < 0.15 else chance.choice((1, 1, 1, 1, 2, 3))
        one.calls = waiting = [writer.call() for _ in range(calls)]
        if not calls or chance.random() < 0.6:
            one.said = (
                "\n".join(writer.lines(min(chance.choice((20, 200, 200, 1500)), 2 * size.result_chars[1]))).strip()
                or "Done."
            )
        if chance.random() < 0.05:
            one.query = chance.choice(_WORDS)
        exchanges.append(one)
    return exchanges


# -- Anthropic Messages -------------------------------------------------------------------------------


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _image() -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PIXEL}}


def _users_message(one: Exchange) -> Json:
    content: list[Json] = []
    for result in one.results:
        block: Json = {"type": "tool_result", "tool_use_id": result.call_id, "content": result.text}
        if result.is_list or result.has_image:
            block["content"] = [_text(result.text)] if result.text else []
            block["content"] += [_image()] if result.has_image else []
        if result.is_error:
            block["is_error"] = True
        content.append(block)
    content += [_text(text) for text in one.texts]
    content += [_image()] if one.has_image else []
    if one.has_document:
        source = {"type": "text", "media_type": "text/plain", "data": "terms of the shop"}
        content.append({"type": "document", "source": source})
    return {"role": "user", "content": content}


def _answer(one: Exchange, number: int) -> Json:
    content: list[Json] = []
    for kind, words in one.thinking:
        if kind == "sealed":
            content.append({"type": "redacted_thinking", "data": words})
        else:
            content.append({"type": "thinking", "thinking": words, "signature": f"c2ln{number}"})
    if one.query:
        call = {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search", "input": {"q": one.query}}
        found = {
            "type": "web_search_result",
            "url": "https://example.org",
            "title": one.query,
            "encrypted_content": "e",
        }
        content += [call, {"type": "web_search_tool_result", "tool_use_id": call["id"], "content": [found]}]
    content += [_text(one.said)] if one.said else []
    content += [{"type": "tool_use", "id": c, "name": name, "input": given} for c, name, given in one.calls]
    return {"role": "assistant", "content": content}


def messages_bodies(
    exchanges: Sequence[Exchange], *, model: str = OLDER_MODEL, is_claude_code: bool = True, ttl: str = "5m"
) -> Iterator[Json]:
    """The requests one after the other.

    Args:
        exchanges: of the conversation.
        model: which the client asks.
        is_claude_code: its breakpoint moves to the end of each request, and a message that is one text is a list
            while it bears it and a text from then on.
        ttl: of the breakpoints.
    """
    mark: Json = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}
    messages: list[Json] = []
    for number, one in enumerate(exchanges):
        messages.append(_users_message(one))
        if one.system and model == OLDER_MODEL:
            messages.append({"role": "system", "content": one.system})
        told = [_one_text(message) for message in messages] if is_claude_code else list(messages)
        if is_claude_code:
            told[-1] = _marked(messages[-1], mark)
        body: Json = {
            "model": model,
            "max_tokens": 4096,
            "system": [{**_text(SYSTEM), "cache_control": mark}] if is_claude_code else SYSTEM,
            "tools": [{"name": name, "description": "a tool", "input_schema": {"type": "object"}} for name in _TOOLS],
            "thinking": {"type": "adaptive"},
            "metadata": {"user_id": json.dumps({"session_id": "s-1"})},
            "messages": told,
            "stream": True,
        }
        yield body
        messages.append(_answer(one, number))


def _one_text(message: Json) -> Json:
    content = message["content"]
    if isinstance(content, list) and len(content) == 1 and content[0]["type"] == "text":
        return {**message, "content": content[0]["text"]}
    return message


def _marked(message: Json, mark: Json) -> Json:
    content = message["content"]
    blocks = [_text(content)] if isinstance(content, str) else content
    return {**message, "content": [*blocks[:-1], {**blocks[-1], "cache_control": mark}]}


# -- OpenAI ---------------------------------------------------------------------------------------------


def chat_bodies(exchanges: Sequence[Exchange], *, sends_reasoning: bool = False) -> Iterator[Json]:
    """The requests as Chat Completions."""
    messages: list[Json] = [{"role": "system", "content": SYSTEM}]
    for one in exchanges:
        for result in one.results:
            content: Any = [_text(result.text)] if result.is_list and result.text else result.text
            messages.append({"role": "tool", "tool_call_id": result.call_id, "content": content})
        if one.texts and one.has_image:
            parts = [
                *map(_text, one.texts),
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PIXEL}"}},
            ]
            messages.append({"role": "user", "content": parts})
        else:
            messages += [{"role": "user", "content": text} for text in one.texts[:1]]
            messages[-1] = {**messages[-1], "content": "\n".join(one.texts)} if len(one.texts) > 1 else messages[-1]
        if one.system:
            messages.append({"role": "developer", "content": one.system})
        functions = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in _TOOLS]
        yield {"model": "gpt-6", "messages": list(messages), "tools": functions, "user": "u"}
        answer: Json = {"role": "assistant", "content": one.said or None}
        if one.calls:
            answer["tool_calls"] = [
                {"id": c, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
                for c, name, given in one.calls
            ]
        if sends_reasoning and one.thinking:
            answer["reasoning_content"] = one.thinking[0][1]
        messages.append(answer)


def responses_bodies(exchanges: Sequence[Exchange]) -> Iterator[Json]:
    """The requests as Responses, with whole items and nothing kept at the provider."""
    items: list[Json] = []
    for number, one in enumerate(exchanges):
        for result in one.results:
            output: Any = (
                [{"type": "input_text", "text": result.text}] if result.is_list and result.text else result.text
            )
            items.append({"type": "function_call_output", "call_id": result.call_id, "output": output})
        if one.texts:
            parts = [{"type": "input_text", "text": text} for text in one.texts]
            parts += [{"type": "input_image", "image_url": f"data:image/png;base64,{_PIXEL}"}] if one.has_image else []
            items.append({"type": "message", "role": "user", "content": parts})
        if one.system:
            items.append({"type": "message", "role": "developer", "content": one.system})
        yield {"model": "gpt-6-codex", "instructions": SYSTEM, "input": list(items), "store": False, "stream": True}
        if one.thinking:
            summary = [{"type": "summary_text", "text": words} for kind, words in one.thinking if kind == "open"]
            sealed = f"c2Vh{number}"
            items.append({"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": sealed})
        if one.said or not one.calls:
            said = {"type": "output_text", "text": one.said or "Done.", "annotations": []}
            items.append({"type": "message", "role": "assistant", "id": f"msg_{number}", "content": [said]})
        for call_id, name, given in one.calls:
            arguments = json.dumps(given, ensure_ascii=False)
            items.append({"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments})


_BODIES: dict[WireApi, Callable[..., Iterator[Json]]] = {
    WireApi.MESSAGES: messages_bodies,
    WireApi.CHAT: chat_bodies,
    WireApi.RESPONSES: responses_bodies,
}


def grow(api: WireApi, seed: int, size: Size = Size(), **options: Any) -> Growth:
    """The requests of one conversation.

    Args:
        api: whose form they have.
        seed: of everything in it.
        size: how long it is.
        options: of the API's bodies; those of Messages are drawn too where they are not given.
    """
    chance = random.Random(seed)
    exchanges = make_exchanges(chance, size)
    if api is WireApi.MESSAGES:
        options.setdefault("is_claude_code", chance.random() < 0.6)
        options.setdefault("model", chance.choice((OLDER_MODEL, OLDER_MODEL, BINDING_MODEL)))
        options.setdefault("ttl", chance.choice(("5m", "5m", "1h")))
    elif api is WireApi.CHAT:
        options.setdefault("sends_reasoning", chance.random() < 0.3)
    return Growth(api, tuple(_BODIES[api](exchanges, **options)))
