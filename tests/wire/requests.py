"""Valid requests of the three APIs, written the odd ways that JSON allows."""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from context_gatekeeper.wire.records import WireApi

__all__ = [
    "CHARACTERS",
    "UNHURRIED",
    "SampleRequest",
    "anthropic_requests",
    "chat_requests",
    "odd_json",
    "responses_requests",
    "sample_requests",
]

Json = Any
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50)
"""For tests that draw whole requests, which takes its time on a busy machine."""
SPACES = ("", "", "", " ", "\n  ", "\t", " \r\n")


class SampleRequest(NamedTuple):
    """A request as a value and as bytes that say the same."""

    api: WireApi
    body: dict[str, Json]
    raw: bytes


def odd_json(value: Json, seed: int) -> str:
    """JSON with spaces, escapes and an order of keys that depend on ``seed``; 0 writes it as `json.dumps` does."""
    return json.dumps(value) if seed == 0 else _written(value, random.Random(seed))


def _written(value: Json, chance: random.Random) -> str:
    def gap() -> str:
        return chance.choice(SPACES)

    if isinstance(value, dict):
        pairs = list(value.items())
        chance.shuffle(pairs)
        listed = (f"{gap()}{_literal(key, chance)}{gap()}:{gap()}{_written(one, chance)}{gap()}" for key, one in pairs)
        return "{" + (",".join(listed) or gap()) + "}"
    if isinstance(value, list):
        return "[" + (",".join(f"{gap()}{_written(one, chance)}{gap()}" for one in value) or gap()) + "]"
    return _literal(value, chance) if isinstance(value, str) else json.dumps(value)


def _literal(text: str, chance: random.Random) -> str:
    return f'"{"".join(_character(one, chance) for one in text)}"'


def _character(one: str, chance: random.Random) -> str:
    plain = json.dumps(one, ensure_ascii=False)[1:-1]
    if "\ud800" <= one <= "\udfff" or chance.random() < 0.05:
        escaped = json.dumps(one)[1:-1]
        return escaped.upper().replace("\\U", "\\u") if escaped.startswith("\\u") and chance.random() < 0.5 else escaped
    return "\\/" if one == "/" and chance.random() < 0.5 else plain


# -- parts ---------------------------------------------------------------------------------------------

CHARACTERS = 'ab <>{}[],:"\\/\n\t\0\x1f\x7fé中\u2028\ufeff😀\udc80\udfff'
"""What JSON escapes, what it need not, and second halves of characters, of which no two are a whole one."""
TEXTS = st.text(CHARACTERS, min_size=1, max_size=8)
NAMES = st.sampled_from(["Read", "Bash", "grep", "工具"])
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=3,
)
ARGUMENTS = st.dictionaries(TEXTS, VALUES, max_size=2)
BASE64 = st.sampled_from(["", "abcd", "QUJD+/=="])


@st.composite
def _optional(draw: st.DrawFn, part: dict[str, Json], **keys: Json) -> dict[str, Json]:
    """A part, perhaps with more keys."""
    return {**part, **{key: draw(value) for key, value in keys.items() if draw(st.booleans())}}


MARKS = st.sampled_from([{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}])


def _text(text: str) -> dict[str, Json]:
    return {"type": "text", "text": text}


TEXT_BLOCKS = TEXTS.map(_text).flatmap(lambda part: _optional(part, cache_control=MARKS))
IMAGES = BASE64.map(
    lambda data: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
)
DOCUMENTS = st.builds(
    lambda text: {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}}, TEXTS
)
UNKNOWN_BLOCKS = st.builds(lambda value: {"type": "newest_invention", "payload": value}, VALUES)
USER_BLOCKS = TEXT_BLOCKS | IMAGES | DOCUMENTS | UNKNOWN_BLOCKS
THINKING = st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "sig"}, TEXTS | st.just("")) | (
    st.builds(lambda data: {"type": "redacted_thinking", "data": data}, TEXTS)
)
SERVER_TOOLS = st.builds(
    lambda query: [
        {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"query": query}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srv",
            "content": [{"type": "web_search_result", "url": "u"}],
        },
    ],
    TEXTS,
)
RESULT_CONTENTS = st.none() | TEXTS | st.just("") | st.lists(TEXTS.map(_text) | IMAGES | UNKNOWN_BLOCKS, max_size=3)


def _requests(api: WireApi, bodies: st.SearchStrategy[dict[str, Json]]) -> st.SearchStrategy[SampleRequest]:
    return st.builds(
        lambda body, seed: SampleRequest(api, body, odd_json(body, seed).encode()), bodies, st.integers(0, 2**20)
    )


def sample_requests() -> st.SearchStrategy[SampleRequest]:
    """Requests of all three APIs."""
    return anthropic_requests() | chat_requests() | responses_requests()


# -- Anthropic -----------------------------------------------------------------------------------------


@st.composite
def _anthropic_bodies(draw: st.DrawFn) -> dict[str, Json]:
    messages = [{"role": "system", "content": text} for text in draw(st.lists(TEXTS, max_size=1))]
    messages.append({"role": "user", "content": draw(TEXTS | st.lists(USER_BLOCKS, min_size=1, max_size=3))})
    for turn in range(draw(st.integers(0, 3))):
        calls = [
            {"type": "tool_use", "id": f"t{turn}.{number}", "name": draw(NAMES), "input": draw(ARGUMENTS)}
            for number in range(draw(st.integers(0, 2)))
        ]
        said = [*draw(st.lists(THINKING, max_size=1)), *draw(st.lists(TEXT_BLOCKS, max_size=2))]
        said += draw(st.just([]) | SERVER_TOOLS) + calls or [_text("done")]
        messages.append({"role": "assistant", "content": said})
        results = []
        for call in calls:
            result: dict[str, Json] = {"type": "tool_result", "tool_use_id": call["id"]}
            keys = {"content": RESULT_CONTENTS, "is_error": st.booleans(), "cache_control": MARKS}
            results.append(draw(_optional(result, **keys)))
        behind = draw(st.lists(USER_BLOCKS, min_size=0 if results else 1, max_size=2))
        messages.append({"role": "user", "content": results + behind})
        if draw(st.booleans()):
            messages.append({"role": "system", "content": draw(TEXTS | st.lists(TEXT_BLOCKS, min_size=1, max_size=2))})
    keys = {
        "system": TEXTS | st.lists(TEXT_BLOCKS, max_size=2),
        "tools": st.just(
            [{"name": "Read", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}]
        ),
        "cache_control": MARKS,
        "stream": st.booleans(),
        "metadata": st.just({"user_id": "user_x_session_" + "0" * 36}),
    }
    return draw(_optional({"model": "claude-opus-4-8", "max_tokens": 5, "messages": messages}, **keys))


def anthropic_requests() -> st.SearchStrategy[SampleRequest]:
    """Requests of Anthropic's Messages API: parallel calls, server tools, thinking, system messages in between."""
    return _requests(WireApi.MESSAGES, _anthropic_bodies())


# -- OpenAI --------------------------------------------------------------------------------------------

CHAT_PARTS = TEXTS.map(_text) | st.just({"type": "image_url", "image_url": {"url": "data:image/png;base64,abcd"}})
ARGUMENT_TEXTS = ARGUMENTS.map(json.dumps)


@st.composite
def _chat_bodies(draw: st.DrawFn) -> dict[str, Json]:
    roles = draw(st.lists(st.sampled_from(["system", "developer"]), max_size=2))
    messages: list[dict[str, Json]] = [{"role": role, "content": draw(TEXTS)} for role in roles]
    messages.append({"role": "user", "content": draw(TEXTS | st.lists(CHAT_PARTS, min_size=1, max_size=3))})
    for turn in range(draw(st.integers(0, 3))):
        calls: list[dict[str, Json]] = [
            {
                "id": f"c{turn}.{number}",
                "type": "function",
                "function": {"name": draw(NAMES), "arguments": draw(ARGUMENT_TEXTS)},
            }
            for number in range(draw(st.integers(0, 2)))
        ]
        if draw(st.booleans()):
            calls.append({"id": f"c{turn}.x", "type": "custom", "custom": {"name": "patch", "input": draw(TEXTS)}})
        said: dict[str, Json] = {"role": "assistant", "content": draw(TEXTS) if not calls else draw(st.none() | TEXTS)}
        if calls:
            said["tool_calls"] = calls
        messages.append(draw(_optional(said, refusal=st.none() | TEXTS, reasoning_content=TEXTS)))
        for call in calls:
            content = draw(TEXTS | st.just("") | st.lists(TEXTS.map(_text), min_size=1, max_size=2))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        if draw(st.booleans()):
            messages.append({"role": draw(st.sampled_from(["user", "developer"])), "content": draw(TEXTS)})
    keys = {"prompt_cache_key": TEXTS, "tools": st.just([{"type": "function", "function": {"name": "Read"}}])}
    return draw(_optional({"model": "gpt-5", "messages": messages}, **keys))


def chat_requests() -> st.SearchStrategy[SampleRequest]:
    """Requests of Chat Completions: parallel and custom calls, refusals, reasoning, developer messages in between."""
    return _requests(WireApi.CHAT, _chat_bodies())


RESPONSE_PARTS = TEXTS.map(lambda text: {"type": "input_text", "text": text}) | st.just(
    {"type": "input_image", "image_url": "data:image/png;base64,abcd"}
)
REASONING = st.builds(
    lambda texts, sealed: {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": text} for text in texts],
        "encrypted_content": sealed,
    },
    st.lists(TEXTS, max_size=2),
    st.none() | TEXTS,
)


@st.composite
def _response_items(draw: st.DrawFn) -> list[dict[str, Json]]:
    items: list[dict[str, Json]] = [
        {"role": "user", "content": draw(TEXTS | st.lists(RESPONSE_PARTS, min_size=1, max_size=2))}
    ]
    for turn in range(draw(st.integers(0, 3))):
        items += draw(st.lists(REASONING, max_size=1))
        if draw(st.booleans()):
            part = {"type": "output_text", "text": draw(TEXTS), "annotations": []}
            items.append({"type": "message", "role": "assistant", "id": "msg", "content": [part]})
        else:
            call = {"type": "function_call", "call_id": f"f{turn}", "name": draw(NAMES)}
            items.append({**call, "arguments": draw(ARGUMENT_TEXTS)})
            output = draw(TEXTS | st.just("") | st.lists(RESPONSE_PARTS, min_size=1, max_size=2))
            items.append({"type": "function_call_output", "call_id": f"f{turn}", "output": output})
        if draw(st.booleans()):
            role = draw(st.sampled_from(["user", "developer"]))
            items.append(
                {"type": "message", "role": role, "content": draw(st.lists(RESPONSE_PARTS, min_size=1, max_size=2))}
            )
        if draw(st.booleans()):
            items.append({"type": "newest_invention", "payload": draw(VALUES)})
    return items


@st.composite
def _response_bodies(draw: st.DrawFn) -> dict[str, Json]:
    keys = {"instructions": TEXTS, "prompt_cache_key": TEXTS, "previous_response_id": st.none() | TEXTS}
    return draw(_optional({"model": "gpt-5", "input": draw(TEXTS | _response_items())}, **keys))


def responses_requests() -> st.SearchStrategy[SampleRequest]:
    """Requests of the Responses API: a text, or items with reasoning, calls, outputs and unknown ones."""
    return _requests(WireApi.RESPONSES, _response_bodies())
