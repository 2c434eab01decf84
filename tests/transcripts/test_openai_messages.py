"""OpenAI chat messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.transcripts import Conversation, read_conversations

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is the lock's expiry?"},
    {"role": "assistant", "content": "Ten seconds."},
    {
        "role": "user",
        "content": [{"type": "text", "text": "And this?"}, {"type": "image_url", "image_url": {"url": "x"}}],
    },
    {"role": "assistant", "content": "A diagram."},
]
TURNS = [("What is the lock's expiry?", "Ten seconds."), ("And this?\n[image_url]", "A diagram.")]


def read_text(path: Path, text: str) -> Conversation:
    path.write_text(text, "utf-8")
    (conversation,) = read_conversations(path)
    return conversation


def texts(conversation: Conversation) -> list[tuple[str, str]]:
    return [(turn.user_text, turn.assistant_text) for turn in conversation.turns]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(CHAT),
        json.dumps(CHAT, indent=2),
        json.dumps({"messages": CHAT}),
        json.dumps({"messages": CHAT}, indent=2),
        "\n".join(json.dumps(message) for message in CHAT),
        "\n\n".join(json.dumps(message) for message in CHAT) + "\n",
        json.dumps(CHAT) + "\n\n",
    ],
    ids=["list", "indented list", "object", "indented object", "message a line", "blank lines", "trailing newlines"],
)
def test_every_form_gives_the_same_turns_and_counts_the_system_message(tmp_path: Path, text: str) -> None:
    conversation = read_text(tmp_path / "chat", text)
    assert texts(conversation) == TURNS
    assert conversation.system_messages == 1
    assert conversation.conversation_id == "1"


def test_several_conversations_a_line_each_keep_their_ids(tmp_path: Path) -> None:
    path = tmp_path / "chats"
    path.write_text(f"{json.dumps({'id': 'a', 'messages': CHAT})}\n{json.dumps(CHAT)}\n")
    first, second = read_conversations(path)
    assert (first.conversation_id, second.conversation_id) == ("a", "2")
    assert texts(first) == texts(second) == TURNS


def test_tool_calls_and_results_belong_to_the_assistants_side(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "grep", "arguments": '{"pattern": "lock"}'}}
    odd_call = {"function": {"arguments": {"as": "object"}}}
    messages = [
        {"role": "user", "content": "Find the lock."},
        {"role": "assistant", "content": None, "tool_calls": [call, odd_call]},
        {"role": "tool", "tool_call_id": "c1", "content": "lock.py:7"},
        {"role": "assistant", "content": "It is in lock.py."},
    ]
    assert texts(read_text(tmp_path / "chat", json.dumps(messages))) == [
        ("Find the lock.", '[grep] {"pattern": "lock"}\n[tool] {"as": "object"}\n\nlock.py:7\n\nIt is in lock.py.')
    ]


def test_two_user_messages_in_a_row_are_two_turns(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
        {"role": "assistant", "content": "c"},
    ]
    assert texts(read_text(tmp_path / "chat", json.dumps(messages))) == [("a", ""), ("b", "c")]


def test_an_answer_nobody_asked_for_is_a_turn_without_a_user(tmp_path: Path) -> None:
    messages = [{"role": "assistant", "content": "Welcome!"}, {"role": "user", "content": "Hi."}]
    assert texts(read_text(tmp_path / "chat", json.dumps(messages))) == [("", "Welcome!"), ("Hi.", "")]


def test_times_and_ids_of_messages_are_kept(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "a", "id": "m1", "time": "2026-01-22T18:39:49Z"},
        {"role": "assistant", "content": "b", "id": "m2"},
    ]
    (turn,) = read_text(tmp_path / "chat", json.dumps(messages)).turns
    assert (turn.time, turn.source_ids) == (1769107189.0, ("m1", "m2"))


def test_separators_that_are_no_newlines_stay_inside_a_line(tmp_path: Path) -> None:
    content = "one\u2028two\x85three\u2029four"
    lines = [
        json.dumps({"role": "user", "content": content}, ensure_ascii=False),
        json.dumps({"role": "assistant", "content": "ok"}),
    ]
    assert texts(read_text(tmp_path / "chat", "\n".join(lines))) == [(content, "ok")]


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("text", "it is no object"),
        ({"content": "x"}, "'role' is missing"),
        ({"role": "narrator", "content": "x"}, "role 'narrator' is not one of"),
        ({"role": "user", "content": 7}, "'content' is neither a text nor a list"),
        ({"role": "user", "content": [7]}, "a part of 'content'"),
        ({"role": "assistant", "content": None, "tool_calls": {}}, "'tool_calls' is no list"),
        ({"role": "assistant", "content": None, "tool_calls": [{}]}, "a tool call has no 'function'"),
    ],
)
def test_a_message_of_another_form_is_named_by_its_number(tmp_path: Path, message: Any, cause: str) -> None:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"messages": [CHAT[1], message]}))
    with pytest.raises(TranscriptError, match="message 2") as caught:
        read_conversations(path)
    assert cause in str(caught.value)


def test_messages_that_are_no_list_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text('{"messages": "hello"}')
    with pytest.raises(TranscriptError, match="'messages' is no list"):
        read_conversations(path)
