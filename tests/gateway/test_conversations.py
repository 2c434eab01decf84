"""Which conversation a request goes on, and which are forgotten."""

from __future__ import annotations

import json

import pytest

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.gateway.conversations import Conversations
from context_gatekeeper.gateway.identity import SessionKey
from context_gatekeeper.gateway.live_session import LiveSession
from context_gatekeeper.wire import decode_request
from context_gatekeeper.wire.records import WireApi, WireRequest

KEY, OTHER_KEY = SessionKey("c", "one"), SessionKey("c", "two")


def made(name: str) -> LiveSession:
    return LiveSession(name, PRICES["none"], resident_tokens=0, secret=b"s")


def talk(*texts: str) -> WireRequest:
    told = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    return decode_request(WireApi.MESSAGES, json.dumps({"model": "m", "messages": told}).encode())


def table(**bounds: int) -> Conversations:
    return Conversations(**{"most_sessions": 4, "most_chars": 10**6, "most_branches": 2, **bounds})


def taken(conversations: Conversations, key: SessionKey, *texts: str) -> str:
    """Take a request in; return the name of its conversation."""
    conversation = conversations.take(key, talk(*texts), made)
    conversation.request = talk(*texts)
    conversation.session.plan(conversation.request, now=0.0)
    return conversation.session.name


def test_the_one_goes_on_of_which_the_request_holds_most() -> None:
    conversations = table(most_branches=3)
    short = taken(conversations, KEY, "Go.")
    other = taken(conversations, KEY, "Go.", "Yes.", "Left.")
    assert short == other
    right = taken(conversations, KEY, "Go.", "Yes.", "Right.")
    assert right != other
    assert taken(conversations, KEY, "Go.", "Yes.", "Left.", "And?", "On.") == other
    assert conversations.find(KEY, talk("Stop.")) is None
    assert conversations.find(OTHER_KEY, talk("Go.", "Yes.", "Left.")) is None


def test_of_one_key_the_newest_are_kept() -> None:
    for most in (1, 2):
        conversations = table(most_branches=most)
        for word in ("a", "b", "c"):
            taken(conversations, KEY, word)
        assert [one.request.messages[0].parts[0].block.text for one in conversations] == ["a", "b", "c"][-most:]


@pytest.mark.parametrize("bounds", [{"most_sessions": 1}, {"most_chars": 1}])
def test_the_oldest_keys_leave_and_never_the_newest(bounds: dict[str, int]) -> None:
    conversations = table(**bounds)
    taken(conversations, KEY, "a")
    taken(conversations, OTHER_KEY, "b")
    assert [one.request.messages[0].parts[0].block.text for one in conversations] == ["b"]


def test_one_that_is_gone_can_be_removed_again() -> None:
    conversations = table()
    taken(conversations, KEY, "a")
    [conversation] = conversations
    for _ in range(2):
        conversations.remove(KEY, conversation)
        conversations.remove(OTHER_KEY, conversation)
    assert list(conversations) == []
