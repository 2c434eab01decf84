"""What must hold of every edited request, whatever was decided: it is valid, and says nothing of its own accord."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from context_gatekeeper.wire.pairing import PairingRules, find_violations, rules_of_model
from context_gatekeeper.wire.records import WireApi

__all__ = ["faults_of", "sent_blocks", "texts_in"]

Json = Any
_MARK = re.compile(r"\[out: [^\]]*\]")
_LISTS = {WireApi.MESSAGES: "messages", WireApi.CHAT: "messages", WireApi.RESPONSES: "input"}
_USERS = ("user", "tool")
_FIRST_CHARS, _SHORT_CHARS = 200, 80


def faults_of(api: WireApi, original: Json, edited: Json) -> list[str]:
    """Each rule that the edited request breaks and the original does not, in words; none when all is well."""
    return [
        *_violations(api, original, edited),
        *_other_members(api, original, edited),
        *_newest(api, original, edited),
        *_model_parts(api, original, edited),
        *_results(api, original, edited),
        *_calls(api, original, edited),
    ]


def _violations(api: WireApi, original: Json, edited: Json) -> list[str]:
    found = find_violations(api, edited)
    if api is WireApi.MESSAGES:
        known = rules_of_model(original["model"])
        strict = PairingRules(strict_roles=True, system_in_messages=known.system_in_messages)
        if not find_violations(api, original, rules=strict):
            found += find_violations(api, edited, rules=strict)
    if api is WireApi.CHAT:
        found += [f"two {role} messages" for role in set(_neighbours(edited)) - set(_neighbours(original))]
    return found


def _neighbours(body: Json) -> list[str]:
    roles = [message["role"] for message in body["messages"]]
    return [one for one, other in pairwise(roles) if one == other != "tool"]


def _other_members(api: WireApi, original: Json, edited: Json) -> Iterator[str]:
    listed = _LISTS[api]
    if list(original) != list(edited):
        yield "keys of the request"
    for key in original:
        if key != listed and json.dumps(original[key]) != json.dumps(edited[key]):
            yield f"{key} is another"
    kept = [m for m in edited[listed] if m.get("role") in ("system", "developer")]
    if [_bare(m) for m in kept] != [_bare(m) for m in original[listed] if m.get("role") in ("system", "developer")]:
        yield "system messages are others"


def _bare(value: Json) -> Json:
    """Without breakpoints; a text is a list with it."""
    if isinstance(value, list):
        return [_bare(one) for one in value]
    if isinstance(value, dict):
        told = {key: _bare(one) for key, one in value.items() if key != "cache_control"}
        if "role" in told and isinstance(told.get("content"), str):
            told["content"] = [{"type": "text", "text": told["content"]}]
        return told
    return value


def _is_users(message: Json) -> bool:
    return message.get("role") in _USERS or str(message.get("type", "")).endswith("_output")


def _newest(api: WireApi, original: Json, edited: Json) -> Iterator[str]:
    """What the user said last stands there as it was, behind all else but pages that came back for it."""
    listed = _LISTS[api]
    last = max((n for n, m in enumerate(original[listed]) if _is_users(m)), default=-1)
    newest = original[listed][last]
    rest = [message for message in edited[listed] if _is_users(message)]
    own = _contents(newest)
    if not own or _is_result(newest):
        ids = _result_ids(newest)
        if ids and not any(ids == _result_ids(message) for message in rest[-2:]):
            yield "the newest result has left"
        return
    texts = [_contents(message) for message in rest[-2:]]
    if not any(found[: len(own)] == own or _begins(found, own) for found in texts):
        yield "what the user said last has changed"


def _is_result(message: Json) -> bool:
    return message.get("role") == "tool" or str(message.get("type", "")).endswith("_output")


def _begins(found: Sequence[Json], own: Sequence[Json]) -> bool:
    """Whether a text goes on behind the user's own."""
    return (
        len(found) == len(own) == 1
        and "text" in own[0]
        and found[0].get("text", "").startswith(own[0]["text"] + "\n\n")
    )


def _contents(message: Json) -> list[Json]:
    content = _bare(message).get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    return [part for part in parts if part.get("type") != "tool_result"]


def _result_ids(message: Json) -> list[str]:
    if message.get("role") == "tool":
        return [message["tool_call_id"]]
    if str(message.get("type", "")).endswith("_output"):
        return [message["call_id"]]
    content = message.get("content")
    return [p["tool_use_id"] for p in content if p.get("type") == "tool_result"] if isinstance(content, list) else []


# -- what the model said ----------------------------------------------------------------------------------


def _model_parts(api: WireApi, original: Json, edited: Json) -> Iterator[str]:
    told, known = _answers(api, original), _answers(api, edited)
    lines = _known_lines(api, original)
    originals = [part["text"] for part in told if "text" in part]
    sealed = [json.dumps(_bare(part)) for part in told if "text" not in part]
    for part in known:
        if "text" not in part:
            if json.dumps(_bare(part)) not in sealed:
                yield f"something of the model's is another: {part.get('type')}"
        elif part["text"] not in originals:
            rest = _MARK.sub("\n", part["text"]).split("\n")
            strange = [line for line in rest if line.strip() not in lines and not _is_path(line, originals)]
            if any(not _is_beginning(line, originals) for line in strange):
                yield f"words that are not the model's: {strange[:2]!a}"


def _is_path(line: str, texts: Sequence[str]) -> bool:
    """Whether it is a name that a digest kept without its line."""
    return "/" in line and any(line in text for text in texts)


def _is_beginning(line: str, originals: Sequence[str]) -> bool:
    return len(line) <= _FIRST_CHARS and any(text.lstrip().startswith(line.strip()) for text in originals)


def _answers(api: WireApi, body: Json) -> list[Json]:
    """Parts of the model's but calls."""
    parts: list[Json] = []
    for message in body[_LISTS[api]]:
        if message.get("type") == "reasoning":
            parts.append(message)
        elif message.get("role") == "assistant":
            parts += [part for part in _contents(message) if part.get("type") != "tool_use"]
            if message.get("reasoning_content"):
                parts.append({"type": "reasoning", "reasoning": message["reasoning_content"]})
    return parts


def texts_in(value: Json) -> Iterator[str]:
    """Every text in it, the keys of objects left out; JSON in a text is read too."""
    if isinstance(value, str):
        yield value
        if value.startswith("{"):
            try:
                yield from texts_in(json.loads(value))
            except ValueError:
                return
    elif isinstance(value, dict):
        for one in value.values():
            yield from texts_in(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts_in(one)


def _known_lines(api: WireApi, body: Json) -> set[str]:
    """Lines of all texts, and of arguments and blocks as the request writes them."""
    texts = [*texts_in(body[_LISTS[api]]), *map(_unescaped, _written(body[_LISTS[api]]))]
    return {line.strip() for text in texts for line in text.split("\n")}


def _unescaped(text: str) -> str:
    """JSON with its line breaks and quotes as a reader sees them."""
    return (
        re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text).replace("\\n", "\n").replace('\\"', '"')
    )


def _written(value: Json) -> Iterator[str]:
    """Texts that a client sends as JSON: arguments, and blocks of types that we do not know."""
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(one, str) and one.startswith("{"):
            yield one
        elif isinstance(one, dict):
            yield json.dumps(one, ensure_ascii=False, separators=(",", ":"))
        yield from _written(one)


# -- results and calls -------------------------------------------------------------------------------------


def _result_texts(api: WireApi, body: Json) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for message in body[_LISTS[api]]:
        blocks = message.get("content") if api is WireApi.MESSAGES else [message]
        for block in blocks if isinstance(blocks, list) else ():
            call = block.get("tool_use_id") or (block.get("call_id") or block.get("tool_call_id"))
            if call is None or not (_is_result(block) or block.get("type") == "tool_result"):
                continue
            content = block.get("content") if "content" in block else block.get("output")
            parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content or []]
            found[call] = parts
    return found


def _results(api: WireApi, original: Json, edited: Json) -> Iterator[str]:
    """A result's lines are lines of the original, or ours in brackets, or such as a digest kept of its exchange."""
    before = _result_texts(api, original)
    lines = _known_lines(api, original)
    texts = list(texts_in(original[_LISTS[api]]))
    for call, parts in _result_texts(api, edited).items():
        if parts == before.get(call):
            continue
        for line in "\n".join(parts).split("\n"):
            is_ours = line.startswith("[") and line.rstrip().endswith("]")
            if line.strip() and not is_ours and line.strip() not in lines and not _is_path(line, texts):
                yield f"a line that the tool did not say: {line[:80]!a}"


def _calls(api: WireApi, original: Json, edited: Json) -> Iterator[str]:
    before = dict(_arguments(api, original))
    for call, given in _arguments(api, edited):
        if call not in before:
            yield f"a call of ours: {call}"
        elif given != before[call] and not _is_alike(before[call], given, list(texts_in(before[call]))):
            yield f"arguments of another shape: {call}"


def _arguments(api: WireApi, body: Json) -> Iterator[tuple[str, Json]]:
    for message in body[_LISTS[api]]:
        if api is WireApi.MESSAGES and isinstance(message["content"], list):
            for part in message["content"]:
                if part["type"] == "tool_use":
                    yield part["id"], part["input"]
        for call in message.get("tool_calls") or ():
            yield call["id"], json.loads(call["function"]["arguments"])
        if message.get("type") == "function_call":
            yield message["call_id"], json.loads(message["arguments"])


def _is_alike(before: Json, now: Json, texts: Sequence[str]) -> bool:
    """Whether it has the same shape, and short texts and all that is no text are the same.

    A long text holds a mark, stretches of its own, and lines that a digest kept of the call.
    """
    if isinstance(before, dict) and isinstance(now, dict):
        return list(before) == list(now) and all(_is_alike(before[key], now[key], texts) for key in before)
    if isinstance(before, list) and isinstance(now, list):
        same = zip(before, now, strict=False)
        return len(before) == len(now) and all(_is_alike(one, other, texts) for one, other in same)
    if isinstance(before, str) and isinstance(now, str) and before != now:
        rest = [line.strip() for line in _MARK.sub("\n", now).split("\n")]
        return (
            len(before) > _SHORT_CHARS and "[out: " in now and all(any(line in one for one in texts) for line in rest)
        )
    return bool(before == now)


# -- what a provider caches -------------------------------------------------------------------------------------


def sent_blocks(api: WireApi, body: Json) -> list[str]:
    """The conversation as a provider's cache sees it: without breakpoints, a text being a list with it.

    Of Messages block by block, of the others message by message.
    """
    blocks: list[str] = []
    for message in body[_LISTS[api]]:
        if api is not WireApi.MESSAGES:
            blocks.append(json.dumps(message, ensure_ascii=False))
            continue
        told = _bare(message)["content"]
        blocks += [f"{message['role']} {json.dumps(block, ensure_ascii=False)}" for block in told]
    return blocks
