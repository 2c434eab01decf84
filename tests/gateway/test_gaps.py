"""Neighbours of one role, and a beginning that is not the user's."""

from __future__ import annotations

import json
from collections.abc import Collection

from context_gatekeeper.gateway.gaps import find_gaps
from context_gatekeeper.wire import decode_request
from context_gatekeeper.wire.records import WireApi, WireRequest


def request_of(roles: str, api: WireApi = WireApi.MESSAGES) -> WireRequest:
    """One message for each letter: user, assistant, system, tool."""
    names = {"u": "user", "a": "assistant", "s": "system", "t": "tool"}
    messages = [{"role": names[one], "content": f"text {n}", "tool_call_id": "c"} for n, one in enumerate(roles)]
    if api is WireApi.RESPONSES:
        items = [{"type": "message", "role": one["role"], "content": "x"} for one in messages]
        return decode_request(api, json.dumps({"input": items}).encode())
    return decode_request(api, json.dumps({"messages": messages}).encode())


def gaps(
    roles: str, standing: set[int], added: Collection[int] = (), api: WireApi = WireApi.MESSAGES
) -> list[tuple[int, int, tuple[int, ...]]]:
    return [(gap.before, gap.behind, gap.between) for gap in find_gaps(request_of(roles, api), standing, added)]


def test_two_of_the_user_get_the_newest_answer_between_them() -> None:
    assert gaps("uauau", {0, 4}) == [(0, 4, (3, 1))]
    assert gaps("uauau", {0, 3, 4}) == []


def test_a_message_that_is_added_to_stands() -> None:
    assert gaps("uauau", {0}, {4}) == [(0, 4, (3, 1))]


def test_neighbours_of_the_clients_own_remain() -> None:
    assert gaps("uua", {0, 1, 2}) == []


def test_between_two_answers_something_of_the_user_stays() -> None:
    assert gaps("uauau", {0, 1, 3, 4}) == [(1, 3, (2,))]


def test_between_two_system_messages_an_answer_is_preferred() -> None:
    assert gaps("usausu", {0, 1, 4, 5}) == [(1, 4, (2, 3))]


def test_a_conversation_begins_with_the_user() -> None:
    assert gaps("uau", {1, 2}) == [(-1, 1, (0,))]
    assert gaps("au", {0, 1}) == []
    assert gaps("au", set()) == []


def test_texts_come_behind_the_results_that_stand_together() -> None:
    assert gaps("uattau", {0, 1, 2, 3}, {2, 5}, WireApi.CHAT) == [(3, 5, (4,))]
    assert gaps("uatua", {0, 1, 2, 3}, set(), WireApi.CHAT) == []


def test_items_stand_for_themselves() -> None:
    assert gaps("uauau", {0, 4}, api=WireApi.RESPONSES) == []
