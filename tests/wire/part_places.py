"""Where the parts of a request stand, worked out from its value alone: the codecs' answer is compared with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from context_gatekeeper.wire.records import WireApi
from tests.wire.requests import SampleRequest

Path = tuple[str | int, ...]


class PartPlace(NamedTuple):
    """One part."""

    message: int
    element: Path
    """The value that leaves with it."""
    text: Path | None
    """The value that holds its text; None where there is none that can be replaced."""


def value_at(value: Any, path: Path) -> Any:
    """What stands there."""
    for step in path:
        value = value[step]
    return value


def part_places(sample: SampleRequest) -> list[PartPlace]:
    """All parts in order."""
    name = "input" if sample.api is WireApi.RESPONSES else "messages"
    listed = sample.body[name]
    if isinstance(listed, str):
        return [PartPlace(0, (name,), (name,))] if listed else []
    places = {WireApi.MESSAGES: _anthropic, WireApi.CHAT: _chat, WireApi.RESPONSES: _item}[sample.api]
    return [
        PartPlace(number, element, text)
        for number, message in enumerate(listed)
        for element, text in places(message, (name, number))
    ]


Found = Iterator[tuple[Path, Path | None]]


def _content(content: Any, path: Path) -> Found:
    if isinstance(content, str) and content:
        yield path, path
    if isinstance(content, list):
        for number, block in enumerate(content):
            yield from _block(block, (*path, number))


def _block(block: dict[str, Any], path: Path) -> Found:
    kind = block["type"]
    if kind == "tool_result":
        yield from _result(block.get("content", ...), path, (*path, "content"))
    elif kind in ("text", "input_text", "output_text"):
        yield path, (*path, "text")
    elif kind == "tool_use":
        yield path, (*path, "input")
    else:
        yield path, None


def _result(content: Any, holder: Path, path: Path) -> Found:
    if isinstance(content, list):
        if not content or content[0]["type"] not in ("text", "input_text"):
            yield holder, None
        yield from _content(content, path)
    else:
        yield holder, None if content is ... else path


def _anthropic(message: dict[str, Any], path: Path) -> Found:
    yield from _content(message["content"], (*path, "content"))


def _chat(message: dict[str, Any], path: Path) -> Found:
    if message["role"] == "tool":
        content = (*path, "content")
        yield from _result(message["content"], content if isinstance(message["content"], str) else path, content)
        return
    if "reasoning_content" in message:
        yield (*path, "reasoning_content"), None
    yield from _content(message["content"], (*path, "content"))
    yield from _content(message.get("refusal"), (*path, "refusal"))
    for number, call in enumerate(message.get("tool_calls", ())):
        own = (*path, "tool_calls", number)
        yield own, (*own, "custom", "input") if "custom" in call else (*own, "function", "arguments")


def _item(item: dict[str, Any], path: Path) -> Found:
    kind = item.get("type", "message")
    if kind == "message":
        yield from _content(item["content"], (*path, "content"))
    elif kind == "reasoning":
        for number in range(len(item["summary"])):
            yield (*path, "summary", number), None
        if item["encrypted_content"] is not None:
            yield (*path, "encrypted_content"), None
    elif kind == "function_call":
        yield path, (*path, "arguments")
    elif kind == "function_call_output":
        yield from _result(item["output"], path, (*path, "output"))
    else:
        yield path, None
