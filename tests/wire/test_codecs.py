"""What holds of the codecs of all three APIs, for requests of every kind."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.types import BlockKind, MessageRole
from context_gatekeeper.wire import decode_request, encode_request
from context_gatekeeper.wire.records import PartKey, RequestEdits, WireApi, WirePart, WireRequest
from tests.wire.part_places import Path, part_places, value_at
from tests.wire.requests import CHARACTERS, UNHURRIED, SampleRequest, anthropic_requests, odd_json, sample_requests


def decode(sample: SampleRequest) -> WireRequest:
    return decode_request(sample.api, sample.raw)


def parts_of(request: WireRequest) -> list[WirePart]:
    return [part for message in request.messages for part in message.parts]


def replaced(body: Any, path: Path, value: Any) -> Any:
    changed = copy.deepcopy(body)
    value_at(changed, path[:-1])[path[-1]] = value
    return changed


def common_ends(first: str, second: str) -> tuple[int, int]:
    """Characters that two texts have in common in front and behind."""
    shorter = min(len(first), len(second))
    front = next((place for place in range(shorter) if first[place] != second[place]), shorter)
    room = shorter - front
    back = next((place for place in range(room) if first[-1 - place] != second[-1 - place]), room)
    return front, back


@UNHURRIED
@given(sample_requests())
def test_a_request_without_edits_is_sent_as_it_came(sample: SampleRequest) -> None:
    request = decode(sample)
    assert encode_request(request, RequestEdits()) == sample.raw
    assert request.source.encode() == sample.raw


@UNHURRIED
@given(sample_requests())
def test_parts_are_all_blocks_once_each_with_the_places_of_their_values(sample: SampleRequest) -> None:
    request = decode(sample)
    places = part_places(sample)
    parts = parts_of(request)
    assert [part.key.message for part in parts] == [place.message for place in places]
    for part, place in zip(parts, places, strict=True):
        assert json.loads(request.source[slice(*part.span)]) == value_at(sample.body, place.element)
        assert (part.text_span is None) == (place.text is None)
        if part.text_span is not None and place.text is not None:
            literal = request.source[slice(*part.text_span)]
            value = value_at(sample.body, place.text)
            assert json.loads(literal) == value
            assert part.block.text == (literal if isinstance(value, dict) else value or "")


@UNHURRIED
@given(sample_requests())
def test_turns_hold_the_parts_in_order_once_each_but_for_the_system_messages_in_front(sample: SampleRequest) -> None:
    request = decode(sample)
    for number, message in enumerate(request.messages):
        assert message.number == number
        assert [part.key for part in message.parts] == [PartKey(number, place) for place in range(len(message.parts))]
    blocks = {part.key: part.block for part in parts_of(request)}
    for turn in request.turns:
        assert tuple(blocks[key] for key in turn.keys) == turn.message.blocks
        assert turn.message.is_call == (turn.message.role is MessageRole.ASSISTANT)
        kinds = {block.kind for block in turn.message.blocks}
        assert (BlockKind.TOOL_RESULT in kinds) == (turn.message.role is MessageRole.TOOL)
    roles = [message.role for message in request.messages]
    leading = next((place for place, role in enumerate(roles) if role is not MessageRole.SYSTEM), len(roles))
    expected = [part.key for message in request.messages[leading:] for part in message.parts]
    assert sorted(key for turn in request.turns for key in turn.keys) == expected


@UNHURRIED
@given(sample_requests(), st.data())
def test_a_new_text_changes_its_own_bytes_alone(sample: SampleRequest, data: st.DataObject) -> None:
    request = decode(sample)
    able = [(part, place) for part, place in zip(parts_of(request), part_places(sample), strict=True) if place.text]
    if not able:
        return
    part, place = data.draw(st.sampled_from(able))
    assert part.text_span is not None
    assert place.text is not None
    is_input = place.text[-1] == "input" and sample.api is WireApi.MESSAGES
    new = '{"n": "\\u0041é"}' if is_input else data.draw(st.text(CHARACTERS, min_size=1))
    sent = encode_request(request, RequestEdits(texts={part.key: new})).decode()
    start, end = part.text_span
    assert sent.startswith(request.source[:start])
    assert sent.endswith(request.source[end:])
    assert json.loads(sent) == replaced(sample.body, place.text, json.loads(new) if is_input else new)


def without(sample: SampleRequest, dropped: set[int]) -> Any:
    """The body without parts: lists, results and messages leave when all that they hold does."""
    places = part_places(sample)
    body = copy.deepcopy(sample.body)
    name = "input" if sample.api is WireApi.RESPONSES else "messages"
    leaving = set()
    gone: set[Path] = set()
    for number, message in enumerate(sample.body[name]):
        own = [one for one, place in enumerate(places) if place.message == number]
        staying = [one for one in own if one not in dropped]
        thinking = [one for one in staying if is_thinking(places[one].element, sample.body)]
        bound = sample.api is WireApi.RESPONSES and message.get("type") == "reasoning"
        if not bound and len(staying) < len(own) and thinking == staying:
            leaving.add(number)
        elif not bound:
            gone.update(gone_in(places, own, dropped))
    if sample.api is WireApi.RESPONSES:
        bind(body[name], leaving, places, dropped)
    for path in sorted(gone, key=lambda path: [str(step).rjust(9) for step in path], reverse=True):
        if path[1] not in leaving:
            take_out(body, path, sample.api)
    body[name] = [message for number, message in enumerate(body[name]) if number not in leaving]
    return body


def is_thinking(element: Path, body: Any) -> bool:
    value = value_at(body, element)
    return element[-1] == "reasoning_content" or (
        isinstance(value, dict) and value.get("type") in ("thinking", "redacted_thinking")
    )


def gone_in(places: list[Any], own: list[int], dropped: set[int]) -> set[Path]:
    """Paths of what leaves inside a message: a place all of whose parts do."""
    held: dict[Path, list[int]] = {}
    for one in own:
        element = places[one].element
        for length in range(3, len(element) + 1):
            held.setdefault(element[:length], []).append(one)
    return {path for path, ones in held.items() if all(one in dropped for one in ones)}


def bind(items: list[Any], leaving: set[int], places: list[Any], dropped: set[int]) -> None:
    """Reasoning goes with what follows it."""
    outputs = ("message", "function_call", "reasoning")
    for number in reversed(range(len(items))):
        if items[number].get("type") != "reasoning":
            continue
        behind = items[number + 1] if number + 1 < len(items) else {}
        is_output = behind.get("type") in outputs and behind.get("role", "assistant") == "assistant"
        own = [one for one, place in enumerate(places) if place.message == number]
        if (number + 1 in leaving) if is_output else (own and all(one in dropped for one in own)):
            leaving.add(number)


def take_out(body: Any, path: Path, api: WireApi) -> None:
    holder = value_at(body, path[:-1]) if exists(body, path) else None
    if holder is None:
        return
    if api is WireApi.CHAT and path[-1] in ("content", "refusal"):
        holder[path[-1]] = None
    elif path[-1] == "output":
        holder["output"] = ""
    else:
        del holder[path[-1]]


def exists(body: Any, path: Path) -> bool:
    try:
        value_at(body, path)
    except (KeyError, IndexError, TypeError):
        return False
    return True


@UNHURRIED
@given(sample_requests(), st.data())
def test_parts_that_leave_take_with_them_what_held_nothing_else(sample: SampleRequest, data: st.DataObject) -> None:
    request = decode(sample)
    parts = parts_of(request)
    if not parts:
        return
    dropped = data.draw(st.sets(st.integers(0, len(parts) - 1), min_size=1, max_size=6))
    edits = RequestEdits(dropped=frozenset(parts[one].key for one in dropped))
    if isinstance(sample.body.get("input"), str):
        return
    expected = without(sample, dropped)
    if not expected.get("messages", expected.get("input")):
        return
    sent = encode_request(request, edits)
    assert json.loads(sent) == expected
    assert encode_request(request, edits) == sent


@UNHURRIED
@given(sample_requests(), st.data())
def test_what_stays_keeps_its_bytes_when_others_leave(sample: SampleRequest, data: st.DataObject) -> None:
    request = decode(sample)
    if len(request.messages) < 2:
        return
    message = data.draw(st.sampled_from(request.messages))
    keys = frozenset(part.key for part in message.parts)
    sent = encode_request(request, RequestEdits(dropped=keys)).decode() if keys else request.source
    front, back = common_ends(request.source, sent)
    assert front + back >= len(sent) - 1
    for other in request.messages:
        if abs(other.number - message.number) > 1:
            assert request.source[slice(*other.span)] in sent


@UNHURRIED
@given(sample_requests(), st.integers(0, 2**20))
def test_fingerprints_tell_the_same_content_however_it_is_written(sample: SampleRequest, seed: int) -> None:
    again = decode_request(sample.api, odd_json(sample.body, seed).encode())
    assert [one.fingerprint for one in again.messages] == [one.fingerprint for one in decode(sample).messages]


def said(message: Any) -> str:
    """What a message says, breakpoints aside, a text being a list with one text."""
    if isinstance(message, dict):
        message = {key: one for key, one in message.items() if key != "cache_control"}
        content = message.get("content")
        if isinstance(content, list):
            message["content"] = [
                {key: one for key, one in block.items() if key != "cache_control"} for block in content
            ]
        if isinstance(content, str) and message.get("role") != "tool":
            message["content"] = [{"type": "text", "text": content}]
    return json.dumps(message, sort_keys=True)


@UNHURRIED
@given(st.lists(anthropic_requests(), min_size=2, max_size=3))
def test_fingerprints_are_equal_for_equal_content_only(samples: list[SampleRequest]) -> None:
    pairs = [
        (wire.fingerprint, said(message))
        for sample in samples
        for wire, message in zip(decode(sample).messages, sample.body["messages"], strict=True)
    ]
    assert len({mark for mark, _ in pairs}) == len({text for _, text in pairs}) == len(set(pairs))


@UNHURRIED
@given(sample_requests(), st.data())
def test_a_request_is_read_the_same_with_an_earlier_one_at_hand(sample: SampleRequest, data: st.DataObject) -> None:
    name = "input" if sample.api is WireApi.RESPONSES else "messages"
    earlier = copy.deepcopy(sample.body)
    earlier["padding"] = data.draw(st.text(max_size=3))
    if isinstance(earlier[name], list):
        kept = data.draw(st.lists(st.integers(0, len(earlier[name]) - 1), unique=True))
        earlier[name] = [earlier[name][number] for number in sorted(kept)]
    seed = data.draw(st.sampled_from([0, 1]))
    body = odd_json(sample.body, seed).encode()
    known = decode_request(sample.api, odd_json(earlier, seed).encode())
    assert decode_request(sample.api, body, known) == decode_request(sample.api, body)
    same = decode_request(sample.api, body)
    assert decode_request(sample.api, body, same) == same


@pytest.mark.parametrize("api", list(WireApi))
def test_an_earlier_request_of_another_api_is_passed_over(api: WireApi) -> None:
    bodies = {
        WireApi.MESSAGES: b'{"messages":[{"role":"user","content":"hi"}]}',
        WireApi.CHAT: b'{"messages":[{"role":"user","content":"hi"}]}',
        WireApi.RESPONSES: b'{"input":[{"role":"user","content":"hi"}]}',
    }
    for other in WireApi:
        known = decode_request(other, bodies[other])
        assert decode_request(api, bodies[api], known) == decode_request(api, bodies[api])
